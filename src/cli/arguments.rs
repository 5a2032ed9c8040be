//! Flags that several commands share, and how their values are read.

use std::convert::Infallible;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use altbi::data::{Detect, read_matrix};
use altbi::device::Device;
use altbi::experiment::{BenchmarkName, Size};
use altbi::{
    Beta, BunchOver, Criterion, EngineChoice, Error, Exponent, HeldOut, Initial, LambdaStep,
    Method, Mode, Normalization, Precision, Problem, Result, Selection, Training, Units,
    divergence, penalty,
};
use clap::{Args, ValueEnum};
use ndarray::Array2;

/// What λ is tuned for, and what is held out for it.
#[derive(Debug, Args)]
pub struct CriterionArguments {
    /// What λ is tuned for: train (the paper), or held-out:<fraction> of the entries,
    /// chosen at random, which the updates then never see
    #[arg(long, default_value = "train", value_parser = criterion)]
    pub criterion: CriterionArgument,
    /// Seed of the choice of held-out entries
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub held_out_seed: u64,
}

/// `--criterion`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CriterionArgument {
    /// The entries that the factors are fitted to.
    Train,
    /// This share of them, held out.
    HeldOut(f64),
}

impl CriterionArguments {
    /// The problem with what is to be held out.
    pub fn hold_out(&self, problem: Problem) -> Result<Problem> {
        match self.criterion {
            CriterionArgument::Train => Ok(problem),
            CriterionArgument::HeldOut(fraction) => problem.speckled(fraction, self.held_out_seed),
        }
    }

    /// The outer error.
    pub fn outer_error(&self) -> Arc<dyn Criterion> {
        match self.criterion {
            CriterionArgument::Train => Arc::new(Training),
            CriterionArgument::HeldOut(_) => Arc::new(HeldOut),
        }
    }

    /// The word that was typed.
    pub fn text(&self) -> String {
        match self.criterion {
            CriterionArgument::Train => "train".into(),
            CriterionArgument::HeldOut(fraction) => format!("held-out:{fraction}"),
        }
    }
}

/// Reads `--criterion`; the fraction itself is checked with the data.
pub fn criterion(text: &str) -> Result<CriterionArgument> {
    let criterion = match text.split_once(':') {
        None if text == "train" => Some(CriterionArgument::Train),
        Some(("held-out", number)) => number.parse().ok().map(CriterionArgument::HeldOut),
        _ => None,
    };
    criterion.ok_or_else(|| Error::UnknownName {
        kind: "criterion",
        name: text.into(),
        known: "train, held-out:<fraction>",
    })
}

/// Checks that a penalty of this name exists.
pub fn penalty_name(name: &str) -> Result<String> {
    penalty::by_name(name).map(|_| name.into())
}

/// Checks that a device of this name exists.
pub fn device_name(name: &str) -> Result<String> {
    Device::by_name(name).map(|_| name.into())
}

/// A divergence by its name.
pub fn divergence_name(name: &str) -> Result<Beta> {
    divergence::by_name(name)
}

/// `--lambda`.
#[derive(Debug, Clone, PartialEq)]
pub enum LambdaArgument {
    /// The method's own.
    Auto,
    /// The same number for every row.
    Value(f64),
    /// One number per row.
    File(String),
}

impl FromStr for LambdaArgument {
    type Err = Infallible;

    fn from_str(text: &str) -> std::result::Result<Self, Infallible> {
        Ok(match (text, text.parse()) {
            ("auto", _) => Self::Auto,
            (_, Ok(value)) => Self::Value(value),
            (_, Err(_)) => Self::File(text.into()),
        })
    }
}

/// A λ file as a column: a row is turned, anything else is left to the shape
/// check.
pub fn read_lambda(path: &str) -> Result<Array2<f64>> {
    let lambda = read_matrix(Path::new(path))?;
    Ok(if lambda.nrows() == 1 {
        lambda.t().to_owned()
    } else {
        lambda
    })
}

/// A matrix from an optional file.
pub fn read_optional(path: Option<&String>) -> Result<Option<Array2<f64>>> {
    path.map(|path| read_matrix(Path::new(path))).transpose()
}

/// `--lambda-step`.
pub fn lambda_step(text: &str) -> Result<LambdaStep> {
    let step = match text.split_once(':') {
        None if text == "inv-iter" => Some(LambdaStep::InverseIteration),
        Some(("constant", number)) => number.parse().ok().map(LambdaStep::Constant),
        Some(("normalized", number)) => number.parse().ok().map(LambdaStep::Normalized),
        Some(("adam", number)) => number.parse().ok().map(LambdaStep::Adam),
        _ => None,
    };
    let step = step.ok_or_else(|| Error::UnknownName {
        kind: "λ step",
        name: text.into(),
        known: "inv-iter, constant:<number>, normalized:<rate>, adam:<rate>",
    })?;
    step.check()?;
    Ok(step)
}

/// The words of [`lambda_step`] for a step.
pub fn lambda_step_text(step: LambdaStep) -> String {
    match step {
        LambdaStep::InverseIteration => "inv-iter".into(),
        LambdaStep::Constant(c) => format!("constant:{c}"),
        LambdaStep::Normalized(rate) => format!("normalized:{rate}"),
        LambdaStep::Adam(rate) => format!("adam:{rate}"),
    }
}

/// The word on the command line for a value.
pub fn word(value: &impl ValueEnum) -> String {
    let name = value.to_possible_value();
    name.expect("no value is hidden").get_name().into()
}

/// Names on the command line for an enum of the library.
macro_rules! names {
    ($(#[$doc:meta])* $name:ident for $target:ident { $($variant:ident $(= $text:literal)?),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
        pub enum $name {
            $($(#[value(name = $text)])? #[allow(missing_docs, reason = "as in the library")] $variant,)+
        }

        impl From<$name> for $target {
            fn from(name: $name) -> Self {
                match name {
                    $($name::$variant => Self::$variant,)+
                }
            }
        }
    };
}

names!(
    /// `--method`.
    MethodName for Method { AltBi = "altbi", Mu, PenalizedMu = "p-mu", MuT, Frozen }
);
names!(
    /// `--exponent`.
    ExponentName for Exponent { One, Monotone }
);
names!(
    /// `--hypergradient` and `--mode`.
    ModeName for Mode { Reverse, Forward, Adjoint, Implicit, FiniteDifferences }
);
names!(
    /// `--engine`.
    EngineName for EngineChoice { Auto, Autodiff, Fused }
);
names!(
    /// `--normalize`.
    NormalizationName for Normalization { None, HRows, HRms }
);
names!(
    /// `--bunch-over`.
    BunchOverName for BunchOver { One, Both }
);
names!(
    /// `--lambda-units`.
    UnitsName for Units { Absolute, Relative }
);
names!(
    /// A benchmark.
    BenchmarkWord for BenchmarkName { A, B, C, D, Poisson }
);
names!(
    /// `--size`.
    SizeName for Size { Full, Small }
);
names!(
    /// `--select`.
    SelectionName for Selection { Best, Last }
);
names!(
    /// `--init`.
    InitialName for Initial { Random, Uniform, Nndsvd, Nndsvda }
);
names!(
    /// `--dtype`.
    PrecisionName for Precision { F64, F32 }
);
names!(
    /// `--header` and `--labels`.
    DetectName for Detect { Auto, Yes, No }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambda_is_a_word_a_number_or_a_file() {
        let parse = |text: &str| text.parse::<LambdaArgument>().unwrap();
        assert_eq!(parse("auto"), LambdaArgument::Auto);
        assert_eq!(parse("0.5"), LambdaArgument::Value(0.5));
        assert_eq!(parse("-1"), LambdaArgument::Value(-1.0));
        assert_eq!(parse("l.npy"), LambdaArgument::File("l.npy".into()));
    }

    #[test]
    fn steps_have_names() {
        for text in ["inv-iter", "constant:0.1", "normalized:0.05", "adam:0.3"] {
            assert_eq!(lambda_step_text(lambda_step(text).unwrap()), text);
        }
        assert!(lambda_step("constant:0").is_err());
        assert!(lambda_step("constant").is_err());
        assert!(lambda_step("adam").is_err());
    }

    #[test]
    fn criteria_have_names() {
        assert_eq!(criterion("train").unwrap(), CriterionArgument::Train);
        let held_out = criterion("held-out:0.1").unwrap();
        assert_eq!(held_out, CriterionArgument::HeldOut(0.1));
        for wrong in ["held-out", "held-out:", "held-out:x", "test", "train:0.1"] {
            assert!(criterion(wrong).is_err(), "{wrong}");
        }
    }
}

//! Flags that several commands share, and how their values are read.

use std::path::PathBuf;
use std::str::FromStr;

use altbi::data::read_matrix;
use altbi::{
    Beta, Error, Exponent, LambdaStep, Method, Mode, Normalization, Precision, Problem, Result,
    divergence, penalty,
};
use clap::{Args, ValueEnum};
use ndarray::Array2;

/// What is factorised, and how it is measured.
#[derive(Debug, Args)]
pub struct ProblemArguments {
    /// The matrix X, .npy or .csv; without it, the embedded demo (benchmark A,
    /// 1000×50)
    pub data: Option<PathBuf>,
    /// Number of components r
    #[arg(long)]
    pub rank: Option<usize>,
    /// kl, frobenius, is, or beta:<number>
    #[arg(long, default_value = "kl", value_parser = divergence::by_name)]
    pub divergence: Beta,
    /// l1, l2, group, l21, hoyer, smooth, or none
    #[arg(long, default_value = "l1", value_parser = penalty_name)]
    pub penalty: String,
    /// Updates of W per update of H, T
    #[arg(long, value_name = "T", default_value_t = 4)]
    pub bunch: usize,
    /// Exponent of the updates: 1, or the one that keeps the objective from rising
    #[arg(long, default_value = "one")]
    pub exponent: ExponentName,
    /// Weights of the entries of X in [0, ∞), .npy or .csv; 0 marks a missing entry
    #[arg(long, value_name = "FILE")]
    pub mask: Option<PathBuf>,
    /// Seed of everything random
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Floating-point type
    #[arg(long, default_value = "f64")]
    pub dtype: PrecisionName,
}

impl ProblemArguments {
    /// The checked problem for a matrix, with the mask if there is one.
    pub fn problem(&self, x: &Array2<f64>) -> Result<Problem> {
        match &self.mask {
            Some(path) => Problem::masked(x, &read_matrix(path)?, self.dtype.into()),
            None => Problem::new(x, self.dtype.into()),
        }
    }
}

/// Checks that a penalty of this name exists.
fn penalty_name(name: &str) -> Result<String> {
    penalty::by_name(name).map(|_| name.into())
}

/// `--lambda`.
#[derive(Debug, Clone, PartialEq)]
pub enum LambdaArgument {
    Auto,
    Value(f64),
    File(PathBuf),
}

impl FromStr for LambdaArgument {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match (text, text.parse()) {
            ("auto", _) => Self::Auto,
            (_, Ok(value)) => Self::Value(value),
            (_, Err(_)) => Self::File(text.into()),
        })
    }
}

/// A λ file as a column: a row is turned, anything else is left to the shape
/// check.
pub fn read_lambda(path: &std::path::Path) -> Result<Array2<f64>> {
    let lambda = read_matrix(path)?;
    Ok(if lambda.nrows() == 1 {
        lambda.t().to_owned()
    } else {
        lambda
    })
}

/// `--lambda-step`.
pub fn lambda_step(text: &str) -> Result<LambdaStep> {
    let step = match text.split_once(':') {
        None if text == "inv-iter" => Some(LambdaStep::InverseIteration),
        Some(("constant", number)) => number.parse().ok().map(LambdaStep::Constant),
        _ => None,
    };
    let step = step.ok_or_else(|| Error::UnknownName {
        kind: "λ step",
        name: text.into(),
        known: "inv-iter, constant:<number>",
    })?;
    step.check()?;
    Ok(step)
}

/// Names on the command line for an enum of the library.
macro_rules! names {
    ($(#[$doc:meta])* $name:ident for $target:ident { $($variant:ident $(= $text:literal)?),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, ValueEnum)]
        pub enum $name {
            $($(#[value(name = $text)])? $variant,)+
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
    /// `--normalize`.
    NormalizationName for Normalization { None, HRows }
);
names!(
    /// `--dtype`.
    PrecisionName for Precision { F64, F32 }
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
        assert_eq!(
            lambda_step("inv-iter").unwrap(),
            LambdaStep::InverseIteration
        );
        assert_eq!(
            lambda_step("constant:0.1").unwrap(),
            LambdaStep::Constant(0.1)
        );
        assert!(lambda_step("constant:0").is_err());
        assert!(lambda_step("constant").is_err());
        assert!(lambda_step("adam").is_err());
    }
}

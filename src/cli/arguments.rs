//! Flags that several commands share, and how their values are read.

use std::convert::Infallible;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use altbi::data::read_matrix;
use altbi::device::Device;
use altbi::words::Words;
use altbi::{Criterion, Error, HeldOut, Problem, Result, Training, penalty};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ndarray::Array2;

/// What λ is tuned for, and what is held out for it.
#[derive(Debug, Args)]
pub struct CriterionArguments {
    /// What λ is tuned for: train (the paper), or held-out:<fraction> of the entries,
    /// chosen at random, which the updates then never see
    #[arg(long, default_value = "train")]
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
}

impl fmt::Display for CriterionArgument {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Train => formatter.write_str("train"),
            Self::HeldOut(fraction) => write!(formatter, "held-out:{fraction}"),
        }
    }
}

impl FromStr for CriterionArgument {
    type Err = Error;

    /// (The fraction itself is checked with the data.)
    fn from_str(text: &str) -> Result<Self> {
        let criterion = match text.split_once(':') {
            None if text == "train" => Some(Self::Train),
            Some(("held-out", number)) => number.parse().ok().map(Self::HeldOut),
            _ => None,
        };
        criterion.ok_or_else(|| Error::UnknownName {
            kind: "criterion",
            name: text.into(),
            known: "train, held-out:<fraction>",
        })
    }
}

/// Checks that a penalty of this name exists.
pub fn penalty_name(name: &str) -> Result<String> {
    penalty::by_name(name).map(|_| name.into())
}

/// Checks that a device of this name exists.
pub fn device_name(name: &str) -> Result<String> {
    name.parse::<Device>().map(|_| name.into())
}

/// One of the words of a setting of the library.
pub fn words<T: Words>() -> impl TypedValueParser<Value = T> {
    let one_of_them = PossibleValuesParser::new(T::WORDS);
    one_of_them.try_map(|word| word.parse::<T>())
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
    fn criteria_have_names() {
        for (text, criterion) in [
            ("train", CriterionArgument::Train),
            ("held-out:0.1", CriterionArgument::HeldOut(0.1)),
        ] {
            assert_eq!(text.parse::<CriterionArgument>().unwrap(), criterion);
            assert_eq!(criterion.to_string(), text);
        }
        for wrong in ["held-out", "held-out:", "held-out:x", "test", "train:0.1"] {
            assert!(wrong.parse::<CriterionArgument>().is_err(), "{wrong}");
        }
    }
}

//! Flags that several commands share, and parsers of their values.

use std::convert::Infallible;
use std::path::Path;
use std::str::FromStr;

use crate::config::MOST_THREADS;
use crate::criterion::{OuterError, Unseen};
use crate::data::read_matrix;
use crate::device::Device;
use crate::divergence::Outer;
use crate::words::Words;
use crate::{Beta, Error, Problem, Result, penalty};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ndarray::Array2;

/// The outer error, and the seed of its held-out data.
#[derive(Debug, Args)]
#[command(next_help_heading = super::headings::PENALTIES)]
pub struct CriterionArguments {
    /// The outer error that λ is tuned for; train: the fitted entries (the paper);
    /// held-out:<fraction>: a random fraction of the entries, which the updates never see;
    /// thinned:<share>: a random share of the counts of every entry, likewise; auto: thinned:0.1
    /// for counts under kl, held-out:0.1 otherwise
    #[arg(long, default_value = "train")]
    pub criterion: Unseen,
    /// Divergence of the outer error: one of those of --divergence, or smoothed-kl:<c>, KL between
    /// x + c and WH + c [default: as --divergence; under kl, smoothed-kl:0.5 for thinned counts,
    /// and with --criterion auto, smoothed-kl:<half the mean of X> for other data of which a
    /// tenth or more are zeros]
    #[arg(long, value_name = "DIVERGENCE")]
    pub outer_divergence: Option<Outer>,
    /// Seed of the choice of held-out data
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub held_out_seed: u64,
}

impl CriterionArguments {
    /// The requested outer error.
    pub fn asked(&self) -> OuterError {
        OuterError {
            unseen: self.criterion,
            divergence: self.outer_divergence,
        }
    }

    /// The outer error for these data, and the problem with its held-out part.
    pub fn hold_out(&self, problem: &Problem, divergence: Beta) -> Result<(Problem, OuterError)> {
        let outer = self.asked().for_data(problem, &divergence);
        Ok((outer.split(problem, self.held_out_seed)?, outer))
    }
}

/// Checks that a penalty of this name exists.
pub fn penalty_name(name: &str) -> Result<String> {
    penalty::by_name(name).map(|_| name.into())
}

/// Refuses too many threads.
pub fn check_threads(threads: usize) -> Result<()> {
    let ok = threads <= MOST_THREADS;
    Error::require(ok, "the number of threads", threads as f64, "at most 1024")
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
    /// The method chooses it.
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

/// A λ file as a column. A row is transposed; the shape check refuses other shapes.
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
}

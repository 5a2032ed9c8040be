//! `altbi generate`: benchmark data whose true factors are known.

use std::path::PathBuf;

use crate::data::write_npy;
use crate::experiment::{BenchmarkName, Dataset, Size};
use crate::{Error, Factors, Result};
use clap::Args;

use super::Ending;
use super::arguments::words;
use super::output::{NewFolder, output_path, say};

/// Arguments of `generate`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  altbi generate b --out data && altbi fit data/X.npy --rank 4

The folder holds X.npy and the factors it was made of, W.npy and H.npy.")]
pub struct GenerateArguments {
    /// a: clipped normal W; b: clipped sinusoids; c: spectra; d: hyperspectral image;
    /// poisson: counts of a
    #[arg(value_parser = words::<BenchmarkName>())]
    benchmark: BenchmarkName,
    /// A folder with the data that the paper's authors published (.mat); c and d then use their
    /// signals
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Seed of the data
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The new folder [default: benchmark-<name>]
    #[arg(long, value_name = "DIR", value_parser = output_path)]
    out: Option<PathBuf>,
}

/// Writes the data.
pub fn generate(arguments: &GenerateArguments) -> Result<Ending> {
    let seed = arguments.seed;
    let folder = arguments
        .out
        .clone()
        .unwrap_or_else(|| format!("benchmark-{}", arguments.benchmark).into());
    let claimed = NewFolder::claim(&folder)?;
    let benchmark = arguments.benchmark;
    let published = arguments.data.as_deref();
    if published.is_some() && !matches!(benchmark, BenchmarkName::C | BenchmarkName::D) {
        return Err(Error::Conflict {
            first: "--data",
            second: "a benchmark other than c and d",
            reason: "only these are made of published signals; the authors' A and B are matrices, \
                     which altbi fit reads",
        });
    }
    let dataset = Dataset::all_of(benchmark, Size::Full, seed, published)?.swap_remove(0);
    let (x, Factors { w, h }) = (dataset.x, dataset.truth.expect("made of known factors"));
    claimed.fill(|folder| {
        for (name, matrix) in [("X.npy", &x), ("W.npy", &w), ("H.npy", &h)] {
            write_npy(&folder.join(name), matrix)?;
        }
        Ok(())
    })?;
    say(format!(
        "X ({}×{}) and its {} components written to {}",
        x.nrows(),
        x.ncols(),
        w.ncols(),
        folder.display()
    ));
    Ok(Ending::Done)
}

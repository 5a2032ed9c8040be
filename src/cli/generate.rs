//! `altbi generate`: benchmark data whose true factors are known.

use std::path::PathBuf;

use altbi::data::published::{published_c, published_d};
use altbi::data::{
    Benchmark, MAP_SIDE, benchmark_a, benchmark_b, benchmark_c, benchmark_d, poisson, write_npy,
};
use altbi::{Error, Result};
use clap::{Args, ValueEnum};

use super::Ending;
use super::arguments::word;
use super::output::say;

/// Arguments of `generate`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  altbi generate b --out data && altbi fit data/X.npy --rank 4

The folder holds X.npy and the factors it was made of, W.npy and H.npy.")]
pub struct GenerateArguments {
    /// a: clipped normal W; b: clipped sinusoids; c: spectra; d: hyperspectral image;
    /// poisson: counts of a
    benchmark: BenchmarkName,
    /// A folder with the data that the paper's authors published (.mat): c and d are
    /// made of their signals
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The new folder [default: benchmark-<name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum BenchmarkName {
    A,
    B,
    C,
    D,
    Poisson,
}

/// Mean count of the Poisson data, roughly: ten times benchmark A.
const POISSON_SCALE: f64 = 10.0;

/// Writes the data.
pub fn generate(arguments: &GenerateArguments) -> Result<Ending> {
    let seed = arguments.seed;
    let folder = arguments.out.clone().unwrap_or_else(|| {
        let name = word(&arguments.benchmark);
        format!("benchmark-{name}").into()
    });
    if folder.symlink_metadata().is_ok() {
        return Err(Error::RunFolderExists { path: folder });
    }
    let published = arguments.data.as_deref();
    let Benchmark { x, w, h } = match (arguments.benchmark, published) {
        (BenchmarkName::C, Some(folder)) => published_c(folder, 50, 5, seed)?,
        (BenchmarkName::D, Some(folder)) => published_d(folder, MAP_SIDE, 5, seed)?,
        (_, Some(_)) => {
            return Err(Error::Conflict {
                first: "--data",
                second: "a benchmark other than c and d",
                reason: "only these are made of published signals; the authors' A and B are \
                         matrices, which altbi fit reads",
            });
        }
        (BenchmarkName::A, None) => benchmark_a(1000, 50, 4, seed),
        (BenchmarkName::B, None) => benchmark_b(1000, 50, 4, seed),
        (BenchmarkName::C, None) => benchmark_c(1000, 50, 5, seed),
        (BenchmarkName::D, None) => benchmark_d(224, MAP_SIDE, 5, seed),
        (BenchmarkName::Poisson, None) => poisson(1000, 50, 4, POISSON_SCALE, seed),
    };
    std::fs::create_dir_all(&folder).map_err(|source| Error::Write {
        path: folder.clone(),
        source,
    })?;
    for (name, matrix) in [("X.npy", &x), ("W.npy", &w), ("H.npy", &h)] {
        write_npy(&folder.join(name), matrix)?;
    }
    say(format!(
        "X ({}×{}) and its {} components written to {}",
        x.nrows(),
        x.ncols(),
        w.ncols(),
        folder.display()
    ));
    Ok(Ending::Done)
}

//! `altbi generate`: benchmark data whose true factors are known.

use std::path::PathBuf;

use altbi::data::{
    Benchmark, benchmark_a, benchmark_b, benchmark_c, benchmark_d, poisson, write_npy,
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
    let Benchmark { x, w, h } = match arguments.benchmark {
        BenchmarkName::A => benchmark_a(1000, 50, 4, seed),
        BenchmarkName::B => benchmark_b(1000, 50, 4, seed),
        BenchmarkName::C => benchmark_c(1000, 50, 5, seed),
        BenchmarkName::D => benchmark_d(224, 5, seed),
        BenchmarkName::Poisson => poisson(1000, 50, 4, POISSON_SCALE, seed),
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

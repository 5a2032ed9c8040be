//! The data that the paper's authors published (their repository Dataset_signal_HPO), read from a
//! local copy.
//!
//! | file | variable | contents |
//! |---|---|---|
//! | `Benchmark_A.mat` | X 1000×50 | their benchmark A; its numerical rank is 5 |
//! | `Benchmark_B.mat` | X 1000×50 | their benchmark B; its numerical rank is 5 |
//! | `AC10_art_spectr_noi.mat` | X 10×1000 | ten source signals; five are W of C |
//! | `USGS_pruned_10_deg.mat` | B 224×62 | reflectances; five are W of D |
//!
//! The authors do not say which five they took. Here they are the first five in the order of the
//! file (for D: the first five that are pairwise more than 15° apart), and H is drawn as in the
//! synthetic benchmarks.

use std::path::Path;

use ndarray::{Array2, Axis};

use super::hyperspectral::{abundance_maps, apart};
use super::{Benchmark, generator, sparse_uniform};
use crate::data::{Source, TableOptions};
use crate::error::{Error, Result};

fn read(folder: &Path, file: &str, variable: &str) -> Result<Array2<f64>> {
    let source = Source::File {
        path: folder.join(file),
        variable: Some(variable.into()),
    };
    Ok(source.read(TableOptions::default())?.values)
}

/// X of the authors' benchmark A.
pub(crate) fn published_a(folder: &Path) -> Result<Array2<f64>> {
    read(folder, "Benchmark_A.mat", "X")
}

/// X of the authors' benchmark B.
pub(crate) fn published_b(folder: &Path) -> Result<Array2<f64>> {
    read(folder, "Benchmark_B.mat", "X")
}

/// Benchmark C on the first `rank` of the ten source signals.
pub(crate) fn published_c(folder: &Path, m: usize, rank: usize, seed: u64) -> Result<Benchmark> {
    let file = "AC10_art_spectr_noi.mat";
    let signals = read(folder, file, "X")?;
    let enough: Vec<usize> = (0..signals.nrows().min(rank)).collect();
    check_count(folder, file, enough.len(), rank)?;
    let w = signals.select(Axis(0), &enough).t().to_owned();
    let h = sparse_uniform(&mut generator(seed), rank, m);
    Ok(Benchmark::of(w, h))
}

/// Benchmark D on the first `rank` reflectances that are pairwise more than 15°
/// apart, with abundance maps of `side`×`side` pixels.
pub(crate) fn published_d(folder: &Path, side: usize, rank: usize, seed: u64) -> Result<Benchmark> {
    let file = "USGS_pruned_10_deg.mat";
    let spectra = read(folder, file, "B")?;
    let chosen = apart(&spectra, rank);
    check_count(folder, file, chosen.len(), rank)?;
    let w = spectra.select(Axis(1), &chosen);
    let h = abundance_maps(&mut generator(seed), side, rank);
    Ok(Benchmark::of(w, h))
}

fn check_count(folder: &Path, file: &str, found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        Ok(())
    } else {
        Err(Error::TooFewSignals {
            path: folder.join(file),
            found,
            wanted,
        })
    }
}

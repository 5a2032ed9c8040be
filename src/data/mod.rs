//! Matrices from files and generators.
//!
//! | ending | read | written |
//! |---|---|---|
//! | `.npy` | `f4`, `f8`, either byte order, C and Fortran order, one or two dimensions | little-endian `f8`, C order |
//! | `.csv` | numbers only, commas, no header | |
//!
//! A one-dimensional array is read as a column.

mod benchmark;
mod csv;
mod npy;

use std::path::Path;

use ndarray::Array2;
use sha2::{Digest, Sha256};

pub use benchmark::{Benchmark, benchmark_a, demo};
pub use npy::write_npy;

use crate::error::{Error, Result};

/// Reads a matrix, by the ending of its name.
///
/// # Errors
/// [`Error::Read`] where the system refuses, [`Error::UnknownFormat`] for another
/// ending, [`Error::Npy`], [`Error::RaggedCsv`] and [`Error::CsvNumber`] for what
/// is wrong inside.
pub fn read_matrix(path: &Path) -> Result<Array2<f64>> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("npy") => npy::read_npy(path),
        Some("csv") => csv::read_csv(path),
        _ => Err(Error::UnknownFormat {
            path: path.into(),
            known: ".npy, .csv",
        }),
    }
}

/// A fingerprint of a matrix: SHA-256 of its shape and entries, in hexadecimal.
pub fn fingerprint(matrix: &Array2<f64>) -> String {
    let mut hasher = Sha256::new();
    for length in matrix.shape() {
        hasher.update((*length as u64).to_le_bytes());
    }
    for entry in matrix {
        hasher.update(entry.to_le_bytes());
    }
    let digest = hasher.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn fingerprints_tell_matrices_apart() {
        let a = array![[1.0, 2.0], [3.0, 4.0]];
        assert_eq!(fingerprint(&a), fingerprint(&a.clone()));
        assert_ne!(fingerprint(&a), fingerprint(&a.t().to_owned()));
        let flat = array![[1.0, 2.0, 3.0, 4.0]];
        assert_ne!(fingerprint(&a), fingerprint(&flat));
    }

    #[test]
    fn unknown_endings_are_refused() {
        let found = read_matrix(Path::new("x.mtx"));
        assert!(matches!(found, Err(Error::UnknownFormat { .. })));
    }
}

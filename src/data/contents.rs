//! The contents of a file, and its format by the ending of its name.

use std::ops::Range;
use std::path::Path;

use ndarray::{Array2, Axis, Slice};

use super::table::{Separator, Table};
use crate::error::{Error, Result};
use crate::sparse::{Matrix, SparseMatrix};

/// Endings of names that can be read.
const KNOWN: &str =
    ".npy, .npz, .csv, .tsv, .txt, .mtx, .mat, .parquet, .csv.gz, .tsv.gz, .txt.gz, .mtx.gz";

/// The contents of a file: a dense matrix, perhaps with names, or a sparse one.
#[derive(Debug, Clone, PartialEq)]
pub enum Contents {
    /// Every entry.
    Table(Table),
    /// Some entries. The file does not say whether the others are zeros or missing.
    Sparse(SparseMatrix),
}

impl Contents {
    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        match self {
            Self::Table(table) => table.values.dim().into(),
            Self::Sparse(matrix) => matrix.shape(),
        }
    }
}

impl Contents {
    /// Every entry; those that a sparse matrix does not store are 0.
    pub(crate) fn into_dense(self) -> Array2<f64> {
        match self {
            Self::Table(table) => table.values,
            Self::Sparse(matrix) => matrix.to_dense(),
        }
    }

    /// Only the rows that `rows` returns for the number of all rows.
    pub(super) fn cut(self, rows: &mut dyn FnMut(usize) -> Result<Range<usize>>) -> Result<Self> {
        let [all, columns] = self.shape();
        let own = rows(all)?;
        if own == (0..all) {
            return Ok(self);
        }
        Ok(match self {
            Self::Table(table) => {
                let own = Slice::from(own);
                let values = table.values.slice_axis(Axis(0), own).to_owned();
                Self::Table(Table { values, ..table })
            }
            Self::Sparse(matrix) => {
                let (own, columns): (Vec<_>, Vec<_>) = (own.collect(), (0..columns).collect());
                Self::Sparse(matrix.selected(&own, &columns))
            }
        })
    }
}

impl From<Table> for Contents {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<Matrix> for Contents {
    fn from(matrix: Matrix) -> Self {
        match matrix {
            Matrix::Dense(values) => Self::Table(Table::from(values)),
            Matrix::Sparse(matrix) => Self::Sparse(matrix),
        }
    }
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Npy,
    Npz,
    Mat,
    MatrixMarket,
    Parquet,
    /// A table of text, with the usual separator of its fields.
    Separated(Separator),
}

impl Format {
    /// The format by the ending of the name, and true if the file is compressed by gzip. (Formats
    /// that are compressed themselves are not.)
    pub(super) fn of(path: &Path) -> Result<(Self, bool)> {
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().to_ascii_lowercase();
        let (name, is_packed) = match name.strip_suffix(".gz") {
            Some(inner) => (inner, true),
            None => (name.as_str(), false),
        };
        let ending = Path::new(name).extension().and_then(|of| of.to_str());
        let format = match ending {
            Some("csv") => Self::Separated(Separator::Comma),
            Some("tsv") => Self::Separated(Separator::Tab),
            Some("txt") => Self::Separated(Separator::Whitespace),
            Some("mtx") => Self::MatrixMarket,
            Some("parquet") if !is_packed => Self::Parquet,
            Some("npy") if !is_packed => Self::Npy,
            Some("npz") if !is_packed => Self::Npz,
            Some("mat") if !is_packed => Self::Mat,
            _ => {
                return Err(Error::UnknownFormat {
                    path: path.into(),
                    known: KNOWN,
                });
            }
        };
        Ok((format, is_packed))
    }
}

/// Returns true if a file may hold several matrices with names.
pub(super) fn has_names(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    path.ends_with(".mat") || path.ends_with(".npz")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn endings_tell_the_format() {
        let of = |name: &str| Format::of(Path::new(name)).ok();
        let comma = Format::Separated(Separator::Comma);
        assert_eq!(of("data/a.csv"), Some((comma, false)));
        assert_eq!(of("A.CSV.GZ"), Some((comma, true)));
        assert_eq!(of("a.b.mtx.gz"), Some((Format::MatrixMarket, true)));
        let blanks = Format::Separated(Separator::Whitespace);
        assert_eq!(of("a.txt"), Some((blanks, false)));
        assert_eq!(of("a.npz"), Some((Format::Npz, false)));
        for unknown in [
            "a", "a.gz", "a.npy.gz", "a.mat.gz", "a.xls", "csv", ".csv", "mtx/",
        ] {
            assert_eq!(of(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn contents_have_a_shape() {
        let dense = Contents::from(Matrix::from(array![[1.0, 2.0]]));
        assert!(matches!(dense, Contents::Table(_)));
        assert_eq!(dense.shape(), [1, 2]);
        let sparse = SparseMatrix::from_triplets([4, 3], vec![(1, 1, 5.0)]).unwrap();
        assert_eq!(Contents::from(Matrix::from(sparse)).shape(), [4, 3]);
    }
}

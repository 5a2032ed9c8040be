//! Matrices from files and generators.
//!
//! | ending | read | written |
//! |---|---|---|
//! | `.npy` | floats, integers, booleans; either byte order, C and Fortran order, one or two dimensions | little-endian `f8`, C order |
//! | `.npz` | a sparse matrix that SciPy saved (csr, csc, coo), or arrays as in `.npy`; `file.npz:NAME` names an array | |
//! | `.csv`, `.tsv`, `.txt` | numbers with or without header, labels, quotes and comments; separated by comma, semicolon, tab or (`.txt`) blanks; decimal point or comma; UTF-8, UTF-16, Latin-1 | `.csv` with the labels of the data |
//! | `.mtx` | Matrix Market: coordinate or array; real, integer or pattern; general or symmetric | coordinate real general |
//! | `.mat` | level 5, compressed or not, full or sparse; `file.mat:NAME` names a matrix | |
//! | `.parquet` | numbers, and a column of text as labels; needs the feature `parquet` | |
//! | `-` | .csv from standard input | |
//!
//! Text formats may be compressed by gzip: `.csv.gz`, `.tsv.gz`, `.txt.gz`, `.mtx.gz`.
//!
//! A one-dimensional array is read as a column. Readers allocate memory only for data that are
//! there, not for what a header promises. Data that do not fit in a quarter of the free memory are
//! refused.

mod benchmark;
mod compressed;
mod contents;
mod graph;
mod gzip;
pub(crate) mod lock;
mod mat;
mod matrix_market;
mod memory;
mod npy;
mod npz;
#[cfg(feature = "parquet")]
mod parquet;
mod table;

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use ndarray::Array2;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

pub use benchmark::{
    Benchmark, Noise, benchmark_a, benchmark_b, benchmark_c, benchmark_d, poisson,
};
pub(crate) use benchmark::{MAP_SIDE, demo, published, separable_factors};
pub use contents::Contents;
pub use graph::read_edges;
pub(crate) use lock::Reservation;
pub use matrix_market::matrix_market;
pub(crate) use memory::check_room;
pub use npy::write_npy;
pub(crate) use npy::write_npy_values;
pub(crate) use table::Reading;
pub use table::{Decimal, Detect, Encoding, Separator, Table, TableOptions};

use self::contents::{Format, has_names};
use self::gzip::unpacked;
use self::table::read_separated;
use crate::error::{Error, Result};
use crate::processes::{Processes, Share, Wide, add};
use crate::sparse::Matrix;

/// Bytes that are read from a file at a time.
const CHUNK: usize = 1 << 16;

/// The source of a matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file; for .mat and .npz perhaps with the name of a matrix.
    File {
        /// Its path.
        path: PathBuf,
        /// The matrix in it.
        variable: Option<String>,
    },
    /// .csv from standard input.
    StandardInput,
}

impl From<&str> for Source {
    /// `-`, `file`, `file.mat:NAME`, or `file.npz:NAME`.
    fn from(text: &str) -> Self {
        if text == "-" {
            return Self::StandardInput;
        }
        match text.rsplit_once(':') {
            Some((path, name)) if has_names(path) => Self::File {
                path: path.into(),
                variable: Some(name.into()),
            },
            _ => Self::File {
                path: text.into(),
                variable: None,
            },
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File {
                path,
                variable: None,
            } => write!(formatter, "{}", path.display()),
            Self::File {
                path,
                variable: Some(name),
            } => write!(formatter, "{}:{name}", path.display()),
            Self::StandardInput => write!(formatter, "-"),
        }
    }
}

impl Source {
    /// The same source with an absolute path.
    #[must_use]
    pub(crate) fn absolute(&self) -> Self {
        match self {
            Self::File { path, variable } => Self::File {
                path: std::path::absolute(path).unwrap_or_else(|_| path.clone()),
                variable: variable.clone(),
            },
            Self::StandardInput => Self::StandardInput,
        }
    }

    /// Reads it, by the ending of its name.
    ///
    /// # Errors
    /// [`Error::Read`]; [`Error::UnknownFormat`] for another ending; and those of each format's
    /// reader.
    pub fn read_contents(&self, options: TableOptions) -> Result<Contents> {
        self.read_rows(options, &mut |all| Ok(0..all))
    }

    /// Reads the rows of one process, and returns its share. Only these rows of a .npy file in C
    /// order are read. Only these rows of a Matrix Market file are stored. Other formats are read
    /// as a whole first. The names are those of all rows.
    ///
    /// # Errors
    /// Those of [`read_contents`](Self::read_contents); [`Error::FewRows`]; [`Error::OtherProcess`]
    /// if another process cannot read its rows.
    pub fn read_share(
        &self,
        options: TableOptions,
        processes: &Processes,
    ) -> Result<(Contents, Share)> {
        let mut share = None;
        let contents = self.read_rows(options, &mut |all| {
            let own = Share::of(processes, all)?;
            let rows = own.rows();
            share = Some(own);
            Ok(rows)
        });
        let contents = processes.agree(contents)?;
        Ok((contents, share.expect("the rows were asked for")))
    }

    fn read_rows(
        &self,
        options: TableOptions,
        rows: &mut dyn FnMut(usize) -> Result<Range<usize>>,
    ) -> Result<Contents> {
        let (path, variable) = match self {
            Self::StandardInput => {
                let input = std::io::stdin().lock();
                let table = read_separated(input, "-", Separator::Comma, options)?;
                return Contents::from(table).cut(rows);
            }
            Self::File { path, variable } => (path, variable.as_deref()),
        };
        let (format, is_packed) = Format::of(path)?;
        let open = || -> Result<Box<dyn BufRead>> {
            let file = File::open(path).map_err(Error::reading(path))?;
            let file = BufReader::with_capacity(CHUNK, file);
            let input: Box<dyn BufRead> = if is_packed {
                Box::new(unpacked(file))
            } else {
                Box::new(file)
            };
            Ok(input)
        };
        let whole: Contents = match format {
            Format::Npy => return Ok(Table::from(npy::read_npy(path, rows)?).into()),
            Format::MatrixMarket => {
                let matrix = matrix_market::read_matrix_market(open()?, path, rows)?;
                return Ok(matrix.into());
            }
            Format::Npz => npz::read_npz(path, variable)?.into(),
            Format::Parquet => read_parquet(path)?.into(),
            Format::Mat => mat::read_mat(open()?, path, variable)?.into(),
            Format::Separated(usual) => {
                let name = path.display().to_string();
                read_separated(open()?, &name, usual, options)?.into()
            }
        };
        whole.cut(rows)
    }

    /// Reads a dense matrix. Entries that a sparse matrix does not store are 0.
    ///
    /// # Errors
    /// Those of [`Source::read_contents`]; [`Error::TooLarge`] for a sparse matrix that does not
    /// fit in memory as a dense one.
    pub fn read(&self, options: TableOptions) -> Result<Table> {
        match self.read_contents(options)? {
            Contents::Table(table) => Ok(table),
            Contents::Sparse(matrix) => {
                let [rows, columns] = matrix.shape();
                let path = match self {
                    Self::File { path, .. } => path.as_path(),
                    Self::StandardInput => Path::new("-"),
                };
                check_room(path, rows, columns)?;
                Ok(matrix.to_dense().into())
            }
        }
    }
}

#[cfg(feature = "parquet")]
use self::parquet::read_parquet;

/// Explains that this build has no reader.
#[cfg(not(feature = "parquet"))]
fn read_parquet(path: &Path) -> Result<Table> {
    Err(Error::Parquet {
        path: path.into(),
        reason: "this build has no reader for it; build with `--features parquet`, or save the \
                 table as .csv or .npy"
            .into(),
    })
}

/// Reads the numbers of a file; see [`Source::read`].
///
/// # Errors
/// Those of [`Source::read`].
pub fn read_matrix(path: &Path) -> Result<Array2<f64>> {
    let source = Source::from(path.to_string_lossy().as_ref());
    Ok(source.read(TableOptions::default())?.values)
}

/// The folder of a file or folder.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A temporary file in its target folder.
pub(crate) fn file_aside(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    // The permissions of an ordinary new file. The user's umask applies.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.prefix(".altbi-").tempfile_in(folder)
}

/// Writes a file under a temporary name, flushes it to the disk and renames it, so that it is never
/// incomplete. Missing folders are created.
pub(crate) fn write_aside(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&mut File>) -> std::io::Result<()>,
) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let folder = folder_of(path);
        std::fs::create_dir_all(folder)?;
        let mut file = file_aside(folder)?;
        let mut buffer = BufWriter::new(file.as_file_mut());
        fill(&mut buffer)?;
        buffer.flush()?;
        drop(buffer);
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(Error::writing(path))
}

/// The same for contents in memory.
pub(crate) fn write_whole(path: &Path, contents: &[u8]) -> Result<()> {
    write_aside(path, |file| file.write_all(contents))
}

/// A fingerprint of a text: SHA-256 in hexadecimal.
pub(crate) fn text_fingerprint(text: &str) -> String {
    hexadecimal(&Sha256::digest(text))
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A fingerprint of a matrix (its shape and its stored entries) in hexadecimal.
///
/// It is a sum of SHA-256 fingerprints of the rows, so it does not depend on how processes share
/// them.
pub(crate) fn fingerprint(matrix: &Matrix) -> String {
    fingerprint_of_share(matrix, &Share::whole(matrix.dim().0))
}

/// The fingerprint of the rows of all processes.
pub(crate) fn fingerprint_of_share(matrix: &Matrix, share: &Share) -> String {
    let (rows, columns) = matrix.dim();
    // All missing entries count as equal.
    let plain = |entry: f64| if entry.is_nan() { f64::NAN } else { entry };
    let of_row = |row: usize| -> Wide {
        let mut hasher = Sha256::new();
        hasher.update(((share.rows().start + row) as u64).to_le_bytes());
        match matrix {
            Matrix::Dense(matrix) => {
                let entries = matrix.row(row).into_iter();
                entries.for_each(|entry| hasher.update(plain(*entry).to_le_bytes()));
            }
            Matrix::Sparse(matrix) => {
                let (columns, values) = matrix.row(row);
                for (column, value) in columns.iter().zip(values) {
                    hasher.update(column.to_le_bytes());
                    hasher.update(plain(*value).to_le_bytes());
                }
            }
        }
        hasher.finalize().into()
    };
    let all = (0..rows).into_par_iter().map(of_row);
    let own = all.reduce(|| [0; 32], |a, b| add(&a, &b));
    let mut hasher = Sha256::new();
    for length in [share.all(), columns] {
        hasher.update((length as u64).to_le_bytes());
    }
    hasher.update([u8::from(matrix.as_sparse().is_some())]);
    hasher.update(share.processes().sum_of_wide(&own));
    hexadecimal(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::SparseMatrix;
    use ndarray::array;

    #[test]
    fn fingerprints_tell_matrices_apart() {
        let a = array![[1.0, 2.0], [3.0, 4.0]];
        let of = |matrix: &Array2<f64>| fingerprint(&matrix.clone().into());
        assert_eq!(of(&a), of(&a.clone()));
        assert_ne!(of(&a), of(&a.t().to_owned()));
        let flat = array![[1.0, 2.0, 3.0, 4.0]];
        assert_ne!(of(&a), of(&flat));
        // The same values at other places.
        let sparse = |column| {
            let matrix = SparseMatrix::from_triplets([2, 2], vec![(0, column, 1.0)]);
            fingerprint(&matrix.unwrap().into())
        };
        assert_ne!(sparse(0), sparse(1));
    }

    #[test]
    fn a_name_behind_a_file_is_a_variable() {
        let mat = Source::from("data/a.mat:X");
        assert!(matches!(&mat, Source::File { variable: Some(name), .. } if name == "X"));
        assert_eq!(mat.to_string(), "data/a.mat:X");
        let npz = Source::from("data/a.NPZ:arr_0");
        assert!(matches!(&npz, Source::File { variable: Some(name), .. } if name == "arr_0"));
        assert_eq!(Source::from("-"), Source::StandardInput);
        let colon = Source::from("odd:name.csv");
        assert!(matches!(colon, Source::File { variable: None, .. }));
    }

    #[test]
    fn unknown_endings_are_refused() {
        let found = read_matrix(Path::new("x.xls"));
        assert!(matches!(found, Err(Error::UnknownFormat { .. })));
    }

    #[test]
    fn a_sparse_matrix_is_made_dense_where_it_must_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mtx");
        let market = |size: &str| {
            format!("%%MatrixMarket matrix coordinate real general\n{size} 1\n2 1 5\n")
        };
        std::fs::write(&path, market("2 2")).unwrap();
        assert_eq!(read_matrix(&path).unwrap(), array![[0.0, 0.0], [5.0, 0.0]]);
        // The rows and columns can be stored, but not all entries.
        std::fs::write(&path, market("3000000 3000000")).unwrap();
        let source = Source::from(path.to_str().unwrap());
        let options = TableOptions::default();
        let found = source.read_contents(options).unwrap();
        assert!(matches!(found, Contents::Sparse(matrix) if matrix.stored() == 1));
        assert!(matches!(source.read(options), Err(Error::TooLarge { .. })));
    }
}

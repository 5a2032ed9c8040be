//! Matrices from files and generators.
//!
//! | ending | read | written |
//! |---|---|---|
//! | `.npy` | floats, integers, booleans; either byte order, C and Fortran order, one or two dimensions | little-endian `f8`, C order |
//! | `.csv`, `.tsv` | numbers with or without header, labels, quotes and comments; separated by comma, semicolon or tab; decimal point or comma; UTF-8, UTF-16, Latin-1 | with the labels of the data |
//! | `.mat` | level 5, compressed or not; `file.mat:NAME` names a matrix | |
//! | `-` | .csv from standard input | |
//!
//! A one-dimensional array is read as a column.

mod benchmark;
mod graph;
mod lock;
mod mat;
mod memory;
mod npy;
mod table;

use std::fmt;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use ndarray::Array2;
use sha2::{Digest, Sha256};

pub use benchmark::{
    Benchmark, MAP_SIDE, Noise, benchmark_a, benchmark_b, benchmark_c, benchmark_d, demo, poisson,
    published, separable_factors,
};
pub use graph::{Edge, read_edges};
pub(crate) use lock::Lock;
pub use lock::Reservation;
pub use npy::write_npy;
pub use table::{Decimal, Detect, Encoding, Reading, Separator, Table, TableOptions};

use self::table::read_separated;
use crate::error::{Error, Result};

/// Where a matrix comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file; for .mat perhaps with the name of a matrix.
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
    /// `-`, `file`, or `file.mat:NAME`.
    fn from(text: &str) -> Self {
        if text == "-" {
            return Self::StandardInput;
        }
        match text.rsplit_once(':') {
            Some((path, name)) if path.to_ascii_lowercase().ends_with(".mat") => Self::File {
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
    /// The same source whatever the working folder: relative paths made absolute.
    #[must_use]
    pub fn absolute(&self) -> Self {
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
    /// [`Error::Read`] where the system refuses, [`Error::UnknownFormat`] for
    /// another ending, and what each format's reader says about the contents.
    pub fn read(&self, options: TableOptions) -> Result<Table> {
        let (path, variable) = match self {
            Self::StandardInput => {
                let input = std::io::stdin().lock();
                return read_separated(input, "-", Separator::Comma, options);
            }
            Self::File { path, variable } => (path, variable),
        };
        let open = || {
            let file = File::open(path).map_err(|source| Error::Read {
                path: path.clone(),
                source,
            })?;
            Ok::<_, Error>(BufReader::new(file))
        };
        let name = path.display().to_string();
        let ending = path.extension().and_then(|ending| ending.to_str());
        match ending.map(str::to_ascii_lowercase).as_deref() {
            Some("npy") => npy::read_npy(path).map(Table::from),
            Some("csv") => read_separated(open()?, &name, Separator::Comma, options),
            Some("tsv") => read_separated(open()?, &name, Separator::Tab, options),
            Some("mat") => mat::read_mat(open()?, path, variable.as_deref()).map(Table::from),
            _ => Err(Error::UnknownFormat {
                path: path.clone(),
                known: ".npy, .csv, .tsv, .mat",
            }),
        }
    }
}

/// Reads the numbers of a file; see [`Source::read`].
///
/// # Errors
/// As [`Source::read`].
pub fn read_matrix(path: &Path) -> Result<Array2<f64>> {
    let source = Source::from(path.to_string_lossy().as_ref());
    Ok(source.read(TableOptions::default())?.values)
}

/// The folder that a file or folder lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// A file without a name yet, in the folder it is meant for.
pub(crate) fn file_aside(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    // What a file gets that is simply created; the user's umask applies.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.prefix(".altbi-").tempfile_in(folder)
}

/// Writes a file: aside, flushed to the disk, then renamed, so that a reader never sees
/// half of it. Folders on the way are made.
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
    write().map_err(|source| Error::Write {
        path: path.into(),
        source,
    })
}

/// The same for contents that are there.
pub fn write_whole(path: &Path, contents: &[u8]) -> Result<()> {
    write_aside(path, |file| file.write_all(contents))
}

/// A fingerprint of a text: SHA-256 in hexadecimal.
pub fn text_fingerprint(text: &str) -> String {
    hexadecimal(&Sha256::digest(text))
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A fingerprint of a matrix: SHA-256 of its shape and entries, in hexadecimal.
pub fn fingerprint(matrix: &Array2<f64>) -> String {
    let mut hasher = Sha256::new();
    for length in matrix.shape() {
        hasher.update((*length as u64).to_le_bytes());
    }
    for entry in matrix {
        // One missing entry is like another.
        let entry = if entry.is_nan() { f64::NAN } else { *entry };
        hasher.update(entry.to_le_bytes());
    }
    hexadecimal(&hasher.finalize())
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
    fn a_name_behind_a_mat_file_is_a_variable() {
        let mat = Source::from("data/a.mat:X");
        assert!(matches!(&mat, Source::File { variable: Some(name), .. } if name == "X"));
        assert_eq!(mat.to_string(), "data/a.mat:X");
        assert_eq!(Source::from("-"), Source::StandardInput);
        let colon = Source::from("odd:name.csv");
        assert!(matches!(colon, Source::File { variable: None, .. }));
    }

    #[test]
    fn unknown_endings_are_refused() {
        let found = read_matrix(Path::new("x.mtx"));
        assert!(matches!(found, Err(Error::UnknownFormat { .. })));
    }
}

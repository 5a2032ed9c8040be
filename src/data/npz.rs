//! NumPy's .npz: a zip archive of .npy files, each an array with a name.
//!
//! A dense matrix is one of the arrays. A sparse matrix of SciPy consists of all arrays: `format`
//! (csr, csc, coo), `shape`, `data`, and the indices of the entries: `indices` and `indptr`, or
//! `row` and `col`.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use zip::ZipArchive;

use super::compressed::{Along, Compressed, places};
use super::memory::{Room, check_lines, check_room};
use super::npy::{Numbers, as_matrix, read_numbers, read_word};
use crate::error::{Error, Result};
use crate::sparse::{Matrix, SparseMatrix};

/// Bytes that are decompressed at a time.
const CHUNK: usize = 1 << 16;
/// Largest number of bytes that a compressed byte can become.
const DENSEST: u64 = 1032;

/// Reads the sparse matrix of a file, the array of that name, or the only one.
pub(super) fn read_npz(path: &Path, variable: Option<&str>) -> Result<Matrix> {
    let file = File::open(path).map_err(Error::reading(path))?;
    let bytes = file.metadata().map_err(Error::reading(path))?.len();
    Archive::open(BufReader::new(file), bytes, path, Room::of(path))?.matrix(variable)
}

/// An open archive.
struct Archive<'a, R> {
    zip: ZipArchive<R>,
    path: &'a Path,
    /// Length of the archive in bytes.
    bytes: u64,
    room: Room,
}

impl<'a, R: Read + Seek> Archive<'a, R> {
    fn open(input: R, bytes: u64, path: &'a Path, room: Room) -> Result<Self> {
        let zip = ZipArchive::new(input).map_err(|error| Error::Npz {
            path: path.into(),
            reason: format!("it is not a zip archive, or it is damaged ({error})"),
        })?;
        Ok(Self {
            zip,
            path,
            bytes,
            room,
        })
    }

    fn wrong(&self, reason: impl Into<String>) -> Error {
        Error::Npz {
            path: self.path.into(),
            reason: reason.into(),
        }
    }

    /// The names of the arrays, in the order of the file.
    fn names(&self) -> Vec<String> {
        let names = self.zip.file_names().filter_map(|name| {
            let name = name.ok()?;
            name.strip_suffix(".npy").map(String::from)
        });
        names.collect()
    }

    fn matrix(mut self, variable: Option<&str>) -> Result<Matrix> {
        let names = self.names();
        let has = |name: &str| names.iter().any(|known| known == name);
        if variable.is_none() && has("format") && has("shape") && has("data") {
            return Ok(self.sparse()?.into());
        }
        let wanted = match (variable, &names[..]) {
            (_, []) => return Err(self.wrong("it holds no array")),
            (None, [only]) => only.as_str(),
            (Some(name), _) if has(name) => name,
            _ => {
                return Err(Error::MatVariable {
                    path: self.path.into(),
                    variable: variable.map(String::from),
                    known: names.join(", "),
                });
            }
        };
        let path = self.path;
        let numbers = self.numbers(wanted, |shape, wrong, _| {
            let [rows, columns] = as_matrix(shape).map_err(wrong)?;
            check_room(path, rows, columns)
        })?;
        let matrix = numbers.matrix(&|reason: String| self.wrong(format!("{wanted}: {reason}")))?;
        Ok(matrix.into())
    }

    /// Reads an array, after a check of its shape.
    fn numbers(
        &mut self,
        name: &str,
        check: impl FnOnce(&[usize], &dyn Fn(String) -> Error, &mut Room) -> Result<()>,
    ) -> Result<Numbers> {
        let path = self.path;
        let wrong = |reason: String| Error::Npz {
            path: path.into(),
            reason: format!("{name}: {reason}"),
        };
        let entry = self
            .zip
            .by_name(&format!("{name}.npy"))
            .map_err(|error| wrong(error.to_string()))?;
        // The lengths in the archive may be wrong; only the length of the file is certain.
        let packed = entry.compressed_size().min(self.bytes);
        let available = entry.size().min(packed.saturating_mul(DENSEST));
        let mut input = BufReader::with_capacity(CHUNK, entry);
        let room = &mut self.room;
        let numbers = read_numbers(&mut input, available, &wrong, |shape| {
            check(shape, &wrong, room)
        })?;
        // The checksum of an entry is checked at its end.
        match input.read(&mut [0]) {
            Ok(0) => Ok(numbers),
            Ok(_) => Err(wrong("it is longer than its header says".into())),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// Reads an array with a single dimension.
    fn list(&mut self, name: &str) -> Result<Numbers> {
        if !self.names().iter().any(|known| known == name) {
            return Err(self.wrong(format!("a part of the sparse matrix is missing: {name}")));
        }
        self.numbers(name, |shape, wrong, room| match *shape {
            [length] => room.take(length.saturating_mul(size_of::<f64>())),
            _ => Err(wrong(format!(
                "it has {} dimensions instead of 1",
                shape.len()
            ))),
        })
    }

    /// Reads an array of indices or of starts.
    fn indices(&mut self, name: &str) -> Result<Vec<f64>> {
        let numbers = self.list(name)?;
        if !numbers.are_whole {
            return Err(self.wrong(format!("{name}: it does not hold integers")));
        }
        Ok(numbers.values)
    }

    fn format(&mut self) -> Result<String> {
        let path = self.path;
        let wrong = |reason: String| Error::Npz {
            path: path.into(),
            reason: format!("format: {reason}"),
        };
        let entry = self.zip.by_name("format.npy");
        let entry = entry.map_err(|error| wrong(error.to_string()))?;
        read_word(entry).map_err(|error| wrong(error.to_string()))
    }

    fn sparse(&mut self) -> Result<SparseMatrix> {
        let format = self.format()?;
        let along = match format.as_str() {
            "csr" => Some(Along::Rows),
            "csc" => Some(Along::Columns),
            "coo" => None,
            other => {
                return Err(self.wrong(format!(
                    "the sparse matrix has the format '{other}'; csr, csc and coo can be read (SciPy: tocsr())"
                )));
            }
        };
        let most = f64::from(u32::MAX);
        let shape = self.indices("shape")?;
        let shape = match shape[..] {
            [rows, columns] if [rows, columns].iter().all(|of| (0.0..=most).contains(of)) => {
                [rows as usize, columns as usize]
            }
            _ => {
                return Err(self.wrong(format!(
                    "the sparse matrix has the shape {shape:?}; two lengths up to {most} can be read"
                )));
            }
        };
        let [rows, columns] = shape;
        check_lines(self.path, rows, columns)?;
        let Some(along) = along else {
            return self.pairs(shape);
        };
        let starts = self.indices("indptr")?;
        // Converted before the values are read: the values then take the memory of the numbers.
        let places = self.indices("indices")?;
        let places = along.places(shape, places, &|reason: String| self.wrong(reason))?;
        let parts = Compressed {
            along,
            shape,
            starts,
            places,
            values: self.list("data")?.values,
        };
        parts.matrix(&|reason: String| self.wrong(reason))
    }

    /// A sparse matrix in COO format.
    fn pairs(&mut self, shape: [usize; 2]) -> Result<SparseMatrix> {
        let (of_rows, of_columns) = (self.indices("row")?, self.indices("col")?);
        let values = self.list("data")?.values;
        let lengths = [of_rows.len(), of_columns.len(), values.len()];
        if lengths.iter().any(|length| *length != lengths[0]) {
            let [rows, columns, values] = lengths;
            return Err(self.wrong(format!(
                "there are {rows} rows, {columns} columns and {values} values"
            )));
        }
        self.room
            .take(values.len().saturating_mul(size_of::<(u32, u32, f64)>()))?;
        let wrong = |reason: String| self.wrong(reason);
        let of_rows = places(of_rows, shape[0], "row", &wrong)?;
        let of_columns = places(of_columns, shape[1], "column", &wrong)?;
        let entries = of_rows.into_iter().zip(of_columns).zip(values);
        let entries = entries.map(|((row, column), value)| (row, column, value));
        SparseMatrix::from_triplets(shape, entries.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};
    use std::io::{Cursor, Write};
    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
        let padded = format!("{header:<117}\n");
        let length = (padded.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], padded.as_bytes(), data].concat()
    }

    fn whole(numbers: &[i32]) -> Vec<u8> {
        let data: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        npy("<i4", &format!("({},)", numbers.len()), &data)
    }

    fn real(numbers: &[f64]) -> Vec<u8> {
        let data: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        npy("<f8", &format!("({},)", numbers.len()), &data)
    }

    fn archive(arrays: &[(&str, Vec<u8>)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (index, (name, bytes)) in arrays.iter().enumerate() {
            let methods = [CompressionMethod::Stored, CompressionMethod::Deflated];
            let options = SimpleFileOptions::default().compression_method(methods[index.min(1)]);
            writer.start_file(format!("{name}.npy"), options).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn read_within(bytes: &[u8], variable: Option<&str>, room: Room) -> Result<Matrix> {
        let path = Path::new("a.npz");
        Archive::open(Cursor::new(bytes), bytes.len() as u64, path, room)?.matrix(variable)
    }

    fn read(bytes: &[u8], variable: Option<&str>) -> Result<Matrix> {
        read_within(bytes, variable, Room::of(Path::new("a.npz")))
    }

    fn said(result: Result<Matrix>) -> String {
        result.unwrap_err().to_string()
    }

    /// [[1, 0, 2], [0, 3, 0]] in one of SciPy's formats, with some arrays replaced.
    fn sparse(format: &str, replaced: &[(&'static str, Vec<u8>)]) -> Vec<u8> {
        let mut arrays = match format {
            "csc" => vec![
                ("indices", whole(&[0, 1, 0])),
                ("indptr", whole(&[0, 1, 2, 3])),
                ("data", real(&[1.0, 3.0, 2.0])),
            ],
            "coo" => vec![
                ("row", whole(&[1, 0, 0])),
                ("col", whole(&[1, 2, 0])),
                ("data", real(&[3.0, 2.0, 1.0])),
            ],
            _ => vec![
                // The columns of a row may come in any order.
                ("indices", whole(&[2, 0, 1])),
                ("indptr", whole(&[0, 2, 3])),
                ("data", real(&[2.0, 1.0, 3.0])),
            ],
        };
        arrays.push(("format", npy("|S3", "()", format.as_bytes())));
        arrays.push(("shape", whole(&[2, 3])));
        for (name, bytes) in replaced {
            arrays.retain(|(known, _)| known != name);
            if !bytes.is_empty() {
                arrays.push((*name, bytes.clone()));
            }
        }
        archive(&arrays)
    }

    #[test]
    fn arrays_are_found_by_name() {
        let two = archive(&[
            ("x", npy("<i2", "(1, 2)", &[3, 0, 7, 0])),
            ("list", real(&[1.0, 2.5])),
        ]);
        let dense = |found: Result<Matrix>| found.unwrap().as_dense().cloned().unwrap();
        assert_eq!(dense(read(&two, Some("x"))), array![[3.0, 7.0]]);
        assert_eq!(dense(read(&two, Some("list"))), array![[1.0], [2.5]]);
        let which = read(&two, None);
        assert!(matches!(&which, Err(Error::MatVariable { known, .. }) if known == "x, list"));
        let none = read(&two, Some("y"));
        assert!(matches!(
            none,
            Err(Error::MatVariable {
                variable: Some(_),
                ..
            })
        ));
        let only = archive(&[("arr_0", real(&[4.0]))]);
        assert_eq!(dense(read(&only, None)), array![[4.0]]);
        assert!(said(read(&archive(&[]), None)).contains("no array"));
        assert!(matches!(read(b"PK\x03\x04", None), Err(Error::Npz { .. })));
        let text = archive(&[("t", npy("|S3", "()", b"abc"))]);
        assert!(said(read(&text, None)).contains("t: its type is"));
    }

    #[test]
    fn sparse_matrices_of_every_format() {
        let want: Array2<f64> = array![[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]];
        for format in ["csr", "csc", "coo"] {
            let found = read(&sparse(format, &[]), None).unwrap();
            assert!(matches!(found, Matrix::Sparse(_)), "{format}");
            assert_eq!(found.to_dense(), want, "{format}");
        }
        let flags = ("data", npy("|b1", "(3,)", &[1, 1, 1]));
        let found = read(&sparse("csr", &[flags]), None).unwrap();
        assert_eq!(found.to_dense(), want.mapv(|x| f64::from(x > 0.0)));
        for format in ["bsr", "dia"] {
            let found = said(read(&sparse(format, &[]), None));
            assert!(found.contains(&format!("'{format}'")), "{found}");
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        for (format, name, bytes, words) in [
            ("csr", "indptr", whole(&[0, 3]), "2 rows need 3 starts"),
            ("csr", "indptr", whole(&[0, 3, 2]), "row 2 cannot begin"),
            (
                "csc",
                "indptr",
                whole(&[0, 1, 2, 4]),
                "column 3 cannot begin",
            ),
            ("csr", "indices", whole(&[2, 0, 3]), "column 3 of 3"),
            ("csc", "indices", whole(&[0, -1, 0]), "row -1 of 2"),
            (
                "csr",
                "indices",
                real(&[2.0, 0.0, 1.0]),
                "does not hold integers",
            ),
            ("csr", "data", real(&[2.0]), "1 values, and 3 columns"),
            (
                "csr",
                "data",
                npy("<f8", "(3, 1)", &[0; 24]),
                "2 dimensions",
            ),
            ("csr", "indptr", Vec::new(), "missing: indptr"),
            ("csr", "shape", whole(&[2, 3, 4]), "shape"),
            ("csr", "shape", whole(&[-2, 3]), "shape"),
            (
                "coo",
                "row",
                whole(&[1, 0]),
                "2 rows, 3 columns and 3 values",
            ),
            ("coo", "row", whole(&[1, 0, 2]), "row 2 of 2"),
            ("coo", "col", Vec::new(), "missing: col"),
        ] {
            let found = said(read(&sparse(format, &[(name, bytes)]), None));
            assert!(found.contains(words), "{format} {name}: {found}");
        }
        for (format, name) in [("csr", "indices"), ("csc", "indices"), ("coo", "col")] {
            let starts = ("indptr", whole(&[0, 0, 0, 3]));
            let twice = match format {
                "csr" => sparse(format, &[(name, whole(&[2, 2, 0]))]),
                "csc" => sparse(format, &[(name, whole(&[1, 0, 1])), starts]),
                _ => sparse(format, &[(name, whole(&[1, 2, 2]))]),
            };
            let found = read(&twice, None);
            assert!(
                matches!(found, Err(Error::DuplicateEntry { column: 2, .. })),
                "{format}: {found:?}"
            );
            assert!(said(found).contains("sum_duplicates()"));
        }
    }

    #[test]
    fn archives_do_not_take_what_they_promise() {
        // A header that promises more than the entry has, and an entry that is longer than its
        // header says.
        let short = archive(&[("x", npy("<f8", "(1000000000,)", &[0; 16]))]);
        assert!(said(read(&short, None)).contains("promises"));
        let long = archive(&[("x", npy("<f8", "(1,)", &[0; 24]))]);
        assert!(said(read(&long, None)).contains("longer than its header"));
        // Many zeros are compressed to a few bytes. They exceed the limit.
        let zeros = npy("<f8", "(100000,)", &vec![0; 800_000]);
        let bomb = sparse("csr", &[("data", zeros)]);
        let room = Room::limited(Path::new("a.npz"), 700_000);
        let found = read_within(&bomb, None, room);
        assert!(
            matches!(found, Err(Error::ContentsTooLarge { .. })),
            "{found:?}"
        );
        let lines = ("shape", whole(&[i32::MAX, i32::MAX]));
        let found = read(&sparse("csr", &[lines]), None);
        // (A machine with a terabyte of memory refuses the starts instead.)
        assert!(matches!(
            found,
            Err(Error::TooManyLines { .. } | Error::Npz { .. })
        ));
        // A wrong checksum.
        let mut damaged = archive(&[("x", real(&[1.0, 2.0]))]);
        let place = damaged
            .windows(6)
            .position(|bytes| bytes == b"\x93NUMPY")
            .unwrap();
        damaged[place + 130] ^= 1;
        assert!(matches!(read(&damaged, None), Err(Error::Npz { .. })));
    }
}

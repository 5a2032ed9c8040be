//! Matrix Market's .mtx: coordinates of a sparse matrix, or every entry of a dense one.
//!
//! The first line has the kind. The next line that is not a comment has the sizes. Each line after
//! that is an entry. Rows and columns are counted from 1. A symmetric matrix has only its diagonal
//! and the entries below.
//!
//! Memory is allocated for entries that were read, not for those that the sizes promise.

mod lines;

use std::io::BufRead;
use std::ops::Range;
use std::path::Path;

use ndarray::{Array2, Axis, ShapeBuilder, Slice};

use self::lines::{Kind, Lines, Sizes, fields, shown, whole};
use super::memory::{Room, check_lines, check_room};
use crate::error::Result;
use crate::sparse::{Matrix, SparseMatrix};

/// Entries for which memory is allocated in advance.
const EXPECTED: usize = 1 << 16;
/// Bytes per entry of a sparse matrix: in the list of entries, and in the matrix.
const PER_ENTRY: usize = size_of::<(u32, u32, f64)>() + size_of::<u32>() + size_of::<f64>();

/// A sparse matrix as the text of a Matrix Market file.
pub fn matrix_market(matrix: &SparseMatrix) -> String {
    let [rows, columns] = matrix.shape();
    let mut text = String::from("%%MatrixMarket matrix coordinate real general\n");
    text += &format!("{rows} {columns} {}\n", matrix.stored());
    for (row, column, value) in matrix.triplets() {
        text += &format!("{} {} {value:e}\n", row + 1, column + 1);
    }
    text
}

/// Reads those rows of a file that `rows` returns for the number of all rows.
pub(super) fn read_matrix_market(
    input: impl BufRead,
    path: &Path,
    rows: impl FnOnce(usize) -> Result<Range<usize>>,
) -> Result<Matrix> {
    read_within(input, path, Room::of(path), rows)
}

fn read_within(
    input: impl BufRead,
    path: &Path,
    room: Room,
    rows: impl FnOnce(usize) -> Result<Range<usize>>,
) -> Result<Matrix> {
    let mut lines = Lines {
        input,
        path,
        room,
        number: 0,
        text: Vec::new(),
    };
    let kind = lines.kind()?;
    let sizes = lines.sizes(kind)?;
    let rows = rows(sizes.rows as usize)?;
    if kind.is_array {
        Ok(lines.array(kind, sizes, rows)?.into())
    } else {
        Ok(lines.coordinates(kind, sizes, rows)?.into())
    }
}

impl<R: BufRead> Lines<'_, R> {
    /// Reads the line of the next entry. Returns false after the number of entries in the header.
    fn next_entry(&mut self, found: u64, sizes: Sizes) -> Result<bool> {
        let promised = sizes.entries;
        match (self.next_filled()?, found < promised) {
            (true, true) => Ok(true),
            (false, false) => Ok(false),
            (true, false) => Err(self.wrong(format!(
                "the sizes promise {promised} entries, and this is one more"
            ))),
            (false, true) => Err(self.wrong(format!(
                "the sizes promise {promised} entries, and the file ends after {found}"
            ))),
        }
    }

    fn coordinates(
        &mut self,
        kind: Kind,
        sizes: Sizes,
        rows: Range<usize>,
    ) -> Result<SparseMatrix> {
        let own = |row: u32| {
            let inside = rows.contains(&(row as usize));
            inside.then(|| (row as usize - rows.start) as u32)
        };
        let expected = usize::try_from(sizes.entries).unwrap_or(usize::MAX);
        let mut entries = Vec::with_capacity(expected.min(EXPECTED));
        let mut found = 0;
        while self.next_entry(found, sizes)? {
            found += 1;
            let mut fields = fields(&self.text);
            let row = self.line(fields.next(), "row", sizes.rows)?;
            let column = self.line(fields.next(), "column", sizes.columns)?;
            let value = if kind.is_pattern {
                1.0
            } else {
                self.value(fields.next())?
            };
            self.check_end(fields)?;
            if let Some(row) = own(row) {
                self.room.take(PER_ENTRY)?;
                entries.push((row, column, value));
            }
            if kind.is_symmetric && row != column {
                if row < column {
                    return Err(self.wrong(
                        "of a symmetric matrix only entries below the diagonal and on it are stored, and this one is above",
                    ));
                }
                if let Some(line) = own(column) {
                    self.room.take(PER_ENTRY)?;
                    entries.push((line, row, value));
                }
            }
        }
        // Memory is allocated only after the entries were found.
        let shape = [rows.len(), sizes.columns as usize];
        check_lines(self.path, shape[0], shape[1])?;
        SparseMatrix::from_triplets(shape, entries)
    }

    fn array(&mut self, kind: Kind, sizes: Sizes, own: Range<usize>) -> Result<Array2<f64>> {
        let all = sizes.rows as usize;
        let expected = usize::try_from(sizes.entries).unwrap_or(usize::MAX);
        let mut values = Vec::with_capacity(expected.min(EXPECTED));
        let mut found = 0;
        while self.next_entry(found, sizes)? {
            found += 1;
            let mut fields = fields(&self.text);
            let value = self.value(fields.next())?;
            self.check_end(fields)?;
            // (A symmetric matrix needs all rows.)
            if kind.is_symmetric || own.contains(&((found - 1) as usize % all)) {
                self.room.take(size_of::<f64>())?;
                values.push(value);
            }
        }
        let (rows, columns) = (sizes.rows as usize, sizes.columns as usize);
        if !kind.is_symmetric {
            check_room(self.path, own.len(), columns)?;
            let matrix = Array2::from_shape_vec((own.len(), columns).f(), values);
            let matrix = matrix.expect("as many as were promised");
            return Ok(matrix.as_standard_layout().into_owned());
        }
        check_room(self.path, rows, columns)?;
        let mut matrix = Array2::zeros((rows, columns));
        let places = (0..columns).flat_map(|column| (column..rows).map(move |row| (row, column)));
        for ((row, column), value) in places.zip(values) {
            matrix[[row, column]] = value;
            matrix[[column, row]] = value;
        }
        Ok(matrix.slice_axis(Axis(0), Slice::from(own)).to_owned())
    }

    /// A row or a column, counted from 0.
    fn line(&self, field: Option<&[u8]>, what: &str, lines: u64) -> Result<u32> {
        let field = field.ok_or_else(|| self.wrong(format!("the entry has no {what}")))?;
        match whole(field) {
            Some(line) if (1..=lines).contains(&line) => Ok((line - 1) as u32),
            _ => Err(self.wrong(format!(
                "'{}' is not a {what}: {what}s are counted from 1 to {lines}",
                shown(field)
            ))),
        }
    }

    fn value(&self, field: Option<&[u8]>) -> Result<f64> {
        let field = field.ok_or_else(|| self.wrong("the entry has no value"))?;
        number(field)
            .ok_or_else(|| self.wrong(format!("the value '{}' is not a number", shown(field))))
    }

    fn check_end<'b>(&self, mut fields: impl Iterator<Item = &'b [u8]>) -> Result<()> {
        match fields.next() {
            None => Ok(()),
            Some(field) => {
                Err(self.wrong(format!("unexpected '{}' after the entry", shown(field))))
            }
        }
    }
}

/// Parses any number. Counts of up to 15 digits, the usual case, take a fast path and are exact.
fn number(field: &[u8]) -> Option<f64> {
    if field.len() <= 15
        && let Some(count) = whole(field)
    {
        return Some(count as f64);
    }
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use ndarray::array;

    fn read(text: &str) -> Result<Matrix> {
        read_matrix_market(text.as_bytes(), Path::new("a.mtx"), |all| Ok(0..all))
    }

    fn dense(text: &str) -> Array2<f64> {
        read(text).unwrap().to_dense()
    }

    /// The line and the reason of a refusal.
    fn refused(text: &str) -> (u64, String) {
        match read(text) {
            Err(Error::MatrixMarket { line, reason, .. }) => (line, reason),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn coordinates_of_every_kind() {
        let want = array![[1.5, 0.0, 0.0], [0.0, 0.0, 4.0]];
        let general =
            "%%MatrixMarket matrix coordinate real general\n% x\n\n2 3 2\n1 1 1.5\n\n2 3 4\n";
        assert!(matches!(read(general), Ok(Matrix::Sparse(_))));
        assert_eq!(dense(general), want);
        // Upper-case words, line ends of Windows, no end of the last line.
        let upper =
            "%%matrixmarket MATRIX Coordinate Real General\r\n 2\t3 2\r\n2 3 4e0\r\n1  1 +1.5";
        assert_eq!(dense(upper), want);
        let counts = "%%MatrixMarket matrix coordinate integer general\n2 2 2\n2 1 7\n1 2 9007199254740993\n";
        assert_eq!(dense(counts), array![[0.0, 9007199254740992.0], [7.0, 0.0]]);
        let pattern = "%%MatrixMarket matrix coordinate pattern general\n2 2 2\n2 1\n1 2\n";
        assert_eq!(dense(pattern), array![[0.0, 1.0], [1.0, 0.0]]);
        let symmetric = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 3\n2 1 5\n";
        assert_eq!(dense(symmetric), array![[3.0, 5.0], [5.0, 0.0]]);
        // A missing entry is stored. An infinite one is refused later.
        let missing = "%%MatrixMarket matrix coordinate real general\n1 3 2\n1 1 nan\n1 3 inf\n";
        let found = dense(missing);
        assert!(found[[0, 0]].is_nan() && found[[0, 2]].is_infinite());
        let empty = read("%%MatrixMarket matrix coordinate real general\n2 3 0\n").unwrap();
        assert_eq!((empty.dim(), empty.stored()), ((2, 3), 0));
    }

    #[test]
    fn arrays_of_either_symmetry() {
        let general = "%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6.5\n";
        let found = read(general).unwrap();
        assert_eq!(found, array![[1.0, 3.0, 5.0], [2.0, 4.0, 6.5]].into());
        let symmetric = "%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n";
        assert_eq!(dense(symmetric), array![[1.0, 2.0], [2.0, 3.0]]);
    }

    #[test]
    fn kinds_that_are_none_are_refused_by_name() {
        let first =
            |words: &str| refused(&format!("%%MatrixMarket matrix {words}\n1 1 1\n1 1 1\n"));
        for (words, said) in [
            ("coordinate complex general", "complex"),
            ("coordinate real skew-symmetric", "skew-symmetric"),
            ("coordinate complex hermitian", "complex"),
            ("coordinate real hermitian", "Hermitian"),
            ("array pattern general", "pattern"),
            ("table real general", "'table'"),
            ("coordinate text general", "'text'"),
            ("coordinate real", "three words"),
        ] {
            let (line, reason) = first(words);
            assert!(line == 1 && reason.contains(said), "{words}: {reason}");
        }
        assert_eq!(refused("").0, 1);
        assert_eq!(refused("1 1 1\n").0, 1);
        assert_eq!(
            refused("%%MatrixMarket vector coordinate real general\n").0,
            1
        );
    }

    #[test]
    fn mistakes_are_placed() {
        let real = "%%MatrixMarket matrix coordinate real general\n";
        for (text, line, said) in [
            ("% nothing follows\n", 2, "sizes"),
            ("2 2\n", 2, "not 2 numbers"),
            ("2 2 1 1\n", 2, "not 4 numbers"),
            ("2 -2 1\n", 2, "'-2'"),
            ("2 99999999999999999999 1\n", 2, "whole number"),
            ("2 4294967296 1\n1 1 1\n", 2, "4294967295"),
            (
                "2 2 3\n1 1 1\n",
                3,
                "promise 3 entries, and the file ends after 1",
            ),
            ("2 2 1\n1 1 1\n\n1 2 1\n", 5, "one more"),
            (
                "2 2 1\n0 1 1\n",
                3,
                "'0' is not a row: rows are counted from 1 to 2",
            ),
            ("2 2 1\n1 3 1\n", 3, "'3' is not a column"),
            ("2 2 1\n1 1.0 1\n", 3, "'1.0' is not a column"),
            ("2 2 1\n1 1 x\n", 3, "'x' is not a number"),
            ("2 2 1\n1 1\n", 3, "no value"),
            ("2 2 1\n1\n", 3, "no column"),
            ("2 2 1\n1 1 1 1\n", 3, "'1'"),
        ] {
            let (found, reason) = refused(&format!("{real}{text}"));
            assert!(
                found == line && reason.contains(said),
                "{text}: {found} {reason}"
            );
        }
        let symmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
        for (text, line, said) in [
            ("2 3 1\n1 1 1\n", 2, "square"),
            ("2 2 1\n1 2 1\n", 3, "above"),
        ] {
            let (found, reason) = refused(&format!("{symmetric}{text}"));
            assert!(
                found == line && reason.contains(said),
                "{text}: {found} {reason}"
            );
        }
        let pattern = refused("%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1 1\n");
        assert_eq!(pattern.0, 3);
        let array = "%%MatrixMarket matrix array real general\n";
        assert_eq!(refused(&format!("{array}2 2 4\n")).0, 2);
        assert_eq!(refused(&format!("{array}2 1\n1\n")).0, 3);
        assert_eq!(refused(&format!("{array}2 1\n1\n2\n3\n")).0, 5);
        assert_eq!(refused(&format!("{array}2 1\n1 2\n")).0, 3);
        let twice = read(&format!("{real}2 2 2\n2 1 1\n2 1 1\n"));
        assert!(matches!(
            twice,
            Err(Error::DuplicateEntry { row: 1, column: 0 })
        ));
        let twice = read(&format!("{symmetric}2 2 2\n2 1 1\n2 1 1\n"));
        assert!(matches!(twice, Err(Error::DuplicateEntry { .. })));
    }

    #[test]
    fn memory_is_taken_for_what_is_there() {
        let real = "%%MatrixMarket matrix coordinate real general\n";
        let promised = refused(&format!("{real}900000000 900000000 900000000\n1 1 1\n"));
        assert!(promised.1.contains("ends after 1"), "{}", promised.1);
        let most = u32::MAX;
        let lines = read(&format!("{real}{most} {most} 1\n1 1 1\n"));
        // (A machine with more than a terabyte of memory has room for them.)
        assert!(matches!(lines, Err(Error::TooManyLines { .. }) | Ok(_)));
        let array = format!("%%MatrixMarket matrix array real general\n{most} {most}\n1\n");
        assert!(refused(&array).1.contains("ends after 1"));
        let endless = format!("{real}3 3 9\n% {}", "x".repeat(1 << 21));
        assert!(refused(&endless).1.contains("longer than"));
        // More entries than fit in memory, which is limited to four entries here.
        let text = format!("{real}9 9 5\n1 1 1\n2 2 1\n3 3 1\n4 4 1\n5 5 1\n");
        let path = Path::new("a.mtx.gz");
        let within = |bytes| {
            read_within(text.as_bytes(), path, Room::limited(path, bytes), |all| {
                Ok(0..all)
            })
        };
        assert!(matches!(
            within(4 * PER_ENTRY),
            Err(Error::ContentsTooLarge { .. })
        ));
        assert!(within(5 * PER_ENTRY).is_ok());
    }
}

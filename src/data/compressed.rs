//! Compressed sparse matrices of SciPy and MATLAB: the entries line by line, and the start of each
//! line.
//!
//! Every number is checked, because files may be damaged or written by other programs.

use crate::error::{Error, Result};
use crate::sparse::SparseMatrix;

/// The direction of the lines: rows or columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Along {
    Rows,
    Columns,
}

impl Along {
    /// Checked indices within lines.
    ///
    /// # Errors
    /// `wrong` makes the error of the first bad index.
    pub(super) fn places(
        self,
        shape: [usize; 2],
        numbers: Vec<f64>,
        wrong: &impl Fn(String) -> Error,
    ) -> Result<Vec<u32>> {
        match self {
            Self::Rows => places(numbers, shape[1], "column", wrong),
            Self::Columns => places(numbers, shape[0], "row", wrong),
        }
    }
}

/// The parts of a sparse matrix, as numbers from a file.
pub(super) struct Compressed {
    pub(super) along: Along,
    /// Rows and columns.
    pub(super) shape: [usize; 2],
    /// The start of each line, and the end of the last one.
    pub(super) starts: Vec<f64>,
    /// The index of each entry in its line, counted from 0.
    pub(super) places: Vec<u32>,
    pub(super) values: Vec<f64>,
}

impl Compressed {
    /// The matrix, if the parts fit together. Entries of a line may come in any order.
    ///
    /// # Errors
    /// [`Error::DuplicateEntry`]; `wrong` makes the error of any other reason.
    pub(super) fn matrix(self, wrong: &impl Fn(String) -> Error) -> Result<SparseMatrix> {
        let [rows, columns] = self.shape;
        let (line, place, shape) = match self.along {
            Along::Rows => ("row", "column", [rows, columns]),
            Along::Columns => ("column", "row", [columns, rows]),
        };
        let [lines, _] = shape;
        let (entries, found) = (self.values.len(), self.places.len());
        if entries != found {
            return Err(wrong(format!(
                "there are {entries} values, and {found} {place}s for them"
            )));
        }
        let wanted = lines.saturating_add(1);
        if self.starts.len() != wanted {
            let found = self.starts.len();
            return Err(wrong(format!(
                "{lines} {line}s need {wanted} starts, and there are {found}"
            )));
        }
        let mut starts: Vec<usize> = Vec::with_capacity(wanted);
        for (index, start) in self.starts.into_iter().enumerate() {
            let before = starts.last().copied().unwrap_or(0);
            // (The first start is 0, and starts never decrease.)
            let most = if index == 0 { 0 } else { entries };
            if !(start.fract() == 0.0 && (before as f64..=most as f64).contains(&start)) {
                return Err(wrong(format!(
                    "{line} {index} cannot begin at entry {start}: the {entries} entries count from 0, and {line}s do not overlap"
                )));
            }
            starts.push(start as usize);
        }
        if starts[lines] != entries {
            let last = starts[lines];
            return Err(wrong(format!(
                "its {line}s end after {last} of {entries} entries"
            )));
        }
        let matrix = SparseMatrix::from_parts(shape, starts, self.places, self.values);
        match self.along {
            Along::Rows => matrix,
            Along::Columns => Ok(matrix.map_err(Error::transposed)?.transposed()),
        }
    }
}

/// Checked indices of rows or columns, below the given number.
///
/// # Errors
/// `wrong` makes the error of the first bad index.
pub(super) fn places(
    numbers: Vec<f64>,
    lines: usize,
    what: &str,
    wrong: &impl Fn(String) -> Error,
) -> Result<Vec<u32>> {
    let lines = lines.min(u32::MAX as usize);
    let place = |(entry, number): (usize, f64)| {
        if number.fract() == 0.0 && (0.0..lines as f64).contains(&number) {
            Ok(number as u32)
        } else {
            Err(wrong(format!(
                "entry {entry} lies in {what} {number} of {lines} (counted from 0)"
            )))
        }
    };
    // (From a slice: collected from the vector itself, the indices would keep its memory, which is
    // twice as large.)
    let numbers = numbers.as_slice();
    numbers.iter().copied().enumerate().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn matrix(
        along: Along,
        starts: &[f64],
        places: &[f64],
        values: &[f64],
    ) -> Result<SparseMatrix> {
        let wrong = |reason| Error::Npz {
            path: "a.npz".into(),
            reason,
        };
        let shape = [2, 3];
        let parts = Compressed {
            along,
            shape,
            starts: starts.to_vec(),
            places: along.places(shape, places.to_vec(), &wrong)?,
            values: values.to_vec(),
        };
        parts.matrix(&wrong)
    }

    #[test]
    fn rows_and_columns_give_the_same_matrix() {
        let want = array![[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]];
        let by_rows = matrix(
            Along::Rows,
            &[0.0, 2.0, 3.0],
            &[2.0, 0.0, 1.0],
            &[2.0, 1.0, 3.0],
        );
        let by_columns = matrix(
            Along::Columns,
            &[0.0, 1.0, 2.0, 3.0],
            &[0.0, 1.0, 0.0],
            &[1.0, 3.0, 2.0],
        );
        let by_rows = by_rows.unwrap();
        assert_eq!(by_rows.to_dense(), want);
        assert_eq!(by_rows, by_columns.unwrap());
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let three = [1.0, 2.0, 3.0];
        for (starts, places, said) in [
            (
                &[0.0, 3.0][..],
                &[0.0, 1.0, 2.0][..],
                "2 rows need 3 starts",
            ),
            (&[0.0, 1.0, 3.0], &[0.0, 1.0], "3 values, and 2 columns"),
            (&[1.0, 1.0, 3.0], &[0.0, 1.0, 2.0], "row 0 cannot begin"),
            (&[0.0, 4.0, 3.0], &[0.0, 1.0, 2.0], "row 1 cannot begin"),
            (&[0.0, 2.0, 1.0], &[0.0, 1.0, 2.0], "row 2 cannot begin"),
            (&[0.0, -1.0, 3.0], &[0.0, 1.0, 2.0], "entry -1"),
            (&[0.0, 0.5, 3.0], &[0.0, 1.0, 2.0], "entry 0.5"),
            (&[0.0, f64::NAN, 3.0], &[0.0, 1.0, 2.0], "entry NaN"),
            (&[0.0, 1.0, 2.0], &[0.0, 1.0, 2.0], "after 2 of 3"),
            (&[0.0, 1.0, 3.0], &[0.0, 3.0, 2.0], "column 3 of 3"),
            (&[0.0, 1.0, 3.0], &[0.0, -1.0, 2.0], "column -1"),
            (&[0.0, 1.0, 3.0], &[0.0, 1.5, 2.0], "column 1.5"),
        ] {
            let found = matrix(Along::Rows, starts, places, &three);
            let found = found.unwrap_err().to_string();
            assert!(found.contains(said), "{said}: {found}");
        }
        let twice = matrix(Along::Rows, &[0.0, 0.0, 2.0], &[2.0, 2.0], &[1.0, 1.0]);
        assert!(matches!(
            twice,
            Err(Error::DuplicateEntry { row: 1, column: 2 })
        ));
        let twice = matrix(
            Along::Columns,
            &[0.0, 0.0, 0.0, 2.0],
            &[1.0, 1.0],
            &[1.0, 1.0],
        );
        assert!(matches!(
            twice,
            Err(Error::DuplicateEntry { row: 1, column: 2 })
        ));
    }
}

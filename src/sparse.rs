//! Sparse matrices, and matrices of either kind.

use std::sync::Arc;

use ndarray::Array2;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::words::words;

/// A sparse matrix in compressed sparse rows (CSR). Within a row the columns increase.
///
/// The meaning of entries that are not stored is given when a matrix becomes a
/// [`Problem`](crate::Problem): see [`Zeros`].
///
/// ```
/// use altbi::SparseMatrix;
/// let x = SparseMatrix::from_triplets([2, 3], vec![(1, 0, 4.0), (0, 2, 1.5)])?;
/// assert_eq!((x.stored(), x.get(1, 0), x.get(0, 0)), (2, Some(4.0), None));
/// # Ok::<(), altbi::Error>(())
/// ```
///
/// A clone shares the entries.
///
/// # Shapes
/// n×m, both below 2³².
#[derive(Debug, Clone, PartialEq)]
pub struct SparseMatrix {
    shape: [usize; 2],
    /// The start of each row, and the end of the last one.
    starts: Arc<Vec<usize>>,
    columns: Arc<Vec<u32>>,
    values: Arc<Vec<f64>>,
}

/// Starts of the rows, columns and values.
pub(crate) type SharedParts = (Arc<Vec<usize>>, Arc<Vec<u32>>, Arc<Vec<f64>>);

/// The meaning of an entry that is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Zeros {
    /// A zero, which is fitted like any other number.
    #[default]
    Data,
    /// An unknown number, which is left out.
    Missing,
}

words!(Zeros, "meaning of zeros" { Data = "data", Missing = "missing" });

/// A matrix of either kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Matrix {
    /// Every entry is stored.
    Dense(Array2<f64>),
    /// Some entries are stored.
    Sparse(SparseMatrix),
}

impl From<Array2<f64>> for Matrix {
    fn from(matrix: Array2<f64>) -> Self {
        Self::Dense(matrix)
    }
}

impl From<SparseMatrix> for Matrix {
    fn from(matrix: SparseMatrix) -> Self {
        Self::Sparse(matrix)
    }
}

impl Matrix {
    /// (n, m).
    pub fn dim(&self) -> (usize, usize) {
        match self {
            Self::Dense(matrix) => matrix.dim(),
            Self::Sparse(matrix) => matrix.shape().into(),
        }
    }

    /// The number of stored entries.
    pub fn stored(&self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.len(),
            Self::Sparse(matrix) => matrix.stored(),
        }
    }

    /// The stored entries, row by row: row, column and value.
    pub fn entries(&self) -> Box<dyn Iterator<Item = (usize, usize, f64)> + '_> {
        match self {
            Self::Dense(matrix) => Box::new(matrix.indexed_iter().map(|((i, j), x)| (i, j, *x))),
            Self::Sparse(matrix) => Box::new(matrix.triplets()),
        }
    }

    /// An entry. 0 if it is not stored.
    pub fn entry(&self, row: usize, column: usize) -> f64 {
        match self {
            Self::Dense(matrix) => matrix[[row, column]],
            Self::Sparse(matrix) => matrix.get(row, column).unwrap_or(0.0),
        }
    }

    /// All entries. Those that are not stored are 0.
    pub fn to_dense(&self) -> Array2<f64> {
        match self {
            Self::Dense(matrix) => matrix.clone(),
            Self::Sparse(matrix) => matrix.to_dense(),
        }
    }

    /// The matrix, if it is dense.
    pub fn as_dense(&self) -> Option<&Array2<f64>> {
        match self {
            Self::Dense(matrix) => Some(matrix),
            Self::Sparse(_) => None,
        }
    }

    /// The matrix, if it is sparse.
    pub fn as_sparse(&self) -> Option<&SparseMatrix> {
        match self {
            Self::Dense(_) => None,
            Self::Sparse(matrix) => Some(matrix),
        }
    }
}

impl SparseMatrix {
    /// A matrix from compressed rows. Row i has the entries from `starts[i]` up to `starts[i + 1]`.
    /// The columns of a row may be in any order.
    ///
    /// # Errors
    /// [`Error::SparseParts`] if the parts do not fit together, [`Error::SparseIndex`] for a column
    /// outside the matrix, [`Error::DuplicateEntry`].
    pub fn from_parts(
        shape: [usize; 2],
        starts: Vec<usize>,
        mut columns: Vec<u32>,
        mut values: Vec<f64>,
    ) -> Result<Self> {
        let [rows, width] = shape;
        check_lines(shape)?;
        let wrong = |reason: String| Err(Error::SparseParts { reason });
        if starts.len() != rows + 1 {
            return wrong(format!(
                "{rows} rows need {} starts, there are {}",
                rows + 1,
                starts.len()
            ));
        }
        if columns.len() != values.len() {
            let (columns, values) = (columns.len(), values.len());
            return wrong(format!("{columns} columns for {values} values"));
        }
        if starts[0] != 0 || starts[rows] != values.len() {
            let (first, last) = (starts[0], starts[rows]);
            return wrong(format!(
                "the starts go from {first} to {last} instead of from 0 to {}",
                values.len()
            ));
        }
        if let Some(row) = (0..rows).find(|row| starts[*row] > starts[row + 1]) {
            return wrong(format!("row {row} ends before it starts"));
        }
        for row in 0..rows {
            let range = starts[row]..starts[row + 1];
            let of_row = &mut columns[range.clone()];
            if let Some(column) = of_row.iter().find(|column| **column as usize >= width) {
                return Err(Error::SparseIndex {
                    row,
                    column: *column as usize,
                    rows,
                    columns: width,
                });
            }
            if !of_row.is_sorted() {
                let values = &mut values[range];
                let entries = of_row.iter().copied().zip(values.iter().copied());
                let mut entries: Vec<(u32, f64)> = entries.collect();
                entries.sort_by_key(|(column, _)| *column);
                for (slot, (column, value)) in entries.into_iter().enumerate() {
                    (of_row[slot], values[slot]) = (column, value);
                }
            }
            if let Some(pair) = of_row.windows(2).find(|pair| pair[0] == pair[1]) {
                let column = pair[0] as usize;
                return Err(Error::DuplicateEntry { row, column });
            }
        }
        Ok(Self::new(shape, starts, columns, values))
    }

    /// A matrix from checked parts.
    fn new(shape: [usize; 2], starts: Vec<usize>, columns: Vec<u32>, values: Vec<f64>) -> Self {
        Self {
            shape,
            starts: Arc::new(starts),
            columns: Arc::new(columns),
            values: Arc::new(values),
        }
    }

    /// A matrix from row, column and value of each entry, in any order.
    ///
    /// # Errors
    /// [`Error::SparseIndex`] for an entry outside the matrix, [`Error::DuplicateEntry`].
    pub fn from_triplets(shape: [usize; 2], triplets: Vec<(u32, u32, f64)>) -> Result<Self> {
        let [rows, columns] = shape;
        check_lines(shape)?;
        let outside = |(row, column, _): &&(u32, u32, f64)| {
            *row as usize >= rows || *column as usize >= columns
        };
        if let Some((row, column, _)) = triplets.iter().find(outside) {
            return Err(Error::SparseIndex {
                row: *row as usize,
                column: *column as usize,
                rows,
                columns,
            });
        }
        let mut starts = vec![0usize; rows + 1];
        for (row, ..) in &triplets {
            starts[*row as usize + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let (mut of_columns, mut values) = (vec![0; triplets.len()], vec![0.0; triplets.len()]);
        for (row, column, value) in triplets {
            let slot = &mut next[row as usize];
            (of_columns[*slot], values[*slot]) = (column, value);
            *slot += 1;
        }
        Self::from_parts(shape, starts, of_columns, values)
    }

    /// A matrix from the entries of each row, with increasing columns.
    pub(crate) fn from_rows(
        columns: usize,
        rows: impl IntoIterator<Item = Vec<(u32, f64)>>,
    ) -> Self {
        let (mut starts, mut of_columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in rows {
            for (column, value) in row {
                of_columns.push(column);
                values.push(value);
            }
            starts.push(values.len());
        }
        Self::new([starts.len() - 1, columns], starts, of_columns, values)
    }

    /// [n, m].
    pub fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// The number of stored entries.
    pub fn stored(&self) -> usize {
        self.values.len()
    }

    /// The number of entries that are not stored.
    pub(crate) fn unstored(&self) -> f64 {
        let [rows, columns] = self.shape;
        rows as f64 * columns as f64 - self.stored() as f64
    }

    /// The columns and values of a row.
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let range = self.starts[row]..self.starts[row + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// The start of each row's entries, and the end of the last row's.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The column of every entry, row by row.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The stored values, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// An entry, if it is stored.
    pub fn get(&self, row: usize, column: usize) -> Option<f64> {
        self.get_ref(row, column).copied()
    }

    pub(crate) fn get_ref(&self, row: usize, column: usize) -> Option<&f64> {
        let (columns, values) = self.row(row);
        let slot = columns.binary_search(&u32::try_from(column).ok()?).ok()?;
        Some(&values[slot])
    }

    /// The entries row by row: row, column and value.
    pub fn triplets(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        (0..self.shape[0]).flat_map(|row| {
            let (columns, values) = self.row(row);
            let entries = columns.iter().zip(values);
            entries.map(move |(column, value)| (row, *column as usize, *value))
        })
    }

    /// The same entries with other values.
    #[must_use]
    pub(crate) fn map(&self, value: impl Fn(f64) -> f64) -> Self {
        self.with_values(self.values.iter().map(|x| value(*x)).collect())
    }

    /// The same entries with values that depend on their indices.
    pub(crate) fn map_entries(&self, value: impl Fn((usize, usize), f64) -> f64) -> Self {
        let same = |(row, column, x): (usize, usize, f64)| {
            let other = value((row, column), x);
            other == x || (other.is_nan() && x.is_nan())
        };
        // If nothing changes, the entries stay shared.
        if self.triplets().all(same) {
            return self.clone();
        }
        let values = self
            .triplets()
            .map(|(row, column, x)| value((row, column), x));
        self.with_values(values.collect())
    }

    /// The same indices with other values.
    pub(crate) fn with_values(&self, values: Vec<f64>) -> Self {
        assert_eq!(values.len(), self.stored(), "a value for each place");
        Self {
            values: Arc::new(values),
            ..self.clone()
        }
    }

    /// The entries that pass a test of row, column and value.
    #[must_use]
    pub(crate) fn filter(&self, keep: impl Fn(usize, usize, f64) -> bool) -> Self {
        let [rows, columns] = self.shape;
        Self::from_rows(
            columns,
            (0..rows).map(|row| {
                let (columns, values) = self.row(row);
                let entries = columns.iter().copied().zip(values.iter().copied());
                entries
                    .filter(|(column, value)| keep(row, *column as usize, *value))
                    .collect()
            }),
        )
    }

    /// Mᵀ.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let [rows, width] = self.shape;
        let columns = self.by_columns(|row, _| row as u32);
        let values = self.by_columns(|_, slot| self.values[slot]);
        Self::new([width, rows], self.starts_of_columns(), columns, values)
    }

    /// The start of each column's entries if they are stored column by column, and the end of the
    /// last column's.
    pub(crate) fn starts_of_columns(&self) -> Vec<usize> {
        let mut starts = vec![0; self.shape[1] + 1];
        for column in self.columns.iter() {
            starts[*column as usize + 1] += 1;
        }
        for column in 0..self.shape[1] {
            starts[column + 1] += starts[column];
        }
        starts
    }

    /// Numbers of the entries, column by column. `number` gets the row of an entry and its index
    /// among all entries, row by row.
    pub(crate) fn by_columns<T: Copy + Default>(
        &self,
        number: impl Fn(usize, usize) -> T,
    ) -> Vec<T> {
        let mut next = self.starts_of_columns();
        let mut numbers = vec![T::default(); self.stored()];
        for row in 0..self.shape[0] {
            for slot in self.starts[row]..self.starts[row + 1] {
                let place = &mut next[self.columns[slot] as usize];
                numbers[*place] = number(row, slot);
                *place += 1;
            }
        }
        numbers
    }

    /// Starts of the rows, columns and values, which clones share.
    pub(crate) fn shared(&self) -> SharedParts {
        (
            self.starts.clone(),
            self.columns.clone(),
            self.values.clone(),
        )
    }

    /// Some rows and columns, both increasing.
    pub(crate) fn selected(&self, rows: &[usize], columns: &[usize]) -> Self {
        let mut place = vec![None; self.shape[1]];
        for (index, column) in columns.iter().enumerate() {
            place[*column] = Some(index as u32);
        }
        Self::from_rows(
            columns.len(),
            rows.iter().map(|row| {
                let (columns, values) = self.row(*row);
                let entries = columns.iter().zip(values);
                entries
                    .filter_map(|(column, value)| Some((place[*column as usize]?, *value)))
                    .collect()
            }),
        )
    }

    /// All entries. Those that are not stored are 0.
    pub fn to_dense(&self) -> Array2<f64> {
        let mut dense = Array2::zeros(self.shape);
        for (row, column, value) in self.triplets() {
            dense[[row, column]] = value;
        }
        dense
    }

    /// The first entry, row by row, for which a condition holds. All cores search for it.
    pub(crate) fn first_entry(
        &self,
        holds: impl Fn((usize, usize), f64) -> bool + Sync,
    ) -> Option<(usize, usize)> {
        let in_row = |row: usize| {
            let (columns, values) = self.row(row);
            let mut entries = columns.iter().zip(values);
            let found = entries.find(|(column, value)| holds((row, **column as usize), **value));
            found.map(|(column, _)| (row, *column as usize))
        };
        let rows = (0..self.shape[0]).into_par_iter();
        rows.find_map_first(in_row)
    }

    /// `M A`, for A with `width` numbers in each of its m rows.
    ///
    /// # Shapes
    /// n×width, row by row.
    pub(crate) fn times(&self, a: &[f64], width: usize) -> Vec<f64> {
        let mut out = vec![0.0; self.shape[0] * width];
        let rows = out.par_chunks_exact_mut(width.max(1)).with_min_len(64);
        rows.enumerate().for_each(|(row, out)| {
            let (columns, values) = self.row(row);
            for (column, value) in columns.iter().zip(values) {
                let there = &a[*column as usize * width..][..width];
                for (sum, entry) in out.iter_mut().zip(there) {
                    *sum += value * entry;
                }
            }
        });
        out
    }
}

/// Refuses more lines than 32-bit indices can count.
fn check_lines([rows, columns]: [usize; 2]) -> Result<()> {
    let most = u32::MAX as usize;
    if rows > most || columns > most {
        return Err(Error::SparseParts {
            reason: format!("{rows}×{columns} has more than {most} rows or columns"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn matrix() -> SparseMatrix {
        let triplets = vec![(2, 1, 5.0), (0, 3, 2.0), (0, 0, 1.0), (2, 0, 4.0)];
        SparseMatrix::from_triplets([4, 4], triplets).unwrap()
    }

    #[test]
    fn triplets_in_any_order_make_the_same_matrix() {
        let dense = array![
            [1.0, 0.0, 0.0, 2.0],
            [0.0, 0.0, 0.0, 0.0],
            [4.0, 5.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, 0.0]
        ];
        let sparse = matrix();
        assert_eq!(sparse.to_dense(), dense);
        assert_eq!(sparse.transposed().to_dense(), dense.t());
        assert_eq!(sparse.transposed().transposed(), sparse);
        let selected = sparse.selected(&[0, 2], &[1, 3]).to_dense();
        assert_eq!(selected, array![[0.0, 2.0], [5.0, 0.0]]);
        assert_eq!(sparse.unstored(), 12.0);
        let product = sparse.times(&[1.0, 2.0, 3.0, 4.0], 1);
        assert_eq!(product, [9.0, 0.0, 14.0, 0.0]);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused_with_their_numbers() {
        let parts = |starts: &[usize], columns: &[u32], values: &[f64]| {
            SparseMatrix::from_parts([2, 3], starts.to_vec(), columns.to_vec(), values.to_vec())
        };
        // Columns in any order are sorted.
        let sorted = parts(&[0, 2, 3], &[2, 0, 1], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(sorted.row(0), (&[0, 2][..], &[2.0, 1.0][..]));
        for (starts, columns, values) in [
            (&[0, 2][..], &[2, 0][..], &[1.0, 2.0][..]),
            (&[0, 2, 2], &[2, 0], &[1.0]),
            (&[1, 2, 2], &[2, 0], &[1.0, 2.0]),
            (&[0, 2, 1], &[2], &[1.0]),
            (&[0, 1, 1], &[2, 0], &[1.0, 2.0]),
        ] {
            let found = parts(starts, columns, values);
            assert!(
                matches!(found, Err(Error::SparseParts { .. })),
                "{starts:?}"
            );
        }
        assert!(matches!(
            parts(&[0, 0, 1], &[3], &[1.0]),
            Err(Error::SparseIndex {
                row: 1,
                column: 3,
                ..
            })
        ));
        assert!(matches!(
            parts(&[0, 2, 2], &[1, 1], &[1.0, 1.0]),
            Err(Error::DuplicateEntry { row: 0, column: 1 })
        ));
        let outside = SparseMatrix::from_triplets([2, 3], vec![(2, 0, 1.0)]);
        assert!(matches!(outside, Err(Error::SparseIndex { row: 2, .. })));
    }
}

//! The entries of a matrix that are listed one by one, line by line.

use std::sync::{Arc, OnceLock};

use super::background::dot;
use super::tile::Numbers;
use crate::factors::Side;
use crate::problem::Weights;
use crate::sparse::{Matrix, SparseMatrix};

/// Entries in a task.
pub(super) const TASK: usize = 1 << 12;

/// The entries of one side, line by line.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    starts: Arc<Vec<usize>>,
    places: Arc<Vec<u32>>,
    values: Values,
    /// `None` means that all are 1.
    weights: Option<Arc<Vec<f64>>>,
}

/// The values of entries. Those of the rows are shared with X; the copy that the columns need has 4
/// bytes each if all of them are exact in 4 bytes, as counts are.
#[derive(Debug, Clone)]
enum Values {
    Double(Arc<Vec<f64>>),
    Single(Arc<Vec<f32>>),
}

impl Lines {
    /// The lines of a matrix's rows.
    fn rows(x: &SparseMatrix, weights: Option<Vec<f64>>) -> Self {
        let (starts, places, values) = x.shared();
        Self {
            starts,
            places,
            values: Values::Double(values),
            weights: weights.map(Arc::new),
        }
    }

    /// The lines of a matrix's columns.
    fn columns(x: &SparseMatrix, weights: Option<&[f64]>) -> Self {
        let values = if x.values().iter().all(|x| f64::from(*x as f32) == *x) {
            Values::Single(Arc::new(x.by_columns(|_, slot| x.values()[slot] as f32)))
        } else {
            Values::Double(Arc::new(x.by_columns(|_, slot| x.values()[slot])))
        };
        Self {
            starts: Arc::new(x.starts_of_columns()),
            places: Arc::new(x.by_columns(|row, _| row as u32)),
            values,
            weights: weights.map(|weights| Arc::new(x.by_columns(|_, slot| weights[slot]))),
        }
    }

    /// Indices, values and weights of a line.
    pub(super) fn of(&self, line: usize) -> (&[u32], Numbers<'_, f64>, Option<&[f64]>) {
        let range = self.starts[line]..self.starts[line + 1];
        let values = match &self.values {
            Values::Double(values) => Numbers::Whole(&values[range.clone()]),
            Values::Single(values) => Numbers::Half(&values[range.clone()], 1.0),
        };
        let weights = self.weights.as_ref().map(|weights| &weights[range.clone()]);
        (&self.places[range], values, weights)
    }

    /// The number of lines.
    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Visits all entries of a line that count, one by one, with index, weight, x and y. `others` are
    /// all rows of the other factor.
    #[cold]
    #[inline(never)]
    pub(super) fn each<'a>(
        &self,
        line: usize,
        elsewhere: f64,
        (own, others): (&[f64], impl Iterator<Item = &'a [f64]>),
        mut visit: impl FnMut(usize, f64, f64, f64),
    ) {
        let (places, values, weights) = self.of(line);
        let mut next = 0;
        for (place, other) in others.enumerate() {
            let (mut x, mut weight) = (0.0, elsewhere);
            if next < places.len() && places[next] as usize == place {
                x = values.at(next);
                weight = weights.map_or(1.0, |weights| weights[next]);
                next += 1;
            }
            if weight > 0.0 {
                visit(place, weight, x, dot(own, other));
            }
        }
    }

    /// `Σ_j v_ij of(j, x_ij, y_ij)` over the same entries.
    pub(super) fn sum_over<'a>(
        &self,
        line: usize,
        elsewhere: f64,
        factors: (&[f64], impl Iterator<Item = &'a [f64]>),
        of: impl Fn(usize, f64, f64) -> f64,
    ) -> f64 {
        let mut sum = 0.0;
        self.each(line, elsewhere, factors, |index, weight, x, y| {
            sum += weight * of(index, x, y);
        });
        sum
    }

    /// The ends of tasks: whole lines with about equally many entries.
    pub(super) fn tasks(&self) -> Vec<usize> {
        let (starts, count) = (&self.starts, self.count());
        let mut ends = Vec::new();
        let mut first = 0;
        while first < count {
            let end = starts[first] + TASK;
            let next = starts.partition_point(|start| *start <= end) - 1;
            first = next.clamp(first + 1, count.min(first + TASK));
            ends.push(first);
        }
        ends
    }
}

/// The entries of a matrix for both sides, with the weight of those that are not listed.
#[derive(Debug, Clone)]
pub(super) struct Entries {
    x: SparseMatrix,
    rows: Lines,
    /// Made when they are first needed.
    columns: Arc<OnceLock<Lines>>,
    pub(super) elsewhere: f64,
}

impl Entries {
    /// The entries of a matrix with a weight, and those with another weight than the common one.
    pub(super) fn new(matrix: &Matrix, weights: Option<&Weights>) -> Self {
        let (x, weights, elsewhere) = match (matrix, weights) {
            (Matrix::Sparse(x), None) => (x.clone(), None, 1.0),
            (Matrix::Sparse(x), Some(Weights::Listed { at, elsewhere })) => {
                let (x, weights) = united(x, at, *elsewhere);
                (x, Some(weights), *elsewhere)
            }
            (_, Some(weights)) => {
                let [rows, columns] = matrix.dim().into();
                let mut of_rows = vec![Vec::new(); rows];
                for (row, column) in weights.places(|weight| weight > 0.0) {
                    of_rows[row].push((column as u32, matrix.entry(row, column)));
                }
                let x = SparseMatrix::from_rows(columns, of_rows);
                let given = x.map_entries(|index, _| weights[index]);
                (x, Some(given.values().to_vec()), 0.0)
            }
            (Matrix::Dense(_), None) => unreachable!("a dense matrix is not listed"),
        };
        let weights = weights.filter(|weights| weights.iter().any(|weight| *weight != 1.0));
        Self {
            rows: Lines::rows(&x, weights),
            columns: Arc::default(),
            x,
            elsewhere,
        }
    }

    pub(super) fn side(&self, side: Side) -> &Lines {
        match side {
            Side::W => &self.rows,
            Side::H => self.columns.get_or_init(|| {
                let weights = self.rows.weights.as_ref();
                Lines::columns(&self.x, weights.map(|weights| weights.as_slice()))
            }),
        }
    }

    /// Returns true if they have weights.
    pub(super) fn is_weighted(&self) -> bool {
        self.rows.weights.is_some()
    }
}

/// x and weight of the stored or listed entries, without those that are like all others or have no
/// weight.
fn united(x: &SparseMatrix, at: &SparseMatrix, elsewhere: f64) -> (SparseMatrix, Vec<f64>) {
    let [rows, columns] = x.shape();
    let mut weights = Vec::with_capacity(x.stored());
    let of_rows = (0..rows).map(|row| {
        let ((of_x, values), (of_weights, listed)) = (x.row(row), at.row(row));
        let mut entries = Vec::with_capacity(of_x.len());
        let (mut i, mut j) = (0, 0);
        while i < of_x.len() || j < of_weights.len() {
            let next = |columns: &[u32], at: usize| columns.get(at).copied().unwrap_or(u32::MAX);
            let column = next(of_x, i).min(next(of_weights, j));
            let (mut value, mut weight) = (0.0, elsewhere);
            if i < of_x.len() && of_x[i] == column {
                value = values[i];
                i += 1;
            }
            if j < of_weights.len() && of_weights[j] == column {
                weight = listed[j];
                j += 1;
            }
            let is_like_others = weight == elsewhere && (value == 0.0 || weight == 0.0);
            if !is_like_others {
                entries.push((column, value));
                weights.push(weight);
            }
        }
        entries
    });
    // (It must be made before the weights are read.)
    let x = SparseMatrix::from_rows(columns, of_rows);
    (x, weights)
}

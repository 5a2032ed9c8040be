//! Checks of every matrix that becomes a tensor.

use ndarray::Array2;
use rayon::prelude::*;

use super::Weights;
use super::stored::{DenseNumbers, Stored};
use crate::error::{Error, Result};
use crate::numerics::Precision;
use crate::processes::Share;
use crate::sparse::Matrix;

/// Returns true if an entry has a weight in the fit or in the held-out error.
pub(super) fn needed<'a>(
    mask: Option<&'a Weights>,
    held_out: Option<&'a Weights>,
) -> impl Fn((usize, usize)) -> bool + Sync + 'a {
    move |index| {
        mask.is_none_or(|weights| weights[index] > 0.0)
            || held_out.is_some_and(|weights| weights[index] > 0.0)
    }
}

/// The first stored entry, row by row, for which a condition holds. All cores search for it.
pub(super) fn first_entry(
    matrix: &Stored,
    holds: impl Fn((usize, usize), f64) -> bool + Sync,
) -> Option<(usize, usize)> {
    match (matrix.as_sparse(), matrix.as_dense()) {
        (Some(matrix), _) => matrix.first_entry(holds),
        (None, numbers) => first_of(numbers?, holds),
    }
}

fn first_of(
    matrix: DenseNumbers<'_>,
    holds: impl Fn((usize, usize), f64) -> bool + Sync,
) -> Option<(usize, usize)> {
    let in_row = |row: &usize| {
        let entries = matrix.row(*row);
        let mut entries = entries.iter().enumerate();
        entries.any(|(column, value)| holds((*row, column), *value))
    };
    let (n, m) = matrix.dim();
    let mut rows = 0..n;
    let row = if n * m <= super::SMALL {
        rows.find(in_row)?
    } else {
        rows.into_par_iter().find_first(in_row)?
    };
    let entries = matrix.row(row);
    let mut entries = entries.iter().enumerate();
    let column = entries.position(|(column, value)| holds((row, column), *value));
    column.map(|column| (row, column))
}

pub(super) fn check_nonnegative(
    what: &'static str,
    matrix: &Array2<f64>,
    precision: Precision,
) -> Result<()> {
    let numbers = DenseNumbers::Whole(matrix);
    let wrong = first_of(numbers, |_, value| is_wrong(value, precision));
    let wrong = wrong.map(|(row, column)| (row, column, matrix[[row, column]]));
    wrong.map_or(Ok(()), |entry| Err(wrong_entry(what, entry, precision)))
}

/// The same for the stored entries of a matrix of either kind.
pub(super) fn check_stored(
    what: &'static str,
    matrix: &Matrix,
    precision: Precision,
) -> Result<()> {
    let is_wrong = |_, value| is_wrong(value, precision);
    let wrong = match matrix {
        Matrix::Sparse(matrix) => matrix.first_entry(is_wrong),
        Matrix::Dense(matrix) => first_of(DenseNumbers::Whole(matrix), is_wrong),
    };
    let wrong = wrong.map(|(row, column)| (row, column, matrix.entry(row, column)));
    wrong.map_or(Ok(()), |entry| Err(wrong_entry(what, entry, precision)))
}

fn is_wrong(value: f64, precision: Precision) -> bool {
    !precision.holds(value) || value < 0.0
}

fn wrong_entry(
    what: &'static str,
    (row, column, value): (usize, usize, f64),
    precision: Precision,
) -> Error {
    if precision.holds(value) {
        Error::NegativeEntry {
            what,
            row,
            column,
            value,
        }
    } else {
        Error::NotFiniteEntry {
            what,
            row,
            column,
            value,
        }
    }
}

/// Refuses weights of another shape, and rows and columns without any weight. Columns are checked
/// over all processes.
pub(super) fn check_weights(
    mask: Option<&Weights>,
    held_out: Option<&Weights>,
    shape: [usize; 2],
    share: &Share,
) -> Result<()> {
    let mut seen = vec![1.0; shape[1]];
    let mut of_rows = || -> Result<()> {
        for (what, weights) in [("the mask", mask), ("the held-out weights", held_out)] {
            if let Some(weights) = weights {
                Error::require_shape(what, weights.dim(), shape)?;
            }
        }
        let Some(mask) = mask else {
            return Ok(());
        };
        let [rows, columns] = mask.observed();
        seen = columns.into_iter().map(f64::from).collect();
        let empty = rows.iter().position(|seen| !seen);
        empty.map_or(Ok(()), |row| Err(Error::UnobservedRow { row }))
    };
    share.agree(of_rows())?;
    share.processes().largest(&mut seen);
    let empty = seen.iter().position(|seen| *seen == 0.0);
    empty.map_or(Ok(()), |column| Err(Error::UnobservedColumn { column }))
}

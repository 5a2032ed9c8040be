//! What is asked of every matrix that becomes a tensor.

use ndarray::Array2;

use crate::error::{Error, Result};
use crate::numerics::Precision;

pub(super) fn check_shape(
    what: &'static str,
    matrix: &Array2<f64>,
    expected: [usize; 2],
) -> Result<()> {
    let found = [matrix.nrows(), matrix.ncols()];
    if found == expected {
        Ok(())
    } else {
        Err(Error::Shape {
            what,
            expected,
            found,
        })
    }
}

/// Whether an entry has a weight in the fit or in the held-out error.
pub(super) fn needed<'a>(
    mask: Option<&'a Array2<f64>>,
    held_out: Option<&'a Array2<f64>>,
) -> impl Fn((usize, usize)) -> bool + 'a {
    move |index| {
        mask.is_none_or(|weights| weights[index] > 0.0)
            || held_out.is_some_and(|weights| weights[index] > 0.0)
    }
}

pub(super) fn check_nonnegative(
    what: &'static str,
    matrix: &Array2<f64>,
    precision: Precision,
) -> Result<()> {
    for ((row, column), &value) in matrix.indexed_iter() {
        if !precision.holds(value) {
            return Err(Error::NotFiniteEntry {
                what,
                row,
                column,
                value,
            });
        }
        if value < 0.0 {
            return Err(Error::NegativeEntry {
                what,
                row,
                column,
                value,
            });
        }
    }
    Ok(())
}

//! Encoding new rows with the other factor fixed.

use ndarray::Array2;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::numerics::{Precision, movement};
use crate::problem::{Problem, ToMatrix};
use crate::update::Rule;

/// Updates between two reads of the movement from the device.
const UPDATES_BETWEEN_LOOKS: usize = 10;

/// The stopping rule and the settings of the updates.
pub(super) struct Patience {
    /// A row has converged when no entry of it moves by more than this.
    pub tolerance: f64,
    /// Largest number of updates.
    pub most: usize,
    pub precision: Precision,
    pub device: Device,
}

/// The factor F ≥ 0 that fits `x ≈ F other`, by updates of a rule whose weights are bound.
///
/// Each row is fitted on its own, from a start that depends only on it.
///
/// # Errors
/// [`Error::Shape`] if `x` does not have m columns; those of the checks of X.
///
/// # Shapes
/// `x` and `mask` p×m, `other` r×m, result p×r.
pub(super) fn encode(
    x: Array2<f64>,
    mask: Option<Array2<f64>>,
    other: &Array2<f64>,
    rule: &Rule,
    patience: &Patience,
) -> Result<Array2<f64>> {
    let rows = x.nrows();
    let (rank, features) = other.dim();
    Error::require_shape("X", x.dim(), [rows, features])?;
    let problem = Problem::to_encode(x, mask, patience.precision)?.on(patience.device.clone());
    problem.check_domain(rule.divergence.as_ref())?;
    let start = start(&problem, other);
    let other = problem.tensor("the factor", other, [rank, features])?;
    let mut encoding = problem.tensor("the encoding", &start, [rows, rank])?;
    // The code of a row is fixed when this row has converged. Further updates for other rows do not
    // change it.
    let mut codes = Array2::zeros((rows, rank));
    let mut at_rest = vec![false; rows];
    for update in 1..=patience.most {
        let next = rule.update(problem.rows(), &encoding, &other);
        let last = update == patience.most;
        if last || update % UPDATES_BETWEEN_LOOKS == 0 {
            let (before, after) = (encoding.to_matrix()?, next.to_matrix()?);
            for row in (0..rows).filter(|row| !at_rest[*row]).collect::<Vec<_>>() {
                let code = after.row(row);
                if code.iter().any(|entry| !entry.is_finite()) {
                    return Err(Error::NotFinite {
                        iteration: update,
                        quantity: "the encoding",
                    });
                }
                if last || movement(before.row(row), code) <= patience.tolerance {
                    codes.row_mut(row).assign(&code);
                    at_rest[row] = true;
                }
            }
            if at_rest.iter().all(|rests| *rests) {
                break;
            }
        }
        encoding = next;
    }
    Ok(codes)
}

/// A constant for each row, such that the row of the product has the sum of the row's observed
/// entries.
fn start(problem: &Problem, other: &Array2<f64>) -> Array2<f64> {
    let [rows, _] = problem.shape();
    let of_columns = other.sum_axis(ndarray::Axis(0));
    let mut totals = vec![0.0; rows];
    let mut of_other = vec![0.0; rows];
    for (row, column, x) in problem.x().entries() {
        let weight = problem.mask().map_or(1.0, |mask| mask[(row, column)]);
        totals[row] += weight * x;
        of_other[row] += weight * of_columns[column];
    }
    Array2::from_shape_fn((rows, other.nrows()), |(row, _)| {
        if of_other[row] > 0.0 {
            totals[row] / of_other[row]
        } else {
            0.0
        }
    })
}

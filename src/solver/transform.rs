//! Encoding new columns with W fixed.

use ndarray::Array2;

use crate::config::AltBiConfig;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::numerics::movement;
use crate::problem::{Problem, ToMatrix};
use crate::update::Rule;

/// How often the movement is read back from the device.
const UPDATES_BETWEEN_LOOKS: usize = 10;

pub(super) fn encode(
    x: &(impl ToMatrix + ?Sized),
    w: &Array2<f64>,
    rule: &Rule,
    config: &AltBiConfig,
    device: &Device,
) -> Result<Array2<f64>> {
    let problem = Problem::of_columns(x, config.precision)?.on(device.clone());
    problem.check_domain(rule.divergence.as_ref())?;
    let [n, columns] = problem.shape();
    let rank = w.ncols();
    if n != w.nrows() {
        return Err(Error::Shape {
            what: "X",
            expected: [w.nrows(), columns],
            found: [n, columns],
        });
    }
    // The constant that gives each column its own total, whatever its neighbours.
    let total_of_w = w.sum();
    let mut totals = vec![0.0; columns];
    for (_, column, x) in problem.x().entries() {
        totals[column] += x;
    }
    let start = Array2::from_shape_fn((columns, rank), |(j, _)| {
        if total_of_w > 0.0 {
            totals[j] / total_of_w
        } else {
            0.0
        }
    });
    let other = problem.tensor("W", &w.t().to_owned(), [rank, n])?;
    let mut encoding = problem.tensor("H", &start, [columns, rank])?;
    // A column's code is the one at which that column came to rest: what its
    // neighbours still need does not change it.
    let mut codes = Array2::zeros((rank, columns));
    let mut at_rest = vec![false; columns];
    for update in 1..=config.max_iterations {
        let next = rule.update(problem.columns(), &encoding, &other);
        let last = update == config.max_iterations;
        if last || update % UPDATES_BETWEEN_LOOKS == 0 {
            let (before, after) = (encoding.to_matrix()?, next.to_matrix()?);
            for j in (0..columns).filter(|j| !at_rest[*j]).collect::<Vec<_>>() {
                let code = after.row(j);
                if code.iter().any(|entry| !entry.is_finite()) {
                    return Err(Error::NotFinite {
                        iteration: update,
                        quantity: "the encoding",
                    });
                }
                if last || movement(before.row(j), code) <= config.tolerance {
                    codes.column_mut(j).assign(&code);
                    at_rest[j] = true;
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

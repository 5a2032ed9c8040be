//! Encoding new columns with W fixed.

use ndarray::{Array2, Axis};

use crate::config::AltBiConfig;
use crate::error::{Error, Result};
use crate::problem::{Problem, ToMatrix};
use crate::update::Rule;

/// How often the movement is read back from the device.
const UPDATES_BETWEEN_LOOKS: usize = 10;

pub(super) fn encode(
    x: &(impl ToMatrix + ?Sized),
    w: &Array2<f64>,
    rule: &Rule,
    config: &AltBiConfig,
) -> Result<Array2<f64>> {
    let problem = Problem::new(x, config.precision)?;
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
    let start = Array2::from_shape_fn((columns, rank), |(j, _)| {
        problem.x().index_axis(Axis(1), j).sum() / total_of_w
    });
    let other = problem.tensor("W", &w.t().to_owned(), [rank, n])?;
    let mut encoding = problem.tensor("H", &start, [columns, rank])?;
    let no_lambda = problem.tensor("λ", &Array2::<f64>::zeros((1, 1)), [1, 1])?;
    for update in 1..=config.max_iterations {
        let next = rule.update(problem.columns(), &encoding, &other, &no_lambda);
        let look = update % UPDATES_BETWEEN_LOOKS == 0;
        let still = look && stands_still(&encoding.to_matrix()?, &next.to_matrix()?, config);
        encoding = next;
        if still {
            break;
        }
    }
    Ok(encoding.to_matrix()?.t().to_owned())
}

/// Whether no entry moves by more than the tolerance of its column's largest.
fn stands_still(before: &Array2<f64>, after: &Array2<f64>, config: &AltBiConfig) -> bool {
    before.rows().into_iter().zip(after.rows()).all(|(b, a)| {
        let largest = a.iter().copied().fold(0.0, f64::max);
        b.iter()
            .zip(a)
            .all(|(b, a)| (a - b).abs() <= config.tolerance * largest)
    })
}

//! The comparison of fused joint bunches with Burn's tape, on a sample of the run's data.

use ndarray::{Array2, Axis};

use super::agreement::Largest;
use super::joint::Joint;
use crate::error::{Error, Result};
use crate::factors::{Factors, Side};
use crate::hypergradient::Mode;
use crate::joint::JointBunch;
use crate::problem::Problem;
use crate::update::Rule;

/// Entries of X that are compared: a tape over more would take longer than the iterations
/// that follow.
pub const COMPARED_ENTRIES: usize = 1 << 16;

/// Rows or columns of a sample at the least.
const FEWEST: usize = 8;

/// Evenly spaced numbers below `of`, at most so many.
fn spaced(of: usize, most: usize) -> Vec<usize> {
    let count = of.min(most.max(1));
    (0..count).map(|index| index * of / count).collect()
}

impl Joint {
    /// Computes the first bunch on a sample of X's rows and columns by both engines, the
    /// hypergradient by reverse mode, and compares both factors and the hypergradient.
    /// Returns the largest difference, relative to the largest entry; `None` where the
    /// sample has no structure to compare on.
    ///
    /// # Errors
    /// [`Error::EnginesDisagree`] above the [`tolerance`](super::tolerance).
    pub(crate) fn agreement(
        &self,
        problem: &Problem,
        factors: &Factors,
        lambda: &Array2<f64>,
        tuned: bool,
    ) -> Result<Option<f64>> {
        let [n, m] = problem.shape();
        let side = (COMPARED_ENTRIES as f64).sqrt() as usize;
        let free = |rule: &Rule| rule.terms.iter().all(|term| term.penalty.takes_any_rows());
        let columns = match (free(&self.bunch.of_w), free(&self.bunch.of_h)) {
            (_, false) => (0..m).collect(),
            (true, true) => spaced(m, side.max(COMPARED_ENTRIES / n)),
            (false, true) => spaced(m, (COMPARED_ENTRIES / n).max(FEWEST)),
        };
        let rows = if free(&self.bunch.of_w) {
            spaced(n, (COMPARED_ENTRIES / columns.len()).max(FEWEST))
        } else {
            (0..n).collect()
        };
        let part = match problem.selected(&rows, &columns) {
            Ok(part) => part,
            // A row or column of the sample may have nothing to be fitted to.
            Err(
                Error::UnobservedRow { .. }
                | Error::UnobservedColumn { .. }
                | Error::AllZero { .. },
            ) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let start = Factors {
            w: factors.w.select(Axis(0), &rows),
            h: factors.h.select(Axis(1), &columns),
        };
        let of_w = self.bunch.of_w.selected(&part, &rows);
        let of_h = self.bunch.of_h.selected(&part, &columns);
        let JointBunch {
            criterion,
            span,
            length,
            ..
        } = self.bunch.clone();
        let length = length.min(super::COMPARED_UPDATES);
        let make = |fused: bool| {
            let (of_w, of_h, criterion) = (of_w.clone(), of_h.clone(), criterion.clone());
            if fused {
                JointBunch::fused(&part, of_w, of_h, criterion, span, length)
            } else {
                JointBunch::new(&part, of_w, of_h, criterion, span, length)
            }
        };
        let (fused, reference) = (make(true)?, make(false)?);
        let pair = Self::pair(&part, &start);
        // In absolute units, of the sample.
        let groups = self.layout.groups.iter().zip(self.layout.split(lambda));
        let weights = groups.map(|(group, weights)| {
            let (all, lines) = match group.side {
                Side::W => (n, &rows),
                Side::H => (m, &columns),
            };
            if group.shape[0] == all && all > 1 {
                weights.select(Axis(0), lines)
            } else {
                weights
            }
        });
        let weights: Vec<Array2<f64>> = weights.collect();
        let scales = self.scales_of(&fused, &pair, &weights);
        let weights: Vec<_> = weights
            .iter()
            .zip(scales)
            .map(|(weights, scale)| part.state(&(weights * &scale)))
            .collect();
        let mut largest = Largest::new(problem.precision());
        if tuned {
            let found = fused.hypergradient(&pair, &weights, Mode::Reverse)?;
            let expected = reference.hypergradient(&pair, &weights, Mode::Reverse)?;
            largest.compare("W", &found.pair.w, &expected.pair.w, 0.0)?;
            largest.compare("H", &found.pair.h, &expected.pair.h, 0.0)?;
            let least = reference.cancellation(&expected.pair, &weights);
            for (found, expected) in found.gradients.iter().zip(&expected.gradients) {
                largest.compare("the hypergradient", found, expected, least)?;
            }
        } else {
            let (found, expected) = (fused.run(&pair, &weights), reference.run(&pair, &weights));
            largest.compare("W", &found.w, &expected.w, 0.0)?;
            largest.compare("H", &found.h, &expected.h, 0.0)?;
        }
        Ok(Some(largest.difference))
    }
}

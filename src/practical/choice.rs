//! The choice among the candidates.

use ndarray::{Array2, Axis, Slice};

use crate::bunch::Data;
use crate::criterion::Criterion;
use crate::divergence::Divergence;
use crate::factors::Factors;
use crate::numerics::to_host;
use crate::problem::Problem;
use crate::processes::Processes;

/// A candidate must beat plain updates by this many standard errors. λ was tuned on the same data,
/// so candidates look better than they are.
pub(crate) const MARGIN: f64 = 1.0;

/// E of each row, for any factors.
pub(crate) struct RowErrors<'a> {
    problem: &'a Problem,
    divergence: &'a dyn Divergence,
    criterion: &'a dyn Criterion,
    data: Option<Data>,
}

impl<'a> RowErrors<'a> {
    pub(crate) fn new(
        problem: &'a Problem,
        divergence: &'a dyn Divergence,
        criterion: &'a dyn Criterion,
    ) -> Self {
        Self {
            problem,
            divergence,
            criterion,
            // The data term is used if possible. (With a sparse X, tensors as large as X would not
            // fit in memory.)
            data: Data::fused(problem, divergence, criterion).ok(),
        }
    }

    pub(crate) fn of(&self, factors: &Factors) -> Vec<f64> {
        let problem = self.problem;
        let fused = self.data.as_ref();
        if let Some(errors) = fused.and_then(|data| data.fused_outer_errors(problem, factors)) {
            return errors;
        }
        let floor = self.divergence.floor(problem.precision());
        let blocks = problem.blocks().into_iter().flat_map(|rows| {
            let w = factors.w.slice_axis(Axis(0), Slice::from(rows.clone()));
            let y = problem.state(&w.dot(&factors.h).mapv(|y| y.max(floor)));
            let part = problem.part(rows);
            to_host(&self.criterion.value(self.divergence, &part, &y))
        });
        blocks.collect()
    }

    /// The gain of the second factors over the first.
    pub(crate) fn gain(&self, first: &Factors, second: &Factors) -> Gain {
        Gain::new(&self.of(first), &self.of(second), self.problem.processes())
    }

    /// E of a constant: the mean of the data that the updates see.
    pub(crate) fn of_mean(&self) -> f64 {
        let [n, m] = self.problem.shape();
        let mean = self.problem.mean();
        let factors = Factors {
            w: Array2::ones((n, 1)),
            h: Array2::from_elem((1, m), mean),
        };
        let rows = self.of(&factors);
        self.problem.processes().total(rows.iter().sum())
    }
}

/// The difference of two sums over the rows of all processes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gain {
    /// The first sum minus the second.
    difference: f64,
    /// Its standard error, from the differences of rows.
    pub(crate) standard_error: f64,
}

impl Gain {
    pub(crate) fn new(first: &[f64], second: &[f64], processes: &Processes) -> Self {
        let gains = || {
            first
                .iter()
                .zip(second)
                .map(|(first, second)| first - second)
        };
        let mut totals = [first.len() as f64, gains().sum()];
        processes.sum(&mut totals);
        let [count, difference] = totals;
        let mean = difference / count;
        let squares = processes.total(gains().map(|of_row| (of_row - mean).powi(2)).sum());
        Self {
            difference,
            standard_error: (squares * count / (count - 1.0).max(1.0)).sqrt(),
        }
    }

    /// Returns true if the difference is larger than so many standard errors.
    pub(crate) fn exceeds(self, margin: f64) -> bool {
        self.difference > margin * self.standard_error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_counts_where_the_rows_agree_on_it() {
        let alone = Processes::default();
        let first = [10.0, 10.0, 10.0, 10.0];
        // A difference of 4 in all, equal in every row; and of 4 in all, from one row against the
        // others.
        let gain = |second: &[f64]| Gain::new(&first, second, &alone);
        assert!(gain(&[9.0, 9.0, 9.1, 8.9]).exceeds(1.0));
        assert!(!gain(&[2.0, 12.0, 11.0, 11.0]).exceeds(1.0));
        assert!(gain(&[2.0, 12.0, 11.0, 11.0]).exceeds(0.0));
        assert!(!gain(&first).exceeds(0.0));
    }
}

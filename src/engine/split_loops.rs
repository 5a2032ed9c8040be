//! The paper's loops for several processes. They update W, whose rows belong to this process. A
//! data term updates H, which needs sums over all processes.

use ndarray::Array2;

use super::taped::Taped;
use super::{Engine, Errors};
use crate::error::Result;
use crate::factors::Factors;
use crate::problem::Problem;

pub(super) struct SplitLoops {
    pub(super) loops: Box<dyn Engine + Send>,
    pub(super) of_h: Taped,
}

/// Errors over the rows of all processes.
fn over_all(problem: &Problem, own: Errors) -> Errors {
    let mut totals = [own.outer_error, own.divergence];
    problem.processes().sum(&mut totals);
    Errors {
        outer_error: totals[0],
        divergence: totals[1],
    }
}

impl Engine for SplitLoops {
    fn update_other(&mut self, problem: &Problem, factors: &mut Factors) {
        self.of_h.update_other(problem, factors);
    }

    fn bunch(
        &mut self,
        problem: &Problem,
        factors: &mut Factors,
        lambda: &Array2<f64>,
        gradient: Option<&mut Array2<f64>>,
    ) -> Result<Errors> {
        let own = self.loops.bunch(problem, factors, lambda, gradient)?;
        Ok(over_all(problem, own))
    }

    fn errors(&mut self, problem: &Problem, factors: &Factors) -> (Errors, Vec<f64>) {
        let (own, rows) = self.loops.errors(problem, factors);
        (over_all(problem, own), rows)
    }

    fn penalty(&self, problem: &Problem, factors: &Factors, lambda: &Array2<f64>) -> f64 {
        // (The loops support penalties of W only.)
        let own = self.loops.penalty(problem, factors, lambda);
        problem.processes().total(own)
    }
}

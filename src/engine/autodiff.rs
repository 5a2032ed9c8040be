//! The general engine: whole matrices, tensor operations, Burn's tape.

use std::sync::Arc;

use burn::tensor::Tensor;
use ndarray::Array2;

use super::{Engine, Errors};
use crate::bunch::Bunch;
use crate::criterion::{Criterion, Entries, weighted_divergence};
use crate::error::Result;
use crate::factors::Factors;
use crate::hypergradient::Mode;
use crate::numerics::to_host;
use crate::problem::{Problem, ToMatrix};
use crate::update::Rule;

/// Rules for both factors.
#[derive(Debug)]
pub(crate) struct Autodiff {
    pub(crate) of_w: Rule,
    pub(crate) of_h: Rule,
    pub(crate) criterion: Arc<dyn Criterion>,
    pub(crate) mode: Mode,
    /// T.
    pub(crate) length: usize,
}

impl Autodiff {
    fn bunch_of(&self, problem: &Problem, h: &Array2<f64>) -> Bunch {
        Bunch {
            rule: self.of_w.clone(),
            observed: problem.rows().clone(),
            other: problem.state(h),
            criterion: self.criterion.clone(),
            length: self.length,
        }
    }

    fn divergences(&self, problem: &Problem, w: &Tensor<2>, h: &Tensor<2>) -> Vec<f64> {
        let observed = problem.rows();
        let y = self.of_w.reconstruct(w, h);
        let divergence = self.of_w.divergence.as_ref();
        let mask = observed.mask.as_ref();
        to_host(&weighted_divergence(divergence, &observed.x, mask, &y))
    }

    /// D at the end of a bunch, which is E where E counts the same entries.
    fn divergence(&self, bunch: &Bunch, problem: &Problem, w: &Tensor<2>, outer_error: f64) -> f64 {
        if counts_training(self.criterion.as_ref()) {
            outer_error
        } else {
            self.divergences(problem, w, &bunch.other).iter().sum()
        }
    }
}

impl Engine for Autodiff {
    fn update_other(&mut self, problem: &Problem, factors: &mut Factors) {
        let transposed = self.of_h.update(
            problem.columns(),
            &problem.state(&factors.h).transpose(),
            &problem.state(&factors.w).transpose(),
            &problem.state(&Array2::zeros((1, 1))),
        );
        factors.h = host(&transposed.transpose());
    }

    fn bunch(
        &mut self,
        problem: &Problem,
        factors: &mut Factors,
        lambda: &Array2<f64>,
        gradient: Option<&mut Array2<f64>>,
    ) -> Result<Errors> {
        let bunch = self.bunch_of(problem, &factors.h);
        let (w, lambda) = (problem.state(&factors.w), problem.state(lambda));
        let (w, outer_error) = match gradient {
            Some(slot) => {
                let end = bunch.hypergradient(&w, &lambda, self.mode)?;
                *slot = host(&end.gradient);
                (end.w, end.outer_error)
            }
            None => {
                let w = bunch.run(&w, &lambda);
                let outer_error = to_host(&bunch.outer_errors(&w)).iter().sum();
                (w, outer_error)
            }
        };
        factors.w = host(&w);
        Ok(Errors {
            outer_error,
            divergence: self.divergence(&bunch, problem, &w, outer_error),
        })
    }

    fn set_length(&mut self, length: usize) {
        self.length = length;
    }

    fn errors(&mut self, problem: &Problem, factors: &Factors) -> (Errors, Vec<f64>) {
        let bunch = self.bunch_of(problem, &factors.h);
        let w = problem.state(&factors.w);
        let outer_error = to_host(&bunch.outer_errors(&w)).iter().sum();
        let divergences = self.divergences(problem, &w, &bunch.other);
        let errors = Errors {
            outer_error,
            divergence: divergences.iter().sum(),
        };
        (errors, divergences)
    }

    fn penalty(&self, problem: &Problem, factors: &Factors, lambda: &Array2<f64>) -> f64 {
        let (w, lambda) = (problem.state(&factors.w), problem.state(lambda));
        let penalties = self.of_w.penalty(&w, &lambda);
        to_host(&penalties).iter().sum()
    }
}

pub(super) fn host(tensor: &Tensor<2>) -> Array2<f64> {
    tensor.to_matrix().expect("a tensor fills its shape")
}

/// Whether E is D.
pub(super) fn counts_training(criterion: &dyn Criterion) -> bool {
    criterion.is_divergence() && criterion.entries() == Entries::Training
}

//! The outer error on data that the updates never see.

use burn::tensor::Tensor;

use super::{Criterion, Entries, weighted_derivative, weighted_divergence};
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::problem::{Observed, Problem};

/// `E_i = Σ_j M'_ij d(z_ij, y_ij)`: M' are the problem's held-out weights
/// ([`Problem::held_out`](crate::Problem::held_out)). Z is X, or the second part of thinned counts
/// ([`Problem::thinned`](crate::Problem::thinned)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldOut;

impl HeldOut {
    fn weights(observed: &Observed) -> &Tensor<2> {
        observed
            .held_out
            .as_ref()
            .expect("check() comes before value()")
    }
}

impl Criterion for HeldOut {
    fn name(&self) -> String {
        "held-out".into()
    }

    fn check(&self, problem: &Problem) -> Result<()> {
        match problem.held_out_weights() {
            Some(_) => Ok(()),
            None => Err(Error::Conflict {
                first: "the held-out criterion",
                second: "a problem without held-out weights",
                reason: "set the held-out entries with Problem::held_out",
            }),
        }
    }

    fn value(&self, divergence: &dyn Divergence, observed: &Observed, y: &Tensor<2>) -> Tensor<2> {
        let weights = Self::weights(observed);
        weighted_divergence(divergence, observed.unseen(), Some(weights), y)
    }

    fn entries(&self) -> Entries {
        Entries::HeldOut
    }

    fn is_divergence(&self) -> bool {
        true
    }

    fn derivative(
        &self,
        divergence: &dyn Divergence,
        observed: &Observed,
        y: &Tensor<2>,
    ) -> Option<Tensor<2>> {
        let weights = Some(Self::weights(observed));
        Some(weighted_derivative(
            divergence,
            observed.unseen(),
            weights,
            y,
        ))
    }
}

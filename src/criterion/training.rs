//! The paper's outer error, over the fitted entries.

use burn::tensor::Tensor;

use super::{Criterion, weighted_derivative, weighted_divergence};
use crate::divergence::Divergence;
use crate::problem::Observed;

/// `E_i = Σ_j M_ij d(x_ij, y_ij)`, where M is the mask of the updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Training;

impl Criterion for Training {
    fn name(&self) -> String {
        "train".into()
    }

    fn value(&self, divergence: &dyn Divergence, observed: &Observed, y: &Tensor<2>) -> Tensor<2> {
        weighted_divergence(divergence, &observed.x, observed.mask.as_ref(), y)
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
        let weights = observed.mask.as_ref();
        Some(weighted_derivative(divergence, &observed.x, weights, y))
    }
}

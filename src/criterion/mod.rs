//! The outer error E: what λ is tuned for.
//!
//! | name | type | E |
//! |---|---|---|
//! | `train` | [`Training`] | divergence over the entries the factors are fitted to (the paper) |
//! | `held-out` | [`HeldOut`] | divergence over entries that the updates never see |
//!
//! [`Problem::speckled`](crate::Problem::speckled) holds entries out at random;
//! [`Selection::Best`](crate::Selection::Best) then keeps the iterate with the lowest
//! outer error.
//!
//! On the training error the best penalty is none: an exact inner solution makes
//! E rise with λ on every row. What λ does in the paper's setting comes from
//! stopping each bunch early.

mod held_out;
mod training;

use std::fmt::Debug;

use burn::tensor::Tensor;

pub use held_out::HeldOut;
pub use training::Training;

use crate::divergence::Divergence;
use crate::engine::FusedCriterion;
use crate::error::Result;
use crate::problem::{Observed, Problem};

/// An outer error that is a sum over rows.
///
/// # Shapes
/// `y` is n×m, the floored reconstruction WH.
pub trait Criterion: Debug + Send + Sync {
    /// The name that summaries and errors use.
    fn name(&self) -> String;

    /// Refuses data that lacks what the criterion needs.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict), naming the part that lacks.
    fn check(&self, problem: &Problem) -> Result<()> {
        let _ = problem;
        Ok(())
    }

    /// `E_i` of each row, n×1, in differentiable operations.
    fn value(&self, divergence: &dyn Divergence, observed: &Observed, y: &Tensor<2>) -> Tensor<2>;

    /// Which entries the criterion counts, for the [fused
    /// engine](mod@crate::engine). `None`: runs with it are computed on tensors.
    fn fused(&self) -> Option<FusedCriterion> {
        None
    }

    /// The hand-written `∂E/∂y`, n×m. Without it only reverse mode works.
    fn derivative(
        &self,
        divergence: &dyn Divergence,
        observed: &Observed,
        y: &Tensor<2>,
    ) -> Option<Tensor<2>> {
        let _ = (divergence, observed, y);
        None
    }
}

/// `Σ_j M_ij d(x_ij, y_ij)`: n×1. Without weights, all are 1.
pub(crate) fn weighted_divergence(
    divergence: &dyn Divergence,
    x: &Tensor<2>,
    weights: Option<&Tensor<2>>,
    y: &Tensor<2>,
) -> Tensor<2> {
    let values = divergence.value(x, y);
    match weights {
        Some(weights) => values * weights.clone(),
        None => values,
    }
    .sum_dim(1)
}

/// `M ⊙ (∇⁺ − ∇⁻)`: n×m.
fn weighted_derivative(
    divergence: &dyn Divergence,
    x: &Tensor<2>,
    weights: Option<&Tensor<2>>,
    y: &Tensor<2>,
) -> Tensor<2> {
    let split = divergence.split(x, y);
    let derivative = split.positive - split.negative;
    match weights {
        Some(weights) => derivative * weights.clone(),
        None => derivative.expand(y.dims()),
    }
}

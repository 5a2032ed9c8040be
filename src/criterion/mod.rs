//! The outer error E, which λ is tuned for.
//!
//! | name | type | E |
//! |---|---|---|
//! | `train` | [`Training`] | divergence over the entries the factors are fitted to (the paper) |
//! | `held-out` | [`HeldOut`] | divergence over data that the updates never see |
//! | | [`Measured`] | one of these, with its own divergence |
//!
//! The problem holds the data that the updates never see: entries held out at random
//! ([`Problem::speckled`](crate::Problem::speckled)), or a part of the counts of every entry
//! ([`Problem::thinned`](crate::Problem::thinned)). [`OuterError`] chooses by the data.
//! [`Selection::Best`](crate::Selection::Best) keeps the iterate with the lowest outer error.
//!
//! On the training error the best penalty is none: with an exact inner solution E rises with λ on
//! every row. In the paper's setting λ has an effect only because each bunch is short.

mod held_out;
mod measured;
mod outer_error;
mod training;

use std::fmt::Debug;

use burn::tensor::Tensor;

pub use held_out::HeldOut;
pub use measured::Measured;
pub use outer_error::{OuterError, Unseen};
pub use training::Training;

use crate::divergence::Divergence;
use crate::error::Result;
use crate::problem::{Observed, Problem};

/// The entries of X that an error counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entries {
    /// The fitted entries.
    Training,
    /// Data that the updates never see.
    HeldOut,
}

impl Entries {
    /// The sum of their weights in a problem.
    pub fn weight(self, problem: &Problem) -> f64 {
        let [n, m] = problem.shape();
        let own = match self {
            Self::Training => problem
                .mask()
                .map_or((n * m) as f64, |weights| weights.sum()),
            Self::HeldOut => problem
                .held_out_weights()
                .map_or(0.0, |weights| weights.sum()),
        };
        problem.processes().total(own)
    }
}

/// An outer error that is a sum over rows.
///
/// # Shapes
/// `y` is n×m, the floored reconstruction WH.
pub trait Criterion: Debug + Send + Sync {
    /// The name that summaries and errors use.
    fn name(&self) -> String;

    /// Refuses data without the parts that the criterion needs.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict), naming the missing part.
    fn check(&self, problem: &Problem) -> Result<()> {
        let _ = problem;
        Ok(())
    }

    /// `E_i` of each row, n×1, in differentiable operations.
    fn value(&self, divergence: &dyn Divergence, observed: &Observed, y: &Tensor<2>) -> Tensor<2>;

    /// The entries that it counts. (The hierarchical scope uses their number.)
    fn entries(&self) -> Entries {
        Entries::Training
    }

    /// Returns true if E is exactly a divergence over its [entries](Criterion::entries), so that
    /// fused loops can compute it. The divergence is the problem's, or [its
    /// own](Criterion::own_divergence).
    fn is_divergence(&self) -> bool {
        false
    }

    /// The divergence of E, if it is not the problem's.
    fn own_divergence(&self) -> Option<&dyn Divergence> {
        None
    }

    /// Returns true if E is D, the problem's divergence over the fitted entries.
    fn is_training_divergence(&self) -> bool {
        self.is_divergence()
            && self.own_divergence().is_none()
            && self.entries() == Entries::Training
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

/// `Σ_j M_ij d(x_ij, y_ij)`: n×1. Without weights M is 1.
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

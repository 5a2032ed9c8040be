//! Hypergradients: `dE/dλ` through the bunch, in five independent ways.
//!
//! | mode | how | stores | cost |
//! |---|---|---|---|
//! | [`Reverse`] | Burn's tape over the unrolled bunch | every intermediate of a block of rows | about 3 bunches |
//! | [`Forward`] | hand-written tangents, the paper's s_t | w, s | about 2 bunches; n times that for coupled penalties |
//! | [`Adjoint`] | hand-written transposes, the paper's α_t | w⁽⁰⁾ … w⁽ᵀ⁾ | about 3 bunches |
//! | [`Implicit`] | T → ∞ at the fixed point | r×r per row | r tangents and n small solves |
//! | [`FiniteDifferences`] | central differences, extrapolated | nothing | for checks only |
//!
//! Reverse mode works with every plug-in. The hand-written modes need the
//! plug-ins' tangents, know nothing of the tape, and so can vouch for it:
//! see [`check`](crate::check()).

mod adjoint;
mod finite_differences;
mod forward;
mod implicit;
mod reverse;

use std::fmt;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

pub use adjoint::Adjoint;
pub use finite_differences::FiniteDifferences;
pub(crate) use forward::Fault;
pub use forward::Forward;
pub use implicit::Implicit;
pub use reverse::Reverse;

use crate::bunch::Bunch;
use crate::error::Result;

/// The end of a bunch and the hypergradient through it.
///
/// # Shapes
/// `w` n×r, `gradient` n×1; both off the tape.
#[derive(Debug, Clone)]
pub struct Hypergradient {
    /// `w⁽ᵀ⁾` (the fixed point, for the implicit mode).
    pub w: Tensor<2>,
    /// `E(w⁽ᵀ⁾)`, summed over rows.
    pub outer_error: f64,
    /// `dE/dλ_i`.
    pub gradient: Tensor<2>,
}

/// A way to differentiate through a bunch.
pub trait Differentiate: fmt::Debug + Send + Sync {
    /// The mode's name in messages.
    fn name(&self) -> &'static str;

    /// Runs the bunch from w and differentiates it with respect to λ.
    ///
    /// `w⁽⁰⁾` does not depend on λ: the paper's s_0 = 0.
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`](crate::Error::ModeUnsupported) where the mode
    /// lacks something, and what the implicit mode refuses.
    ///
    /// # Shapes
    /// `w` n×r, `lambda` n×1.
    fn compute(&self, bunch: &Bunch, w: &Tensor<2>, lambda: &Tensor<2>) -> Result<Hypergradient>;
}

/// The modes, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Burn's tape: works with every plug-in.
    #[default]
    Reverse,
    /// Hand-written tangents.
    Forward,
    /// Hand-written transposes.
    Adjoint,
    /// T → ∞.
    Implicit,
    /// Central differences, for checks.
    FiniteDifferences,
}

impl Mode {
    /// The method with its default settings.
    pub fn method(self) -> Box<dyn Differentiate> {
        match self {
            Self::Reverse => Box::new(Reverse::default()),
            Self::Forward => Box::new(Forward::default()),
            Self::Adjoint => Box::new(Adjoint),
            Self::Implicit => Box::new(Implicit::default()),
            Self::FiniteDifferences => Box::new(FiniteDifferences::default()),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.method().name())
    }
}

/// The direction in which only λ_row moves: n×1.
fn unit(lambda: &Tensor<2>, row: usize) -> Tensor<2> {
    let one = lambda.ones_like().slice([0..1, 0..1]);
    lambda.zeros_like().slice_assign([row..row + 1, 0..1], one)
}

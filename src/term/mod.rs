//! The data term: everything that touches X.
//!
//! Penalties, ratio, power, normalisation and λ live on n×r and m×r matrices: small, and
//! rightly tensor operations on Burn's tape. X is touched only by
//!
//! - the parts of an update, `N = (M ⊙ ∇⁻) Hᵀ` and `P = (M ⊙ ∇⁺) Hᵀ`, for either factor, and
//! - the errors, `Σ_j M_ij d(x_ij, y_ij)`: D over the entries that are fitted, and E over
//!   these, or over what the updates never see, by D's divergence or by another,
//!
//! and by their derivatives in both factors. A [`DataTerm`] computes these on plain numbers,
//! and `tape` makes two operations of Burn's tape of them, so that reverse mode is Burn's
//! own while no matrix as large as X is ever made.
//!
//! | implementation | how |
//! |---|---|
//! | the reference | tensor operations ([`Rule`](crate::update::Rule), [`Criterion`](crate::Criterion)): any divergence, any device |
//! | `dense` | fused loops over blocks of rows: the β-divergences, and plug-ins with functions of plain numbers |
//! | `quadratic` | β = 2 without weights: products with X and Gram matrices |
//! | `sparse` | a sparse X: entries that are `listed`, and all zeros at once or `streamed` |
//! | `distributed` | the rows of one process by any of these, and sums over all processes |

mod background;
mod dense;
mod distributed;
mod kernel;
mod listed;
mod lists;
mod pass;
mod quadratic;
mod sparse;
mod streamed;
mod strip;
mod tape;

use std::fmt::Debug;
use std::sync::Arc;

pub(crate) use dense::{Asked, fused};
pub(crate) use tape::{
    Kept, denominator, divergences, outer_errors, outer_gradient, parts_with_tangent, update,
    update_and_keep,
};

use crate::factors::Side;

/// Both factors as plain numbers, row by row: "the factor" and "the other factor".
///
/// # Shapes
/// `factor` n×r and `other` m×r for [`Side::W`]; m×r and n×r for [`Side::H`].
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// The factor that is updated.
    pub factor: &'a [f64],
    /// The other one.
    pub other: &'a [f64],
    /// r.
    pub rank: usize,
}

/// The parts of an unpenalised update, or their cotangents.
///
/// # Shapes
/// Both like the factor.
#[derive(Debug, Clone, Default)]
pub struct PartsOf {
    /// N.
    pub negative: Vec<f64>,
    /// P.
    pub positive: Vec<f64>,
}

impl PartsOf {
    /// The same memory for parts of another length; what was in it may still be there.
    fn resized(mut self, length: usize) -> Self {
        for part in [&mut self.negative, &mut self.positive] {
            part.resize(length, 0.0);
        }
        self
    }
}

/// How the factors move.
///
/// # Shapes
/// Like the factors.
#[derive(Debug, Clone, Copy)]
pub struct Moves<'a> {
    /// The factor that is updated.
    pub factor: &'a [f64],
    /// The other one; `None` where it stays.
    pub other: Option<&'a [f64]>,
}

/// Which cotangents are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// That of the factor.
    pub factor: bool,
    /// That of the other factor.
    pub other: bool,
}

/// The cotangents that were wanted, in the shapes of the factors.
#[derive(Debug, Clone, Default)]
pub struct Bars {
    /// Of the factor.
    pub factor: Option<Vec<f64>>,
    /// Of the other factor.
    pub other: Option<Vec<f64>>,
}

/// What P of an update is made of, so that processes need not exchange all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denominator {
    /// Sums of the other factor's columns, the same in every row: KL without weights.
    Sums,
    /// The factor times the other one's Gram matrix: Frobenius without weights.
    Gram,
    /// Anything.
    Other,
}

/// Everything that touches X, on plain numbers. What is said of W's rows is said of H's
/// columns for [`Side::H`].
pub trait DataTerm: Debug + Send + Sync {
    /// n×m, or m×n for H.
    fn shape(&self, side: Side) -> [usize; 2];

    /// N and P of an update of one factor, in `room`: memory that was used before, or none.
    fn parts(&self, side: Side, at: At<'_>, room: PartsOf) -> PartsOf;

    /// What P is made of.
    fn denominator(&self) -> Denominator {
        Denominator::Other
    }

    /// P alone.
    fn denominators(&self, side: Side, at: At<'_>) -> Vec<f64> {
        self.parts(side, at, PartsOf::default()).positive
    }

    /// How N and P move when the factors do.
    fn parts_tangent(&self, side: Side, at: At<'_>, moves: Moves<'_>) -> PartsOf;

    /// The cotangents of the factors, given those of N and P.
    fn parts_cotangent(&self, side: Side, at: At<'_>, of: &PartsOf, needs: Needs) -> Bars;

    /// D of one side's rows, over the entries that are fitted.
    fn divergences(&self, side: Side, at: At<'_>) -> Vec<f64>;

    /// E of W's rows.
    fn outer_errors(&self, at: At<'_>) -> Vec<f64>;

    /// The cotangents of W and Hᵀ, given those of E of the rows.
    fn outer_cotangent(&self, at: At<'_>, of: &[f64], needs: Needs) -> Bars;
}

/// A data term that several bunches share.
pub type SharedTerm = Arc<dyn DataTerm>;

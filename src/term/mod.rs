//! The data term: everything that touches X.
//!
//! Penalties, ratio, power, normalisation and λ are small n×r and m×r matrices. Only these read X:
//!
//! - the parts of an update, `N = (M ⊙ ∇⁻) Hᵀ` and `P = (M ⊙ ∇⁺) Hᵀ`, for either factor, and
//! - the errors, `Σ_j M_ij d(x_ij, y_ij)`: D over the fitted entries, and E over these or over data
//!   that the updates never see, by D's divergence or by another,
//!
//! and their derivatives in both factors. A [`DataTerm`] computes these on plain numbers, and
//! `tape` makes two operations on Burn's tape of them: a whole update, with ratio and power
//! (`update`), and the errors. So reverse mode is Burn's own, but no matrix as large as X is made.
//! The paper's bunch on a sparse X needs no tape: `rows` carries the derivatives along.
//!
//! The reference is not one of these: it is the same in tensor operations
//! ([`Rule`](crate::update::Rule), [`Criterion`](crate::Criterion)), for any divergence and any device.
//!
//! | implementation | method |
//! |---|---|
//! | `dense` | fused loops over blocks of rows: the β-divergences, and plug-ins with functions of plain numbers |
//! | `quadratic` | β = 2 without weights: products with X and Gram matrices |
//! | `sparse` | a sparse X: entries that are `listed`, and all zeros at once or `streamed`; `rows` that go through the paper's bunch one by one |
//! | `distributed` | the rows of one process by any of these, and sums over all processes |

mod background;
mod cancelled;
mod columns;
mod cotangent;
mod dense;
mod distributed;
mod entries;
mod kernel;
mod lines;
mod listed;
mod lists;
mod packed;
mod pass;
mod product;
mod quadratic;
mod rows;
mod sparse;
mod streamed;
mod strip;
mod tape;
mod tile;
mod update;
mod walk;

use std::fmt::Debug;
use std::sync::Arc;

pub(crate) use dense::{Asked, fused};
pub(crate) use rows::{RowBunch, RowResults};
pub(crate) use tape::{
    Kept, Penalties, denominator, divergences, outer_errors, outer_gradient, parts_with_tangent,
    update, update_and_keep,
};
pub(crate) use update::{Step, WeightedPenalty, through_penalties};

use rayon::prelude::*;

use crate::factors::Side;
use crate::numerics::rows_in_task;

/// Both factors as plain numbers, row by row: "the factor" and "the other factor".
///
/// # Shapes
/// `factor` n×r and `other` m×r for [`Side::W`]; m×r and n×r for [`Side::H`].
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// The updated factor.
    pub factor: &'a [f64],
    /// The other factor.
    pub other: &'a [f64],
    /// r.
    pub rank: usize,
}

impl At<'_> {
    /// The same with the factors exchanged.
    fn turned(self) -> Self {
        Self {
            factor: self.other,
            other: self.factor,
            rank: self.rank,
        }
    }
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
    /// Calls a function for all rows.
    fn finish(&mut self, rank: usize, then: &Then<'_>) {
        let rows = rows_in_task(rank);
        let tasks = self.negative.par_chunks_mut(rows * rank);
        let tasks = tasks.zip(self.positive.par_chunks_mut(rows * rank));
        tasks
            .enumerate()
            .for_each(|(task, (negative, positive))| then(task * rows, negative, positive));
    }

    /// The same memory for parts of another length. Old numbers may still be in it.
    fn resized(mut self, length: usize) -> Self {
        for part in [&mut self.negative, &mut self.positive] {
            part.resize(length, 0.0);
        }
        self
    }
}

/// What remains to be done with N and P of some rows: a function of the index of the first row, and of
/// both parts.
pub type Then<'a> = dyn Fn(usize, &mut [f64], &mut [f64]) + Sync + 'a;

/// The directions of the factors.
///
/// # Shapes
/// Like the factors.
#[derive(Debug, Clone, Copy)]
pub struct Moves<'a> {
    /// The updated factor.
    pub factor: &'a [f64],
    /// The direction of the other factor. `None` if it is fixed.
    pub other: Option<&'a [f64]>,
}

/// The requested cotangents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// True for that of the factor.
    pub factor: bool,
    /// True for that of the other factor.
    pub other: bool,
}

impl Needs {
    /// Neither: a bunch's first update, because its start does not depend on λ.
    pub(super) const NOTHING: Self = Self {
        factor: false,
        other: false,
    };
}

/// The requested cotangents, in the shapes of the factors.
#[derive(Debug, Clone, Default)]
pub struct Bars {
    /// Cotangent of the factor.
    pub factor: Option<Vec<f64>>,
    /// Cotangent of the other factor.
    pub other: Option<Vec<f64>>,
}

/// The structure of P of an update, so that processes need not exchange all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denominator {
    /// Sums of the other factor's columns, the same in every row: KL without weights.
    Sums,
    /// The factor times the other one's Gram matrix: Frobenius without weights.
    Gram,
    /// Any other.
    Other,
}

/// Everything that touches X, on plain numbers. For [`Side::H`], statements about W's rows hold for
/// H's columns.
pub trait DataTerm: Debug + Send + Sync {
    /// n×m, or m×n for H.
    fn shape(&self, side: Side) -> [usize; 2];

    /// N and P of an update of one factor, in `room`, which is reused memory or empty.
    fn parts(&self, side: Side, at: At<'_>, room: PartsOf) -> PartsOf;

    /// [`parts`](Self::parts) after `then` was called for all rows: if possible, while their numbers
    /// are still in the cache.
    fn finished_parts(&self, side: Side, at: At<'_>, room: PartsOf, then: &Then<'_>) -> PartsOf {
        let mut parts = self.parts(side, at, room);
        parts.finish(at.rank, then);
        parts
    }

    /// N alone, in `room`, and the row that P has everywhere: [`Denominator::Sums`]. `None` if the term
    /// has no cheaper way than [`parts`](Self::parts).
    fn numerators(
        &self,
        side: Side,
        at: At<'_>,
        room: &dyn Fn() -> Vec<f64>,
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        let _ = (side, at, room);
        None
    }

    /// Returns true if it supports [`rows_through`](Self::rows_through).
    fn takes_rows(&self) -> bool {
        false
    }

    /// T updates of W's rows in place, one row after the other, and E at their end.
    ///
    /// # Shapes
    /// `w` n×r, `h` m×r.
    fn rows_through(&self, _bunch: RowBunch<'_>, _w: &mut [f64], _h: &[f64]) -> RowResults {
        unreachable!("it is called for terms that support it")
    }

    /// The structure of P.
    fn denominator(&self) -> Denominator {
        Denominator::Other
    }

    /// P alone.
    fn denominators(&self, side: Side, at: At<'_>) -> Vec<f64> {
        self.parts(side, at, PartsOf::default()).positive
    }

    /// The tangents of N and P, from the directions of the factors.
    fn parts_tangent(&self, side: Side, at: At<'_>, moves: Moves<'_>) -> PartsOf;

    /// The cotangents of the factors, from those of N and P.
    fn parts_cotangent(&self, side: Side, at: At<'_>, of: &PartsOf, needs: Needs) -> Bars;

    /// D of one side's rows, over the fitted entries.
    fn divergences(&self, side: Side, at: At<'_>) -> Vec<f64>;

    /// E of W's rows.
    fn outer_errors(&self, at: At<'_>) -> Vec<f64>;

    /// E of W's rows, and the derivative of each in its row of W.
    ///
    /// # Shapes
    /// n and n×r.
    fn outer_slopes(&self, at: At<'_>) -> (Vec<f64>, Vec<f64>) {
        let errors = self.outer_errors(at);
        let needs = Needs {
            factor: true,
            other: false,
        };
        let bars = self.outer_cotangent(at, &vec![1.0; errors.len()], needs);
        (errors, bars.factor.expect("it was asked for"))
    }

    /// The cotangents of W and Hᵀ, from those of the rows' E.
    fn outer_cotangent(&self, at: At<'_>, of: &[f64], needs: Needs) -> Bars;
}

/// A data term that several bunches share.
pub type SharedTerm = Arc<dyn DataTerm>;

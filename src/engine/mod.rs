//! How an iteration is computed: on Burn's tensors, or fused.
//!
//! | engine | how | where |
//! |---|---|---|
//! | autodiff | tensor operations; hypergradients by any [`Mode`], reverse by default | everything, your own plug-ins included |
//! | joint | tensor operations on both factors: bunches over H or over both, several tuned penalties, weights of any scope | what [`joint`](mod@crate::joint) describes; named autodiff in summaries |
//! | fused | hand-written loops: a block of rows goes through all T updates, value and derivative together, while its x stays in the cache | β-divergences; ℓ1, ½ℓ2², group, squared ℓ1, Hoyer and no penalty, also summed; masks; training and held-out error |
//!
//! Autodiff and fused compute the same numbers, and a run with [`EngineChoice::Auto`] proves it
//! on its own data: its first iteration is computed by both engines, the
//! hypergradient by Burn's reverse mode, and a difference above
//! [`tolerance`] ends the run.
//!
//! # Inside the fused engine
//!
//! `lanes` wraps the processor's vectors (crate pulp: AVX-512, AVX2 or NEON, chosen
//! when the program runs), `functions` adds logarithm and exponential, `entry` has
//! the divergences and `term` the penalties. `kernel` passes over columns, `step`
//! turns its sums into an update, `block` strings T of them together, `fused` deals
//! out blocks to threads. Lanes are rows, so no sum runs across lanes, and the
//! result is the same in every bit for any number of threads.
//!
//! [`Mode`]: crate::Mode

mod agreement;
mod autodiff;
mod block;
mod bunch;
mod entry;
mod evaluate;
mod functions;
mod fused;
mod iterate;
mod joint;
mod kernel;
mod lanes;
mod matrix;
mod pass;
mod plan;
mod real;
mod sample;
mod scratch;
mod step;
mod term;

use std::fmt;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

pub(crate) use self::entry::{Entry, Frobenius, General, ItakuraSaito, KullbackLeibler};
pub(crate) use self::lanes::{Lanes, Real};
pub(crate) use self::matrix::lanes_here;
pub(crate) use self::scratch::{Aligned, MOST_LANES};
pub(crate) use agreement::agreement;
pub use agreement::{COMPARED_UPDATES, tolerance};
pub(crate) use autodiff::Autodiff;
pub use bunch::FusedBunch;
pub(crate) use iterate::FusedEngine;
pub(crate) use joint::Joint;
pub(crate) use plan::Plan;
pub use sample::COMPARED_ENTRIES;

use crate::error::Result;
use crate::factors::Factors;
use crate::joint::Data;
use crate::problem::Problem;

/// Which engine a run uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineChoice {
    /// Fused where every part of the run can be, after a check against autodiff;
    /// otherwise autodiff.
    #[default]
    Auto,
    /// Tensor operations.
    Autodiff,
    /// Fused, without the check.
    Fused,
}

/// Which engine a run did use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineUsed {
    /// Tensor operations.
    Autodiff,
    /// Fused, not compared with autodiff.
    Fused,
    /// Fused, with the largest relative difference from autodiff in the first
    /// iteration: of H, W and the hypergradient.
    Checked(f64),
}

impl EngineUsed {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Autodiff => "autodiff",
            Self::Fused | Self::Checked(_) => "fused",
        }
    }

    /// The largest relative difference from autodiff, where it was taken.
    pub fn difference(self) -> Option<f64> {
        match self {
            Self::Checked(difference) => Some(difference),
            Self::Autodiff | Self::Fused => None,
        }
    }
}

impl fmt::Display for EngineUsed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.difference() {
            Some(difference) => write!(
                formatter,
                "{} (within {difference:.1e} of autodiff)",
                self.name()
            ),
            None => formatter.write_str(self.name()),
        }
    }
}

/// How well a pair of factors does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Errors {
    /// E, summed over rows.
    pub(crate) outer_error: f64,
    /// D, summed over rows.
    pub(crate) divergence: f64,
}

/// The steps of an iteration that touch X.
pub(crate) trait Engine {
    /// One update of the factor that the bunch leaves alone: of H, in the paper.
    fn update_other(&mut self, problem: &Problem, factors: &mut Factors);

    /// The bunch: T updates of W (or of what the engine's bunch covers), what they lead
    /// to, and, where a matrix for it is given, the hypergradient, in the shape of λ.
    ///
    /// # Errors
    /// What the hypergradient's mode refuses.
    fn bunch(
        &mut self,
        problem: &Problem,
        factors: &mut Factors,
        lambda: &Array2<f64>,
        gradient: Option<&mut Array2<f64>>,
    ) -> Result<Errors>;

    /// The data of its bunches, where others can be made on it.
    fn data(&self) -> Option<&Data> {
        None
    }

    /// How far it is from Burn's tape on a sample of the data, where it compares itself.
    fn sampled_agreement(
        &self,
        problem: &Problem,
        factors: &Factors,
        lambda: &Array2<f64>,
        tuned: bool,
    ) -> Option<Result<Option<f64>>> {
        let _ = (problem, factors, lambda, tuned);
        None
    }

    /// Leaves D of the bunches that follow out (NaN), if it costs a pass of its own.
    fn leave_divergence_out(&mut self) {}

    /// Sets T of the bunches that follow.
    fn set_length(&mut self, length: usize);

    /// E and D as they are, and D of each row.
    fn errors(&mut self, problem: &Problem, factors: &Factors) -> (Errors, Vec<f64>);

    /// `Σ_terms λ_i r(w_i)` over all rows.
    fn penalty(&self, problem: &Problem, factors: &Factors, lambda: &Array2<f64>) -> f64;
}

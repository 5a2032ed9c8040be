//! Engines, which compute iterations: on Burn's tensors, or fused.
//!
//! | engine | method | supports |
//! |---|---|---|
//! | autodiff | tensor operations as large as X; hypergradients by any [`Mode`], reverse by default | everything, your own plug-ins included |
//! | fused | a data term for everything that touches X, tensor operations for the rest; any [`Mode`] | β-divergences; any penalty, scope, span, mask; training and held-out error |
//! | fused | hand-written loops for the paper's bunch: a block of rows (a single row of a sparse X) goes through all T updates, value and derivative together, while its x stays in the cache | β-divergences; ℓ1, ½ℓ2², group, squared ℓ1, Hoyer and no penalty, also summed |
//!
//! Both compute the same numbers. A run with [`EngineChoice::Auto`] checks this on its own data:
//! both engines compute its first iteration (on some rows and columns of a large X), with the
//! hypergradient by Burn's reverse mode. A difference above [`tolerance`] ends the run.
//!
//! # Inside the paper's loops
//!
//! `lanes` wraps the processor's vectors (crate pulp: AVX-512, AVX2 or NEON, chosen at run time),
//! `functions` adds logarithm and exponential, `entry` has the divergences and `term` the
//! penalties. `kernel` passes over columns, `step` turns its sums into an update, `block` makes T
//! of them, `fused` distributes blocks to threads. Each lane holds a row, so no sum runs across
//! lanes, and the result has the same bits for any number of threads.
//!
//! [`Mode`]: crate::Mode

mod agreement;
mod any_entry;
mod block;
mod bunch;
mod entry;
mod evaluate;
mod functions;
mod fused;
mod iterate;
mod kernel;
mod lanes;
mod matrix;
mod pass;
mod plan;
mod plug_in;
mod real;
mod scratch;
mod setup;
mod split_loops;
mod step;
mod taped;
mod term;

use std::fmt;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

pub(crate) use self::any_entry::{AnyEntry, BetaEntry, with_beta, with_entry};
pub(crate) use self::entry::{Entry, Frobenius, ItakuraSaito, KullbackLeibler};
pub(crate) use self::kernel::Sums;
pub(crate) use self::lanes::{Lanes, Real};
pub(crate) use self::matrix::lanes_here;
pub(crate) use self::scratch::{Aligned, MOST_LANES};
pub(crate) use self::step::Update;
pub(crate) use agreement::agreement;
pub use agreement::{Agreement, tolerance};
pub use bunch::FusedBunch;
pub(crate) use iterate::FusedEngine;
pub(crate) use plan::Plan;
pub(crate) use setup::Setup;

use crate::bunch::Data;
use crate::error::Result;
use crate::factors::Factors;
use crate::problem::Problem;
use crate::words::words;

/// The choice of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineChoice {
    /// Fused if every part of the run can be fused, with a check against autodiff; otherwise
    /// autodiff.
    #[default]
    Auto,
    /// Tensor operations.
    Autodiff,
    /// Fused, without the check.
    Fused,
}

words!(EngineChoice, "engine" { Auto = "auto", Autodiff = "autodiff", Fused = "fused" });

/// The engine that a run has used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineUsed {
    /// Tensor operations.
    Autodiff,
    /// Fused, not compared with autodiff.
    Fused,
    /// Fused, and compared with autodiff in the first iteration.
    Checked(Agreement),
}

impl EngineUsed {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Autodiff => "autodiff",
            Self::Fused | Self::Checked(_) => "fused",
        }
    }

    /// The largest relative difference from autodiff, if it was measured.
    pub fn difference(self) -> Option<f64> {
        match self {
            Self::Checked(agreement) => Some(agreement.difference),
            Self::Autodiff | Self::Fused => None,
        }
    }

    /// The numbers of rows and columns of X that it was measured on.
    pub fn compared_on(self) -> Option<[usize; 2]> {
        match self {
            Self::Checked(agreement) => Some([agreement.rows, agreement.columns]),
            Self::Autodiff | Self::Fused => None,
        }
    }
}

impl fmt::Display for EngineUsed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())?;
        let Self::Checked(agreement) = self else {
            return Ok(());
        };
        let Agreement {
            difference,
            rows,
            columns,
            all,
        } = agreement;
        write!(formatter, " (within {difference:.1e} of autodiff")?;
        if !all {
            write!(formatter, " on {rows} rows × {columns} columns")?;
        }
        formatter.write_str(")")
    }
}

/// The errors of a pair of factors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Errors {
    /// E, summed over rows.
    pub(crate) outer_error: f64,
    /// D, summed over rows.
    pub(crate) divergence: f64,
}

/// The steps of an iteration that touch X.
pub(crate) trait Engine {
    /// One update of the factor that the bunch does not update: H in the paper.
    fn update_other(&mut self, problem: &Problem, factors: &mut Factors);

    /// The bunch: T updates of W (or of the factors of the engine's bunch). Returns the errors at
    /// its end. If a matrix for it is given, it also computes the hypergradient in the shape of λ.
    ///
    /// # Errors
    /// Those of the hypergradient's mode.
    fn bunch(
        &mut self,
        problem: &Problem,
        factors: &mut Factors,
        lambda: &Array2<f64>,
        gradient: Option<&mut Array2<f64>>,
    ) -> Result<Errors>;

    /// The data of its bunches, if other bunches can use them.
    fn data(&self) -> Option<&Data> {
        None
    }

    /// Leaves out D of the following bunches (NaN), if it needs an extra pass.
    fn leave_divergence_out(&mut self) {}

    /// E and D of the factors, and D of each row.
    fn errors(&mut self, problem: &Problem, factors: &Factors) -> (Errors, Vec<f64>);

    /// `Σ_terms λ_i r(w_i)` over all rows.
    fn penalty(&self, problem: &Problem, factors: &Factors, lambda: &Array2<f64>) -> f64;
}

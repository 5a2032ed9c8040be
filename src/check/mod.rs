//! Is this hypergradient right? A checker for plug-ins, and for altbi itself.
//!
//! Reverse mode (Burn's tape) is compared with the modes that know nothing of
//! the tape: hand-written tangents, hand-written transposes, and finite
//! differences. Each comparison ends in a [`Verdict`]. Two **negative controls**
//! put known mistakes into the forward mode (the outer gradient as the paper
//! prints it, and a flipped sign in the tangent): if they came out as passes,
//! the checker would be worthless, and it says so.
//!
//! | comparison with reverse | tolerance (64 bits) | (32 bits) |
//! |---|---|---|
//! | forward, adjoint | 1e-10 | 1e-3 |
//! | finite differences | 1e-6 | unchecked |
//!
//! Differences are relative to the largest entry of the hypergradient.
//!
//! ```
//! use altbi::{Beta, Precision, Problem, SquaredL2, check};
//! let x = ndarray::array![[1.0, 0.5, 2.0], [0.2, 3.0, 1.0]];
//! let problem = Problem::new(&x, Precision::F64)?;
//! let report = check(&problem, Beta(0.5), SquaredL2)?;
//! report.assert_consistent();
//! println!("{report}");
//! # Ok::<(), altbi::Error>(())
//! ```

mod cases;
mod report;

use std::sync::Arc;

use burn::tensor::Tensor;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

pub use cases::{BETAS, BUNCHES, Case, SHAPES, cases};
pub use report::{CheckReport, Comparison, Control, Verdict};

use crate::bunch::Bunch;
use crate::criterion::Training;
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::factors::uniform;
use crate::hypergradient::{Differentiate, Fault, Forward, Mode};
use crate::numerics::{Precision, to_host};
use crate::penalty::{Penalty, PenaltyTerm};
use crate::problem::Problem;
use crate::update::Rule;

/// How far a mode may be from reverse mode, relative to the largest entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerances {
    /// Forward and adjoint mode.
    pub exact: f64,
    /// Finite differences; `None` leaves them unchecked.
    pub differences: Option<f64>,
}

impl Tolerances {
    /// What a precision can promise.
    pub fn of(precision: Precision) -> Self {
        match precision {
            Precision::F64 => Self {
                exact: 1e-10,
                differences: Some(1e-6),
            },
            Precision::F32 => Self {
                exact: 1e-3,
                differences: None,
            },
        }
    }
}

/// The modes that are compared with reverse mode.
pub const MODES: [Mode; 3] = [Mode::Forward, Mode::Adjoint, Mode::FiniteDifferences];

/// Checks a divergence and a penalty on a problem: a bunch of four updates from
/// random factors.
///
/// # Errors
/// [`Error::OutsideDomain`] for data that the divergence cannot measure.
pub fn check(
    problem: &Problem,
    divergence: impl Divergence + 'static,
    penalty: impl Penalty + 'static,
) -> Result<CheckReport> {
    let [n, m] = problem.shape();
    let rule = Rule::new(Arc::new(divergence), vec![PenaltyTerm::tuned(penalty)]);
    let draw = Draw::new(problem, &rule, n.min(m).min(3), 0)?;
    let bunch = Bunch::with_rule(problem, &draw.h, rule, Arc::new(Training), 4)?;
    check_bunch(&bunch, &draw.w, &draw.lambda, &MODES)
}

/// Factors and λ of sensible size for a problem, by a seed.
#[derive(Debug, Clone)]
pub struct Draw {
    /// W, n×r, scaled so that WH has the mean of X.
    pub w: Tensor<2>,
    /// H, r×m.
    pub h: Tensor<2>,
    /// λ, n×1: between 0.1 and 1.1 times the weight at which the penalty pulls
    /// as hard as the fit, so that the hypergradient is not lost in rounding.
    pub lambda: Tensor<2>,
}

impl Draw {
    /// Draws them; any rank ≥ 1 will do for a single bunch.
    ///
    /// # Errors
    /// [`Error::Setting`] for rank 0.
    pub fn new(problem: &Problem, rule: &Rule, rank: usize, seed: u64) -> Result<Self> {
        if rank == 0 {
            return Err(Error::Setting {
                setting: "the rank",
                value: 0.0,
                range: "at least 1",
            });
        }
        let [n, m] = problem.shape();
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let w = uniform(&mut generator, n, rank) + 0.1;
        let h = uniform(&mut generator, rank, m) + 0.1;
        let lambda = uniform(&mut generator, n, 1) + 0.1;
        let scale = problem.x().sum() / w.dot(&h).sum();
        let w = problem.tensor("W", &(w * scale), [n, rank])?;
        let h = problem.tensor("H", &h, [rank, m])?;
        let natural = rule.natural_lambda(problem.rows(), &w, &h);
        let lambda = problem.tensor("λ", &(lambda * natural), [n, 1])?;
        Ok(Self { w, h, lambda })
    }
}

/// Compares modes with reverse mode on a bunch of your own.
///
/// A mode that refuses (a plug-in without tangent, say) comes out as
/// [`Verdict::Unchecked`] with its reason.
///
/// # Errors
/// [`Error::Shape`] for a w or λ that does not fit the bunch.
///
/// # Shapes
/// `w` n×r, `lambda` n×1.
pub fn check_bunch(
    bunch: &Bunch,
    w: &Tensor<2>,
    lambda: &Tensor<2>,
    modes: &[Mode],
) -> Result<CheckReport> {
    let tolerances = Tolerances::of(Precision::of(w));
    let reference = to_host(&bunch.hypergradient(w, lambda, Mode::Reverse)?.gradient);
    let comparisons = modes.iter().map(|&mode| {
        let tolerance = match mode {
            Mode::FiniteDifferences => tolerances.differences,
            _ => Some(tolerances.exact),
        };
        match (tolerance, bunch.hypergradient(w, lambda, mode)) {
            (None, _) => Comparison::unchecked(mode, "too coarse in 32 bits".into()),
            (_, Err(refusal)) => Comparison::unchecked(mode, refusal.to_string()),
            (Some(tolerance), Ok(result)) => {
                let difference = relative_difference(&to_host(&result.gradient), &reference);
                Comparison::measured(mode, difference, tolerance)
            }
        }
    });
    let controls = [Fault::PrintedOuterGradient, Fault::FlippedSign].map(|fault| {
        let outcome = Forward { fault }.compute(bunch, w, lambda);
        let difference = outcome
            .ok()
            .map(|result| relative_difference(&to_host(&result.gradient), &reference));
        // Where λ plays no part (no penalty, a lone row under smoothness) every
        // formula gives 0, and a mistake in it cannot show.
        let can_show = reference.iter().any(|g| *g != 0.0);
        Control::new(fault, difference.filter(|_| can_show), tolerances.exact)
    });
    Ok(CheckReport {
        hypergradient: reference.clone(),
        comparisons: comparisons.collect(),
        controls: controls.to_vec(),
    })
}

/// `max |a − b| / max |b|`; absolute where b is all zero.
pub fn relative_difference(a: &[f64], b: &[f64]) -> f64 {
    let largest = b.iter().fold(0.0f64, |most, b| most.max(b.abs()));
    let scale = if largest > 0.0 { largest } else { 1.0 };
    a.iter().zip(b).fold(0.0f64, |most, (a, b)| {
        let difference = (a - b).abs() / scale;
        // A NaN must not vanish in max().
        if difference.is_nan() {
            f64::INFINITY
        } else {
            most.max(difference)
        }
    })
}

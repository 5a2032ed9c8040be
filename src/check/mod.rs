//! Is this hypergradient right? A checker for plug-ins, and for altbi itself.
//!
//! Reverse mode (Burn's tape) is compared with the modes that know nothing of
//! the tape: hand-written tangents, hand-written transposes, and finite
//! differences. Each comparison ends in a [`Verdict`]. **Negative controls** plant known
//! mistakes: two in forward mode (the outer gradient as the paper prints it, and a flipped
//! sign in the tangent), and one in the hypergradient that finite differences are compared
//! with (an update less in the chain), so that a penalty without tangents has one too. If
//! they came out as passes, the checker would be worthless, and it says so.
//!
//! | comparison with reverse | tolerance (64 bits) | (32 bits) |
//! |---|---|---|
//! | forward, adjoint | 1e-10 | 1e-3 |
//! | finite differences | 1e-6 | unchecked |
//!
//! Differences are relative to the largest entry of the hypergradient. Where the
//! hypergradient is so small that rounding alone explains a difference, the
//! comparison is unchecked, not a mismatch.
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

mod bias;
mod cases;
mod joint;
mod report;

use std::sync::Arc;

use burn::tensor::Tensor;
use ndarray::Array2;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

pub use bias::{Bias, BiasRow, LENGTHS, bias};
pub use cases::{BETAS, BUNCHES, Case, SHAPES, cases};
pub use joint::JointDraw;
pub use report::{CheckReport, Comparison, Control, Verdict};

use crate::bunch::{Bunch, check_length};
use crate::criterion::Training;
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::factors::{GivenFactors, scaled_to_mean, uniform};
use crate::hypergradient::{Differentiate, Fault, FiniteDifferences, Forward, Mode};
use crate::joint::{JointBunch, Pair, forward_gradients};
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

/// Factors and λ of sensible size for a problem: given, or drawn by a seed.
///
/// # Shapes
/// W n×r, H r×m, λ n×1.
#[derive(Debug, Clone)]
pub struct Draw {
    /// W; a drawn one is scaled so that WH has the mean of X.
    pub w: Tensor<2>,
    /// H.
    pub h: Tensor<2>,
    /// λ; a drawn one lies between 0.1 and 0.6 times the weight at which the
    /// penalty pulls as hard as the fit: so much that the hypergradient is not lost
    /// in rounding, and not so much that a row collapses to zero.
    pub lambda: Tensor<2>,
}

impl Draw {
    /// Draws all three; any rank ≥ 1 will do for a single bunch.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub fn new(problem: &Problem, rule: &Rule, rank: usize, seed: u64) -> Result<Self> {
        Self::complete(problem, rule, rank, seed, &GivenFactors::default(), None)
    }

    /// Draws what is not given, to fit what is.
    ///
    /// # Errors
    /// [`Error::Setting`] for a rank that is 0 or more than sixteen times the
    /// larger side of X; [`Error::Shape`] and its kind for what is given.
    pub fn complete(
        problem: &Problem,
        rule: &Rule,
        rank: usize,
        seed: u64,
        given: &GivenFactors,
        given_lambda: Option<&Array2<f64>>,
    ) -> Result<Self> {
        let [n, m] = problem.shape();
        if rank == 0 || rank > 16 * n.max(m) {
            return Err(Error::Setting {
                setting: "the rank",
                value: rank as f64,
                range: "at least 1 and at most sixteen times the larger side of X",
            });
        }
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let w = uniform(&mut generator, n, rank) + 0.1;
        let h = uniform(&mut generator, rank, m) + 0.1;
        let lambda = uniform(&mut generator, n, 1) * 0.5 + 0.1;
        let h = given.h.as_ref().unwrap_or(&h);
        let h_tensor = problem.tensor("H", h, [rank, m])?;
        let w = match &given.w {
            Some(w) => w.clone(),
            None => scaled_to_mean(w, h, problem.mean()),
        };
        let w = problem.tensor("W", &w, [n, rank])?;
        let lambda = match given_lambda {
            Some(lambda) => problem.tensor("λ", lambda, [n, 1])?,
            None => {
                let natural = rule.natural_lambda(problem.rows(), &w, &h_tensor);
                problem.tensor("λ", &lambda, [n, 1])? * natural
            }
        };
        Ok(Self {
            w,
            h: h_tensor,
            lambda,
        })
    }
}

/// Compares modes with reverse mode on a bunch of your own.
///
/// A mode that refuses (a plug-in without tangent, say) comes out as
/// [`Verdict::Unchecked`] with its reason; so does a comparison whose difference
/// is no larger than rounding makes it.
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
    // Shapes first: what measures rounding takes them for granted.
    bunch.check_shapes(w, lambda)?;
    let rounding = Rounding::of(bunch, w, lambda);
    let by_mode = |mode| {
        let result = bunch.hypergradient(w, lambda, mode)?;
        Ok(to_host(&result.gradient))
    };
    let with_fault = |fault| {
        let result = Forward { fault }.compute(bunch, w, lambda)?;
        Ok(to_host(&result.gradient))
    };
    let shorter = || {
        let shorter = bunch.with_length(bunch.length - 1)?;
        let result = shorter.hypergradient(w, lambda, Mode::Reverse)?;
        Ok(to_host(&result.gradient))
    };
    let tried = Tried {
        by_mode,
        with_fault,
        shorter,
    };
    compare(Precision::of(w), &rounding, modes, tried)
}

/// The same on a bunch over one factor or both, with the weights of all its penalties.
///
/// # Errors
/// [`Error::Shape`] for factors or weights that do not fit the bunch.
pub fn check_joint(
    bunch: &JointBunch,
    pair: &Pair,
    lambda: &[Tensor<2>],
    modes: &[Mode],
) -> Result<CheckReport> {
    let flat = |gradients: &[Tensor<2>]| gradients.iter().flat_map(to_host).collect();
    let by_mode = |mode| {
        let result = bunch.hypergradient(pair, lambda, mode)?;
        Ok(flat(&result.gradients))
    };
    let with_fault = |fault| {
        let result = forward_gradients(bunch, pair, lambda, fault)?;
        Ok(flat(&result.gradients))
    };
    // Shapes first: what measures rounding takes them for granted.
    by_mode(Mode::Reverse)?;
    // What differentiates has no part in the coarseness of differences.
    let rounding = Rounding {
        of_tangents: bunch.rounding(pair, lambda),
        of_differences: 100.0 * bunch.resolution(pair, lambda),
    };
    let precision = Precision::of(&pair.w);
    let shorter = || {
        let mut shorter = bunch.clone();
        shorter.length = bunch.length - 1;
        check_length(shorter.length)?;
        let result = shorter.hypergradient(pair, lambda, Mode::Reverse)?;
        Ok(flat(&result.gradients))
    };
    let tried = Tried {
        by_mode,
        with_fault,
        shorter,
    };
    compare(precision, &rounding, modes, tried)
}

/// How a hypergradient is computed, rightly and wrongly.
struct Tried<ByMode, WithFault, Shorter> {
    by_mode: ByMode,
    /// In forward mode.
    with_fault: WithFault,
    /// In reverse mode, through one update less.
    shorter: Shorter,
}

/// Every mode against reverse mode, and the planted mistakes.
fn compare(
    precision: Precision,
    rounding: &Rounding,
    modes: &[Mode],
    tried: Tried<
        impl Fn(Mode) -> Result<Vec<f64>>,
        impl Fn(Fault) -> Result<Vec<f64>>,
        impl Fn() -> Result<Vec<f64>>,
    >,
) -> Result<CheckReport> {
    let Tried {
        by_mode,
        with_fault,
        shorter,
    } = tried;
    let tolerances = Tolerances::of(precision);
    let reference = by_mode(Mode::Reverse)?;
    let nothing_to_see = reference.iter().all(|g| *g == 0.0);
    let mut by_differences = None;
    let comparisons = modes.iter().map(|&mode| {
        let (tolerance, rounding) = match mode {
            Mode::FiniteDifferences => (tolerances.differences, rounding.of_differences),
            _ => (Some(tolerances.exact), rounding.of_tangents),
        };
        match (tolerance, by_mode(mode)) {
            (None, _) => Comparison::unchecked(mode, "too coarse in 32 bits".into()),
            (_, Err(refusal)) => Comparison::unchecked(mode, refusal.to_string()),
            (Some(tolerance), Ok(gradient)) => {
                let difference = relative_difference(&gradient, &reference);
                let absolute = largest_difference(&gradient, &reference);
                if mode == Mode::FiniteDifferences {
                    by_differences = Some(gradient);
                }
                if difference > tolerance && absolute <= rounding {
                    Comparison::unchecked(mode, format!("lost in rounding ({rounding:.1e})"))
                } else {
                    Comparison::measured(mode, difference, tolerance)
                }
            }
        }
    });
    let comparisons: Vec<Comparison> = comparisons.collect();
    let controls = [Fault::PrintedOuterGradient, Fault::FlippedSign].map(|fault| {
        let gradient = with_fault(fault).ok();
        // Where λ plays no part (no penalty, a lone row under smoothness) every
        // formula gives 0, and a mistake in it cannot show.
        let shows = |wrong: &Vec<f64>| {
            !nothing_to_see && largest_difference(wrong, &reference) > rounding.of_tangents
        };
        let difference = gradient
            .filter(shows)
            .map(|wrong| relative_difference(&wrong, &reference));
        Control::new(fault.describe(), difference, tolerances.exact)
    });
    let mut controls = controls.to_vec();
    if let (Some(differences), Some(tolerance)) = (by_differences, tolerances.differences) {
        // One update has none before it: then nothing of the derivative is left.
        let wrong = shorter().unwrap_or_else(|_| vec![0.0; reference.len()]);
        let size = reference.iter().fold(0.0f64, |most, g| most.max(g.abs()));
        let planted = largest_difference(&wrong, &reference);
        // (In a bunch that has come to rest, one update less makes no difference.)
        let shows = planted > rounding.of_differences && planted > 10.0 * tolerance * size;
        let found = shows.then(|| largest_difference(&differences, &wrong) / size);
        controls.push(Control::new(
            "an update left out of the chain",
            found,
            tolerance,
        ));
    }
    Ok(CheckReport {
        hypergradient: reference,
        comparisons,
        controls,
    })
}

/// What rounding alone can make of `dE/dλ`, largest row.
struct Rounding {
    /// In the modes that differentiate.
    of_tangents: f64,
    /// In finite differences.
    of_differences: f64,
}

impl Rounding {
    /// Terms of g_T that cancel, times |s_T|, times epsilon; a thousand of those,
    /// because errors grow on their way through the bunch.
    fn of(bunch: &Bunch, w: &Tensor<2>, lambda: &Tensor<2>) -> Self {
        let moved = Forward::default().tangent(bunch, w, lambda, &lambda.ones_like());
        let of_tangents = moved.map_or(0.0, |(end, tangent)| {
            let y = bunch.rule.reconstruct(&end, &bunch.other);
            let split = bunch.rule.divergence.split(&bunch.observed.x, &y);
            let terms = (split.positive + split.negative)
                .expand(y.dims())
                .matmul(bunch.other.clone().transpose());
            let rows = to_host(&(terms * tangent.abs()).sum_dim(1));
            let largest = rows.into_iter().fold(0.0, f64::max);
            1000.0 * Precision::of(w).epsilon() * largest
        });
        let of_differences = FiniteDifferences::default().resolution(bunch, w, lambda);
        Self {
            of_tangents,
            of_differences: 100.0 * of_differences,
        }
    }
}

fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, |most, difference| {
        if difference.is_nan() {
            f64::INFINITY
        } else {
            f64::max(most, difference)
        }
    })
}

/// `max |a − b| / max |b|`; absolute where b is all zero.
pub fn relative_difference(a: &[f64], b: &[f64]) -> f64 {
    let largest = b.iter().fold(0.0f64, |most, b| most.max(b.abs()));
    let scale = if largest > 0.0 { largest } else { 1.0 };
    // A NaN must not vanish in a maximum: it counts as infinite.
    largest_difference(a, b) / scale
}

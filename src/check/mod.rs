//! The gradient checker, for plug-ins and for altbi itself.
//!
//! Reverse mode (Burn's tape) is compared with the modes that do not use the tape: hand-written
//! tangents, hand-written transposes, and finite differences. Each comparison ends in a
//! [`Verdict`]. **Negative controls** plant known mistakes: two in forward mode (the outer gradient
//! as the paper prints it, and a flipped sign in the tangent), and one in the hypergradient that
//! finite differences are compared with (one update less). So a penalty without tangents has one
//! too. If a planted mistake passes, the check fails.
//!
//! | comparison with reverse | tolerance (64 bits) | (32 bits) |
//! |---|---|---|
//! | forward, adjoint | 1e-10 | 1e-3 |
//! | finite differences | 1e-6 | unchecked |
//!
//! Differences are relative to the largest entry of the hypergradient. If the hypergradient is so
//! small that rounding alone explains a difference, the comparison is unchecked, not a mismatch.
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
mod draw;
mod report;

use burn::tensor::Tensor;

#[cfg(test)]
pub(crate) use bias::LENGTHS;
pub(crate) use bias::{Bias, BiasRow, bias};
pub(crate) use cases::{BETAS, Case, cases};
pub(crate) use draw::{Draw, Given};
pub use report::{CheckReport, Verdict};
pub(crate) use report::{Control, FusedComparison, ModeComparison};

use crate::bunch::{Bunch, Pair, Span};
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::hypergradient::{Differentiate, Fault, FiniteDifferences, Forward, Hypergradient, Mode};
use crate::lambda::Scope;
use crate::numerics::{Precision, to_host};
use crate::penalty::Penalty;
use crate::problem::Problem;

/// Largest allowed difference of a mode from reverse mode, relative to the largest entry.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tolerances {
    /// Forward and adjoint mode.
    exact: f64,
    /// Finite differences; `None` leaves them unchecked.
    differences: Option<f64>,
}

impl Tolerances {
    /// The limits for a precision.
    fn of(precision: Precision) -> Self {
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

/// Checks a divergence and a penalty on a problem, with the paper's bunch of four updates from
/// random factors. If the divergence has a [fused](Divergence::fused) form, it also compares a
/// bunch over both factors in that form with the same on tensors.
///
/// # Errors
/// [`Error::OutsideDomain`] for data outside the domain of the divergence.
pub fn check(
    problem: &Problem,
    divergence: impl Divergence + 'static,
    penalty: impl Penalty + 'static,
) -> Result<CheckReport> {
    let [n, m] = problem.shape();
    let bunch = Bunch::new(problem, divergence, penalty, 4)?;
    let draw = Draw::new(problem, &bunch, Scope::Row, n.min(m).min(3), 0)?;
    let mut report = check_bunch(&bunch, &draw.pair, &draw.lambda, &MODES)?;
    let (of_w, of_h) = (bunch.of_w.clone(), bunch.of_h.clone());
    let (criterion, length) = (bunch.criterion.clone(), bunch.length);
    let both = Bunch::with_rules(problem, of_w, of_h, criterion, Span::Both, length)?;
    report.fused = fused_against_tensors(problem, &both, &draw)?;
    Ok(report)
}

/// Compares modes on a bunch of tensors, and the fused data term with it.
pub(crate) fn check_drawn(problem: &Problem, bunch: &Bunch, draw: &Draw) -> Result<CheckReport> {
    let mut report = check_bunch(bunch, &draw.pair, &draw.lambda, &MODES)?;
    report.fused = fused_against_tensors(problem, bunch, draw)?;
    Ok(report)
}

/// Compares updates, outer error and hypergradient of a bunch of tensors with the same bunch on the
/// fused data term. Empty if a part cannot be fused.
fn fused_against_tensors(
    problem: &Problem,
    tensors: &Bunch,
    draw: &Draw,
) -> Result<Vec<FusedComparison>> {
    let (of_w, of_h) = (tensors.of_w.clone(), tensors.of_h.clone());
    let (criterion, length) = (tensors.criterion.clone(), tensors.length);
    let fused = Bunch::fused(problem, of_w, of_h, criterion, tensors.span, length);
    let fused = match fused {
        Ok(fused) => fused,
        Err(Error::EngineUnsupported { .. }) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let [found, expected] =
        [&fused, tensors].map(|bunch| bunch.hypergradient(&draw.pair, &draw.lambda, Mode::Reverse));
    let (found, expected) = (found?, expected?);
    let tolerance = Tolerances::of(problem.precision()).exact;
    let flat = |tensors: &[Tensor<2>]| tensors.iter().flat_map(to_host).collect::<Vec<f64>>();
    let factors = |of: &Hypergradient| flat(&[of.pair.w.clone(), of.pair.h.clone()]);
    // dE/dλ is a difference, so its rounding error is relative to the two terms.
    let (slopes, reference) = (flat(&found.gradients), flat(&expected.gradients));
    let rounding = Rounding::of(tensors, &draw.pair, &draw.lambda).of_tangents;
    let within = largest_difference(&slopes, &reference) <= rounding;
    let compared = [
        (
            "updates",
            relative_difference(&factors(&found), &factors(&expected)),
        ),
        (
            "outer error",
            relative_difference(&[found.outer_error], &[expected.outer_error]),
        ),
        ("hypergradient", relative_difference(&slopes, &reference)),
    ];
    let [updates, error, hypergradient] =
        compared.map(|(what, by)| FusedComparison::new(what, by, tolerance));
    Ok(vec![updates, error, hypergradient.within_rounding(within)])
}

/// Compares modes with reverse mode on your own bunch.
///
/// A mode that refuses (for example because a plug-in has no tangent) gets [`Verdict::Unchecked`]
/// with its reason. So does a comparison whose difference is within rounding.
///
/// # Errors
/// [`Error::Shape`] for factors or weights of another shape.
pub fn check_bunch(
    bunch: &Bunch,
    pair: &Pair,
    lambda: &[Tensor<2>],
    modes: &[Mode],
) -> Result<CheckReport> {
    // Shapes are checked first, because the estimate of rounding relies on them.
    bunch.check(pair, lambda)?;
    let rounding = Rounding::of(bunch, pair, lambda);
    let flat = |result: Hypergradient| result.gradients.iter().flat_map(to_host).collect();
    let tried = Tried {
        by_mode: |mode| bunch.hypergradient(pair, lambda, mode).map(flat),
        with_fault: |fault| Forward { fault }.compute(bunch, pair, lambda).map(flat),
        shorter: || {
            let shorter = bunch.with_length(bunch.length - 1)?;
            shorter.hypergradient(pair, lambda, Mode::Reverse).map(flat)
        },
    };
    compare(Precision::of(&pair.w), &rounding, modes, tried)
}

/// Functions that compute a hypergradient, correctly and with mistakes.
struct Tried<ByMode, WithFault, Shorter> {
    by_mode: ByMode,
    /// With a mistake, in forward mode.
    with_fault: WithFault,
    /// With one update less, in reverse mode.
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
            (None, _) => ModeComparison::unchecked(mode, "too coarse in 32 bits".into()),
            (_, Err(refusal)) => ModeComparison::unchecked(mode, refusal.to_string()),
            (Some(tolerance), Ok(gradient)) => {
                let difference = relative_difference(&gradient, &reference);
                let absolute = largest_difference(&gradient, &reference);
                if mode == Mode::FiniteDifferences {
                    by_differences = Some(gradient);
                }
                if difference > tolerance && absolute <= rounding {
                    ModeComparison::unchecked(mode, format!("lost in rounding ({rounding:.1e})"))
                } else {
                    ModeComparison::measured(mode, difference, tolerance)
                }
            }
        }
    });
    let comparisons: Vec<ModeComparison> = comparisons.collect();
    let controls = [Fault::PrintedOuterGradient, Fault::FlippedSign].map(|fault| {
        let gradient = with_fault(fault).ok();
        // If λ has no effect (no penalty, a single row under smoothness), every formula gives 0,
        // and a mistake in it cannot be noticed.
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
        // With one update less than one, the derivative is zero.
        let wrong = shorter().unwrap_or_else(|_| vec![0.0; reference.len()]);
        let size = reference.iter().fold(0.0f64, |most, g| most.max(g.abs()));
        let planted = largest_difference(&wrong, &reference);
        // (In a converged bunch, one update less makes no difference.)
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
        fused: Vec::new(),
    })
}

/// The size of `dE/dλ` that rounding alone can produce, at the largest weight.
struct Rounding {
    /// Size in the modes that differentiate.
    of_tangents: f64,
    /// Size in finite differences.
    of_differences: f64,
}

impl Rounding {
    /// The terms that cancel, times a thousand epsilon, because errors grow through the bunch.
    fn of(bunch: &Bunch, pair: &Pair, lambda: &[Tensor<2>]) -> Self {
        let epsilon = Precision::of(&pair.w).epsilon();
        let differences = FiniteDifferences::default();
        Self {
            of_tangents: 1000.0 * epsilon * bunch.sensitivity(pair, lambda),
            of_differences: 100.0 * differences.resolution(bunch, pair, lambda),
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

/// `max |a − b| / max |b|`; the absolute difference if b is all zero.
pub(crate) fn relative_difference(a: &[f64], b: &[f64]) -> f64 {
    let largest = b.iter().fold(0.0f64, |most, b| most.max(b.abs()));
    let scale = if largest > 0.0 { largest } else { 1.0 };
    // A NaN counts as infinite, because a maximum would ignore it.
    largest_difference(a, b) / scale
}

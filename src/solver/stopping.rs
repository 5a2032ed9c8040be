//! Stopping rules and reasons.

use std::fmt::{self, Debug};

use serde::{Deserialize, Serialize};

use super::Record;

/// The reason for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The relative change of the divergence fell to the tolerance.
    Converged,
    /// All iterations were done.
    MaxIterations,
    /// The outer error had not fallen for a while.
    OutOfPatience,
    /// A [`StoppingRule`] of the caller ended it.
    OwnRule,
    /// An observer asked for it.
    Interrupted,
    /// A number became non-finite; the state is the last finite one.
    NotFinite,
    /// The hypergradient's mode refused; the state is the one before.
    Refused,
}

impl fmt::Display for StopReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Converged => "converged",
            Self::MaxIterations => "iteration limit reached",
            Self::OutOfPatience => "the outer error fell no further",
            Self::OwnRule => "a stopping rule ended it",
            Self::Interrupted => "interrupted",
            Self::NotFinite => "became non-finite",
            Self::Refused => "the hypergradient's mode refused",
        })
    }
}

/// A rule that ends a run before its last iteration. Your own rule is used like the built-in one
/// ([`Stopping`]): [`Solver::with_stopping`](super::Solver::with_stopping).
///
/// ```
/// use altbi::solver::{Record, StoppingRule};
/// use altbi::{AltBiConfig, StopReason};
///
/// /// When the fit is good enough.
/// #[derive(Debug)]
/// struct GoodEnough(f64);
///
/// impl StoppingRule for GoodEnough {
///     fn reason(&self, record: &Record, _: Option<usize>) -> Option<StopReason> {
///         (record.divergence < self.0).then_some(StopReason::OwnRule)
///     }
/// }
///
/// let x = ndarray::array![[1.0, 2.0, 0.5], [0.3, 1.0, 4.0]];
/// let solver = AltBiConfig::new(2).solver(altbi::Beta::KL, altbi::NoPenalty);
/// let outcome = solver.with_stopping(GoodEnough(0.1)).fit(&x)?;
/// assert_eq!(outcome.stop_reason, StopReason::OwnRule);
/// assert!(outcome.divergence < 0.1);
/// # Ok::<(), altbi::Error>(())
/// ```
pub trait StoppingRule: Debug + Send + Sync {
    /// The reason to end the run now, or `None` to go on. It is called after each iteration. `best`
    /// is the iteration with the lowest outer error, if known.
    fn reason(&self, record: &Record, best: Option<usize>) -> Option<StopReason>;
}

/// The built-in rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stopping {
    /// The paper's rule: `abs(D_k − D_{k−1}) / D_0` at most this, with D after the bunch. `None`
    /// turns it off.
    pub tolerance: Option<f64>,
    /// Iterations without a lower outer error. `None` turns the rule off.
    pub patience: Option<usize>,
    /// Largest number of iterations.
    pub limit: usize,
}

impl StoppingRule for Stopping {
    fn reason(&self, record: &Record, best: Option<usize>) -> Option<StopReason> {
        let Record {
            iteration,
            relative_change,
            ..
        } = *record;
        let waited = best.map_or(0, |best| iteration - best);
        if self
            .tolerance
            .is_some_and(|tolerance| relative_change <= tolerance)
        {
            Some(StopReason::Converged)
        } else if self.patience.is_some_and(|patience| waited > patience) {
            Some(StopReason::OutOfPatience)
        } else if iteration >= self.limit {
            Some(StopReason::MaxIterations)
        } else {
            None
        }
    }
}

/// The change that the rule compares with its tolerance. It is 0 if the start fits perfectly (D_0 =
/// 0).
pub(super) fn relative_change(divergence: f64, before: f64, at_start: f64) -> f64 {
    let change = (divergence - before).abs();
    if change == 0.0 {
        0.0
    } else {
        // (D of a perfect fit may round to −1e-17.)
        change / at_start.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_stops_at_the_tolerance_or_the_limit() {
        let stops = |tolerance, patience, iteration, relative_change| {
            let stopping = Stopping {
                tolerance,
                patience,
                limit: 10,
            };
            let record = Record {
                iteration,
                relative_change,
                ..Record::unknown()
            };
            stopping.reason(&record, Some(3))
        };
        let converged = Some(StopReason::Converged);
        assert_eq!(stops(Some(1e-6), None, 5, 1e-3), None);
        assert_eq!(stops(Some(1e-6), None, 5, 1e-6), converged);
        assert_eq!(stops(Some(1e-6), None, 10, 1e-7), converged);
        let limit = Some(StopReason::MaxIterations);
        assert_eq!(stops(Some(1e-6), None, 10, 1e-3), limit);
        assert_eq!(stops(None, None, 5, 0.0), None);
        assert_eq!(stops(None, None, 10, 0.0), limit);
        assert_eq!(stops(None, Some(2), 5, f64::NAN), None);
        assert_eq!(
            stops(None, Some(2), 6, f64::NAN),
            Some(StopReason::OutOfPatience)
        );
        assert_eq!(relative_change(3.0, 5.0, 10.0), 0.2);
        assert_eq!(relative_change(0.0, 0.0, 0.0), 0.0);
        assert_eq!(relative_change(45.0, -1e-15, -1e-15), f64::INFINITY);
    }
}

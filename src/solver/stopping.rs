//! When a run ends, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The relative change of the divergence fell to the tolerance.
    Converged,
    /// All iterations were done.
    MaxIterations,
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
            Self::MaxIterations => "reached the last iteration",
            Self::Interrupted => "interrupted",
            Self::NotFinite => "became non-finite",
            Self::Refused => "the hypergradient's mode refused",
        })
    }
}

/// The paper's rule, `abs(D_k − D_{k−1}) / D_0 ≤ tol`, with D taken after the
/// bunch, and the limit on iterations. Without a tolerance only the limit counts.
pub(super) fn stop_reason(
    relative_change: f64,
    tolerance: Option<f64>,
    iteration: usize,
    max_iterations: usize,
) -> Option<StopReason> {
    if tolerance.is_some_and(|tolerance| relative_change <= tolerance) {
        Some(StopReason::Converged)
    } else if iteration >= max_iterations {
        Some(StopReason::MaxIterations)
    } else {
        None
    }
}

/// The change that the rule looks at. A start that fits to the last bit
/// (D_0 = 0) has nothing left to change.
pub(super) fn relative_change(divergence: f64, before: f64, at_start: f64) -> f64 {
    let change = (divergence - before).abs();
    if change == 0.0 {
        0.0
    } else {
        change / at_start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_stops_at_the_tolerance_or_the_limit() {
        assert_eq!(stop_reason(1e-3, Some(1e-6), 5, 10), None);
        let converged = Some(StopReason::Converged);
        assert_eq!(stop_reason(1e-6, Some(1e-6), 5, 10), converged);
        assert_eq!(stop_reason(1e-7, Some(1e-6), 10, 10), converged);
        let limit = Some(StopReason::MaxIterations);
        assert_eq!(stop_reason(1e-3, Some(1e-6), 10, 10), limit);
        assert_eq!(stop_reason(0.0, None, 5, 10), None);
        assert_eq!(stop_reason(0.0, None, 10, 10), limit);
        assert_eq!(relative_change(3.0, 5.0, 10.0), 0.2);
        assert_eq!(relative_change(0.0, 0.0, 0.0), 0.0);
    }
}

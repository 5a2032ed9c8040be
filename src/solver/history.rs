//! The record of an iteration, as plain numbers.

use serde::{Deserialize, Serialize};

/// One row of a run's history. Iteration 0 is the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Outer iteration.
    pub iteration: usize,
    /// D(X, WH) over the observed entries, after the bunch.
    pub divergence: f64,
    /// D + Σ_i λ_i r(w_i), with the updated λ.
    pub objective: f64,
    /// E, the outer error.
    pub outer_error: f64,
    /// abs(D_k − D_{k−1}) / D_0; NaN at the start.
    pub relative_change: f64,
    /// Smallest λ_i.
    pub lambda_min: f64,
    /// Median λ_i.
    pub lambda_median: f64,
    /// Largest λ_i.
    pub lambda_max: f64,
    /// ‖dE/dλ‖₂; 0 if nothing is tuned, NaN at the start.
    pub hypergradient_norm: f64,
    /// Seconds since the start of the run.
    pub seconds: f64,
}

impl Record {
    /// A record without numbers.
    pub(super) fn unknown() -> Self {
        Self {
            iteration: 0,
            divergence: f64::NAN,
            objective: f64::NAN,
            outer_error: f64::NAN,
            relative_change: f64::NAN,
            lambda_min: f64::NAN,
            lambda_median: f64::NAN,
            lambda_max: f64::NAN,
            hypergradient_norm: f64::NAN,
            seconds: 0.0,
        }
    }
}

/// The median of some numbers, none of them NaN.
///
/// The values are reordered.
pub(super) fn median(values: &mut [f64]) -> f64 {
    let (half, odd) = (values.len() / 2, values.len() % 2 == 1);
    let (below, middle, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    if odd {
        *middle
    } else {
        let before = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // Each is halved first, because the sum of two large numbers may overflow.
        before / 2.0 + *middle / 2.0
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn medians() {
        assert_eq!(super::median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(super::median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}

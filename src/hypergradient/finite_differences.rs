//! Finite differences: slow, inexact, and indifferent to every formula; for
//! checks only.

use burn::tensor::Tensor;

use super::{Differentiate, Hypergradient, unit};
use crate::bunch::Bunch;
use crate::error::Result;
use crate::numerics::to_host;

/// Five-point central differences,
/// `(E(λ−2h) − 8 E(λ−h) + 8 E(λ+h) − E(λ+2h)) / 12h`.
///
/// Where rows are independent all λ_i move at once and four bunches suffice;
/// otherwise four per row. Small negative λ occur on the way and are harmless.
///
/// # Memory
/// As one bunch.
#[derive(Debug, Clone, Copy)]
pub struct FiniteDifferences {
    /// h relative to the natural scale of λ_i: its own size or, where that is
    /// larger, a hundredth of the mean size.
    pub relative_step: f64,
}

impl Default for FiniteDifferences {
    fn default() -> Self {
        Self {
            relative_step: 1e-3,
        }
    }
}

impl FiniteDifferences {
    /// h_i, n×1.
    fn steps(&self, lambda: &Tensor<2>) -> Tensor<2> {
        let values = to_host(lambda);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let least = if mean > 0.0 { mean / 100.0 } else { 1.0 };
        lambda.clone().clamp_min(least) * self.relative_step
    }
}

impl Differentiate for FiniteDifferences {
    fn name(&self) -> &'static str {
        "finite differences"
    }

    fn compute(&self, bunch: &Bunch, w: &Tensor<2>, lambda: &Tensor<2>) -> Result<Hypergradient> {
        let steps = self.steps(lambda);
        let errors_at = |shift: Tensor<2>| {
            let end = bunch.run(w, &(lambda.clone() + shift));
            bunch.outer_errors(&end)
        };
        // 12 h times the derivative of each row's E in one direction of λ.
        let differences = |direction: &Tensor<2>| {
            let [far_down, down, up, far_up] =
                [-2.0, -1.0, 1.0, 2.0].map(|factor| errors_at(direction.clone() * factor));
            (far_down - far_up) + (up - down) * 8.0
        };
        let gradient = if bunch.rule.is_separable() {
            differences(&steps) / (steps * 12.0)
        } else {
            let rows = 0..lambda.dims()[0];
            let entries = rows.map(|row| {
                let direction = steps.clone() * unit(lambda, row);
                differences(&direction).sum().reshape([1, 1])
            });
            Tensor::cat(entries.collect(), 0) / (steps.clone() * 12.0)
        };
        Ok(bunch.outcome(bunch.run(w, lambda), gradient))
    }
}

//! Finite differences: slow, inexact, and indifferent to every formula; for
//! checks only.

use burn::tensor::Tensor;

use super::{Differentiate, Hypergradient, unit};
use crate::bunch::Bunch;
use crate::error::Result;
use crate::numerics::to_host;

/// Central differences, extrapolated to step 0 by Ridders' method: the step is
/// halved again and again, a Neville tableau removes one power of h² per
/// column, and each row of λ keeps the entry with the smallest estimated error.
///
/// No single step would do: near convergence E hardly moves and rounding hides
/// small steps, while far from it (β = 3 with γ = 1 oscillates) E bends sharply
/// and large steps are wrong.
///
/// Where rows are independent all λ_i move at once and two bunches per level
/// suffice; otherwise two per level and row. Where λ_i = 0, small negative λ
/// occur on the way and are harmless.
///
/// # Memory
/// As one bunch.
#[derive(Debug, Clone, Copy)]
pub struct FiniteDifferences {
    /// First h relative to the natural scale of λ_i: its own size or, where that
    /// is larger, a hundredth of the mean size.
    pub relative_step: f64,
    /// How many steps are tried, each half the one before.
    pub levels: usize,
}

impl Default for FiniteDifferences {
    fn default() -> Self {
        Self {
            relative_step: 0.2,
            levels: 9,
        }
    }
}

impl FiniteDifferences {
    /// The first h_i, n×1.
    fn first_steps(&self, lambda: &Tensor<2>) -> Tensor<2> {
        let values = to_host(lambda);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let least = if mean > 0.0 { mean / 100.0 } else { 1.0 };
        lambda.clone().clamp_min(least) * self.relative_step
    }

    /// Ridders' tableau, entrywise: `quotient(scale)` is the difference quotient
    /// at `scale` times the first steps.
    fn extrapolated(&self, quotient: impl Fn(f64) -> Tensor<2>) -> Tensor<2> {
        let mut best = quotient(1.0);
        let mut least_error = best.full_like(f64::INFINITY);
        let mut previous = vec![best.clone()];
        for level in 1..self.levels {
            let mut row = vec![quotient(0.5f64.powi(level as i32))];
            for column in 1..=level {
                let factor = 4f64.powi(column as i32);
                let coarse = &previous[column - 1];
                let fine = &row[column - 1];
                let better = (fine.clone() * factor - coarse.clone()) * (factor - 1.0).recip();
                let error = (better.clone() - fine.clone())
                    .abs()
                    .max_pair((better.clone() - coarse.clone()).abs());
                let improves = error.clone().lower(least_error.clone());
                best = best.mask_where(improves.clone(), better.clone());
                least_error = least_error.mask_where(improves, error);
                row.push(better);
            }
            previous = row;
        }
        best
    }
}

impl Differentiate for FiniteDifferences {
    fn name(&self) -> &'static str {
        "finite differences"
    }

    fn compute(&self, bunch: &Bunch, w: &Tensor<2>, lambda: &Tensor<2>) -> Result<Hypergradient> {
        let steps = self.first_steps(lambda);
        let errors_at = |shift: Tensor<2>| {
            let end = bunch.run(w, &(lambda.clone() + shift));
            bunch.outer_errors(&end)
        };
        // 2 h times the derivative of each row's E in one direction of λ.
        let differences =
            |direction: Tensor<2>| errors_at(direction.clone()) - errors_at(-direction);
        let gradient = if bunch.rule.is_separable() {
            self.extrapolated(|scale| {
                let steps = steps.clone() * scale;
                differences(steps.clone()) / (steps * 2.0)
            })
        } else {
            self.extrapolated(|scale| {
                let steps = steps.clone() * scale;
                let rows = 0..lambda.dims()[0];
                let entries = rows.map(|row| {
                    let direction = steps.clone() * unit(lambda, row);
                    differences(direction).sum().reshape([1, 1])
                });
                Tensor::cat(entries.collect(), 0) / (steps.clone() * 2.0)
            })
        };
        Ok(bunch.outcome(bunch.run(w, lambda), gradient))
    }
}

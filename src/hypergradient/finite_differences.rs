//! Finite differences: slow, inexact, and indifferent to every formula; for
//! checks only.

use burn::tensor::Tensor;

use super::{Differentiate, Hypergradient, unit};
use crate::bunch::Bunch;
use crate::error::Result;
use crate::numerics::{Precision, to_host};

/// Central differences, extrapolated to step 0 by Ridders' method: the step is
/// halved again and again, a Neville tableau removes one power of h² per
/// column, and each row of λ keeps the entry with the smallest estimated error.
///
/// No single step would do: near convergence E hardly moves and rounding hides
/// small steps, while far from it (β = 3 with γ = 1 oscillates) E bends sharply
/// and large steps are wrong.
///
/// Where rows are independent all λ_i move at once and two bunches per level
/// suffice; otherwise two per level and row. Where λ_i is (almost) zero the step
/// is a five-hundredth of the λ_i that would pull as hard as the fit: negative λ
/// then occur on the way, but no denominator comes near zero.
///
/// # Memory
/// As one bunch.
#[derive(Debug, Clone, Copy)]
pub struct FiniteDifferences {
    /// First h relative to λ_i or, where that is larger, to a hundredth of the λ_i
    /// that pulls as hard as the fit.
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
    fn first_steps(&self, bunch: &Bunch, w: &Tensor<2>, lambda: &Tensor<2>) -> Tensor<2> {
        let natural = bunch.rule.natural_lambda(&bunch.observed, w, &bunch.other);
        lambda.clone().max_pair(natural * 0.01) * self.relative_step
    }

    /// How finely `dE/dλ` can be told from values of E that are rounded: about
    /// epsilon times E and the terms it sums, over the first step. Largest row.
    pub fn resolution(&self, bunch: &Bunch, w: &Tensor<2>, lambda: &Tensor<2>) -> f64 {
        let end = bunch.run(w, lambda);
        let y = bunch.rule.reconstruct(&end, &bunch.other);
        let split = bunch.rule.divergence.split(&bunch.observed.x, &y);
        let terms = ((split.positive + split.negative) * y).sum_dim(1) + bunch.outer_errors(&end);
        let per_step = terms / self.first_steps(bunch, w, lambda);
        let largest = to_host(&per_step).into_iter().fold(0.0, f64::max);
        Precision::of(w).epsilon() * largest
    }

    /// Ridders' tableau, entrywise: `quotient(scale)` is the difference quotient
    /// at `scale` times the first steps.
    pub(crate) fn extrapolated(&self, quotient: impl Fn(f64) -> Tensor<2>) -> Tensor<2> {
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
        let steps = self.first_steps(bunch, w, lambda);
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

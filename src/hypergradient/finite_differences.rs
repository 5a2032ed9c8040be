//! Finite differences, for checks only. They are slow and inexact, but do not depend on any
//! derivative formula.

use burn::tensor::Tensor;

use super::{Differentiate, Directions, Hypergradient};
use crate::bunch::{Bunch, Pair, summed_to};
use crate::error::Result;
use crate::factors::Side;
use crate::numerics::{Precision, to_host};

/// Central differences, extrapolated to step 0 by Ridders' method. The step is halved repeatedly, a
/// Neville tableau removes one power of h² per column, and each λ keeps the entry with the smallest
/// estimated error.
///
/// No single step is good enough. Near convergence E hardly changes, and rounding hides small
/// steps. Far from it (β = 3 with γ = 1 oscillates) E is strongly curved, and large steps are
/// wrong.
///
/// If rows of W are independent, all λ_i move at once, and two bunches per level are enough.
/// Otherwise each weight needs two per level. If λ is (almost) zero, the step is a five-hundredth
/// of the λ at which penalty and fit pull equally hard. λ is then negative in some bunches, but no
/// denominator comes near zero.
///
/// # Memory
/// The memory of one bunch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FiniteDifferences {
    /// First h, relative to λ or to a hundredth of the λ at which penalty and fit pull equally
    /// hard, whichever is larger.
    pub relative_step: f64,
    /// Number of steps, each half the one before.
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
    /// The first h, in the shape of each weight.
    fn first_steps(&self, bunch: &Bunch, pair: &Pair, lambda: &[Tensor<2>]) -> Vec<Tensor<2>> {
        let shapes: Vec<[usize; 2]> = lambda.iter().map(Tensor::dims).collect();
        let natural = bunch.checking_scales(pair, &shapes);
        let steps = lambda
            .iter()
            .zip(natural)
            .map(|(weight, natural)| weight.clone().max_pair(natural * 0.01) * self.relative_step);
        steps.collect()
    }

    /// The resolution of `dE/dλ` from rounded values of E: about epsilon times the terms of its
    /// sum, divided by the first step. It is the largest one of all weights.
    pub(crate) fn resolution(&self, bunch: &Bunch, pair: &Pair, lambda: &[Tensor<2>]) -> f64 {
        let end = bunch.run(pair, lambda);
        let terms = bunch.error_terms(&end);
        let at_once = rows_move_at_once(bunch);
        let steps = self.first_steps(bunch, pair, lambda);
        let per_step = steps.into_iter().flat_map(|steps| {
            let terms = if at_once && steps.dims()[0] > 1 {
                terms.clone()
            } else {
                summed_to(terms.clone(), [1, 1])
            };
            to_host(&(terms / steps))
        });
        Precision::of(&pair.w).epsilon() * per_step.fold(0.0, f64::max)
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

    fn compute(&self, bunch: &Bunch, pair: &Pair, lambda: &[Tensor<2>]) -> Result<Hypergradient> {
        let steps = self.first_steps(bunch, pair, lambda);
        let at_once = rows_move_at_once(bunch);
        let gradients = lambda
            .iter()
            .zip(&steps)
            .enumerate()
            .map(|(index, (weight, steps))| {
                let errors_at = |shift: Tensor<2>| {
                    let mut moved = lambda.to_vec();
                    moved[index] = weight.clone() + shift;
                    bunch.outer_errors(&bunch.run(pair, &moved))
                };
                let needed = Directions::new(weight, at_once);
                self.extrapolated(|scale| {
                    let steps = steps.clone() * scale;
                    let differences = needed.all.iter().map(|direction| {
                        let shift = direction.clone() * steps.clone();
                        let difference = errors_at(shift.clone()) - errors_at(-shift);
                        summed_to(difference, needed.told)
                    });
                    needed.gather(differences.collect()) / (steps.clone() * 2.0)
                })
            });
        let gradients = gradients.collect();
        Ok(bunch.outcome(bunch.run(pair, lambda), gradients))
    }
}

/// Returns true if all rows can move at once. E is known for each row of X, which separates rows of
/// W, but not columns of H.
fn rows_move_at_once(bunch: &Bunch) -> bool {
    bunch.independent_rows() == Some(Side::W)
}

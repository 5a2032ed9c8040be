//! Errors relative to something.

use ndarray::Array2;

use crate::criterion::weighted_divergence;
use crate::divergence::{Beta, Divergence};
use crate::factors::Factors;
use crate::numerics::to_host;
use crate::problem::Problem;
use crate::update::Rule;

/// `D(X, WH) / D(X, mean of X)`, the mean taken over the observed entries with
/// their weights: 0 is a perfect fit, 1 is no better than one number for all.
/// NaN for a constant X, which one number fits perfectly.
pub fn relative_error(problem: &Problem, rule: &Rule, divergence: f64) -> f64 {
    let observed = problem.rows();
    let y = observed.x.full_like(problem.mean());
    let mask = observed.mask.as_ref();
    let distances = weighted_divergence(rule.divergence.as_ref(), &observed.x, mask, &y);
    let of_mean: f64 = to_host(&distances).iter().sum();
    let weighs = |index| problem.mask().is_none_or(|mask| mask[index] > 0.0);
    let entries = problem.x().indexed_iter();
    let mut values = entries.filter(|(index, _)| weighs(*index)).map(|(_, x)| *x);
    let first = values.next();
    if values.all(|x| Some(x) == first) {
        f64::NAN
    } else {
        divergence / of_mean
    }
}

/// The paper's `D₁(X, WH) / Σ x log x`, reported beside the other. Its
/// denominator is negative for some data (the paper's benchmarks B and D).
pub fn paper_relative_error(problem: &Problem, factors: &Factors) -> f64 {
    let observed = problem.rows();
    let floor = Beta::KL.floor(problem.precision());
    let y = factors.w.clone().matmul(factors.h.clone()).clamp_min(floor);
    let distances = weighted_divergence(&Beta::KL, &observed.x, observed.mask.as_ref(), &y);
    let ones;
    let mask = match problem.mask() {
        Some(mask) => mask,
        None => {
            ones = Array2::ones(problem.x().raw_dim());
            &ones
        }
    };
    let entropy: f64 = problem
        .x()
        .iter()
        .zip(mask)
        .filter(|(x, _)| **x > 0.0)
        .map(|(x, weight)| weight * x * x.ln())
        .sum();
    to_host(&distances).iter().sum::<f64>() / entropy
}

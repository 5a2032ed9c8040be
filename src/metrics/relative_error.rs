//! Errors relative to something.

use std::ops::Range;

use burn::tensor::Tensor;
use ndarray::{Axis, Slice};
use rayon::prelude::*;

use crate::criterion::weighted_divergence;
use crate::divergence::{Beta, Divergence};
use crate::factors::Factors;
use crate::numerics::to_host;
use crate::problem::{Observed, Problem};
use crate::update::Rule;

/// `D(X, WH) / D(X, mean of X)`, the mean taken over the observed entries with
/// their weights: 0 is a perfect fit, 1 is no better than one number for all.
/// NaN for a constant X, which one number fits perfectly.
pub fn relative_error(problem: &Problem, rule: &Rule, divergence: f64) -> f64 {
    let mean = problem.mean();
    let of_mean = total(problem, rule.divergence.as_ref(), |observed, _| {
        observed.x.full_like(mean)
    });
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
    let floor = Beta::KL.floor(problem.precision());
    let h = problem.state(&factors.h);
    let divergence = total(problem, &Beta::KL, |_, rows| {
        let w = factors.w.slice_axis(Axis(0), Slice::from(rows));
        problem
            .state(&w.to_owned())
            .matmul(h.clone())
            .clamp_min(floor)
    });
    let entries = problem.x().indexed_iter().filter(|(_, x)| **x > 0.0);
    let entropy: f64 = entries
        .map(|(index, x)| problem.mask().map_or(1.0, |mask| mask[index]) * x * x.ln())
        .sum();
    divergence / entropy
}

/// D(X, Y), some rows at a time, so that no matrix as large as X is made.
fn total(
    problem: &Problem,
    divergence: &dyn Divergence,
    y: impl Fn(&Observed, Range<usize>) -> Tensor<2> + Sync,
) -> f64 {
    let of_block = |rows: Range<usize>| {
        let observed = problem.part(rows.clone());
        let (y, mask) = (y(&observed, rows), observed.mask.as_ref());
        let distances = weighted_divergence(divergence, &observed.x, mask, &y);
        to_host(&distances).iter().sum::<f64>()
    };
    let blocks = problem.blocks();
    if blocks.len() == 1 {
        return blocks.into_iter().map(of_block).sum();
    }
    // In their order, whatever the number of threads.
    let parts: Vec<f64> = blocks.into_par_iter().map(of_block).collect();
    parts.iter().sum()
}

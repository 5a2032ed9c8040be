//! Relative errors.

use std::ops::Range;

use burn::tensor::Tensor;
use ndarray::{Axis, Slice};
use rayon::prelude::*;

use crate::criterion::weighted_divergence;
use crate::divergence::{Beta, Divergence};
use crate::factors::Factors;
use crate::numerics::to_host;
use crate::problem::{Observed, Problem, Weights};
use crate::sparse::SparseMatrix;
use crate::update::Rule;

/// `D(X, WH) / D(X, mean of X)`, where the mean is the weighted mean of the observed entries. 0 is
/// a perfect fit; 1 is no better than a constant. NaN for a constant X, which a constant fits
/// perfectly.
pub fn relative_error(problem: &Problem, rule: &Rule, divergence: f64) -> f64 {
    let mean = problem.mean();
    let of_mean = match problem.as_sparse() {
        None => total(problem, rule.divergence.as_ref(), |observed, _| {
            observed.x.full_like(mean)
        }),
        Some(x) => of_constant(problem, x, rule.divergence.as_ref(), mean),
    };
    // The largest value, and the smallest with reversed sign.
    let with = |ends: [f64; 2], x: f64| [ends[0].max(x), ends[1].max(-x)];
    let of_rows = of_each_row(problem, [f64::NEG_INFINITY; 2], |ends, x, weight| {
        if weight > 0.0 { with(ends, x) } else { ends }
    });
    // (The zeros of a sparse matrix add one more value.)
    let zero = problem.as_sparse().filter(|_| elsewhere(problem) > 0.0);
    let zero = zero.filter(|x| x.unstored() > 0.0).map(|_| [0.0, 0.0]);
    let mut ends = [f64::NEG_INFINITY; 2];
    for row in of_rows.into_iter().chain(zero) {
        ends = [ends[0].max(row[0]), ends[1].max(row[1])];
    }
    problem.processes().largest(&mut ends);
    if ends[0] == -ends[1] {
        f64::NAN
    } else {
        divergence / problem.processes().total(of_mean)
    }
}

/// Folds the stored entries and weights of each row, on all cores.
fn of_each_row<T: Copy + Send + Sync>(
    problem: &Problem,
    nothing: T,
    fold: impl Fn(T, f64, f64) -> T + Sync,
) -> Vec<T> {
    let weight = |index| problem.mask().map_or(1.0, |mask| mask[index]);
    let rows = (0..problem.shape()[0]).into_par_iter().with_min_len(256);
    let folded = rows.map(|row| match (problem.as_sparse(), problem.dense_numbers()) {
        (None, x) => {
            let entries = x.expect("X is dense").row(row);
            let entries = entries.iter().enumerate();
            entries.fold(nothing, |sum, (column, x)| {
                fold(sum, *x, weight((row, column)))
            })
        }
        (Some(x), _) => {
            let (columns, values) = x.row(row);
            let entries = columns.iter().zip(values);
            entries.fold(nothing, |sum, (column, x)| {
                fold(sum, *x, weight((row, *column as usize)))
            })
        }
    });
    folded.collect()
}

/// The weight of entries that a sparse matrix does not store.
fn elsewhere(problem: &Problem) -> f64 {
    match problem.mask() {
        Some(Weights::Listed { elsewhere, .. }) => *elsewhere,
        _ => 1.0,
    }
}

/// Entries per tensor operation.
const PIECE: usize = 1 << 16;

/// D(X, c). Its cost grows with the stored entries, because all zeros add the same.
fn of_constant(
    problem: &Problem,
    x: &SparseMatrix,
    divergence: &dyn Divergence,
    constant: f64,
) -> f64 {
    let device = problem.device();
    let values = |x: &[f64]| {
        let x = device.tensor(x.to_vec(), [1, x.len()], problem.precision());
        to_host(&divergence.value(&x, &x.full_like(constant)))
    };
    let weight = |row, column| problem.mask().map_or(1.0, |mask| mask[(row, column)]);
    let mut weights = x.triplets().map(|(row, column, _)| weight(row, column));
    let mut weighed = 0.0;
    // It processes a piece at a time, because a tensor operation allocates a matrix for each of its
    // steps.
    let mut stored = 0.0;
    for piece in x.values().chunks(PIECE) {
        for value in values(piece) {
            let weight = weights.next().expect("one for each entry");
            weighed += weight;
            stored += if weight > 0.0 { value * weight } else { 0.0 };
        }
    }
    let rest = problem
        .mask()
        .map_or(x.unstored(), |mask| mask.sum() - weighed);
    if rest > 0.0 && elsewhere(problem) > 0.0 {
        stored + rest * values(&[0.0])[0]
    } else {
        stored
    }
}

/// The paper's `D₁(X, WH) / Σ x log x`, reported beside the relative error. Its denominator is
/// negative for some data (the paper's benchmarks B and D).
pub fn paper_relative_error(problem: &Problem, factors: &Factors) -> f64 {
    let floor = Beta::KL.floor(problem.precision());
    let h = problem.state(&factors.h);
    let divergence = match problem.as_sparse() {
        Some(x) => kl_of_sparse(problem, x, factors, floor),
        None => total(problem, &Beta::KL, |_, rows| {
            let w = factors.w.slice_axis(Axis(0), Slice::from(rows));
            problem
                .state(&w.to_owned())
                .matmul(h.clone())
                .clamp_min(floor)
        }),
    };
    let entropies = of_each_row(problem, 0.0, |sum, x, weight| {
        if x > 0.0 {
            sum + weight * x * x.ln()
        } else {
            sum
        }
    });
    let mut totals = [divergence, entropies.iter().sum()];
    problem.processes().sum(&mut totals);
    totals[0] / totals[1]
}

/// D₁(X, WH): the sum of WH over all entries, plus the terms of stored or listed entries.
fn kl_of_sparse(problem: &Problem, x: &SparseMatrix, factors: &Factors, floor: f64) -> f64 {
    let omega = elsewhere(problem);
    let codes = factors.h.t().as_standard_layout().into_owned();
    let total: f64 = factors
        .w
        .sum_axis(Axis(0))
        .dot(&factors.h.sum_axis(Axis(1)));
    let y = |row: usize, column: usize| factors.w.row(row).dot(&codes.row(column)).max(floor);
    let rows = (0..x.shape()[0]).into_par_iter().map(|row| {
        let mut sum = 0.0;
        let (columns, values) = x.row(row);
        for (column, x) in columns.iter().zip(values) {
            let column = *column as usize;
            let (y, index) = (y(row, column), (row, column));
            let weight = problem.mask().map_or(1.0, |mask| mask[index]);
            if weight > 0.0 {
                let ratio = if *x > 0.0 { x * (x / y).ln() } else { 0.0 };
                sum += weight * (ratio - x + y);
            }
            sum -= omega * y;
        }
        if let Some(Weights::Listed { at, .. }) = problem.mask() {
            let (columns, weights) = at.row(row);
            for (column, weight) in columns.iter().zip(weights) {
                let column = *column as usize;
                // (Stored entries are counted above.)
                if x.get(row, column).is_none() {
                    sum += (weight - omega) * y(row, column);
                }
            }
        }
        sum
    });
    let rows: Vec<f64> = rows.collect();
    omega * total + rows.iter().sum::<f64>()
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
    // Summed in order, so that the number of threads does not matter.
    let parts: Vec<f64> = blocks.into_par_iter().map(of_block).collect();
    parts.iter().sum()
}

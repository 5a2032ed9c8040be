//! Forward mode: hand-written tangents, one for each weight.

use burn::tensor::Tensor;

use super::adjoint::outer_gradient;
use super::bunch::{Bound, unused};
use super::{JointBunch, JointHypergradient, Pair};
use crate::error::Result;
use crate::factors::Side;
use crate::hypergradient::Fault;
use crate::numerics::to_host;
use crate::update::{Direction, Rule};

const MODE: &str = "forward";

/// dE/dλ of every weight; `fault` plants a mistake, for negative controls.
pub(crate) fn gradients(
    bunch: &JointBunch,
    pair: &Pair,
    lambda: &[Tensor<2>],
    fault: Fault,
) -> Result<JointHypergradient> {
    let bound = bunch.bind(lambda);
    let end = bunch.run(pair, lambda);
    let (of_w, of_h) = match fault {
        Fault::PrintedOuterGradient => printed_outer_gradient(bunch, &end)?,
        Fault::None | Fault::FlippedSign => outer_gradient(MODE, bunch, &end)?,
    };
    let mut gradients = Vec::with_capacity(lambda.len());
    for (index, weight) in lambda.iter().enumerate() {
        let [rows, columns] = weight.dims();
        let mut entries = Vec::with_capacity(rows * columns);
        for (row, column) in (0..rows).flat_map(|i| (0..columns).map(move |k| (i, k))) {
            let one = weight.ones_like().slice([0..1, 0..1]);
            let place = [row..row + 1, column..column + 1];
            let unit = weight.zeros_like().slice_assign(place, one);
            let moved = tangent(bunch, &bound, pair, index, &unit, fault)?;
            let sum = |a: &Tensor<2>, b: Tensor<2>| to_host(&(a.clone() * b)).iter().sum::<f64>();
            entries.push(sum(&of_w, moved.w) + sum(&of_h, moved.h));
        }
        let entries = burn::tensor::TensorData::new(entries, [rows, columns]);
        gradients.push(Tensor::from_data(
            entries,
            (&weight.device(), weight.dtype()),
        ));
    }
    Ok(JointHypergradient {
        outer_error: bunch.outer_error(&end),
        pair: end,
        gradients,
    })
}

/// The tangent of the final state when the weight of tuned term `index` moves along
/// `direction`.
fn tangent(
    bunch: &JointBunch,
    bound: &Bound,
    pair: &Pair,
    index: usize,
    direction: &Tensor<2>,
    fault: Fault,
) -> Result<Pair> {
    let (tuned_on_w, _) = bunch.tuned();
    let weights = |rule: &Rule, first: usize, sign: f64| {
        let mut tuned = first;
        let moved = rule.terms.iter().map(|term| {
            let here = term.is_bound() && tuned == index;
            tuned += usize::from(term.is_bound());
            here.then(|| direction.clone() * sign)
        });
        moved.collect::<Vec<_>>()
    };
    let unused = unused(&pair.w);
    let mut here = pair.clone();
    let mut dot = Pair {
        w: pair.w.zeros_like(),
        h: pair.h.zeros_like(),
    };
    for t in 1..=bunch.length {
        let flipped = fault == Fault::FlippedSign && t == bunch.length;
        let sign = if flipped { -1.0 } else { 1.0 };
        if bunch.span.covers(Side::H) {
            let moves = Direction {
                factor: dot.h.clone(),
                other: Some(dot.w.clone().transpose()),
                weights: weights(&bound.of_h, tuned_on_w, sign),
            };
            let other = here.w.clone().transpose();
            let columns = bunch.data.observed(MODE, Side::H)?;
            (here.h, dot.h) = bound
                .of_h
                .update_with_tangent(MODE, columns, &here.h, &other, &unused, &moves)?;
        }
        if bunch.span.covers(Side::W) {
            let moves = Direction {
                factor: dot.w.clone(),
                other: Some(dot.h.clone().transpose()),
                weights: weights(&bound.of_w, 0, sign),
            };
            let other = here.h.clone().transpose();
            let rows = bunch.data.observed(MODE, Side::W)?;
            (here.w, dot.w) = bound
                .of_w
                .update_with_tangent(MODE, rows, &here.w, &other, &unused, &moves)?;
        }
    }
    Ok(dot)
}

/// The paper's printed `−(∇⁺ + ∇⁻)` in place of the derivative.
fn printed_outer_gradient(bunch: &JointBunch, pair: &Pair) -> Result<(Tensor<2>, Tensor<2>)> {
    let y = bunch.of_w.reconstruct(&pair.w, &pair.h.clone().transpose());
    let x = &bunch.data.observed(MODE, Side::W)?.x;
    let split = bunch.of_w.divergence.split(x, &y);
    let printed = -(split.positive + split.negative).expand(y.dims());
    Ok((
        printed.clone().matmul(pair.h.clone()),
        printed.transpose().matmul(pair.w.clone()),
    ))
}

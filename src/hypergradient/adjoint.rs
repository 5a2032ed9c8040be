//! Adjoint mode: the paper's Lagrangian recursion, corrected.

use std::sync::Arc;

use burn::tensor::{Tensor, TensorData};

use super::{Differentiate, Hypergradient};
use crate::bunch::{Bunch, HostBunch, HostPair, ORDER, Pair, Passage, Passed, summed_to};
use crate::error::Result;
use crate::factors::Side;
use crate::numerics::to_host;
use crate::penalty::Spread;
use crate::update::{Multiplier, Rule};

/// Carries the multipliers α_t backwards through the stored states,
///
/// $$ \alpha_T = g_T, \qquad h_{t-1} = h_t + b_t^\top \alpha_t, \qquad \alpha_{t-1} = A_t^\top \alpha_t $$
///
/// with `h_T = 0`; the hypergradient is h_0. (The paper prints `A_t α_t` and `b_t α_tᵀ`, where a
/// transpose is wrong.) The derivatives are hand-written as in forward mode, but one pass gives
/// every λ, also with coupled penalties and with both factors. If a step is `h' = Φ(h; w)`, `w' =
/// Φ(w; h')`, the way back through the update of W adds to the cotangent of h', and the way back
/// through the update of H adds to that of w.
///
/// # Memory
/// The states of the factors (n×r and m×r each). On a fused data term also 1/P of each update, of
/// the size of the updated factor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Adjoint;

impl Differentiate for Adjoint {
    fn name(&self) -> &'static str {
        "adjoint"
    }

    fn compute(&self, bunch: &Bunch, pair: &Pair, lambda: &[Tensor<2>]) -> Result<Hypergradient> {
        if let Some(host) = bunch.on_host() {
            return Ok(on_host(&host, pair, lambda));
        }
        let mode = self.name();
        let bound = bunch.bind(lambda);
        // For each update: the side, the factors before it, and the values that it saves.
        let mut updates = Vec::new();
        let mut here = pair.clone();
        for _ in 0..bunch.length {
            for side in ORDER.into_iter().filter(|side| bunch.span.covers(*side)) {
                let (factor, other) = here.seen_from(side);
                let rule = bound.rule(side);
                let (updated, kept) = bunch.data.update_and_keep(rule, side, factor, other);
                updates.push((side, here.clone(), kept));
                *here.factor_mut(side) = updated;
            }
        }
        let criterion = bunch.criterion.as_ref();
        let mut alpha = bunch
            .data
            .outer_gradient(mode, &bunch.of_w, criterion, &here)?;
        let other_moves = bunch.span.covers(Side::W) && bunch.span.covers(Side::H);
        let mut gradients: Vec<Tensor<2>> = lambda.iter().map(Tensor::zeros_like).collect();
        let (on_w, _) = bunch.tuned();
        for (side, before, kept) in updates.into_iter().rev() {
            let (factor, other) = before.seen_from(side);
            let passed = Passed {
                factor,
                other,
                kept,
            };
            let multiplier = Multiplier {
                alpha: alpha.seen_from(side).0,
                other_moves,
            };
            let rule = bound.rule(side);
            let bars = bunch
                .data
                .update_cotangent(mode, rule, side, passed, multiplier)?;
            *alpha.factor_mut(side) = bars.factor;
            if let Some(share) = bars.other {
                let other = alpha.factor_mut(side.other());
                *other = other.clone() + share;
            }
            let (of_w, of_h) = gradients.split_at_mut(on_w);
            let slots = match side {
                Side::W => of_w,
                Side::H => of_h,
            };
            collect(rule, bars.weights, slots);
        }
        let gradients = gradients.into_iter().enumerate();
        let gradients = gradients
            .map(|(index, own)| bunch.over_processes(bunch.side_of(index), own))
            .collect();
        Ok(bunch.outcome(here, gradients))
    }
}

/// The same on plain numbers, without tensors in between.
fn on_host(bunch: &HostBunch<'_>, pair: &Pair, lambda: &[Tensor<2>]) -> Hypergradient {
    let start = HostPair {
        w: Arc::new(to_host(&pair.w)),
        h: Arc::new(to_host(&pair.h)),
        rank: pair.w.dims()[1],
    };
    let weights = lambda.iter();
    let weights = weights.map(|weight| Spread::new(to_host(weight), weight.dims()));
    let shapes: Vec<[usize; 2]> = lambda.iter().map(Tensor::dims).collect();
    let weights: Vec<Spread> = weights.collect();
    let Passage {
        end,
        outer_error,
        gradients,
    } = bunch.adjoint(start, &weights, &shapes);
    let like = |values: &[f64], tensor: &Tensor<2>| {
        let data = TensorData::new(values.to_vec(), tensor.dims());
        Tensor::from_data(data, (&tensor.device(), tensor.dtype()))
    };
    let gradients = gradients.iter().zip(lambda);
    Hypergradient {
        outer_error,
        gradients: gradients.map(|(values, of)| like(values, of)).collect(),
        pair: Pair {
            w: like(&end.w, &pair.w),
            h: like(&end.h, &pair.h),
        },
    }
}

/// Adds the cotangents of the tuned weights to their gradients.
fn collect(rule: &Rule, weights: Vec<Option<Tensor<2>>>, gradients: &mut [Tensor<2>]) {
    let tuned = rule.terms.iter().zip(weights);
    let tuned = tuned.filter(|(term, _)| term.is_tuned());
    for ((_, bar), gradient) in tuned.zip(gradients) {
        let bar = bar.expect("a tuned weight has a cotangent");
        *gradient = gradient.clone() + summed_to(bar, gradient.dims());
    }
}

//! Adjoint mode: hand-written transposes, backwards through the stored states.
//!
//! A step is `h' = Φ(h; w)`, `w' = Φ(w; h')`. Backwards, with multipliers α of w' and
//! η of h': first through the update of W, which hands a share to h', then through the
//! update of H, which hands a share to w.

use burn::tensor::Tensor;

use super::scale::summed_to;
use super::{JointBunch, JointHypergradient, Pair};
use crate::error::Result;
use crate::factors::Side;
use crate::update::{Multiplier, Rule};

const MODE: &str = "adjoint";

pub(super) fn gradients(
    bunch: &JointBunch,
    pair: &Pair,
    lambda: &[Tensor<2>],
) -> Result<JointHypergradient> {
    let bound = bunch.bind(lambda);
    let mut states = vec![pair.clone()];
    let mut kept = Vec::with_capacity(bunch.length);
    for t in 0..bunch.length {
        let (next, of_step) = bunch.step_and_keep(&bound, &states[t]);
        states.push(next);
        kept.push(of_step);
    }
    let end = states[bunch.length].clone();
    let both = bunch.span.covers(Side::W) && bunch.span.covers(Side::H);
    let (mut alpha, mut eta) = outer_gradient(MODE, bunch, &end)?;
    let mut gradients: Vec<Tensor<2>> = lambda.iter().map(Tensor::zeros_like).collect();
    let (tuned_on_w, _) = bunch.tuned();
    for t in (0..bunch.length).rev() {
        let (before, after) = (&states[t], &states[t + 1]);
        if bunch.span.covers(Side::W) {
            let bars = bunch.data.update_cotangent(
                MODE,
                &bound.of_w,
                Side::W,
                ([&before.w, &after.h], kept[t][0].as_ref()),
                Multiplier {
                    alpha: &alpha,
                    other_moves: both,
                },
            )?;
            alpha = bars.factor;
            if let Some(share) = bars.other {
                eta = eta + share;
            }
            collect(&bound.of_w, bars.weights, &mut gradients[..tuned_on_w]);
        }
        if bunch.span.covers(Side::H) {
            let bars = bunch.data.update_cotangent(
                MODE,
                &bound.of_h,
                Side::H,
                ([&before.h, &before.w], kept[t][1].as_ref()),
                Multiplier {
                    alpha: &eta,
                    other_moves: both,
                },
            )?;
            eta = bars.factor;
            if let Some(share) = bars.other {
                alpha = alpha + share;
            }
            collect(&bound.of_h, bars.weights, &mut gradients[tuned_on_w..]);
        }
    }
    Ok(JointHypergradient {
        outer_error: bunch.outer_error(&end),
        pair: end,
        gradients,
    })
}

/// Adds the cotangents of the bound weights to the gradients of these.
fn collect(rule: &Rule, weights: Vec<Option<Tensor<2>>>, gradients: &mut [Tensor<2>]) {
    let bound = rule.terms.iter().zip(weights);
    let bound = bound.filter(|(term, _)| term.is_bound());
    for ((_, bar), gradient) in bound.zip(gradients) {
        let bar = bar.expect("a bound weight has a cotangent");
        *gradient = gradient.clone() + summed_to(bar, gradient.dims());
    }
}

/// `(∂E/∂w, ∂E/∂h)`, n×r and m×r, by hand.
pub(super) fn outer_gradient(
    mode: &'static str,
    bunch: &JointBunch,
    pair: &Pair,
) -> Result<(Tensor<2>, Tensor<2>)> {
    let criterion = bunch.criterion.as_ref();
    bunch
        .data
        .outer_gradient(mode, &bunch.of_w, criterion, pair)
}

//! Reverse mode: Burn's tape over the unrolled bunch, one tape for all rows.

use burn::tensor::Tensor;

use super::{JointBunch, JointHypergradient, Pair};
use crate::numerics::to_host;

pub(super) fn gradients(
    bunch: &JointBunch,
    pair: &Pair,
    lambda: &[Tensor<2>],
) -> JointHypergradient {
    let taped = bunch.on_tape();
    let leaves: Vec<Tensor<2>> = lambda
        .iter()
        .map(|weight| weight.clone().autodiff().require_grad())
        .collect();
    let start = Pair {
        w: pair.w.clone().autodiff(),
        h: pair.h.clone().autodiff(),
    };
    let end = taped.run(&start, &leaves);
    let errors = taped.outer_errors(&end);
    let outer_error = to_host(&errors).iter().sum();
    let total = errors.sum();
    // Where nothing is tuned, nothing is on the tape.
    let backward = total.is_tracked().then(|| total.backward());
    let gradients = leaves.iter().zip(lambda).map(|(leaf, weight)| {
        let gradient = backward.as_ref().and_then(|all| leaf.grad(all));
        gradient.map_or_else(|| weight.zeros_like(), Tensor::without_autodiff)
    });
    let gradients = gradients.collect();
    JointHypergradient {
        pair: Pair {
            w: end.w.without_autodiff(),
            h: end.h.without_autodiff(),
        },
        outer_error,
        gradients,
    }
}

//! The weighted parts of a penalty with a form on plain numbers, as operations on Burn's tape.
//!
//! A penalty that couples rows consists of some twenty tensor operations, forward and backward. On a
//! small factor they take longer than the passes over X. Here each part is one operation. (A node of
//! the tape has one output.) The reference, tensors as large as X, has the tensor form.
#![expect(deprecated, reason = "every item of burn-ndarray is; see device.rs")]

use std::sync::Arc;

use burn::backend::NdArray;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::tensor::Tensor;
use burn_ndarray::NdArrayTensor;
use rayon::prelude::*;

use super::{HostPenalty, Penalty, Rows, Spread};
use crate::numerics::add_summed;
use crate::primitive::{Tape, like, plain, shape_of, taped, view};
use crate::split::Split;

/// Entries in one task.
const TASK: usize = 1 << 12;

/// A penalty at a factor and its weight.
#[derive(Debug, Clone)]
struct Place {
    penalty: Arc<dyn Penalty>,
    w: NdArrayTensor,
    weight: NdArrayTensor,
}

impl Place {
    fn on_host(&self) -> &dyn HostPenalty {
        let host = self.penalty.on_host();
        host.expect("only penalties with such a form come here")
    }

    fn spread(&self) -> Spread {
        Spread::new(view(&self.weight).into_owned(), shape_of(&self.weight))
    }

    /// `λ p⁺` and `λ p⁻`.
    fn parts(&self) -> [NdArrayTensor; 2] {
        let shape @ [n, rank] = shape_of(&self.w);
        let (values, weight, host) = (view(&self.w), self.spread(), self.on_host());
        let w = Rows {
            values: &values,
            rank,
        };
        let rows = (TASK / rank).max(1);
        let [mut positive, mut negative] = [vec![0.0; n * rank], vec![0.0; n * rank]];
        let tasks = positive
            .par_chunks_mut(rows * rank)
            .zip(negative.par_chunks_mut(rows * rank));
        tasks.enumerate().for_each(|(task, (positive, negative))| {
            let range = task * rows..task * rows + positive.len() / rank;
            host.add_split(w, &weight, range, positive, negative);
        });
        [positive, negative].map(|part| like(part, shape, &self.w))
    }

    /// The cotangents of w, and of the weight of each entry, from those of both parts.
    fn back(&self, [of_positive, of_negative]: [&[f64]; 2]) -> [Vec<f64>; 2] {
        let [n, rank] = shape_of(&self.w);
        let (values, weight, host) = (view(&self.w), self.spread(), self.on_host());
        let rows_of = |values| Rows { values, rank };
        let w = rows_of(&values);
        let parts = [rows_of(of_positive), rows_of(of_negative)];
        let rows = (TASK / rank).max(1);
        let [mut factor, mut weights] = [vec![0.0; n * rank], vec![0.0; n * rank]];
        let tasks = factor
            .par_chunks_mut(rows * rank)
            .zip(weights.par_chunks_mut(rows * rank));
        tasks.enumerate().for_each(|(task, (factor, weights))| {
            let range = task * rows..task * rows + factor.len() / rank;
            host.add_cotangent(w, &weight, parts, range, factor, weights);
        });
        [factor, weights]
    }
}

/// The backward pass of `λ p⁺`, or of `λ p⁻`.
#[derive(Debug)]
struct PartBackward;

impl Backward<NdArray, 2> for PartBackward {
    /// True for `λ p⁺`.
    type State = (Place, bool);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let bar = grads.consume::<NdArray>(&ops.node);
        let (place, is_positive) = ops.state;
        let bar = view(&bar);
        let nothing = vec![0.0; bar.len()];
        let parts: [&[f64]; 2] = match is_positive {
            true => [&bar, &nothing],
            false => [&nothing, &bar],
        };
        let [of_w, of_weights] = place.back(parts);
        let [_, rank] = shape_of(&place.w);
        let [w, weight] = ops.parents;
        if let Some(w) = w {
            let bar = like(of_w, shape_of(&place.w), &place.w);
            grads.register::<NdArray>(w.id, bar);
        }
        if let Some(weight) = weight {
            let shape = shape_of(&place.weight);
            let mut summed = vec![0.0; shape[0] * shape[1]];
            add_summed(&of_weights, rank, shape, &mut summed);
            let bar = like(summed, shape, &place.weight);
            grads.register::<NdArray>(weight.id, bar);
        }
    }
}

/// `λ p⁺` and `λ p⁻`, on the tape if an input is.
///
/// # Panics
/// If the penalty has no form on plain numbers, or the device is not the host.
///
/// # Shapes
/// `w` n×r; `weight` broadcasts to it.
pub(super) fn weighted_split(
    penalty: &Arc<dyn Penalty>,
    w: &Tensor<2>,
    weight: &Tensor<2>,
) -> Split {
    let at = |w, weight| Place {
        penalty: penalty.clone(),
        w,
        weight,
    };
    let [positive, negative] = if w.is_autodiff() || weight.is_autodiff() {
        let inputs = [taped(w), taped(weight)];
        let [w, weight] = inputs.clone().map(|input| input.into_primitive());
        let place = at(w, weight);
        let [positive, negative] = place.parts();
        [(positive, true), (negative, false)].map(|(part, is_positive)| {
            let nodes = inputs.each_ref().map(|input| input.node());
            let prepared = PartBackward.prepare::<NoCheckpointing>(nodes);
            Tensor::from_primitive::<Tape>(match prepared.compute_bound().stateful() {
                OpsKind::Tracked(prepared) => prepared.finish((place.clone(), is_positive), part),
                OpsKind::UnTracked(prepared) => prepared.finish(part),
            })
        })
    } else {
        let parts = at(plain(w), plain(weight)).parts();
        parts.map(Tensor::from_primitive::<NdArray>)
    };
    Split { positive, negative }
}

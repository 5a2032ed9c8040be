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
use crate::numerics::{TASK, add_summed};
use crate::primitive::{Tape, like, plain, shape_of, taped, view};
use crate::split::Split;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::numerics::{Precision, to_host};
    use crate::penalty::{Graph, Smooth, Steps};

    const ROWS: usize = 7;
    const RANK: usize = 3;

    fn tensor(shape: [usize; 2], seed: usize) -> Tensor<2> {
        let number = |at: usize| ((at * 7919 + seed * 104_729) % 1013) as f64 / 1013.0 + 0.01;
        let values = (0..shape[0] * shape[1]).map(number).collect();
        Device::default().tensor(values, shape, Precision::F64)
    }

    /// Both parts, and the derivatives of a sum with fixed factors in w and in the weight.
    fn all(split: impl Fn(&Tensor<2>, &Tensor<2>) -> Split, weight: [usize; 2]) -> [Vec<f64>; 4] {
        let leaf = |shape, seed| tensor(shape, seed).autodiff().require_grad();
        let (w, weight) = (leaf([ROWS, RANK], 1), leaf(weight, 2));
        let parts = split(&w, &weight);
        let [first, second] = [3, 4].map(|seed| tensor([ROWS, RANK], seed).autodiff());
        let sum = (parts.positive.clone() * first + parts.negative.clone() * second).sum();
        let gradients = sum.backward();
        let gradient = |leaf: &Tensor<2>| to_host(&leaf.grad(&gradients).unwrap());
        let [positive, negative] = [parts.positive, parts.negative].map(|part| to_host(&part));
        [positive, negative, gradient(&w), gradient(&weight)]
    }

    fn apart(a: &[Vec<f64>; 4], b: &[Vec<f64>; 4]) -> f64 {
        let pairs = a.iter().flatten().zip(b.iter().flatten());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn operations_are_like_the_tensor_operations_that_they_replace() {
        let ring = (0..ROWS).map(|i| (i, (i + 1) % ROWS, 0.5 + i as f64));
        let graph = Graph::from_edges(ROWS, ring).unwrap();
        let penalties: [Arc<dyn Penalty>; 3] = [
            Arc::new(Smooth),
            Arc::new(Steps::along(graph.clone())),
            Arc::new(graph),
        ];
        for penalty in penalties {
            for shape in [[1, 1], [1, RANK], [ROWS, 1], [ROWS, RANK]] {
                let coupling = penalty.coupling().unwrap();
                let expected = all(|w, weight| coupling.weighted_split(w, weight), shape);
                let found = all(|w, weight| weighted_split(&penalty, w, weight), shape);
                let name = penalty.name();
                assert!(apart(&expected, &found) < 1e-13, "{name} {shape:?}");
                // A control: another weight is noticed.
                let wrong = all(
                    |w, weight| weighted_split(&penalty, w, &(weight.clone() * 1.001)),
                    shape,
                );
                assert!(apart(&expected, &wrong) > 1e-6, "{name} {shape:?}");
                // Off the tape.
                let (w, weight) = (tensor([ROWS, RANK], 1), tensor(shape, 2));
                let parts = weighted_split(&penalty, &w, &weight);
                assert_eq!(to_host(&parts.positive), found[0]);
                assert_eq!(to_host(&parts.negative), found[1]);
            }
        }
    }
}

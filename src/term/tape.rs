//! The data term as two operations on Burn's tape: an update, and the errors.
//!
//! A node of the tape has one output, so a whole update is one node. Its inputs are the factors and
//! the weighted parts of the penalties. Its output is the updated factor, `w ((N + p⁻) / (P +
//! p⁺))^γ`. Inputs that are not tracked cost nothing in the backward pass. Adjoint mode calls the
//! same transposed derivatives without a tape.
#![expect(deprecated, reason = "every item of burn-ndarray is; see device.rs")]

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::{NdArray, TensorMetadata};
use burn::tensor::{DType, Tensor};
use burn_ndarray::NdArrayTensor;
use rayon::prelude::*;

use super::update::Step;
use super::{At, Bars, Moves, Needs, PartsOf, SharedTerm};
use crate::factors::Side;
use crate::numerics::{Gamma, Precision, TASK, add_summed, to_host};
use crate::primitive::{Tape, like, plain, shape_of, taped, view};
use crate::split::Split;

/// A matrix that broadcasts to n×r.
struct Broadcast<'a> {
    values: Cow<'a, [f64]>,
    shape: [usize; 2],
}

impl<'a> Broadcast<'a> {
    fn of(tensor: &'a NdArrayTensor) -> Self {
        Self {
            values: view(tensor),
            shape: shape_of(tensor),
        }
    }

    /// Adds some rows to rows of r numbers.
    fn add_to(&self, rows: Range<usize>, rank: usize, to: &mut [f64]) {
        let [count, width] = self.shape;
        for (i, row) in rows.zip(to.chunks_exact_mut(rank)) {
            let i = if count == 1 { 0 } else { i };
            let values = &self.values[i * width..(i + 1) * width];
            if width == rank {
                row.iter_mut().zip(values).for_each(|(a, b)| *a += b);
            } else {
                row.iter_mut().for_each(|a| *a += values[0]);
            }
        }
    }
}

/// Saved values of an update, for its backward pass.
#[derive(Debug, Clone)]
struct SavedUpdate {
    term: SharedTerm,
    side: Side,
    factor: NdArrayTensor,
    other: NdArrayTensor,
    /// The updated factor. Its ratio to the old one is q^γ, with q = N/P.
    updated: NdArrayTensor,
    /// 1/P, n×r ([`Step::apply`]).
    inverse: Arc<Vec<f64>>,
    step: Step,
    /// Shapes of p⁻ and p⁺.
    shapes: [[usize; 2]; 2],
}

/// The updated factor, and the saved values for its backward pass.
fn forward(
    term: &SharedTerm,
    side: Side,
    inputs: [&NdArrayTensor; 4],
    exponent: f64,
) -> (NdArrayTensor, SavedUpdate) {
    let [factor, other, negative, positive] = inputs;
    let [n, rank] = shape_of(factor);
    let floor = match factor.dtype() {
        DType::F32 => Precision::F32.floor(),
        _ => Precision::F64.floor(),
    };
    let gamma = Gamma::new(exponent);
    let step = Step { gamma, floor };
    let (w, h) = (view(factor), view(other));
    let at = At {
        factor: &w,
        other: &h,
        rank,
    };
    let mut parts = term.parts(side, at, PartsOf::default());
    let (less, more) = (Broadcast::of(negative), Broadcast::of(positive));
    let add = |rows: Range<usize>, negative: &mut [f64], positive: &mut [f64]| {
        less.add_to(rows.clone(), rank, negative);
        more.add_to(rows, rank, positive);
    };
    step.apply(&w, rank, &mut parts, add);
    let PartsOf {
        negative: updated,
        positive: inverse,
    } = parts;
    let shapes = [less.shape, more.shape];
    let updated = like(updated, [n, rank], factor);
    drop((less, more));
    let saved = SavedUpdate {
        term: term.clone(),
        side,
        updated: updated.clone(),
        inverse: Arc::new(inverse),
        step,
        shapes,
        factor: factor.clone(),
        other: other.clone(),
    };
    (updated, saved)
}

impl SavedUpdate {
    /// Cotangents of both factors and of N and P, from that of the updated factor:
    /// `q̄ = w γ q^(γ−1) α`, `N̄ = q̄/P`, `P̄ = −q q̄/P`, `w̄ = q^γ α + …`.
    fn back(self, alpha: &[f64], needs: Needs) -> (Bars, PartsOf) {
        let (w, h) = (view(&self.factor), view(&self.other));
        let [_, rank] = shape_of(&self.factor);
        let mut of = PartsOf {
            negative: vec![0.0; w.len()],
            positive: Arc::unwrap_or_clone(self.inverse),
        };
        let mut share = alpha.to_vec();
        let updated = view(&self.updated);
        self.step.transpose([&w, &updated], &mut of, &mut share);
        let at = At {
            factor: &w,
            other: &h,
            rank,
        };
        let mut bars = self.term.parts_cotangent(self.side, at, &of, needs);
        if let Some(factor) = &mut bars.factor {
            let tasks = factor.par_chunks_mut(TASK).zip(share.par_chunks(TASK));
            tasks.for_each(|(factor, share)| {
                let entries = factor.iter_mut().zip(share);
                entries.for_each(|(bar, share)| *bar += share);
            });
        }
        (bars, of)
    }
}

#[derive(Debug)]
struct UpdateBackward;

impl Backward<NdArray, 4> for UpdateBackward {
    type State = SavedUpdate;

    fn backward(self, ops: Ops<SavedUpdate, 4>, grads: &mut Gradients, _: &mut Checkpointer) {
        let alpha = grads.consume::<NdArray>(&ops.node);
        let [factor, other, negative, positive] = ops.parents;
        let saved = ops.state;
        let needs = Needs {
            factor: factor.is_some(),
            other: other.is_some(),
        };
        let (shapes, of_factor, of_other) =
            (saved.shapes, saved.factor.clone(), saved.other.clone());
        let (bars, of) = saved.back(&view(&alpha), needs);
        let [_, rank] = shape_of(&of_factor);
        let penalties = [
            (negative, &of.negative, shapes[0]),
            (positive, &of.positive, shapes[1]),
        ];
        for (node, values, shape) in penalties {
            if let Some(node) = node {
                let mut summed = vec![0.0; shape[0] * shape[1]];
                add_summed(values, rank, shape, &mut summed);
                grads.register::<NdArray>(node.id, like(summed, shape, &of_factor));
            }
        }
        let factors = [
            (factor, bars.factor, &of_factor),
            (other, bars.other, &of_other),
        ];
        for (node, values, tensor) in factors {
            if let (Some(node), Some(values)) = (node, values) {
                let bar = like(values, shape_of(tensor), tensor);
                grads.register::<NdArray>(node.id, bar);
            }
        }
    }
}

/// Saved values of the errors, for their backward pass.
#[derive(Debug, Clone)]
struct SavedErrors {
    term: SharedTerm,
    w: NdArrayTensor,
    h: NdArrayTensor,
}

impl SavedErrors {
    fn forward(&self) -> NdArrayTensor {
        let [n, rank] = shape_of(&self.w);
        let (w, h) = (view(&self.w), view(&self.h));
        let at = At {
            factor: &w,
            other: &h,
            rank,
        };
        like(self.term.outer_errors(at), [n, 1], &self.w)
    }

    fn back(&self, of: &[f64], needs: Needs) -> Bars {
        let [_, rank] = shape_of(&self.w);
        let (w, h) = (view(&self.w), view(&self.h));
        let at = At {
            factor: &w,
            other: &h,
            rank,
        };
        self.term.outer_cotangent(at, of, needs)
    }
}

#[derive(Debug)]
struct ErrorsBackward;

impl Backward<NdArray, 2> for ErrorsBackward {
    type State = SavedErrors;

    fn backward(self, ops: Ops<SavedErrors, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let of = grads.consume::<NdArray>(&ops.node);
        let [w, h] = ops.parents;
        let saved = ops.state;
        let needs = Needs {
            factor: w.is_some(),
            other: h.is_some(),
        };
        let bars = saved.back(&view(&of), needs);
        for (node, values, tensor) in [(w, bars.factor, &saved.w), (h, bars.other, &saved.h)] {
            if let (Some(node), Some(values)) = (node, values) {
                let bar = like(values, shape_of(tensor), tensor);
                grads.register::<NdArray>(node.id, bar);
            }
        }
    }
}

/// `w ((N + p⁻) / (P + p⁺))^γ`, on the tape if an input is.
///
/// # Shapes
/// Those of [`At`]. The penalties' parts broadcast to the factor.
pub(crate) fn update(
    term: &SharedTerm,
    side: Side,
    factor: &Tensor<2>,
    other: &Tensor<2>,
    penalties: &Split,
    exponent: f64,
) -> Tensor<2> {
    let inputs = [factor, other, &penalties.negative, &penalties.positive];
    if !inputs.iter().any(|input| input.is_autodiff()) {
        let inputs = inputs.map(plain);
        let (updated, _) = forward(term, side, inputs.each_ref(), exponent);
        return Tensor::from_primitive::<NdArray>(updated);
    }
    let inputs = inputs.map(taped);
    let nodes = inputs.each_ref().map(|input| input.node());
    let inputs = inputs.map(|input| input.into_primitive());
    let (updated, saved) = forward(term, side, inputs.each_ref(), exponent);
    let prepared = UpdateBackward.prepare::<NoCheckpointing>(nodes);
    Tensor::from_primitive::<Tape>(match prepared.compute_bound().stateful() {
        OpsKind::Tracked(prepared) => prepared.finish(saved, updated),
        OpsKind::UnTracked(prepared) => prepared.finish(updated),
    })
}

/// P of an unpenalised update.
pub(crate) fn denominator(
    term: &SharedTerm,
    side: Side,
    factor: &Tensor<2>,
    other: &Tensor<2>,
) -> Tensor<2> {
    let (factor, other) = (plain(factor), plain(other));
    let (w, h) = (view(&factor), view(&other));
    let [n, rank] = shape_of(&factor);
    let at = At {
        factor: &w,
        other: &h,
        rank,
    };
    let positive = term.denominators(side, at);
    Tensor::from_primitive::<NdArray>(like(positive, [n, rank], &factor))
}

/// The parts of an unpenalised update and their tangents, off the tape.
///
/// # Shapes
/// `moves` like the factors; the parts like the factor.
pub(crate) fn parts_with_tangent(
    term: &SharedTerm,
    side: Side,
    factors: [&Tensor<2>; 2],
    moves: [Option<&Tensor<2>>; 2],
) -> (Split, Split) {
    let [factor, other] = factors.map(plain);
    let moves = moves.map(|along| along.map(plain));
    let (w, h) = (view(&factor), view(&other));
    let [n, rank] = shape_of(&factor);
    let at = At {
        factor: &w,
        other: &h,
        rank,
    };
    let along = moves.each_ref().map(|along| along.as_ref().map(view));
    let [factor_dot, other_dot] = along.each_ref().map(Option::as_deref);
    let split = |parts: PartsOf| {
        let tensor = |values| Tensor::from_primitive::<NdArray>(like(values, [n, rank], &factor));
        Split {
            positive: tensor(parts.positive),
            negative: tensor(parts.negative),
        }
    };
    let moves = Moves {
        factor: factor_dot.expect("the factor moves"),
        other: other_dot,
    };
    let dot = term.parts_tangent(side, at, moves);
    let parts = term.parts(side, at, PartsOf::default());
    (split(parts), split(dot))
}

/// D of each row of one side over the fitted entries, off the tape.
///
/// # Shapes
/// n×1 for `factor` n×r.
pub(crate) fn divergences(
    term: &SharedTerm,
    side: Side,
    factor: &Tensor<2>,
    other: &Tensor<2>,
) -> Tensor<2> {
    let (factor, other) = (plain(factor), plain(other));
    let [n, rank] = shape_of(&factor);
    let (w, h) = (view(&factor), view(&other));
    let at = At {
        factor: &w,
        other: &h,
        rank,
    };
    let errors = term.divergences(side, at);
    Tensor::from_primitive::<NdArray>(like(errors, [n, 1], &factor))
}

/// E of each row of W, n×1, on the tape if a factor is.
///
/// # Shapes
/// `w` n×r, `h` m×r.
pub(crate) fn outer_errors(term: &SharedTerm, w: &Tensor<2>, h: &Tensor<2>) -> Tensor<2> {
    let saved = |w, h| SavedErrors {
        term: term.clone(),
        w,
        h,
    };
    if !(w.is_autodiff() || h.is_autodiff()) {
        return Tensor::from_primitive::<NdArray>(saved(plain(w), plain(h)).forward());
    }
    let inputs = [taped(w), taped(h)];
    let nodes = inputs.each_ref().map(|input| input.node());
    let [w, h] = inputs.map(|input| input.into_primitive());
    let saved = saved(w, h);
    let errors = saved.forward();
    let prepared = ErrorsBackward.prepare::<NoCheckpointing>(nodes);
    Tensor::from_primitive::<Tape>(match prepared.compute_bound().stateful() {
        OpsKind::Tracked(prepared) => prepared.finish(saved, errors),
        OpsKind::UnTracked(prepared) => prepared.finish(errors),
    })
}

/// The transposed derivative of an update, off the tape.
pub(crate) struct UpdateGradient {
    /// Cotangent of the factor.
    pub(crate) factor: Tensor<2>,
    /// Cotangent of the other factor, if it was requested.
    pub(crate) other: Option<Tensor<2>>,
    /// Cotangents of the parts, and so of the penalties' parts; n×r.
    pub(crate) parts: Split,
}

/// An update with saved values for its backward pass.
#[derive(Debug, Clone)]
pub(crate) struct Kept(SavedUpdate);

/// [`update`] off the tape, with saved values for its backward pass.
pub(crate) fn update_and_keep(
    term: &SharedTerm,
    side: Side,
    factor: &Tensor<2>,
    other: &Tensor<2>,
    penalties: &Split,
    exponent: f64,
) -> (Tensor<2>, Kept) {
    let inputs = [factor, other, &penalties.negative, &penalties.positive].map(plain);
    let (updated, saved) = forward(term, side, inputs.each_ref(), exponent);
    (Tensor::from_primitive::<NdArray>(updated), Kept(saved))
}

impl Kept {
    /// The cotangents of the inputs, from the cotangent α of the updated factor.
    pub(crate) fn gradient(self, alpha: &Tensor<2>, other_moves: bool) -> UpdateGradient {
        let Self(saved) = self;
        let (of_factor, of_other) = (saved.factor.clone(), saved.other.clone());
        let needs = Needs {
            factor: true,
            other: other_moves,
        };
        let (bars, of) = saved.back(&to_host(alpha), needs);
        let tensor = |values: Vec<f64>, like_tensor: &NdArrayTensor| {
            let shape = shape_of(like_tensor);
            Tensor::from_primitive::<NdArray>(like(values, shape, like_tensor))
        };
        UpdateGradient {
            factor: tensor(bars.factor.expect("it was asked for"), &of_factor),
            other: bars.other.map(|values| tensor(values, &of_other)),
            parts: Split {
                positive: tensor(of.positive, &of_factor),
                negative: tensor(of.negative, &of_factor),
            },
        }
    }
}

/// `(∂E/∂w, ∂E/∂h)`, where E is the sum of all rows' errors.
pub(crate) fn outer_gradient(
    term: &SharedTerm,
    w: &Tensor<2>,
    h: &Tensor<2>,
) -> (Tensor<2>, Tensor<2>) {
    let saved = SavedErrors {
        term: term.clone(),
        w: plain(w),
        h: plain(h),
    };
    let ones = vec![1.0; w.dims()[0]];
    let needs = Needs {
        factor: true,
        other: true,
    };
    let bars = saved.back(&ones, needs);
    let tensor = |values: Option<Vec<f64>>, like_tensor: &NdArrayTensor| {
        let values = values.expect("it was asked for");
        Tensor::from_primitive::<NdArray>(like(values, shape_of(like_tensor), like_tensor))
    };
    (tensor(bars.factor, &saved.w), tensor(bars.other, &saved.h))
}

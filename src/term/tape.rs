//! The data term as two operations on Burn's tape: an update, and the errors.
//!
//! A node of the tape has one output, so a whole update is one node. Its inputs are the factors and
//! the weighted parts of penalties. The weights of up to two penalties that couple rows are inputs
//! too, and their loops run inside the node; as tensor operations such a penalty would be some twenty.
//! The output is the updated factor, `w ((N + p⁻) / (P + p⁺))^γ`. Inputs that are not tracked cost
//! nothing in the backward pass. Adjoint mode calls the same transposed derivatives without a tape.
#![expect(deprecated, reason = "every item of burn-ndarray is; see device.rs")]

use std::borrow::Cow;
use std::iter::repeat;
use std::ops::Range;
use std::sync::Arc;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{NdArray, TensorMetadata};
use burn::tensor::{DType, Tensor};
use burn_ndarray::NdArrayTensor;

use super::update::{Step, WeightedPenalty, through_penalties};
use super::{At, Bars, Moves, Needs, PartsOf, SharedTerm};
use crate::factors::Side;
use crate::numerics::{Gamma, Precision, add, add_summed, to_host};
use crate::penalty::{Penalty, PenaltyTerm, Spread};
use crate::primitive::{Tape, constant, like, plain, shape_of, taped, view};
use crate::split::Split;
use crate::update::Rule;

/// Both factors as plain numbers.
struct Both<'a> {
    factor: Cow<'a, [f64]>,
    other: Cow<'a, [f64]>,
    shape: [usize; 2],
}

impl<'a> Both<'a> {
    fn of(factor: &'a NdArrayTensor, other: &'a NdArrayTensor) -> Self {
        Self {
            factor: view(factor),
            other: view(other),
            shape: shape_of(factor),
        }
    }

    fn at(&self) -> At<'_> {
        At {
            factor: &self.factor,
            other: &self.other,
            rank: self.shape[1],
        }
    }
}

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
                add(row, values);
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
    /// Shapes of all inputs.
    shapes: Vec<[usize; 2]>,
    coupled: Vec<Coupled>,
}

/// The penalties of an update.
pub(crate) struct Penalties {
    /// The weighted parts, broadcasting to the factor, of penalties that are not in `coupled`.
    parts: Split,
    /// Penalties that couple rows and have loops on plain numbers, with their weights;
    /// [`MOST_COUPLED`] at most.
    coupled: Vec<(Arc<dyn Penalty>, Tensor<2>)>,
}

/// The largest number of such penalties; others are tensor operations. (Each number of inputs is a type
/// of its own.)
const MOST_COUPLED: usize = 2;

impl Penalties {
    /// The penalties of a rule whose weights are bound.
    pub(crate) fn of(rule: &Rule, factor: &Tensor<2>) -> Self {
        let mut coupled = Vec::new();
        let mut parts: Option<Split> = None;
        for term in &rule.terms {
            if coupled.len() < MOST_COUPLED && term.loops_for(factor).is_some() {
                coupled.push((term.penalty.clone(), term.weight(factor)));
            } else {
                let split = weighted_split(term, factor);
                parts = Some(match parts {
                    Some(sum) => sum.plus(split),
                    None => split,
                });
            }
        }
        let zero = || Tensor::zeros([1, 1], (&factor.device(), factor.dtype()));
        let parts = parts.unwrap_or_else(|| Split {
            positive: zero(),
            negative: zero(),
        });
        Self { parts, coupled }
    }

    /// The tensors that an update depends on.
    fn inputs<'a>(&'a self, factor: &'a Tensor<2>, other: &'a Tensor<2>) -> Vec<&'a Tensor<2>> {
        let parts = [&self.parts.negative, &self.parts.positive];
        let weights = self.coupled.iter().map(|(_, weight)| weight);
        [factor, other]
            .into_iter()
            .chain(parts)
            .chain(weights)
            .collect()
    }

    fn penalties(&self) -> impl Iterator<Item = &Arc<dyn Penalty>> {
        self.coupled.iter().map(|(penalty, _)| penalty)
    }
}

/// The weighted split of a penalty. (Plug-ins often return whole matrices of zeros or ones.)
fn weighted_split(term: &PenaltyTerm, factor: &Tensor<2>) -> Split {
    if term.penalty.coupling().is_some() {
        return term.weighted_split(factor);
    }
    let weight = term.weight(factor);
    let Split { positive, negative } = term.penalty.split(factor);
    let [positive, negative] = [positive, negative].map(|part| match constant(&part) {
        // (A whole matrix that is 0 here may not be 0 in another process, and all must make the same
        // passes back.)
        Some(0.0) if part.dims() == [1, 1] => {
            Tensor::zeros([1, 1], (&factor.device(), factor.dtype()))
        }
        Some(value) => weight.clone() * value,
        None => part * weight.clone(),
    });
    Split { positive, negative }
}

/// A penalty that couples rows, and its weight.
#[derive(Debug, Clone)]
struct Coupled {
    penalty: Arc<dyn Penalty>,
    weight: NdArrayTensor,
}

/// On plain numbers.
fn weighted(coupled: &[Coupled], tracked: impl Iterator<Item = bool>) -> Vec<WeightedPenalty<'_>> {
    let weighted = coupled.iter().zip(tracked);
    let weighted = weighted.map(|(Coupled { penalty, weight }, is_tracked)| {
        let spread = Spread::new(view(weight).into_owned(), shape_of(weight));
        WeightedPenalty {
            penalty: penalty.on_host().expect("its loops serve here"),
            weight: Cow::Owned(spread),
            is_tracked,
        }
    });
    weighted.collect()
}

/// The updated factor, and the saved values for its backward pass. The inputs are those of
/// [`Penalties::inputs`].
fn forward<'a>(
    term: &SharedTerm,
    side: Side,
    inputs: &[NdArrayTensor],
    penalties: impl Iterator<Item = &'a Arc<dyn Penalty>>,
    exponent: f64,
) -> (NdArrayTensor, SavedUpdate) {
    let [factor, other, negative, positive, weights @ ..] = inputs else {
        unreachable!("an update has four inputs and the weights of penalties");
    };
    let coupled = penalties.zip(weights).map(|(penalty, weight)| Coupled {
        penalty: penalty.clone(),
        weight: weight.clone(),
    });
    let coupled: Vec<Coupled> = coupled.collect();
    let floor = match factor.dtype() {
        DType::F32 => Precision::F32.floor(),
        _ => Precision::F64.floor(),
    };
    let gamma = Gamma::new(exponent);
    let step = Step { gamma, floor };
    let numbers = Both::of(factor, other);
    let (at, rank) = (numbers.at(), numbers.shape[1]);
    let (less, more) = (Broadcast::of(negative), Broadcast::of(positive));
    let add = |rows: Range<usize>, negative: &mut [f64], positive: &mut [f64]| {
        less.add_to(rows.clone(), rank, negative);
        more.add_to(rows, rank, positive);
    };
    let penalties = weighted(&coupled, repeat(false));
    let apply = step.apply(at, &penalties, add);
    let PartsOf {
        negative: updated,
        positive: inverse,
    } = term.finished_parts(side, at, PartsOf::default(), &apply);
    drop(apply);
    let updated = like(updated, numbers.shape, factor);
    let saved = SavedUpdate {
        term: term.clone(),
        side,
        updated: updated.clone(),
        inverse: Arc::new(inverse),
        step,
        shapes: inputs.iter().map(shape_of).collect(),
        coupled,
        factor: factor.clone(),
        other: other.clone(),
    };
    (updated, saved)
}

impl SavedUpdate {
    /// Cotangents of both factors, of N and P, and of the tracked weights of coupled penalties, from
    /// that of the updated factor: `q̄ = w γ q^(γ−1) α`, `N̄ = q̄/P`, `P̄ = −q q̄/P`, `w̄ = q^γ α + …`.
    fn back(self, mut alpha: Vec<f64>, needs: Needs, tracked: &[bool]) -> Transposed {
        let numbers = Both::of(&self.factor, &self.other);
        let at = numbers.at();
        let mut of = PartsOf {
            negative: vec![0.0; at.factor.len()],
            positive: Arc::unwrap_or_clone(self.inverse),
        };
        let updated = view(&self.updated);
        let step = self.step;
        step.transpose([at.factor, &updated], &mut of, &mut alpha, &[]);
        let mut bars = self.term.parts_cotangent(self.side, at, &of, needs);
        let through_parts = bars.factor.take().unwrap_or_default();
        let weights = self.coupled.iter().zip(tracked);
        let weights = weights.map(|(Coupled { weight, .. }, is_tracked)| {
            let [rows, width] = shape_of(weight);
            is_tracked.then(|| vec![0.0; rows * width])
        });
        let mut weights: Vec<Option<Vec<f64>>> = weights.collect();
        let gradients = weights.iter_mut().flatten().map(Vec::as_mut_slice);
        let coupled = weighted(&self.coupled, tracked.iter().copied());
        through_penalties(at, &coupled, &of, &through_parts, &mut alpha, gradients);
        if needs.factor {
            bars.factor = Some(alpha);
        }
        Transposed { bars, of, weights }
    }
}

/// The cotangents of an update's inputs.
struct Transposed {
    bars: Bars,
    /// Those of N and P, and so of the penalties' parts.
    of: PartsOf,
    /// Those of the weights of coupled penalties, if they are tracked.
    weights: Vec<Option<Vec<f64>>>,
}

#[derive(Debug)]
struct UpdateBackward;

impl<const N: usize> Backward<NdArray, N> for UpdateBackward {
    type State = SavedUpdate;

    fn backward(self, ops: Ops<SavedUpdate, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let alpha = grads.consume::<NdArray>(&ops.node);
        let (parents, saved) = (ops.parents, ops.state);
        let needs = Needs {
            factor: parents[0].is_some(),
            other: parents[1].is_some(),
        };
        let (factor, shapes) = (saved.factor.clone(), saved.shapes.clone());
        let tracked: Vec<bool> = parents[4..].iter().map(Option::is_some).collect();
        let alpha = view(&alpha).into_owned();
        let Transposed { bars, of, weights } = saved.back(alpha, needs, &tracked);
        let of_parts = [(2, of.negative), (3, of.positive)].map(|(place, entries)| {
            parents[place].as_ref().map(|_| {
                let shape = shapes[place];
                let mut sums = vec![0.0; shape[0] * shape[1]];
                add_summed(&entries, shapes[0][1], shape, &mut sums);
                sums
            })
        });
        let bars = [bars.factor, bars.other].into_iter().chain(of_parts);
        let bars = bars.chain(weights);
        for ((node, bar), shape) in parents.into_iter().zip(bars).zip(shapes) {
            if let (Some(node), Some(bar)) = (node, bar) {
                grads.register::<NdArray>(node.id, like(bar, shape, &factor));
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
        let numbers = Both::of(&self.w, &self.h);
        let errors = self.term.outer_errors(numbers.at());
        like(errors, [numbers.shape[0], 1], &self.w)
    }

    fn back(&self, of: &[f64], needs: Needs) -> Bars {
        let numbers = Both::of(&self.w, &self.h);
        self.term.outer_cotangent(numbers.at(), of, needs)
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
    penalties: &Penalties,
    exponent: f64,
) -> Tensor<2> {
    let inputs = penalties.inputs(factor, other);
    if !inputs.iter().any(|input| input.is_autodiff()) {
        let inputs: Vec<_> = inputs.into_iter().map(plain).collect();
        let (updated, _) = forward(term, side, &inputs, penalties.penalties(), exponent);
        return Tensor::from_primitive::<NdArray>(updated);
    }
    let inputs: Vec<_> = inputs.into_iter().map(taped).collect();
    let numbers = inputs.iter().map(|input| input.clone().into_primitive());
    let numbers: Vec<_> = numbers.collect();
    let made = forward(term, side, &numbers, penalties.penalties(), exponent);
    match penalties.coupled.len() {
        0 => on_tape::<4>(&inputs, made),
        1 => on_tape::<5>(&inputs, made),
        MOST_COUPLED => on_tape::<6>(&inputs, made),
        more => unreachable!("{more} coupled penalties"),
    }
}

/// A node for an update with so many inputs.
fn on_tape<const N: usize>(
    inputs: &[FloatTensor<Tape>],
    (updated, saved): (NdArrayTensor, SavedUpdate),
) -> Tensor<2> {
    let nodes: [_; N] = std::array::from_fn(|place| inputs[place].node());
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
    let numbers = Both::of(&factor, &other);
    let positive = term.denominators(side, numbers.at());
    Tensor::from_primitive::<NdArray>(like(positive, numbers.shape, &factor))
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
    let numbers = Both::of(&factor, &other);
    let at = numbers.at();
    let along = moves.each_ref().map(|along| along.as_ref().map(view));
    let [factor_dot, other_dot] = along.each_ref().map(Option::as_deref);
    let split = |parts: PartsOf| {
        let shape = numbers.shape;
        let tensor = |values| Tensor::from_primitive::<NdArray>(like(values, shape, &factor));
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
    let numbers = Both::of(&factor, &other);
    let errors = term.divergences(side, numbers.at());
    let shape = [numbers.shape[0], 1];
    Tensor::from_primitive::<NdArray>(like(errors, shape, &factor))
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
    penalties: &Penalties,
    exponent: f64,
) -> (Tensor<2>, Kept) {
    let inputs = penalties.inputs(factor, other).into_iter().map(plain);
    let inputs: Vec<_> = inputs.collect();
    let (updated, mut saved) = forward(term, side, &inputs, penalties.penalties(), exponent);
    // (Their cotangents are the caller's.)
    saved.coupled.clear();
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
        let Transposed { bars, of, .. } = saved.back(to_host(alpha), needs, &[]);
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

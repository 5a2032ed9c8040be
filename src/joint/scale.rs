//! Sums to the shape of a weight, and the weight at which a penalty matters.

use burn::tensor::Tensor;

use super::{JointBunch, Pair};
use crate::factors::Side;
use crate::numerics::{Precision, to_host};
use crate::penalty::Weight;
use crate::update::Rule;

/// The sum of a matrix over the entries that a weight of this shape belongs to.
pub(crate) fn summed_to(matrix: Tensor<2>, shape: [usize; 2]) -> Tensor<2> {
    let mut sum = matrix;
    for (dimension, size) in shape.into_iter().enumerate() {
        if size == 1 {
            sum = sum.sum_dim(dimension);
        }
    }
    sum
}

impl JointBunch {
    /// For each tuned penalty the weight at which it pulls about as hard as the fit,
    /// `ΣP / Σp⁺` over the entries that share a weight (for weights of entries: over
    /// their component), in the shape of the weight; 1 where the penalty does not pull.
    /// P is the denominator of the unpenalised update.
    pub(crate) fn natural_scales(&self, pair: &Pair, shapes: &[[usize; 2]]) -> Vec<Tensor<2>> {
        let (of_w, _) = self.tuned();
        let (shapes_w, shapes_h) = shapes.split_at(of_w);
        let (w, h) = (&pair.w, &pair.h);
        let mut scales = self.scales(&self.of_w, Side::W, w, h, shapes_w);
        scales.extend(self.scales(&self.of_h, Side::H, h, w, shapes_h));
        scales
    }

    fn scales(
        &self,
        rule: &Rule,
        side: Side,
        factor: &Tensor<2>,
        other: &Tensor<2>,
        shapes: &[[usize; 2]],
    ) -> Vec<Tensor<2>> {
        if shapes.is_empty() {
            return Vec::new();
        }
        let fit = self.data.fit_denominator(rule, side, factor, other);
        scales(rule, &fit, factor, shapes)
    }
}

fn scales(
    rule: &Rule,
    fit: &Tensor<2>,
    factor: &Tensor<2>,
    shapes: &[[usize; 2]],
) -> Vec<Tensor<2>> {
    let floor = Precision::of(factor).floor();
    let tuned = rule.terms.iter().filter(|term| term.is_tuned());
    let scales = tuned.zip(shapes).map(|(term, shape)| {
        let mut term = term.clone();
        let one = Tensor::ones([1, 1], (&factor.device(), factor.dtype()));
        term.weight = Weight::Bound(one.clone());
        let pull = term.weighted_split(factor, &one).positive;
        // An entry that is zero would have no scale of its own.
        let over = if shape[0] > 1 && shape[1] > 1 {
            [1, shape[1]]
        } else {
            *shape
        };
        let sum = |matrix: Tensor<2>| summed_to(matrix.expand(factor.dims()), over);
        let (fit, pull) = (sum(fit.clone()), sum(pull));
        let none = pull.clone().lower_equal_elem(floor);
        let scale = (fit / pull.mask_fill(none.clone(), 1.0)).mask_fill(none, 1.0);
        scale.expand(*shape)
    });
    scales.collect()
}

impl JointBunch {
    /// The size of a hypergradient below which it counts as rounding: where its terms cancel,
    /// as at a perfect fit, no two programs agree.
    pub(crate) fn cancellation(&self, pair: &Pair, lambda: &[Tensor<2>]) -> f64 {
        let weights = lambda.iter().flat_map(to_host);
        let largest = weights.fold(f64::MIN_POSITIVE, f64::max);
        crate::numerics::CANCELLATION * self.terms(pair) / largest
    }

    /// What rounding alone can make of dE/dλ in a mode that differentiates: a thousand times
    /// epsilon of what its terms are when they do not cancel.
    pub(crate) fn rounding(&self, pair: &Pair, lambda: &[Tensor<2>]) -> f64 {
        let end = self.run(pair, lambda);
        let moved = |before: &Tensor<2>, after: &Tensor<2>| {
            let (before, after) = (to_host(before), to_host(after));
            let changes = before.iter().zip(&after).map(|(b, a)| (a - b).abs());
            let size = after
                .iter()
                .fold(f64::MIN_POSITIVE, |most, a| most.max(a.abs()));
            changes.fold(0.0, f64::max) / size
        };
        let moved = f64::max(moved(&pair.w, &end.w), moved(&pair.h, &end.h));
        let weights = lambda.iter().flat_map(to_host);
        let largest = weights.fold(f64::MIN_POSITIVE, f64::max);
        1000.0 * Precision::of(&pair.w).epsilon() * self.terms(&end) * moved.min(1.0) / largest
    }

    /// How large the terms are whose sum is E's change: for telling a hypergradient from
    /// rounding.
    pub(super) fn terms(&self, pair: &Pair) -> f64 {
        let y = self.of_w.reconstruct(&pair.w, &pair.h.clone().transpose());
        let x = match self.data.observed("any", Side::W) {
            Ok(observed) => observed.x.clone(),
            // (Without tensors of X: as if the fit were perfect.)
            Err(_) => y.clone(),
        };
        let split = self.of_w.divergence.split(&x, &y);
        let terms = (split.positive + split.negative) * y;
        to_host(&terms).iter().sum::<f64>() + self.outer_error(pair)
    }
}

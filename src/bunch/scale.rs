//! Sums to the shape of a weight, natural scales of weights, and the size of a hypergradient's
//! terms.

use burn::tensor::{Tensor, TensorData};

use super::{Bunch, Pair};
use crate::factors::Side;
use crate::hypergradient::Forward;
use crate::numerics::{Precision, add_summed, to_host};
use crate::update::Rule;

/// The sums of a matrix over the entries that share a weight.
pub(crate) fn summed_to(matrix: Tensor<2>, shape: [usize; 2]) -> Tensor<2> {
    let mut sum = matrix;
    for (dimension, size) in shape.into_iter().enumerate() {
        if size == 1 {
            sum = sum.sum_dim(dimension);
        }
    }
    sum
}

impl Bunch {
    /// For each tuned penalty, the weight at which penalty and fit pull about equally hard: `ΣP /
    /// Σp⁺` over the entries that share a weight (for weights of entries: over their component), in
    /// the shape of the weight. It is 1 if the penalty does not pull. P is the denominator of the
    /// unpenalised update.
    pub(crate) fn natural_scales(&self, pair: &Pair, shapes: &[[usize; 2]]) -> Vec<Tensor<2>> {
        self.scales_of_pull(pair, shapes, 0.0)
    }

    /// The same for checks, with `p⁺ − ½ p⁻` as the pull. If the two parts cancel, as in the Hoyer
    /// ratio of a single entry, they still slow the update down.
    pub(crate) fn checking_scales(&self, pair: &Pair, shapes: &[[usize; 2]]) -> Vec<Tensor<2>> {
        self.scales_of_pull(pair, shapes, 0.5)
    }

    fn scales_of_pull(&self, pair: &Pair, shapes: &[[usize; 2]], taken_off: f64) -> Vec<Tensor<2>> {
        let (on_w, _) = self.tuned();
        let (shapes_w, shapes_h) = shapes.split_at(on_w);
        let mut scales = self.scales(&self.of_w, Side::W, pair, shapes_w, taken_off);
        scales.extend(self.scales(&self.of_h, Side::H, pair, shapes_h, taken_off));
        scales
    }

    fn scales(
        &self,
        rule: &Rule,
        side: Side,
        pair: &Pair,
        shapes: &[[usize; 2]],
        taken_off: f64,
    ) -> Vec<Tensor<2>> {
        if shapes.is_empty() {
            return Vec::new();
        }
        let (factor, other) = pair.seen_from(side);
        let fit = self.data.fit_denominator(rule, side, factor, other);
        let floor = Precision::of(factor).floor();
        let one = Tensor::ones([1, 1], (&factor.device(), factor.dtype()));
        let scales = rule.tuned().zip(shapes).map(|(term, shape)| {
            let split = match self.data.is_reference() {
                true => term.split_with(factor, &one),
                false => term.split_by_loops(factor, &one),
            };
            let pull = if taken_off == 0.0 {
                split.positive
            } else {
                split.positive - split.negative * taken_off
            };
            // An entry that is zero would have no scale.
            let over = if shape[0] > 1 && shape[1] > 1 {
                [1, shape[1]]
            } else {
                *shape
            };
            let sum = |matrix: Tensor<2>| {
                let all = to_host(&matrix.expand(factor.dims()));
                let mut sum = vec![0.0; over[0] * over[1]];
                add_summed(&all, factor.dims()[1], over, &mut sum);
                let sum = TensorData::new(sum, over);
                let sum = Tensor::from_data(sum, (&factor.device(), factor.dtype()));
                self.over_processes(side, sum)
            };
            let (fit, pull) = (sum(fit.clone()), sum(pull));
            let none = pull.clone().lower_equal_elem(floor);
            let scale = (fit / pull.mask_fill(none.clone(), 1.0)).mask_fill(none, 1.0);
            scale.expand(*shape)
        });
        scales.collect()
    }

    /// The size of the terms whose sum is dE/dλ: the largest row, or the sum over rows that share a
    /// weight. If they cancel, as at a perfect fit, only rounding is left. Without tangents it is
    /// an upper bound, as if every λ acted in full.
    pub(crate) fn sensitivity(&self, pair: &Pair, lambda: &[Tensor<2>]) -> f64 {
        let ones: Vec<Tensor<2>> = lambda.iter().map(Tensor::ones_like).collect();
        let Ok((end, moved)) = Forward::default().tangent(self, pair, lambda, &ones) else {
            let largest = lambda.iter().flat_map(to_host);
            let largest = largest.fold(f64::MIN_POSITIVE, f64::max);
            let end = self.run(pair, lambda);
            return to_host(&self.error_terms(&end)).iter().sum::<f64>() / largest;
        };
        let terms = self.data.slope_terms(&self.of_w, &end);
        let of_w = terms.clone().matmul(end.h) * moved.w.abs();
        let of_h = terms.transpose().matmul(end.w) * moved.h.abs();
        let rows = [of_w, of_h]
            .into_iter()
            .flat_map(|terms| to_host(&terms.sum_dim(1)));
        if lambda.iter().any(|weight| weight.dims()[0] == 1) {
            rows.sum()
        } else {
            rows.fold(0.0, f64::max)
        }
    }

    /// The size of the terms of E, row by row: n×1.
    pub(crate) fn error_terms(&self, pair: &Pair) -> Tensor<2> {
        let y = self.of_w.reconstruct(&pair.w, &pair.h.clone().transpose());
        let terms = self.data.slope_terms(&self.of_w, pair) * y;
        terms.sum_dim(1) + self.outer_errors(pair)
    }
}

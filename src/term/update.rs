//! `Φ` and its transposed derivative on plain numbers, from N and P: the loops that adjoint mode and
//! the tape share.

use std::borrow::Cow;
use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::{At, PartsOf};
use crate::numerics::{Gamma, TASK, add, add_row, add_rows, rows_in_task};
use crate::penalty::{HostPenalty, Rows, Spread};

/// The constants of an update.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) gamma: Gamma,
    /// The smallest P.
    pub(crate) floor: f64,
}

/// A penalty and its weight.
pub(crate) struct WeightedPenalty<'a> {
    pub(crate) penalty: &'a dyn HostPenalty,
    pub(crate) weight: Cow<'a, Spread>,
    /// True if the cotangent of its weight is requested.
    pub(crate) is_tracked: bool,
}

impl Step {
    /// A function of the index of the first row, and N and P of some rows. It puts `w ((N + p⁻) / (P +
    /// p⁺))^γ` in the place of N, and 1/P with P at least at its floor in the place of P. Where w is 0,
    /// q takes the place of 1/P. `add` adds further parts to N and P.
    pub(crate) fn apply<'a>(
        self,
        at: At<'a>,
        penalties: &'a [WeightedPenalty<'a>],
        add: impl Fn(Range<usize>, &mut [f64], &mut [f64]) + Sync + 'a,
    ) -> impl Fn(usize, &mut [f64], &mut [f64]) + Sync + 'a {
        let (values, rank) = (at.factor, at.rank);
        let w = Rows { values, rank };
        move |first: usize, negative: &mut [f64], positive: &mut [f64]| {
            let rows = first..first + negative.len() / rank;
            for term in penalties {
                let (penalty, weight) = (term.penalty, &term.weight);
                penalty.add_split(w, weight, rows.clone(), positive, negative);
            }
            add(rows, negative, positive);
            Arch::new().dispatch(Apply {
                step: self,
                w: &values[first * rank..],
                negative,
                positive,
            });
        }
    }

    /// `N̄ = w γ q^(γ−1) α / P` and `P̄ = −q N̄`, from the results of [`apply`](Self::apply). On input
    /// `positive` is 1/P, and `negative` is not read. On output they are P̄ and N̄. α is the sum of
    /// `alpha` and `more` (which may be empty). On output `alpha` is `q^γ α`.
    pub(crate) fn transpose(
        self,
        [w, updated]: [&[f64]; 2],
        parts: &mut PartsOf,
        alpha: &mut [f64],
        more: &[f64],
    ) {
        let PartsOf { negative, positive } = parts;
        let results = negative.par_chunks_mut(TASK);
        let results = results.zip(positive.par_chunks_mut(TASK));
        let results = results.zip(alpha.par_chunks_mut(TASK));
        let tasks = results.zip(w.par_chunks(TASK).zip(updated.par_chunks(TASK)));
        let tasks = tasks.enumerate();
        tasks.for_each(|(task, (((negative, positive), alpha), (w, updated)))| {
            add(alpha, more.get(task * TASK..).unwrap_or_default());
            Arch::new().dispatch(Transpose {
                step: self,
                w,
                updated,
                negative,
                positive,
                alpha,
            });
        });
    }
}

/// The loop of [`Step::apply`]. It is a type, so that it is compiled for each kind of processor.
struct Apply<'a> {
    step: Step,
    w: &'a [f64],
    negative: &'a mut [f64],
    positive: &'a mut [f64],
}

impl WithSimd for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Step { gamma, floor } = self.step;
        gamma.specialised(
            #[inline(always)]
            |gamma| {
                let parts = self.negative.iter_mut().zip(&mut *self.positive);
                for ((negative, positive), w) in parts.zip(self.w) {
                    let denominator = positive.max(floor);
                    let ratio = *negative / denominator;
                    let reciprocal = denominator.recip();
                    *negative = w * gamma.gain(ratio, floor);
                    *positive = if *w == 0.0 { ratio } else { reciprocal };
                }
            },
        );
    }
}

/// The loop of [`Step::transpose`].
struct Transpose<'a> {
    step: Step,
    w: &'a [f64],
    updated: &'a [f64],
    negative: &'a mut [f64],
    positive: &'a mut [f64],
    alpha: &'a mut [f64],
}

impl WithSimd for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Step { gamma, floor } = self.step;
        let most = floor.recip();
        gamma.specialised(
            #[inline(always)]
            |gamma| {
                let parts = self.negative.iter_mut().zip(&mut *self.positive);
                let results = parts.zip(&mut *self.alpha);
                let given = self.w.iter().zip(self.updated);
                for (((negative, positive), alpha), (w, updated)) in results.zip(given) {
                    let (inverse, is_zero) = (*positive, *w == 0.0);
                    let gain = match is_zero {
                        true => gamma.gain(inverse, floor),
                        false => updated / w,
                    };
                    let q = gamma.ratio(gain);
                    let through = w * gamma.slope(q, floor) * *alpha * inverse;
                    *negative = if is_zero { 0.0 } else { through };
                    // The derivative of P is zero at its floor.
                    let moved = -q * *negative;
                    *positive = if inverse < most { moved } else { 0.0 };
                    *alpha *= gain;
                }
            },
        );
    }
}

/// Adds the cotangent of the factor through the parts (it may be empty) and through its penalties to
/// that of the factor, and the cotangents of tracked weights to `gradients`, one for each.
pub(crate) fn through_penalties<'a>(
    at: At<'_>,
    penalties: &[WeightedPenalty<'_>],
    of: &PartsOf,
    through_parts: &[f64],
    factor: &mut [f64],
    gradients: impl Iterator<Item = &'a mut [f64]>,
) {
    let rank = at.rank;
    let rows_of = |values| Rows { values, rank };
    let parts = [rows_of(&of.positive), rows_of(&of.negative)];
    let (w, rows) = (rows_of(at.factor), rows_in_task(rank));
    // Weights that all rows share get sums of tasks. Others are chunks of their own.
    let tracked = penalties.iter().filter(|term| term.is_tracked);
    let (mut shared, mut own) = (Vec::new(), Vec::new());
    own.resize_with(factor.len().div_ceil(rows * rank), Vec::new);
    for (term, gradient) in tracked.zip(gradients) {
        match term.weight.shape() {
            [1, _] => shared.push(gradient),
            [_, width] => {
                let chunks = own.iter_mut().zip(gradient.chunks_mut(rows * width));
                chunks.for_each(|(own, chunk)| own.push(chunk));
            }
        }
    }
    let tasks = factor.par_chunks_mut(rows * rank).zip(own).enumerate();
    let sums = tasks.map(|(task, (factor, own))| {
        let first = task * rows;
        let range = first..first + factor.len() / rank;
        let share = through_parts.get(first * rank..range.end * rank);
        add(factor, share.unwrap_or_default());
        let count = if penalties.is_empty() {
            0
        } else {
            factor.len()
        };
        let mut entries = vec![0.0; count];
        let (mut own, mut sums) = (own.into_iter(), Vec::new());
        for term in penalties {
            let (penalty, weight) = (term.penalty, &term.weight);
            penalty.add_cotangent(w, weight, parts, range.clone(), factor, &mut entries);
            match weight.shape() {
                _ if !term.is_tracked => {}
                [1, width] => {
                    let mut sum = vec![0.0; width];
                    add_rows(&entries, rank, &mut sum);
                    sums.push(sum);
                }
                [_, width] => {
                    let chunk = own.next().expect("a chunk for each such weight");
                    let rows = entries.chunks_exact(rank);
                    let rows = rows.zip(chunk.chunks_exact_mut(width));
                    rows.for_each(|(row, sum)| add_row(sum, row));
                }
            }
        }
        sums
    });
    // (Their order does not depend on the threads.)
    for sums in sums.collect::<Vec<Vec<Vec<f64>>>>() {
        for (gradient, sum) in shared.iter_mut().zip(sums) {
            add(gradient, &sum);
        }
    }
}

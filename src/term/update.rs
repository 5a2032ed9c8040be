//! `Φ` and its transposed derivative on plain numbers, from N and P: the loops that adjoint mode and
//! the tape share.

use std::borrow::Cow;
use std::ops::Range;

use pulp::Arch;
use rayon::prelude::*;

use super::{At, PartsOf};
use crate::numerics::{Gamma, TASK, rows_in_task};
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
    /// Index of its weight among the tuned ones.
    pub(crate) tuned: Option<usize>,
}

impl Step {
    /// `w ((N + p⁻) / (P + p⁺))^γ` in the place of N, and 1/P with P at least at its floor in the place
    /// of P. Entries of w that are 0 need no P. Their q is there instead. `add` adds further parts of
    /// some rows to N and P.
    pub(crate) fn apply(
        self,
        at: At<'_>,
        penalties: &[WeightedPenalty<'_>],
        parts: &mut PartsOf,
        add: impl Fn(Range<usize>, &mut [f64], &mut [f64]) + Sync,
    ) {
        let (w, rank) = (at.factor, at.rank);
        let all = Rows { values: w, rank };
        let size = rows_in_task(rank) * rank;
        let PartsOf { negative, positive } = parts;
        let tasks = negative
            .par_chunks_mut(size)
            .zip(positive.par_chunks_mut(size))
            .zip(w.par_chunks(size));
        tasks
            .enumerate()
            .for_each(|(task, ((negative, positive), w))| {
                let first = task * size / rank;
                let rows = first..first + w.len() / rank;
                for WeightedPenalty {
                    penalty, weight, ..
                } in penalties
                {
                    penalty.add_split(all, weight, rows.clone(), positive, negative);
                }
                add(rows, negative, positive);
                Arch::new().dispatch(|| {
                    self.gamma.specialised(|gamma| {
                        for ((negative, positive), w) in
                            negative.iter_mut().zip(&mut *positive).zip(w)
                        {
                            let denominator = positive.max(self.floor);
                            let ratio = *negative / denominator;
                            let reciprocal = denominator.recip();
                            *negative = w * gamma.gain(ratio, self.floor);
                            *positive = if *w == 0.0 { ratio } else { reciprocal };
                        }
                    });
                });
            });
    }

    /// `N̄ = w γ q^(γ−1) α / P` and `P̄ = −q N̄`, from what [`apply`](Self::apply) leaves. P̄ takes the
    /// place of 1/P, N̄ that of anything, and `q^γ α` that of α.
    pub(crate) fn transpose(
        self,
        [w, updated]: [&[f64]; 2],
        parts: &mut PartsOf,
        alpha: &mut [f64],
    ) {
        let Self { gamma, floor } = self;
        let most = floor.recip();
        let results = parts
            .negative
            .par_chunks_mut(TASK)
            .zip(parts.positive.par_chunks_mut(TASK))
            .zip(alpha.par_chunks_mut(TASK));
        let tasks = results.zip(w.par_chunks(TASK).zip(updated.par_chunks(TASK)));
        tasks.for_each(|(((negative, positive), alpha), (w, updated))| {
            Arch::new().dispatch(|| {
                gamma.specialised(|gamma| {
                    let results = negative.iter_mut().zip(&mut *positive).zip(&mut *alpha);
                    for (((negative, positive), alpha), (w, updated)) in
                        results.zip(w.iter().zip(updated))
                    {
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
                });
            });
        });
    }
}

/// Adds the cotangent of the factor through the parts (it may be empty) and through its penalties.
/// Returns the cotangent of each tuned weight, in the shape of the weight.
pub(crate) fn through_penalties(
    at: At<'_>,
    terms: &[WeightedPenalty<'_>],
    of: &PartsOf,
    through_parts: &[f64],
    factor: &mut [f64],
) -> Vec<(usize, Vec<f64>)> {
    let rank = at.rank;
    let rows_of = |values| Rows { values, rank };
    let (w, parts) = (rows_of(at.factor), [&of.positive, &of.negative]);
    let parts = parts.map(|part| rows_of(part.as_slice()));
    let rows = rows_in_task(rank);
    let tasks = factor.par_chunks_mut(rows * rank).enumerate();
    let of_tasks = tasks.map(|(task, factor)| {
        let first = task * rows;
        let range = first..first + factor.len() / rank;
        if let Some(share) = through_parts.get(first * rank..range.end * rank) {
            let entries = factor.iter_mut().zip(share);
            entries.for_each(|(to, share)| *to += share);
        }
        let mut weights = vec![0.0; if terms.is_empty() { 0 } else { factor.len() }];
        let of_terms = terms.iter().map(|term| {
            let (weight, range) = (&term.weight, range.clone());
            term.penalty
                .add_cotangent(w, weight, parts, range, factor, &mut weights);
            match term.tuned {
                Some(_) => weight.summed(&weights, rank),
                None => Vec::new(),
            }
        });
        of_terms.collect::<Vec<_>>()
    });
    // (The order of the sums does not depend on the threads.)
    let of_tasks: Vec<Vec<Vec<f64>>> = of_tasks.collect();
    let tuned = terms.iter().enumerate();
    let tuned = tuned.filter_map(|(place, term)| Some((place, term.tuned?, &term.weight)));
    let of_weight = tuned.map(|(place, index, weight)| {
        let of_tasks = of_tasks.iter().map(|of_terms| &of_terms[place]);
        (index, weight.joined(of_tasks))
    });
    of_weight.collect()
}

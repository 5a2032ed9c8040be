//! Sums over listed entries and all others that have cancelled. They are differences. If nearly all
//! that a component has is in entries without weight, no digit is left, and the sums are computed
//! entry by entry.

use rayon::prelude::*;

use super::background::dot;
use super::lines::TASK;
use super::listed::{Job, Listed};
use super::strip::{Taken, What};
use super::{At, Bars, Moves};
use crate::factors::Side;

/// D_i and P are differences. Below this share of their terms they are computed entry by entry,
/// because the difference would lose more than five digits.
pub(super) const CANCELS: f64 = 1e-5;

impl Listed {
    /// Returns true if closed forms are not the sums of the entries that count.
    pub(super) fn may_cancel(&self) -> bool {
        self.positive_differs() && self.background.taken != Taken::Nothing
    }

    /// Lines and components in which P has cancelled.
    pub(super) fn cancelled_at(&self, side: Side, at: At<'_>) -> Vec<(usize, usize)> {
        if !self.may_cancel() {
            return Vec::new();
        }
        let mut of_listed = vec![0.0; at.factor.len()];
        let mut negative = vec![0.0; at.factor.len()];
        let job = Job::new(at.factor, at.other, at.rank);
        self.walk(What::Parts, side, &job, &mut negative, &mut of_listed);
        let mut positive = of_listed.clone();
        self.background.add_parts(at, &mut positive);
        cancelled(at.rank, &of_listed, &positive)
    }

    /// Computes some sums entry by entry. `of` gets line, component, index, x and y of an entry.
    pub(super) fn mend(
        &self,
        sums: &[(usize, usize)],
        side: Side,
        at: At<'_>,
        out: &mut [f64],
        of: impl Fn(usize, usize, usize, f64, f64) -> f64 + Sync,
    ) {
        let (lines, rank) = (self.entries.side(side), at.rank);
        let exact = sums.par_iter().map(|&(line, k)| {
            let own = &at.factor[line * rank..(line + 1) * rank];
            let factors = (own, at.other.chunks_exact(rank));
            lines.sum_over(line, self.entries.elsewhere, factors, |index, x, y| {
                of(line, k, index, x, y)
            })
        });
        let exact: Vec<f64> = exact.collect();
        for ((line, k), exact) in sums.iter().zip(exact) {
            out[line * rank + k] = exact;
        }
    }

    /// Mends the derivative of the errors of W's rows along the factor of a side, if the errors have
    /// these cotangents.
    pub(super) fn mend_slopes(&self, side: Side, at: At<'_>, bars: &[f64], out: &mut [f64]) {
        let (cancelled, rank) = (self.cancelled_at(side, at), at.rank);
        self.mend(&cancelled, side, at, out, |line, k, index, x, y| {
            let bar = bars[if side == Side::W { line } else { index }];
            // (Below the floor an entry does not move.)
            match y < self.floor {
                true => 0.0,
                false => bar * self.background.slope(x, y) * at.other[index * rank + k],
            }
        });
    }

    /// Mends the tangent of P.
    pub(super) fn mend_tangent(&self, side: Side, at: At<'_>, moves: Moves<'_>, out: &mut [f64]) {
        let (mut cancelled, rank) = (self.cancelled_at(side, at), at.rank);
        if self.background.taken == Taken::Y {
            // (A component that has cancelled may move far, and moves y in all of its line.)
            let mut lines: Vec<usize> = cancelled.iter().map(|(line, _)| *line).collect();
            lines.dedup();
            let all = lines.iter().flat_map(|line| (0..rank).map(|k| (*line, k)));
            cancelled = all.collect();
        }
        let row = |of: &[f64], index: usize| -> Vec<f64> { of[index * rank..][..rank].to_vec() };
        self.mend(&cancelled, side, at, out, |line, k, index, _, y| {
            let (own, other) = (row(at.factor, line), row(at.other, index));
            let of_other = moves.other.map(|of| row(of, index));
            let mut y_dot = dot(&row(moves.factor, line), &other);
            let mut sum = 0.0;
            if let Some(of_other) = of_other {
                y_dot += dot(&own, &of_other);
                sum = self.background.positive(y.max(self.floor)) * of_other[k];
            }
            if self.moves(y) {
                sum += y_dot * other[k];
            }
            sum
        });
    }

    /// Returns true if ∇⁺ depends on y, and y is above the floor.
    fn moves(&self, y: f64) -> bool {
        self.background.taken == Taken::Y && y >= self.floor
    }

    /// Mends the cotangents of both factors, which lack these entries of the cotangent of P.
    pub(super) fn mend_cotangent(
        &self,
        cancelled: &[(usize, usize)],
        side: Side,
        at: At<'_>,
        of: &[f64],
        bars: &mut Bars,
    ) {
        self.add_cotangents(cancelled, side, at, of, bars);
        if let (Taken::Y, Some(factor)) = (self.background.taken, &mut bars.factor) {
            // (∇⁻ does not move. The other components of P̄ reach such a component through sums that
            // have cancelled, too.)
            let rank = at.rank;
            self.mend(cancelled, side, at, factor, |line, k, index, _, y| {
                let other = &at.other[index * rank..(index + 1) * rank];
                match self.moves(y) {
                    true => dot(&of[line * rank..][..rank], other) * other[k],
                    false => 0.0,
                }
            });
        }
    }

    /// Adds what some entries of the cotangent of P have to do with both factors.
    fn add_cotangents(
        &self,
        sums: &[(usize, usize)],
        side: Side,
        at: At<'_>,
        of: &[f64],
        bars: &mut Bars,
    ) {
        let (lines, rank) = (self.entries.side(side), at.rank);
        // (In order, because several sums share an entry.)
        for &(line, k) in sums {
            let (bar, own) = (of[line * rank + k], line * rank..(line + 1) * rank);
            let factors = (&at.factor[own.clone()], at.other.chunks_exact(rank));
            lines.each(
                line,
                self.entries.elsewhere,
                factors,
                |index, weight, _, y| {
                    let other = index * rank..(index + 1) * rank;
                    let bar = weight * bar;
                    let through_y = bar * at.other[other.start + k];
                    if let Some(to) = &mut bars.other {
                        to[other.start + k] += bar * self.background.positive(y.max(self.floor));
                        if self.moves(y) {
                            add_scaled(&mut to[other.clone()], through_y, &at.factor[own.clone()]);
                        }
                    }
                    if let Some(to) = &mut bars.factor
                        && self.moves(y)
                    {
                        add_scaled(&mut to[own.clone()], through_y, &at.other[other]);
                    }
                },
            );
        }
    }
}

/// Lines and components in which P is tiny beside its terms of listed entries.
pub(super) fn cancelled(rank: usize, of_listed: &[f64], positive: &[f64]) -> Vec<(usize, usize)> {
    let parts = positive.par_iter().zip(of_listed).enumerate();
    let tiny =
        |(_, (all, of_listed)): &(usize, (&f64, &f64))| all.abs() < CANCELS * of_listed.abs();
    let tiny = parts.with_min_len(TASK).filter(tiny);
    tiny.map(|(at, _)| (at / rank, at % rank)).collect()
}

fn add_scaled(to: &mut [f64], by: f64, row: &[f64]) {
    for (to, value) in to.iter_mut().zip(row) {
        *to += by * value;
    }
}

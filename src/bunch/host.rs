//! A bunch on plain numbers: a fused data term and penalties on the host, without tensors.
//!
//! Adjoint mode and runs without derivatives use it if every penalty has a form on the host. So does
//! the paper's bunch on a sparse X, whose rows are taken one by one. In adjoint mode the state and
//! 1/P of each update are saved; the ratio N/P follows from two states. That takes 16 bytes per
//! update for each entry of either factor.

use std::sync::Arc;

use parking_lot::Mutex;
use rayon::prelude::*;

use super::{Bunch, Data, ORDER, Span};
use crate::factors::Side;
use crate::numerics::{Gamma, TASK, add_summed, to_host};
use crate::penalty::{HostPenalty, Rows, Spread, Weight};
use crate::term::{At, Needs, PartsOf, RowBunch, RowResults, SharedTerm};
use crate::update::Rule;

/// Both factors, row by row.
///
/// # Shapes
/// `w` n×r, `h` m×r.
#[derive(Debug, Clone)]
pub(crate) struct HostPair {
    pub(crate) w: Arc<Vec<f64>>,
    pub(crate) h: Arc<Vec<f64>>,
    pub(crate) rank: usize,
}

impl HostPair {
    fn of(&self, side: Side) -> &Arc<Vec<f64>> {
        match side {
            Side::W => &self.w,
            Side::H => &self.h,
        }
    }

    fn at(&self, side: Side) -> At<'_> {
        At {
            factor: self.of(side),
            other: self.of(side.other()),
            rank: self.rank,
        }
    }
}

/// Memory of earlier updates for the next one. The system must clear fresh memory first, which
/// costs a fifth of an update.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Vec<Vec<f64>>>);

impl Spare {
    /// Memory for two matrices of this length, with anything in it.
    fn take(&self, length: usize) -> PartsOf {
        PartsOf {
            negative: self.piece(length),
            positive: self.piece(length),
        }
    }

    /// A piece of about this length, with anything in it.
    fn piece(&self, length: usize) -> Vec<f64> {
        let mut spare = self.0.lock();
        let fits = |piece: &Vec<f64>| (length..=2 * length).contains(&piece.capacity());
        let place = spare.iter().rposition(fits);
        let mut piece = place.map_or_else(Vec::new, |place| spare.swap_remove(place));
        drop(spare);
        piece.resize(length, 0.0);
        piece
    }

    fn keep(&self, memory: Vec<f64>, most: usize) {
        let mut spare = self.0.lock();
        if spare.len() < most && memory.capacity() > 0 {
            spare.push(memory);
        }
    }
}

/// A bunch whose parts are all on the host.
pub(crate) struct HostBunch<'a> {
    bunch: &'a Bunch,
    term: &'a SharedTerm,
    floor: f64,
}

/// A penalty and its weight.
struct Term<'a> {
    penalty: &'a dyn HostPenalty,
    weight: Spread,
    /// Index of its weight among the tuned ones.
    tuned: Option<usize>,
}

/// A bunch and its hypergradient.
pub(crate) struct Passage {
    /// The state after T steps.
    pub(crate) end: HostPair,
    /// E there.
    pub(crate) outer_error: f64,
    /// dE/dλ of each tuned penalty.
    pub(crate) gradients: Vec<Vec<f64>>,
}

/// An update, for its backward pass.
struct Passed {
    side: Side,
    before: HostPair,
    after: Arc<Vec<f64>>,
    /// 1/P.
    inverse: Vec<f64>,
}

impl Bunch {
    /// The same bunch on plain numbers, if its parts allow it.
    pub(crate) fn on_host(&self) -> Option<HostBunch<'_>> {
        self.on_host_for(&ORDER)
    }

    /// The same, if the penalties of some factors allow it. It must not update others.
    pub(crate) fn on_host_for(&self, sides: &[Side]) -> Option<HostBunch<'_>> {
        let Data::Fused(term) = &self.data else {
            return None;
        };
        let host = HostBunch {
            bunch: self,
            term,
            floor: self.precision.floor(),
        };
        let mut terms = sides.iter().flat_map(|side| &host.rule(*side).terms);
        let known = terms.all(|term| term.penalty.on_host().is_some());
        known.then_some(host)
    }

    /// The same for [`HostBunch::through_rows`], which has penalties of its own.
    pub(crate) fn by_rows(&self) -> Option<HostBunch<'_>> {
        self.on_host_for(&[]).filter(|host| host.term.takes_rows())
    }
}

impl<'a> HostBunch<'a> {
    fn rule(&self, side: Side) -> &'a Rule {
        match side {
            Side::W => &self.bunch.of_w,
            Side::H => &self.bunch.of_h,
        }
    }

    /// Memory of this length, with anything in it.
    pub(crate) fn room(&self, length: usize) -> Vec<f64> {
        self.bunch.spare.piece(length)
    }

    /// Keeps memory for later: what the updates of a bunch leave behind, and a little more.
    pub(crate) fn keep(&self, memory: Vec<f64>) {
        let sides = ORDER.iter().filter(|side| self.bunch.span.covers(**side));
        let updates = sides.count() * self.bunch.length;
        self.bunch.spare.keep(memory, 2 * updates + 6);
    }

    /// The penalties of one factor with their weights.
    fn terms(&self, side: Side, lambda: &[Spread]) -> Vec<Term<'a>> {
        let mut next = match side {
            Side::W => 0,
            Side::H => self.bunch.tuned().0,
        };
        let terms = self.rule(side).terms.iter().map(|term| {
            let tuned = term.is_tuned().then(|| {
                next += 1;
                next - 1
            });
            let weight = match (&term.weight, tuned) {
                (_, Some(index)) => lambda[index].clone(),
                (Weight::FixedRows(weights), _) => Spread::new(to_host(weights), weights.dims()),
                (Weight::Fixed(value), _) => Spread::new(vec![*value], [1, 1]),
                (Weight::Tuned | Weight::Bound(_), None) => {
                    unreachable!("tuned weights are counted")
                }
            };
            let penalty = term.penalty.on_host();
            Term {
                penalty: penalty.expect("it was asked for"),
                weight,
                tuned,
            }
        });
        terms.collect()
    }

    /// One update: the new factor, and 1/P if a backward pass `keeps` it. (Otherwise the second
    /// result is spent memory.)
    fn update(
        &self,
        side: Side,
        at: At<'_>,
        terms: &[Term<'_>],
        keeps: bool,
    ) -> (Vec<f64>, Vec<f64>) {
        let (rank, gamma) = (at.rank, Gamma::new(self.rule(side).exponent));
        let size = (TASK / rank).max(1) * rank;
        let room = || self.bunch.spare.piece(at.factor.len());
        if terms.is_empty()
            && !keeps
            && let Some((mut negative, positive)) = self.term.numerators(side, at, &room)
        {
            let old = at.factor.par_chunks(size);
            let tasks = negative.par_chunks_mut(size).zip(old);
            tasks.for_each(|(negative, old)| {
                let denominators = positive.iter().cycle();
                for ((numerator, denominator), old) in
                    negative.iter_mut().zip(denominators).zip(old)
                {
                    let ratio = *numerator / denominator.max(self.floor);
                    *numerator = old * gamma.gain(ratio, self.floor);
                }
            });
            return (negative, Vec::new());
        }
        let w = Rows {
            values: at.factor,
            rank,
        };
        let PartsOf {
            mut negative,
            mut positive,
        } = self
            .term
            .parts(side, at, self.bunch.spare.take(at.factor.len()));
        let rows = size / rank;
        let tasks = negative
            .par_chunks_mut(size)
            .zip(positive.par_chunks_mut(size))
            .enumerate();
        tasks.for_each(|(task, (negative, positive))| {
            let first = task * rows;
            let range = first..first + negative.len() / rank;
            for term in terms {
                let (weight, range) = (&term.weight, range.clone());
                term.penalty.add_split(w, weight, range, positive, negative);
            }
            let old = &w.values[task * size..];
            gamma.specialised(|gamma| {
                for ((numerator, denominator), old) in
                    negative.iter_mut().zip(&mut *positive).zip(old)
                {
                    let floored = denominator.max(self.floor);
                    let ratio = *numerator / floored;
                    *numerator = old * gamma.gain(ratio, self.floor);
                    *denominator = floored.recip();
                }
            });
        });
        (negative, positive)
    }

    /// The state after T steps. `passed` is called with each update, and `keeps` it or not.
    fn steps(
        &self,
        pair: HostPair,
        lambda: &[Spread],
        keeps: bool,
        mut passed: impl FnMut(Passed),
    ) -> HostPair {
        let terms = [self.terms(Side::W, lambda), self.terms(Side::H, lambda)];
        let mut pair = pair;
        for _ in 0..self.bunch.length {
            for side in ORDER {
                if !self.bunch.span.covers(side) {
                    continue;
                }
                let terms = match side {
                    Side::W => &terms[0],
                    Side::H => &terms[1],
                };
                let (updated, inverse) = self.update(side, pair.at(side), terms, keeps);
                let (before, after) = (pair.clone(), Arc::new(updated));
                match side {
                    Side::W => pair.w = after.clone(),
                    Side::H => pair.h = after.clone(),
                }
                passed(Passed {
                    side,
                    before,
                    after,
                    inverse,
                });
            }
        }
        pair
    }

    /// The state after T steps.
    pub(crate) fn run(&self, pair: HostPair, lambda: &[Spread]) -> HostPair {
        self.steps(pair, lambda, false, |passed| {
            let Passed {
                side,
                before: HostPair { w, h, .. },
                inverse,
                ..
            } = passed;
            let spent = match side {
                Side::W => w,
                Side::H => h,
            };
            self.keep(inverse);
            self.keep(Arc::try_unwrap(spent).unwrap_or_default());
        })
    }

    /// T updates of W, row by row. Returns E, and dE/dλ_i of each row if it is requested.
    ///
    /// # Shapes
    /// `w` n×r, `h` m×r; n derivatives.
    pub(crate) fn through_rows(
        &self,
        bunch: RowBunch<'_>,
        w: &mut [f64],
        h: &[f64],
    ) -> (f64, Vec<f64>) {
        let RowResults { errors, gradient } = self.term.rows_through(bunch, w, h);
        (self.bunch.processes.total(errors.iter().sum()), gradient)
    }

    /// One update of a factor whose penalties have fixed weights.
    pub(crate) fn update_one(&self, side: Side, at: At<'_>) -> Vec<f64> {
        let (updated, inverse) = self.update(side, at, &self.terms(side, &[]), false);
        self.keep(inverse);
        updated
    }

    /// `Σ λ r` over all penalties of one factor.
    pub(crate) fn penalty(
        &self,
        side: Side,
        factor: &[f64],
        rank: usize,
        lambda: &[Spread],
    ) -> f64 {
        let w = Rows {
            values: factor,
            rank,
        };
        let (rows, terms) = ((TASK / rank).max(1), self.terms(side, lambda));
        let tasks = (0..w.count().div_ceil(rows)).into_par_iter();
        let of_tasks = tasks.map(|task| {
            let range = task * rows..w.count().min((task + 1) * rows);
            let of_terms = terms.iter();
            let of_terms =
                of_terms.map(|term| term.penalty.weighted_value(w, &term.weight, range.clone()));
            of_terms.sum::<f64>()
        });
        // (The order of the sum does not depend on the threads.)
        let own = of_tasks.collect::<Vec<f64>>().iter().sum();
        match side {
            Side::W => self.bunch.processes.total(own),
            Side::H => own,
        }
    }

    /// D.
    pub(crate) fn divergence(&self, pair: &HostPair) -> f64 {
        let rows = self.term.divergences(Side::W, pair.at(Side::W));
        self.bunch.processes.total(rows.iter().sum())
    }

    /// E.
    pub(crate) fn outer_error(&self, pair: &HostPair) -> f64 {
        let rows = self.term.outer_errors(pair.at(Side::W));
        self.bunch.processes.total(rows.iter().sum())
    }

    /// T steps with the hypergradient of each tuned penalty in the shape of its weight.
    pub(crate) fn adjoint(
        &self,
        pair: HostPair,
        lambda: &[Spread],
        shapes: &[[usize; 2]],
    ) -> Passage {
        let mut updates = Vec::new();
        let end = self.steps(pair, lambda, true, |passed| updates.push(passed));
        let at = end.at(Side::W);
        let (errors, mut alpha) = match self.bunch.span {
            Span::One(Side::W) => {
                let (errors, slopes) = self.term.outer_slopes(at);
                (errors, [slopes, Vec::new()])
            }
            span => {
                let ones = vec![1.0; end.w.len() / end.rank];
                let needs = Needs {
                    factor: span.covers(Side::W),
                    other: true,
                };
                let bars = self.term.outer_cotangent(at, &ones, needs);
                let [of_w, of_h] = [bars.factor, bars.other].map(Option::unwrap_or_default);
                (self.term.outer_errors(at), [of_w, of_h])
            }
        };
        let outer_error = self.bunch.processes.total(errors.iter().sum());
        let mut gradients: Vec<Vec<f64>> = shapes.iter().map(|[a, b]| vec![0.0; a * b]).collect();
        let terms = [self.terms(Side::W, lambda), self.terms(Side::H, lambda)];
        while let Some(update) = updates.pop() {
            let (own, other) = match update.side {
                Side::W => (0, 1),
                Side::H => (1, 0),
            };
            // The start does not depend on λ: nothing is carried back to it.
            let moved = |side: Side| updates.iter().any(|earlier| earlier.side == side);
            let needs = Needs {
                factor: moved(update.side),
                other: moved(update.side.other()),
            };
            let (of, share) = self.parts_bar(&update, std::mem::take(&mut alpha[own]));
            let at = update.before.at(update.side);
            let bars = self.term.parts_cotangent(update.side, at, &of, needs);
            if let Some(share) = bars.other {
                add(&mut alpha[other], &share);
                self.keep(share);
            }
            let mut factor = share;
            if let Some(through_parts) = bars.factor {
                add(&mut factor, &through_parts);
                self.keep(through_parts);
            }
            for term in &terms[own] {
                let weights = self.through_penalty(&update, term, &of, &mut factor);
                if let Some(index) = term.tuned {
                    add_summed(&weights, at.rank, shapes[index], &mut gradients[index]);
                }
                self.keep(weights);
            }
            alpha[own] = factor;
            let Passed { inverse, after, .. } = update;
            let after = Arc::try_unwrap(after).unwrap_or_default();
            let spent = [of.negative, of.positive, inverse, after];
            spent.into_iter().for_each(|memory| self.keep(memory));
        }
        // Weights that the rows of all processes share.
        let (on_w, _) = self.bunch.tuned();
        for (gradient, [rows, _]) in gradients[..on_w].iter_mut().zip(shapes) {
            if *rows == 1 {
                self.bunch.processes.sum(gradient);
            }
        }
        Passage {
            end,
            outer_error,
            gradients,
        }
    }

    /// q^γ of an entry. It is 0 if the factor is 0, because λ then has no effect on it.
    #[inline(always)]
    fn gain_of(before: f64, after: f64) -> f64 {
        if before > 0.0 { after / before } else { 0.0 }
    }

    /// `N̄ = w γ q^(γ−1) α / P` and `P̄ = −q N̄`; and `q^γ α` in the place of α.
    fn parts_bar(&self, update: &Passed, mut alpha: Vec<f64>) -> (PartsOf, Vec<f64>) {
        let gamma = Gamma::new(self.rule(update.side).exponent);
        let before = update.before.of(update.side);
        let mut of = self.bunch.spare.take(alpha.len());
        let most = self.floor.recip();
        let results = of
            .negative
            .par_chunks_mut(TASK)
            .zip(of.positive.par_chunks_mut(TASK))
            .zip(alpha.par_chunks_mut(TASK));
        let given = before
            .par_chunks(TASK)
            .zip(update.after.par_chunks(TASK))
            .zip(update.inverse.par_chunks(TASK));
        let tasks = results.zip(given);
        tasks.for_each(
            |(((negative, positive), alpha), ((before, after), inverse))| {
                gamma.specialised(|gamma| {
                    let parts = negative.iter_mut().zip(&mut *positive).zip(&mut *alpha);
                    let given = before.iter().zip(after).zip(inverse);
                    for (((negative, positive), alpha), ((before, after), inverse)) in
                        parts.zip(given)
                    {
                        let gain = Self::gain_of(*before, *after);
                        let ratio = gamma.ratio(gain);
                        let slope = gamma.slope(ratio, self.floor);
                        *negative = before * slope * *alpha * inverse;
                        // The derivative of P is zero at its floor.
                        let moved = -ratio * *negative;
                        *positive = if *inverse < most { moved } else { 0.0 };
                        *alpha *= gain;
                    }
                });
            },
        );
        (of, alpha)
    }

    /// Adds the cotangent through one penalty. Returns the cotangent of each entry's weight.
    fn through_penalty(
        &self,
        update: &Passed,
        term: &Term<'_>,
        of: &PartsOf,
        factor: &mut [f64],
    ) -> Vec<f64> {
        let rank = update.before.rank;
        let rows = |values| Rows { values, rank };
        let w = rows(update.before.of(update.side).as_slice());
        let parts = [rows(&of.positive), rows(&of.negative)];
        let mut weights = self.bunch.spare.piece(factor.len());
        let count = (TASK / rank).max(1);
        let tasks = factor
            .par_chunks_mut(count * rank)
            .zip(weights.par_chunks_mut(count * rank))
            .enumerate();
        tasks.for_each(|(task, (factor, weights))| {
            let first = task * count;
            let range = first..first + factor.len() / rank;
            let weight = &term.weight;
            term.penalty
                .add_cotangent(w, weight, parts, range, factor, weights);
        });
        weights
    }
}

/// Adds on all cores.
fn add(to: &mut [f64], share: &[f64]) {
    let tasks = to.par_chunks_mut(TASK).zip(share.par_chunks(TASK));
    tasks.for_each(|(to, share)| {
        to.iter_mut()
            .zip(share)
            .for_each(|(to, share)| *to += share)
    });
}

//! A bunch on plain numbers: a fused data term and penalties on the host, without tensors.
//!
//! Adjoint mode and runs without derivatives use it if every penalty has a form on the host. So does
//! the paper's bunch on a sparse X, whose rows are taken one by one. In adjoint mode the state and
//! 1/P of each update are saved; the ratio N/P follows from two states. That takes 16 bytes per
//! update for each entry of either factor.

use std::borrow::Cow;
use std::sync::Arc;

use parking_lot::Mutex;
use rayon::prelude::*;

use super::{Bunch, Data, ORDER, Span};
use crate::factors::Side;
use crate::numerics::{Gamma, rows_in_task, to_host};
use crate::penalty::{Rows, Spread, Weight};
use crate::term::{
    At, Needs, PartsOf, RowBunch, RowResults, SharedTerm, Step, WeightedPenalty, through_penalties,
};
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
    /// 1/P ([`Step::apply`]).
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

    fn step_of(&self, side: Side) -> Step {
        Step {
            gamma: Gamma::new(self.rule(side).exponent),
            floor: self.floor,
        }
    }

    /// Memory of this length, with anything in it.
    pub(crate) fn room(&self, length: usize) -> Vec<f64> {
        self.bunch.spare.piece(length)
    }

    /// Keeps memory for later.
    pub(crate) fn keep(&self, memory: Vec<f64>) {
        self.keep_beside(0, memory);
    }

    /// Keeps memory for later beside updates that wait for their backward pass. All together it is
    /// what the updates of a bunch leave behind, and a little more.
    fn keep_beside(&self, waiting: usize, memory: Vec<f64>) {
        let sides = ORDER.iter().filter(|side| self.bunch.span.covers(**side));
        let updates = sides.count() * self.bunch.length;
        let most = 2 * (updates - waiting) + 6;
        self.bunch.spare.keep(memory, most);
    }

    /// The penalties of one factor with their weights.
    fn terms<'b>(&self, side: Side, lambda: &'b [Spread]) -> Vec<WeightedPenalty<'b>>
    where
        'a: 'b,
    {
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
                (_, Some(index)) => Cow::Borrowed(&lambda[index]),
                (Weight::FixedRows(weights), _) => {
                    Cow::Owned(Spread::new(to_host(weights), weights.dims()))
                }
                (Weight::Fixed(value), _) => Cow::Owned(Spread::new(vec![*value], [1, 1])),
                (Weight::Tuned | Weight::Bound(_), None) => {
                    unreachable!("tuned weights are counted")
                }
            };
            let penalty = term.penalty.on_host();
            WeightedPenalty {
                penalty: penalty.expect("it was asked for"),
                weight,
                is_tracked: tuned.is_some(),
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
        terms: &[WeightedPenalty<'_>],
        keeps: bool,
    ) -> (Vec<f64>, Vec<f64>) {
        let step = self.step_of(side);
        let room = || self.bunch.spare.piece(at.factor.len());
        if terms.is_empty()
            && !keeps
            && let Some((mut negative, positive)) = self.term.numerators(side, at, &room)
        {
            let size = rows_in_task(at.rank) * at.rank;
            let old = at.factor.par_chunks(size);
            let tasks = negative.par_chunks_mut(size).zip(old);
            tasks.for_each(|(negative, old)| {
                let denominators = positive.iter().cycle();
                for ((numerator, denominator), old) in
                    negative.iter_mut().zip(denominators).zip(old)
                {
                    let ratio = *numerator / denominator.max(step.floor);
                    *numerator = old * step.gamma.gain(ratio, step.floor);
                }
            });
            return (negative, Vec::new());
        }
        let room = self.bunch.spare.take(at.factor.len());
        let apply = step.apply(at, terms, |_, _, _| ());
        let parts = self.term.finished_parts(side, at, room, &apply);
        (parts.negative, parts.positive)
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
        let (rows, terms) = (rows_in_task(rank), self.terms(side, lambda));
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
        let (on_w, _) = self.bunch.tuned();
        // Cotangents that are not yet added to α.
        let mut waiting = [Vec::new(), Vec::new()];
        while let Some(Passed {
            side,
            before,
            after,
            inverse,
        }) = updates.pop()
        {
            let (own, other, tuned) = match side {
                Side::W => (0, 1, 0..on_w),
                Side::H => (1, 0, on_w..shapes.len()),
            };
            // The start does not depend on λ: nothing is carried back to it.
            let moved = |side: Side| updates.iter().any(|earlier| earlier.side == side);
            let needs = Needs {
                factor: moved(side),
                other: moved(side.other()),
            };
            let at = before.at(side);
            let mut of = PartsOf {
                negative: self.room(inverse.len()),
                positive: inverse,
            };
            let factor = &mut alpha[own];
            let more = std::mem::take(&mut waiting[own]);
            self.step_of(side)
                .transpose([at.factor, &after], &mut of, factor, &more);
            let bars = self.term.parts_cotangent(side, at, &of, needs);
            let through_parts = bars.factor.unwrap_or_default();
            let gradients = gradients[tuned].iter_mut().map(Vec::as_mut_slice);
            through_penalties(at, &terms[own], &of, &through_parts, factor, gradients);
            // (It is empty here: updates of both factors alternate, so the last one took it.)
            waiting[other] = bars.other.unwrap_or_default();
            let after = Arc::try_unwrap(after).unwrap_or_default();
            let spent = [of.negative, of.positive, after, through_parts, more];
            for memory in spent {
                self.keep_beside(updates.len(), memory);
            }
        }
        // Weights that the rows of all processes share.
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
}

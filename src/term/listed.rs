//! A divergence over listed entries and, in closed form, over all others.
//!
//! Every listed entry has its x and its weight v; all others have x = 0 and one weight ω. Their
//! terms, ω ∇⁺(0, y) and ω d(0, y), have a closed form over *all* entries under KL (sums of the
//! factors) and Frobenius (Gram matrices): see `background`. So they are added for all entries, and
//! subtracted for each listed one:
//!
//! $$ P_i = \omega \sum_j \nabla^+(0, y_{ij}) h_j + \sum_{j \in L_i} \left( v_{ij} \nabla^+(x_{ij}, y_{ij}) - \omega \nabla^+(0, y_{ij}) \right) h_j $$
//!
//! and likewise N (∇⁻ is 0 at x = 0), the errors, and all derivatives: O(|L| r + (n + m) r²). With
//! ω = 0 the others do not count, and every divergence works. This is the case for held-out
//! entries, and if entries that are not stored are missing.

use std::borrow::Cow;

use parking_lot::Mutex;
use pulp::Arch;
use rayon::prelude::*;

use super::background::Background;
use super::cancelled::{CANCELS, cancelled};
use super::lines::{Entries, Lines, TASK};
use super::rows::{Results, RowBunch, RowResults, Through};
use super::strip::{Strips, Taken, Terms, What};
use super::{At, Bars, Denominator, Moves, Needs, PartsOf};
use crate::divergence::Fused;
use crate::engine::{AnyEntry, lanes_here};
use crate::factors::Side;

/// A divergence over listed entries and all others.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) entries: Entries,
    divergence: Fused,
    pub(super) floor: f64,
    pub(super) background: Background,
    room: Room,
}

impl Listed {
    /// A divergence over some entries. `None` if the others count and have no closed form.
    pub(super) fn new(entries: Entries, divergence: Fused, floor: f64) -> Option<Self> {
        let taken = if entries.elsewhere == 0.0 {
            Taken::Nothing
        } else {
            match &divergence {
                // (A shift does not change squares of differences.)
                Fused::Beta { beta, .. } if *beta == 2.0 => Taken::Y,
                Fused::Beta { beta, shift } if *beta == 1.0 && *shift == 0.0 => Taken::One,
                _ => return None,
            }
        };
        let background = Background::new(taken, entries.elsewhere);
        Some(Self {
            entries,
            divergence,
            floor,
            background,
            room: Room::default(),
        })
    }

    /// Returns true if ∇⁺ of some listed entry differs from that of the others.
    pub(super) fn positive_differs(&self) -> bool {
        let weighted = self.entries.is_weighted();
        self.background.taken == Taken::Nothing || weighted || self.entries.elsewhere != 1.0
    }

    pub(super) fn denominator(&self) -> Denominator {
        match self.background.taken {
            _ if self.positive_differs() => Denominator::Other,
            Taken::One => Denominator::Sums,
            Taken::Y => Denominator::Gram,
            Taken::Nothing => Denominator::Other,
        }
    }

    pub(super) fn parts(&self, side: Side, at: At<'_>, room: PartsOf) -> PartsOf {
        let mut parts = room.resized(at.factor.len());
        let job = Job::new(at.factor, at.other, at.rank);
        let PartsOf { negative, positive } = &mut parts;
        self.walk(What::Parts, side, &job, negative, positive);
        if !self.may_cancel() {
            self.background.add_parts(at, positive);
            return parts;
        }
        let of_listed = positive.clone();
        self.background.add_parts(at, positive);
        let cancelled = cancelled(at.rank, &of_listed, positive);
        let here = |index: usize, k: usize| at.other[index * at.rank + k];
        self.mend(&cancelled, side, at, positive, |_, k, index, _, y| {
            self.background.positive(y.max(self.floor)) * here(index, k)
        });
        parts
    }

    /// N, and the row that P has everywhere, if it is the same in all rows.
    pub(super) fn numerators(
        &self,
        side: Side,
        at: At<'_>,
        room: &dyn Fn() -> Vec<f64>,
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        if self.denominator() != Denominator::Sums {
            return None;
        }
        let mut negative = room();
        negative.resize(at.factor.len(), 0.0);
        let job = Job::new(at.factor, at.other, at.rank);
        self.walk(What::Parts, side, &job, &mut negative, &mut []);
        let mut positive = vec![0.0; at.rank];
        self.background.add_parts(at, &mut positive);
        Some((negative, positive))
    }

    pub(super) fn denominators(&self, side: Side, at: At<'_>) -> Vec<f64> {
        if self.positive_differs() {
            return self.parts(side, at, PartsOf::default()).positive;
        }
        let mut positive = vec![0.0; at.factor.len()];
        self.background.add_parts(at, &mut positive);
        positive
    }

    pub(super) fn parts_tangent(&self, side: Side, at: At<'_>, moves: Moves<'_>) -> PartsOf {
        let mut tangent = PartsOf {
            negative: vec![0.0; at.factor.len()],
            positive: vec![0.0; at.factor.len()],
        };
        let job = Job {
            own_bars: [moves.factor, &[]],
            other_bars: [moves.other.unwrap_or(&[]), &[]],
            ..Job::new(at.factor, at.other, at.rank)
        };
        let PartsOf { negative, positive } = &mut tangent;
        self.walk(What::PartsTangent, side, &job, negative, positive);
        self.background.add_parts_tangent(at, moves, positive);
        self.mend_tangent(side, at, moves, positive);
        tangent
    }

    pub(super) fn parts_cotangent(
        &self,
        side: Side,
        at: At<'_>,
        of: &PartsOf,
        needs: Needs,
    ) -> Bars {
        let cancelled = self.cancelled_at(side, at);
        let whole = of;
        let mut of = Cow::Borrowed(of);
        for (line, k) in &cancelled {
            of.to_mut().positive[line * at.rank + k] = 0.0;
        }
        let bars = [of.negative.as_slice(), of.positive.as_slice()];
        let factor = || {
            let mut out = vec![0.0; at.factor.len()];
            let job = Job {
                own_bars: bars,
                ..Job::new(at.factor, at.other, at.rank)
            };
            self.walk(What::PartsOfFactor, side, &job, &mut out, &mut []);
            self.background.add_parts_of_factor(at, &of, &mut out);
            out
        };
        let other = || {
            let mut out = vec![0.0; at.other.len()];
            let job = Job {
                other_bars: bars,
                ..Job::new(at.other, at.factor, at.rank)
            };
            self.walk(What::PartsOfOther, side.other(), &job, &mut out, &mut []);
            self.background.add_parts_of_other(at, &of, &mut out);
            out
        };
        let mut bars = Bars {
            factor: needs.factor.then(factor),
            other: needs.other.then(other),
        };
        self.mend_cotangent(&cancelled, side, at, &whole.positive, &mut bars);
        bars
    }

    /// T updates of W's rows in place, row after row. E is D here: errors and derivatives are those
    /// of the fitted entries.
    ///
    /// # Shapes
    /// `w` n×r, `h` m×r.
    pub(super) fn rows_through(&self, bunch: RowBunch<'_>, w: &mut [f64], h: &[f64]) -> RowResults {
        let count = self.entries.side(Side::W).count();
        let mut found = RowResults {
            errors: vec![0.0; count],
            gradient: vec![0.0; if bunch.with_gradient { count } else { 0 }],
        };
        let results = Results {
            errors: &mut found.errors,
            gradient: &mut found.gradient,
            ..Results::default()
        };
        self.bunch_through(bunch, w, h, results);
        let at = At {
            factor: w,
            other: h,
            rank: w.len() / count,
        };
        found.errors = self.with_background(self.entries.side(Side::W), at, found.errors);
        found
    }

    /// The same, with the tangents of rows instead of errors.
    ///
    /// # Shapes
    /// `tangents` n×r, or empty.
    pub(super) fn tangents_through(
        &self,
        bunch: RowBunch<'_>,
        w: &mut [f64],
        h: &[f64],
        tangents: &mut [f64],
    ) {
        let results = Results {
            tangents,
            ..Results::default()
        };
        self.bunch_through(bunch, w, h, results);
    }

    fn bunch_through(
        &self,
        bunch: RowBunch<'_>,
        w: &mut [f64],
        other: &[f64],
        results: Results<'_>,
    ) {
        let lines = self.entries.side(Side::W);
        let rank = w.len() / lines.count();
        let width = rank.next_multiple_of(lanes_here::<f64>());
        let closed = self.background.closed(other, rank);
        let padded = self.room.padded(other, rank, width, 0);
        let through = Through {
            terms: self.terms(What::Parts),
            lines,
            bunch,
            closed: &closed,
            background: &self.background,
            other: &padded,
            rank,
            width,
        };
        through.run(&lines.tasks(), w, results);
        let nothing = Cow::default;
        self.room.give_back([padded, nothing(), nothing()]);
    }

    /// The errors of W's rows, and the derivative of each in its row of W.
    ///
    /// # Shapes
    /// n and n×r.
    pub(super) fn errors_and_slopes(&self, at: At<'_>) -> (Vec<f64>, Vec<f64>) {
        let lines = self.entries.side(Side::W);
        let mut errors = vec![0.0; lines.count()];
        let mut slopes = vec![0.0; at.factor.len()];
        let job = Job::new(at.factor, at.other, at.rank);
        self.walk(
            What::ErrorsAndSlopes,
            Side::W,
            &job,
            &mut slopes,
            &mut errors,
        );
        let ones = vec![1.0; lines.count()];
        self.background.add_errors_of_factor(at, &ones, &mut slopes);
        self.mend_slopes(Side::W, at, &ones, &mut slopes);
        (self.with_background(lines, at, errors), slopes)
    }

    /// The errors of one side's lines.
    pub(super) fn errors(&self, side: Side, at: At<'_>) -> Vec<f64> {
        let lines = self.entries.side(side);
        let mut errors = vec![0.0; lines.count()];
        let job = Job::new(at.factor, at.other, at.rank);
        self.walk(What::Errors, side, &job, &mut errors, &mut []);
        self.with_background(lines, at, errors)
    }

    /// Adds the errors in closed form to those of listed entries.
    fn with_background(&self, lines: &Lines, at: At<'_>, mut errors: Vec<f64>) -> Vec<f64> {
        let Some(all) = self.background.errors(at) else {
            return errors;
        };
        let rows = errors.par_iter_mut().zip(&all).enumerate();
        rows.for_each(|(line, (error, all))| {
            *error += all;
            if *error < CANCELS * all {
                let own = &at.factor[line * at.rank..(line + 1) * at.rank];
                let factors = (own, at.other.chunks_exact(at.rank));
                *error = lines.sum_over(line, self.entries.elsewhere, factors, |_, x, y| {
                    self.background.value(x, y.max(self.floor))
                });
            }
        });
        errors
    }

    /// The cotangents of the factors, from those of the errors of W's rows.
    pub(super) fn errors_cotangent(&self, at: At<'_>, of: &[f64], needs: Needs) -> Bars {
        let factor = || {
            let mut out = vec![0.0; at.factor.len()];
            let job = Job {
                error_bars: of,
                ..Job::new(at.factor, at.other, at.rank)
            };
            self.walk(What::ErrorsOfFactor, Side::W, &job, &mut out, &mut []);
            self.background.add_errors_of_factor(at, of, &mut out);
            self.mend_slopes(Side::W, at, of, &mut out);
            out
        };
        let other = || {
            let mut out = vec![0.0; at.other.len()];
            let job = Job {
                error_bars: of,
                ..Job::new(at.other, at.factor, at.rank)
            };
            self.walk(What::ErrorsOfOther, Side::H, &job, &mut out, &mut []);
            self.background.add_errors_of_other(at, of, &mut out);
            self.mend_slopes(Side::H, at.turned(), of, &mut out);
            out
        };
        Bars {
            factor: needs.factor.then(factor),
            other: needs.other.then(other),
        }
    }

    /// The computation of a pass for each entry.
    fn terms(&self, what: What) -> Terms<'_> {
        let (divergence, shift) = AnyEntry::new(&self.divergence);
        Terms {
            what,
            divergence,
            elsewhere: self.entries.elsewhere,
            taken: self.background.taken,
            positive: self.positive_differs(),
            floor: self.floor,
            shift,
        }
    }

    /// A pass over all lines of a side.
    pub(super) fn walk<'a>(
        &self,
        what: What,
        side: Side,
        job: &Job<'a>,
        mut out: &mut [f64],
        mut second: &mut [f64],
    ) {
        let lines = self.entries.side(side);
        let rank = job.rank;
        let width = rank.next_multiple_of(lanes_here::<f64>());
        let pad = |values: &'a [f64], to: usize| self.room.padded(values, rank, width, to);
        let other = pad(job.other, 0);
        let other_bars = [pad(job.other_bars[0], 1), pad(job.other_bars[1], 2)];
        let each = if what == What::Errors { 1 } else { rank };
        let each_of_second = match what {
            _ if second.is_empty() => 0,
            What::ErrorsAndSlopes => 1,
            _ => each,
        };
        let mut tasks = Vec::new();
        let mut first = 0;
        for next in lines.tasks() {
            let (of_task, rest) = out.split_at_mut((next - first) * each);
            out = rest;
            let (of_second, rest) = second.split_at_mut((next - first) * each_of_second);
            second = rest;
            tasks.push((first, of_task, of_second));
            first = next;
        }
        let run = |(first, out, second): (usize, &mut [f64], &mut [f64])| {
            Arch::new().dispatch(Strips {
                terms: self.terms(what),
                lines,
                first,
                width,
                rank,
                own: job.own,
                other: &other,
                own_bars: job.own_bars,
                other_bars: other_bars.each_ref().map(|bars| &**bars),
                error_bars: job.error_bars,
                out,
                second,
            });
        };
        if tasks.len() == 1 {
            tasks.into_iter().for_each(run);
        } else {
            tasks.into_par_iter().for_each(run);
        }
        let [first, second] = other_bars;
        self.room.give_back([other, first, second]);
    }
}

/// Memory for padded factors, which passes reuse. The system would have to clear fresh memory
/// first.
#[derive(Debug, Default)]
struct Room(Mutex<[Vec<f64>; 3]>);

impl Room {
    /// The same rows, each padded with zeros to whole vectors, in reused memory. Rows of whole
    /// vectors stay where they are.
    fn padded<'a>(
        &self,
        values: &'a [f64],
        rank: usize,
        width: usize,
        slot: usize,
    ) -> Cow<'a, [f64]> {
        if rank == width {
            return Cow::Borrowed(values);
        }
        let mut padded = std::mem::take(&mut self.0.lock()[slot]);
        padded.resize(values.len() / rank * width, 0.0);
        let rows = padded.par_chunks_exact_mut(width).with_min_len(TASK);
        rows.zip(values.par_chunks_exact(rank))
            .for_each(|(to, from)| {
                to[..rank].copy_from_slice(from);
                to[rank..].fill(0.0);
            });
        Cow::Owned(padded)
    }

    fn give_back(&self, used: [Cow<'_, [f64]>; 3]) {
        let owned = |of| match of {
            Cow::Owned(memory) => memory,
            Cow::Borrowed(_) => Vec::new(),
        };
        *self.0.lock() = used.map(owned);
    }
}

/// The input of a pass beside the entries.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    own: &'a [f64],
    other: &'a [f64],
    own_bars: [&'a [f64]; 2],
    other_bars: [&'a [f64]; 2],
    error_bars: &'a [f64],
    rank: usize,
}

impl<'a> Job<'a> {
    pub(super) fn new(own: &'a [f64], other: &'a [f64], rank: usize) -> Self {
        Self {
            own,
            other,
            own_bars: [&[]; 2],
            other_bars: [&[]; 2],
            error_bars: &[],
            rank,
        }
    }
}

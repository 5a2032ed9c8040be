//! The fused data term of a dense X, which is packed for each side.

use std::sync::Arc;

use ndarray::{Array2, ArrayView2};
use pulp::Arch;
use rayon::prelude::*;

use super::distributed::Distributed;
use super::kernel::WIDE;
use super::listed::{Entries as ListedEntries, Listed};
use super::lists::{Gaps, Lists};
use super::pass::{Blocks, Pass, Weighting, What};
use super::quadratic::Quadratic;
use super::sparse::Sparse;
use super::{At, Bars, DataTerm, Denominator, Moves, Needs, PartsOf, SharedTerm};
use crate::criterion::Entries;
use crate::divergence::Fused;
use crate::engine::{
    Aligned, Entry, Frobenius, General, ItakuraSaito, KullbackLeibler, MOST_LANES, PlugIn, Real,
    lanes_here,
};
use crate::factors::Side;
use crate::numerics::Precision;
use crate::problem::{Problem, Weights};
use crate::sparse::Matrix;

/// With fewer multiplications, another thread costs more than it saves.
const WORTH_SHARING: usize = 1 << 16;
/// Tasks hold a multiple of this many rows, which are whole blocks on every machine.
const WHOLE: usize = WIDE * MOST_LANES;
/// Largest number of rows in one task.
const ROWS: usize = 64;

/// The settings of a data term, beside the problem.
#[derive(Debug)]
pub(crate) struct Asked {
    /// D at an entry.
    pub(crate) divergence: Fused,
    /// E at an entry, if it has another divergence.
    pub(crate) outer: Option<Fused>,
    /// The entries that E counts.
    pub(crate) over: Entries,
    /// The smallest y.
    pub(crate) floor: f64,
}

/// The fused data term of a problem.
pub(crate) fn fused(problem: &Problem, asked: Asked) -> SharedTerm {
    let own: SharedTerm = match (problem.x(), problem.precision()) {
        (Matrix::Sparse(_), _) => Arc::new(Sparse::new(problem, asked)),
        (Matrix::Dense(x), Precision::F64) => Arc::new(Dense::<f64>::new(problem, x, asked)),
        (Matrix::Dense(x), Precision::F32) => Arc::new(Dense::<f32>::new(problem, x, asked)),
    };
    if problem.share().is_split() {
        Arc::new(Distributed::new(own, problem.processes().clone()))
    } else {
        own
    }
}

/// X and its weights, for the passes of one side.
#[derive(Debug)]
pub(super) struct OneSide<T> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    x: Aligned<T>,
    weights: Option<Aligned<T>>,
    length: usize,
}

/// A matrix and its weights, for the passes of both sides.
#[derive(Debug)]
struct Sides<T> {
    of_w: OneSide<T>,
    of_h: OneSide<T>,
    weighting: Weighting,
}

/// The kind of E.
#[derive(Debug)]
enum OuterError<T> {
    /// D.
    Divergence,
    /// Another divergence, over the same entries.
    OfTraining(Fused),
    /// A divergence over listed entries.
    HeldOut(Listed),
    /// A divergence over another matrix.
    OfMatrix(Fused, Sides<T>),
}

#[derive(Debug)]
struct Dense<T> {
    x: Sides<T>,
    /// Entries that are not fitted, if they are few and ∇⁺ is 1.
    gaps: Option<Gaps>,
    /// The term without entries of WH, if it applies.
    quadratic: Option<Quadratic>,
    divergence: Fused,
    outer: OuterError<T>,
    floor: f64,
}

/// Rows in a block on this machine.
pub(super) fn rows_per_block<T: Real>() -> usize {
    WIDE * lanes_here::<T>()
}

impl<T: Real> Sides<T> {
    fn new(x: &Array2<f64>, mask: Option<&Weights>) -> Self {
        let weighting = match mask {
            None => Weighting::None,
            Some(Weights::Binary(_)) => Weighting::Sign,
            Some(Weights::Real(_)) => Weighting::Array,
            Some(Weights::Listed { .. }) => unreachable!("weights of a sparse X"),
        };
        // A tiny negative number. Its sign marks an entry that is not fitted, and such an entry
        // adds nothing to a sum over all, because ∇⁻ is a multiple of x.
        let masked = match T::PRECISION {
            Precision::F64 => -1e-200,
            Precision::F32 => -1e-30,
        };
        let stored = |i: usize, j: usize| match (weighting, mask) {
            (Weighting::Sign, Some(mask)) if mask[(i, j)] == 0.0 => masked,
            _ => x[[i, j]],
        };
        let (n, m) = x.dim();
        let array = match mask {
            Some(Weights::Real(weights)) => Some(weights),
            _ => None,
        };
        Self {
            of_w: OneSide::new([n, m], &stored, array.map(|array| array.view())),
            of_h: OneSide::new([m, n], &|j, i| stored(i, j), array.map(|array| array.t())),
            weighting,
        }
    }

    fn side(&self, side: Side) -> &OneSide<T> {
        match side {
            Side::W => &self.of_w,
            Side::H => &self.of_h,
        }
    }
}

impl<T: Real> Dense<T> {
    fn new(problem: &Problem, x: &Array2<f64>, asked: Asked) -> Self {
        let Asked {
            divergence,
            outer,
            over,
            floor,
        } = asked;
        let mask = problem.mask();
        let of_outer = outer.clone().unwrap_or_else(|| divergence.clone());
        let outer = match (over, problem.second()) {
            (Entries::Training, _) => outer.map_or(OuterError::Divergence, OuterError::OfTraining),
            (Entries::HeldOut, None) => {
                let entries = ListedEntries::new(problem.x(), problem.held_out_weights());
                let listed = Listed::new(entries, of_outer, floor);
                OuterError::HeldOut(listed.expect("what is not listed is not held out"))
            }
            (Entries::HeldOut, Some(second)) => {
                let second = second.as_dense().expect("like X");
                let sides = Sides::new(second, problem.held_out_weights());
                OuterError::OfMatrix(of_outer, sides)
            }
        };
        let x_sides = Sides::new(x, mask);
        let (beta, weighting) = (divergence.plain_beta(), x_sides.weighting);
        Self {
            x: x_sides,
            gaps: mask
                .filter(|_| beta == Some(1.0) && weighting == Weighting::Sign)
                .and_then(Gaps::of),
            quadratic: (beta == Some(2.0) && weighting == Weighting::None)
                .then(|| Quadratic::new(x)),
            divergence,
            outer,
            floor,
        }
    }

    fn side(&self, side: Side) -> &OneSide<T> {
        self.x.side(side)
    }

    /// A pass of the updates over all rows of a side.
    fn pass(
        &self,
        what: What,
        side: &OneSide<T>,
        job: &Job<'_>,
        out: &mut [f64],
        second: &mut [f64],
    ) {
        let weighting = match (what, &self.gaps) {
            (What::Errors, _) | (_, None) => self.x.weighting,
            // Sums of ∇⁻ are over all entries, and `Gaps` makes those of ∇⁺.
            (_, Some(_)) => Weighting::None,
        };
        let pass = Walk {
            what,
            divergence: &self.divergence,
            weighting,
            floor: self.floor,
        };
        pass.over(side, job, out, second);
    }

    /// The divergence and the matrix of E, if E is a sum over a whole matrix.
    fn outer_matrix(&self) -> (&Fused, &Sides<T>) {
        match &self.outer {
            OuterError::Divergence | OuterError::HeldOut(_) => (&self.divergence, &self.x),
            OuterError::OfTraining(divergence) => (divergence, &self.x),
            OuterError::OfMatrix(divergence, sides) => (divergence, sides),
        }
    }

    /// A pass of E over all rows of a side.
    fn outer_pass(&self, what: What, side: Side, job: &Job<'_>, out: &mut [f64]) {
        let (divergence, sides) = self.outer_matrix();
        let pass = Walk {
            what,
            divergence,
            weighting: sides.weighting,
            floor: self.floor,
        };
        pass.over(sides.side(side), job, out, &mut []);
    }

    /// Returns true if P is the same for all rows.
    fn is_constant(&self) -> bool {
        self.divergence.positive_is_one()
            && self.x.weighting == Weighting::None
            && self.gaps.is_none()
    }

    /// The entries of a side that are not fitted, line by line.
    fn gaps(&self, side: Side) -> Option<&Lists> {
        self.gaps.as_ref().map(|gaps| match side {
            Side::W => &gaps.rows,
            Side::H => &gaps.columns,
        })
    }
}

/// The source of a pass's rows.
pub(super) trait Source<T: Real>: Sync {
    /// n and m.
    fn shape(&self) -> [usize; 2];

    /// Rows in one task.
    fn rows_per_task(&self, rank: usize) -> usize;

    /// Some rows, beginning with a whole block, and the index of that block in the given data.
    fn with_rows(
        &self,
        first: usize,
        count: usize,
        weighting: Weighting,
        run: &mut dyn FnMut(Blocks<'_, T>, usize),
    );
}

/// A pass on all cores.
pub(super) struct Walk<'a> {
    pub(super) what: What,
    pub(super) divergence: &'a Fused,
    pub(super) weighting: Weighting,
    pub(super) floor: f64,
}

impl Walk<'_> {
    /// Makes the pass over all rows of a side.
    pub(super) fn over<T: Real>(
        &self,
        side: &impl Source<T>,
        job: &Job<'_>,
        out: &mut [f64],
        second: &mut [f64],
    ) {
        let (beta, shift) = match self.divergence {
            Fused::Beta { beta, shift } => (*beta, *shift),
            Fused::PerEntry(functions) => {
                return self.with(PlugIn(functions.as_ref()), 0.0, side, job, out, second);
            }
        };
        match beta {
            2.0 => self.with(Frobenius, shift, side, job, out, second),
            1.0 => self.with(KullbackLeibler, shift, side, job, out, second),
            0.0 => self.with(ItakuraSaito, shift, side, job, out, second),
            beta => self.with(General::new(beta), shift, side, job, out, second),
        }
    }

    fn with<T: Real, D: Entry>(
        &self,
        divergence: D,
        shift: f64,
        side: &impl Source<T>,
        job: &Job<'_>,
        out: &mut [f64],
        second: &mut [f64],
    ) {
        let rank = job.rank;
        let [all_rows, _] = side.shape();
        let other = T::rounded(job.other);
        let other_bars = job.other_bars.map(T::rounded);
        let rows = side.rows_per_task(rank);
        let width = out.len() / all_rows;
        let cut = |values: &'_ [f64], first: usize, count: usize| {
            let each = values.len() / all_rows;
            first * each..(first + count) * each
        };
        let run = |task: usize, out: &mut [f64], second: &mut [f64]| {
            let (first_row, count) = (task * rows, out.len() / width);
            side.with_rows(first_row, count, self.weighting, &mut |blocks, first| {
                Arch::new().dispatch(Pass {
                    what: self.what,
                    divergence,
                    blocks,
                    first,
                    floor: T::from_f64(self.floor),
                    shift: T::from_f64(shift),
                    own: &job.own[first_row * rank..(first_row + count) * rank],
                    other: &other,
                    own_bars: job.own_bars.map(|bars| &bars[cut(bars, first_row, count)]),
                    other_bars: other_bars.each_ref().map(|bars| &bars[..]),
                    sums: job.sums,
                    rank,
                    out: &mut *out,
                    second: &mut *second,
                });
            });
        };
        if rows >= all_rows {
            run(0, out, second);
        } else if second.is_empty() {
            let tasks = out.par_chunks_mut(rows * width).enumerate();
            tasks.for_each(|(task, out)| run(task, out, &mut []));
        } else {
            let tasks = out
                .par_chunks_mut(rows * width)
                .zip(second.par_chunks_mut(rows * width));
            tasks
                .enumerate()
                .for_each(|(task, (out, second))| run(task, out, second));
        }
    }
}

impl<T: Real> Source<T> for OneSide<T> {
    fn shape(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    fn rows_per_task(&self, rank: usize) -> usize {
        share(self.rows, self.columns * rank)
    }

    fn with_rows(
        &self,
        first: usize,
        _count: usize,
        weighting: Weighting,
        run: &mut dyn FnMut(Blocks<'_, T>, usize),
    ) {
        run(self.blocks(weighting), first / rows_per_block::<T>());
    }
}

/// Rows in one task, if each takes `work` multiplications.
pub(super) fn share(rows: usize, work: usize) -> usize {
    let threads = rayon::current_num_threads();
    if threads == 1 || rows * work < WORTH_SHARING {
        rows.next_multiple_of(WHOLE)
    } else {
        let fair = rows.div_ceil(2 * threads);
        fair.next_multiple_of(WHOLE).min(ROWS)
    }
}

/// The input of a pass beside X.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) own: &'a [f64],
    pub(super) other: &'a [f64],
    pub(super) own_bars: [&'a [f64]; 2],
    pub(super) other_bars: [&'a [f64]; 2],
    pub(super) sums: &'a [f64],
    pub(super) rank: usize,
}

impl<'a> Job<'a> {
    pub(super) fn new(own: &'a [f64], other: &'a [f64], rank: usize) -> Self {
        Self {
            own,
            other,
            own_bars: [&[]; 2],
            other_bars: [&[]; 2],
            sums: &[],
            rank,
        }
    }
}

/// A matrix without weights.
pub(super) fn pack<T: Real>(
    shape: [usize; 2],
    entry: &(impl Fn(usize, usize) -> f64 + Sync),
) -> OneSide<T> {
    OneSide::new(shape, entry, None)
}

impl<T: Real> OneSide<T> {
    /// X from the block that begins with this row.
    pub(super) fn beginning_with(&self, row: usize) -> &[T] {
        &self.x.get(self.length)[row * self.columns..]
    }

    /// Packs blocks of rows one after another, each column by column.
    pub(super) fn new(
        [rows, columns]: [usize; 2],
        x: &(impl Fn(usize, usize) -> f64 + Sync),
        weights: Option<ArrayView2<'_, f64>>,
    ) -> Self {
        let lanes = rows_per_block::<T>();
        let length = rows.next_multiple_of(lanes) * columns;
        let pack = |entry: &(dyn Fn(usize, usize) -> f64 + Sync)| {
            let mut values = Aligned::new(length);
            let blocks = values.get_mut(length).par_chunks_mut(columns * lanes);
            blocks.enumerate().for_each(|(block, packed)| {
                for lane in 0..lanes.min(rows - block * lanes) {
                    for j in 0..columns {
                        packed[j * lanes + lane] = T::from_f64(entry(block * lanes + lane, j));
                    }
                }
            });
            values
        };
        Self {
            rows,
            columns,
            x: pack(x),
            weights: weights.map(|weights| pack(&|i, j| weights[[i, j]])),
            length,
        }
    }

    pub(super) fn blocks(&self, weighting: Weighting) -> Blocks<'_, T> {
        let weights = self.weights.as_ref();
        Blocks {
            x: self.x.get(self.length),
            weights: weights.map_or(&[], |weights| weights.get(self.length)),
            weighting,
            columns: self.columns,
        }
    }
}

/// `Σ_j rows_jk`.
pub(super) fn sums(rows: &[f64], rank: usize) -> Vec<f64> {
    let mut sums = vec![0.0; rank];
    for row in rows.chunks_exact(rank) {
        for (sum, value) in sums.iter_mut().zip(row) {
            *sum += value;
        }
    }
    sums
}

impl<T: Real> DataTerm for Dense<T> {
    fn shape(&self, side: Side) -> [usize; 2] {
        let side = self.side(side);
        [side.rows, side.columns]
    }

    fn denominator(&self) -> Denominator {
        match &self.quadratic {
            Some(_) => Denominator::Gram,
            None if self.is_constant() => Denominator::Sums,
            None => Denominator::Other,
        }
    }

    fn parts(&self, side: Side, at: At<'_>, room: PartsOf) -> PartsOf {
        if let Some(quadratic) = &self.quadratic {
            return quadratic.parts(self.side(side), side, at, room);
        }
        let sums = sums(at.other, at.rank);
        let mut parts = room.resized(at.factor.len());
        let job = Job {
            sums: if self.is_constant() { &sums } else { &[] },
            ..Job::new(at.factor, at.other, at.rank)
        };
        let PartsOf { negative, positive } = &mut parts;
        self.pass(What::Parts, self.side(side), &job, negative, positive);
        if let Some(gaps) = self.gaps(side) {
            gaps.add_complement(&sums, at.other, positive);
        }
        parts
    }

    fn denominators(&self, side: Side, at: At<'_>) -> Vec<f64> {
        let sums = sums(at.other, at.rank);
        if self.is_constant() {
            return sums.repeat(self.side(side).rows);
        }
        let Some(gaps) = self.gaps(side) else {
            return self.parts(side, at, PartsOf::default()).positive;
        };
        let mut positive = vec![0.0; at.factor.len()];
        gaps.add_complement(&sums, at.other, &mut positive);
        positive
    }

    fn parts_tangent(&self, side: Side, at: At<'_>, moves: Moves<'_>) -> PartsOf {
        if let Some(quadratic) = &self.quadratic {
            return quadratic.parts_tangent(self.side(side), at, moves);
        }
        let other = moves.other.unwrap_or(&[]);
        let sums = sums(other, at.rank);
        let mut dot = PartsOf {
            negative: vec![0.0; at.factor.len()],
            positive: vec![0.0; at.factor.len()],
        };
        let job = Job {
            own_bars: [moves.factor, &[]],
            other_bars: [other, &[]],
            sums: if self.is_constant() { &sums } else { &[] },
            ..Job::new(at.factor, at.other, at.rank)
        };
        let PartsOf { negative, positive } = &mut dot;
        self.pass(
            What::PartsTangent,
            self.side(side),
            &job,
            negative,
            positive,
        );
        if let (Some(gaps), Some(other)) = (self.gaps(side), moves.other) {
            gaps.add_complement(&sums, other, positive);
        }
        dot
    }

    fn parts_cotangent(&self, side: Side, at: At<'_>, of: &PartsOf, needs: Needs) -> Bars {
        let (here, there) = (self.side(side), self.side(side.other()));
        if let Some(quadratic) = &self.quadratic {
            return quadratic.parts_cotangent(there, at, of, needs);
        }
        let bars = [of.negative.as_slice(), of.positive.as_slice()];
        let factor = || {
            let mut out = vec![0.0; at.factor.len()];
            let job = Job {
                own_bars: bars,
                ..Job::new(at.factor, at.other, at.rank)
            };
            self.pass(What::PartsOfFactor, here, &job, &mut out, &mut []);
            out
        };
        let other = || {
            let sums = sums(&of.positive, at.rank);
            let mut out = vec![0.0; at.other.len()];
            let job = Job {
                other_bars: bars,
                sums: if self.is_constant() { &sums } else { &[] },
                ..Job::new(at.other, at.factor, at.rank)
            };
            self.pass(What::PartsOfOther, there, &job, &mut out, &mut []);
            if let Some(gaps) = self.gaps(side.other()) {
                gaps.add_complement(&sums, &of.positive, &mut out);
            }
            out
        };
        Bars {
            factor: needs.factor.then(factor),
            other: needs.other.then(other),
        }
    }

    fn divergences(&self, side: Side, at: At<'_>) -> Vec<f64> {
        let quadratic = self.quadratic.as_ref();
        if let Some(errors) = quadratic.and_then(|of| of.errors(self.side(side), side, at)) {
            return errors;
        }
        let side = self.side(side);
        let mut out = vec![0.0; side.rows];
        let job = Job::new(at.factor, at.other, at.rank);
        self.pass(What::Errors, side, &job, &mut out, &mut []);
        out
    }

    fn outer_errors(&self, at: At<'_>) -> Vec<f64> {
        match &self.outer {
            OuterError::Divergence => self.divergences(Side::W, at),
            OuterError::HeldOut(held_out) => held_out.errors(Side::W, at),
            OuterError::OfTraining(_) | OuterError::OfMatrix(..) => {
                let mut out = vec![0.0; self.x.of_w.rows];
                let job = Job::new(at.factor, at.other, at.rank);
                self.outer_pass(What::Errors, Side::W, &job, &mut out);
                out
            }
        }
    }

    fn outer_cotangent(&self, at: At<'_>, of: &[f64], needs: Needs) -> Bars {
        match (&self.outer, &self.quadratic) {
            (OuterError::HeldOut(held_out), _) => {
                return held_out.errors_cotangent(at, of, needs);
            }
            (OuterError::Divergence, Some(quadratic)) => {
                let sides = [&self.x.of_w, &self.x.of_h];
                return quadratic.errors_cotangent(sides, Side::W, at, of, needs);
            }
            _ => {}
        }
        let factor = || {
            let mut out = vec![0.0; at.factor.len()];
            let job = Job {
                own_bars: [of, &[]],
                ..Job::new(at.factor, at.other, at.rank)
            };
            self.outer_pass(What::ErrorsOfFactor, Side::W, &job, &mut out);
            out
        };
        let other = || {
            let mut out = vec![0.0; at.other.len()];
            let job = Job {
                other_bars: [of, &[]],
                ..Job::new(at.other, at.factor, at.rank)
            };
            self.outer_pass(What::ErrorsOfOther, Side::H, &job, &mut out);
            out
        };
        Bars {
            factor: needs.factor.then(factor),
            other: needs.other.then(other),
        }
    }
}

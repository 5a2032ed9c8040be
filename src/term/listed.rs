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
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use pulp::Arch;
use rayon::prelude::*;

use super::background::{Background, dot};
use super::rows::{Results, RowBunch, RowResults, Through};
use super::strip::{Strips, Taken, Terms, What};
use super::tile::Numbers;
use super::{At, Bars, Denominator, Moves, Needs, PartsOf};
use crate::divergence::Fused;
use crate::engine::{AnyEntry, lanes_here};
use crate::factors::Side;
use crate::problem::Weights;
use crate::sparse::{Matrix, SparseMatrix};

/// Entries in a task.
const TASK: usize = 1 << 12;
/// D_i and P are differences. Below this share of their terms they are computed entry by entry,
/// because the difference would lose more than five digits.
pub(super) const CANCELS: f64 = 1e-5;

/// The entries of one side, line by line.
#[derive(Debug, Clone)]
pub(super) struct Lines {
    starts: Arc<Vec<usize>>,
    places: Arc<Vec<u32>>,
    values: Values,
    /// `None` means that all are 1.
    weights: Option<Arc<Vec<f64>>>,
}

/// The values of entries. Those of the rows are shared with X; the copy that the columns need has 4
/// bytes each if all of them are exact in 4 bytes, as counts are.
#[derive(Debug, Clone)]
enum Values {
    Double(Arc<Vec<f64>>),
    Single(Arc<Vec<f32>>),
}

impl Lines {
    /// The lines of a matrix's rows.
    fn rows(x: &SparseMatrix, weights: Option<Vec<f64>>) -> Self {
        let (starts, places, values) = x.shared();
        Self {
            starts,
            places,
            values: Values::Double(values),
            weights: weights.map(Arc::new),
        }
    }

    /// The lines of a matrix's columns.
    fn columns(x: &SparseMatrix, weights: Option<&[f64]>) -> Self {
        let values = if x.values().iter().all(|x| f64::from(*x as f32) == *x) {
            Values::Single(Arc::new(x.by_columns(|_, slot| x.values()[slot] as f32)))
        } else {
            Values::Double(Arc::new(x.by_columns(|_, slot| x.values()[slot])))
        };
        Self {
            starts: Arc::new(x.starts_of_columns()),
            places: Arc::new(x.by_columns(|row, _| row as u32)),
            values,
            weights: weights.map(|weights| Arc::new(x.by_columns(|_, slot| weights[slot]))),
        }
    }

    /// Indices, values and weights of a line.
    pub(super) fn of(&self, line: usize) -> (&[u32], Numbers<'_, f64>, Option<&[f64]>) {
        let range = self.starts[line]..self.starts[line + 1];
        let values = match &self.values {
            Values::Double(values) => Numbers::Whole(&values[range.clone()]),
            Values::Single(values) => Numbers::Half(&values[range.clone()], 1.0),
        };
        let weights = self.weights.as_ref().map(|weights| &weights[range.clone()]);
        (&self.places[range], values, weights)
    }

    /// The number of lines.
    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Visits all entries of a line that count, one by one, with index, weight, x and y. `others` are
    /// all rows of the other factor.
    #[cold]
    #[inline(never)]
    fn each<'a>(
        &self,
        line: usize,
        elsewhere: f64,
        (own, others): (&[f64], impl Iterator<Item = &'a [f64]>),
        mut visit: impl FnMut(usize, f64, f64, f64),
    ) {
        let (places, values, weights) = self.of(line);
        let mut next = 0;
        for (place, other) in others.enumerate() {
            let (mut x, mut weight) = (0.0, elsewhere);
            if next < places.len() && places[next] as usize == place {
                x = values.at(next);
                weight = weights.map_or(1.0, |weights| weights[next]);
                next += 1;
            }
            if weight > 0.0 {
                visit(place, weight, x, dot(own, other));
            }
        }
    }

    /// `Σ_j v_ij of(j, x_ij, y_ij)` over the same entries.
    pub(super) fn sum_over<'a>(
        &self,
        line: usize,
        elsewhere: f64,
        factors: (&[f64], impl Iterator<Item = &'a [f64]>),
        of: impl Fn(usize, f64, f64) -> f64,
    ) -> f64 {
        let mut sum = 0.0;
        self.each(line, elsewhere, factors, |index, weight, x, y| {
            sum += weight * of(index, x, y);
        });
        sum
    }

    /// The ends of tasks: whole lines with about equally many entries.
    fn tasks(&self) -> Vec<usize> {
        let (starts, count) = (&self.starts, self.count());
        let mut ends = Vec::new();
        let mut first = 0;
        while first < count {
            let end = starts[first] + TASK;
            let next = starts.partition_point(|start| *start <= end) - 1;
            first = next.clamp(first + 1, count.min(first + TASK));
            ends.push(first);
        }
        ends
    }
}

/// The entries of a matrix for both sides, with the weight of those that are not listed.
#[derive(Debug, Clone)]
pub(super) struct Entries {
    x: SparseMatrix,
    rows: Lines,
    /// Made when they are first needed.
    columns: Arc<OnceLock<Lines>>,
    pub(super) elsewhere: f64,
}

impl Entries {
    /// The entries of a matrix with a weight, and those with another weight than the common one.
    pub(super) fn new(matrix: &Matrix, weights: Option<&Weights>) -> Self {
        let (x, weights, elsewhere) = match (matrix, weights) {
            (Matrix::Sparse(x), None) => (x.clone(), None, 1.0),
            (Matrix::Sparse(x), Some(Weights::Listed { at, elsewhere })) => {
                let (x, weights) = united(x, at, *elsewhere);
                (x, Some(weights), *elsewhere)
            }
            (_, Some(weights)) => {
                let [rows, columns] = matrix.dim().into();
                let mut of_rows = vec![Vec::new(); rows];
                for (row, column) in weights.places(|weight| weight > 0.0) {
                    of_rows[row].push((column as u32, matrix.entry(row, column)));
                }
                let x = SparseMatrix::from_rows(columns, of_rows);
                let given = x.map_entries(|index, _| weights[index]);
                (x, Some(given.values().to_vec()), 0.0)
            }
            (Matrix::Dense(_), None) => unreachable!("a dense matrix is not listed"),
        };
        let weights = weights.filter(|weights| weights.iter().any(|weight| *weight != 1.0));
        Self {
            rows: Lines::rows(&x, weights),
            columns: Arc::default(),
            x,
            elsewhere,
        }
    }

    pub(super) fn side(&self, side: Side) -> &Lines {
        match side {
            Side::W => &self.rows,
            Side::H => self.columns.get_or_init(|| {
                let weights = self.rows.weights.as_ref();
                Lines::columns(&self.x, weights.map(|weights| weights.as_slice()))
            }),
        }
    }

    /// Returns true if they have weights.
    pub(super) fn is_weighted(&self) -> bool {
        self.rows.weights.is_some()
    }
}

/// x and weight of the stored or listed entries, without those that are like all others or have no
/// weight.
fn united(x: &SparseMatrix, at: &SparseMatrix, elsewhere: f64) -> (SparseMatrix, Vec<f64>) {
    let [rows, columns] = x.shape();
    let mut weights = Vec::with_capacity(x.stored());
    let of_rows = (0..rows).map(|row| {
        let ((of_x, values), (of_weights, listed)) = (x.row(row), at.row(row));
        let mut entries = Vec::with_capacity(of_x.len());
        let (mut i, mut j) = (0, 0);
        while i < of_x.len() || j < of_weights.len() {
            let next = |columns: &[u32], at: usize| columns.get(at).copied().unwrap_or(u32::MAX);
            let column = next(of_x, i).min(next(of_weights, j));
            let (mut value, mut weight) = (0.0, elsewhere);
            if i < of_x.len() && of_x[i] == column {
                value = values[i];
                i += 1;
            }
            if j < of_weights.len() && of_weights[j] == column {
                weight = listed[j];
                j += 1;
            }
            let is_like_others = weight == elsewhere && (value == 0.0 || weight == 0.0);
            if !is_like_others {
                entries.push((column, value));
                weights.push(weight);
            }
        }
        entries
    });
    // (It must be made before the weights are read.)
    let x = SparseMatrix::from_rows(columns, of_rows);
    (x, weights)
}

/// A divergence over listed entries and all others.
#[derive(Debug)]
pub(super) struct Listed {
    entries: Entries,
    divergence: Fused,
    floor: f64,
    background: Background,
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
    fn positive_differs(&self) -> bool {
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

    /// Returns true if closed forms are not the sums of the entries that count.
    fn may_cancel(&self) -> bool {
        self.positive_differs() && self.background.taken != Taken::Nothing
    }

    /// Lines and components in which P has cancelled.
    fn cancelled_at(&self, side: Side, at: At<'_>) -> Vec<(usize, usize)> {
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
    fn mend(
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
    fn mend_slopes(&self, side: Side, at: At<'_>, bars: &[f64], out: &mut [f64]) {
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
    fn mend_tangent(&self, side: Side, at: At<'_>, moves: Moves<'_>, out: &mut [f64]) {
        let (cancelled, rank) = (self.cancelled_at(side, at), at.rank);
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
        self.add_cotangents(&cancelled, side, at, &whole.positive, &mut bars);
        if let (Taken::Y, Some(factor)) = (self.background.taken, &mut bars.factor) {
            // (∇⁻ does not move. The other components of P̄ reach such a component through sums that
            // have cancelled, too.)
            let rank = at.rank;
            self.mend(&cancelled, side, at, factor, |line, k, index, _, y| {
                let other = &at.other[index * rank..(index + 1) * rank];
                match self.moves(y) {
                    true => dot(&whole.positive[line * rank..][..rank], other) * other[k],
                    false => 0.0,
                }
            });
        }
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
    fn walk<'a>(
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

/// Lines and components in which P is tiny beside its terms of listed entries.
fn cancelled(rank: usize, of_listed: &[f64], positive: &[f64]) -> Vec<(usize, usize)> {
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
struct Job<'a> {
    own: &'a [f64],
    other: &'a [f64],
    own_bars: [&'a [f64]; 2],
    other_bars: [&'a [f64]; 2],
    error_bars: &'a [f64],
    rank: usize,
}

impl<'a> Job<'a> {
    fn new(own: &'a [f64], other: &'a [f64], rank: usize) -> Self {
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

//! The fused data term of a dense X, packed in blocks of rows.
//!
//! Updates of H and their cotangents read the same blocks as those of W: their sums run over rows
//! instead of columns. Only products with X (β = 2), tangents and errors of columns read X packed in
//! blocks of columns, which is made when it is first needed.
//!
//! An iteration ends with D and begins with the update of H, at the same factors. So the pass for D
//! also computes N and P of H, and they are kept for that update.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::cotangent::Of;
use super::distributed::Distributed;
use super::lines::Entries as ListedEntries;
use super::listed::Listed;
use super::lists::{Gaps, Lists};
use super::packed::{OneSide, masked, unit};
use super::pass::What;
use super::quadratic::Quadratic;
use super::sparse::Sparse;
use super::tile::Weighting;
use super::walk::{Job, Walk};
use super::{At, Bars, DataTerm, Denominator, Moves, Needs, PartsOf, SharedTerm, Then};
use crate::criterion::Entries;
use crate::divergence::Fused;
use crate::engine::Real;
use crate::factors::Side;
use crate::numerics::{Precision, add, add_summed};
use crate::problem::Problem;

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
    let own: SharedTerm = match (problem.is_sparse(), problem.precision()) {
        (true, _) => Arc::new(Sparse::new(problem, asked)),
        (false, Precision::F64) => Arc::new(Dense::<f64>::new(problem, asked)),
        (false, Precision::F32) => Arc::new(Dense::<f32>::new(problem, asked)),
    };
    if problem.share().is_split() {
        Arc::new(Distributed::new(own, problem.processes().clone()))
    } else {
        own
    }
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
    OfMatrix(Fused, OneSide<T>),
}

/// N and P of H at some factors, from the last evaluation of D.
#[derive(Debug, Default)]
struct Ahead {
    w: Vec<f64>,
    h: Vec<f64>,
    parts: Option<PartsOf>,
}

#[derive(Debug)]
struct Dense<T> {
    problem: Problem,
    unit: Option<f64>,
    /// X in blocks of rows.
    of_w: OneSide<T>,
    /// X in blocks of columns, if it was needed.
    of_h: OnceLock<OneSide<T>>,
    ahead: Mutex<Ahead>,
    /// Entries that are not fitted, if they are few and ∇⁺ is 1.
    gaps: Option<Gaps>,
    /// The term without entries of WH, if it applies.
    quadratic: Option<Quadratic>,
    divergence: Fused,
    outer: OuterError<T>,
    floor: f64,
}

impl<T: Real> Dense<T> {
    fn new(problem: &Problem, asked: Asked) -> Self {
        let x = problem.dense_numbers().expect("a dense term");
        let Asked {
            divergence,
            outer,
            over,
            floor,
        } = asked;
        let mask = problem.mask();
        let of_outer = outer.clone().unwrap_or_else(|| divergence.clone());
        let outer = match (over, problem.second_numbers()) {
            (Entries::Training, _) => outer.map_or(OuterError::Divergence, OuterError::OfTraining),
            (Entries::HeldOut, None) => {
                let entries = ListedEntries::new(problem.x(), problem.held_out_weights());
                let listed = Listed::new(entries, of_outer, floor);
                OuterError::HeldOut(listed.expect("what is not listed is not held out"))
            }
            (Entries::HeldOut, Some(second)) => {
                let of_w = masked(
                    second,
                    problem.held_out_weights(),
                    Side::W,
                    unit::<T>(second),
                );
                OuterError::OfMatrix(of_outer, of_w)
            }
        };
        let beta = divergence.plain_beta();
        let is_quadratic = beta == Some(2.0) && mask.is_none();
        // (Products with X read it as it is.)
        let unit = if is_quadratic { None } else { unit::<T>(x) };
        let of_w = masked::<T>(x, mask, Side::W, unit);
        let weighting = of_w.weighting;
        Self {
            problem: problem.clone(),
            unit,
            of_w,
            of_h: OnceLock::new(),
            ahead: Mutex::default(),
            gaps: mask
                .filter(|_| beta == Some(1.0) && weighting == Weighting::Sign)
                .and_then(Gaps::of),
            quadratic: is_quadratic.then(|| Quadratic::new(x)),
            divergence,
            outer,
            floor,
        }
    }

    /// X in the blocks of a side.
    fn side(&self, side: Side) -> &OneSide<T> {
        match (side, self.of_h.get()) {
            (Side::W, _) => &self.of_w,
            (Side::H, Some(of_h)) => of_h,
            (Side::H, None) => {
                // (It is packed before the cell is locked, because packing is parallel: a thread that
                // waits may begin a task that needs the same cell.)
                let x = self.problem.dense_numbers().expect("a dense term");
                let of_h = masked(x, self.problem.mask(), Side::H, self.unit);
                self.of_h.get_or_init(|| of_h)
            }
        }
    }

    /// N and P of a side, from its own blocks, with what remains to be done with them.
    fn parts_of_rows(&self, side: Side, at: At<'_>, room: PartsOf, then: &Then<'_>) -> PartsOf {
        let sums = self.sums(at.other, at.rank);
        let mut parts = room.resized(at.factor.len());
        let job = Job {
            sums: &sums,
            then: Some(then),
            ..Job::new(at)
        };
        let PartsOf { negative, positive } = &mut parts;
        self.updates(side)
            .over(What::Parts, self.side(side), &job, negative, positive);
        parts
    }

    /// N and P of H, from the blocks of W, and the errors of W's rows if they are requested. If P is
    /// the same for all rows, it is left empty.
    fn parts_of_columns(&self, at: At<'_>, errors: bool) -> (PartsOf, Vec<f64>) {
        self.updates(Side::W)
            .parts_of_columns(&self.of_w, at, errors)
    }

    /// The same, from the last evaluation of D if it was at these factors.
    fn parts_of_h(&self, at: At<'_>) -> PartsOf {
        let ahead = self.taken_ahead(at);
        ahead.unwrap_or_else(|| self.parts_of_columns(at, false).0)
    }

    /// N and P of H that were computed with D, if they are those of these factors.
    fn taken_ahead(&self, at: At<'_>) -> Option<PartsOf> {
        let mut ahead = self.ahead.lock();
        let parts = ahead.parts.take()?;
        (ahead.w == at.other && ahead.h == at.factor).then_some(parts)
    }

    /// The divergence of the fitted entries.
    fn errors(&self) -> Walk<'_> {
        Walk {
            divergence: &self.divergence,
            weighting: self.of_w.weighting,
            floor: self.floor,
            gaps: None,
        }
    }

    /// The same for the parts of updates, over the rows of a side.
    fn updates(&self, side: Side) -> Walk<'_> {
        let mut walk = self.errors();
        if let Some(gaps) = &self.gaps {
            // Sums of ∇⁻, a multiple of x, are over all entries; those of ∇⁺ leave the gaps out.
            walk.weighting = Weighting::Zeroed;
            walk.gaps = Some(gaps.by_lines(side));
        }
        walk
    }

    /// The divergence and the matrix of E, if E is a sum over a whole matrix.
    fn outer_matrix(&self) -> Option<(Walk<'_>, &OneSide<T>)> {
        let (divergence, of_w) = match &self.outer {
            OuterError::HeldOut(_) => return None,
            OuterError::Divergence => (&self.divergence, &self.of_w),
            OuterError::OfTraining(divergence) => (divergence, &self.of_w),
            OuterError::OfMatrix(divergence, of_w) => (divergence, of_w),
        };
        let walk = Walk {
            divergence,
            weighting: of_w.weighting,
            floor: self.floor,
            gaps: None,
        };
        Some((walk, of_w))
    }

    /// Returns true if P is the same for all rows.
    fn is_constant(&self) -> bool {
        self.divergence.positive_is_one()
            && self.of_w.weighting == Weighting::None
            && self.gaps.is_none()
    }

    /// Sums for P, if ∇⁺ is 1 everywhere or 0 in gaps.
    fn sums(&self, rows: &[f64], rank: usize) -> Vec<f64> {
        if self.is_constant() || self.gaps.is_some() {
            sums(rows, rank)
        } else {
            Vec::new()
        }
    }

    /// The entries of a side that are not fitted, line by line.
    fn gaps(&self, side: Side) -> Option<&Lists> {
        self.gaps.as_ref().map(|gaps| gaps.by_lines(side)[0])
    }
}

/// `Σ_j rows_jk`.
pub(super) fn sums(rows: &[f64], rank: usize) -> Vec<f64> {
    let mut sums = vec![0.0; rank];
    add_summed(rows, rank, [1, rank], &mut sums);
    sums
}

/// Adds the same numbers to every row.
pub(super) fn add_to_rows(rows: &mut [f64], share: &[f64]) {
    for row in rows.chunks_exact_mut(share.len().max(1)) {
        add(row, share);
    }
}

impl<T: Real> DataTerm for Dense<T> {
    fn shape(&self, side: Side) -> [usize; 2] {
        let [rows, columns] = [self.of_w.rows, self.of_w.columns];
        match side {
            Side::W => [rows, columns],
            Side::H => [columns, rows],
        }
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
        if side == Side::W {
            return self.parts_of_rows(side, at, room, &|_, _, _| ());
        }
        let mut parts = self.parts_of_h(at);
        if self.is_constant() {
            let sums = sums(at.other, at.rank);
            parts.positive = room.positive;
            // (Not by growing, which would take up to twice the memory, and a tape keeps it.)
            parts.positive.resize(at.factor.len(), 0.0);
            let rows = parts.positive.chunks_exact_mut(at.rank);
            rows.for_each(|row| row.copy_from_slice(&sums));
        }
        parts
    }

    fn finished_parts(&self, side: Side, at: At<'_>, room: PartsOf, then: &Then<'_>) -> PartsOf {
        if side == Side::W && self.quadratic.is_none() {
            return self.parts_of_rows(side, at, room, then);
        }
        let mut parts = self.parts(side, at, room);
        parts.finish(at.rank, then);
        parts
    }

    fn numerators(
        &self,
        side: Side,
        at: At<'_>,
        room: &dyn Fn() -> Vec<f64>,
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        if self.quadratic.is_some() || !self.is_constant() {
            return None;
        }
        let negative = match side {
            Side::W => {
                let (mut negative, job) = (room(), Job::new(at));
                self.updates(side)
                    .over(What::Parts, &self.of_w, &job, &mut negative, &mut []);
                negative
            }
            Side::H => self.parts_of_h(at).negative,
        };
        Some((negative, sums(at.other, at.rank)))
    }

    fn denominators(&self, side: Side, at: At<'_>) -> Vec<f64> {
        let sums = sums(at.other, at.rank);
        if self.is_constant() {
            return sums.repeat(self.shape(side)[0]);
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
        let sums = self.sums(other, at.rank);
        let mut dot = PartsOf {
            negative: vec![0.0; at.factor.len()],
            positive: vec![0.0; at.factor.len()],
        };
        let job = Job {
            moves: [moves.factor, other],
            sums: &sums,
            ..Job::new(at)
        };
        let PartsOf { negative, positive } = &mut dot;
        let side_data = self.side(side);
        self.updates(side)
            .over(What::PartsTangent, side_data, &job, negative, positive);
        dot
    }

    fn parts_cotangent(&self, side: Side, at: At<'_>, of: &PartsOf, needs: Needs) -> Bars {
        if let Some(quadratic) = &self.quadratic {
            return quadratic.parts_cotangent(self.side(side.other()), at, of, needs);
        }
        let mut bars = if side == Side::H {
            let updates = self.updates(Side::W);
            updates.cotangent_of_columns(&self.of_w, at, of, needs)
        } else {
            let given = Of::Parts(&of.negative, &of.positive);
            self.updates(side)
                .cotangent(self.side(side), at, given, needs)
        };
        if let Some(other) = bars.other.as_mut().filter(|_| self.is_constant()) {
            add_to_rows(other, &sums(&of.positive, at.rank));
        }
        bars
    }

    fn divergences(&self, side: Side, at: At<'_>) -> Vec<f64> {
        let quadratic = self.quadratic.as_ref();
        if let Some(errors) = quadratic.and_then(|of| of.errors(self.side(side), side, at)) {
            return errors;
        }
        if side == Side::W {
            let (parts, errors) = self.parts_of_columns(at.turned(), true);
            let mut ahead = self.ahead.lock();
            let Ahead { w, h, .. } = &mut *ahead;
            // (In the memory of the last ones.)
            at.factor.clone_into(w);
            at.other.clone_into(h);
            ahead.parts = Some(parts);
            return errors;
        }
        let side = self.side(side);
        let mut out = vec![0.0; side.rows];
        self.errors()
            .over(What::Errors, side, &Job::new(at), &mut out, &mut []);
        out
    }

    fn outer_errors(&self, at: At<'_>) -> Vec<f64> {
        match (&self.outer, self.outer_matrix()) {
            (OuterError::HeldOut(held_out), _) => held_out.errors(Side::W, at),
            (OuterError::OfTraining(_) | OuterError::OfMatrix(..), Some((walk, of_w))) => {
                let mut out = vec![0.0; of_w.rows];
                walk.over(What::Errors, of_w, &Job::new(at), &mut out, &mut []);
                out
            }
            _ => self.divergences(Side::W, at),
        }
    }

    fn outer_cotangent(&self, at: At<'_>, of: &[f64], needs: Needs) -> Bars {
        match (&self.outer, &self.quadratic) {
            (OuterError::HeldOut(held_out), _) => held_out.errors_cotangent(at, of, needs),
            (OuterError::Divergence, Some(quadratic)) => {
                let sides = [&self.of_w, self.side(Side::H)];
                quadratic.errors_cotangent(sides, Side::W, at, of, needs)
            }
            _ => {
                let (walk, of_w) = self.outer_matrix().expect("not listed entries");
                walk.cotangent(of_w, at, Of::Errors(of), needs)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn an_update_of_h_is_the_same_from_either_blocks() {
        let (n, m, rank) = (45, 37, 35);
        let number = |seed: usize| ((seed * 7919) % 1013) as f64 / 1013.0;
        let x = Array2::from_shape_fn((n, m), |(i, j)| (20.0 * number(i * m + j)).floor());
        let binary = Array2::from_shape_fn((n, m), |(i, j)| f64::from((i + 2 * j) % 5 != 0));
        let real = Array2::from_shape_fn((n, m), |(i, j)| number(i + 3 * j) + 0.1);
        let w: Vec<f64> = (0..n * rank).map(|k| number(k) + 0.01).collect();
        let h: Vec<f64> = (0..m * rank).map(|k| number(3 * k + 1) + 0.01).collect();
        let at = At {
            factor: &h,
            other: &w,
            rank,
        };
        let bars = PartsOf {
            negative: h.iter().map(|h| 1.0 - h).collect(),
            positive: h.iter().map(|h| h - 0.3).collect(),
        };
        let needs = Needs {
            factor: true,
            other: true,
        };
        let close = |a: &[f64], b: &[f64]| {
            let largest = a.iter().map(|a| a.abs()).fold(0.0, f64::max);
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * largest;
            a.len() == b.len() && a.iter().zip(b).all(near)
        };
        for mask in [None, Some(binary), Some(real)] {
            for beta in [0.5, 1.0, 3.0] {
                let problem = Problem::owning(x.clone(), mask.clone(), Precision::F64).unwrap();
                let asked = Asked {
                    divergence: Fused::Beta { beta, shift: 0.0 },
                    outer: None,
                    over: Entries::Training,
                    floor: Precision::F64.floor(),
                };
                let term = Dense::<f64>::new(&problem, asked);
                let by_rows = term.parts_of_rows(Side::H, at, PartsOf::default(), &|_, _, _| ());
                let (by_columns, errors) = term.parts_of_columns(at, true);
                let whole = term.parts(Side::H, at, PartsOf::default());
                assert!(close(&by_rows.negative, &by_columns.negative), "{beta}");
                assert!(close(&by_rows.positive, &whole.positive), "{beta}");
                // The errors are those of a pass of their own, and the parts are kept for an update at
                // the same factors only.
                let mut alone = vec![0.0; n];
                let (walk, job) = (term.errors(), Job::new(at.turned()));
                walk.over(What::Errors, &term.of_w, &job, &mut alone, &mut []);
                assert!(close(&alone, &errors), "{beta}");
                term.divergences(Side::W, at.turned());
                let elsewhere = At {
                    other: &w[rank..],
                    ..at
                };
                assert!(term.taken_ahead(elsewhere).is_none());
                term.divergences(Side::W, at.turned());
                let kept = term.taken_ahead(at).unwrap();
                assert_eq!(kept.negative, term.parts_of_columns(at, false).0.negative);
                assert_eq!(kept.positive, by_columns.positive);
                let given = Of::Parts(&bars.negative, &bars.positive);
                let own = term
                    .updates(Side::H)
                    .cotangent(term.side(Side::H), at, given, needs);
                let other = term
                    .updates(Side::W)
                    .cotangent_of_columns(&term.of_w, at, &bars, needs);
                let [a, b] = [own, other].map(|bars| [bars.factor.unwrap(), bars.other.unwrap()]);
                assert!(close(&a[0], &b[0]) && close(&a[1], &b[1]), "{beta}");
            }
        }
    }

    /// The other factor is so large that rows go over the columns in panels.
    #[test]
    fn panels_give_the_sums_of_matrix_products() {
        let (n, m, rank) = (401, 1400, 101);
        let number = |seed: usize| ((seed * 7919) % 1013) as f64 / 1013.0 + 0.01;
        let x = Array2::from_shape_fn((n, m), |(i, j)| number(i * m + j));
        let w = Array2::from_shape_fn((n, rank), |(i, k)| number(3 * i + k * n));
        let h = Array2::from_shape_fn((m, rank), |(j, k)| number(5 * j + k * m));
        let of_w = At {
            factor: w.as_slice().unwrap(),
            other: h.as_slice().unwrap(),
            rank,
        };
        let y = w.dot(&h.t());
        let problem = Problem::owning(x.clone(), None, Precision::F64).unwrap();
        for beta in [1.0, 2.0] {
            let [negative, positive] = match beta {
                1.0 => [&x / &y, Array2::ones((n, m))],
                _ => [x.clone(), y.clone()],
            };
            let asked = || Asked {
                divergence: Fused::Beta { beta, shift: 0.0 },
                outer: None,
                over: Entries::Training,
                floor: Precision::F64.floor(),
            };
            let parts = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                pool.build().unwrap().install(|| {
                    let term = Dense::<f64>::new(&problem, asked());
                    [(Side::W, of_w), (Side::H, of_w.turned())]
                        .map(|(side, at)| term.parts(side, at, PartsOf::default()))
                })
            };
            let found = parts(2);
            let expected = [
                [negative.dot(&h), positive.dot(&h)],
                [negative.t().dot(&w), positive.t().dot(&w)],
            ];
            for ((found, alone), expected) in found.iter().zip(parts(1)).zip(expected) {
                for (found, expected) in
                    [&found.negative, &found.positive].into_iter().zip(expected)
                {
                    let largest = expected.iter().fold(0.0, |a: f64, b| a.max(*b));
                    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-13 * largest;
                    assert!(found.iter().zip(&expected).all(near), "{beta}");
                }
                assert_eq!(found.negative, alone.negative);
                assert_eq!(found.positive, alone.positive);
            }
        }
    }
}

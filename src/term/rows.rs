//! Rows of W through a whole bunch, one row after the other: T updates, with their derivatives in
//! the row's λ, and then the row's error.
//!
//! A row of W depends on its own entries of X alone, if its penalties do. So its lines of the other
//! factor are copied once for all T updates, and stay in the cache. The derivative along λ_i is one
//! tangent ẇ_i. Under KL it needs two products per entry and component more.

use pulp::{Arch, Scalar, Simd, WithSimd};
use rayon::prelude::*;

use super::background::{Background, add_product_of_row};
use super::cancelled::CANCELS;
use super::lines::Lines;
use super::strip::{STRIP, Strip, Terms, What, add, dots};
use crate::engine::{Aligned, Plan, Sums, Update};

/// Numbers of gathered lines, at most: 64 kB.
const GATHERED: usize = 1 << 13;

/// A bunch over rows that do not depend on each other.
///
/// # Shapes
/// `lambda` has n numbers, or none.
#[derive(Debug, Clone, Copy)]
pub struct RowBunch<'a> {
    /// The rule of W.
    pub(crate) plan: &'a Plan,
    /// T.
    pub(crate) length: usize,
    /// One λ for each row. Empty if no penalty is tuned.
    pub(crate) lambda: &'a [f64],
    /// True if the derivatives along λ are requested.
    pub(crate) with_gradient: bool,
}

/// The results of a bunch beside W: E_i and, if it is requested, dE_i/dλ_i of each row.
///
/// # Shapes
/// n numbers each.
#[derive(Debug, Default)]
pub struct RowResults {
    pub(crate) errors: Vec<f64>,
    pub(crate) gradient: Vec<f64>,
}

/// The sums over entries in closed form.
pub(super) enum Closed {
    /// There are none.
    Nothing,
    /// The same P for all rows, r numbers.
    Row(Vec<f64>),
    /// P is w times this matrix, r×r.
    Gram(Vec<f64>),
}

/// The input of all rows.
#[derive(Clone, Copy)]
pub(super) struct Through<'a> {
    pub(super) terms: Terms<'a>,
    pub(super) lines: &'a Lines,
    pub(super) bunch: RowBunch<'a>,
    pub(super) closed: &'a Closed,
    pub(super) background: &'a Background,
    /// The other factor, m rows of whole vectors.
    pub(super) other: &'a [f64],
    pub(super) rank: usize,
    /// r, rounded up to whole vectors.
    pub(super) width: usize,
}

/// The results of some rows beside W. Those that are not requested are empty.
#[derive(Default)]
pub(super) struct Results<'a> {
    /// ẇ, r numbers each.
    pub(super) tangents: &'a mut [f64],
    /// The errors of listed entries.
    pub(super) errors: &'a mut [f64],
    /// The derivative of the error along λ.
    pub(super) gradient: &'a mut [f64],
}

impl<'a> Results<'a> {
    /// The results of the first rows, and those of the rest.
    fn split(self, rows: usize, rank: usize) -> (Self, Self) {
        let cut = |of: &'a mut [f64], length: usize| {
            let length = length.min(of.len());
            of.split_at_mut(length)
        };
        let (tangents, more_tangents) = cut(self.tangents, rows * rank);
        let (errors, more_errors) = cut(self.errors, rows);
        let (gradient, more_gradient) = cut(self.gradient, rows);
        let first = Self {
            tangents,
            errors,
            gradient,
        };
        let rest = Self {
            tangents: more_tangents,
            errors: more_errors,
            gradient: more_gradient,
        };
        (first, rest)
    }
}

impl Through<'_> {
    /// Updates all rows. Tasks have whole rows, and end at these.
    pub(super) fn run(self, ends: &[usize], w: &mut [f64], results: Results<'_>) {
        let (mut w, mut results, mut first) = (w, results, 0);
        let mut tasks = Vec::with_capacity(ends.len());
        for end in ends {
            let count = end - first;
            let (rows, rest) = w.split_at_mut(count * self.rank);
            w = rest;
            let (of_rows, rest) = results.split(count, self.rank);
            results = rest;
            tasks.push((first, rows, of_rows));
            first = *end;
        }
        let run = |(first, rows, results): (usize, &mut [f64], Results<'_>)| {
            Arch::new().dispatch(SomeRows {
                through: self,
                first,
                rows,
                results,
            });
        };
        if tasks.len() == 1 {
            tasks.into_iter().for_each(run);
        } else {
            tasks.into_par_iter().for_each(run);
        }
    }
}

/// Some rows.
struct SomeRows<'a> {
    through: Through<'a>,
    first: usize,
    rows: &'a mut [f64],
    results: Results<'a>,
}

/// The state of a row, in rows of whole vectors.
struct Row {
    w: Vec<f64>,
    w_dot: Vec<f64>,
    sums: Sums<Vec<f64>>,
    /// The closed form of P.
    closed: Vec<f64>,
    /// True if P has cancelled in a component.
    has_cancelled: bool,
}

impl WithSimd for SomeRows<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let Through {
            lines,
            bunch,
            other,
            rank,
            width,
            ..
        } = self.through;
        let numbers = || vec![0.0; width];
        let mut row = Row {
            w: numbers(),
            w_dot: numbers(),
            sums: Sums {
                positive: numbers(),
                negative: numbers(),
                positive_dot: numbers(),
                negative_dot: numbers(),
            },
            closed: numbers(),
            has_cancelled: false,
        };
        let mut strip = Strip::new();
        // (For a single update this would take longer than it saves.)
        let most = if bunch.length > 1 {
            GATHERED / width
        } else {
            0
        };
        let mut gathered = Aligned::<f64>::new(most * width);
        let in_order: Vec<u32> = (0..most as u32).collect();
        let rows = std::mem::take(&mut self.rows);
        for (index, w) in rows.chunks_exact_mut(rank).enumerate() {
            let line = self.first + index;
            row.w[..rank].copy_from_slice(w);
            row.w_dot.fill(0.0);
            row.has_cancelled = false;
            let (places, ..) = lines.of(line);
            let (other, places) = if places.len() <= most {
                let gathered = gathered.get_mut(places.len() * width);
                for (to, place) in gathered.chunks_exact_mut(width).zip(places) {
                    to.copy_from_slice(&other[*place as usize * width..][..width]);
                }
                (&*gathered, &in_order[..places.len()])
            } else {
                (other, places)
            };
            for step in 0..bunch.length {
                self.through
                    .sums::<S>(simd, line, (other, places), step > 0, &mut row, &mut strip);
                self.through.update(line, &mut row);
            }
            w.copy_from_slice(&row.w[..rank]);
            let Results {
                tangents,
                errors,
                gradient,
            } = &mut self.results;
            if !tangents.is_empty() {
                tangents[index * rank..(index + 1) * rank].copy_from_slice(&row.w_dot[..rank]);
            }
            if !errors.is_empty() {
                let entries = (other, places);
                let (error, slope) = self
                    .through
                    .errors::<S>(simd, line, entries, &row, &mut strip);
                errors[index] = error;
                if !gradient.is_empty() {
                    gradient[index] = slope;
                }
            }
        }
    }
}

impl Through<'_> {
    /// N and P of a row and, if it `moves`, their derivatives.
    #[inline(always)]
    fn sums<S: Simd>(
        &self,
        simd: S,
        line: usize,
        (other, places): (&[f64], &[u32]),
        moves: bool,
        row: &mut Row,
        strip: &mut Strip,
    ) {
        // (w⁽⁰⁾ does not depend on λ.)
        let moves = moves && self.bunch.with_gradient;
        let positive = self.terms.positive;
        let Row {
            w,
            w_dot,
            sums,
            closed,
            has_cancelled,
        } = row;
        sums.negative.fill(0.0);
        sums.negative_dot.fill(0.0);
        self.closed.write(w, &mut sums.positive, self.rank);
        if positive {
            closed.copy_from_slice(&sums.positive);
        }
        sums.positive_dot.fill(0.0);
        if moves {
            self.closed
                .add_dot(w_dot, &mut sums.positive_dot, self.rank);
        }
        let what = if moves {
            What::PartsTangent
        } else {
            What::Parts
        };
        let terms = Terms { what, ..self.terms };
        let negative_varies = terms.divergence.negative_varies();
        let (_, values, weights) = self.lines.of(line);
        let mut from = 0;
        while from < places.len() {
            let to = places.len().min(from + STRIP);
            let count = to - from;
            let places = &places[from..to];
            strip.read(values, from, count, weights.map(|all| &all[from..to]));
            let y_matters = negative_varies || positive;
            if moves && y_matters {
                let out = [&mut strip.y, &mut strip.t];
                dots::<S, 2>(simd, [&*w, &*w_dot], other, places, out);
            } else if y_matters {
                dots::<S, 1>(simd, [&*w], other, places, [&mut strip.y]);
            }
            terms.entries::<S>(simd, count, strip);
            let negative = [&strip.negative[..count], &strip.t[..count]];
            if moves && negative_varies {
                let to = [&mut sums.negative[..], &mut sums.negative_dot[..]];
                add::<S, 2>(simd, to, negative, other, places);
            } else {
                add::<S, 1>(simd, [&mut sums.negative], [negative[0]], other, places);
            }
            let both = [&strip.positive[..count], &strip.u[..count]];
            if moves && positive {
                let to = [&mut sums.positive[..], &mut sums.positive_dot[..]];
                add::<S, 2>(simd, to, both, other, places);
            } else if positive {
                add::<S, 1>(simd, [&mut sums.positive], [both[0]], other, places);
            }
            from = to;
        }
        if !positive || matches!(self.closed, Closed::Nothing) {
            return;
        }
        for (k, closed) in closed[..self.rank].iter().enumerate() {
            if sums.positive[k].abs() >= CANCELS * closed.abs() {
                continue;
            }
            *has_cancelled = true;
            let other = |index: usize| &self.other[index * self.width..][..self.rank];
            sums.positive[k] = self.sum_over(line, w, |index, _, y| {
                self.background.positive(y.max(self.terms.floor)) * other(index)[k]
            });
        }
        // (Under KL ∇⁺ does not move. A component that has cancelled may move far, and moves y in all of
        // the row.)
        if !(*has_cancelled && moves && matches!(self.closed, Closed::Gram(_))) {
            return;
        }
        for k in 0..self.rank {
            sums.positive_dot[k] = self.sum_over(line, w, |index, _, y| {
                let other = &self.other[index * self.width..][..self.rank];
                let y_dot: f64 = other.iter().zip(&*w_dot).map(|(a, b)| a * b).sum();
                match y < self.terms.floor {
                    true => 0.0,
                    false => y_dot * other[k],
                }
            });
        }
    }

    /// [`Lines::sum_over`] with a row's w.
    fn sum_over(&self, line: usize, w: &[f64], of: impl Fn(usize, f64, f64) -> f64) -> f64 {
        let factors = (&w[..self.rank], self.other.chunks_exact(self.width));
        self.lines.sum_over(line, self.terms.elsewhere, factors, of)
    }

    /// The error of the listed entries, and the derivative of the whole error along λ.
    #[inline(always)]
    fn errors<S: Simd>(
        &self,
        simd: S,
        line: usize,
        (other, places): (&[f64], &[u32]),
        row: &Row,
        strip: &mut Strip,
    ) -> (f64, f64) {
        let moves = self.bunch.with_gradient;
        let Row { w, w_dot, .. } = row;
        let terms = Terms {
            what: What::ErrorsAndSlopes,
            ..self.terms
        };
        let (_, values, weights) = self.lines.of(line);
        let (mut error, mut slope) = (0.0, 0.0);
        let mut from = 0;
        while from < places.len() {
            let to = places.len().min(from + STRIP);
            let count = to - from;
            let places = &places[from..to];
            strip.read(values, from, count, weights.map(|all| &all[from..to]));
            if moves {
                let out = [&mut strip.y, &mut strip.t];
                dots::<S, 2>(simd, [w, w_dot], other, places, out);
            } else {
                dots::<S, 1>(simd, [w], other, places, [&mut strip.y]);
            }
            error += terms.errors::<S>(simd, count, strip);
            if moves {
                terms.entries::<S>(simd, count, strip);
                slope += strip.t[..count].iter().sum::<f64>();
            }
            from = to;
        }
        if moves {
            slope += self.closed.slope(w, w_dot, self.rank);
        }
        if moves && row.has_cancelled {
            slope = self.sum_over(line, w, |index, x, y| {
                let other = &self.other[index * self.width..][..self.rank];
                let y_dot: f64 = other.iter().zip(w_dot).map(|(a, b)| a * b).sum();
                match y < self.terms.floor {
                    true => 0.0,
                    false => self.background.slope(x, y) * y_dot,
                }
            });
        }
        (error, slope)
    }

    /// `Φ` and its derivative, from the sums.
    #[inline(always)]
    fn update(&self, line: usize, row: &mut Row) {
        let (rank, RowBunch { plan, lambda, .. }) = (self.rank, self.bunch);
        let Row { w, w_dot, sums, .. } = row;
        let update = Update {
            plan,
            first: line,
            lambda: lambda.get(line..=line).unwrap_or(&[]),
            w: &mut w[..rank],
            w_dot: &mut w_dot[..rank],
            sums: sums.as_mut().map(|sum| &mut sum[..rank]),
        };
        update.with_simd(Scalar::new());
    }
}

impl Closed {
    /// P.
    #[inline(always)]
    fn write(&self, w: &[f64], to: &mut [f64], rank: usize) {
        to.fill(0.0);
        match self {
            Self::Nothing => {}
            Self::Row(row) => to[..rank].copy_from_slice(row),
            Self::Gram(gram) => add_product_of_row(w, gram, 1.0, &mut to[..rank]),
        }
    }

    /// The derivative of the error along ẇ.
    #[inline(always)]
    fn slope(&self, w: &[f64], w_dot: &[f64], rank: usize) -> f64 {
        let along = |row: &[f64]| row.iter().zip(w_dot).map(|(a, b)| a * b).sum::<f64>();
        match self {
            Self::Nothing => 0.0,
            Self::Row(row) => along(row),
            Self::Gram(gram) => {
                let lines = gram.chunks_exact(rank).zip(w);
                lines.map(|(line, w)| w * along(line)).sum()
            }
        }
    }

    /// Adds Ṗ.
    #[inline(always)]
    fn add_dot(&self, w_dot: &[f64], to: &mut [f64], rank: usize) {
        if let Self::Gram(gram) = self {
            add_product_of_row(w_dot, gram, 1.0, &mut to[..rank]);
        }
    }
}

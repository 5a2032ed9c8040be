//! The errors on held-out entries: few, and listed one by one.

use ndarray::Array2;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::lists::Lists;
use super::{At, Bars, Needs};
use crate::engine::{Entry, Frobenius, General, ItakuraSaito, KullbackLeibler, Lanes, Real};
use crate::factors::Side;
use crate::problem::Weights;

/// Rows in one task.
const ROWS: usize = 512;

/// One held-out entry as a row, or a column, sees it.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// The column, or row, it lies in.
    place: usize,
    x: f64,
    weight: f64,
}

/// The held-out entries by rows and by columns.
#[derive(Debug)]
pub(super) struct HeldOutEntries {
    rows: Lists<Held>,
    columns: Lists<Held>,
    beta: f64,
    floor: f64,
}

/// The errors of some rows.
struct Errors<'a, D> {
    divergence: D,
    lists: &'a Lists<Held>,
    first: usize,
    at: At<'a>,
    floor: f64,
    errors: &'a mut [f64],
}

/// Entries that are measured together: a few vectors of any processor.
const TOGETHER: usize = 32;

impl<D: Entry> WithSimd for Errors<'_, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let At {
            factor,
            other,
            rank,
        } = self.at;
        let lanes = f64::lanes::<S>();
        for (row, error) in self.errors.iter_mut().enumerate() {
            let row = self.first + row;
            let own = &factor[row * rank..(row + 1) * rank];
            for entries in self.lists.of(row).chunks(TOGETHER) {
                // What is beyond the last entry has no weight.
                let (mut x, mut y) = ([1.0; TOGETHER], [1.0; TOGETHER]);
                let mut weights = [0.0; TOGETHER];
                for (slot, held) in entries.iter().enumerate() {
                    let there = &other[held.place * rank..(held.place + 1) * rank];
                    x[slot] = held.x;
                    y[slot] = HeldOutEntries::product(own, there).max(self.floor);
                    weights[slot] = held.weight;
                }
                let count = entries.len().next_multiple_of(lanes);
                let vectors = f64::vectors::<S>(&x[..count]).iter();
                let vectors = vectors.zip(f64::vectors::<S>(&y[..count]));
                let mut values = [0.0; TOGETHER];
                let slots = f64::vectors_mut::<S>(&mut values[..count]);
                for ((x, y), slot) in vectors.zip(slots) {
                    let (x, y) = (Lanes::<f64, S>::new(simd, *x), Lanes::new(simd, *y));
                    *slot = self.divergence.values([x], [y], [y.recip()])[0].value;
                }
                for (value, weight) in values.iter().zip(&weights) {
                    // (Entries without weight may have any value.)
                    *error += if *weight > 0.0 { value * weight } else { 0.0 };
                }
            }
        }
    }
}

impl HeldOutEntries {
    pub(super) fn new(x: &Array2<f64>, weights: &Weights, beta: f64, floor: f64) -> Self {
        let places = weights.places();
        let held = || {
            let entries = places.iter();
            entries.map(|&(i, j)| (i, j, x[[i, j]], weights[(i, j)]))
        };
        let by_rows = held().map(|(i, place, x, weight)| (i, Held { place, x, weight }));
        let by_columns = held().map(|(place, j, x, weight)| (j, Held { place, x, weight }));
        let (n, m) = x.dim();
        Self {
            rows: Lists::new(n, by_rows.collect(), |held| held.place),
            columns: Lists::new(m, by_columns.collect(), |held| held.place),
            beta,
            floor,
        }
    }

    /// y, unfloored.
    #[inline(always)]
    fn product(a: &[f64], b: &[f64]) -> f64 {
        // Four sums side by side: one would wait for itself.
        let ((whole_a, rest_a), (whole_b, rest_b)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
        let mut sums = [0.0; 4];
        for (a, b) in whole_a.iter().zip(whole_b) {
            for lane in 0..4 {
                sums[lane] += a[lane] * b[lane];
            }
        }
        let rest: f64 = rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum();
        (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
    }

    /// ∂d/∂y.
    fn slope(&self, x: f64, y: f64) -> f64 {
        let beta = self.beta;
        if beta == 2.0 {
            y - x
        } else if beta == 1.0 {
            1.0 - x / y
        } else if beta == 0.0 {
            (y - x) / (y * y)
        } else {
            y.powf(beta - 2.0) * (y - x)
        }
    }

    /// The errors of one side's rows.
    pub(super) fn errors(&self, side: Side, at: At<'_>) -> Vec<f64> {
        match self.beta {
            2.0 => self.errors_by(Frobenius, side, at),
            1.0 => self.errors_by(KullbackLeibler, side, at),
            0.0 => self.errors_by(ItakuraSaito, side, at),
            beta => self.errors_by(General::new(beta), side, at),
        }
    }

    fn errors_by<D: Entry>(&self, divergence: D, side: Side, at: At<'_>) -> Vec<f64> {
        let lists = match side {
            Side::W => &self.rows,
            Side::H => &self.columns,
        };
        let mut errors = vec![0.0; at.factor.len() / at.rank];
        let tasks = errors.par_chunks_mut(ROWS).enumerate();
        tasks.for_each(|(task, errors)| {
            Arch::new().dispatch(Errors {
                divergence,
                lists,
                first: task * ROWS,
                at,
                floor: self.floor,
                errors,
            });
        });
        errors
    }

    pub(super) fn cotangent(&self, at: At<'_>, of: &[f64], needs: Needs) -> Bars {
        let At {
            factor,
            other,
            rank,
        } = at;
        // `bar(line, place)` is the cotangent of the row's error.
        let along = |lists: &Lists<Held>,
                     own: &[f64],
                     other: &[f64],
                     bar: &(dyn Fn(usize, usize) -> f64 + Sync)| {
            let mut out = vec![0.0; own.len()];
            let rows = out
                .par_chunks_exact_mut(rank)
                .zip(own.par_chunks_exact(rank));
            rows.with_min_len(ROWS)
                .enumerate()
                .for_each(|(line, (out, own))| {
                    for held in lists.of(line) {
                        let there = &other[held.place * rank..(held.place + 1) * rank];
                        let y = Self::product(own, there);
                        // Where the floor binds, y does not move.
                        if y < self.floor {
                            continue;
                        }
                        let slope = held.weight * self.slope(held.x, y) * bar(line, held.place);
                        for (sum, entry) in out.iter_mut().zip(there) {
                            *sum += slope * entry;
                        }
                    }
                });
            out
        };
        let of_row = |row: usize, _: usize| of[row];
        let of_column = |_: usize, row: usize| of[row];
        Bars {
            factor: needs
                .factor
                .then(|| along(&self.rows, factor, other, &of_row)),
            other: needs
                .other
                .then(|| along(&self.columns, other, factor, &of_column)),
        }
    }
}

//! The errors on held-out entries: few, and listed one by one.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::lists::Lists;
use super::{At, Bars, Needs};
use crate::divergence::{EntryParts, Fused};
use crate::engine::{
    Entry, Frobenius, General, ItakuraSaito, KullbackLeibler, Lanes, PlugIn, Real,
};
use crate::problem::{Problem, Weights};

/// Rows in one task.
const ROWS: usize = 512;

/// The held-out entries by rows and by columns.
#[derive(Debug)]
pub(super) struct HeldOutEntries {
    rows: Lists,
    columns: Lists,
    /// Knows their values and weights.
    problem: Problem,
    divergence: Fused,
    floor: f64,
}

/// The errors of some rows.
struct Errors<'a, D> {
    divergence: D,
    held_out: &'a HeldOutEntries,
    shift: f64,
    first: usize,
    at: At<'a>,
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
            let mut places = self.held_out.rows.of(row);
            while places.len() > 0 {
                // What is beyond the last entry has no weight.
                let (mut x, mut y) = ([1.0; TOGETHER], [1.0; TOGETHER]);
                let mut weights = [0.0; TOGETHER];
                let mut count = 0;
                for place in places.by_ref().take(TOGETHER) {
                    let there = &other[place * rank..(place + 1) * rank];
                    let product = HeldOutEntries::product(own, there);
                    let (value, weight) = self.held_out.entry(row, place);
                    x[count] = value + self.shift;
                    y[count] = product.max(self.held_out.floor) + self.shift;
                    weights[count] = weight;
                    count += 1;
                }
                let count = count.next_multiple_of(lanes);
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
    /// Those of a problem.
    pub(super) fn new(problem: &Problem, divergence: Fused, floor: f64) -> Self {
        let weights = problem.held_out_weights();
        let weights = weights.expect("a held-out error was checked to have entries");
        let places = || weights.places(|weight| weight > 0.0);
        let [n, m] = problem.shape();
        Self {
            rows: Lists::new(n, places),
            columns: Lists::new(m, || places().map(|(i, j)| (j, i))),
            problem: problem.clone(),
            divergence,
            floor,
        }
    }

    /// x and the weight of an entry.
    #[inline(always)]
    fn entry(&self, row: usize, column: usize) -> (f64, f64) {
        let weight = match self.problem.held_out_weights() {
            Some(Weights::Real(weights)) => weights[[row, column]],
            // It would not be listed.
            _ => 1.0,
        };
        (self.problem.x()[[row, column]], weight)
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
        match &self.divergence {
            Fused::PerEntry(functions) => {
                let EntryParts { positive, negative } = functions.split(x, y);
                positive - negative
            }
            Fused::Beta { beta, shift } => {
                let (x, y) = (x + shift, y + shift);
                match *beta {
                    2.0 => y - x,
                    1.0 => 1.0 - x / y,
                    0.0 => (y - x) / (y * y),
                    beta => y.powf(beta - 2.0) * (y - x),
                }
            }
        }
    }

    /// The errors of W's rows.
    pub(super) fn errors(&self, at: At<'_>) -> Vec<f64> {
        match &self.divergence {
            Fused::PerEntry(functions) => self.errors_by(PlugIn(functions.as_ref()), 0.0, at),
            Fused::Beta { beta, shift } => match *beta {
                2.0 => self.errors_by(Frobenius, *shift, at),
                1.0 => self.errors_by(KullbackLeibler, *shift, at),
                0.0 => self.errors_by(ItakuraSaito, *shift, at),
                beta => self.errors_by(General::new(beta), *shift, at),
            },
        }
    }

    fn errors_by<D: Entry>(&self, divergence: D, shift: f64, at: At<'_>) -> Vec<f64> {
        let mut errors = vec![0.0; at.factor.len() / at.rank];
        let tasks = errors.par_chunks_mut(ROWS).enumerate();
        tasks.for_each(|(task, errors)| {
            Arch::new().dispatch(Errors {
                divergence,
                held_out: self,
                shift,
                first: task * ROWS,
                at,
                errors,
            });
        });
        errors
    }

    /// The cotangents of W and Hᵀ, given those of the rows' errors.
    pub(super) fn cotangent(&self, at: At<'_>, of: &[f64], needs: Needs) -> Bars {
        let At {
            factor,
            other,
            rank,
        } = at;
        // `index(line, place)` is the row and the column.
        let along = |lists: &Lists,
                     own: &[f64],
                     other: &[f64],
                     index: &(dyn Fn(usize, usize) -> (usize, usize) + Sync)| {
            let mut out = vec![0.0; own.len()];
            let rows = out
                .par_chunks_exact_mut(rank)
                .zip(own.par_chunks_exact(rank));
            rows.with_min_len(ROWS)
                .enumerate()
                .for_each(|(line, (out, own))| {
                    for place in lists.of(line) {
                        let there = &other[place * rank..(place + 1) * rank];
                        let y = Self::product(own, there);
                        // Where the floor binds, y does not move.
                        if y < self.floor {
                            continue;
                        }
                        let (row, column) = index(line, place);
                        let (x, weight) = self.entry(row, column);
                        let slope = weight * self.slope(x, y) * of[row];
                        for (sum, entry) in out.iter_mut().zip(there) {
                            *sum += slope * entry;
                        }
                    }
                });
            out
        };
        let of_row = |row: usize, column: usize| (row, column);
        let of_column = |column: usize, row: usize| (row, column);
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

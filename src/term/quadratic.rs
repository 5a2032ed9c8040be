//! β = 2 without weights: products with X and Gram matrices, without any entry of WH.
//!
//! With F the factor, O the other one and `G = Oᵀ O`,
//!
//! $$ N = X O, \qquad P = F G, \qquad D_i = \tfrac12 \sum_j x_{ij}^2 - f_i \cdot (X O)_i + \tfrac12 f_i G f_i^\top $$
//!
//! so an update takes one multiply-add for each entry of X and component, and D takes none: X O is
//! saved until O changes. If a row is fitted so well that D_i loses its digits in that sum, D of
//! all rows is computed entry by entry.

use ndarray::aview1;
use parking_lot::Mutex;
use rayon::prelude::*;

use super::packed::OneSide;
use super::product::{Square, gram, gram_of, multiply, multiply_into, times, times_into};
use super::walk::share;
use super::{At, Bars, Moves, Needs, PartsOf};
use crate::engine::Real;
use crate::factors::Side;
use crate::numerics::{Precision, add};
use crate::problem::DenseNumbers;

/// If D_i is below this share of `½ Σ x²`, D is computed entry by entry, because the sum above would
/// lose more than three digits.
const CANCELS: f64 = 1e-3;

/// Numbers that one thread copies at a time.
const COPIED: usize = 1 << 15;

/// Largest number of rows whose P is made at a time for D.
const MOST_ROWS: usize = 64;

/// O, X O and Oᵀ O.
#[derive(Debug, Default)]
struct Product {
    other: Vec<f64>,
    product: Vec<f64>,
    gram: Vec<f64>,
}

/// The data of both sides, and their last products.
#[derive(Debug)]
pub(super) struct Quadratic {
    /// `½ Σ_j x_ij²` of each row of either side.
    halves: [Vec<f64>; 2],
    /// The last products of either side.
    last: [Mutex<Product>; 2],
}

fn index(side: Side) -> usize {
    match side {
        Side::W => 0,
        Side::H => 1,
    }
}

impl Quadratic {
    pub(super) fn new(x: DenseNumbers<'_>) -> Self {
        let (n, m) = x.dim();
        let mut of_columns = vec![0.0; m];
        let of_rows = (0..n).map(|i| {
            let row = x.row(i);
            for (sum, value) in of_columns.iter_mut().zip(row.iter()) {
                *sum += 0.5 * value * value;
            }
            let row = aview1(&row);
            row.dot(&row) * 0.5
        });
        let of_rows = of_rows.collect();
        Self {
            halves: [of_rows, of_columns],
            last: Default::default(),
        }
    }

    /// Calls `work` with X O and Oᵀ O. They are computed again only if O has changed.
    fn with_product<T: Real, R>(
        &self,
        x: &OneSide<T>,
        side: Side,
        other: &[f64],
        rank: usize,
        work: impl FnOnce(&Product) -> R,
    ) -> R {
        let last = &self.last[index(side)];
        // It is taken out, because parallel work must not run under a lock: a thread that waits for
        // others may begin a task that needs the same lock.
        let mut product = std::mem::take(&mut *last.lock());
        if product.other != other {
            product.product.resize(x.rows * rank, 0.0);
            times_into(x, other, rank, &mut product.product);
            product.gram = gram_of::<T>(other, rank);
            product.other.resize(other.len(), 0.0);
            copy(other, &mut product.other);
        }
        let result = work(&product);
        *last.lock() = product;
        result
    }

    pub(super) fn parts<T: Real>(
        &self,
        x: &OneSide<T>,
        side: Side,
        at: At<'_>,
        room: PartsOf,
    ) -> PartsOf {
        let mut parts = room.resized(at.factor.len());
        self.with_product(x, side, at.other, at.rank, |product| {
            copy(&product.product, &mut parts.negative);
            multiply_into::<T>(at.factor, &product.gram, at.rank, &mut parts.positive);
        });
        parts
    }

    /// `Ṅ = X Ȯ`, `Ṗ = Ḟ G + F (Ȯᵀ O + Oᵀ Ȯ)`.
    pub(super) fn parts_tangent<T: Real>(
        &self,
        x: &OneSide<T>,
        at: At<'_>,
        moves: Moves<'_>,
    ) -> PartsOf {
        let rank = at.rank;
        let gram_here = gram_of::<T>(at.other, rank);
        let mut positive = multiply::<T>(moves.factor, &gram_here, rank);
        let negative = match moves.other {
            None => vec![0.0; at.factor.len()],
            Some(other) => {
                let moved = symmetric(&gram::<T>(other, at.other, rank), rank);
                add(&mut positive, &multiply::<T>(at.factor, &moved, rank));
                times(x, other, rank)
            }
        };
        PartsOf { negative, positive }
    }

    /// `F̄ = P̄ G`, `Ō = Xᵀ N̄ + O (P̄ᵀ F + Fᵀ P̄)`.
    pub(super) fn parts_cotangent<T: Real>(
        &self,
        there: &OneSide<T>,
        at: At<'_>,
        of: &PartsOf,
        needs: Needs,
    ) -> Bars {
        let rank = at.rank;
        let factor = || {
            let gram = gram_of::<T>(at.other, rank);
            multiply::<T>(&of.positive, &gram, rank)
        };
        let other = || {
            let mut out = times(there, &of.negative, rank);
            let mixed = symmetric(&gram::<T>(&of.positive, at.factor, rank), rank);
            add(&mut out, &multiply::<T>(at.other, &mixed, rank));
            out
        };
        Bars {
            factor: needs.factor.then(factor),
            other: needs.other.then(other),
        }
    }

    /// D of each row. `None` if it would lose digits in a row.
    pub(super) fn errors<T: Real>(
        &self,
        x: &OneSide<T>,
        side: Side,
        at: At<'_>,
    ) -> Option<Vec<f64>> {
        // (32 bits have too few digits for this.)
        if T::PRECISION != Precision::F64 {
            return None;
        }
        let halves = &self.halves[index(side)];
        let errors = self.with_product(x, side, at.other, at.rank, |product| {
            errors_of::<T>(product, halves, at)
        });
        let cancels = |(error, half): (&f64, &f64)| *error < CANCELS * half;
        (!errors.iter().zip(halves).any(cancels)).then_some(errors)
    }

    /// The cotangents of both factors, from those of the rows' errors δ: `F̄ = δ (F G − X O)`, `Ō =
    /// O (Fᵀ δ F) − Xᵀ δ F`.
    pub(super) fn errors_cotangent<T: Real>(
        &self,
        [here, there]: [&OneSide<T>; 2],
        side: Side,
        at: At<'_>,
        of: &[f64],
        needs: Needs,
    ) -> Bars {
        let rank = at.rank;
        let weighted = |rows: &[f64]| {
            let rows = rows.chunks_exact(rank).zip(of);
            rows.flat_map(|(row, bar)| row.iter().map(move |value| value * bar))
                .collect::<Vec<f64>>()
        };
        let factor = || {
            let parts = self.parts(here, side, at, PartsOf::default());
            let PartsOf { negative, positive } = parts;
            let slopes = positive.iter().zip(&negative).map(|(p, n)| p - n);
            weighted(&slopes.collect::<Vec<f64>>())
        };
        let other = || {
            let scaled = weighted(at.factor);
            let mut out = multiply::<T>(at.other, &gram::<T>(&scaled, at.factor, rank), rank);
            for (slot, product) in out.iter_mut().zip(times(there, &scaled, rank)) {
                *slot -= product;
            }
            out
        };
        Bars {
            factor: needs.factor.then(factor),
            other: needs.other.then(other),
        }
    }
}

/// D of each row, from the products of its side and its half of the squares.
fn errors_of<T: Real>(product: &Product, halves: &[f64], at: At<'_>) -> Vec<f64> {
    let rank = at.rank;
    let mut errors = vec![0.0; halves.len()];
    let rows = share(halves.len(), rank, rank).min(MOST_ROWS);
    let tasks = errors
        .par_chunks_mut(rows)
        .zip(at.factor.par_chunks(rows * rank))
        .zip(product.product.par_chunks(rows * rank))
        .zip(halves.par_chunks(rows));
    let gram = Square::<T>::new(&product.gram, rank);
    // P of a task's rows is in the cache, so it is not made as a whole matrix.
    let memory = || (gram.memory(), vec![0.0; rows * rank]);
    tasks.for_each_init(
        memory,
        |(memory, positive), (((errors, own), n), halves)| {
            let positive = &mut positive[..own.len()];
            gram.multiply(own, positive, memory);
            let rows = own.chunks_exact(rank).zip(n.chunks_exact(rank));
            let rows = rows.zip(positive.chunks_exact(rank));
            for ((error, half), ((own, n), p)) in errors.iter_mut().zip(halves).zip(rows) {
                let entries = own.iter().zip(n).zip(p);
                *error = half + entries.map(|((f, n), p)| f * (0.5 * p - n)).sum::<f64>();
            }
        },
    );
    errors
}

/// Copies on all cores.
fn copy(from: &[f64], to: &mut [f64]) {
    let tasks = to.par_chunks_mut(COPIED).zip(from.par_chunks(COPIED));
    tasks.for_each(|(to, from)| to.copy_from_slice(from));
}

/// `A + Aᵀ`.
fn symmetric(a: &[f64], rank: usize) -> Vec<f64> {
    let entries = (0..rank * rank).map(|at| a[at] + a[at % rank * rank + at / rank]);
    entries.collect()
}

//! The sum over all entries with x = 0 in closed form: sums of the factors under KL, Gram matrices
//! under Frobenius.
//!
//! With F the factor, O the other one, ω the weight of an entry, s the column sums of O and
//! `G = Oᵀ O`:
//!
//! | | P | D_i |
//! |---|---|---|
//! | KL | ω s in every row | ω f_i · s |
//! | Frobenius | ω F G | ω f_i G f_iᵀ / 2 |

use super::dense::sums;
use super::rows::Closed;
use super::strip::Taken;
use super::{At, Moves, PartsOf};
use crate::numerics::add;
use rayon::prelude::*;

/// Rows per task, independent of the number of threads.
const ROWS: usize = 1024;

#[derive(Debug)]
pub(super) struct Background {
    pub(super) taken: Taken,
    /// ω.
    weight: f64,
}

impl Background {
    pub(super) fn new(taken: Taken, weight: f64) -> Self {
        Self { taken, weight }
    }

    /// d(x, y) of an entry.
    pub(super) fn value(&self, x: f64, y: f64) -> f64 {
        match self.taken {
            Taken::Y => 0.5 * (x - y) * (x - y),
            _ if x > 0.0 => x * (x / y).ln() + y - x,
            _ => y,
        }
    }

    /// ∇⁺(x, y).
    pub(super) fn positive(&self, y: f64) -> f64 {
        match self.taken {
            Taken::Y => y,
            _ => 1.0,
        }
    }

    /// ∇⁺(x, y) − ∇⁻(x, y).
    pub(super) fn slope(&self, x: f64, y: f64) -> f64 {
        match self.taken {
            Taken::Y => y - x,
            _ => 1.0 - x / y,
        }
    }

    /// Adds P.
    pub(super) fn add_parts(&self, at: At<'_>, to: &mut [f64]) {
        match self.taken {
            Taken::Nothing => {}
            Taken::One => self.add_rows(&sums(at.other, at.rank), to),
            Taken::Y => self.add_product(at.factor, &gram(at.other, at.other, at.rank), to),
        }
    }

    /// P of any row, for another factor.
    pub(super) fn closed(&self, other: &[f64], rank: usize) -> Closed {
        let weighted = |numbers: Vec<f64>| numbers.iter().map(|of| self.weight * of).collect();
        match self.taken {
            Taken::Nothing => Closed::Nothing,
            Taken::One => Closed::Row(weighted(sums(other, rank))),
            Taken::Y => Closed::Gram(weighted(gram(other, other, rank))),
        }
    }

    /// Adds Ṗ: ω ṡ, or `ω (Ḟ G + F (Ȯᵀ O + Oᵀ Ȯ))`.
    pub(super) fn add_parts_tangent(&self, at: At<'_>, moves: Moves<'_>, to: &mut [f64]) {
        match (self.taken, moves.other) {
            (Taken::Nothing, _) | (Taken::One, None) => {}
            (Taken::One, Some(other)) => self.add_rows(&sums(other, at.rank), to),
            (Taken::Y, other) => {
                self.add_product(moves.factor, &gram(at.other, at.other, at.rank), to);
                if let Some(other) = other {
                    let mixed = symmetric(&gram(other, at.other, at.rank), at.rank);
                    self.add_product(at.factor, &mixed, to);
                }
            }
        }
    }

    /// Adds F̄: nothing, or `ω P̄ G`.
    pub(super) fn add_parts_of_factor(&self, at: At<'_>, of: &PartsOf, to: &mut [f64]) {
        if self.taken == Taken::Y {
            self.add_product(&of.positive, &gram(at.other, at.other, at.rank), to);
        }
    }

    /// Adds Ō: `ω Σ_i p̄_i` in every row, or `ω O (P̄ᵀ F + Fᵀ P̄)`.
    pub(super) fn add_parts_of_other(&self, at: At<'_>, of: &PartsOf, to: &mut [f64]) {
        match self.taken {
            Taken::Nothing => {}
            Taken::One => self.add_rows(&sums(&of.positive, at.rank), to),
            Taken::Y => {
                let mixed = symmetric(&gram(&of.positive, at.factor, at.rank), at.rank);
                self.add_product(at.other, &mixed, to);
            }
        }
    }

    /// D_i of each row of the factor, as if all entries had x = 0.
    pub(super) fn errors(&self, at: At<'_>) -> Option<Vec<f64>> {
        let (rank, weight) = (at.rank, self.weight);
        let rows = at.factor.par_chunks_exact(rank).with_min_len(ROWS);
        match self.taken {
            Taken::Nothing => None,
            Taken::One => {
                let sums = sums(at.other, rank);
                Some(rows.map(|row| weight * dot(row, &sums)).collect())
            }
            Taken::Y => {
                let gram = gram(at.other, at.other, rank);
                let half = |product: &mut Vec<f64>, row: &[f64]| {
                    product.fill(0.0);
                    add_product_of_row(row, &gram, 0.5 * weight, product);
                    dot(row, product)
                };
                Some(rows.map_init(|| vec![0.0; rank], half).collect())
            }
        }
    }

    /// Adds F̄ of errors with cotangents δ: `ω δ_i s`, or `ω δ_i f_i G`.
    pub(super) fn add_errors_of_factor(&self, at: At<'_>, of: &[f64], to: &mut [f64]) {
        match self.taken {
            Taken::Nothing => {}
            Taken::One => {
                let sums = sums(at.other, at.rank);
                let rows = to.par_chunks_exact_mut(at.rank).with_min_len(ROWS);
                rows.zip(of).for_each(|(to, bar)| {
                    for (to, slope) in to.iter_mut().zip(&sums) {
                        *to += self.weight * bar * slope;
                    }
                });
            }
            Taken::Y => {
                let gram = gram(at.other, at.other, at.rank);
                self.add_product(&scaled(at, of), &gram, to);
            }
        }
    }

    /// Adds Ō of errors: `ω Σ_i δ_i f_i` in every row, or `ω O (Fᵀ δ F)`.
    pub(super) fn add_errors_of_other(&self, at: At<'_>, of: &[f64], to: &mut [f64]) {
        if self.taken == Taken::Nothing {
            return;
        }
        let (rank, scaled) = (at.rank, scaled(at, of));
        match self.taken {
            Taken::One => self.add_rows(&sums(&scaled, rank), to),
            _ => self.add_product(at.other, &gram(&scaled, at.factor, rank), to),
        }
    }

    /// Adds ω times a row to every row.
    fn add_rows(&self, row: &[f64], to: &mut [f64]) {
        let rows = to.par_chunks_exact_mut(row.len()).with_min_len(ROWS);
        rows.for_each(|to| {
            for (to, value) in to.iter_mut().zip(row) {
                *to += self.weight * value;
            }
        });
    }

    /// Adds ω A G.
    fn add_product(&self, a: &[f64], gram: &[f64], to: &mut [f64]) {
        let rank = gram.len().isqrt();
        add_product(a, gram, rank, self.weight, to);
    }
}

/// `δ_i f_i` of each row.
fn scaled(at: At<'_>, by: &[f64]) -> Vec<f64> {
    let mut scaled = at.factor.to_vec();
    let rows = scaled.par_chunks_exact_mut(at.rank).with_min_len(ROWS);
    rows.zip(by)
        .for_each(|(row, by)| row.iter_mut().for_each(|value| *value *= by));
    scaled
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Adds c A G, for a symmetric r×r matrix G.
pub(super) fn add_product(a: &[f64], gram: &[f64], rank: usize, weight: f64, to: &mut [f64]) {
    let rows = to.par_chunks_exact_mut(rank).with_min_len(ROWS / 16);
    rows.zip(a.par_chunks_exact(rank))
        .for_each(|(to, row)| add_product_of_row(row, gram, weight, to));
}

/// The same for one row.
#[inline(always)]
pub(super) fn add_product_of_row(row: &[f64], gram: &[f64], weight: f64, to: &mut [f64]) {
    for (line, value) in gram.chunks_exact(to.len()).zip(row) {
        let value = weight * value;
        for (to, entry) in to.iter_mut().zip(line) {
            *to += value * entry;
        }
    }
}

/// `Aᵀ B`, r×r, in pieces of fixed length, so that the number of threads does not matter.
pub(super) fn gram(a: &[f64], b: &[f64], rank: usize) -> Vec<f64> {
    let pieces = a.par_chunks(ROWS * rank).zip(b.par_chunks(ROWS * rank));
    let pieces = pieces.map(|(a, b)| {
        let mut gram = vec![0.0; rank * rank];
        for (a, b) in a.chunks_exact(rank).zip(b.chunks_exact(rank)) {
            for (line, a) in gram.chunks_exact_mut(rank).zip(a) {
                for (sum, b) in line.iter_mut().zip(b) {
                    *sum += a * b;
                }
            }
        }
        gram
    });
    added(pieces.collect(), rank * rank)
}

fn added(pieces: Vec<Vec<f64>>, length: usize) -> Vec<f64> {
    let mut total = vec![0.0; length];
    for piece in pieces {
        add(&mut total, &piece);
    }
    total
}

/// `A + Aᵀ`.
fn symmetric(a: &[f64], rank: usize) -> Vec<f64> {
    let entries = (0..rank * rank).map(|at| a[at] + a[at % rank * rank + at / rank]);
    entries.collect()
}

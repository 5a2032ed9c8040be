//! Penalties on plain numbers.
//!
//! On a small factor the overhead of a tensor operation exceeds its arithmetic. A penalty with this
//! form avoids it in adjoint mode, in runs without derivatives and in objectives. A penalty that
//! couples rows avoids it in reverse mode too. Forward mode and the reference use tensor operations.

use std::ops::Range;

/// A factor, or a matrix of its shape: r numbers for each row.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The numbers, row by row.
    pub values: &'a [f64],
    /// r.
    pub rank: usize,
}

impl<'a> Rows<'a> {
    /// Row i.
    #[inline]
    pub fn row(self, i: usize) -> &'a [f64] {
        &self.values[i * self.rank..(i + 1) * self.rank]
    }

    /// The number of rows.
    pub fn count(self) -> usize {
        self.values.len() / self.rank
    }
}

/// Weights that broadcast to a factor.
///
/// # Shapes
/// n×r, n×1, 1×r or 1×1.
#[derive(Debug, Clone)]
pub struct Spread {
    values: Vec<f64>,
    shape: [usize; 2],
}

impl Spread {
    /// Weights from numbers, row by row.
    ///
    /// # Panics
    /// If their number does not match the shape.
    pub fn new(values: Vec<f64>, shape: [usize; 2]) -> Self {
        assert_eq!(
            values.len(),
            shape[0] * shape[1],
            "a number for each weight"
        );
        Self { values, shape }
    }

    /// The r weights of a row. If the row has one weight, it is copied into `room`, which has r numbers.
    #[inline]
    pub fn row<'a>(&'a self, i: usize, room: &'a mut [f64]) -> &'a [f64] {
        let [rows, columns] = self.shape;
        let i = if rows == 1 { 0 } else { i };
        let line = &self.values[i * columns..(i + 1) * columns];
        if columns == room.len() {
            return line;
        }
        room.fill(line[0]);
        room
    }

    /// The weighted sum of a function of the entries of some rows.
    pub(super) fn sum(&self, w: Rows<'_>, rows: Range<usize>, of: impl Fn(f64) -> f64) -> f64 {
        let mut room = vec![0.0; w.rank];
        let of_rows = rows.map(|i| {
            let weighted = self.row(i, &mut room).iter().zip(w.row(i));
            weighted.map(|(weight, w)| weight * of(*w)).sum::<f64>()
        });
        of_rows.sum()
    }

    /// Numbers for each entry of some rows, summed to the shape of the weight: one number for each of
    /// its columns, in each row if rows have weights of their own.
    pub(crate) fn summed(&self, entries: &[f64], rank: usize) -> Vec<f64> {
        let width = self.shape[1];
        let count = if self.is_shared() {
            1
        } else {
            entries.len() / rank
        };
        let mut sums = vec![0.0; count * width];
        for (i, row) in entries.chunks_exact(rank).enumerate() {
            let first = if count == 1 { 0 } else { i * width };
            let sums = &mut sums[first..first + width];
            if width == 1 {
                sums[0] += row.iter().sum::<f64>();
            } else {
                let components = sums.iter_mut().zip(row);
                components.for_each(|(sum, value)| *sum += value);
            }
        }
        sums
    }

    /// The sums of consecutive rows as one: added if all rows share the weight, otherwise one after
    /// another.
    pub(crate) fn joined<'a>(&self, sums: impl Iterator<Item = &'a Vec<f64>>) -> Vec<f64> {
        let mut all = Vec::with_capacity(self.values.len());
        for sums in sums {
            if self.is_shared() && !all.is_empty() {
                let components = all.iter_mut().zip(sums);
                components.for_each(|(all, sum): (&mut f64, _)| *all += sum);
            } else {
                all.extend_from_slice(sums);
            }
        }
        all
    }

    /// Returns true if all rows have the same weights.
    fn is_shared(&self) -> bool {
        self.shape[0] == 1
    }

    /// The weights of some components of a row.
    #[inline(always)]
    pub(super) fn some<const K: usize>(&self, i: usize, from: usize) -> [f64; K] {
        let [rows, columns] = self.shape;
        let start = if rows == 1 { 0 } else { i * columns };
        if columns == 1 {
            return [self.values[start]; K];
        }
        let row = self.values[start + from..].first_chunk();
        *row.expect("a weight for each component")
    }
}

/// The hand-written parts of a penalty on some rows.
///
/// # Shapes
/// The output has r numbers for each row of the range. Inputs have all rows.
pub trait HostPenalty: Sync {
    /// `Σ λ_i r_i` over the rows of the range. Each end of an edge has half of it.
    fn weighted_value(&self, w: Rows<'_>, weight: &Spread, rows: Range<usize>) -> f64;

    /// Adds `λ p⁺` and `λ p⁻`.
    fn add_split(
        &self,
        w: Rows<'_>,
        weight: &Spread,
        rows: Range<usize>,
        positive: &mut [f64],
        negative: &mut [f64],
    );

    /// For cotangents of these parts, adds the cotangent of w and writes that of each entry's
    /// weight. (`weights` may hold anything before.)
    fn add_cotangent(
        &self,
        w: Rows<'_>,
        weight: &Spread,
        parts: [Rows<'_>; 2],
        rows: Range<usize>,
        factor: &mut [f64],
        weights: &mut [f64],
    );
}

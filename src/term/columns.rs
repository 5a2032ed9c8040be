//! Sums over the rows of a block, for the columns of a tile: `sums_jk += Σ_i terms_ij by_ik`.
//!
//! With few components a vector holds rows: each lane sums its own rows, and the lanes are added at
//! the end. A sum is then read and written for every second product, which is fast as long as all
//! sums of a tile are in the first-level cache. With [`MANY`] components a vector holds components:
//! the sums of a few columns stay in registers while all rows of the block are added.

use pulp::bytemuck::{cast_slice, cast_slice_mut};
use pulp::{Simd, WithSimd};

use super::kernel::{TILE, WIDE, has_many_registers};
use crate::engine::{Aligned, Lanes, Real};

/// From this number of components on, a vector holds components.
pub(super) const MANY: usize = 12;

/// Components in a line of memory: whole vectors.
fn padded<T: Real, S: Simd>(rank: usize) -> usize {
    rank.next_multiple_of(T::lanes::<S>())
}

/// Rows of a block: the numbers that terms are multiplied by.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T: Real, S: Simd> {
    /// Vectors of rows, [`WIDE`] for each component.
    pub(super) vectors: &'a [T::Vector<S>],
    /// Row by row, in whole vectors of components. Empty with few components.
    pub(super) lines: &'a [T],
}

/// The numbers that [`Rows::lines`] has for a block.
pub(super) fn lines_length<T: Real, S: Simd>(rank: usize) -> usize {
    match rank {
        ..MANY => 0,
        _ => WIDE * T::lanes::<S>() * padded::<T, S>(rank),
    }
}

/// Copies rows into the lines of a block. Lines without a row, and components beyond the last, are 0.
#[inline(always)]
pub(super) fn load_lines<T: Real, S: Simd>(rows: &[f64], rank: usize, lines: &mut [T]) {
    let mut rows = rows.chunks_exact(rank);
    for line in lines.chunks_exact_mut(padded::<T, S>(rank)) {
        let row = rows.next().unwrap_or_default();
        let (line, rest) = line.split_at_mut(row.len());
        for (slot, value) in line.iter_mut().zip(row) {
            *slot = T::from_f64(*value);
        }
        rest.fill(T::from_f64(0.0));
    }
}

/// The sums of a tile's columns.
#[derive(Debug)]
pub(super) struct ColumnSums<T> {
    rank: usize,
    /// Numbers for each column.
    each: usize,
    values: Aligned<T>,
}

impl<T: Real> ColumnSums<T> {
    pub(super) fn new<S: Simd>(rank: usize) -> Self {
        let each = match rank {
            ..MANY => rank * T::lanes::<S>(),
            _ => padded::<T, S>(rank),
        };
        Self {
            rank,
            each,
            values: Aligned::new(TILE * each),
        }
    }

    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.values.get_mut(TILE * self.each).fill(T::from_f64(0.0));
    }

    /// Adds the products of P pairs of terms and rows, over the rows of a block.
    #[inline(always)]
    pub(super) fn add<S: Simd, const P: usize>(
        &mut self,
        simd: S,
        terms: [&[T::Vector<S>]; P],
        by: [Rows<'_, T, S>; P],
    ) {
        let (rank, all) = (self.rank, TILE * self.each);
        let sums = self.values.get_mut(all);
        if rank < MANY {
            simd.vectorize(Spread::<T, P> {
                sums,
                terms: terms.map(cast_slice),
                by: by.map(|by| cast_slice(by.vectors)),
            });
            return;
        }
        for (terms, by) in terms.into_iter().zip(by) {
            simd.vectorize(Across {
                sums: &mut *sums,
                terms: cast_slice(terms),
                lines: by.lines,
            });
        }
    }

    /// Adds the sums to the numbers of the columns, r for each.
    #[inline(always)]
    pub(super) fn store<S: Simd>(&self, out: &mut [f64]) {
        let columns = self.values.get(TILE * self.each).chunks_exact(self.each);
        for (out, sums) in out.chunks_exact_mut(self.rank).zip(columns) {
            if self.rank < MANY {
                let lanes = sums.chunks_exact(T::lanes::<S>());
                for (out, lanes) in out.iter_mut().zip(lanes) {
                    *out += lanes.iter().map(|lane| lane.to_f64()).sum::<f64>();
                }
            } else {
                for (out, sum) in out.iter_mut().zip(sums) {
                    *out += sum.to_f64();
                }
            }
        }
    }
}

/// Vectors of rows. (A separate function, so that it is compiled once and not into every pass.)
struct Spread<'a, T, const P: usize> {
    sums: &'a mut [T],
    terms: [&'a [T]; P],
    by: [&'a [T]; P],
}

impl<T: Real, const P: usize> WithSimd for Spread<'_, T, P> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let sums: &mut [T::Vector<S>] = cast_slice_mut(self.sums);
        let terms: [&[T::Vector<S>]; P] = self.terms.map(cast_slice);
        let by: [&[T::Vector<S>]; P] = self.by.map(cast_slice);
        let (count, rank) = (terms[0].len() / WIDE, by[0].len() / WIDE);
        let mut from = 0;
        // (The terms of several columns stay in registers.)
        if P == 1 || (P == 2 && has_many_registers::<T, S>()) {
            while from + 4 <= count {
                spread_some::<T, S, P, 4>(simd, &mut sums[from * rank..], terms, by, from);
                from += 4;
            }
        }
        while from + 2 <= count {
            spread_some::<T, S, P, 2>(simd, &mut sums[from * rank..], terms, by, from);
            from += 2;
        }
        while from < count {
            spread_some::<T, S, P, 1>(simd, &mut sums[from * rank..], terms, by, from);
            from += 1;
        }
    }
}

#[inline(always)]
fn spread_some<T: Real, S: Simd, const P: usize, const J: usize>(
    simd: S,
    sums: &mut [T::Vector<S>],
    terms: [&[T::Vector<S>]; P],
    by: [&[T::Vector<S>]; P],
    from: usize,
) {
    let rank = by[0].len() / WIDE;
    // (Loops instead of `map`, whose closures might not be inlined.)
    let zero = Lanes::<T, S>::zero(simd);
    let mut of_columns = [[[zero; WIDE]; P]; J];
    for (j, of_column) in of_columns.iter_mut().enumerate() {
        for p in 0..P {
            for v in 0..WIDE {
                of_column[p][v] = Lanes::new(simd, terms[p][(from + j) * WIDE + v]);
            }
        }
    }
    let mut of_components: [&[[T::Vector<S>; WIDE]]; P] = [&[]; P];
    for p in 0..P {
        of_components[p] = &by[p].as_chunks::<WIDE>().0[..rank];
    }
    // Slices are cut to their lengths, so that the compiler can remove bounds checks.
    let (mut columns, mut rest): ([&mut [T::Vector<S>]; J], _) =
        (std::array::from_fn(|_| &mut [][..]), sums);
    for column in &mut columns {
        let (first, others) = rest.split_at_mut(rank);
        (*column, rest) = (first, others);
    }
    for k in 0..rank {
        let mut by = [[zero; WIDE]; P];
        for p in 0..P {
            for v in 0..WIDE {
                by[p][v] = Lanes::new(simd, of_components[p][k][v]);
            }
        }
        for j in 0..J {
            let mut sum = Lanes::new(simd, columns[j][k]);
            for p in 0..P {
                for v in 0..WIDE {
                    sum = of_columns[j][p][v].mul_add(by[p][v], sum);
                }
            }
            columns[j][k] = sum.value;
        }
    }
}

/// Vectors of components. (Likewise a separate function.)
struct Across<'a, T> {
    sums: &'a mut [T],
    /// [`WIDE`] vectors of rows for each column.
    terms: &'a [T],
    lines: &'a [T],
}

impl<T: Real> WithSimd for Across<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Sums in registers: 6×4 of 32, or 4×3 of 16.
        let most = if has_many_registers::<T, S>() { 4 } else { 3 };
        let each = self.lines.len() / (WIDE * T::lanes::<S>());
        let vectors = each / T::lanes::<S>();
        let parts = vectors.div_ceil(most);
        let mut from = 0;
        for part in 0..parts {
            // Parts of about equal length.
            let to = (part + 1) * vectors / parts;
            let sums = &mut *self.sums;
            match to - from {
                1 => across_columns::<T, S, 1>(simd, sums, self.terms, self.lines, from),
                2 => across_columns::<T, S, 2>(simd, sums, self.terms, self.lines, from),
                3 => across_columns::<T, S, 3>(simd, sums, self.terms, self.lines, from),
                _ => across_columns::<T, S, 4>(simd, sums, self.terms, self.lines, from),
            }
            from = to;
        }
    }
}

/// All columns, for K vectors of components.
#[inline(always)]
fn across_columns<T: Real, S: Simd, const K: usize>(
    simd: S,
    sums: &mut [T],
    terms: &[T],
    lines: &[T],
    from: usize,
) {
    let block = WIDE * T::lanes::<S>();
    let each = lines.len() / block;
    let mut columns = sums.chunks_exact_mut(each);
    let mut terms = terms;
    macro_rules! take {
        ($columns:literal) => {
            while terms.len() >= $columns * block {
                let (these, rest) = terms.split_at($columns * block);
                terms = rest;
                let sums = std::array::from_fn(|_| columns.next().expect("a column for its terms"));
                across_some::<T, S, K, $columns>(simd, sums, these, lines, from);
            }
        };
    }
    if has_many_registers::<T, S>() {
        take!(6);
    }
    take!(4);
    take!(1);
}

#[inline(always)]
fn across_some<T: Real, S: Simd, const K: usize, const J: usize>(
    simd: S,
    sums: [&mut [T]; J],
    terms: &[T],
    lines: &[T],
    from: usize,
) {
    let block = WIDE * T::lanes::<S>();
    let each = lines.len() / block;
    let mut totals = [[Lanes::<T, S>::zero(simd); K]; J];
    for j in 0..J {
        let sums = &T::vectors::<S>(sums[j])[from..from + K];
        for k in 0..K {
            totals[j][k] = Lanes::new(simd, sums[k]);
        }
    }
    // Slices are cut to their lengths, so that the compiler can remove bounds checks.
    let terms = &terms[..J * block];
    for (i, line) in lines.chunks_exact(each).enumerate().take(block) {
        let line = &T::vectors::<S>(line)[from..from + K];
        for j in 0..J {
            let term = Lanes::<T, S>::splat(simd, terms[j * block + i]);
            for k in 0..K {
                totals[j][k] = term.mul_add(Lanes::new(simd, line[k]), totals[j][k]);
            }
        }
    }
    for (sums, totals) in sums.into_iter().zip(totals) {
        let sums = &mut T::vectors_mut::<S>(sums)[from..from + K];
        for k in 0..K {
            sums[k] = totals[k].value;
        }
    }
}

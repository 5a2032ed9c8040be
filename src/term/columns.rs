//! Sums over the rows of a block, for the columns of a tile: `sums_jk += Σ_i terms_ij by_ik`.
//!
//! With few components a vector holds rows: each lane sums its own rows, and the lanes are added at
//! the end. A sum is then read and written for every second product, which is fast as long as all
//! sums of a tile are in the first-level cache. With [`MANY`] components a vector holds components:
//! the sums of a few columns stay in registers while the rows of several blocks are added.

use pulp::bytemuck::{cast_slice, cast_slice_mut};
use pulp::{Simd, WithSimd};

use super::kernel::{TILE, WIDE, has_many_registers};
use crate::engine::{Aligned, Lanes, Real, lanes_here};

/// From this number of components on, a vector holds components.
pub(super) const MANY: usize = 12;
/// Blocks whose rows are then added together.
const BATCH: usize = 4;
/// Largest number of pairs of terms and rows.
const PAIRS: usize = 3;
/// Vectors of components whose sums are in registers at the same time, each for six columns: for 16
/// registers, and for 32.
const VECTORS: [usize; 2] = [2, 4];

/// Components in a line of memory: whole vectors.
fn padded<T: Real, S: Simd>(rank: usize) -> usize {
    rank.next_multiple_of(T::lanes::<S>())
}

/// Vectors of components in a line, and the parts that they are summed in.
fn vectors_and_parts<T: Real, S: Simd>(rank: usize) -> (usize, usize) {
    let vectors = padded::<T, S>(rank) / T::lanes::<S>();
    let most = VECTORS[usize::from(has_many_registers::<T, S>())];
    (vectors, vectors.div_ceil(most))
}

/// Rows of a block: the numbers that terms are multiplied by.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T: Real, S: Simd> {
    /// Vectors of rows, [`WIDE`] for each component.
    pub(super) vectors: &'a [T::Vector<S>],
    /// The lines of all blocks ([`load_lines`]). Empty with few components.
    pub(super) lines: &'a [T],
}

/// A block of rows. The blocks are added to the sums of a tile in their order, beginning with 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockAt {
    pub(super) index: usize,
    pub(super) is_last: bool,
}

/// Numbers in the lines of a block. 0 with few components.
pub(super) fn lines_length<T: Real, S: Simd>(rank: usize) -> usize {
    match rank {
        ..MANY => 0,
        _ => WIDE * T::lanes::<S>() * padded::<T, S>(rank),
    }
}

/// Copies rows into the lines of a block: part by part of the components, each row by row. Lines
/// without a row, and components beyond the last, are 0.
#[inline(always)]
pub(super) fn load_lines<T: Real, S: Simd>(rows: &[f64], rank: usize, mut lines: &mut [T]) {
    let (vectors, parts) = vectors_and_parts::<T, S>(rank);
    let lanes = T::lanes::<S>();
    let mut from = 0;
    for part in 0..parts {
        // Parts of about equal length.
        let to = (part + 1) * vectors / parts;
        let width = (to - from) * lanes;
        let (of_part, rest) = lines.split_at_mut(width * WIDE * lanes);
        lines = rest;
        let components = from * lanes..rank.min(to * lanes);
        let mut rows = rows.chunks_exact(rank);
        for line in of_part.chunks_exact_mut(width) {
            let row = rows.next().map_or(&[][..], |row| &row[components.clone()]);
            let (line, rest) = line.split_at_mut(row.len());
            for (slot, value) in line.iter_mut().zip(row) {
                *slot = T::from_f64(*value);
            }
            rest.fill(T::from_f64(0.0));
        }
        from = to;
    }
}

/// The sums of a tile's columns.
#[derive(Debug)]
pub(super) struct ColumnSums<T> {
    rank: usize,
    /// Numbers for each column.
    each: usize,
    values: Aligned<T>,
    /// With many components, the terms of blocks that are not yet added, pair by pair.
    waiting: Aligned<T>,
    /// The number of these blocks.
    blocks: usize,
}

impl<T: Real> ColumnSums<T> {
    pub(super) fn new(rank: usize) -> Self {
        let lanes = lanes_here::<T>();
        let each = match rank {
            ..MANY => rank * lanes,
            _ => rank.next_multiple_of(lanes),
        };
        Self {
            rank,
            each,
            values: Aligned::new(TILE * each),
            waiting: Aligned::new(match rank {
                ..MANY => 0,
                _ => PAIRS * waiting_length(lanes),
            }),
            blocks: 0,
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
        at: BlockAt,
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
        let of_pair = waiting_length(T::lanes::<S>());
        let waiting = self.waiting.get_mut(PAIRS * of_pair);
        let size = terms[0].len() * T::lanes::<S>();
        for (waiting, terms) in waiting.chunks_exact_mut(of_pair).zip(terms) {
            let slots = &mut waiting[self.blocks * size..][..size];
            slots.copy_from_slice(cast_slice(terms));
        }
        self.blocks += 1;
        if self.blocks < BATCH && !at.is_last {
            return;
        }
        let of_block = lines_length::<T, S>(rank);
        let end = at.index + 1;
        let lines = (end - self.blocks) * of_block..end * of_block;
        for (waiting, by) in waiting.chunks_exact(of_pair).zip(by) {
            simd.vectorize(Across {
                sums: &mut *sums,
                terms: &waiting[..self.blocks * size],
                of_block: size,
                lines: &by.lines[lines.clone()],
                rank,
            });
        }
        self.blocks = 0;
    }

    /// Adds the sums to the numbers of the columns, r for each.
    #[inline(always)]
    pub(super) fn store<S: Simd>(&self, simd: S, out: &mut [f64]) {
        let columns = self.values.get(TILE * self.each).chunks_exact(self.each);
        for (out, sums) in out.chunks_exact_mut(self.rank).zip(columns) {
            if self.rank < MANY {
                for (out, sum) in out.iter_mut().zip(T::vectors::<S>(sums)) {
                    *out += T::sum(simd, *sum).to_f64();
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

/// Numbers in the terms of one pair that wait.
fn waiting_length(lanes: usize) -> usize {
    BATCH * TILE * WIDE * lanes
}

/// Vectors of components. (Likewise a separate function.)
struct Across<'a, T> {
    sums: &'a mut [T],
    /// The terms of some blocks: [`WIDE`] vectors of rows for each column.
    terms: &'a [T],
    /// Numbers in the terms of a block.
    of_block: usize,
    /// The lines of these blocks.
    lines: &'a [T],
    rank: usize,
}

impl<T: Real> WithSimd for Across<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (vectors, parts) = vectors_and_parts::<T, S>(self.rank);
        let mut from = 0;
        for part in 0..parts {
            let to = (part + 1) * vectors / parts;
            match to - from {
                1 => self.columns::<S, 1>(simd, from),
                2 => self.columns::<S, 2>(simd, from),
                3 => self.columns::<S, 3>(simd, from),
                _ => self.columns::<S, 4>(simd, from),
            }
            from = to;
        }
    }
}

impl<T: Real> Across<'_, T> {
    /// All columns, for K vectors of components.
    #[inline(always)]
    fn columns<S: Simd, const K: usize>(&mut self, simd: S, from: usize) {
        let columns = self.of_block / (WIDE * T::lanes::<S>());
        let mut first = 0;
        // (Eight are four and four, not six and two.)
        while first + 6 <= columns && columns - first != 8 {
            self.some::<S, K, 6>(simd, from, first);
            first += 6;
        }
        while first + 4 <= columns {
            self.some::<S, K, 4>(simd, from, first);
            first += 4;
        }
        while first < columns {
            self.some::<S, K, 1>(simd, from, first);
            first += 1;
        }
    }

    /// J columns, whose sums stay in registers while all rows are added.
    #[inline(always)]
    fn some<S: Simd, const K: usize, const J: usize>(
        &mut self,
        simd: S,
        from: usize,
        first: usize,
    ) {
        let (vectors, _) = vectors_and_parts::<T, S>(self.rank);
        let rows = WIDE * T::lanes::<S>();
        let sums = &mut T::vectors_mut::<S>(self.sums)[first * vectors..(first + J) * vectors];
        let mut totals = [[Lanes::<T, S>::zero(simd); K]; J];
        for j in 0..J {
            let sums = &sums[j * vectors + from..][..K];
            for k in 0..K {
                totals[j][k] = Lanes::new(simd, sums[k]);
            }
        }
        let lines = T::vectors::<S>(self.lines).chunks_exact(vectors * rows);
        for (terms, lines) in self.terms.chunks_exact(self.of_block).zip(lines) {
            // Slices are cut to their lengths, so that the compiler can remove bounds checks.
            let terms = &terms[first * rows..(first + J) * rows];
            let (lines, _) = lines[from * rows..(from + K) * rows].as_chunks::<K>();
            let lines = &lines[..rows];
            for i in 0..rows {
                for j in 0..J {
                    let term = Lanes::<T, S>::splat(simd, terms[j * rows + i]);
                    for k in 0..K {
                        totals[j][k] = term.mul_add(Lanes::new(simd, lines[i][k]), totals[j][k]);
                    }
                }
            }
        }
        for j in 0..J {
            let sums = &mut sums[j * vectors + from..][..K];
            for k in 0..K {
                sums[k] = totals[j][k].value;
            }
        }
    }
}

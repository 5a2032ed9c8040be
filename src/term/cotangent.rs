//! Passes with sums for columns: the cotangents of both factors, from those of parts or of errors,
//! and the parts of the columns' factor.
//!
//! WH, the products with cotangents, and the entries are computed once for rows and columns. A
//! row's sums run over the columns, as in other passes. A column's sums run over the rows
//! ([`columns`](super::columns)).

use std::ops::Range;

use parking_lot::Mutex;
use pulp::{Simd, WithSimd};

use super::columns::{BlockAt, ColumnSums, MANY, Rows, lines_length, load_lines};
use super::entries::Loop;
use super::kernel::{TILE, WIDE, contract, load, products, store};
use super::tile::{Tile, Tiles, Weighting};
use crate::engine::{Aligned, Lanes, MOST_LANES, Real};

/// The cotangents that are given.
#[derive(Debug, Clone, Copy)]
pub(super) enum Of<'a> {
    /// Those of the rows' N and P, r numbers each.
    Parts(&'a [f64], &'a [f64]),
    /// Those of the rows' errors, one number each.
    Errors(&'a [f64]),
    /// Those of the columns' N and P, r numbers each.
    ColumnParts(&'a [f64], &'a [f64]),
    /// None: the pass computes N and P of the columns' factor.
    Nothing,
}

impl<'a> Of<'a> {
    /// Matrices of the rows that columns are summed by.
    fn matrices(&self) -> usize {
        match self {
            Self::Parts(..) => 3,
            _ => 1,
        }
    }

    /// Those of some of all rows.
    pub(super) fn rows(self, range: Range<usize>, all: usize) -> Self {
        let cut = |values: &'a [f64]| {
            let each = values.len() / all;
            &values[range.start * each..range.end * each]
        };
        match self {
            Self::Parts(negative, positive) => Self::Parts(cut(negative), cut(positive)),
            Self::Errors(errors) => Self::Errors(cut(errors)),
            of_columns => of_columns,
        }
    }
}

/// One pass over some columns of consecutive blocks of rows.
pub(super) struct Cotangent<'a, T> {
    pub(super) of: Of<'a>,
    /// The cotangents of [`Of::ColumnParts`], in the type of the pass.
    pub(super) of_columns_given: [&'a [T]; 2],
    pub(super) tiles: Tiles<'a, T>,
    /// The index of the first block.
    pub(super) first: usize,
    pub(super) columns: Range<usize>,
    /// The rows of the pass, r numbers each.
    pub(super) own: &'a [f64],
    /// r numbers for each of all columns.
    pub(super) other: &'a [T],
    pub(super) rank: usize,
    /// The cotangent of the rows, or their errors with [`Of::Nothing`]. Empty if it is not
    /// requested.
    pub(super) of_rows: &'a mut [f64],
    /// That of the columns of the pass, which is added. Empty if it is not requested. With
    /// [`Of::Nothing`], N of these columns, and then P if it is requested.
    pub(super) of_columns: &'a mut [f64],
    pub(super) memory: &'a mut Memory<T>,
}

/// Numbers in the largest memory that is kept (2 MB in 64 bits).
const LARGEST_SPARE: usize = 1 << 18;

/// Matrices of a block: its rows, the cotangents of N and P (or of errors), and the sums.
const MATRICES: usize = 4;

/// The working memory of passes over a number of rows.
#[derive(Debug)]
pub(super) struct Memory<T> {
    blocks: Aligned<T>,
    lines: Aligned<T>,
    /// Numbers in blocks and in lines.
    lengths: [usize; 2],
    rank: usize,
    of_columns: [ColumnSums<T>; 2],
}

/// Working memory of earlier passes for the next ones. New memory is cleared first, which costs some
/// percent of a small pass. (Large memory is given back.)
#[derive(Debug)]
pub(super) struct SpareMemory<T>(Mutex<Vec<Memory<T>>>);

impl<T> Default for SpareMemory<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Real> SpareMemory<T> {
    /// Memory for so many rows.
    pub(super) fn take(&self, of: Of<'_>, rows: usize, rank: usize) -> Memory<T> {
        let kept = self.0.lock().pop();
        let fits = kept.filter(|memory| memory.holds(of, rows, rank));
        fits.unwrap_or_else(|| Memory::new(of, rows, rank))
    }

    pub(super) fn keep(&self, memory: Memory<T>) {
        if memory.lengths.iter().sum::<usize>() <= LARGEST_SPARE {
            self.0.lock().push(memory);
        }
    }
}

impl<T: Real> Memory<T> {
    pub(super) fn new(of: Of<'_>, rows: usize, rank: usize) -> Self {
        let lengths = Self::lengths(of, rows, rank);
        Self {
            blocks: Aligned::new(lengths[0]),
            lines: Aligned::new(lengths[1]),
            lengths,
            rank,
            of_columns: [(); 2].map(|()| ColumnSums::new(rank)),
        }
    }

    fn holds(&self, of: Of<'_>, rows: usize, rank: usize) -> bool {
        let [blocks, lines] = Self::lengths(of, rows, rank);
        rank == self.rank && blocks <= self.lengths[0] && lines <= self.lengths[1]
    }

    /// Numbers in blocks and in lines.
    fn lengths(of: Of<'_>, rows: usize, rank: usize) -> [usize; 2] {
        // (Whole blocks, and whole vectors of components, on every machine.)
        let rows = rows.next_multiple_of(WIDE * MOST_LANES);
        let lines = match rank {
            ..MANY => 0,
            _ => of.matrices() * rows * rank.next_multiple_of(MOST_LANES),
        };
        [MATRICES * rows * rank, lines]
    }
}

impl<T: Real> WithSimd for Cotangent<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let rank = self.rank;
        let zero = Lanes::<T, S>::zero(simd).value;
        let size = rank * WIDE;
        let weighted = self.tiles.blocks.weighting.varies();
        let of_block = MATRICES * size;
        let count = self.own.len().div_ceil(WIDE * T::lanes::<S>() * rank);
        let Memory {
            blocks,
            lines,
            of_columns,
            lengths,
            ..
        } = self.memory;
        let blocks = blocks.get_mut(lengths[0]);
        let blocks = &mut T::vectors_mut::<S>(blocks)[..count * of_block];
        // The lines of a matrix, over all blocks.
        let of_matrix = count * lines_length::<T, S>(rank);
        let lines = &mut lines.get_mut(lengths[1])[..self.of.matrices() * of_matrix];
        self.of.load_blocks::<T, S>(simd, self.own, rank, blocks);
        if of_matrix > 0 {
            self.of.load_lines::<T, S>(self.own, rank, lines);
        }
        let lines = &*lines;
        let mut tile = Tile::new(zero);
        let varies = self.tiles.positive_varies();
        // (Empty if nothing is requested for columns.)
        let of_columns = &mut of_columns[..self.of_columns.len() / (self.columns.len() * rank)];
        let mut from = self.columns.start;
        while from < self.columns.end {
            let to = self.columns.end.min(from + TILE);
            let vectors = (to - from) * WIDE;
            let other = &self.other[from * rank..to * rank];
            let mut given: [&[T]; 2] = [&[]; 2];
            if matches!(self.of, Of::ColumnParts(..)) {
                for (given, all) in given.iter_mut().zip(self.of_columns_given) {
                    *given = &all[from * rank..to * rank];
                }
            }
            of_columns.iter_mut().for_each(ColumnSums::clear);
            for (index, block) in blocks.chunks_exact_mut(of_block).enumerate() {
                let (own, rest) = block.split_at_mut(size);
                let (of_negative, rest) = rest.split_at_mut(size);
                let (of_positive, sums) = rest.split_at_mut(size);
                let (own, of_positive) = (&*own, &*of_positive);
                self.tiles
                    .read::<S>(simd, self.first + index, from, own, other, &mut tile);
                match self.of {
                    Of::Parts(..) | Of::ColumnParts(..) => {
                        // (Products of the rows' cotangents with the columns, or the reverse.)
                        let by_rows = matches!(self.of, Of::Parts(..));
                        let [first, second] = match by_rows {
                            true => [(&*of_negative, other), (of_positive, other)],
                            false => [(own, given[0]), (own, given[1])],
                        };
                        products::<T, S>(simd, first.0, first.1, &mut tile.t[..vectors]);
                        if self.tiles.divergence.positive_varies() {
                            products::<T, S>(simd, second.0, second.1, &mut tile.u[..vectors]);
                        }
                    }
                    Of::Nothing | Of::Errors(_) => {}
                }
                let (what, rows): (_, &mut [T::Vector<S>]) = match self.of {
                    Of::Parts(..) | Of::ColumnParts(..) => (Loop::PartsCotangent, &mut []),
                    Of::Nothing => (Loop::Parts, &mut []),
                    Of::Errors(_) => (Loop::ErrorsCotangent, &mut of_negative[..WIDE]),
                };
                self.tiles
                    .entries::<S>(simd, what, weighted, &mut tile, rows);
                if !self.of_rows.is_empty() && matches!(self.of, Of::Nothing) {
                    // (With gaps, parts are not weighted, but errors are.)
                    let weighted = self.tiles.blocks.weighting != Weighting::None;
                    let sums = &mut sums[..WIDE];
                    self.tiles
                        .entries::<S>(simd, Loop::Errors, weighted, &mut tile, sums);
                }
                let of_negative = &*of_negative;
                let t = &tile.t[..vectors];
                let (negative, positive) = (&tile.negative[..vectors], &tile.positive[..vectors]);
                if !self.of_rows.is_empty() && !matches!(self.of, Of::Nothing) {
                    contract::<T, S>(simd, sums, t, other);
                    if let Of::ColumnParts(..) = self.of {
                        contract::<T, S>(simd, sums, negative, given[0]);
                        if varies {
                            contract::<T, S>(simd, sums, positive, given[1]);
                        }
                    }
                }
                let rows = |which: usize, vectors| Rows::<T, S> {
                    vectors,
                    lines: &lines[which * of_matrix..][..of_matrix],
                };
                let at = BlockAt {
                    index,
                    is_last: index + 1 == count,
                };
                let Some((to, second)) = of_columns.split_first_mut() else {
                    continue;
                };
                match self.of {
                    Of::Errors(_) => to.add(simd, at, [t], [rows(0, own)]),
                    // (The rows, without those of lanes that have none: see `load_blocks`.)
                    Of::ColumnParts(..) => to.add(simd, at, [t], [rows(0, of_negative)]),
                    Of::Nothing => {
                        to.add(simd, at, [negative], [rows(0, of_negative)]);
                        if let [second] = second {
                            second.add(simd, at, [positive], [rows(0, of_negative)]);
                        }
                    }
                    Of::Parts(..) => {
                        let by = [rows(0, own), rows(1, of_negative), rows(2, of_positive)];
                        if varies {
                            to.add(simd, at, [t, negative, positive], by);
                        } else {
                            to.add(simd, at, [t, negative], [by[0], by[1]]);
                        }
                    }
                }
            }
            let all = self.columns.len() * rank;
            let results = self.of_columns.chunks_exact_mut(all);
            for (out, sums) in results.zip(&*of_columns) {
                let place = (from - self.columns.start) * rank;
                sums.store::<S>(simd, &mut out[place..place + (to - from) * rank]);
            }
            from = to;
        }
        let rows_per_block = WIDE * T::lanes::<S>();
        let each = match self.of {
            Of::Nothing => 1,
            _ => rank,
        };
        let out = self.of_rows.chunks_mut(rows_per_block * each);
        for (out, block) in out.zip(blocks.chunks_exact(of_block)) {
            let sums = &block[(MATRICES - 1) * size..];
            store::<T, S>(simd, &sums[..each * WIDE], out);
        }
    }
}

impl Of<'_> {
    /// The matrices of all blocks. The last block may have lanes without a row. Their factor is 1,
    /// so that entries are finite, and their cotangents are 0, so that they add 0 to the sums. If
    /// the rows have no cotangents, their factor takes that place, with 0 in those lanes.
    #[inline(always)]
    fn load_blocks<T: Real, S: Simd>(
        self,
        simd: S,
        factor: &[f64],
        rank: usize,
        blocks: &mut [T::Vector<S>],
    ) {
        let (size, rows_per_block) = (rank * WIDE, WIDE * T::lanes::<S>());
        let zero = Lanes::<T, S>::zero(simd);
        for (index, block) in blocks.chunks_exact_mut(MATRICES * size).enumerate() {
            let (own, rest) = block.split_at_mut(size);
            let (of_negative, rest) = rest.split_at_mut(size);
            let (of_positive, sums) = rest.split_at_mut(size);
            let first = index * rows_per_block;
            let rows = |values: &'_ [f64], each: usize| {
                first * each..values.len().min((first + rows_per_block) * each)
            };
            sums.fill(zero.value);
            let of_factor = rows(factor, rank);
            let is_whole = of_factor.len() == rows_per_block * rank;
            if !is_whole {
                own.fill(zero.constant(1.0).value);
                of_negative.fill(zero.value);
                of_positive.fill(zero.value);
            }
            load::<T, S>(simd, &factor[of_factor.clone()], own);
            match self {
                Self::Parts(negative, positive) => {
                    load::<T, S>(simd, &negative[rows(negative, rank)], of_negative);
                    load::<T, S>(simd, &positive[rows(positive, rank)], of_positive);
                }
                Self::Errors(errors) => {
                    load::<T, S>(simd, &errors[rows(errors, 1)], &mut of_negative[..WIDE]);
                }
                Self::ColumnParts(..) | Self::Nothing if is_whole => {
                    of_negative.copy_from_slice(own);
                }
                Self::ColumnParts(..) | Self::Nothing => {
                    load::<T, S>(simd, &factor[of_factor], of_negative);
                }
            }
        }
    }

    /// The rows that columns are summed by, as lines: matrix by matrix, each block by block. Lines
    /// without a row are 0.
    #[inline(always)]
    fn load_lines<T: Real, S: Simd>(self, factor: &[f64], rank: usize, lines: &mut [T]) {
        let of_block = lines_length::<T, S>(rank);
        let each = WIDE * T::lanes::<S>() * rank;
        let (negative, positive): (&[f64], &[f64]) = match self {
            Self::Parts(negative, positive) => (negative, positive),
            _ => (&[], &[]),
        };
        let of_matrix = lines.len() / self.matrices();
        let matrices = [factor, negative, positive];
        for (lines, rows) in lines.chunks_exact_mut(of_matrix).zip(matrices) {
            let blocks = lines.chunks_exact_mut(of_block).zip(rows.chunks(each));
            for (lines, rows) in blocks {
                load_lines::<T, S>(rows, rank, lines);
            }
        }
    }
}

//! Passes over blocks of rows whose results belong to the rows: parts, their tangents, and errors.

use std::mem::take;
use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::columns::MANY;
use super::dense::add_to_rows;
use super::entries::Loop;
use super::kernel::{TILE, WIDE, contract, load, products, rows_together, store};
use super::tile::{Tile, Tiles};
use crate::engine::{Lanes, MOST_LANES, Real};

/// Matrices of a block: its rows, their directions, and the sums of both results.
const MATRICES: usize = 4;
/// Tiles whose terms are summed together, if there are many components: sums are then read and
/// written less often.
const TILES: usize = 3;

/// The result of a pass, in the rows of `own`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// N and P of a factor.
    Parts,
    /// Their tangents, from the directions of the factor's rows and of the columns.
    PartsTangent,
    /// D of each row.
    Errors,
}

/// One pass over consecutive blocks of rows.
pub(super) struct Pass<'a, T> {
    pub(super) what: What,
    pub(super) tiles: Tiles<'a, T>,
    /// The index of the first block.
    pub(super) first: usize,
    /// The rows of the pass, r numbers each.
    pub(super) own: &'a [f64],
    /// r numbers for each column.
    pub(super) other: &'a [T],
    /// For tangents, the directions of the rows.
    pub(super) own_dot: &'a [f64],
    /// The same for the columns. Empty if they do not move.
    pub(super) other_dot: &'a [T],
    /// Column sums for P, or its tangent, if ∇⁺ is 1 everywhere.
    pub(super) sums: &'a [f64],
    pub(super) rank: usize,
    /// r numbers for each row, or one.
    pub(super) out: &'a mut [f64],
    /// P. Empty if it is not requested.
    pub(super) second: &'a mut [f64],
    /// Working memory of [`memory_length`].
    pub(super) memory: &'a mut [T],
}

/// Numbers in the working memory of a pass over so many columns.
pub(super) fn memory_length(rank: usize, columns: usize) -> usize {
    let terms = 2 * terms_length(rank, MOST_LANES);
    MATRICES * rank * rows_together(rank * columns, WIDE * MOST_LANES) + terms
}

/// Numbers in the terms of one result that are summed together.
fn terms_length(rank: usize, lanes: usize) -> usize {
    match rank {
        ..MANY => 0,
        _ => TILES * TILE * WIDE * lanes,
    }
}

impl<T: Real> WithSimd for Pass<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let (rank, lanes) = (self.rank, WIDE * T::lanes::<S>());
        let columns = self.tiles.blocks.columns;
        let rows = rows_together(rank * columns, lanes);
        let blocks = rows / lanes;
        let of_block = MATRICES * rank * lanes;
        let memory = take(&mut self.memory);
        let of_terms = terms_length(rank, T::lanes::<S>());
        let (terms, memory) = memory.split_at_mut(2 * of_terms);
        let width = match self.what {
            What::Parts if of_terms > 0 => TILES * TILE,
            _ => TILE,
        };
        let mut tile = Tile::new(Lanes::<T, S>::zero(simd).value);
        let (mut out, mut second) = (take(&mut self.out), take(&mut self.second));
        for (panel, own) in self.own.chunks(rows * rank).enumerate() {
            let each = if self.what == What::Errors { 1 } else { rank };
            let results = own.len() / rank * each;
            let (of_panel, rest) = out.split_at_mut(results);
            let (second_of_panel, rest_of_second) = second.split_at_mut(results.min(second.len()));
            (out, second) = (rest, rest_of_second);
            let first_row = panel * rows;
            let own_dot = self.own_dot.get(first_row * rank..).unwrap_or_default();
            for (index, own) in own.chunks(lanes * rank).enumerate() {
                let block = &mut memory[index * of_block..(index + 1) * of_block];
                let (of_own, rest) = block.split_at_mut(rank * lanes);
                let (of_own_dot, sums) = rest.split_at_mut(rank * lanes);
                load::<T, S>(simd, own, T::vectors_mut::<S>(of_own));
                if self.what == What::PartsTangent {
                    let dot = &own_dot[index * lanes * rank..][..own.len()];
                    load::<T, S>(simd, dot, T::vectors_mut::<S>(of_own_dot));
                }
                sums.fill(T::from_f64(0.0));
            }
            let count = own.len().div_ceil(lanes * rank);
            let mut from = 0;
            while from < columns {
                let to = columns.min(from + width);
                for (index, block) in memory.chunks_exact_mut(of_block).enumerate().take(count) {
                    let block = T::vectors_mut::<S>(block);
                    let at = self.first + panel * blocks + index;
                    if width > TILE {
                        self.wide_parts::<S>(simd, at, from..to, block, &mut tile, terms);
                    } else {
                        self.columns::<S>(simd, at, from..to, block, &mut tile);
                    }
                }
                from = to;
            }
            for (index, block) in memory.chunks_exact(of_block).enumerate().take(count) {
                let sums = &T::vectors::<S>(block)[2 * rank * WIDE..];
                let place = index * lanes * each..results.min((index + 1) * lanes * each);
                store::<T, S>(simd, &sums[..each * WIDE], &mut of_panel[place.clone()]);
                if second_of_panel.is_empty() {
                    continue;
                }
                let second = &mut second_of_panel[place];
                store::<T, S>(simd, &sums[rank * WIDE..], second);
                if !self.tiles.positive_varies() {
                    add_to_rows(second, self.sums);
                }
            }
        }
    }
}

impl<T: Real> Pass<'_, T> {
    /// Adds the columns of several tiles to N and P of a block.
    #[inline(always)]
    fn wide_parts<S: Simd>(
        &self,
        simd: S,
        block: usize,
        columns: Range<usize>,
        matrices: &mut [T::Vector<S>],
        tile: &mut Tile<T::Vector<S>>,
        terms: &mut [T],
    ) {
        let rank = self.rank;
        let size = rank * WIDE;
        let (own, rest) = matrices.split_at_mut(size);
        let (first, second) = rest[size..].split_at_mut(size);
        let weighted = self.tiles.blocks.weighting.varies();
        let varies = self.tiles.positive_varies();
        let (negative, positive) = terms.split_at_mut(terms.len() / 2);
        let negative = &mut T::vectors_mut::<S>(negative)[..columns.len() * WIDE];
        let positive = &mut T::vectors_mut::<S>(positive)[..columns.len() * WIDE];
        let of_tiles = negative.chunks_mut(TILE * WIDE);
        let of_tiles = of_tiles.zip(positive.chunks_mut(TILE * WIDE));
        for (index, (negative, positive)) in of_tiles.enumerate() {
            let from = columns.start + index * TILE;
            let vectors = negative.len();
            let other = &self.other[from * rank..(from + vectors / WIDE) * rank];
            self.tiles.read::<S>(simd, block, from, own, other, tile);
            self.tiles
                .entries::<S>(simd, Loop::Parts, weighted, tile, &mut []);
            negative.copy_from_slice(&tile.negative[..vectors]);
            if varies {
                positive.copy_from_slice(&tile.positive[..vectors]);
            }
        }
        let other = &self.other[columns.start * rank..columns.end * rank];
        contract::<T, S>(simd, first, negative, other);
        if varies {
            contract::<T, S>(simd, second, positive, other);
        }
    }

    /// Adds some columns to the sums of a block. Its matrices are the rows, their directions, and
    /// the sums of both results. (Errors are the first sum.)
    #[inline(always)]
    fn columns<S: Simd>(
        &self,
        simd: S,
        block: usize,
        columns: Range<usize>,
        matrices: &mut [T::Vector<S>],
        tile: &mut Tile<T::Vector<S>>,
    ) {
        let rank = self.rank;
        let size = rank * WIDE;
        let (own, rest) = matrices.split_at_mut(size);
        let (own_dot, rest) = rest.split_at_mut(size);
        let (first, second) = rest.split_at_mut(size);
        let weighted = self.tiles.blocks.weighting.varies();
        let varies = self.tiles.positive_varies();
        let vectors = columns.len() * WIDE;
        let place = columns.start * rank..columns.end * rank;
        let other = &self.other[place.clone()];
        self.tiles
            .read::<S>(simd, block, columns.start, own, other, tile);
        match self.what {
            What::Errors => {
                let sums = &mut first[..WIDE];
                self.tiles
                    .entries::<S>(simd, Loop::Errors, weighted, tile, sums);
            }
            What::Parts => {
                self.tiles
                    .entries::<S>(simd, Loop::Parts, weighted, tile, &mut []);
                contract::<T, S>(simd, first, &tile.negative[..vectors], other);
                if varies {
                    contract::<T, S>(simd, second, &tile.positive[..vectors], other);
                }
            }
            What::PartsTangent => {
                products::<T, S>(simd, own_dot, other, &mut tile.t[..vectors]);
                // (Empty if the columns do not move.)
                let moves = self.other_dot.get(place).unwrap_or_default();
                if !moves.is_empty() {
                    products::<T, S>(simd, own, moves, &mut tile.u[..vectors]);
                }
                let columns_move = !moves.is_empty();
                let what = Loop::PartsTangent { columns_move };
                self.tiles.entries::<S>(simd, what, weighted, tile, &mut []);
                contract::<T, S>(simd, first, &tile.t[..vectors], other);
                if self.tiles.divergence.positive_varies() {
                    contract::<T, S>(simd, second, &tile.u[..vectors], other);
                }
                if !moves.is_empty() {
                    contract::<T, S>(simd, first, &tile.negative[..vectors], moves);
                    if varies {
                        contract::<T, S>(simd, second, &tile.positive[..vectors], moves);
                    }
                }
            }
        }
    }
}

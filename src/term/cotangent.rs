//! Passes with sums for columns: the cotangents of both factors, from those of parts or of errors,
//! and the parts of the columns' factor.
//!
//! WH, the products with cotangents, and the entries are computed once for rows and columns. A
//! row's sums run over the columns, as in other passes. A column's sums run over the rows: each lane
//! sums its own rows, and the lanes are added when all rows of the pass are done.

use std::ops::Range;

use pulp::bytemuck::{cast_slice, cast_slice_mut};
use pulp::{Simd, WithSimd};

use super::kernel::{TILE, WIDE, contract, has_many_registers, load, products, store};
use super::tile::{Tile, Tiles, Weighting};
use crate::engine::{Entry, Lanes, Real};

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
pub(super) struct Cotangent<'a, T, D> {
    pub(super) of: Of<'a>,
    /// The cotangents of [`Of::ColumnParts`], in the type of the pass.
    pub(super) of_columns_given: [&'a [T]; 2],
    pub(super) tiles: Tiles<'a, T, D>,
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
    /// [`Of::Nothing`], N of all columns, and then P of all columns if ∇⁺ is not 1 everywhere.
    pub(super) of_columns: &'a mut [f64],
}

/// Matrices of a block: its rows, the cotangents of N and P (or of errors), and the sums.
const MATRICES: usize = 4;

impl<T: Real, D: Entry> WithSimd for Cotangent<'_, T, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let rank = self.rank;
        let zero = Lanes::<T, S>::zero(simd).value;
        let size = rank * WIDE;
        let weighted = self.tiles.blocks.weighting.varies();
        let mut blocks = self.load_blocks::<S>(simd);
        let mut tile = Tile::new(zero);
        let varies = self.tiles.positive_varies();
        let mut of_columns = vec![zero; 2 * TILE * rank];
        let mut from = self.columns.start;
        while from < self.columns.end {
            let to = self.columns.end.min(from + TILE);
            let (width, vectors) = (to - from, (to - from) * WIDE);
            let other = &self.other[from * rank..to * rank];
            let mut given: [&[T]; 2] = [&[]; 2];
            if matches!(self.of, Of::ColumnParts(..)) {
                for (given, all) in given.iter_mut().zip(self.of_columns_given) {
                    *given = &all[from * rank..to * rank];
                }
            }
            of_columns.fill(zero);
            for (index, block) in blocks.chunks_exact_mut(MATRICES * size).enumerate() {
                let (own, rest) = block.split_at_mut(size);
                let (of_negative, rest) = rest.split_at_mut(size);
                let (of_positive, sums) = rest.split_at_mut(size);
                let (own, of_negative, of_positive) = (&*own, &*of_negative, &*of_positive);
                self.tiles
                    .read::<S>(simd, self.first + index, from, width, &mut tile);
                products::<T, S>(simd, own, other, &mut tile.y[..vectors]);
                match self.of {
                    Of::Parts(..) | Of::ColumnParts(..) => {
                        // (Products of the rows' cotangents with the columns, or the reverse.)
                        let by_rows = matches!(self.of, Of::Parts(..));
                        let [first, second] = match by_rows {
                            true => [(of_negative, other), (of_positive, other)],
                            false => [(own, given[0]), (own, given[1])],
                        };
                        products::<T, S>(simd, first.0, first.1, &mut tile.t[..vectors]);
                        if D::POSITIVE_VARIES {
                            products::<T, S>(simd, second.0, second.1, &mut tile.u[..vectors]);
                        }
                        if weighted {
                            self.parts::<S, true>(simd, &mut tile);
                        } else {
                            self.parts::<S, false>(simd, &mut tile);
                        }
                    }
                    Of::Nothing if weighted => self.tiles.parts::<S, true>(simd, &mut tile),
                    Of::Nothing => self.tiles.parts::<S, false>(simd, &mut tile),
                    Of::Errors(_) if weighted => {
                        self.errors::<S, true>(simd, of_negative, &mut tile);
                    }
                    Of::Errors(_) => self.errors::<S, false>(simd, of_negative, &mut tile),
                }
                if !self.of_rows.is_empty() && matches!(self.of, Of::Nothing) {
                    self.errors_of_rows::<S>(simd, vectors, &tile, sums);
                }
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
                if self.of_columns.is_empty() {
                    continue;
                }
                let (to, second) = of_columns.split_at_mut(TILE * rank);
                let (to, second) = (&mut to[..width * rank], &mut second[..width * rank]);
                match self.of {
                    Of::Errors(_) => spread::<T, S, 1>(simd, to, [t], [own]),
                    // (The rows, without those of lanes that have none: see `load_blocks`.)
                    Of::ColumnParts(..) => spread::<T, S, 1>(simd, to, [t], [of_negative]),
                    Of::Nothing => {
                        spread::<T, S, 1>(simd, to, [negative], [of_negative]);
                        if varies {
                            spread::<T, S, 1>(simd, second, [positive], [of_negative]);
                        }
                    }
                    Of::Parts(..) if varies => {
                        let by = [own, of_negative, of_positive];
                        spread::<T, S, 3>(simd, to, [t, negative, positive], by);
                    }
                    Of::Parts(..) => {
                        spread::<T, S, 2>(simd, to, [t, negative], [own, of_negative]);
                    }
                }
            }
            let all = self.columns.len() * rank;
            let results = self.of_columns.chunks_exact_mut(all);
            for (out, lanes) in results.zip(of_columns.chunks_exact(TILE * rank)) {
                let place = (from - self.columns.start) * rank;
                let out = &mut out[place..place + width * rank];
                let lanes: &[T] = cast_slice(&lanes[..width * rank]);
                for (out, lanes) in out.iter_mut().zip(lanes.chunks_exact(T::lanes::<S>())) {
                    *out += lanes.iter().map(|lane| lane.to_f64()).sum::<f64>();
                }
            }
            from = to;
        }
        let rows_per_block = WIDE * T::lanes::<S>();
        let each = match self.of {
            Of::Nothing => 1,
            _ => rank,
        };
        let out = self.of_rows.chunks_mut(rows_per_block * each);
        for (out, block) in out.zip(blocks.chunks_exact(MATRICES * size)) {
            let sums = &block[(MATRICES - 1) * size..];
            store::<T, S>(&sums[..each * WIDE], out);
        }
    }
}

impl<T: Real, D: Entry> Cotangent<'_, T, D> {
    /// The matrices of all blocks. The last block may have lanes without a row. Their factor is 1,
    /// so that entries are finite, and their cotangents are 0, so that they add 0 to the sums. If
    /// the rows have no cotangents, their factor takes that place, with 0 in those lanes.
    #[inline(always)]
    fn load_blocks<S: Simd>(&self, simd: S) -> Vec<T::Vector<S>> {
        let (rank, size) = (self.rank, self.rank * WIDE);
        let rows_per_block = WIDE * T::lanes::<S>();
        let count = self.own.len().div_ceil(rows_per_block * rank);
        let zero = Lanes::<T, S>::zero(simd);
        let mut blocks = vec![zero.value; count * MATRICES * size];
        for (index, block) in blocks.chunks_exact_mut(MATRICES * size).enumerate() {
            let (own, rest) = block.split_at_mut(size);
            let (of_negative, of_positive) = rest.split_at_mut(size);
            let rows = |values: &'_ [f64], each: usize| {
                let first = index * rows_per_block * each;
                first..values.len().min(first + rows_per_block * each)
            };
            own.fill(zero.constant(1.0).value);
            load::<T, S>(&self.own[rows(self.own, rank)], own);
            match self.of {
                Of::Parts(negative, positive) => {
                    load::<T, S>(&negative[rows(negative, rank)], of_negative);
                    load::<T, S>(&positive[rows(positive, rank)], &mut of_positive[..size]);
                }
                Of::Errors(errors) => {
                    load::<T, S>(&errors[rows(errors, 1)], &mut of_negative[..WIDE]);
                }
                Of::ColumnParts(..) | Of::Nothing => {
                    load::<T, S>(&self.own[rows(self.own, rank)], of_negative);
                }
            }
        }
        blocks
    }

    /// The derivative of the parts in y, from the products with their cotangents; and ∇⁻ and ∇⁺.
    #[inline(always)]
    fn parts<S: Simd, const WEIGHTED: bool>(&self, simd: S, tile: &mut Tile<T::Vector<S>>) {
        let tiles = &self.tiles;
        for group in tile.groups() {
            for j in group {
                let at = tiles.at::<S>(simd, tile, j);
                let t = at.still(Lanes::new(simd, tile.t[j]));
                let parts = tiles.divergence.parts(at.x, at.y, at.inverse, t);
                let mut slope = parts.negative_dot;
                if D::POSITIVE_VARIES {
                    let u = at.still(Lanes::new(simd, tile.u[j]));
                    let moved = tiles.divergence.parts(at.x, at.y, at.inverse, u);
                    slope = slope + moved.positive_dot;
                }
                let weighted = |value| tiles.weighted::<S, WEIGHTED>(simd, tile, j, value).value;
                let (slope, negative) = (weighted(slope), weighted(parts.negative));
                let positive = weighted(parts.positive);
                (tile.t[j], tile.negative[j]) = (slope, negative);
                if D::POSITIVE_VARIES || WEIGHTED {
                    tile.positive[j] = positive;
                }
            }
        }
    }

    /// Adds D of a tile's entries to the first sums of its block.
    #[inline(always)]
    fn errors_of_rows<S: Simd>(
        &self,
        simd: S,
        vectors: usize,
        tile: &Tile<T::Vector<S>>,
        sums: &mut [T::Vector<S>],
    ) {
        let mut errors = [Lanes::<T, S>::zero(simd); WIDE];
        for (error, sum) in errors.iter_mut().zip(&*sums) {
            *error = Lanes::new(simd, *sum);
        }
        // (With gaps, parts are not weighted, but errors are.)
        if self.tiles.blocks.weighting == Weighting::None {
            self.tiles
                .errors::<S, false>(simd, vectors, tile, &mut errors);
        } else {
            self.tiles
                .errors::<S, true>(simd, vectors, tile, &mut errors);
        }
        for (sum, error) in sums.iter_mut().zip(errors) {
            *sum = error.value;
        }
    }

    /// The derivative of the errors in y, times their cotangents.
    #[inline(always)]
    fn errors<S: Simd, const WEIGHTED: bool>(
        &self,
        simd: S,
        bars: &[T::Vector<S>],
        tile: &mut Tile<T::Vector<S>>,
    ) {
        let (tiles, zero) = (&self.tiles, Lanes::<T, S>::zero(simd));
        for group in tile.groups() {
            for j in group {
                let at = tiles.at::<S>(simd, tile, j);
                let parts = tiles.divergence.parts(at.x, at.y, at.inverse, zero);
                let bar = Lanes::new(simd, bars[j % WIDE]);
                let slope = at.still((parts.positive - parts.negative) * bar);
                let slope = tiles.weighted::<S, WEIGHTED>(simd, tile, j, slope);
                tile.t[j] = slope.value;
            }
        }
    }
}

/// `sums_jk += Σ_p terms_pj ⊙ by_pk` for the columns of a tile, lane by lane.
#[inline(always)]
fn spread<T: Real, S: Simd, const P: usize>(
    simd: S,
    sums: &mut [T::Vector<S>],
    terms: [&[T::Vector<S>]; P],
    by: [&[T::Vector<S>]; P],
) {
    simd.vectorize(Spread::<T, P> {
        sums: cast_slice_mut(sums),
        terms: terms.map(cast_slice),
        by: by.map(cast_slice),
    });
}

/// A separate function, so that it is compiled once and not into every pass.
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

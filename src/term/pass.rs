//! Passes over blocks of rows whose results belong to the rows: parts, their tangents, and errors.

use pulp::{Simd, WithSimd};

use super::kernel::{TILE, WIDE, contract, load, products, store};
use super::tile::{Tile, Tiles};
use crate::engine::{Entry, Lanes, Real};

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
pub(super) struct Pass<'a, T, D> {
    pub(super) what: What,
    pub(super) tiles: Tiles<'a, T, D>,
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
    /// P, if it is requested.
    pub(super) second: &'a mut [f64],
}

impl<T: Real, D: Entry> WithSimd for Pass<'_, T, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let pass = self;
        let what = pass.what;
        let (rank, lanes) = (pass.rank, WIDE * T::lanes::<S>());
        let vectors = rank * WIDE;
        let zero = Lanes::<T, S>::zero(simd).value;
        // Allocated once for all blocks.
        let mut memory = vec![zero; 4 * vectors];
        let (own, rest) = memory.split_at_mut(vectors);
        let (own_dot, rest) = rest.split_at_mut(vectors);
        let (first, second) = rest.split_at_mut(vectors);
        let mut tile = Tile::new(zero);
        let (weighted, varies) = (
            pass.tiles.blocks.weighting.varies(),
            pass.tiles.positive_varies(),
        );
        let columns_move = !pass.other_dot.is_empty();
        let columns = pass.tiles.blocks.columns;
        let mut at = 0;
        for (block, rows) in pass.own.chunks(lanes * rank).enumerate() {
            let count = rows.len() / rank;
            let place = at * rank..at * rank + rows.len();
            load::<T, S>(rows, own);
            if what == What::PartsTangent {
                load::<T, S>(&pass.own_dot[place.clone()], own_dot);
            }
            first.fill(zero);
            second.fill(zero);
            let mut error = [Lanes::<T, S>::zero(simd); WIDE];
            let mut from = 0;
            while from < columns {
                let to = columns.min(from + TILE);
                let width = to - from;
                let other = &pass.other[from * rank..to * rank];
                pass.tiles
                    .read::<S>(simd, pass.first + block, from, width, &mut tile);
                products::<T, S>(simd, own, other, &mut tile.y[..width * WIDE]);
                match what {
                    What::Errors if weighted => {
                        pass.tiles
                            .errors::<S, true>(simd, width * WIDE, &tile, &mut error);
                    }
                    What::Errors => {
                        pass.tiles
                            .errors::<S, false>(simd, width * WIDE, &tile, &mut error);
                    }
                    What::Parts => {
                        if weighted {
                            pass.tiles.parts::<S, true>(simd, &mut tile);
                        } else {
                            pass.tiles.parts::<S, false>(simd, &mut tile);
                        }
                        contract::<T, S>(simd, first, &tile.negative[..width * WIDE], other);
                        if varies {
                            contract::<T, S>(simd, second, &tile.positive[..width * WIDE], other);
                        }
                    }
                    What::PartsTangent => {
                        products::<T, S>(simd, own_dot, other, &mut tile.t[..width * WIDE]);
                        let mut moves: &[T] = &[];
                        if columns_move {
                            moves = &pass.other_dot[from * rank..to * rank];
                            products::<T, S>(simd, own, moves, &mut tile.u[..width * WIDE]);
                        }
                        if weighted {
                            pass.tangents::<S, true>(simd, &mut tile);
                        } else {
                            pass.tangents::<S, false>(simd, &mut tile);
                        }
                        contract::<T, S>(simd, first, &tile.t[..width * WIDE], other);
                        if D::POSITIVE_VARIES {
                            contract::<T, S>(simd, second, &tile.u[..width * WIDE], other);
                        }
                        if columns_move {
                            let (negative, positive) = (&tile.negative, &tile.positive);
                            contract::<T, S>(simd, first, &negative[..width * WIDE], moves);
                            if varies {
                                contract::<T, S>(simd, second, &positive[..width * WIDE], moves);
                            }
                        }
                    }
                }
                from = to;
            }
            if what == What::Errors {
                let error = error.map(|error| error.value);
                store::<T, S>(&error, &mut pass.out[at..at + count]);
            } else {
                if !varies {
                    for (slots, sum) in second.chunks_exact_mut(WIDE).zip(pass.sums) {
                        let sum = Lanes::<T, S>::splat(simd, T::from_f64(*sum));
                        for slot in slots {
                            *slot = (Lanes::new(simd, *slot) + sum).value;
                        }
                    }
                }
                store::<T, S>(first, &mut pass.out[place.clone()]);
                store::<T, S>(second, &mut pass.second[place]);
            }
            at += count;
        }
    }
}

impl<T: Real, D: Entry> Pass<'_, T, D> {
    /// ∇⁻ and ∇⁺ of a tile's entries, with their tangents.
    #[inline(always)]
    fn tangents<S: Simd, const WEIGHTED: bool>(&self, simd: S, tile: &mut Tile<T::Vector<S>>) {
        let tiles = &self.tiles;
        for group in tile.groups() {
            for j in group {
                let at = tiles.at::<S>(simd, tile, j);
                let mut y_dot = Lanes::new(simd, tile.t[j]);
                if !self.other_dot.is_empty() {
                    y_dot = y_dot + Lanes::new(simd, tile.u[j]);
                }
                let y_dot = at.still(y_dot);
                let parts = tiles.divergence.parts(at.x, at.y, at.inverse, y_dot);
                let weighted = |value| tiles.weighted::<S, WEIGHTED>(simd, tile, j, value).value;
                let (negative_dot, positive_dot) =
                    (weighted(parts.negative_dot), weighted(parts.positive_dot));
                let (negative, positive) = (weighted(parts.negative), weighted(parts.positive));
                (tile.t[j], tile.u[j]) = (negative_dot, positive_dot);
                (tile.negative[j], tile.positive[j]) = (negative, positive);
            }
        }
    }
}

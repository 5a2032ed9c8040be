//! Tiles: some columns of a block of rows, whose entries are computed together.

use std::ops::Range;

use pulp::Simd;
use pulp::bytemuck::cast_slice_mut;

use super::kernel::{TILE, WIDE, has_many_registers, products};
use crate::engine::{Entry, Lanes, Real};

/// Vectors in a tile.
pub(super) const VECTORS: usize = TILE * WIDE;

/// Columns that are read together, for 16 registers and for 32: whole groups of those whose products
/// are computed together.
const READ: [usize; 2] = [12, 8];

/// Vectors whose entries are computed together. (Loops of constant length are much faster.)
const GROUP: usize = 8;

/// Vectors whose logarithms are computed together.
const SIDE: usize = 4;

/// The weights of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weighting {
    /// All weights are equal.
    None,
    /// All weights are equal, and an x that is stored as a negative number is 0.
    Zeroed,
    /// 0 if x is stored as a negative number, otherwise 1.
    Sign,
    /// An array of weights.
    Array,
}

impl Weighting {
    /// Returns true if weights differ.
    #[inline(always)]
    pub(super) fn varies(self) -> bool {
        matches!(self, Self::Sign | Self::Array)
    }
}

/// Numbers in memory.
#[derive(Debug, Clone, Copy)]
pub(super) enum Numbers<'a, T> {
    /// In the type of the computation.
    Whole(&'a [T]),
    /// In 32 bits, which hold the numbers divided by their unit exactly.
    Half(&'a [f32], T),
}

impl<'a, T: Real> Numbers<'a, T> {
    /// Copies numbers, from the given index on.
    #[inline(always)]
    pub(super) fn copy(self, from: usize, into: &mut [T]) {
        match self {
            Self::Whole(values) => into.copy_from_slice(&values[from..from + into.len()]),
            Self::Half(values, unit) => {
                let (values, unit) = (&values[from..from + into.len()], unit.to_f64());
                for (into, value) in into.iter_mut().zip(values) {
                    *into = T::from_f64(f64::from(*value) * unit);
                }
            }
        }
    }
}

impl Numbers<'_, f64> {
    /// One number.
    pub(super) fn at(self, index: usize) -> f64 {
        match self {
            Self::Whole(values) => values[index],
            Self::Half(values, unit) => f64::from(values[index]) * unit,
        }
    }
}

/// All blocks of rows of one side's data, one after another, each column by column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocks<'a, T> {
    pub(super) x: Numbers<'a, T>,
    /// Weights, laid out like x. Empty without an array of weights.
    pub(super) weights: &'a [T],
    pub(super) weighting: Weighting,
    pub(super) columns: usize,
}

/// Vectors of a tile. (Aligned, because vectors across two cache lines cost twice as much.)
#[repr(C, align(64))]
pub(super) struct Tile<V> {
    x: [V; VECTORS],
    /// Weights.
    m: [V; VECTORS],
    pub(super) y: [V; VECTORS],
    /// Products with tangents or cotangents, then the terms of the sums.
    pub(super) t: [V; VECTORS],
    pub(super) u: [V; VECTORS],
    /// ∇⁻ and ∇⁺, weighted.
    pub(super) negative: [V; VECTORS],
    pub(super) positive: [V; VECTORS],
    /// Vectors that were read.
    count: usize,
}

impl<V: Copy> Tile<V> {
    #[inline(always)]
    pub(super) fn new(zero: V) -> Self {
        Self {
            count: 0,
            x: [zero; VECTORS],
            m: [zero; VECTORS],
            y: [zero; VECTORS],
            t: [zero; VECTORS],
            u: [zero; VECTORS],
            negative: [zero; VECTORS],
            positive: [zero; VECTORS],
        }
    }

    /// The vectors that were read, in groups of constant length. The last group may have others
    /// too, which are computed but not summed.
    #[inline(always)]
    pub(super) fn groups(&self) -> impl Iterator<Item = Range<usize>> + use<V> {
        (0..self.count.div_ceil(GROUP)).map(|group| {
            // (So the compiler can remove bounds checks.)
            let from = (group * GROUP).min(VECTORS - GROUP);
            from..from + GROUP
        })
    }
}

/// A vector of entries.
pub(super) struct At<T: Real, S: Simd> {
    /// WH, without the floor and the shift.
    raw: Lanes<T, S>,
    floor: Lanes<T, S>,
    pub(super) x: Lanes<T, S>,
    pub(super) y: Lanes<T, S>,
    /// 1/y.
    pub(super) inverse: Lanes<T, S>,
}

impl<T: Real, S: Simd> At<T, S> {
    /// A derivative in y. It is zero at the floor.
    #[inline(always)]
    pub(super) fn still(&self, value: Lanes<T, S>) -> Lanes<T, S> {
        self.raw
            .where_less(self.floor, self.floor.constant(0.0), value)
    }
}

/// The data of a pass, and the divergence of their entries.
#[derive(Clone, Copy)]
pub(super) struct Tiles<'a, T, D> {
    pub(super) divergence: D,
    pub(super) blocks: Blocks<'a, T>,
    /// The smallest y.
    pub(super) floor: T,
    /// The number that is added to x and y.
    pub(super) shift: T,
}

impl<T: Real, D: Entry> Tiles<'_, T, D> {
    /// Returns true if ∇⁺, weighted, is not 1 everywhere.
    #[inline(always)]
    pub(super) fn positive_varies(&self) -> bool {
        D::POSITIVE_VARIES || self.blocks.weighting.varies()
    }

    /// Reads x and weights of some columns of a block, and computes WH there from the rows `own` and
    /// the columns' numbers `other`.
    ///
    /// A few columns are read at a time: while their products are computed, the memory delivers the
    /// next ones.
    #[inline(always)]
    pub(super) fn read<S: Simd>(
        &self,
        simd: S,
        block: usize,
        from: usize,
        own: &[T::Vector<S>],
        other: &[T],
        tile: &mut Tile<T::Vector<S>>,
    ) {
        let Blocks {
            x,
            weights,
            weighting,
            columns,
        } = self.blocks;
        let (rank, stride) = (own.len() / WIDE, WIDE * T::lanes::<S>());
        let start = (block * columns + from) * stride;
        tile.count = 0;
        let together = READ[usize::from(has_many_registers::<T, S>())];
        for other in other.chunks(together * rank) {
            let vectors = tile.count..tile.count + other.len() / rank * WIDE;
            let place = vectors.start * stride / WIDE..vectors.end * stride / WIDE;
            let first = start + place.start;
            x.copy(first, &mut cast_slice_mut(&mut tile.x)[place.clone()]);
            if weighting == Weighting::Array {
                let weights = &weights[first..first + place.len()];
                cast_slice_mut(&mut tile.m)[place].copy_from_slice(weights);
            }
            tile.count = vectors.end;
            products::<T, S>(simd, own, other, &mut tile.y[vectors]);
        }
        if matches!(weighting, Weighting::Zeroed | Weighting::Sign) {
            let zero = Lanes::<T, S>::zero(simd);
            let one = zero.constant(1.0);
            for group in tile.groups() {
                for j in group {
                    let x = Lanes::<T, S>::new(simd, tile.x[j]);
                    tile.m[j] = x.where_less(zero, zero, one).value;
                    tile.x[j] = x.max(zero).value;
                }
            }
        }
    }

    /// A vector of entries of a tile.
    #[inline(always)]
    pub(super) fn at<S: Simd>(&self, simd: S, tile: &Tile<T::Vector<S>>, j: usize) -> At<T, S> {
        let floor = Lanes::<T, S>::splat(simd, self.floor);
        let shift = Lanes::<T, S>::splat(simd, self.shift);
        let raw = Lanes::<T, S>::new(simd, tile.y[j]);
        let y = raw.max(floor) + shift;
        At {
            raw,
            floor,
            x: Lanes::new(simd, tile.x[j]) + shift,
            y,
            inverse: y.inverse(),
        }
    }

    /// A value times the weight of an entry. It is exactly 0 for weight 0, even if the value is not
    /// finite. (Whether weights differ is a constant, so that loops have no branches.)
    #[inline(always)]
    pub(super) fn weighted<S: Simd, const WEIGHTED: bool>(
        &self,
        simd: S,
        tile: &Tile<T::Vector<S>>,
        j: usize,
        value: Lanes<T, S>,
    ) -> Lanes<T, S> {
        if !WEIGHTED {
            return value;
        }
        let weight = Lanes::<T, S>::new(simd, tile.m[j]);
        let tiny = weight.constant(T::PRECISION.floor());
        weight.where_less(tiny, weight.constant(0.0), value * weight)
    }

    /// ∇⁻ and ∇⁺ of a tile's entries.
    #[inline(always)]
    pub(super) fn parts<S: Simd, const WEIGHTED: bool>(
        &self,
        simd: S,
        tile: &mut Tile<T::Vector<S>>,
    ) {
        let zero = Lanes::<T, S>::zero(simd);
        for group in tile.groups() {
            for j in group {
                let at = self.at::<S>(simd, tile, j);
                let parts = self.divergence.parts(at.x, at.y, at.inverse, zero);
                let weighted = |value| self.weighted::<S, WEIGHTED>(simd, tile, j, value).value;
                let (negative, positive) = (weighted(parts.negative), weighted(parts.positive));
                tile.negative[j] = negative;
                if D::POSITIVE_VARIES || WEIGHTED {
                    tile.positive[j] = positive;
                }
            }
        }
    }

    /// Adds D of a tile's entries to a sum for each vector of rows.
    #[inline(always)]
    pub(super) fn errors<S: Simd, const WEIGHTED: bool>(
        &self,
        simd: S,
        count: usize,
        tile: &Tile<T::Vector<S>>,
        sums: &mut [Lanes<T, S>; WIDE],
    ) {
        let mut from = 0;
        while from + SIDE <= count {
            self.errors_of::<S, WEIGHTED, SIDE>(simd, from, tile, sums);
            from += SIDE;
        }
        while from < count {
            self.errors_of::<S, WEIGHTED, WIDE>(simd, from, tile, sums);
            from += WIDE;
        }
    }

    #[inline(always)]
    fn errors_of<S: Simd, const WEIGHTED: bool, const J: usize>(
        &self,
        simd: S,
        from: usize,
        tile: &Tile<T::Vector<S>>,
        sums: &mut [Lanes<T, S>; WIDE],
    ) {
        let zero = Lanes::<T, S>::zero(simd);
        let (mut x, mut y, mut inverse) = ([zero; J], [zero; J], [zero; J]);
        for j in 0..J {
            let at = self.at::<S>(simd, tile, from + j);
            (x[j], y[j], inverse[j]) = (at.x, at.y, at.inverse);
        }
        let values = self.divergence.values(x, y, inverse);
        for (j, value) in values.into_iter().enumerate() {
            let value = self.weighted::<S, WEIGHTED>(simd, tile, from + j, value);
            sums[j % WIDE] = sums[j % WIDE] + value;
        }
    }
}

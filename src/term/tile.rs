//! Tiles: some columns of a block of rows, whose entries are computed together.

use pulp::Simd;
use pulp::bytemuck::cast_slice_mut;

use super::kernel::{TILE, WIDE, has_many_registers, products};
use crate::engine::{AnyEntry, Lanes, Real};

/// Vectors in a tile.
pub(super) const VECTORS: usize = TILE * WIDE;

/// Columns that are read together, for 16 registers (whole groups of those whose products are computed
/// together) and for 32 (a whole tile).
const READ: [usize; 2] = [12, 32];

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

/// Copies vectors in the order of memory. With `signs`, a negative number is copied as 0, and its sign
/// is 0; those of others are 1. (The system's function for copies begins with the last vectors, so
/// that the processor does not see that more will follow.)
#[inline(always)]
fn nonnegative<T: Real, S: Simd>(
    simd: S,
    values: &[T::Vector<S>],
    into: &mut [T::Vector<S>],
    signs: Option<&mut [T::Vector<S>]>,
) {
    let zero = Lanes::<T, S>::zero(simd);
    let one = zero.constant(1.0);
    match signs {
        None => {
            for (slot, value) in into.iter_mut().zip(values) {
                *slot = Lanes::<T, S>::new(simd, *value).max(zero).value;
            }
        }
        Some(signs) => {
            for ((slot, sign), value) in into.iter_mut().zip(signs).zip(values) {
                let value = Lanes::<T, S>::new(simd, *value);
                *sign = value.where_less(zero, zero, one).value;
                *slot = value.max(zero).value;
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
    pub(super) x: [V; VECTORS],
    /// Weights.
    pub(super) m: [V; VECTORS],
    pub(super) y: [V; VECTORS],
    /// Products with tangents or cotangents, then the terms of the sums.
    pub(super) t: [V; VECTORS],
    pub(super) u: [V; VECTORS],
    /// ∇⁻ and ∇⁺, weighted.
    pub(super) negative: [V; VECTORS],
    pub(super) positive: [V; VECTORS],
    /// Vectors that were read.
    pub(super) count: usize,
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
}

/// The data of a pass, and the divergence of their entries.
#[derive(Clone, Copy)]
pub(super) struct Tiles<'a, T> {
    pub(super) divergence: AnyEntry<'a>,
    pub(super) blocks: Blocks<'a, T>,
    /// The smallest y.
    pub(super) floor: T,
    /// The number that is added to x and y.
    pub(super) shift: T,
}

impl<T: Real> Tiles<'_, T> {
    /// Returns true if ∇⁺, weighted, is not 1 everywhere.
    #[inline(always)]
    pub(super) fn positive_varies(&self) -> bool {
        self.divergence.positive_varies() || self.blocks.weighting.varies()
    }

    /// Reads x and weights of some columns of a block, and computes WH there from the rows `own` and
    /// the columns' numbers `other`.
    ///
    /// With few registers, some columns are read at a time: while their products are computed, the
    /// memory delivers the next ones.
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
        let is_signed = matches!(weighting, Weighting::Zeroed | Weighting::Sign);
        tile.count = 0;
        let together = READ[usize::from(has_many_registers::<T, S>())];
        for other in other.chunks(together * rank) {
            let vectors = tile.count..tile.count + other.len() / rank * WIDE;
            let place = vectors.start * stride / WIDE..vectors.end * stride / WIDE;
            let first = start + place.start;
            let slots = &mut tile.x[vectors.clone()];
            let signs = is_signed.then(|| &mut tile.m[vectors.clone()]);
            match x {
                Numbers::Whole(values) => {
                    let values = T::vectors::<S>(&values[first..first + place.len()]);
                    nonnegative::<T, S>(simd, values, slots, signs);
                }
                Numbers::Half(..) => {
                    let values = &mut tile.t[vectors.clone()];
                    x.copy(first, cast_slice_mut(values));
                    nonnegative::<T, S>(simd, values, slots, signs);
                }
            }
            if weighting == Weighting::Array {
                let weights = &weights[first..first + place.len()];
                cast_slice_mut(&mut tile.m)[place].copy_from_slice(weights);
            }
            tile.count = vectors.end;
            products::<T, S>(simd, own, other, &mut tile.y[vectors]);
        }
    }
}

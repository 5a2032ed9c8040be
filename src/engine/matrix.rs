//! X in blocks of rows: column by column, with the entries of a column in one vector.
//!
//! Updates of W pass over the same rows T + 1 times in every iteration, so their blocks are packed
//! once for the whole run. Updates of H pass over X once. The entries of a row of X are contiguous
//! in memory, and are copied when needed.

use std::ops::Range;

use ndarray::Array2;
use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::lanes::Real;
use super::scratch::{Aligned, panel_length};

/// The storage of a matrix that is read in blocks of rows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Storage<'a, T> {
    /// Packed in advance.
    Packed(&'a [T]),
    /// The transpose of a host matrix.
    Transposed(&'a Array2<f64>),
}

/// All blocks of rows of a matrix, packed.
#[derive(Debug)]
pub(super) struct Packed<T> {
    values: Aligned<T>,
    length: usize,
}

impl<T: Real> Packed<T> {
    pub(super) fn new(matrix: &Array2<f64>) -> Self {
        let lanes = lanes_here::<T>();
        let (rows, columns) = matrix.dim();
        let length = rows.next_multiple_of(lanes) * columns;
        let mut values = Aligned::new(length);
        let blocks = values.get_mut(length).par_chunks_mut(columns * lanes);
        blocks.enumerate().for_each(|(block, packed)| {
            for lane in 0..lanes.min(rows - block * lanes) {
                let row = matrix.row(block * lanes + lane);
                for (slots, value) in packed.chunks_exact_mut(lanes).zip(row) {
                    slots[lane] = T::from_f64(*value);
                }
            }
        });
        Self { values, length }
    }

    pub(super) fn source(&self) -> Storage<'_, T> {
        Storage::Packed(self.values.get(self.length))
    }
}

/// Rows that a vector of this machine holds.
pub(crate) fn lanes_here<T: Real>() -> usize {
    Arch::new().dispatch(CountLanes::<T>(std::marker::PhantomData))
}

struct CountLanes<T>(std::marker::PhantomData<T>);

impl<T: Real> WithSimd for CountLanes<T> {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) -> usize {
        T::lanes::<S>()
    }
}

/// Packs some columns of a group of blocks of the transpose of a matrix, a panel for each block.
/// Lanes without a row keep their old numbers, which are not used.
pub(super) struct PackTransposed<'a, T> {
    pub(super) matrix: &'a Array2<f64>,
    /// The group's rows: columns of the matrix.
    pub(super) rows: Range<usize>,
    /// The group's columns: rows of the matrix.
    pub(super) columns: Range<usize>,
    pub(super) packed: &'a mut [T],
}

impl<T: Real> WithSimd for PackTransposed<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let values = self.matrix.as_slice();
        let values = values.expect("a problem's matrices are in row order");
        let (lanes, stride) = (T::lanes::<S>(), self.matrix.ncols());
        let panel = panel_length::<T>();
        for (index, column) in self.columns.enumerate() {
            let row = &values[column * stride..][self.rows.clone()];
            // Whole blocks are handled separately, because a copy of constant length is one
            // instruction.
            let whole = row.chunks_exact(lanes);
            let rest = whole.remainder();
            let mut panels = self.packed.chunks_exact_mut(panel);
            for (entries, panel) in whole.zip(&mut panels) {
                let slots = &mut panel[index * lanes..(index + 1) * lanes];
                for (slot, entry) in slots.iter_mut().zip(entries) {
                    *slot = T::from_f64(*entry);
                }
            }
            if !rest.is_empty()
                && let Some(panel) = panels.next()
            {
                for (slot, entry) in panel[index * lanes..].iter_mut().zip(rest) {
                    *slot = T::from_f64(*entry);
                }
            }
        }
    }
}

//! The working memory of a thread, allocated once before the first iteration.

use super::kernel::{Sums, TRAY};
use super::lanes::Real;

/// The length of a cache line in bytes. Vectors across two lines cost twice as much.
const LINE: usize = 64;

/// A buffer that begins at a cache line.
#[derive(Debug)]
pub(crate) struct Aligned<T> {
    values: Vec<T>,
    start: usize,
}

impl<T: Real> Aligned<T> {
    pub(crate) fn new(length: usize) -> Self {
        let values = vec![T::from_f64(0.0); length + LINE / size_of::<T>()];
        let start = values.as_ptr().align_offset(LINE);
        // align_offset may give no answer; then the start does not matter.
        let start = start.min(values.len() - length);
        Self { values, start }
    }

    #[inline(always)]
    pub(crate) fn get(&self, length: usize) -> &[T] {
        &self.values[self.start..self.start + length]
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, length: usize) -> &mut [T] {
        &mut self.values[self.start..self.start + length]
    }
}

/// The largest number of lanes of a vector: 512 bits of `f32`.
pub(crate) const MOST_LANES: usize = LINE / size_of::<f32>();

/// Columns that are packed at a time, if they are not all packed in advance. A block's part of them
/// stays in the first-level cache.
pub(super) const CHUNK: usize = 32;
/// Blocks that are then packed together, so that a row of X is read in pieces of several cache
/// lines.
pub(super) const GROUP: usize = 8;

/// The state of a block of rows.
#[derive(Debug)]
pub(super) struct BlockScratch<T> {
    /// w and its derivative, component by component.
    pub(super) w: Aligned<T>,
    pub(super) w_dot: Aligned<T>,
    /// The sums of a pass, component by component.
    pub(super) sums: Sums<Aligned<T>>,
    /// X Hᵀ, which does not change during a bunch if β = 2.
    pub(super) projected: Aligned<T>,
}

/// The working memory of a group of blocks.
#[derive(Debug)]
pub(super) struct Scratch<T> {
    /// X of some columns of every block, column by column, a cache line for each.
    pub(super) x: Aligned<T>,
    /// The tray of a pass.
    pub(super) tray: Aligned<T>,
    pub(super) blocks: Vec<BlockScratch<T>>,
}

/// The length of a group's packed columns.
pub(super) const fn panel_length<T>() -> usize {
    CHUNK * LINE / size_of::<T>()
}

impl<T: Real> Scratch<T> {
    pub(super) fn new(rank: usize) -> Self {
        let lanes = LINE / size_of::<T>();
        let components = || Aligned::new(rank * lanes);
        let block = || BlockScratch {
            w: components(),
            w_dot: components(),
            sums: Sums {
                positive: components(),
                negative: components(),
                positive_dot: components(),
                negative_dot: components(),
            },
            projected: components(),
        };
        Self {
            x: Aligned::new(GROUP * panel_length::<T>()),
            tray: Aligned::new(TRAY * lanes),
            blocks: (0..GROUP).map(|_| block()).collect(),
        }
    }
}

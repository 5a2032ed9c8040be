//! The memory that a thread works in: allocated once, before the first iteration.

use super::kernel::Sums;
use super::lanes::Real;

/// The length of a cache line, in bytes: vectors that lie across two lines cost
/// twice.
const LINE: usize = 64;

/// A buffer that begins at a cache line.
#[derive(Debug)]
pub(super) struct Aligned<T> {
    values: Vec<T>,
    start: usize,
}

impl<T: Real> Aligned<T> {
    pub(super) fn new(length: usize) -> Self {
        let values = vec![T::from_f64(0.0); length + LINE / size_of::<T>()];
        let start = values.as_ptr().align_offset(LINE);
        // align_offset may refuse to answer; then the start does not matter.
        let start = start.min(values.len() - length);
        Self { values, start }
    }

    #[inline(always)]
    pub(super) fn get(&self, length: usize) -> &[T] {
        &self.values[self.start..self.start + length]
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, length: usize) -> &mut [T] {
        &mut self.values[self.start..self.start + length]
    }
}

/// The most lanes that a vector has: 512 bits of `f32`.
pub(super) const MOST_LANES: usize = LINE / size_of::<f32>();

/// What a block of rows needs while it is worked on.
#[derive(Debug)]
pub(super) struct Scratch<T> {
    /// X, mask and held-out weights of some columns, column by column.
    pub(super) x: Aligned<T>,
    pub(super) mask: Aligned<T>,
    pub(super) held_out: Aligned<T>,
    /// w and its derivative, component by component.
    pub(super) w: Aligned<T>,
    pub(super) w_dot: Aligned<T>,
    /// The sums of a pass, component by component.
    pub(super) sums: Sums<Aligned<T>>,
    /// X Hᵀ, which does not change during a bunch where β = 2.
    pub(super) projected: Aligned<T>,
}

impl<T: Real> Scratch<T> {
    /// For so many columns at a time.
    pub(super) fn new(columns: usize, rank: usize, masked: bool, held_out: bool) -> Self {
        let lanes = LINE / size_of::<T>();
        let panel = |needed: bool| Aligned::new(if needed { columns * lanes } else { 0 });
        let components = || Aligned::new(rank * lanes);
        Self {
            x: panel(true),
            mask: panel(masked),
            held_out: panel(held_out),
            w: components(),
            w_dot: components(),
            sums: Sums {
                positive: components(),
                negative: components(),
                positive_dot: components(),
                negative_dot: components(),
            },
            projected: components(),
        }
    }
}

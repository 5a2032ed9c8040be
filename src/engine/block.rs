//! A block of rows through a whole bunch: T updates with value and derivative
//! together, then the outer error, while the block's x stays in the cache.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::any_entry::BetaEntry;
use super::kernel::TRAY;
use super::lanes::Real;
use super::matrix::{PackTransposed, Storage};
use super::pass::{Evaluation, Multiply, Panel, Pass, Project};
use super::plan::Plan;
use super::scratch::{Aligned, BlockScratch, CHUNK, GROUP, MOST_LANES, Scratch, panel_length};
use super::step::Update;

/// The data that all blocks of an update share.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a, T> {
    pub(super) plan: &'a Plan,
    pub(super) x: Storage<'a, T>,
    /// The other factor, r numbers for each column.
    pub(super) other: &'a [T],
    /// Its sums over the columns, r numbers.
    pub(super) other_sums: &'a [T],
    /// Its Gram matrix, r×r, if β = 2.
    pub(super) gram: &'a [T],
    pub(super) columns: usize,
    pub(super) rank: usize,
    /// The smallest y.
    pub(super) floor: T,
    /// T.
    pub(super) length: usize,
    pub(super) wanted: Wanted,
}

/// The requested results beside the updated factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Nothing.
    Factor,
    /// D, which is E too.
    Errors,
    /// D and its derivative dE/dλ.
    Gradient,
}

/// The rows of a task, as input and output.
pub(super) struct Rows<'a> {
    /// Index of the first of them.
    pub(super) first: usize,
    /// r numbers per row.
    pub(super) factor: &'a mut [f64],
    /// λ, if there is one.
    pub(super) lambda: &'a [f64],
    /// The results of each row beside the factor.
    pub(super) outcome: &'a mut [RowOutcome],
}

/// The results of a row beside its factor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowOutcome {
    /// dE/dλ_i.
    pub(crate) gradient: f64,
    /// D_i, which is E_i too.
    pub(crate) error: f64,
}

/// A task over some rows, block by block.
pub(super) struct BlockTask<'a, T> {
    pub(super) shared: Shared<'a, T>,
    pub(super) rows: Rows<'a>,
    pub(super) scratch: &'a mut Scratch<T>,
    pub(super) divergence: BetaEntry,
}

impl<T: Real> WithSimd for BlockTask<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Rows {
            first,
            factor,
            lambda,
            outcome,
        } = self.rows;
        // Blocks are packed in groups, or not at all.
        let blocks = match self.shared.x {
            Storage::Packed(_) => 1,
            Storage::Transposed(_) => GROUP,
        };
        let rows = blocks * T::lanes::<S>();
        let groups = factor.chunks_mut(rows * self.shared.rank);
        for (index, (factor, outcome)) in groups.zip(outcome.chunks_mut(rows)).enumerate() {
            let start = index * rows;
            let group = Group {
                simd,
                shared: &self.shared,
                divergence: self.divergence,
                first: first + start,
                count: outcome.len(),
                lambda: lambda.get(start..start + outcome.len()).unwrap_or(&[]),
            };
            group.run(factor, outcome, self.scratch);
        }
    }
}

/// Some blocks that go through the bunch together.
struct Group<'a, T, S> {
    simd: S,
    shared: &'a Shared<'a, T>,
    divergence: BetaEntry,
    /// The first row, and the number of rows.
    first: usize,
    count: usize,
    lambda: &'a [f64],
}

impl<T: Real, S: Simd> Group<'_, T, S> {
    #[inline(always)]
    fn run(&self, factor: &mut [f64], outcome: &mut [RowOutcome], scratch: &mut Scratch<T>) {
        let shared = self.shared;
        self.read_factor(factor, scratch);
        let by_gram = !shared.gram.is_empty();
        if by_gram {
            self.project(scratch);
        }
        for step in 0..shared.length {
            // w⁽⁰⁾ does not depend on λ, so its derivative is zero in the first pass.
            let tangent = shared.wanted == Wanted::Gradient && step > 0;
            if by_gram {
                self.multiply_by_gram(scratch);
            } else if tangent {
                self.accumulate::<true>(scratch);
            } else {
                self.accumulate::<false>(scratch);
            }
            self.update(scratch);
        }
        self.write_factor(factor, scratch);
        match shared.wanted {
            Wanted::Factor => {}
            Wanted::Errors => self.errors::<false>(scratch, outcome),
            Wanted::Gradient => self.errors::<true>(scratch, outcome),
        }
    }

    /// The blocks' numbers.
    fn blocks(&self) -> Range<usize> {
        0..self.count.div_ceil(T::lanes::<S>())
    }

    /// The length of a vector for each component.
    fn components(&self) -> usize {
        self.shared.rank * T::lanes::<S>()
    }

    fn read_factor(&self, factor: &[f64], scratch: &mut Scratch<T>) {
        let (lanes, rank) = (T::lanes::<S>(), self.shared.rank);
        for (block, rows) in scratch.blocks.iter_mut().zip(factor.chunks(lanes * rank)) {
            let w = block.w.get_mut(lanes * rank);
            w.fill(T::from_f64(0.0));
            for (lane, row) in rows.chunks_exact(rank).enumerate() {
                for (slot, value) in w[lane..].iter_mut().step_by(lanes).zip(row) {
                    *slot = T::from_f64(*value);
                }
            }
            block.w_dot.get_mut(lanes * rank).fill(T::from_f64(0.0));
        }
    }

    fn write_factor(&self, factor: &mut [f64], scratch: &Scratch<T>) {
        let (lanes, rank) = (T::lanes::<S>(), self.shared.rank);
        for (block, rows) in scratch.blocks.iter().zip(factor.chunks_mut(lanes * rank)) {
            let w = block.w.get(lanes * rank);
            for (lane, row) in rows.chunks_exact_mut(rank).enumerate() {
                for (slot, value) in row.iter_mut().zip(w[lane..].iter().step_by(lanes)) {
                    *slot = value.to_f64();
                }
            }
        }
    }

    /// Calls `f` with every block and the columns, a chunk of them at a time.
    #[inline(always)]
    fn each(&self, scratch: &mut Scratch<T>, mut f: impl FnMut(&mut Scratch<T>, Part)) {
        let Shared { x, columns, .. } = *self.shared;
        let chunk = match x {
            Storage::Packed(_) => columns,
            Storage::Transposed(_) => CHUNK,
        };
        for from in (0..columns).step_by(chunk) {
            let columns = from..columns.min(from + chunk);
            self.pack(x, &mut scratch.x, &columns);
            for block in self.blocks() {
                let columns = columns.clone();
                f(scratch, Part { block, columns });
            }
        }
    }

    fn pack(&self, x: Storage<'_, T>, buffer: &mut Aligned<T>, columns: &Range<usize>) {
        if let Storage::Transposed(matrix) = x {
            self.simd.vectorize(PackTransposed {
                matrix,
                rows: self.first..self.first + self.count,
                columns: columns.clone(),
                packed: buffer.get_mut(GROUP * panel_length::<T>()),
            });
        }
    }

    /// A part's entries: packed beforehand, or by [`pack`](Self::pack).
    fn packed<'b>(&'b self, buffer: &'b Aligned<T>, part: &Part) -> &'b [T] {
        let lanes = T::lanes::<S>();
        let length = part.columns.len() * lanes;
        match self.shared.x {
            Storage::Packed(values) => {
                let row = self.first + part.block * lanes;
                let start = row * self.shared.columns + part.columns.start * lanes;
                &values[start..start + length]
            }
            Storage::Transposed(_) => {
                let panels = buffer.get(GROUP * panel_length::<T>());
                &panels[part.block * panel_length::<T>()..][..length]
            }
        }
    }

    fn panel<'b>(
        &'b self,
        part: &Part,
        x: &'b Aligned<T>,
        point: [&'b Aligned<T>; 2],
    ) -> Panel<'b, T> {
        let rank = self.shared.rank;
        Panel {
            x: self.packed(x, part),
            other: &self.shared.other[part.columns.start * rank..part.columns.end * rank],
            w: point[0].get(self.components()),
            w_dot: point[1].get(self.components()),
            floor: self.shared.floor,
        }
    }

    /// X Hᵀ, which is the same for the whole bunch if β = 2.
    fn project(&self, scratch: &mut Scratch<T>) {
        let length = self.components();
        for block in &mut scratch.blocks {
            block.projected.get_mut(length).fill(T::from_f64(0.0));
        }
        self.each(scratch, |scratch, part| {
            let BlockScratch {
                w,
                w_dot,
                projected,
                ..
            } = &mut scratch.blocks[part.block];
            let panel = self.panel(&part, &scratch.x, [w, w_dot]);
            let sum = projected.get_mut(length);
            self.simd.vectorize(Project { panel, sum });
        });
    }

    /// Y Hᵀ as W (H Hᵀ), with r² products per row instead of 2 m r.
    fn multiply_by_gram(&self, scratch: &mut Scratch<T>) {
        let length = self.components();
        for block in &mut scratch.blocks[self.blocks()] {
            let BlockScratch {
                w,
                w_dot,
                sums,
                projected,
            } = block;
            let negative = sums.negative.get_mut(length);
            negative.copy_from_slice(projected.get(length));
            sums.negative_dot.get_mut(length).fill(T::from_f64(0.0));
            for (from, to) in [(w, &mut sums.positive), (w_dot, &mut sums.positive_dot)] {
                self.simd.vectorize(Multiply {
                    vectors: from.get(length),
                    matrix: self.shared.gram,
                    product: to.get_mut(length),
                });
            }
        }
    }

    /// One pass over all columns: the sums that an update needs.
    #[inline(always)]
    fn accumulate<const TANGENT: bool>(&self, scratch: &mut Scratch<T>) {
        let length = self.components();
        let lanes = T::lanes::<S>();
        for block in &mut scratch.blocks[self.blocks()] {
            let sums = block.sums.as_mut().map(|sum| {
                let sum = sum.get_mut(length);
                sum.fill(T::from_f64(0.0));
                sum
            });
            if !self.divergence.positive_varies() {
                // ∇⁺ = 1: the sums of the other factor, for all rows.
                let slots = sums.positive.chunks_exact_mut(lanes);
                for (slots, sum) in slots.zip(self.shared.other_sums) {
                    slots.fill(*sum);
                }
            }
        }
        self.each(scratch, |scratch, part| {
            let Scratch { x, tray, blocks } = scratch;
            let BlockScratch { w, w_dot, sums, .. } = &mut blocks[part.block];
            let pass = Pass {
                divergence: self.divergence,
                panel: self.panel(&part, x, [w, w_dot]),
                tray: tray.get_mut(TRAY * lanes),
                sums: sums.as_mut().map(|sum| sum.get_mut(length)),
            };
            pass.run::<TANGENT, S>(self.simd);
        });
    }

    /// `Φ` and its derivative, from the sums.
    fn update(&self, scratch: &mut Scratch<T>) {
        let (length, lanes) = (self.components(), T::lanes::<S>());
        for (block, scratch) in scratch.blocks[self.blocks()].iter_mut().enumerate() {
            let BlockScratch { w, w_dot, sums, .. } = scratch;
            let start = (block * lanes).min(self.lambda.len());
            self.simd.vectorize(Update {
                plan: self.shared.plan,
                first: self.first + block * lanes,
                lambda: &self.lambda[start..self.lambda.len().min(start + lanes)],
                w: w.get_mut(length),
                w_dot: w_dot.get_mut(length),
                sums: sums.as_mut().map(|sum| sum.get_mut(length)),
            });
        }
    }

    /// D and dE/dλ at the end.
    #[inline(always)]
    fn errors<const TANGENT: bool>(&self, scratch: &mut Scratch<T>, outcome: &mut [RowOutcome]) {
        let lanes = T::lanes::<S>();
        let mut errors = [[T::from_f64(0.0); 2 * MOST_LANES]; GROUP];
        self.each(scratch, |scratch, part| {
            let BlockScratch { w, w_dot, .. } = &scratch.blocks[part.block];
            let evaluation = Evaluation {
                divergence: self.divergence,
                panel: self.panel(&part, &scratch.x, [w, w_dot]),
                tray: scratch.tray.get_mut(TRAY * lanes),
                error: &mut errors[part.block][..2 * lanes],
            };
            evaluation.run::<TANGENT, S>(self.simd);
        });
        for (row, outcome) in outcome.iter_mut().enumerate() {
            let (block, lane) = (row / lanes, row % lanes);
            let [error, gradient] = [lane, lanes + lane].map(|at| errors[block][at].to_f64());
            *outcome = RowOutcome { gradient, error };
        }
    }
}

/// Some columns of a block.
struct Part {
    block: usize,
    columns: Range<usize>,
}

//! A block of rows through a whole bunch: T updates with value and derivative
//! together, then the outer error, while the block's x stays in the cache.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::entry::Entry;
use super::lanes::Real;
use super::matrix::{PackTransposed, Source};
use super::pass::{Evaluation, Multiply, Panel, Pass, Project};
use super::plan::Plan;
use super::scratch::{Aligned, MOST_LANES, Scratch};
use super::step::Update;

/// What all blocks of an update share.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a, T> {
    pub(super) plan: &'a Plan,
    pub(super) x: Source<'a, T>,
    pub(super) mask: Option<Source<'a, T>>,
    pub(super) held_out: Option<Source<'a, T>>,
    /// The other factor, r numbers for each column.
    pub(super) other: &'a [T],
    /// Its sums over the columns, r numbers.
    pub(super) other_sums: &'a [T],
    /// Its products with itself, r×r, where β = 2 and all weights are 1.
    pub(super) gram: &'a [T],
    pub(super) columns: usize,
    /// How many columns are read at a time.
    pub(super) chunk: usize,
    pub(super) rank: usize,
    /// The smallest y.
    pub(super) floor: T,
    /// T.
    pub(super) length: usize,
    pub(super) wanted: Wanted,
}

/// What is wanted beside the updated factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Nothing.
    Factor,
    /// E and D.
    Errors,
    /// E, D and dE/dλ.
    Gradient,
}

/// The rows of a task, in and out.
pub(super) struct Rows<'a> {
    /// Index of the first of them.
    pub(super) first: usize,
    /// r numbers per row.
    pub(super) factor: &'a mut [f64],
    /// λ, if there is one.
    pub(super) lambda: &'a [f64],
    /// What comes of each row beside the factor.
    pub(super) outcome: &'a mut [RowOutcome],
}

/// What comes of a row beside its factor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowOutcome {
    /// dE/dλ_i.
    pub(crate) gradient: f64,
    /// E_i.
    pub(crate) outer_error: f64,
    /// D_i.
    pub(crate) divergence: f64,
}

/// Some rows, block after block.
pub(super) struct Task<'a, T, D> {
    pub(super) shared: Shared<'a, T>,
    pub(super) rows: Rows<'a>,
    pub(super) scratch: &'a mut Scratch<T>,
    pub(super) divergence: D,
}

impl<T: Real, D: Entry> WithSimd for Task<'_, T, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Rows {
            first,
            factor,
            lambda,
            outcome,
        } = self.rows;
        let (lanes, rank) = (T::lanes::<S>(), self.shared.rank);
        let blocks = factor.chunks_mut(lanes * rank);
        for (index, (factor, outcome)) in blocks.zip(outcome.chunks_mut(lanes)).enumerate() {
            let start = index * lanes;
            let block = Block {
                simd,
                shared: &self.shared,
                divergence: self.divergence,
                first: first + start,
                count: outcome.len(),
                lambda: lambda.get(start..start + outcome.len()).unwrap_or(&[]),
            };
            block.run(factor, outcome, self.scratch);
        }
    }
}

struct Block<'a, T, S, D> {
    simd: S,
    shared: &'a Shared<'a, T>,
    divergence: D,
    first: usize,
    count: usize,
    lambda: &'a [f64],
}

impl<T: Real, S: Simd, D: Entry> Block<'_, T, S, D> {
    #[inline(always)]
    fn run(&self, factor: &mut [f64], outcome: &mut [RowOutcome], scratch: &mut Scratch<T>) {
        let shared = self.shared;
        self.read_factor(factor, scratch);
        let by_gram = !shared.gram.is_empty();
        if by_gram {
            self.project(scratch);
        }
        for step in 0..shared.length {
            // w⁽⁰⁾ does not depend on λ: in the first pass its derivative is zero.
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

    fn components(&self) -> usize {
        self.shared.rank * T::lanes::<S>()
    }

    fn read_factor(&self, factor: &[f64], scratch: &mut Scratch<T>) {
        let (lanes, rank) = (T::lanes::<S>(), self.shared.rank);
        let w = scratch.w.get_mut(self.components());
        w.fill(T::from_f64(0.0));
        for (lane, row) in factor.chunks_exact(rank).enumerate() {
            for (slot, value) in w[lane..].iter_mut().step_by(lanes).zip(row) {
                *slot = T::from_f64(*value);
            }
        }
        let w_dot = scratch.w_dot.get_mut(self.components());
        w_dot.fill(T::from_f64(0.0));
    }

    fn write_factor(&self, factor: &mut [f64], scratch: &Scratch<T>) {
        let (lanes, rank) = (T::lanes::<S>(), self.shared.rank);
        let w = scratch.w.get(self.components());
        for (lane, row) in factor.chunks_exact_mut(rank).enumerate() {
            for (slot, value) in row.iter_mut().zip(w[lane..].iter().step_by(lanes)) {
                *slot = value.to_f64();
            }
        }
    }

    /// Calls `f` with the columns, a chunk at a time, packed.
    #[inline(always)]
    fn each_chunk(
        &self,
        scratch: &mut Scratch<T>,
        mut f: impl FnMut(&mut Scratch<T>, Range<usize>),
    ) {
        let Shared {
            x,
            mask,
            held_out,
            columns,
            chunk,
            ..
        } = *self.shared;
        for from in (0..columns).step_by(chunk) {
            let range = from..columns.min(from + chunk);
            self.pack(Some(x), &mut scratch.x, &range);
            self.pack(mask, &mut scratch.mask, &range);
            self.pack(held_out, &mut scratch.held_out, &range);
            f(scratch, range);
        }
    }

    fn pack(&self, source: Option<Source<'_, T>>, buffer: &mut Aligned<T>, columns: &Range<usize>) {
        if let Some(Source::Transposed(matrix)) = source {
            self.simd.vectorize(PackTransposed {
                matrix,
                first: self.first,
                count: self.count,
                from: columns.start,
                packed: buffer.get_mut(columns.len() * T::lanes::<S>()),
            });
        }
    }

    /// Some columns of the block: packed beforehand, or by [`pack`](Self::pack).
    fn packed<'b>(
        &self,
        source: Source<'b, T>,
        buffer: &'b Aligned<T>,
        columns: &Range<usize>,
    ) -> &'b [T] {
        let lanes = T::lanes::<S>();
        match source {
            Source::Packed(values) => {
                let start = self.first * self.shared.columns + columns.start * lanes;
                &values[start..start + columns.len() * lanes]
            }
            Source::Transposed(_) => buffer.get(columns.len() * lanes),
        }
    }

    fn panel<'b>(
        &'b self,
        columns: &Range<usize>,
        x: &'b Aligned<T>,
        weights: &'b [T],
        point: [&'b Aligned<T>; 2],
    ) -> Panel<'b, T> {
        let rank = self.shared.rank;
        Panel {
            x: self.packed(self.shared.x, x, columns),
            weights,
            other: &self.shared.other[columns.start * rank..columns.end * rank],
            w: point[0].get(self.components()),
            w_dot: point[1].get(self.components()),
            floor: self.shared.floor,
        }
    }

    /// Where β = 2 and all weights are 1, X Hᵀ is the same for the whole bunch.
    fn project(&self, scratch: &mut Scratch<T>) {
        let length = self.components();
        scratch.projected.get_mut(length).fill(T::from_f64(0.0));
        self.each_chunk(scratch, |scratch, columns| {
            let point = [&scratch.w, &scratch.w_dot];
            let panel = self.panel(&columns, &scratch.x, &[], point);
            let sum = scratch.projected.get_mut(length);
            self.simd.vectorize(Project { panel, sum });
        });
    }

    /// … and Y Hᵀ is W (H Hᵀ), r² products for a row instead of 2 m r.
    fn multiply_by_gram(&self, scratch: &mut Scratch<T>) {
        let length = self.components();
        let Scratch {
            w,
            w_dot,
            sums,
            projected,
            ..
        } = scratch;
        sums.negative
            .get_mut(length)
            .copy_from_slice(projected.get(length));
        sums.negative_dot.get_mut(length).fill(T::from_f64(0.0));
        for (from, to) in [(w, &mut sums.positive), (w_dot, &mut sums.positive_dot)] {
            self.simd.vectorize(Multiply {
                vectors: from.get(length),
                matrix: self.shared.gram,
                product: to.get_mut(length),
            });
        }
    }

    /// One pass over all columns: the sums that an update needs.
    #[inline(always)]
    fn accumulate<const TANGENT: bool>(&self, scratch: &mut Scratch<T>) {
        let length = self.components();
        let lanes = T::lanes::<S>();
        let mask_source = self.shared.mask;
        let weighted = mask_source.is_some();
        let zeroed = scratch.sums.as_mut().map(|sum| {
            let sum = sum.get_mut(length);
            sum.fill(T::from_f64(0.0));
            sum
        });
        if !(D::POSITIVE_VARIES || weighted) {
            // ∇⁺ = 1: the sums of the other factor, for all rows.
            let slots = zeroed.positive.chunks_exact_mut(lanes);
            for (slots, sum) in slots.zip(self.shared.other_sums) {
                slots.fill(*sum);
            }
        }
        self.each_chunk(scratch, |scratch, columns| {
            let Scratch {
                x,
                mask,
                w,
                w_dot,
                sums,
                ..
            } = scratch;
            let weights = mask_source.map_or(&[][..], |source| self.packed(source, mask, &columns));
            let panel = self.panel(&columns, x, weights, [w, w_dot]);
            let pass = Pass {
                divergence: self.divergence,
                panel,
                sums: sums.as_mut().map(|sum| sum.get_mut(length)),
            };
            if weighted {
                pass.run::<TANGENT, true, S>(self.simd);
            } else {
                pass.run::<TANGENT, false, S>(self.simd);
            }
        });
    }

    /// `Φ` and its derivative, from the sums.
    fn update(&self, scratch: &mut Scratch<T>) {
        let length = self.components();
        let Scratch { w, w_dot, sums, .. } = scratch;
        self.simd.vectorize(Update {
            plan: self.shared.plan,
            first: self.first,
            lambda: self.lambda,
            w: w.get_mut(length),
            w_dot: w_dot.get_mut(length),
            sums: sums.as_mut().map(|sum| sum.get_mut(length)),
        });
    }

    /// E, D and dE/dλ at the end.
    #[inline(always)]
    fn errors<const TANGENT: bool>(&self, scratch: &mut Scratch<T>, outcome: &mut [RowOutcome]) {
        let lanes = T::lanes::<S>();
        let mut error = [T::from_f64(0.0); 2 * MOST_LANES];
        let error = &mut error[..2 * lanes];
        match (self.shared.held_out, self.shared.mask) {
            (Some(_), mask) => {
                self.error::<TANGENT>(scratch, Weights::HeldOut, error);
                for (row, outcome) in outcome.iter_mut().enumerate() {
                    outcome.outer_error = error[row].to_f64();
                    outcome.gradient = error[lanes + row].to_f64();
                }
                error.fill(T::from_f64(0.0));
                let weights = mask.map_or(Weights::None, |_| Weights::Mask);
                self.error::<false>(scratch, weights, error);
                for (row, outcome) in outcome.iter_mut().enumerate() {
                    outcome.divergence = error[row].to_f64();
                }
            }
            (None, mask) => {
                let weights = mask.map_or(Weights::None, |_| Weights::Mask);
                self.error::<TANGENT>(scratch, weights, error);
                for (row, outcome) in outcome.iter_mut().enumerate() {
                    *outcome = RowOutcome {
                        gradient: error[lanes + row].to_f64(),
                        outer_error: error[row].to_f64(),
                        divergence: error[row].to_f64(),
                    };
                }
            }
        }
    }

    #[inline(always)]
    fn error<const TANGENT: bool>(
        &self,
        scratch: &mut Scratch<T>,
        weights: Weights,
        error: &mut [T],
    ) {
        self.each_chunk(scratch, |scratch, columns| {
            let (source, buffer) = match weights {
                Weights::None => (None, &scratch.mask),
                Weights::Mask => (self.shared.mask, &scratch.mask),
                Weights::HeldOut => (self.shared.held_out, &scratch.held_out),
            };
            let packed = source.map_or(&[][..], |source| self.packed(source, buffer, &columns));
            let point = [&scratch.w, &scratch.w_dot];
            let evaluation = Evaluation {
                divergence: self.divergence,
                panel: self.panel(&columns, &scratch.x, packed, point),
                error,
            };
            if source.is_some() {
                evaluation.run::<TANGENT, true, S>(self.simd);
            } else {
                evaluation.run::<TANGENT, false, S>(self.simd);
            }
        });
    }
}

/// Which entries an error counts.
#[derive(Clone, Copy)]
enum Weights {
    None,
    Mask,
    HeldOut,
}

//! The fused engine: updates of either factor, all rows, all cores.

use parking_lot::Mutex;
use pulp::Arch;
use rayon::prelude::*;

use super::any_entry::BetaEntry;
use super::block::{BlockTask, RowOutcome, Rows, Shared, Wanted};
use super::lanes::Real;
use super::matrix::{Packed, Storage};
use super::plan::Plan;
use super::scratch::Scratch;
use crate::factors::Side;
use crate::problem::Problem;

/// Tasks hold a multiple of this many rows, the largest number of lanes of any vector.
const ROWS: usize = 16;
/// Tasks per thread, for an even distribution.
const TASKS_PER_THREAD: usize = 8;
/// With fewer multiplications, another thread costs more than it saves.
const WORTH_SHARING: usize = 1 << 16;

/// The data, packed, and the buffers of a run.
#[derive(Debug)]
pub(crate) struct Fused<T> {
    rank: usize,
    x: Packed<T>,
    other: Vec<T>,
    other_sums: Vec<T>,
    gram: Vec<T>,
    outcome: Vec<RowOutcome>,
    scratch: Vec<Mutex<Scratch<T>>>,
}

/// One update, or a bunch of them.
pub(crate) struct Request<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) problem: &'a Problem,
    pub(crate) side: Side,
    /// λ. Empty if no term is tuned.
    pub(crate) lambda: &'a [f64],
    pub(crate) length: usize,
    pub(crate) wanted: Wanted,
}

/// X, which is dense here: a sparse X uses a data term instead of these loops.
fn dense(problem: &Problem) -> &ndarray::Array2<f64> {
    problem
        .x()
        .as_dense()
        .expect("these loops are for a dense X")
}

impl<T: Real> Fused<T> {
    /// An engine for problems of this shape and `threads` threads.
    pub(crate) fn new(problem: &Problem, rank: usize, threads: usize) -> Self {
        let [n, m] = problem.shape();
        let zero = T::from_f64(0.0);
        Self {
            rank,
            other: vec![zero; n.max(m) * rank],
            other_sums: vec![zero; rank],
            gram: vec![zero; rank * rank],
            outcome: vec![RowOutcome::default(); n.max(m)],
            scratch: (0..threads.max(1))
                .map(|_| Mutex::new(Scratch::new(rank)))
                .collect(),
            x: Packed::new(dense(problem)),
        }
    }

    /// Updates `factor` in place.
    ///
    /// # Shapes
    /// `factor` is W (n×r) or Hᵀ (m×r), row by row; `other` Hᵀ or W.
    pub(crate) fn update(
        &mut self,
        request: &Request<'_>,
        factor: &mut [f64],
        other: &[f64],
    ) -> &[RowOutcome] {
        let Request {
            plan,
            problem,
            side,
            ..
        } = *request;
        let [n, m] = problem.shape();
        let (rows, columns) = match side {
            Side::W => (n, m),
            Side::H => (m, n),
        };
        let rank = self.rank;
        let slots = &mut self.other[..columns * rank];
        for (slot, value) in slots.iter_mut().zip(other) {
            *slot = T::from_f64(*value);
        }
        let other = &self.other[..columns * rank];
        sums(other, rank, &mut self.other_sums);
        let by_gram = plan.divergence.0 == 2.0;
        if by_gram {
            products(other, rank, &mut self.gram);
        }
        let passes = request.length + usize::from(request.wanted != Wanted::Factor);
        let x = match side {
            Side::W => self.x.source(),
            Side::H => Storage::Transposed(dense(problem)),
        };
        let shared = Shared {
            plan,
            x,
            other,
            other_sums: &self.other_sums,
            gram: if by_gram { &self.gram } else { &[] },
            columns,
            rank,
            floor: T::from_f64(plan.floor::<T>()),
            length: request.length,
            wanted: request.wanted,
        };
        let outcome = &mut self.outcome[..rows];
        let work = rows * columns * rank * passes;
        let share = Share {
            scratch: &self.scratch,
            rows_per_task: if work < WORTH_SHARING {
                rows.next_multiple_of(ROWS)
            } else {
                let per_thread = match side {
                    Side::W => TASKS_PER_THREAD,
                    // Fewer and larger tasks, which read longer pieces of X's rows.
                    Side::H => TASKS_PER_THREAD / 2,
                };
                let tasks = per_thread * self.scratch.len();
                rows.div_ceil(tasks).next_multiple_of(ROWS)
            },
        };
        share.run(shared, factor, request.lambda, outcome);
        outcome
    }
}

/// The distribution of rows to threads.
struct Share<'a, T> {
    scratch: &'a [Mutex<Scratch<T>>],
    rows_per_task: usize,
}

impl<T: Real> Share<'_, T> {
    fn run(
        &self,
        shared: Shared<'_, T>,
        factor: &mut [f64],
        lambda: &[f64],
        outcome: &mut [RowOutcome],
    ) {
        let size = self.rows_per_task;
        let divergence = BetaEntry::new(shared.plan.divergence.0);
        let run = |index: usize, factor: &mut [f64], outcome: &mut [RowOutcome]| {
            let first = index * size;
            let rows = Rows {
                first,
                factor,
                lambda: lambda.get(first..first + outcome.len()).unwrap_or(&[]),
                outcome,
            };
            // Each thread has its own scratch, so none waits.
            let thread = rayon::current_thread_index().unwrap_or(0) % self.scratch.len();
            let mut scratch = self.scratch[thread].lock();
            Arch::new().dispatch(BlockTask {
                shared,
                rows,
                scratch: &mut *scratch,
                divergence,
            });
        };
        let length = size * shared.rank;
        if self.scratch.len() == 1 || size >= outcome.len() {
            let tasks = factor.chunks_mut(length).zip(outcome.chunks_mut(size));
            for (index, (factor, outcome)) in tasks.enumerate() {
                run(index, factor, outcome);
            }
        } else {
            let tasks = factor
                .par_chunks_mut(length)
                .zip(outcome.par_chunks_mut(size));
            tasks
                .enumerate()
                .for_each(|(index, (factor, outcome))| run(index, factor, outcome));
        }
    }
}

/// `Σ_j other_jk`.
fn sums<T: Real>(other: &[T], rank: usize, sums: &mut [T]) {
    for (k, sum) in sums.iter_mut().enumerate() {
        let column = other[k..].iter().step_by(rank);
        *sum = T::from_f64(column.map(|value| value.to_f64()).sum());
    }
}

/// `Σ_j other_jk other_jl`.
fn products<T: Real>(other: &[T], rank: usize, products: &mut [T]) {
    for k in 0..rank {
        for l in 0..=k {
            let rows = other.chunks_exact(rank);
            let sum = rows.map(|row| row[k].to_f64() * row[l].to_f64()).sum();
            products[k * rank + l] = T::from_f64(sum);
            products[l * rank + k] = products[k * rank + l];
        }
    }
}

//! Products of whole matrices: X O, A G and Aᵀ B.
//!
//! Every sum runs in order, and tasks are rows of the result. So the result does not depend on blocks
//! or threads.

use std::borrow::Cow;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use super::kernel::{WIDE, contract, contract_lines, load, rows_together, store};
use super::packed::OneSide;
use super::walk::{WHOLE, share};
use crate::engine::{Aligned, Real};

/// Columns whose numbers of the other factor stay in the cache while their products are summed.
const STRETCH: usize = 96;

/// `X O`.
///
/// # Shapes
/// X n×m, `other` m×r; n×r.
pub(super) fn times<T: Real>(x: &OneSide<T>, other: &[f64], rank: usize) -> Vec<f64> {
    let mut out = vec![0.0; x.rows * rank];
    times_into(x, other, rank, &mut out);
    out
}

pub(super) fn times_into<T: Real>(x: &OneSide<T>, other: &[f64], rank: usize, out: &mut [f64]) {
    let other = T::rounded(other);
    let rows = share(x.rows, x.columns, rank);
    let tasks = out.par_chunks_mut(rows * rank).enumerate();
    let length = rows_together(other.len(), WHOLE) * rank;
    let memory = || Aligned::new(length);
    tasks.for_each_init(memory, |memory, (task, out)| {
        Arch::new().dispatch(Times {
            x: x.beginning_with(task * rows),
            columns: x.columns,
            other: &other,
            out,
            memory: memory.get_mut(length),
        });
    });
}

/// `X O` for consecutive blocks of rows.
struct Times<'a, T> {
    /// Blocks of X, from the first one, each column by column.
    x: &'a [T],
    columns: usize,
    /// r numbers for each column.
    other: &'a [T],
    /// r numbers for each row.
    out: &'a mut [f64],
    /// Working memory: r numbers for each row of a panel.
    memory: &'a mut [T],
}

impl<T: Real> WithSimd for Times<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (rank, lanes) = (self.other.len() / self.columns, WIDE * T::lanes::<S>());
        let rows = rows_together(self.other.len(), lanes);
        let panels = self.x.chunks(rows * self.columns);
        for (x, out) in panels.zip(self.out.chunks_mut(rows * rank)) {
            times_panel::<T, S>(simd, x, self.columns, self.other, self.memory, out);
        }
    }
}

/// `X O` for the blocks of a panel.
#[inline(always)]
fn times_panel<T: Real, S: Simd>(
    simd: S,
    x: &[T],
    columns: usize,
    other: &[T],
    memory: &mut [T],
    out: &mut [f64],
) {
    let (rank, lanes) = (other.len() / columns, WIDE * T::lanes::<S>());
    let blocks = out.len().div_ceil(lanes * rank);
    let sums = &mut memory[..blocks * lanes * rank];
    sums.fill(T::from_f64(0.0));
    for (at, other) in other.chunks(STRETCH * rank).enumerate() {
        let width = other.len() / rank;
        let blocks = x.chunks_exact(lanes * columns);
        for (x, sums) in blocks.zip(sums.chunks_exact_mut(lanes * rank)) {
            let x = &x[at * STRETCH * lanes..][..width * lanes];
            contract::<T, S>(simd, T::vectors_mut::<S>(sums), T::vectors::<S>(x), other);
        }
    }
    let blocks = sums.chunks_exact(lanes * rank);
    for (sums, out) in blocks.zip(out.chunks_mut(lanes * rank)) {
        store::<T, S>(simd, T::vectors::<S>(sums), out);
    }
}

/// An r×r matrix G that rows are multiplied by.
pub(super) struct Square<'a, T: Real> {
    values: Cow<'a, [T]>,
    rank: usize,
}

impl<'a, T: Real> Square<'a, T> {
    pub(super) fn new(values: &'a [f64], rank: usize) -> Self {
        Self {
            values: T::rounded(values),
            rank,
        }
    }

    /// Working memory of [`multiply`](Self::multiply): 2r numbers for each row of a block.
    pub(super) fn memory(&self) -> Aligned<T> {
        Aligned::new(self.length())
    }

    fn length(&self) -> usize {
        2 * self.rank * WHOLE
    }

    /// `A G` for some rows of A.
    pub(super) fn multiply(&self, rows: &[f64], out: &mut [f64], memory: &mut Aligned<T>) {
        Arch::new().dispatch(Multiply {
            rows,
            gram: &self.values,
            rank: self.rank,
            out,
            memory: memory.get_mut(self.length()),
        });
    }
}

/// `A G`.
///
/// # Shapes
/// `a` n×r, `gram` r×r; n×r.
pub(super) fn multiply<T: Real>(a: &[f64], gram: &[f64], rank: usize) -> Vec<f64> {
    let mut out = vec![0.0; a.len()];
    multiply_into::<T>(a, gram, rank, &mut out);
    out
}

pub(super) fn multiply_into<T: Real>(a: &[f64], gram: &[f64], rank: usize, out: &mut [f64]) {
    let gram = Square::<T>::new(gram, rank);
    let rows = share(a.len() / rank, rank, rank);
    let tasks = out
        .par_chunks_mut(rows * rank)
        .zip(a.par_chunks(rows * rank));
    tasks.for_each_init(
        || gram.memory(),
        |memory, (out, rows)| gram.multiply(rows, out, memory),
    );
}

/// `A G` for some rows of A.
struct Multiply<'a, T> {
    /// r numbers for each row.
    rows: &'a [f64],
    /// r×r numbers.
    gram: &'a [T],
    rank: usize,
    /// r numbers for each row.
    out: &'a mut [f64],
    /// Working memory: 2r numbers for each row of a block.
    memory: &'a mut [T],
}

impl<T: Real> WithSimd for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (rank, lanes) = (self.rank, WIDE * T::lanes::<S>());
        let (own, sums) = self.memory.split_at_mut(lanes * rank);
        let blocks = self.rows.chunks(lanes * rank);
        for (rows, out) in blocks.zip(self.out.chunks_mut(lanes * rank)) {
            load::<T, S>(simd, rows, T::vectors_mut::<S>(own));
            times_panel::<T, S>(simd, own, rank, self.gram, sums, out);
        }
    }
}

/// `Aᵀ B`.
///
/// # Shapes
/// `a` and `b` n×r; r×r.
pub(super) fn gram<T: Real>(a: &[f64], b: &[f64], rank: usize) -> Vec<f64> {
    gram_from::<T>(a, b, rank, &|_| 0)
}

/// `Aᵀ A`. Only one half is computed.
///
/// # Shapes
/// `a` n×r; r×r.
pub(super) fn gram_of<T: Real>(a: &[f64], rank: usize) -> Vec<f64> {
    let mut out = gram_from::<T>(a, a, rank, &|first_row| first_row);
    for row in 0..rank {
        for column in 0..row {
            out[row * rank + column] = out[column * rank + row];
        }
    }
    out
}

/// `Aᵀ B`. A task of rows begins with the column that `from` returns for its first row.
fn gram_from<T: Real>(
    a: &[f64],
    b: &[f64],
    rank: usize,
    from: &(dyn Fn(usize) -> usize + Sync),
) -> Vec<f64> {
    let [a, b] = [a, b].map(T::rounded);
    let mut out = vec![0.0; rank * rank];
    // (Small tasks, because there are few rows.)
    let rows = match rayon::current_num_threads() {
        1 => rank.next_multiple_of(WHOLE),
        _ => WHOLE,
    };
    let length = (rows * rank).next_multiple_of(WHOLE) + STRETCH * WHOLE;
    let memory = || Aligned::new(length);
    let tasks = out.par_chunks_mut(rows * rank).enumerate();
    tasks.for_each_init(memory, |memory, (task, out)| {
        let first = task * rows;
        Arch::new().dispatch(Gram {
            a: &a,
            b: &b,
            rank,
            first,
            from: from(first),
            out,
            memory: memory.get_mut(length),
        });
    });
    out
}

/// Some rows of `Aᵀ B`.
struct Gram<'a, T> {
    a: &'a [T],
    b: &'a [T],
    rank: usize,
    /// The first row.
    first: usize,
    /// The first column. Those before it are left as they are.
    from: usize,
    /// r numbers for each row.
    out: &'a mut [f64],
    /// Working memory: r numbers for each row, and the numbers of a block and a stretch.
    memory: &'a mut [T],
}

impl<T: Real> WithSimd for Gram<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (rank, lanes) = (self.rank, WIDE * T::lanes::<S>());
        let (count, width) = (self.out.len() / rank, rank - self.from);
        let zero = T::from_f64(0.0);
        let (packed, sums) = self.memory.split_at_mut(STRETCH * lanes);
        let sums = &mut sums[..count.next_multiple_of(lanes) * width];
        sums.fill(zero);
        let stretches = self.a.chunks(STRETCH * rank);
        for (a, b) in stretches.zip(self.b.chunks(STRETCH * rank)) {
            let (length, b) = (a.len() / rank, &b[self.from..]);
            for (block, sums) in sums.chunks_exact_mut(lanes * width).enumerate() {
                let first = self.first + block * lanes;
                let present = lanes.min(rank - first);
                let packed = &mut packed[..length * lanes];
                for (packed, a) in packed.chunks_exact_mut(lanes).zip(a.chunks_exact(rank)) {
                    packed[..present].copy_from_slice(&a[first..first + present]);
                    packed[present..].fill(zero);
                }
                let (sums, terms) = (T::vectors_mut::<S>(sums), T::vectors::<S>(packed));
                contract_lines::<T, S>(simd, sums, terms, b, rank);
            }
        }
        for (row, out) in self.out.chunks_exact_mut(rank).enumerate() {
            let sums = &sums[row / lanes * lanes * width + row % lanes..];
            let columns = out[self.from..].iter_mut().zip(sums.iter().step_by(lanes));
            columns.for_each(|(out, sum)| *out = sum.to_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Aᵀ B` and `A G`, as plain loops.
    #[test]
    fn products_are_those_of_plain_loops_on_any_number_of_threads() {
        let number = |seed: usize| ((seed * 7919) % 1013) as f64 / 1013.0 + 0.01;
        for (rows, rank) in [(1, 1), (40, 3), (300, 33), (257, 90)] {
            let a: Vec<f64> = (0..rows * rank).map(number).collect();
            let b: Vec<f64> = (0..rows * rank).map(|k| number(3 * k + 5)).collect();
            let sum = |b: &[f64], k: usize, l: usize| {
                let rows = 0..rows;
                rows.map(|i| a[i * rank + k] * b[i * rank + l]).sum::<f64>()
            };
            let each = |b: &[f64]| {
                let entries = (0..rank * rank).map(|at| sum(b, at / rank, at % rank));
                entries.collect::<Vec<f64>>()
            };
            let expected = [each(&b), each(&a)];
            let by_gram = (0..rows * rank).map(|at| {
                let (row, column) = (at / rank, at % rank);
                let terms = (0..rank).map(|l| a[row * rank + l] * expected[1][l * rank + column]);
                terms.sum::<f64>()
            });
            let by_gram: Vec<f64> = by_gram.collect();
            let found = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                pool.build().unwrap().install(|| {
                    let own = gram_of::<f64>(&a, rank);
                    let multiplied = multiply::<f64>(&a, &own, rank);
                    [gram::<f64>(&a, &b, rank), own, multiplied]
                })
            };
            let (two, one) = (found(2), found(1));
            assert_eq!(two, one, "{rows}×{rank}");
            for (found, expected) in two.iter().zip([&expected[0], &expected[1], &by_gram]) {
                let largest = expected.iter().fold(0.0, |a: f64, b| a.max(*b));
                let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-13 * largest;
                assert!(found.iter().zip(expected).all(near), "{rows}×{rank}");
            }
        }
    }
}

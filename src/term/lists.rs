//! Some entries of a matrix, line by line.

use pulp::Arch;
use rayon::prelude::*;

use crate::problem::Weights;

/// Rows in one task.
const ROWS: usize = 512;

/// Things in lines, one line after another.
#[derive(Debug)]
pub(super) struct Lists<T> {
    starts: Vec<usize>,
    entries: Vec<T>,
}

impl<T> Lists<T> {
    /// Of things with their lines; within a line by their place.
    pub(super) fn new(lines: usize, mut all: Vec<(usize, T)>, place: impl Fn(&T) -> usize) -> Self {
        all.sort_by_key(|(line, thing)| (*line, place(thing)));
        let mut starts = vec![0; lines + 1];
        for (line, _) in &all {
            starts[line + 1] += 1;
        }
        for line in 0..lines {
            starts[line + 1] += starts[line];
        }
        Self {
            starts,
            entries: all.into_iter().map(|(_, thing)| thing).collect(),
        }
    }

    pub(super) fn of(&self, line: usize) -> &[T] {
        &self.entries[self.starts[line]..self.starts[line + 1]]
    }
}

/// The entries that are not fitted, by rows and by columns: where they are few, a sum over
/// the others is the sum over all without them.
#[derive(Debug)]
pub(super) struct Gaps {
    pub(super) rows: Lists<usize>,
    pub(super) columns: Lists<usize>,
}

impl Gaps {
    /// Of a mask of zeros and ones; `None` where a row or a column has more than half of its
    /// entries missing, because then too many digits would cancel.
    pub(super) fn of(mask: &Weights) -> Option<Self> {
        let (n, m) = mask.dim();
        let gaps = || {
            let entries = mask.iter().enumerate().filter(|(_, weight)| *weight == 0.0);
            entries.map(|(index, _)| (index / m, index % m))
        };
        let gaps_of = |lines, all| Lists::new(lines, all, |place: &usize| *place);
        let rows = gaps_of(n, gaps().collect());
        let columns = gaps_of(m, gaps().map(|(i, j)| (j, i)).collect());
        let few = (0..n).all(|i| 2 * rows.of(i).len() <= m)
            && (0..m).all(|j| 2 * columns.of(j).len() <= n);
        few.then_some(Self { rows, columns })
    }
}

impl Lists<usize> {
    /// Adds `Σ_j values_j` over all lines without the gaps to each row of `out`.
    ///
    /// # Shapes
    /// `sums` r, `values` r for each place, `out` r for each line.
    pub(super) fn add_complement(&self, sums: &[f64], values: &[f64], out: &mut [f64]) {
        let rank = sums.len();
        let tasks = out.par_chunks_mut(ROWS * rank).enumerate();
        tasks.for_each(|(task, out)| {
            // Compiled for the processor at hand: its vectors are longer than the usual ones.
            Arch::new().dispatch(|| {
                let mut sum = vec![0.0; rank];
                for (row, out) in out.chunks_exact_mut(rank).enumerate() {
                    sum.copy_from_slice(sums);
                    for place in self.of(task * ROWS + row) {
                        let values = &values[place * rank..(place + 1) * rank];
                        for k in 0..rank {
                            sum[k] -= values[k];
                        }
                    }
                    for k in 0..rank {
                        out[k] += sum[k];
                    }
                }
            });
        });
    }
}

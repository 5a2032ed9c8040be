//! Some entries of a matrix, line by line.

use pulp::{Arch, Simd, WithSimd};
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
            Arch::new().dispatch(Complement {
                lists: self,
                first: task * ROWS,
                sums,
                values,
                out,
            });
        });
    }
}

/// The sums of some lines; a type of its own, so that they are compiled for the processor at
/// hand.
struct Complement<'a> {
    lists: &'a Lists<usize>,
    first: usize,
    sums: &'a [f64],
    values: &'a [f64],
    out: &'a mut [f64],
}

/// Numbers that are summed side by side.
const SIDE: usize = 8;

impl WithSimd for Complement<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let rank = self.sums.len();
        let whole = rank - rank % SIDE;
        for (row, out) in self.out.chunks_exact_mut(rank).enumerate() {
            let places = self.lists.of(self.first + row);
            let mut from = 0;
            while from < whole {
                let mut gone = [0.0; SIDE];
                for place in places {
                    let values = &self.values[place * rank + from..][..SIDE];
                    for k in 0..SIDE {
                        gone[k] += values[k];
                    }
                }
                for k in 0..SIDE {
                    out[from + k] += self.sums[from + k] - gone[k];
                }
                from += SIDE;
            }
            let rest = rank - whole;
            let mut gone = [0.0; SIDE];
            for place in places {
                let values = &self.values[place * rank + whole..][..rest];
                for k in 0..rest {
                    gone[k] += values[k];
                }
            }
            for k in 0..rest {
                out[whole + k] += self.sums[whole + k] - gone[k];
            }
        }
    }
}

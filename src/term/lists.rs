//! Lists of entries of a matrix, line by line.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::factors::Side;
use crate::problem::Weights;

/// Indices in one task, and the most lines.
const TASK: usize = 1 << 11;
const LINES: usize = 512;
/// A sum over all minus that over the gaps. Below this share of the sum over all it is computed entry
/// by entry, because the difference would lose more than five digits. (If nearly all that a component
/// has is in gaps, every digit is lost, and a P at its floor would make the factor explode.)
const CANCELS: f64 = 1e-5;

/// The indices of entries in lines, one line after another. (Matrices have fewer than 2³² lines.)
#[derive(Debug)]
pub(super) struct Lists {
    starts: Vec<usize>,
    places: Vec<u32>,
}

impl Lists {
    /// Lists of entries (line, index). Lines may be in any order; within a line, indices must
    /// increase. `entries` is called twice.
    pub(super) fn new<I: Iterator<Item = (usize, usize)>>(
        lines: usize,
        entries: impl Fn() -> I,
    ) -> Self {
        let mut starts = vec![0; lines + 1];
        for (line, _) in entries() {
            starts[line + 1] += 1;
        }
        for line in 0..lines {
            starts[line + 1] += starts[line];
        }
        let mut places = vec![0; starts[lines]];
        let mut next = starts.clone();
        for (line, place) in entries() {
            places[next[line]] = u32::try_from(place).expect("fewer than 2³² lines");
            next[line] += 1;
        }
        Self { starts, places }
    }

    /// The indices in a line.
    fn places(&self, line: usize) -> &[u32] {
        &self.places[self.starts[line]..self.starts[line + 1]]
    }
}

/// The entries that are not fitted, by rows and by columns. If they are few, a sum over the others
/// is computed as the sum over all minus these.
#[derive(Debug)]
pub(super) struct Gaps {
    rows: Lists,
    columns: Lists,
}

impl Gaps {
    /// The gaps of a mask of zeros and ones. `None` if more than a quarter of the entries are
    /// missing, because weights are faster then, or more than half of a row or column, because too
    /// many digits would cancel.
    pub(super) fn of(mask: &Weights) -> Option<Self> {
        let (n, m) = mask.dim();
        let gaps = || mask.places(|weight| weight == 0.0);
        if 4 * gaps().count() > n * m {
            return None;
        }
        let rows = Lists::new(n, gaps);
        let columns = Lists::new(m, || gaps().map(|(i, j)| (j, i)));
        let few = (0..n).all(|i| 2 * rows.places(i).len() <= m)
            && (0..m).all(|j| 2 * columns.places(j).len() <= n);
        few.then_some(Self { rows, columns })
    }

    /// The gaps in the lines of a side, and in those of the other.
    pub(super) fn by_lines(&self, side: Side) -> [&Lists; 2] {
        match side {
            Side::W => [&self.rows, &self.columns],
            Side::H => [&self.columns, &self.rows],
        }
    }
}

impl Lists {
    /// Adds `Σ_j values_j` over all indices except the gaps to each row of `out`. All cores work.
    ///
    /// # Shapes
    /// `sums` r, `values` r for each index, `out` r for each line.
    pub(super) fn add_complement(&self, sums: &[f64], values: &[f64], out: &mut [f64]) {
        let rank = sums.len();
        // (A few columns of a tall matrix have many gaps each.)
        let each = self.places.len() / (self.starts.len() - 1).max(1);
        let lines = (TASK / each.max(1)).clamp(1, LINES);
        let tasks = out.par_chunks_mut(lines * rank).enumerate();
        tasks.for_each(|(task, out)| self.add_to_lines(task * lines, sums, values, out));
    }

    /// The same for the lines of `out`. `first` is the index of its first line.
    pub(super) fn add_to_lines(&self, first: usize, sums: &[f64], values: &[f64], out: &mut [f64]) {
        Arch::new().dispatch(Complement {
            lists: self,
            first,
            sums,
            values,
            out,
        });
    }
}

/// The sums of some lines. It is a separate type, so that it is compiled for each kind of
/// processor.
struct Complement<'a> {
    lists: &'a Lists,
    first: usize,
    sums: &'a [f64],
    values: &'a [f64],
    out: &'a mut [f64],
}

/// Components that are summed together.
const SIDE: usize = 8;

impl WithSimd for Complement<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self {
            lists,
            first,
            sums,
            values,
            out,
        } = self;
        let rank = sums.len();
        for (row, out) in out.chunks_exact_mut(rank).enumerate() {
            let places = lists.places(first + row);
            for from in (0..rank).step_by(SIDE) {
                // (A loop over a number of components that varies takes twice as long.)
                macro_rules! subtract {
                    ($($count:literal)*) => {
                        match rank - from {
                            $($count => subtract::<$count>(places, values, sums, from, out),)*
                            _ => subtract::<SIDE>(places, values, sums, from, out),
                        }
                    };
                }
                subtract!(1 2 3 4 5 6 7);
            }
        }
    }
}

/// Adds `sums − Σ_j values_j`, `N` components from one on. The sum is over some indices.
#[inline(always)]
fn subtract<const N: usize>(
    places: &[u32],
    values: &[f64],
    sums: &[f64],
    from: usize,
    out: &mut [f64],
) {
    // (Each addition waits for the one before it, so two chains run side by side.)
    let mut gone = [[0.0; N]; 2];
    let add = |chain: &mut [f64; N], place: u32| {
        let values = &values[place as usize * sums.len() + from..][..N];
        for k in 0..N {
            chain[k] += values[k];
        }
    };
    let (pairs, last) = places.as_chunks::<2>();
    for [even, odd] in pairs {
        add(&mut gone[0], *even);
        add(&mut gone[1], *odd);
    }
    for place in last {
        add(&mut gone[0], *place);
    }
    let (mut rest, mut cancels) = ([0.0; N], false);
    for k in 0..N {
        let all = sums[from + k];
        rest[k] = all - (gone[0][k] + gone[1][k]);
        cancels |= rest[k].abs() < CANCELS * all.abs();
    }
    // (One branch for all components, which are computed together.)
    if cancels {
        for (k, rest) in rest.iter_mut().enumerate() {
            if rest.abs() < CANCELS * sums[from + k].abs() {
                *rest = sum_of_others(places, values, sums.len(), from + k);
            }
        }
    }
    for k in 0..N {
        out[from + k] += rest[k];
    }
}

/// `Σ_j values_j` of one component over all indices but some, which increase.
#[cold]
#[inline(never)]
fn sum_of_others(places: &[u32], values: &[f64], rank: usize, component: usize) -> f64 {
    let mut places = places.iter().peekable();
    let mut sum = 0.0;
    for (index, row) in values.chunks_exact(rank).enumerate() {
        if places.next_if(|place| **place as usize == index).is_none() {
            sum += row[component];
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    /// All that a component has is in gaps, but for entries that vanish beside it.
    #[test]
    fn sums_that_cancel_are_those_of_the_other_entries() {
        let (n, m, rank) = (8, 6, 9);
        let is_gap = |i: usize, j: usize| i % 4 == 1 && (j == 2 || j == 3);
        let mask = Array2::from_shape_fn((n, m), |(i, j)| f64::from(!is_gap(i, j)));
        let gaps = Gaps::of(&Weights::from(mask)).unwrap();
        let value = |j: usize, k: usize| match (j, k) {
            (2 | 3, 0 | 8) => 0.7,
            (_, 0 | 8) => 1e-20 * (j + 1) as f64,
            _ => (j + k) as f64,
        };
        let values: Vec<f64> = (0..m * rank)
            .map(|at| value(at / rank, at % rank))
            .collect();
        let sums: Vec<f64> = (0..rank)
            .map(|k| (0..m).map(|j| value(j, k)).sum())
            .collect();
        let mut found = vec![0.0; n * rank];
        let [of_rows, _] = gaps.by_lines(Side::W);
        of_rows.add_complement(&sums, &values, &mut found);
        for (at, found) in found.iter().enumerate() {
            let (i, k) = (at / rank, at % rank);
            let others = (0..m).filter(|j| !is_gap(i, *j));
            let expected: f64 = others.map(|j| value(j, k)).sum();
            assert!(
                (found - expected).abs() <= 1e-14 * expected,
                "{i}, {k}: {found} instead of {expected}"
            );
        }
    }
}

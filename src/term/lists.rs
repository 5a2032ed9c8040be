//! Lists of entries of a matrix, line by line.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::factors::Side;
use crate::problem::Weights;

/// Indices in one task, and the most lines.
const TASK: usize = 1 << 11;
const LINES: usize = 512;

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
    for k in 0..N {
        out[from + k] += sums[from + k] - (gone[0][k] + gone[1][k]);
    }
}

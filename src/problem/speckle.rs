//! Entries held out at random, spread over X.
//!
//! Every row has a random stream of its own. So the choice does not depend on the number of threads
//! and processes.

use std::collections::HashSet;

use ndarray::Array2;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

use super::{Problem, Weights};
use crate::error::{Error, Result};
use crate::sparse::{Matrix, SparseMatrix};

/// Largest number of draws per wanted zero of a row.
const DRAWS: usize = 16;
/// Largest number of held-out zeros per held-out stored entry of a sparse X.
pub(super) const ZEROS: usize = 4;
/// The largest share of the observed entries that can be held out.
const LARGEST_FRACTION: f64 = 0.5;
/// The random streams of row 0, for entries and for zeros. The other rows have the following ones.
/// (They differ from those of starts, data and thinned counts.)
const ENTRIES: u64 = 1 << 48;
const OF_ZEROS: u64 = 1 << 49;

impl Problem {
    /// The same problem with a share of its observed entries held out at random ("speckled"): their
    /// weights move from the mask to the [held-out](crate::HeldOut) ones, so that the updates never
    /// see them. Every row and every column keeps an entry for the updates.
    ///
    /// Each row holds out the same share of its entries, rounded up or down at random. A row or
    /// column with positive entries keeps a positive one; a small X may therefore hold out fewer.
    /// Whole rows or columns cannot be held out, because no data would determine their factors.
    ///
    /// For a sparse X the share applies to the stored entries. If entries that are not stored are
    /// zeros, some zeros are held out too, drawn one by one: the same share, but at most four per
    /// held-out stored entry. If there are fewer, their weight is raised, so that the held-out
    /// error has the expectation of that over all of them. The weight of the fitted zeros is
    /// lowered in return. So the cost grows with the number of stored entries, not with n×m.
    ///
    /// # Errors
    /// [`Error::Setting`] for a fraction outside (0, 0.5]; [`Error::HoldOut`] if X has too few
    /// observed entries to hold any out.
    pub fn speckled(&self, fraction: f64, seed: u64) -> Result<Self> {
        let fits = fraction > 0.0 && fraction <= LARGEST_FRACTION;
        let range = "above 0 and at most 0.5";
        Error::require(fits, "the held-out fraction", fraction, range)?;
        let [n, m] = self.whole_shape();
        let (wanted, mut held) = self.drawn_entries(fraction, seed);
        self.give_columns_back(&mut held);
        let count: usize = held.iter().map(Vec::len).sum();
        let count = self.processes().total(count as f64);
        if count == 0.0 {
            return Err(Error::HoldOut {
                wanted: wanted as usize,
                possible: 0,
                rows: n,
                columns: m,
            });
        }
        match self.x() {
            Matrix::Dense(_) => self.without_entries(&held),
            // The share of zeros follows the share of entries that could be held out.
            Matrix::Sparse(x) => {
                let drawn = Drawn {
                    fraction: fraction * count / wanted,
                    count,
                    held,
                };
                self.without_stored(x, drawn, seed)
            }
        }
    }

    /// The observed stored entries of a row: column, and true if positive.
    fn entries_of(&self, row: usize) -> Vec<(u32, bool)> {
        let weight = |column: usize| self.mask().map_or(1.0, |mask| mask[(row, column)]);
        let seen =
            |(column, x): (usize, f64)| (weight(column) > 0.0).then_some((column as u32, x > 0.0));
        match self.x() {
            Matrix::Dense(x) => {
                let entries = x.row(row).into_iter().copied().enumerate();
                entries.filter_map(seen).collect()
            }
            Matrix::Sparse(x) => {
                let (columns, values) = x.row(row);
                let columns = columns.iter().map(|column| *column as usize);
                columns
                    .zip(values.iter().copied())
                    .filter_map(seen)
                    .collect()
            }
        }
    }

    /// The number of wanted entries in all, and the columns that each row holds out.
    fn drawn_entries(&self, fraction: f64, seed: u64) -> (f64, Vec<Vec<u32>>) {
        let first = self.share().rows().start;
        let rows = || (0..self.shape()[0]).into_par_iter();
        let stream = |row: usize| Stream::new(seed, ENTRIES, first + row);
        let lots = rows().map(|row| {
            let count = self.entries_of(row).len();
            let share = (fraction * count as f64).floor() as usize;
            (count, share, stream(row).lot)
        });
        let lots: Vec<(usize, usize, f64)> = lots.collect();
        let all: usize = lots.iter().map(|(count, ..)| count).sum();
        let shares: usize = lots.iter().map(|(_, share, _)| share).sum();
        let mut totals = [all as f64, shares as f64];
        self.processes().sum(&mut totals);
        let wanted = (fraction * totals[0]).round().max(1.0);
        // The remainder is drawn among the rows that have more entries.
        let has_more = |(count, share, _): &&(usize, usize, f64)| share < count;
        let of_lots = lots.iter().filter(has_more).map(|(.., lot)| *lot);
        let lucky = self.lowest(&of_lots.collect::<Vec<f64>>(), wanted - totals[1]);
        let held = rows().map(|row| {
            let (count, share, lot) = lots[row];
            let more = usize::from(share < count && lot <= lucky);
            match share + more {
                0 => Vec::new(),
                count => stream(row).entries(self.entries_of(row), count),
            }
        });
        (wanted, held.collect())
    }

    /// The largest of the `count` lowest lots of all processes.
    fn lowest(&self, lots: &[f64], count: f64) -> f64 {
        let all = self.processes().total(lots.len() as f64);
        let count = count.min(all);
        if count < 1.0 {
            return f64::NEG_INFINITY;
        }
        self.processes().in_places(lots, [count as usize - 1])[0]
    }

    /// Gives an entry back to each column that would have none left, or no positive one. It is the
    /// entry of the first row.
    fn give_columns_back(&self, held: &mut [Vec<u32>]) {
        let first = self.share().rows().start;
        let m = self.shape()[1];
        // A column of zeros that are not stored still has entries.
        let zeros_count = match (self.x(), self.mask()) {
            (Matrix::Sparse(_), Some(Weights::Listed { elsewhere, .. })) => *elsewhere > 0.0,
            (Matrix::Sparse(_), _) => true,
            (Matrix::Dense(_), _) => false,
        };
        for only_positive in [true, false] {
            if !only_positive && zeros_count {
                break;
            }
            let counts = |(_, positive): &&(u32, bool)| *positive || !only_positive;
            // Number of entries of each column, and number of those left.
            let mut columns = vec![[0.0; 2]; m];
            let mut first_held = vec![f64::NEG_INFINITY; m];
            for (index, held) in held.iter().enumerate() {
                for (column, _) in self.entries_of(index).iter().filter(counts) {
                    let of = &mut columns[*column as usize];
                    of[0] += 1.0;
                    if held.binary_search(column).is_err() {
                        of[1] += 1.0;
                    } else if first_held[*column as usize] == f64::NEG_INFINITY {
                        first_held[*column as usize] = -((first + index) as f64);
                    }
                }
            }
            self.processes().sum(columns.as_flattened_mut());
            self.processes().largest(&mut first_held);
            for column in 0..m {
                let [all, left] = columns[column];
                if all > 0.0 && left == 0.0 {
                    let row = -first_held[column] as usize;
                    if let Some(held) = row.checked_sub(first).and_then(|row| held.get_mut(row)) {
                        held.retain(|of| *of != column as u32);
                    }
                }
            }
        }
    }

    /// A dense problem without these entries.
    fn without_entries(&self, columns: &[Vec<u32>]) -> Result<Self> {
        let [n, m] = self.shape();
        let mut held = Array2::from_elem((n, m), false);
        for (row, columns) in columns.iter().enumerate() {
            for column in columns {
                held[[row, *column as usize]] = true;
            }
        }
        let (mask, held_out) = match self.mask() {
            None => (
                Weights::Binary(held.mapv(|held| !held)),
                Weights::Binary(held),
            ),
            Some(Weights::Binary(mask)) => (
                Weights::Binary(Array2::from_shape_fn((n, m), |i| mask[i] && !held[i])),
                Weights::Binary(held),
            ),
            Some(Weights::Real(mask)) => {
                let kept = |of: bool| {
                    Array2::from_shape_fn((n, m), |i| if held[i] == of { mask[i] } else { 0.0 })
                };
                (Weights::Real(kept(false)), Weights::Real(kept(true)))
            }
            Some(Weights::Listed { .. }) => unreachable!("weights of a sparse X"),
        };
        self.with_weights(Some(mask), Some(held_out))
    }

    /// A sparse problem without these stored entries, and without zeros in proportion or weighted.
    fn without_stored(&self, x: &SparseMatrix, drawn: Drawn, seed: u64) -> Result<Self> {
        let Drawn {
            fraction,
            count: held_count,
            held,
        } = drawn;
        let [n, m] = self.shape();
        let (listed, elsewhere) = match self.mask() {
            Some(Weights::Listed { at, elsewhere }) => (Some(at), *elsewhere),
            _ => (None, 1.0),
        };
        let weight =
            |row: usize, column: usize| self.mask().map_or(1.0, |mask| mask[(row, column)]);
        let zeros = if elsewhere > 0.0 { x.unstored() } else { 0.0 };
        let zeros = self.processes().total(zeros);
        let wanted = (fraction * zeros).round().min(ZEROS as f64 * held_count);
        // Each row's share follows its number of zeros. The remainder is drawn.
        let of_row = |row: usize| (m - x.row(row).0.len()) as f64;
        let shares = (0..n).map(|row| (wanted * of_row(row) / zeros.max(1.0)).floor());
        let shares: Vec<f64> = shares.collect();
        let left = wanted - self.processes().total(shares.iter().sum());
        let first = self.share().rows().start;
        let stream = |row: usize| Stream::new(seed, OF_ZEROS, first + row);
        let lots: Vec<f64> = (0..n).into_par_iter().map(|row| stream(row).lot).collect();
        let lucky = self.lowest(&lots, left);
        let drawn = (0..n).into_par_iter().map(|row| {
            let more = f64::from(lots[row] <= lucky);
            stream(row).places((shares[row] + more) as usize, m, |column| {
                x.get(row, column).is_none()
                    && listed.is_none_or(|at| at.get(row, column).is_none())
            })
        });
        let drawn: Vec<Vec<u32>> = drawn.collect();
        let count: usize = drawn.iter().map(Vec::len).sum();
        let count = self.processes().total(count as f64);
        // On average over all draws, each zero has weight `fraction` in the outer error and the
        // rest in the fit. If the zeros are drawn in proportion (up to rounding), no weights are
        // needed.
        let (heavier, lighter) = if count > 0.0 && count < (fraction * zeros).round() {
            let rest = (zeros - count).max(1.0);
            (fraction * zeros / count, (1.0 - fraction) * zeros / rest)
        } else {
            (1.0, 1.0)
        };
        let mut unseen = Vec::new();
        for row in 0..n {
            let stored = held[row].iter();
            let stored = stored.map(|column| (*column, weight(row, *column as usize)));
            let zeros = drawn[row]
                .iter()
                .map(|column| (*column, elsewhere * heavier));
            let of_row = stored.chain(zeros);
            unseen.extend(of_row.map(|(column, weight)| (row as u32, column, weight)));
        }
        let held_out = SparseMatrix::from_triplets([n, m], unseen)?;
        let mut weights: Vec<(u32, u32, f64)> = match listed {
            Some(at) => at
                .triplets()
                .map(|(i, j, weight)| (i as u32, j as u32, weight))
                .collect(),
            // Stored entries keep their weight if that of the zeros changes.
            _ if lighter != 1.0 => x
                .triplets()
                .map(|(i, j, _)| (i as u32, j as u32, 1.0))
                .collect(),
            _ => Vec::new(),
        };
        weights.retain(|(i, j, _)| held_out.get(*i as usize, *j as usize).is_none());
        weights.extend(
            held_out
                .triplets()
                .map(|(i, j, _)| (i as u32, j as u32, 0.0)),
        );
        let mask = Weights::Listed {
            at: SparseMatrix::from_triplets([n, m], weights)?,
            elsewhere: elsewhere * lighter,
        };
        let held_out = Weights::Listed {
            at: held_out,
            elsewhere: 0.0,
        };
        self.with_weights(Some(mask), Some(held_out))
    }
}

/// The random numbers of a row.
struct Stream {
    /// The rows with the lowest lots hold out one more.
    lot: f64,
    generator: ChaCha8Rng,
}

impl Stream {
    fn new(seed: u64, first: u64, row: usize) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(first + row as u64);
        Self {
            lot: generator.random(),
            generator,
        }
    }

    /// The columns of `count` entries. There may be fewer, because the row keeps an entry, and a
    /// positive one if it has any.
    fn entries(mut self, mut all: Vec<(u32, bool)>, count: usize) -> Vec<u32> {
        let count = count.min(all.len().saturating_sub(1));
        let mut positive = all.iter().filter(|(_, positive)| *positive).count();
        all.shuffle(&mut self.generator);
        let mut drawn = Vec::with_capacity(count);
        for (column, is_positive) in all {
            if drawn.len() < count && !(is_positive && positive == 1) {
                positive -= usize::from(is_positive);
                drawn.push(column);
            }
        }
        drawn.sort_unstable();
        drawn
    }

    /// `count` columns below `m` for which a condition holds, or fewer if they are rare.
    fn places(mut self, count: usize, m: usize, holds: impl Fn(usize) -> bool) -> Vec<u32> {
        let mut drawn = HashSet::with_capacity(count);
        for _ in 0..DRAWS * count {
            if drawn.len() == count {
                break;
            }
            let column = self.generator.random_range(0..m);
            if holds(column) {
                drawn.insert(column as u32);
            }
        }
        let mut drawn: Vec<u32> = drawn.into_iter().collect();
        drawn.sort_unstable();
        drawn
    }
}

/// The stored entries that are held out.
struct Drawn {
    /// Their columns, row by row.
    held: Vec<Vec<u32>>,
    /// Their number.
    count: f64,
    /// Their share of all entries.
    fraction: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::Precision;

    #[test]
    fn so_many_entries_are_held_out_and_no_row_or_column_is_empty() {
        let x = Array2::from_shape_fn((40, 25), |(i, j)| 1.0 + ((i * j) % 7) as f64);
        for (fraction, seed) in [(0.001, 0), (0.1, 1), (0.5, 2)] {
            let problem = Problem::new(&x, Precision::F64).unwrap();
            let problem = problem.speckled(fraction, seed).unwrap();
            let mask = problem.mask().unwrap().to_array();
            let held = problem.held_out_weights().unwrap().to_array();
            assert_eq!(held.sum(), (1000.0 * fraction).round());
            // Each entry is in exactly one of the two.
            assert!((&mask + &held).iter().all(|weight| *weight == 1.0));
            assert!(mask.rows().into_iter().all(|row| row.sum() > 0.0));
            assert!(mask.columns().into_iter().all(|column| column.sum() > 0.0));
            // The outer error still sees the held-out entries.
            assert_eq!(problem.x().as_dense(), Some(&x));
        }
    }

    #[test]
    fn weights_go_along_and_the_seed_decides() {
        let x = Array2::<f64>::ones((12, 9));
        let weights = Array2::from_shape_fn((12, 9), |(i, j)| ((i + 2 * j) % 4) as f64);
        let held = |seed| {
            let problem = Problem::masked(&x, &weights, Precision::F64).unwrap();
            let problem = problem.speckled(0.25, seed).unwrap();
            let held = problem.held_out_weights().unwrap().to_array();
            assert_eq!(problem.mask().unwrap().to_array() + &held, weights);
            held
        };
        assert_eq!(held(5), held(5));
        assert_ne!(held(5), held(6));
        let entries = held(5).iter().filter(|weight| **weight > 0.0).count();
        let observed = weights.iter().filter(|weight| **weight > 0.0).count();
        assert_eq!(entries, (0.25 * observed as f64).round() as usize);
    }

    #[test]
    fn what_cannot_be_held_out_is_refused() {
        let problem = || Problem::new(&Array2::<f64>::ones((6, 5)), Precision::F64).unwrap();
        for fraction in [0.0, -0.1, 0.51, 1.0, f64::NAN] {
            let found = problem().speckled(fraction, 0);
            assert!(matches!(found, Err(Error::Setting { .. })), "{fraction}");
        }
        // Every column has a single entry, so none can be held out.
        let row = Problem::new(&Array2::<f64>::ones((1, 5)), Precision::F64).unwrap();
        assert!(matches!(
            row.speckled(0.2, 0),
            Err(Error::HoldOut {
                wanted: 1,
                possible: 0,
                rows: 1,
                columns: 5
            })
        ));
    }
}

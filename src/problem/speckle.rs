//! Entries held out at random, all over X.

use std::collections::HashSet;

use ndarray::Array2;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::{Problem, Weights};
use crate::error::{Error, Result};
use crate::sparse::{Matrix, SparseMatrix};

/// Draws for each entry that is wanted before all entries are tried in turn.
const DRAWS: usize = 16;
/// Zeros of a sparse X that are held out for each stored entry that is, at most.
pub(super) const ZEROS: usize = 4;
/// The largest share of the observed entries that can be held out.
const LARGEST_FRACTION: f64 = 0.5;

impl Problem {
    /// The same problem with a share of its observed entries held out at random
    /// ("speckled"): their weights move from the mask to the
    /// [held-out](crate::HeldOut) ones, so that the updates never see them. Every row
    /// and every column keeps an entry that they do see.
    ///
    /// A row or column with positive entries keeps a positive one. Whole rows or columns could
    /// not be held out in this way: their factors would be known from nothing.
    ///
    /// Of a sparse X that share of its stored entries is held out. Where what is not stored are
    /// zeros, some of them are held out too, drawn one by one: the same share of them, but at
    /// most four for each stored entry, which then weigh more, so that the held-out error
    /// has the expectation that it has with all of them; the zeros that are fitted weigh less in
    /// return. So it takes as long as what is held out, not as long as n×m.
    ///
    /// # Errors
    /// [`Error::Setting`] for a fraction outside (0, 0.5]; [`Error::HoldOut`] if X is
    /// too small or its mask too empty for so many.
    pub fn speckled(&self, fraction: f64, seed: u64) -> Result<Self> {
        if !(fraction > 0.0 && fraction <= LARGEST_FRACTION) {
            return Err(Error::Setting {
                setting: "the held-out fraction",
                value: fraction,
                range: "above 0 and at most 0.5",
            });
        }
        if let Matrix::Sparse(x) = self.x() {
            return self.speckled_sparse(x, fraction, seed);
        }
        let [n, m] = self.shape();
        let weight = |index| self.mask().map_or(1.0, |mask| mask[index]);
        let (mut in_row, mut in_column) = (vec![0usize; n], vec![0usize; m]);
        let mut positive = Counts::new(n, m);
        for (row, column, x) in self.x.entries() {
            if weight((row, column)) > 0.0 {
                in_row[row] += 1;
                in_column[column] += 1;
                positive.add(row, column, usize::from(x > 0.0));
            }
        }
        let observed: usize = in_row.iter().sum();
        let wanted = ((fraction * observed as f64).round() as usize).max(1);
        let mut held = Array2::from_elem((n, m), false);
        let mut found = 0;
        // Takes an entry out, unless it is out already or the last of its row or column.
        let mut take = |(row, column): (usize, usize)| {
            let index = (row, column);
            let is_positive = self.x.entry(row, column) > 0.0;
            let spare = in_row[row] > 1
                && in_column[column] > 1
                && (!is_positive || positive.spares(row, column));
            if found < wanted && spare && !held[index] && weight(index) > 0.0 {
                in_row[row] -= 1;
                in_column[column] -= 1;
                if is_positive {
                    positive.take(row, column);
                }
                held[index] = true;
                found += 1;
            }
            found < wanted
        };
        let mut generator = generator(seed);
        // Most draws hit an entry that can be held out: nothing as large as X is shuffled.
        let more = (0..DRAWS * wanted)
            .all(|_| take((generator.random_range(0..n), generator.random_range(0..m))));
        if more {
            // Where few are left to take, all that are left are tried.
            let all = (0..n).flat_map(|row| (0..m).map(move |column| (row, column)));
            let mut rest: Vec<(usize, usize)> = all.collect();
            rest.shuffle(&mut generator);
            rest.into_iter().all(take);
        }
        if found < wanted {
            return Err(Error::HoldOut {
                wanted,
                possible: found,
                rows: n,
                columns: m,
            });
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

    /// Stored entries, and zeros in proportion or weighted.
    fn speckled_sparse(&self, x: &SparseMatrix, fraction: f64, seed: u64) -> Result<Self> {
        let [n, m] = self.shape();
        let weight =
            |row: usize, column: usize| self.mask().map_or(1.0, |mask| mask[(row, column)]);
        let elsewhere = match self.mask() {
            Some(Weights::Listed { elsewhere, .. }) => *elsewhere,
            _ => 1.0,
        };
        // The stored entries that are seen, in random order.
        let mut positive = Counts::new(n, m);
        let mut seen: Vec<(u32, u32, f64)> = Vec::new();
        for (row, column, value) in x.triplets() {
            if weight(row, column) > 0.0 {
                positive.add(row, column, usize::from(value > 0.0));
                seen.push((row as u32, column as u32, value));
            }
        }
        let wanted = ((fraction * seen.len() as f64).round() as usize).max(1);
        let mut generator = generator(seed);
        seen.shuffle(&mut generator);
        let mut held: Vec<(u32, u32, f64)> = Vec::with_capacity(wanted);
        for (row, column, value) in seen {
            let (i, j) = (row as usize, column as usize);
            if held.len() == wanted {
                break;
            }
            if value == 0.0 || positive.spares(i, j) {
                if value > 0.0 {
                    positive.take(i, j);
                }
                held.push((row, column, weight(i, j)));
            }
        }
        if held.is_empty() {
            return Err(Error::HoldOut {
                wanted,
                possible: held.len(),
                rows: n,
                columns: m,
            });
        }
        // Where every row and column keeps an entry, fewer may be possible; the zeros go by
        // what was possible.
        let fraction = fraction * held.len() as f64 / wanted as f64;
        let zeros = if elsewhere > 0.0 { x.unstored() } else { 0.0 };
        let most = (ZEROS * held.len()) as f64;
        let count = (fraction * zeros).round().min(most);
        let mut drawn = HashSet::new();
        let mut draws = 0.0;
        while (drawn.len() as f64) < count && draws < DRAWS as f64 * count {
            draws += 1.0;
            let at = (generator.random_range(0..n), generator.random_range(0..m));
            let is_listed = matches!(self.mask(), Some(Weights::Listed { at: listed, .. })
                if listed.get(at.0, at.1).is_some());
            if x.get(at.0, at.1).is_none() && !is_listed {
                drawn.insert((at.0 as u32, at.1 as u32));
            }
        }
        let count = drawn.len() as f64;
        // Each zero counts `fraction` in the outer error and the rest in the fit, on average
        // over all draws.
        let (heavier, lighter) = if count > 0.0 {
            let rest = (zeros - count).max(1.0);
            (fraction * zeros / count, (1.0 - fraction) * zeros / rest)
        } else {
            (0.0, 1.0)
        };
        // In proportion, but for rounding: then nothing needs a weight.
        let plain = count >= (fraction * zeros).round();
        let (heavier, lighter) = if plain {
            (1.0, 1.0)
        } else {
            (heavier, lighter)
        };
        let mut unseen: Vec<(u32, u32, f64)> = held.clone();
        unseen.extend(drawn.iter().map(|(i, j)| (*i, *j, elsewhere * heavier)));
        let held_out = SparseMatrix::from_triplets([n, m], unseen)?;
        let mut weights: Vec<(u32, u32, f64)> = match self.mask() {
            Some(Weights::Listed { at, .. }) => at
                .triplets()
                .map(|(i, j, weight)| (i as u32, j as u32, weight))
                .collect(),
            // Stored entries keep their weight where that of the zeros changes.
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

/// The generator of held-out entries: another stream than those of starts and data.
fn generator(seed: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(3);
    generator
}

/// How many entries of some kind each row and column has.
struct Counts {
    rows: Vec<usize>,
    columns: Vec<usize>,
}

impl Counts {
    fn new(rows: usize, columns: usize) -> Self {
        Self {
            rows: vec![0; rows],
            columns: vec![0; columns],
        }
    }

    fn add(&mut self, row: usize, column: usize, count: usize) {
        self.rows[row] += count;
        self.columns[column] += count;
    }

    /// Whether row and column have others.
    fn spares(&self, row: usize, column: usize) -> bool {
        self.rows[row] > 1 && self.columns[column] > 1
    }

    fn take(&mut self, row: usize, column: usize) {
        self.rows[row] -= 1;
        self.columns[column] -= 1;
    }
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
            // Each entry is in one of the two, never in both.
            assert!((&mask + &held).iter().all(|weight| *weight == 1.0));
            assert!(mask.rows().into_iter().all(|row| row.sum() > 0.0));
            assert!(mask.columns().into_iter().all(|column| column.sum() > 0.0));
            // What is held out is still known to the outer error.
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
        // A row for which there is one entry only: nothing can be spared.
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

//! Entries held out at random, all over X.

use ndarray::Array2;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::{Problem, Weights};
use crate::error::{Error, Result};

/// Draws for each entry that is wanted before all entries are tried in turn.
const DRAWS: usize = 16;
/// The largest share of the observed entries that can be held out.
const LARGEST_FRACTION: f64 = 0.5;

impl Problem {
    /// The same problem with a share of its observed entries held out at random
    /// ("speckled"): their weights move from the mask to the
    /// [held-out](crate::HeldOut) ones, so that the updates never see them. Every row
    /// and every column keeps an entry that they do see.
    ///
    /// Whole rows or columns could not be held out in this way: their factors would be
    /// known from nothing.
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
        let [n, m] = self.shape();
        let weight = |index| self.mask().map_or(1.0, |mask| mask[index]);
        let (mut in_row, mut in_column) = (vec![0usize; n], vec![0usize; m]);
        for index in (0..n).flat_map(|row| (0..m).map(move |column| (row, column))) {
            if weight(index) > 0.0 {
                in_row[index.0] += 1;
                in_column[index.1] += 1;
            }
        }
        let observed: usize = in_row.iter().sum();
        let wanted = ((fraction * observed as f64).round() as usize).max(1);
        let mut held = Array2::from_elem((n, m), false);
        let mut found = 0;
        // Takes an entry out, unless it is out already or the last of its row or column.
        let mut take = |(row, column): (usize, usize)| {
            let index = (row, column);
            let spare = in_row[row] > 1 && in_column[column] > 1;
            if found < wanted && spare && !held[index] && weight(index) > 0.0 {
                in_row[row] -= 1;
                in_column[column] -= 1;
                held[index] = true;
                found += 1;
            }
            found < wanted
        };
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        // Another stream than those of starts and data.
        generator.set_stream(3);
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
        };
        self.with_weights(Some(mask), Some(held_out))
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
            assert_eq!(problem.x(), &x);
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

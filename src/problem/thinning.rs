//! Counts split into two parts at random.

use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Binomial, Distribution};
use rayon::prelude::*;

use super::checks::{first_entry, needed};
use super::stored::{CountsPart, Stored};
use super::{Problem, Weights};
use crate::error::{Error, Result};
use crate::sparse::Matrix;

/// The largest share of the counts that the updates do not see.
const LARGEST_SHARE: f64 = 0.5;
/// The largest whole number up to which all whole numbers are exact.
const LARGEST_COUNT: f64 = 9_007_199_254_740_992.0;
/// The random stream of row 0. The other rows have the following ones. (They differ from those of
/// starts, data and held-out entries.)
const FIRST_STREAM: u64 = 1 << 32;

impl Problem {
    /// The first observed entry that is not a count: not a whole number, or too large.
    fn first_fraction(&self) -> Option<(usize, usize)> {
        let needed = needed(self.mask(), None);
        first_entry(&self.x, |index, x| {
            needed(index) && (x.fract() != 0.0 || x > LARGEST_COUNT)
        })
    }

    /// Returns true if X looks like counts: whole numbers, not only zeros and ones, and not a scale
    /// with an end (pixels, grades).
    pub fn has_counts(&self) -> bool {
        self.reason_against_counts().is_none()
    }

    /// The reason why X does not look like counts. `None` if it does.
    pub(crate) fn reason_against_counts(&self) -> Option<&'static str> {
        let needed = needed(self.mask(), None);
        let more_than_one = first_entry(&self.x, |index, x| needed(index) && x > 1.0);
        let processes = self.processes();
        let more_than_one = processes.any(more_than_one.is_some());
        if processes.any(self.first_fraction().is_some()) {
            Some("X has fractions")
        } else if !more_than_one {
            Some("X has only zeros and ones")
        } else if self.has_a_scale() {
            Some("the whole numbers of X look like a scale with an end, such as pixels or grades")
        } else {
            None
        }
    }

    /// The same problem with its counts thinned: each count goes to the outer error with
    /// probability `share`, and to the updates otherwise.
    ///
    /// $$ z_{ij} \sim \text{Binomial}(x_{ij}, s) / s, \qquad x'_{ij} = (x_{ij} - s z_{ij}) / (1 - s) $$
    ///
    /// For Poisson counts the two parts are independent. Both are scaled to X's mean, so that WH
    /// needs no scaling. The updates see X' ([`x`](Self::x)), and a [held-out](crate::HeldOut)
    /// outer error sees Z ([`second`](Self::second)). Every entry is in both, so nothing is
    /// missing. Every row and every column with a count keeps one for the updates.
    ///
    /// For a sparse X the outer error has every stored entry and a weighted sample of the zeros, so
    /// that the cost grows with the number of stored entries.
    ///
    /// # Errors
    /// [`Error::Setting`] for a share outside (0, 0.5]; [`Error::NotCounts`] with the first
    /// observed entry that is not a count.
    pub fn thinned(&self, share: f64, seed: u64) -> Result<Self> {
        let fits = share > 0.0 && share <= LARGEST_SHARE;
        Error::require(fits, "the thinned share", share, "above 0 and at most 0.5")?;
        let of_counts = self.first_fraction().map_or(Ok(()), |(row, column)| {
            let value = self.x.entry(row, column);
            Err(Error::NotCounts { row, column, value })
        });
        self.share().agree(of_counts)?;
        let (n, first_row) = (self.shape()[0], self.share().rows().start);
        let lengths = (0..n).map(|row| match self.x() {
            Matrix::Dense(x) => x.ncols(),
            Matrix::Sparse(x) => x.row(row).0.len(),
        });
        let mut taken = vec![0.0; lengths.clone().sum()];
        let mut rest = taken.as_mut_slice();
        let rows = lengths.enumerate().map(|(row, length)| {
            let (of_row, others) = std::mem::take(&mut rest).split_at_mut(length);
            rest = others;
            (row, of_row)
        });
        let rows: Vec<(usize, &mut [f64])> = rows.collect();
        rows.into_par_iter().for_each(|(row, taken)| {
            // The stream depends on the row alone, not on the thread or process.
            let mut generator = ChaCha8Rng::seed_from_u64(seed);
            generator.set_stream(FIRST_STREAM + (first_row + row) as u64);
            let draw = |count: &f64| {
                if *count > 0.0 {
                    let draw = Binomial::new(*count as u64, share).expect("a probability");
                    draw.sample(&mut generator) as f64
                } else {
                    0.0
                }
            };
            let counts = match self.x() {
                Matrix::Dense(x) => x.row(row).to_slice().expect("in row order"),
                Matrix::Sparse(x) => x.row(row).1,
            };
            for (taken, draw) in taken.iter_mut().zip(counts.iter().map(draw)) {
                *taken = draw;
            }
        });
        self.give_back(&mut taken);
        // (Whole numbers times a number: data terms keep these in half the memory.)
        let (of_seen, of_unseen) = ((1.0 - share).recip(), share.recip());
        let parts = CountsPart::both(&self.x, &taken, [of_seen, of_unseen]);
        let [seen, unseen] = parts.unwrap_or_else(|| {
            let seen = self.with_stored(&|slot, count| (count - taken[slot]) * of_seen);
            let unseen = match self.with_stored(&|slot, _| taken[slot] * of_unseen) {
                // Most entries have no count in the second part.
                Matrix::Sparse(unseen) => Matrix::Sparse(unseen.filter(|_, _, count| count > 0.0)),
                dense => dense,
            };
            [seen, unseen].map(Stored::from)
        });
        let all = || Arc::new(Weights::ones(self.x()));
        let weights = match self.x() {
            Matrix::Dense(_) => self.mask.clone().unwrap_or_else(all),
            Matrix::Sparse(x) => Arc::new(self.with_drawn_zeros(x, seed)),
        };
        Ok(Self {
            x: seen,
            held_out: Some(weights),
            second: Some(unseen),
            tensors: Arc::default(),
            ..self.clone()
        })
    }

    /// X with other values of the stored entries, which are numbered row by row.
    fn with_stored(&self, value: &dyn Fn(usize, f64) -> f64) -> Matrix {
        match self.x() {
            Matrix::Dense(x) => {
                let values = x.iter().enumerate().map(|(slot, x)| value(slot, *x));
                let values = ndarray::Array2::from_shape_vec(x.dim(), values.collect());
                values.expect("as many as before").into()
            }
            Matrix::Sparse(x) => {
                let values = x.values().iter().enumerate();
                let values = values.map(|(slot, x)| value(slot, *x)).collect();
                x.with_values(values).into()
            }
        }
    }

    /// Gives the largest count of a row or column back to the updates if they would see none of it.
    /// Its factors would otherwise become zero and stay so.
    fn give_back(&self, taken: &mut [f64]) {
        let weight = |index| self.mask().map_or(1.0, |mask| mask[index]);
        let [n, m] = self.shape();
        let survey = |lines: usize, line_of: &dyn Fn(usize, usize) -> usize, taken: &[f64]| {
            // For each line: true if it keeps a count, and its largest count.
            let mut keeps = vec![0.0; lines];
            let mut largest: Vec<Option<Largest>> = vec![None; lines];
            for (slot, (row, column, count)) in self.x().entries().enumerate() {
                let line = line_of(row, column);
                if keeps[line] > 0.0 || count == 0.0 || weight((row, column)) == 0.0 {
                    continue;
                }
                keeps[line] = f64::from(count > taken[slot]);
                if count > largest[line].map_or(0.0, |of| of.count) {
                    largest[line] = Some(Largest { slot, row, count });
                }
            }
            (keeps, largest)
        };
        let (keeps, largest) = survey(n, &|row, _| row, taken);
        for (keeps, largest) in keeps.iter().zip(&largest) {
            if let (true, Some(largest)) = (*keeps == 0.0, largest) {
                taken[largest.slot] = 0.0;
            }
        }
        // A column has entries in all processes. The first of its largest counts is given back.
        let (mut keeps, largest) = survey(m, &|_, column| column, taken);
        let processes = self.processes();
        processes.largest(&mut keeps);
        let counts = largest.iter().map(|of| of.map_or(0.0, |of| of.count));
        let mut counts: Vec<f64> = counts.collect();
        processes.largest(&mut counts);
        let first_row = self.share().rows().start;
        let owner = |column: usize| {
            let own = largest[column].filter(|of| of.count == counts[column]);
            own.map_or(f64::NEG_INFINITY, |of| -((first_row + of.row) as f64))
        };
        let own: Vec<f64> = (0..m).map(owner).collect();
        let mut first = own.clone();
        processes.largest(&mut first);
        for column in (0..m).filter(|column| keeps[*column] == 0.0) {
            if let (true, Some(largest)) = (own[column] == first[column], largest[column]) {
                taken[largest.slot] = 0.0;
            }
        }
    }
}

/// The largest count of a line.
#[derive(Debug, Clone, Copy)]
struct Largest {
    slot: usize,
    row: usize,
    count: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::Precision;
    use crate::sparse::SparseMatrix;
    use ndarray::{Array2, array};

    #[test]
    fn both_parts_are_counts_and_make_up_the_whole() {
        let x = Array2::from_shape_fn((60, 40), |(i, j)| ((i * 7 + j * 3) % 11) as f64);
        let problem = Problem::new(&x, Precision::F64).unwrap();
        let share = 0.25;
        let thinned = problem.thinned(share, 3).unwrap();
        let second = thinned.second().unwrap();
        let (mut sum, mut squares) = (0.0, 0.0);
        for (index, x) in x.indexed_iter() {
            let at = |matrix: &Matrix| matrix.entry(index.0, index.1);
            let (seen, unseen) = (at(thinned.x()) * (1.0 - share), at(second) * share);
            assert!((seen + unseen - x).abs() < 1e-12, "{index:?}");
            assert!((unseen - unseen.round()).abs() < 1e-12 && unseen >= 0.0);
            sum += unseen - share * x;
            squares += (unseen - share * x).powi(2);
        }
        // Mean 0 and variance s (1 − s) x, within four standard errors.
        let variance = share * (1.0 - share) * x.sum();
        assert!(sum.abs() < 4.0 * variance.sqrt(), "{sum}");
        assert!(
            (squares / variance - 1.0).abs() < 0.15,
            "{squares} {variance}"
        );
        assert!(thinned.mask().is_none());
        assert_eq!(thinned.held_out_weights().unwrap().sum(), 2400.0);
        let again = problem.thinned(share, 3).unwrap();
        assert_eq!(again.second(), thinned.second());
        assert_ne!(
            problem.thinned(share, 4).unwrap().second(),
            thinned.second()
        );
    }

    #[test]
    fn a_row_or_column_with_counts_keeps_some() {
        let x = Array2::from_shape_fn((50, 50), |(i, j)| f64::from(u8::from(i == j)));
        let problem = Problem::new(&x, Precision::F64).unwrap();
        let thinned = problem.thinned(0.5, 0).unwrap();
        let seen = thinned.x().to_dense();
        assert!(seen.rows().into_iter().all(|row| row.sum() > 0.0));
        assert!(!problem.has_counts(), "zeros and ones may be anything");
    }

    #[test]
    fn a_sparse_matrix_is_split_like_the_same_dense_one() {
        let count = |i: usize, j: usize| ((i * 5 + j * 3) % 7).saturating_sub(4) as f64;
        let x = ndarray::Array2::from_shape_fn((30, 20), |(i, j)| count(i, j));
        let rows = x.rows().into_iter().map(|row| {
            let counts = row.into_iter().enumerate().filter(|(_, x)| **x > 0.0);
            counts.map(|(j, x)| (j as u32, *x)).collect()
        });
        let sparse = SparseMatrix::from_rows(20, rows);
        let zeros = crate::sparse::Zeros::Data;
        let sparse = Problem::sparse(sparse, zeros, None, Precision::F64).unwrap();
        let sparse = sparse.thinned(0.3, 9).unwrap();
        let dense = Problem::new(&x, Precision::F64)
            .unwrap()
            .thinned(0.3, 9)
            .unwrap();
        assert_eq!(sparse.x().to_dense(), dense.x().to_dense());
        let second = |problem: &Problem| problem.second().unwrap().to_dense();
        assert_eq!(second(&sparse), second(&dense));
        let weights = sparse.held_out_weights().unwrap();
        assert!(sparse.x().entries().all(|(i, j, _)| weights[(i, j)] == 1.0));
    }

    #[test]
    fn what_is_no_count_is_refused_unless_it_is_missing() {
        let x = array![[1.0, 2.0], [3.5, 4.0]];
        let problem = Problem::new(&x, Precision::F64).unwrap();
        assert!(!problem.has_counts());
        assert!(matches!(
            problem.thinned(0.1, 0),
            Err(Error::NotCounts { row: 1, column: 0, value }) if value == 3.5
        ));
        let mask = array![[1.0, 1.0], [0.0, 1.0]];
        let masked = Problem::masked(&x, &mask, Precision::F64).unwrap();
        assert!(masked.has_counts());
        let thinned = masked.thinned(0.1, 0).unwrap();
        assert_eq!(thinned.held_out_weights().unwrap().sum(), 3.0);
        for share in [0.0, 0.6, f64::NAN] {
            let found = masked.thinned(share, 0);
            assert!(matches!(found, Err(Error::Setting { .. })), "{share}");
        }
    }
}

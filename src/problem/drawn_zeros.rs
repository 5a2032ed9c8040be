//! The zeros of a sparse matrix in an outer error, estimated from a random sample.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::{Problem, Weights};
use crate::sparse::SparseMatrix;

/// Number of draws of zeros per stored entry.
pub(super) const DRAWS: usize = 2;
/// The random stream of the draws. (It differs from those of starts, data and held-out entries.)
const STREAM: u64 = 4;

impl Problem {
    /// Weights of an outer error over all entries of a sparse X, zeros included.
    ///
    /// Stored entries count once. Some of the others are drawn. A draw has the inverse of its
    /// probability as weight, so that the sum over the draws has the expectation of the sum over
    /// all zeros. Half of the draws are uniform over all places. The other half follow the sums of
    /// the rows and columns of X, because WH is large there. If there are hardly more zeros than
    /// draws, all zeros count.
    ///
    /// # Shapes
    /// n×m.
    pub(super) fn with_drawn_zeros(&self, x: &SparseMatrix, seed: u64) -> Weights {
        let ([rows_here, m], n) = (x.shape(), self.share().all());
        let elsewhere = match self.mask() {
            Some(Weights::Listed { elsewhere, .. }) => *elsewhere,
            _ => 1.0,
        };
        let mut totals = [x.stored() as f64, x.unstored()];
        self.processes().sum(&mut totals);
        let [stored, unstored] = totals;
        let draws = DRAWS * stored as usize;
        if elsewhere == 0.0 || unstored <= draws as f64 {
            return self
                .mask()
                .cloned()
                .unwrap_or_else(|| Weights::ones(self.x()));
        }
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(STREAM);
        // Running sums of the rows and of the columns. Every process makes all draws, and keeps
        // those in its rows.
        let (mut of_rows, mut of_columns) = (vec![0.0; rows_here], vec![0.0; m]);
        for (row, column, value) in x.triplets() {
            of_rows[row] += value;
            of_columns[column] += value;
        }
        let of_rows = self.processes().gather_on_all(of_rows);
        self.processes().sum(&mut of_columns);
        let here = self.share().rows();
        let (rows, columns) = (running(&of_rows), running(&of_columns));
        let total = rows[n - 1];
        let places = n as f64 * m as f64;
        let probability = |row: usize, column: usize| {
            0.5 / places + 0.5 * (of_rows[row] / total) * (of_columns[column] / total)
        };
        let mut weights: Vec<(u32, u32, f64)> = Vec::new();
        for draw in 0..draws {
            let (row, column) = if draw % 2 == 0 {
                (generator.random_range(0..n), generator.random_range(0..m))
            } else {
                let row = hit(&rows, generator.random::<f64>() * total);
                (row, hit(&columns, generator.random::<f64>() * total))
            };
            let probability = probability(row, column);
            let Some(row) = row.checked_sub(here.start).filter(|row| *row < rows_here) else {
                continue;
            };
            // A draw that hits a stored entry is dropped. The probabilities of the others stay as
            // they are.
            if x.get(row, column).is_none() {
                let weight = self.mask().map_or(1.0, |mask| mask[(row, column)]);
                let weight = weight / (draws as f64 * probability);
                weights.push((row as u32, column as u32, weight));
            }
        }
        // A place that is drawn twice has twice the weight.
        weights.sort_unstable_by_key(|(row, column, _)| (*row, *column));
        weights.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });
        weights.extend(x.triplets().map(|(row, column, _)| {
            let weight = self.mask().map_or(1.0, |mask| mask[(row, column)]);
            (row as u32, column as u32, weight)
        }));
        let at = SparseMatrix::from_triplets([rows_here, m], weights);
        Weights::Listed {
            at: at.expect("each place once, inside the matrix"),
            elsewhere: 0.0,
        }
    }
}

/// Running sums, each including its own number.
fn running(numbers: &[f64]) -> Vec<f64> {
    let sums = numbers.iter().scan(0.0, |sum, number| {
        *sum += number;
        Some(*sum)
    });
    sums.collect()
}

/// Index of the first running sum above a number.
fn hit(sums: &[f64], number: f64) -> usize {
    sums.partition_point(|sum| *sum <= number)
        .min(sums.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::Precision;
    use crate::sparse::Zeros;

    /// Counts whose rows and columns differ a lot in size.
    fn counts() -> SparseMatrix {
        let mut triplets = Vec::new();
        for i in 0..300u32 {
            for j in 0..200u32 {
                let rare = (i * 7 + j * 13 + i * j) % 61;
                if rare * (1 + i % 17) * (1 + j % 13) < 90 {
                    triplets.push((i, j, f64::from(1 + (i + j) % 4)));
                }
            }
        }
        SparseMatrix::from_triplets([300, 200], triplets).unwrap()
    }

    #[test]
    fn drawn_zeros_stand_for_all_zeros() {
        let x = counts();
        let problem = Problem::sparse(x.clone(), Zeros::Data, None, Precision::F64).unwrap();
        assert!(x.unstored() > 5.0 * x.stored() as f64, "{}", x.stored());
        // A possible WH, and its smoothed divergence at a zero.
        let (rows, columns) = (
            |i: usize| 1.0 / (1 + i % 17) as f64,
            |j: usize| 1.0 / (1 + j % 13) as f64,
        );
        let value = |i, j| {
            let y: f64 = rows(i) * columns(j);
            y - 0.5 * (1.0 + y / 0.5).ln()
        };
        let exact: f64 = (0..300)
            .flat_map(|i| (0..200).map(move |j| (i, j)))
            .filter(|(i, j)| x.get(*i, *j).is_none())
            .map(|(i, j)| value(i, j))
            .sum();
        let mut mean = 0.0;
        for seed in 0..20 {
            let weights = problem.with_drawn_zeros(&x, seed);
            let Weights::Listed { at, elsewhere } = &weights else {
                panic!("{weights:?}");
            };
            assert_eq!(*elsewhere, 0.0);
            let drawn = at.triplets().filter(|(i, j, _)| x.get(*i, *j).is_none());
            let sum: f64 = drawn.map(|(i, j, weight)| weight * value(i, j)).sum();
            assert!((sum / exact - 1.0).abs() < 0.1, "{sum} {exact}");
            mean += sum / 20.0;
            assert!(x.triplets().all(|(i, j, _)| weights[(i, j)] == 1.0));
        }
        assert!((mean / exact - 1.0).abs() < 0.015, "{mean} {exact}");
        let again = |seed| problem.with_drawn_zeros(&x, seed);
        assert_eq!(again(3), again(3));
        assert_ne!(again(3), again(4));
    }
}

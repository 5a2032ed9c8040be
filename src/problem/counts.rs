//! The kind of numbers in X: the share of zeros, and whole numbers that are not counts.

use super::checks::needed;
use super::{Problem, Weights};

/// The dispersion of X is tested only with at least this many degrees of freedom. Its standard
/// error is then below 0.15.
const ENOUGH: f64 = 100.0;
/// Poisson counts around any model have a dispersion of 1 or more. Ratings around 3.5, from
/// 1 to 5, have 0.3.
const DISPERSION: f64 = 0.5;
/// The largest numbers of 8 and 16 bits.
const FULL: [f64; 2] = [255.0, 65535.0];
/// With at least this many entries at the largest number of 8 or 16 bits, X is not taken for
/// counts.
const SOME: usize = 5;
/// The largest entry is the end of a scale if it occurs at least this often, and more often than
/// the two numbers below it together.
const MANY: usize = 20;

impl Problem {
    /// The weighted share of the observed entries that are zero.
    pub(crate) fn share_of_zeros(&self) -> f64 {
        let [n, m] = self.shape();
        let mask = self.mask();
        let positive = self.x().entries().filter(|(.., x)| *x > 0.0);
        let positive =
            positive.map(|(row, column, _)| mask.map_or(1.0, |mask| mask[(row, column)]));
        let all = mask.map_or(n as f64 * m as f64, Weights::sum);
        let mut totals = [positive.sum(), all];
        self.processes().sum(&mut totals);
        1.0 - totals[0] / totals[1]
    }

    /// Returns true if whole numbers belong to a scale with an end (pixels, grades) and are not
    /// counts: they vary less than counts can, or pile up at their largest value. Pixels that do
    /// not reach the end of their scale look like counts.
    pub(super) fn has_a_scale(&self) -> bool {
        self.ends_abruptly() || self.varies_too_little()
    }

    fn ends_abruptly(&self) -> bool {
        let needed = needed(self.mask(), None);
        let entries = || {
            let all = self.x().entries();
            all.filter_map(|(i, j, x)| needed((i, j)).then_some(x))
        };
        let mut largest = entries().fold(0.0, f64::max);
        let processes = self.processes();
        processes.largest(std::slice::from_mut(&mut largest));
        // Entries with the largest value, and with the two below it.
        let mut counts = [0.0; 3];
        for x in entries().filter(|x| *x >= largest - 2.0) {
            counts[(largest - x) as usize] += 1.0;
        }
        processes.sum(&mut counts);
        let [at_end, next, last] = counts;
        let full = FULL.contains(&largest) && at_end >= SOME as f64;
        // (A largest entry below 3 is too small for a scale.)
        full || largest >= 3.0 && at_end >= MANY as f64 && at_end > next + last
    }

    /// Returns true if the dispersion Σ (x − e)² / e per degree of freedom is too small for counts.
    /// e has the row and column sums of X. The sum is computed as Σ x² / e − Σ x, which skips
    /// zeros.
    fn varies_too_little(&self) -> bool {
        let [n, m] = self.shape();
        if self.mask().is_some() {
            return false;
        }
        let (mut rows, mut columns) = (vec![0.0; n], vec![0.0; m]);
        for (row, column, x) in self.x().entries() {
            rows[row] += x;
            columns[column] += x;
        }
        self.processes().sum(&mut columns);
        // (An empty row or column adds no degree of freedom, because its e is 0.)
        let filled = |sums: &[f64]| sums.iter().filter(|sum| **sum > 0.0).count() as f64;
        let filled_rows = self.processes().total(filled(&rows));
        let freedom = (filled_rows - 1.0) * (filled(&columns) - 1.0);
        if freedom < ENOUGH {
            return false;
        }
        let sum: f64 = columns.iter().sum();
        let squares = self.x().entries().filter(|(.., x)| *x > 0.0);
        let squares = squares.map(|(row, column, x)| x * x * sum / (rows[row] * columns[column]));
        let squares = self.processes().total(squares.sum());
        (squares - sum) / freedom < DISPERSION
    }
}

#[cfg(test)]
mod tests {
    use crate::data::poisson;
    use crate::numerics::Precision;
    use crate::problem::Problem;
    use ndarray::{Array2, Axis, concatenate};

    fn has_counts(x: &Array2<f64>) -> bool {
        Problem::new(x, Precision::F64).unwrap().has_counts()
    }

    #[test]
    fn counts_are_told_from_grades_and_pixels() {
        for scale in [0.3, 3.0, 300.0] {
            for seed in 0..10 {
                let counts = poisson(60, 20, 3, scale, seed).x;
                assert!(has_counts(&counts), "scale {scale}, seed {seed}");
                // Empty rows change nothing.
                let empty = Array2::zeros((600, 20));
                let mostly_empty = concatenate![Axis(0), counts, empty];
                assert!(has_counts(&mostly_empty), "scale {scale}, seed {seed}");
            }
        }
        let grades = Array2::from_shape_fn((40, 12), |(i, j)| (2 + (i * 7 + j * 3) % 4) as f64);
        assert!(!has_counts(&grades));
        let pixel = |(i, j): (usize, usize)| (10.0 * ((i * j) % 40) as f64).min(255.0);
        assert!(!has_counts(&Array2::from_shape_fn((40, 12), pixel)));
        let digit = |(i, j): (usize, usize)| (((i * j) % 40) as f64).min(16.0);
        assert!(!has_counts(&Array2::from_shape_fn((40, 12), digit)));
    }
}

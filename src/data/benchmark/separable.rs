//! The factors of a matrix that was published without them.

use ndarray::{Array1, Array2, ArrayView1};

use super::Benchmark;

/// Largest error of the reproduced matrix, relative to its largest entry.
const EXACT: f64 = 1e-9;

/// Recovers nonnegative factors of an exact product X = W H by successive projection, if X is
/// separable.
///
/// X is separable if every component has a row of X to itself (a row of W with one positive entry).
/// This row is the component's row of H up to scale. The rows of X, scaled to sum 1, lie in the
/// polytope that these rows span. Its corners are found one by one: the longest row is a corner;
/// project along it; repeat. W then follows from triangular equations.
///
/// Returns `None` unless W is nonnegative and W H equals X, both to 1e-9 of the largest entry.
/// These are the only factors in which every row of H is a row of X (up to scale and order). Other
/// nonnegative factors may exist: if H has no zeros, as in benchmark A, its rows can be moved a
/// little apart while W compensates.
///
/// # Shapes
/// `x` n×m; W n×rank, H rank×m.
pub(crate) fn separable_factors(x: &Array2<f64>, rank: usize) -> Option<Benchmark> {
    let m = x.ncols();
    let mut rest = x.clone();
    for mut row in rest.rows_mut() {
        let sum = row.sum();
        if sum > 0.0 {
            row /= sum;
        }
    }
    let (mut h, mut directions) = (Array2::zeros((rank, m)), Array2::zeros((rank, m)));
    for k in 0..rank {
        let squares = rest.rows().into_iter().map(|row| row.dot(&row));
        let (corner, square) = squares.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        if square <= EXACT * EXACT {
            return None;
        }
        let direction: Array1<f64> = &rest.row(corner) / square.sqrt();
        for mut row in rest.rows_mut() {
            let length = row.dot(&direction);
            row.scaled_add(-length, &direction);
        }
        let row = x.row(corner);
        h.row_mut(k).assign(&(&row / row.sum()));
        directions.row_mut(k).assign(&direction);
    }
    // H = L Q with orthonormal Q and triangular L, so X Qᵀ = W L.
    let (coordinates, triangle) = (x.dot(&directions.t()), h.dot(&directions.t()));
    let mut w = Array2::<f64>::zeros((x.nrows(), rank));
    for k in (0..rank).rev() {
        for i in 0..x.nrows() {
            let known: f64 = (k + 1..rank).map(|l| w[[i, l]] * triangle[[l, k]]).sum();
            w[[i, k]] = (coordinates[[i, k]] - known) / triangle[[k, k]];
        }
    }
    let largest = |values: ArrayView1<f64>| values.iter().copied().fold(0.0, f64::max);
    let (largest_w, largest_x) = (largest(flat(&w)), largest(flat(x)));
    let nonnegative = w.iter().all(|value| *value >= -EXACT * largest_w);
    // Entries that are zero up to rounding become zero.
    w.mapv_inplace(|value| {
        if value <= EXACT * largest_w {
            0.0
        } else {
            value
        }
    });
    let product = w.dot(&h);
    let exact = product
        .iter()
        .zip(x)
        .all(|(y, x)| (y - x).abs() <= EXACT * largest_x);
    (nonnegative && exact).then(|| Benchmark { x: x.clone(), w, h })
}

fn flat(matrix: &Array2<f64>) -> ArrayView1<'_, f64> {
    let slice = matrix.as_slice_memory_order();
    ArrayView1::from(slice.expect("an owned matrix is contiguous"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{benchmark_a, benchmark_b};
    use crate::metrics::recovery;

    #[test]
    fn benchmark_a_shows_its_factors() {
        for (rank, seed) in [(3, 1), (4, 2), (5, 3)] {
            let truth = benchmark_a(400, 30, rank, seed);
            let found = separable_factors(&truth.x, rank).unwrap();
            let recovery = recovery(&truth.w, &truth.h, &found.w, &found.h).unwrap();
            let all = recovery.w.iter().chain(&recovery.h);
            assert!(all.copied().fold(f64::INFINITY, f64::min) > 200.0);
        }
    }

    #[test]
    fn other_ranks_and_noise_are_refused() {
        let truth = benchmark_a(400, 30, 4, 1);
        assert!(separable_factors(&truth.x, 3).is_none());
        assert!(separable_factors(&truth.x, 5).is_none());
        let noisy = &truth.x + &benchmark_b(400, 30, 4, 2).x.mapv(|x| 1e-3 * x);
        assert!(separable_factors(&noisy, 4).is_none());
    }
}

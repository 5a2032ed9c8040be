//! A start from the singular vectors of X: nonnegative double SVD.

use burn::linalg::svd;
use burn::tensor::Tensor;
use ndarray::Array2;
use rand::rngs::ChaCha8Rng;

use super::uniform;
use crate::device::Device;
use crate::error::Result;
use crate::numerics::{Precision, to_host};
use crate::problem::{Problem, ToMatrix, Weights};
use crate::sparse::SparseMatrix;

/// Extra directions beyond the rank, for accuracy.
const OVERSAMPLING: usize = 10;
/// Rounds of subspace iteration.
const ROUNDS: usize = 12;
/// Largest number of QR sweeps per singular value.
const SWEEPS: usize = 50;

/// The treatment of zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zeros {
    /// Zeros stay, and multiplicative updates never leave them.
    Kept,
    /// Zeros are replaced by the mean of X.
    Filled,
}

/// NNDSVD after Boutsidis and Gallopoulos: each pair of singular vectors is split into its positive
/// and negative parts, and the pair of parts with the larger norm, scaled by the singular value,
/// becomes a column of W and a row of H.
///
/// The leading singular vectors come from subspace iteration, O(nmr); missing entries are replaced
/// by the mean of the others.
///
/// # Shapes
/// W n×r, H r×m.
pub(super) fn nndsvd(
    problem: &Problem,
    rank: usize,
    generator: &mut ChaCha8Rng,
    zeros: Zeros,
) -> Result<(Array2<f64>, Array2<f64>)> {
    let mean = problem.mean();
    let [n, m] = problem.shape();
    let (left, values, right) = match (problem.as_sparse(), problem.dense_numbers()) {
        (None, numbers) => {
            let mut x = numbers.expect("X is dense").to_array().into_owned();
            if let Some(mask) = problem.mask() {
                for (value, weight) in x.iter_mut().zip(mask.iter()) {
                    if weight == 0.0 {
                        *value = mean;
                    }
                }
            }
            leading_triplets(&DenseOperator::new(&x), rank, generator)?
        }
        (Some(x), _) => leading_triplets(&SparseOperator::new(problem, x, mean), rank, generator)?,
    };
    let mut w = Array2::zeros((n, rank));
    let mut h = Array2::zeros((rank, m));
    for k in 0..rank {
        let (u, v) = (left.column(k), right.row(k));
        let part = |sign: f64| {
            let u: Vec<f64> = u.iter().map(|u| (sign * u).max(0.0)).collect();
            let v: Vec<f64> = v.iter().map(|v| (sign * v).max(0.0)).collect();
            let weight = norm(&u) * norm(&v);
            (weight, u, v)
        };
        let (positive, negative) = (part(1.0), part(-1.0));
        let (weight, u, v) = if positive.0 >= negative.0 {
            positive
        } else {
            negative
        };
        let scale = (values[[k, 0]] * weight).sqrt();
        let (of_u, of_v) = (norm(&u), norm(&v));
        for (entry, u) in w.column_mut(k).iter_mut().zip(u) {
            *entry = if of_u > 0.0 { scale * u / of_u } else { 0.0 };
        }
        for (entry, v) in h.row_mut(k).iter_mut().zip(v) {
            *entry = if of_v > 0.0 { scale * v / of_v } else { 0.0 };
        }
    }
    // Rounding leaves tiny entries where the exact vectors are zero.
    let dust = 1e-12 * mean.sqrt();
    for entry in w.iter_mut().chain(h.iter_mut()) {
        if *entry < dust {
            *entry = match zeros {
                Zeros::Kept => 0.0,
                Zeros::Filled => mean,
            };
        }
    }
    Ok((w, h))
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// A tensor on the host, so that the start does not depend on the device.
fn tensor(matrix: &Array2<f64>) -> Tensor<2> {
    let shape = [matrix.nrows(), matrix.ncols()];
    let values = matrix.iter().copied().collect();
    Device::default().tensor(values, shape, Precision::F64)
}

/// A matrix that can be multiplied with others.
trait Operator {
    fn shape(&self) -> [usize; 2];
    /// X B.
    fn times(&self, b: Tensor<2>) -> Tensor<2>;
    /// Xᵀ B.
    fn transposed_times(&self, b: Tensor<2>) -> Tensor<2>;
}

struct DenseOperator(Tensor<2>);

impl DenseOperator {
    fn new(x: &Array2<f64>) -> Self {
        Self(tensor(x))
    }
}

impl Operator for DenseOperator {
    fn shape(&self) -> [usize; 2] {
        self.0.dims()
    }

    fn times(&self, b: Tensor<2>) -> Tensor<2> {
        self.0.clone().matmul(b)
    }

    fn transposed_times(&self, b: Tensor<2>) -> Tensor<2> {
        self.0.clone().transpose().matmul(b)
    }
}

/// A constant plus a sparse matrix.
struct SparseOperator {
    everywhere: f64,
    on_top: SparseMatrix,
    turned: SparseMatrix,
}

impl SparseOperator {
    /// X with the mean instead of missing entries.
    fn new(problem: &Problem, x: &SparseMatrix, mean: f64) -> Self {
        let (everywhere, on_top) = match problem.mask() {
            None => (0.0, x.clone()),
            Some(Weights::Listed { at, elsewhere }) if *elsewhere > 0.0 => {
                // Zero, except for stored and missing entries.
                let [rows, columns] = x.shape();
                let of_rows = (0..rows).map(|row| {
                    let (of_x, values) = x.row(row);
                    let seen = of_x
                        .iter()
                        .zip(values)
                        .filter(|(column, _)| at.get(row, **column as usize) != Some(0.0));
                    let mut entries: Vec<(u32, f64)> = seen.map(|(j, x)| (*j, *x)).collect();
                    let (listed, weights) = at.row(row);
                    let missing = listed.iter().zip(weights).filter(|(_, of)| **of == 0.0);
                    entries.extend(missing.map(|(column, _)| (*column, mean)));
                    entries.sort_by_key(|(column, _)| *column);
                    entries
                });
                (0.0, SparseMatrix::from_rows(columns, of_rows))
            }
            Some(mask) => {
                let seen = x.filter(|row, column, _| mask[(row, column)] > 0.0);
                (mean, seen.map(|x| x - mean))
            }
        };
        Self {
            everywhere,
            turned: on_top.transposed(),
            on_top,
        }
    }

    fn product(&self, matrix: &SparseMatrix, b: &Tensor<2>) -> Tensor<2> {
        let [_, width] = b.dims();
        let b = to_host(b);
        let mut sums = vec![0.0; width];
        for row in b.chunks_exact(width) {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += self.everywhere * value;
            }
        }
        let mut product = matrix.times(&b, width);
        for row in product.chunks_exact_mut(width) {
            for (entry, sum) in row.iter_mut().zip(&sums) {
                *entry += sum;
            }
        }
        let shape = (matrix.shape()[0], width);
        tensor(&Array2::from_shape_vec(shape, product).expect("a row for each line"))
    }
}

impl Operator for SparseOperator {
    fn shape(&self) -> [usize; 2] {
        self.on_top.shape()
    }

    fn times(&self, b: Tensor<2>) -> Tensor<2> {
        self.product(&self.on_top, &b)
    }

    fn transposed_times(&self, b: Tensor<2>) -> Tensor<2> {
        self.product(&self.turned, &b)
    }
}

/// (U, σ, Vᵀ) of the largest `rank` singular values: n×r, r×1, r×m.
fn leading_triplets(
    x: &dyn Operator,
    rank: usize,
    generator: &mut ChaCha8Rng,
) -> Result<(Array2<f64>, Array2<f64>, Array2<f64>)> {
    let [n, m] = x.shape();
    let width = (rank + OVERSAMPLING).min(n).min(m);
    let start = uniform(generator, m, width);
    let mut basis: Tensor<2> = tensor(&start);
    // An orthonormal basis of a tensor's columns. (Burn's QR mixes 32-bit constants
    // into 64-bit tensors and panics.)
    let orthonormal = |tensor: Tensor<2>| svd::<2, 1>(tensor, SWEEPS).0;
    for _ in 0..ROUNDS {
        let left = orthonormal(x.times(basis));
        basis = orthonormal(x.transposed_times(left));
    }
    let left = orthonormal(x.times(basis));
    let small = x.transposed_times(left.clone()).transpose();
    let (u, values, v_transposed) = svd::<2, 1>(small, SWEEPS);
    let u = left.matmul(u).slice([0..n, 0..rank]);
    let values = values.narrow(0, 0, rank).reshape([rank, 1]);
    let v_transposed = v_transposed.slice([0..rank, 0..m]);
    Ok((
        u.to_matrix()?,
        values.to_matrix()?,
        v_transposed.to_matrix()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;
    use rand::SeedableRng;

    #[test]
    fn triplets_rebuild_a_matrix_of_low_rank() {
        let mut generator = ChaCha8Rng::seed_from_u64(0);
        let mut factor = |rows, columns| uniform(&mut generator, rows, columns);
        let x = factor(60, 3).dot(&factor(3, 20));
        let (u, values, v) = leading_triplets(&DenseOperator::new(&x), 3, &mut generator).unwrap();
        let rebuilt = (&u * &values.t()).dot(&v);
        let error = (&rebuilt - &x).mapv(|e| e * e).sum() / x.mapv(|e| e * e).sum();
        assert!(error < 1e-20, "{error:e}");
        assert!(values[[0, 0]] >= values[[1, 0]] && values[[1, 0]] >= values[[2, 0]]);
    }

    #[test]
    fn a_rank_one_matrix_is_met_exactly_and_zeros_are_filled_on_request() {
        let x = array![[1.0, 2.0, 0.0], [3.0, 6.0, 0.0]];
        let problem = Problem::new(&x, Precision::F64).unwrap();
        let start = |zeros| {
            let mut generator = ChaCha8Rng::seed_from_u64(0);
            nndsvd(&problem, 1, &mut generator, zeros).unwrap()
        };
        let (w, h) = start(Zeros::Kept);
        assert!((w.dot(&h) - &x).iter().all(|e| e.abs() < 1e-12));
        assert_eq!(h[[0, 2]], 0.0);
        let (_, h) = start(Zeros::Filled);
        assert_eq!(h[[0, 2]], 2.0);
    }
}

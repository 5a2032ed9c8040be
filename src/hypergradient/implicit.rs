//! Implicit mode: the hypergradient of an infinitely long bunch.

use burn::linalg::svd;
use burn::tensor::Tensor;

use super::forward::outer_gradient;
use super::{Differentiate, Hypergradient};
use crate::bunch::Bunch;
use crate::error::{Error, Result};
use crate::numerics::{Precision, movement, to_host};
use crate::problem::ToMatrix;
use crate::update::Direction;

/// Differentiates the fixed point `w = Φ(w, λ)` instead of a path to it:
///
/// $$ s = (I - A)^{-1} b, \qquad dE/d\lambda_i = g^\top s $$
///
/// The updates run until no entry moves by more than
/// [`tolerance`](Implicit::tolerance); the bunch's own T plays no part. A is
/// built row by row from r tangents (never by finite differences), and each r×r
/// system is solved by its singular value decomposition, which also tells
/// whether it is singular.
///
/// # Memory
/// Three n×r×r tensors.
#[derive(Debug, Clone, Copy)]
pub struct Implicit {
    /// Largest movement of an entry of w in one update, relative to the largest
    /// entry of its row, that counts as standing still (at least sixteen times the
    /// precision's epsilon).
    pub tolerance: f64,
    /// Updates after which to give up.
    pub max_updates: usize,
    /// Smallest ratio of singular values of I − A that counts as invertible.
    pub smallest_ratio: f64,
}

impl Default for Implicit {
    fn default() -> Self {
        Self {
            tolerance: 1e-12,
            max_updates: 50_000,
            smallest_ratio: 1e-10,
        }
    }
}

impl Implicit {
    fn fixed_point(&self, bunch: &Bunch, w: &Tensor<2>, lambda: &Tensor<2>) -> Result<Tensor<2>> {
        // Rounding keeps entries trembling; a precision cannot promise more.
        let tolerance = self.tolerance.max(16.0 * Precision::of(w).epsilon());
        let mut w = w.clone();
        let mut residual = f64::INFINITY;
        let mut done = 0;
        for updates in 1..=self.max_updates {
            let next = bunch.step(&w, lambda);
            done = updates;
            // Reading back costs as much as an update of a small problem.
            if updates % 10 == 0 || updates == self.max_updates {
                residual = largest_movement(&w, &next)?;
                if residual <= tolerance {
                    return Ok(next);
                }
                if residual.is_nan() {
                    break;
                }
            }
            w = next;
        }
        Err(Error::NoFixedPoint {
            updates: done,
            residual,
            tolerance,
        })
    }
}

/// The largest [`movement`] of a row; NaN if any is.
fn largest_movement(before: &Tensor<2>, after: &Tensor<2>) -> Result<f64> {
    let (before, after) = (before.to_matrix()?, after.to_matrix()?);
    let rows = before.rows().into_iter().zip(after.rows());
    let movements = rows.map(|(before, after)| movement(before, after));
    Ok(movements.fold(0.0, |most, moved| {
        if moved.is_nan() {
            moved
        } else {
            f64::max(most, moved)
        }
    }))
}

impl Differentiate for Implicit {
    fn name(&self) -> &'static str {
        "implicit"
    }

    fn compute(&self, bunch: &Bunch, w: &Tensor<2>, lambda: &Tensor<2>) -> Result<Hypergradient> {
        if !bunch.rule.is_separable() {
            return Err(Error::ModeUnsupported {
                mode: self.name(),
                reason: "a penalty couples rows, so that I − A is one nr×nr matrix".into(),
            });
        }
        let w = self.fixed_point(bunch, w, lambda)?;
        let [n, rank] = w.dims();
        let tangent = |factor: Tensor<2>, lambda_dot: Tensor<2>| {
            let direction = Direction::of_lambda(&bunch.rule, factor, &lambda_dot);
            let (observed, other) = (&bunch.observed, &bunch.other);
            bunch
                .rule
                .update_with_tangent(self.name(), observed, &w, other, lambda, &direction)
                .map(|(_, tangent)| tangent)
        };
        let b = tangent(w.zeros_like(), lambda.ones_like())?;
        let mut columns = Vec::with_capacity(rank);
        for k in 0..rank {
            let ones = w.ones_like().slice([0..n, 0..1]);
            let unit = w.zeros_like().slice_assign([0..n, k..k + 1], ones);
            let column = unit.clone() - tangent(unit, lambda.zeros_like())?;
            columns.push(column.reshape([n, rank, 1]));
        }
        let system: Tensor<3> = Tensor::cat(columns, 2);
        // The decomposition panics on what is not a number.
        let entries = to_host(&system.clone().reshape([n, rank * rank]));
        let mut rows = entries.chunks(rank * rank);
        if let Some(row) = rows.position(|row| row.iter().any(|entry| !entry.is_finite())) {
            return Err(Error::SingularFixedPoint {
                row,
                ratio: f64::NAN,
            });
        }
        let (u, values, v_transposed) = svd::<3, 2>(system, SWEEPS);
        let ratios = to_host(&values);
        for (row, of_row) in ratios.chunks(rank).enumerate() {
            let ratio = of_row[rank - 1] / of_row[0];
            if ratio < self.smallest_ratio || ratio.is_nan() {
                return Err(Error::SingularFixedPoint { row, ratio });
            }
        }
        let rotated = u.transpose().matmul(b.reshape([n, rank, 1]));
        let scaled = rotated / values.reshape([n, rank, 1]);
        let s = v_transposed.transpose().matmul(scaled).reshape([n, rank]);
        let gradient = (outer_gradient(self.name(), bunch, &w)? * s).sum_dim(1);
        Ok(bunch.outcome(w, gradient))
    }
}

/// QR sweeps per singular value that the decomposition may take; it needs two or
/// three.
const SWEEPS: usize = 50;

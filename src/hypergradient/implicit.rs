//! Implicit mode: the hypergradient of an infinitely long bunch.

use burn::linalg::svd;
use burn::tensor::Tensor;

use super::{Differentiate, Directions, Hypergradient};
use crate::bunch::{Bound, Bunch, Pair, summed_to};
use crate::error::{Error, Result};
use crate::factors::Side;
use crate::numerics::{Precision, movement, to_host};
use crate::problem::ToMatrix;
use crate::update::Direction;

/// Differentiates the fixed point `w = Φ(w, λ)` instead of a path to it:
///
/// $$ s = (I - A)^{-1} b, \qquad dE/d\lambda_i = g^\top s $$
///
/// The updates run until no entry moves by more than [`tolerance`](Implicit::tolerance); the
/// bunch's own T has no effect. A is built row by row from r tangents (never by finite
/// differences). Each r×r system is solved by its singular value decomposition, which also shows if
/// it is singular. The mode needs a bunch over one factor and penalties that do not couple its
/// rows. Weights may have any scope.
///
/// # Memory
/// Three n×r×r tensors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Implicit {
    /// Largest movement of an entry of w in one update, relative to the largest entry of its row,
    /// at a fixed point (at least sixteen times the precision's epsilon).
    pub tolerance: f64,
    /// Largest number of updates.
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
    fn fixed_point(&self, bunch: &Bunch, bound: &Bound, pair: &Pair, side: Side) -> Result<Pair> {
        // Rounding errors always move entries by this much.
        let tolerance = self.tolerance.max(16.0 * Precision::of(&pair.w).epsilon());
        let mut pair = pair.clone();
        let mut residual = f64::INFINITY;
        let mut done = 0;
        for updates in 1..=self.max_updates {
            let next = bunch.step(bound, &pair);
            done = updates;
            // Reading back costs as much as an update of a small problem.
            if updates % 10 == 0 || updates == self.max_updates {
                residual = largest_movement(pair.seen_from(side).0, next.seen_from(side).0)?;
                if residual <= tolerance {
                    return Ok(next);
                }
                if residual.is_nan() {
                    break;
                }
            }
            pair = next;
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

    fn compute(&self, bunch: &Bunch, pair: &Pair, lambda: &[Tensor<2>]) -> Result<Hypergradient> {
        let side = bunch
            .independent_rows()
            .ok_or_else(|| Error::ModeUnsupported {
                mode: self.name(),
                reason: "it needs a bunch over one factor and penalties that do not couple its \
                         rows; otherwise I − A is one nr×nr matrix"
                    .into(),
            })?;
        let bound = bunch.bind(lambda);
        let pair = self.fixed_point(bunch, &bound, pair, side)?;
        let (w, other) = pair.seen_from(side);
        let [n, rank] = w.dims();
        let rule = bound.rule(side);
        // The tangent of the update when the factor moves, or the weight of one tuned penalty.
        let tangent = |factor: Tensor<2>, weight: Option<(usize, &Tensor<2>)>| {
            let mut tuned = 0..;
            let weights = rule.terms.iter().map(|term| {
                let index = term.is_tuned().then(|| tuned.next()).flatten();
                weight.and_then(|(at, along)| (index == Some(at)).then(|| along.clone()))
            });
            let direction = Direction {
                factor,
                other: None,
                weights: weights.collect(),
            };
            bunch
                .data
                .update_with_tangent(self.name(), rule, side, [w, other], &direction)
                .map(|(_, tangent)| tangent)
        };
        let mut columns = Vec::with_capacity(rank);
        for k in 0..rank {
            let ones = w.ones_like().slice([0..n, 0..1]);
            let unit = w.zeros_like().slice_assign([0..n, k..k + 1], ones);
            let column = unit.clone() - tangent(unit, None)?;
            columns.push(column.reshape([n, rank, 1]));
        }
        let inverse = self.inverse(Tensor::cat(columns, 2))?;
        let criterion = bunch.criterion.as_ref();
        let slope = bunch
            .data
            .outer_gradient(self.name(), &bunch.of_w, criterion, &pair)?;
        let mut gradients = Vec::with_capacity(lambda.len());
        for (index, weight) in lambda.iter().enumerate() {
            let needed = Directions::new(weight, true);
            let mut told = Vec::with_capacity(needed.all.len());
            for direction in &needed.all {
                let b = tangent(w.zeros_like(), Some((index, direction)))?;
                let s = inverse(b);
                told.push(summed_to(slope.seen_from(side).0.clone() * s, needed.told));
            }
            gradients.push(needed.gather(told));
        }
        Ok(bunch.outcome(pair, gradients))
    }
}

impl Implicit {
    /// `b ↦ (I − A)⁻¹ b`, row by row.
    ///
    /// # Errors
    /// [`Error::SingularFixedPoint`] with the first row where it does not exist.
    ///
    /// # Shapes
    /// `system` n×r×r; b n×r.
    fn inverse(&self, system: Tensor<3>) -> Result<impl Fn(Tensor<2>) -> Tensor<2>> {
        let [n, rank, _] = system.dims();
        // The decomposition panics on NaN.
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
        let (u, v) = (u.transpose(), v_transposed.transpose());
        let values = values.reshape([n, rank, 1]);
        Ok(move |b: Tensor<2>| {
            let rotated = u.clone().matmul(b.reshape([n, rank, 1]));
            let scaled = rotated / values.clone();
            v.clone().matmul(scaled).reshape([n, rank])
        })
    }
}

/// Largest number of QR sweeps per singular value. Two or three are usual.
const SWEEPS: usize = 50;

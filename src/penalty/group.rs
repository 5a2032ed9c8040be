//! The ℓ2 norm of a row: group sparsity, "ℓ1,2".

use burn::tensor::Tensor;

use super::{FusedPenalty, Penalty, constant_like, powers};
use crate::numerics::{Floored, Precision};
use crate::split::{MajoriserPowers, Split};

/// `r(w) = ‖w‖₂`, with `p⁺ = w / ‖w‖₂` and `p⁻ = 0`.
///
/// Summed over rows it is the ℓ1,2 norm, which empties whole rows. A row of
/// zeros has `p⁺ = 0` (0/0 = 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group;

/// `1 / ‖w_i‖₂` of each row (n×1), constant if the norm is below the floor.
pub(super) fn inverse_norm(w: &Tensor<2>) -> Tensor<2> {
    let floor = Precision::of(w).floor();
    let squares = w.clone().square().sum_dim(1);
    Floored::new(squares, floor * floor).value.sqrt().recip()
}

/// 1 for rows whose norm is above the floor, 0 for the others (n×1). Tangents are multiplied by it,
/// because the derivative of the floor is zero.
pub(super) fn above_floor(w: &Tensor<2>) -> Tensor<2> {
    let floor = Precision::of(w).floor();
    let squares = w.clone().square().sum_dim(1);
    let floored = Floored::new(squares, floor * floor);
    floored.silence(floored.value.ones_like())
}

impl Penalty for Group {
    fn name(&self) -> String {
        "group".into()
    }

    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        w.clone().square().sum_dim(1).sqrt()
    }

    fn takes_any_rows(&self) -> bool {
        true
    }

    fn split(&self, w: &Tensor<2>) -> Split {
        Split {
            positive: w.clone() * inverse_norm(w),
            negative: constant_like(w, 0.0),
        }
    }

    /// With `v = w / ‖w‖`: `ṗ⁺ = (ẇ − v (v·ẇ)) / ‖w‖`.
    fn tangent(&self, w: &Tensor<2>, direction: &Tensor<2>) -> Option<Split> {
        let inverse = inverse_norm(w);
        let unit = w.clone() * inverse.clone() * above_floor(w);
        let along = (unit.clone() * direction.clone()).sum_dim(1);
        Some(Split {
            positive: (direction.clone() - unit * along) * inverse,
            negative: constant_like(w, 0.0),
        })
    }

    /// The Jacobian of p⁺ is symmetric, so transposing changes nothing.
    fn cotangent(&self, w: &Tensor<2>, parts: &Split) -> Option<Tensor<2>> {
        self.tangent(w, &parts.positive).map(|split| split.positive)
    }

    /// `‖u ⊙ w‖ ≤ ½ ‖w‖ + ½ Σ w² u² / ‖w‖`: quadratic in u.
    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        Some(powers(1.0, 0.0))
    }

    fn fused(&self) -> Option<FusedPenalty> {
        Some(FusedPenalty::Group)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn keeps_the_rules() {
        super::super::tests::verify(&super::Group, |rows, i| {
            rows[i].iter().map(|w| w * w).sum::<f64>().sqrt()
        });
    }
}

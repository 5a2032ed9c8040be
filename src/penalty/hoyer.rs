//! The ratio of ℓ1 to ℓ2 norm: sparsity that does not depend on scale.

use burn::tensor::Tensor;

use super::group::{above_floor, inverse_norm};
use super::{FusedPenalty, Penalty, constant_like};
use crate::split::Split;

/// `r(w) = ‖w‖₁ / ‖w‖₂`, between 1 (one entry) and √r (all equal).
///
/// The two terms of its gradient `1/‖w‖₂ − ‖w‖₁ w / ‖w‖₂³` are its two parts. A row of zeros has r
/// = 0 and both parts 0. It is not convex, and no exponent is known that makes its update monotone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hoyer;

impl Penalty for Hoyer {
    fn name(&self) -> String {
        "hoyer".into()
    }

    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        w.clone().sum_dim(1) * inverse_norm(w)
    }

    fn takes_any_rows(&self) -> bool {
        true
    }

    fn split(&self, w: &Tensor<2>) -> Split {
        let inverse = inverse_norm(w);
        let unit = w.clone() * inverse.clone();
        let ratio = unit.clone().sum_dim(1);
        Split {
            // On a row of zeros 1/‖w‖ would be huge, so both parts are 0 there.
            positive: inverse.clone() * above_floor(w),
            negative: unit * ratio * inverse * above_floor(w),
        }
    }

    /// With `q = 1/‖w‖`, `v = q w`, `ρ = Σ v`, `a = v·ẇ` and `s = Σ ẇ`:
    /// `ṗ⁺ = −q² a` and `ṗ⁻ = q² (ρ ẇ + s v − 3 ρ a v)`.
    fn tangent(&self, w: &Tensor<2>, direction: &Tensor<2>) -> Option<Split> {
        let (squared_inverse, unit, ratio) = parts(w);
        let along = (unit.clone() * direction.clone()).sum_dim(1);
        let sum = direction.clone().sum_dim(1);
        let positive = -(squared_inverse.clone() * along.clone());
        let negative = squared_inverse
            * (direction.clone() * ratio.clone() + unit * (sum - ratio * along * 3.0));
        Some(Split { positive, negative })
    }

    /// The transpose: `−q² (Σ p̄⁺) v + q² (ρ p̄⁻ + (v·p̄⁻)(1 − 3 ρ v))`.
    fn cotangent(&self, w: &Tensor<2>, cotangents: &Split) -> Option<Tensor<2>> {
        let (squared_inverse, unit, ratio) = parts(w);
        let sum = cotangents.positive.clone().sum_dim(1);
        let along = (unit.clone() * cotangents.negative.clone()).sum_dim(1);
        let one = constant_like(w, 1.0);
        Some(
            squared_inverse
                * (cotangents.negative.clone() * ratio.clone()
                    + along * (one - unit.clone() * ratio * 3.0)
                    - unit * sum),
        )
    }

    fn fused(&self) -> Option<FusedPenalty> {
        Some(FusedPenalty::Hoyer)
    }
}

/// `(q², v, ρ)`, with q² = 0 on rows of zeros.
fn parts(w: &Tensor<2>) -> (Tensor<2>, Tensor<2>, Tensor<2>) {
    let inverse = inverse_norm(w);
    let unit = w.clone() * inverse.clone();
    let ratio = unit.clone().sum_dim(1);
    (inverse.square() * above_floor(w), unit, ratio)
}

#[cfg(test)]
mod tests {
    #[test]
    fn keeps_the_rules() {
        super::super::tests::verify(&super::Hoyer, |rows, i| {
            let square: f64 = rows[i].iter().map(|w| w * w).sum();
            rows[i].iter().sum::<f64>() / square.sqrt()
        });
    }
}

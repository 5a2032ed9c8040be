//! The squared ℓ1 norm of a row: "ℓ2,1 squared", the paper's Tr(Hᵀ E H).

use burn::tensor::Tensor;

use super::{FusedPenalty, Penalty, constant_like, powers};
use crate::split::{MajoriserPowers, Split};

/// `r(w) = (Σ_k w_k)²`, with `p⁺ = 2 Σ_k w_k` and `p⁻ = 0`.
///
/// It favours few components per row. The paper writes it for columns of H, as the trace of HᵀEH
/// with E all ones (its sum runs over columns, not rows, as printed), and weights it by λ/2; here
/// the weight is λ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SquaredL1;

impl Penalty for SquaredL1 {
    fn name(&self) -> String {
        "l21".into()
    }

    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        w.clone().sum_dim(1).square()
    }

    fn takes_any_rows(&self) -> bool {
        true
    }

    fn split(&self, w: &Tensor<2>) -> Split {
        Split {
            positive: w.clone().sum_dim(1) * 2.0,
            negative: constant_like(w, 0.0),
        }
    }

    fn tangent(&self, _w: &Tensor<2>, direction: &Tensor<2>) -> Option<Split> {
        Some(self.split(direction))
    }

    /// The Jacobian of p⁺ is twice the all-ones matrix, which is symmetric.
    fn cotangent(&self, w: &Tensor<2>, parts: &Split) -> Option<Tensor<2>> {
        Some((parts.positive.clone().sum_dim(1) * 2.0).expand(w.dims()))
    }

    /// By Jensen, `(Σ w u)² ≤ (Σ w) Σ w u²`: quadratic in u.
    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        Some(powers(1.0, 0.0))
    }

    fn fused(&self) -> Option<FusedPenalty> {
        Some(FusedPenalty::SquaredL1)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn keeps_the_rules() {
        super::super::tests::verify(&super::SquaredL1, |rows, i| {
            rows[i].iter().sum::<f64>().powi(2)
        });
    }
}

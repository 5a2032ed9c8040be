//! The ℓ1 norm: the paper's penalty.

use std::ops::Range;

use burn::tensor::Tensor;

use super::{FusedPenalty, HostPenalty, NoPenalty, Penalty, Rows, Spread, constant_like, powers};
use crate::split::{MajoriserPowers, Split};

/// `r(w) = Σ_k w_k`, with `p⁺ = 1` and `p⁻ = 0`.
///
/// On nonnegative factors the ℓ1 norm is linear, so its split does not depend on
/// w. With KL and equal row sums h of H it only rescales,
/// `w(λ) = w(0) / (1 + λ/h)`: it cannot change which entries are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct L1;

impl Penalty for L1 {
    fn name(&self) -> String {
        "l1".into()
    }

    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        w.clone().sum_dim(1)
    }

    fn is_sum_over_entries(&self) -> bool {
        true
    }

    fn entries(&self, w: &Tensor<2>) -> Option<Tensor<2>> {
        Some(w.clone())
    }

    fn takes_any_rows(&self) -> bool {
        true
    }

    fn split(&self, w: &Tensor<2>) -> Split {
        Split {
            positive: constant_like(w, 1.0),
            negative: constant_like(w, 0.0),
        }
    }

    fn tangent(&self, w: &Tensor<2>, _direction: &Tensor<2>) -> Option<Split> {
        Some(NoPenalty.split(w))
    }

    fn cotangent(&self, w: &Tensor<2>, _parts: &Split) -> Option<Tensor<2>> {
        Some(constant_like(w, 0.0))
    }

    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        Some(powers(0.0, 0.0))
    }

    fn fused(&self) -> Option<FusedPenalty> {
        Some(FusedPenalty::L1)
    }

    fn on_host(&self) -> Option<&dyn HostPenalty> {
        Some(self)
    }
}

impl HostPenalty for L1 {
    fn weighted_value(&self, w: Rows<'_>, weight: &Spread, rows: Range<usize>) -> f64 {
        weight.sum(w, rows, |w| w)
    }

    fn add_split(
        &self,
        w: Rows<'_>,
        weight: &Spread,
        rows: Range<usize>,
        positive: &mut [f64],
        _negative: &mut [f64],
    ) {
        let mut room = vec![0.0; w.rank];
        for (i, positive) in rows.zip(positive.chunks_exact_mut(w.rank)) {
            let weights = weight.row(i, &mut room);
            for (positive, weight) in positive.iter_mut().zip(weights) {
                *positive += weight;
            }
        }
    }

    fn add_cotangent(
        &self,
        w: Rows<'_>,
        _weight: &Spread,
        [of_positive, _]: [Rows<'_>; 2],
        rows: Range<usize>,
        _factor: &mut [f64],
        weights: &mut [f64],
    ) {
        weights.copy_from_slice(&of_positive.values[rows.start * w.rank..rows.end * w.rank]);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn keeps_the_rules() {
        super::super::tests::verify(&super::L1, |rows, i| rows[i].iter().sum());
    }
}

//! Half the squared ℓ2 norm, whose gradient is w.

use std::ops::Range;

use burn::tensor::Tensor;

use super::{FusedPenalty, HostPenalty, Penalty, Rows, Spread, constant_like, powers};
use crate::split::{MajoriserPowers, Split};

/// `r(w) = ½ Σ_k w_k²`, with `p⁺ = w` and `p⁻ = 0`.
///
/// The paper requires a linear r, which excludes this one, but it works too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SquaredL2;

impl Penalty for SquaredL2 {
    fn name(&self) -> String {
        "l2".into()
    }

    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        w.clone().square().sum_dim(1) * 0.5
    }

    fn is_sum_over_entries(&self) -> bool {
        true
    }

    fn entries(&self, w: &Tensor<2>) -> Option<Tensor<2>> {
        Some(w.clone().square() * 0.5)
    }

    fn takes_any_rows(&self) -> bool {
        true
    }

    fn split(&self, w: &Tensor<2>) -> Split {
        Split {
            positive: w.clone(),
            negative: constant_like(w, 0.0),
        }
    }

    fn tangent(&self, w: &Tensor<2>, direction: &Tensor<2>) -> Option<Split> {
        Some(Split {
            positive: direction.clone(),
            negative: constant_like(w, 0.0),
        })
    }

    fn cotangent(&self, _w: &Tensor<2>, parts: &Split) -> Option<Tensor<2>> {
        Some(parts.positive.clone())
    }

    /// `r(u ⊙ w)` grows with u², so its derivative with u.
    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        Some(powers(1.0, 0.0))
    }

    fn fused(&self) -> Option<FusedPenalty> {
        Some(FusedPenalty::SquaredL2)
    }

    fn on_host(&self) -> Option<&dyn HostPenalty> {
        Some(self)
    }
}

impl HostPenalty for SquaredL2 {
    fn weighted_value(&self, w: Rows<'_>, weight: &Spread, rows: Range<usize>) -> f64 {
        weight.sum(w, rows, |w| 0.5 * w * w)
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
            let weighted = weight.row(i, &mut room).iter().zip(w.row(i));
            for (positive, (weight, w)) in positive.iter_mut().zip(weighted) {
                *positive += weight * w;
            }
        }
    }

    fn add_cotangent(
        &self,
        w: Rows<'_>,
        weight: &Spread,
        [of_positive, _]: [Rows<'_>; 2],
        rows: Range<usize>,
        factor: &mut [f64],
        weights: &mut [f64],
    ) {
        let slots = factor.chunks_exact_mut(w.rank);
        let slots = slots.zip(weights.chunks_exact_mut(w.rank));
        let mut room = vec![0.0; w.rank];
        for (i, (factor, weights)) in rows.zip(slots) {
            let weight = weight.row(i, &mut room).iter();
            let given = weight.zip(w.row(i)).zip(of_positive.row(i));
            for ((factor, of_weight), ((weight, w), bar)) in
                factor.iter_mut().zip(weights).zip(given)
            {
                *factor += weight * bar;
                *of_weight = w * bar;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn keeps_the_rules() {
        super::super::tests::verify(&super::SquaredL2, |rows, i| {
            0.5 * rows[i].iter().map(|w| w * w).sum::<f64>()
        });
    }
}

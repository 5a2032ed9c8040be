//! No penalty, for baselines and tests.

use burn::tensor::Tensor;

use super::{FusedPenalty, Penalty, constant_like, powers};
use crate::split::{MajoriserPowers, Split};

/// `r(w) = 0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPenalty;

impl Penalty for NoPenalty {
    fn name(&self) -> String {
        "none".into()
    }

    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        w.clone().slice([0..w.dims()[0], 0..1]).zeros_like()
    }

    fn is_sum_over_entries(&self) -> bool {
        true
    }

    fn entries(&self, w: &Tensor<2>) -> Option<Tensor<2>> {
        Some(w.zeros_like())
    }

    fn takes_any_rows(&self) -> bool {
        true
    }

    fn split(&self, w: &Tensor<2>) -> Split {
        Split {
            positive: constant_like(w, 0.0),
            negative: constant_like(w, 0.0),
        }
    }

    fn tangent(&self, w: &Tensor<2>, _direction: &Tensor<2>) -> Option<Split> {
        Some(self.split(w))
    }

    fn cotangent(&self, w: &Tensor<2>, _parts: &Split) -> Option<Tensor<2>> {
        Some(constant_like(w, 0.0))
    }

    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        Some(powers(0.0, 0.0))
    }

    fn fused(&self) -> Option<FusedPenalty> {
        Some(FusedPenalty::None)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn keeps_the_rules() {
        super::super::tests::verify(&super::NoPenalty, |_, _| 0.0);
    }
}

//! KL after adding a constant to both arguments.

use burn::tensor::Tensor;

use super::{Beta, Divergence, Fused, Slope};
use crate::numerics::Precision;
use crate::split::{MajoriserPowers, Split};

/// The Kullback-Leibler divergence between x + c and y + c.
///
/// $$ d(x, y) = (x + c) \log \frac{x + c}{y + c} - x + y $$
///
/// KL itself grows without bound if x > 0 and y → 0, so a few entries with a tiny y dominate its
/// sum. The constant bounds their effect. It is made for outer errors: on counts with c = ½ (half a
/// count), and on other data with many zeros with c half the mean of X.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SmoothedKl(pub f64);

impl SmoothedKl {
    /// c = ½: half a count.
    pub const HALF: Self = Self(0.5);

    fn raised(&self, x: &Tensor<2>) -> Tensor<2> {
        x.clone() + self.0
    }
}

impl Divergence for SmoothedKl {
    fn name(&self) -> String {
        format!("smoothed-kl:{}", self.0)
    }

    fn value(&self, x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2> {
        Beta::KL.value(&self.raised(x), &self.raised(y))
    }

    fn split(&self, x: &Tensor<2>, y: &Tensor<2>) -> Split {
        Beta::KL.split(&self.raised(x), &self.raised(y))
    }

    fn slope(&self, x: &Tensor<2>, y: &Tensor<2>) -> Option<Slope> {
        Beta::KL.slope(&self.raised(x), &self.raised(y))
    }

    /// The same as for KL, because ∇⁻ = (x + c) / (y + c) decays more slowly than x / y.
    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        Beta::KL.majoriser_powers()
    }

    fn fused(&self) -> Option<Fused> {
        Some(Fused::Beta {
            beta: 1.0,
            shift: self.0,
        })
    }

    fn derivative_cost(&self) -> f64 {
        Beta::KL.derivative_cost()
    }

    fn floor(&self, precision: Precision) -> f64 {
        Beta::KL.floor(precision)
    }
}

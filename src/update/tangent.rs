//! The derivative of one update in a direction, by hand: never through the tape,
//! and never forming the r×r matrices A_t of the paper.

use burn::tensor::Tensor;

use super::{Ratio, Rule, contract};
use crate::error::{Error, Result};
use crate::numerics::{Floored, Precision, power, power_of_ratio};
use crate::problem::Observed;
use crate::split::Split;

/// A direction in which factor and λ move together.
#[derive(Debug, Clone)]
pub(crate) struct Direction {
    /// ẇ, n×r.
    pub factor: Tensor<2>,
    /// λ̇, broadcasting to n×r.
    pub lambda: Tensor<2>,
}

/// What the update computes on its way, kept for its derivatives.
pub(super) struct Linearised {
    /// y, P and q.
    pub ratio: Ratio,
    /// q^γ.
    pub gain: Tensor<2>,
    /// γ q^(γ−1).
    pub gain_slope: Tensor<2>,
}

impl Rule {
    pub(super) fn linearised(
        &self,
        observed: &Observed,
        factor: &Tensor<2>,
        other: &Tensor<2>,
        lambda: &Tensor<2>,
    ) -> Linearised {
        let ratio = self.ratio(observed, factor, other, lambda);
        let gain = power_of_ratio(ratio.value.clone(), self.exponent);
        let gain_slope = if self.exponent == 1.0 {
            ratio.value.ones_like()
        } else {
            let floored = Floored::new(ratio.value.clone(), Precision::of(factor).floor());
            floored.silence(power(&floored.value, self.exponent - 1.0) * self.exponent)
        };
        Linearised {
            ratio,
            gain,
            gain_slope,
        }
    }

    /// The update and its derivative in a direction,
    /// `A_t ẇ + b_t λ̇` in the paper's letters.
    ///
    /// With `ẏ = ẇ H`: `Ṅ = (M ∂∇⁻ ẏ) Hᵀ + …`, `Ṗ` alike, `q̇ = (Ṅ − q Ṗ)/P` and
    /// `Φ̇ = ẇ q^γ + w γ q^(γ−1) q̇`. Cost: O(nmr), as the update itself.
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`] in the name of `mode` where a part has no
    /// tangent.
    ///
    /// # Shapes
    /// As [`update`](Rule::update); the direction's factor is n×r.
    pub(crate) fn update_with_tangent(
        &self,
        mode: &'static str,
        observed: &Observed,
        factor: &Tensor<2>,
        other: &Tensor<2>,
        lambda: &Tensor<2>,
        direction: &Direction,
    ) -> Result<(Tensor<2>, Tensor<2>)> {
        let here = self.linearised(observed, factor, other, lambda);
        let Ratio {
            value: ratio,
            y,
            denominator,
        } = here.ratio;
        let y_dot = y.silence(direction.factor.clone().matmul(other.clone()));
        let slope = self
            .divergence
            .slope(&observed.x, &y.value)
            .ok_or_else(|| self.no_slope(mode))?;
        let through_y = |slope: Option<Tensor<2>>| match slope {
            Some(slope) => contract(
                y.silence(slope) * y_dot.clone(),
                observed.mask.as_ref(),
                other,
            ),
            None => factor.zeros_like(),
        };
        let mut dot = Split {
            positive: through_y(slope.positive),
            negative: through_y(slope.negative),
        };
        for term in &self.terms {
            let of_term = term
                .tangent(factor, lambda, &direction.factor, &direction.lambda)
                .ok_or_else(|| Error::ModeUnsupported {
                    mode,
                    reason: format!("penalty '{}' has no tangent", term.penalty.name()),
                })?;
            dot = dot.plus(of_term);
        }
        let denominator_dot = denominator.silence(dot.positive);
        let ratio_dot = (dot.negative - ratio * denominator_dot) / denominator.value;
        let updated = factor.clone() * here.gain.clone();
        let tangent =
            direction.factor.clone() * here.gain + factor.clone() * here.gain_slope * ratio_dot;
        Ok((updated, tangent))
    }

    pub(super) fn no_slope(&self, mode: &'static str) -> Error {
        Error::ModeUnsupported {
            mode,
            reason: format!("divergence '{}' has no slope", self.divergence.name()),
        }
    }
}

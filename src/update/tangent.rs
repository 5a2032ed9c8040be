//! The hand-written derivative of one update in a direction. It does not use the tape, and never
//! forms the r×r matrices A_t of the paper.

use burn::tensor::Tensor;

use super::{Ratio, Rule, contract};
use crate::error::{Error, Result};
use crate::numerics::{Floored, Precision, power, power_of_ratio};
use crate::problem::Observed;
use crate::split::Split;

/// A direction in which factors and weights move together. `None` means fixed.
#[derive(Debug, Clone)]
pub(crate) struct Direction {
    /// ẇ, n×r.
    pub factor: Tensor<2>,
    /// Direction of the other factor, m×r.
    pub other: Option<Tensor<2>>,
    /// Direction of the weight of each term, broadcasting to n×r.
    pub weights: Vec<Option<Tensor<2>>>,
}

/// Values of the update that its derivatives need.
pub(super) struct Linearised {
    /// P and q.
    pub ratio: Ratio,
    /// q^γ.
    pub gain: Tensor<2>,
    /// γ q^(γ−1).
    pub gain_slope: Tensor<2>,
}

impl Rule {
    pub(super) fn linearised(&self, fit: Split, factor: &Tensor<2>) -> Linearised {
        let ratio = self.ratio(fit, factor);
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

    /// The update and its derivative in a direction, `A_t ẇ + b_t λ̇` in the paper's notation.
    /// Cost: O(nmr), like the update itself.
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`] with the name of `mode`, if a part has no tangent.
    ///
    /// # Shapes
    /// Those of [`update`](Rule::update). The direction's factor is n×r.
    pub(crate) fn update_with_tangent(
        &self,
        mode: &'static str,
        observed: &Observed,
        factor: &Tensor<2>,
        other: &Tensor<2>,
        direction: &Direction,
    ) -> Result<(Tensor<2>, Tensor<2>)> {
        let fit = self.fit(observed, factor, other);
        let dot = self.fit_tangent(mode, observed, factor, other, &fit.y, direction)?;
        self.tangent_of_parts(mode, factor, fit.parts, dot, direction)
    }

    /// With `ẏ = ẇ H + w Ḣ`: `Ṅ = (M ∂∇⁻ ẏ) Hᵀ + (M ∇⁻) Ḣᵀ`, and `Ṗ` likewise.
    fn fit_tangent(
        &self,
        mode: &'static str,
        observed: &Observed,
        factor: &Tensor<2>,
        other: &Tensor<2>,
        y: &Floored,
        direction: &Direction,
    ) -> Result<Split> {
        let other_dot = direction.other.clone().map(Tensor::transpose);
        let mut y_dot = direction.factor.clone().matmul(other.clone());
        if let Some(other_dot) = &other_dot {
            y_dot = y_dot + factor.clone().matmul(other_dot.clone());
        }
        let y_dot = y.silence(y_dot);
        let slope = self
            .divergence
            .slope(&observed.x, &y.value)
            .ok_or_else(|| self.no_slope(mode))?;
        // The mask is applied first. If an entry is not fitted, y may be so small that its slope is
        // infinite, and zero times infinity is NaN.
        let through_y = |slope: Option<Tensor<2>>| match slope {
            Some(slope) => contract(
                observed.masked(y.silence(slope)) * y_dot.clone(),
                None,
                other,
            ),
            None => factor.zeros_like(),
        };
        let dot = Split {
            positive: through_y(slope.positive),
            negative: through_y(slope.negative),
        };
        Ok(match &other_dot {
            None => dot,
            Some(other_dot) => {
                let split = self.divergence.split(&observed.x, &y.value);
                let mask = observed.mask.as_ref();
                dot.plus(Split {
                    positive: contract(split.positive, mask, other_dot),
                    negative: contract(split.negative, mask, other_dot),
                })
            }
        })
    }

    /// The update and its derivative, given the parts of the fit and their tangents: `q̇ = (Ṅ − q
    /// Ṗ)/P` and `Φ̇ = ẇ q^γ + w γ q^(γ−1) q̇`.
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`] with the name of `mode`, if a penalty has no tangent.
    ///
    /// # Shapes
    /// Parts broadcast to n×r.
    pub(crate) fn tangent_of_parts(
        &self,
        mode: &'static str,
        factor: &Tensor<2>,
        fit: Split,
        mut dot: Split,
        direction: &Direction,
    ) -> Result<(Tensor<2>, Tensor<2>)> {
        let here = self.linearised(fit, factor);
        let Ratio { value, denominator } = here.ratio;
        for (term, weight) in self.terms.iter().zip(&direction.weights) {
            let of_term = term
                .tangent(factor, &direction.factor, weight.as_ref())
                .ok_or_else(|| Error::ModeUnsupported {
                    mode,
                    reason: format!("penalty '{}' has no tangent", term.penalty.name()),
                })?;
            dot = dot.plus(of_term);
        }
        let denominator_dot = denominator.silence(dot.positive);
        let ratio_dot = (dot.negative - value * denominator_dot) / denominator.value;
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

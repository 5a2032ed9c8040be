//! The transposed derivative of one update, by hand: one step of the paper's
//! Lagrangian recursion.

use burn::tensor::Tensor;

use super::Rule;
use crate::error::{Error, Result};
use crate::problem::Observed;
use crate::split::Split;

impl Rule {
    /// `(A_tᵀ α, b_tᵀ α)` in the paper's letters, without forming A_t: the
    /// cotangents of the factor (n×r) and of λ (n×r, to be summed to λ's shape).
    ///
    /// The steps of the tangent in reverse order, each transposed:
    /// `q̄ = w γ q^(γ−1) α`, `N̄ = q̄/P`, `P̄ = −q q̄/P`,
    /// `ȳ = M (∂∇⁻ (N̄ H) + ∂∇⁺ (P̄ H))`, `w̄ = q^γ α + ȳ Hᵀ + penalties`.
    /// Cost: O(nmr).
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`] in the name of `mode` where a part has no
    /// cotangent.
    pub(crate) fn update_cotangent(
        &self,
        mode: &'static str,
        observed: &Observed,
        factor: &Tensor<2>,
        other: &Tensor<2>,
        lambda: &Tensor<2>,
        alpha: &Tensor<2>,
    ) -> Result<(Tensor<2>, Tensor<2>)> {
        let here = self.linearised(observed, factor, other, lambda);
        let ratio_bar = factor.clone() * here.gain_slope * alpha.clone();
        let numerator_bar = ratio_bar / here.ratio.denominator.value.clone();
        let denominator_bar = here
            .ratio
            .denominator
            .silence(-(here.ratio.value.clone() * numerator_bar.clone()));

        let slope = self
            .divergence
            .slope(&observed.x, &here.ratio.y.value)
            .ok_or_else(|| self.no_slope(mode))?;
        let mut factor_bar = here.gain * alpha.clone();
        let mut y_bar: Option<Tensor<2>> = None;
        for (slope, part_bar) in [
            (slope.negative, &numerator_bar),
            (slope.positive, &denominator_bar),
        ] {
            if let Some(slope) = slope {
                let through = here.ratio.y.silence(slope) * part_bar.clone().matmul(other.clone());
                y_bar = Some(match y_bar {
                    Some(sum) => sum + through,
                    None => through,
                });
            }
        }
        if let Some(y_bar) = y_bar {
            let weighted = match &observed.mask {
                Some(mask) => y_bar * mask.clone(),
                None => y_bar,
            };
            factor_bar = factor_bar + weighted.matmul(other.clone().transpose());
        }

        let parts = Split {
            positive: denominator_bar,
            negative: numerator_bar,
        };
        let mut lambda_bar = factor.zeros_like();
        for term in &self.terms {
            let (of_factor, of_lambda) =
                term.cotangent(factor, lambda, &parts)
                    .ok_or_else(|| Error::ModeUnsupported {
                        mode,
                        reason: format!("penalty '{}' has no cotangent", term.penalty.name()),
                    })?;
            factor_bar = factor_bar + of_factor;
            if let Some(of_lambda) = of_lambda {
                lambda_bar = lambda_bar + of_lambda;
            }
        }
        Ok((factor_bar, lambda_bar))
    }
}

//! The transposed derivative of one update, by hand: one step of the paper's
//! Lagrangian recursion.

use burn::tensor::Tensor;

use super::{Fit, Rule};
use crate::error::{Error, Result};
use crate::numerics::Floored;
use crate::problem::Observed;
use crate::split::Split;

/// The cotangent of an update's result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Multiplier<'a> {
    /// α, n×r.
    pub alpha: &'a Tensor<2>,
    /// True if the other factor depends on λ too and needs its cotangent.
    pub other_moves: bool,
}

/// The cotangents of an update's inputs.
pub(crate) struct Cotangents {
    /// Cotangent of the factor, n×r.
    pub factor: Tensor<2>,
    /// Cotangent of the other factor, r×m, if it was requested.
    pub other: Option<Tensor<2>>,
    /// Cotangent of each term's weight, n×r, to be summed to the weight's shape. `None` if the
    /// weight is fixed.
    pub weights: Vec<Option<Tensor<2>>>,
}

impl Rule {
    /// `(A_tᵀ α, b_tᵀ α)` in the paper's notation, without forming A_t.
    ///
    /// It makes the steps of the tangent in reverse order, each transposed: `q̄ = w γ q^(γ−1) α`,
    /// `N̄ = q̄/P`, `P̄ = −q q̄/P`, `ȳ = M (∂∇⁻ (N̄ H) + ∂∇⁺ (P̄ H))`, `w̄ = q^γ α + ȳ Hᵀ +
    /// penalties`. If the other factor moves too, `H̄ = wᵀ ȳ + N̄ᵀ (M ∇⁻) + P̄ᵀ (M ∇⁺)`. Cost:
    /// O(nmr).
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`] with the name of `mode`, if a part has no cotangent.
    pub(crate) fn update_cotangent(
        &self,
        mode: &'static str,
        observed: &Observed,
        factor: &Tensor<2>,
        other: &Tensor<2>,
        multiplier: Multiplier<'_>,
    ) -> Result<Cotangents> {
        let Multiplier { alpha, other_moves } = multiplier;
        let Fit { parts, y } = self.fit(observed, factor, other);
        let here = self.linearised(parts, factor);
        let ratio_bar = factor.clone() * here.gain_slope.clone() * alpha.clone();
        let numerator_bar = ratio_bar / here.ratio.denominator.value.clone();
        let denominator_bar = here
            .ratio
            .denominator
            .silence(-(here.ratio.value.clone() * numerator_bar.clone()));

        let slope = self
            .divergence
            .slope(&observed.x, &y.value)
            .ok_or_else(|| self.no_slope(mode))?;
        let mut factor_bar = here.gain.clone() * alpha.clone();
        let mut y_bar: Option<Tensor<2>> = None;
        for (slope, part_bar) in [
            (slope.negative, &numerator_bar),
            (slope.positive, &denominator_bar),
        ] {
            if let Some(slope) = slope {
                // The mask is applied first, as in the tangent.
                let slope = observed.masked(y.silence(slope));
                let through = slope * part_bar.clone().matmul(other.clone());
                y_bar = Some(match y_bar {
                    Some(sum) => sum + through,
                    None => through,
                });
            }
        }
        let other_bar = other_moves.then(|| {
            let of_parts = self.other_through_parts(
                observed,
                &y,
                &numerator_bar,
                &denominator_bar.clone().expand(factor.dims()),
            );
            match &y_bar {
                Some(y_bar) => of_parts + factor.clone().transpose().matmul(y_bar.clone()),
                None => of_parts,
            }
        });
        if let Some(weighted) = y_bar {
            factor_bar = factor_bar + weighted.matmul(other.clone().transpose());
        }

        let parts = Split {
            positive: denominator_bar,
            negative: numerator_bar,
        };
        let (of_penalties, weights) = self.penalty_cotangents(mode, factor, &parts)?;
        Ok(Cotangents {
            factor: factor_bar + of_penalties,
            other: other_bar,
            weights,
        })
    }

    /// The cotangents of N and P, carried back through the penalties: that of the factor, and those
    /// of the terms' weights, n×r each.
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`] with the name of `mode`, if a penalty has no cotangent.
    pub(crate) fn penalty_cotangents(
        &self,
        mode: &'static str,
        factor: &Tensor<2>,
        parts: &Split,
    ) -> Result<(Tensor<2>, Vec<Option<Tensor<2>>>)> {
        let mut factor_bar = factor.zeros_like();
        let mut weights = Vec::with_capacity(self.terms.len());
        for term in &self.terms {
            let (of_factor, of_weight) =
                term.cotangent(factor, parts)
                    .ok_or_else(|| Error::ModeUnsupported {
                        mode,
                        reason: format!("penalty '{}' has no cotangent", term.penalty.name()),
                    })?;
            factor_bar = factor_bar + of_factor;
            weights.push(of_weight.map(|bar| bar.expand(factor.dims())));
        }
        Ok((factor_bar, weights))
    }

    /// `N̄ᵀ (M ∇⁻) + P̄ᵀ (M ∇⁺)`, r×m.
    fn other_through_parts(
        &self,
        observed: &Observed,
        y: &Floored,
        numerator_bar: &Tensor<2>,
        denominator_bar: &Tensor<2>,
    ) -> Tensor<2> {
        let split = self.divergence.split(&observed.x, &y.value);
        let through = |part: Tensor<2>, bar: &Tensor<2>| {
            let part = part.expand(observed.x.dims());
            bar.clone().transpose().matmul(observed.masked(part))
        };
        through(split.negative, numerator_bar) + through(split.positive, denominator_bar)
    }
}

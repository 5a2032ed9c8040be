//! Gradients split into nonnegative parts, for multiplicative updates.

use burn::tensor::Tensor;

/// A gradient written as a difference of nonnegative parts, `∇ = ∇⁺ − ∇⁻`.
///
/// The multiplicative update moves a factor by the ratio of the two, so every
/// [`Divergence`](crate::Divergence) and [`Penalty`](crate::Penalty) returns its gradient in this
/// form. The split is not unique; each penalty documents its own.
///
/// # Shapes
/// Both parts broadcast against the matrix the gradient belongs to: a constant part may be a 1×1
/// tensor.
#[derive(Debug, Clone)]
pub struct Split {
    /// `∇⁺`: it goes into the denominator of the update.
    pub positive: Tensor<2>,
    /// `∇⁻`: it goes into the numerator of the update.
    pub negative: Tensor<2>,
}

impl Split {
    /// Both parts times `factor` (broadcast).
    #[must_use]
    pub fn scaled(self, factor: &Tensor<2>) -> Self {
        Self {
            positive: self.positive * factor.clone(),
            negative: self.negative * factor.clone(),
        }
    }

    /// The sum of two splits, part by part (broadcast).
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            positive: self.positive + other.positive,
            negative: self.negative + other.negative,
        }
    }
}

/// The powers with which the two parts of a split grow in the majoriser of a multiplicative update.
/// They determine the monotone exponent.
///
/// Write `u = w_new / w_old`. If the majoriser's derivative is `∇⁺ u^growing − ∇⁻ u^decaying`, its
/// zero is `u = (∇⁻/∇⁺)^(1/(growing − decaying))`. In a sum of two functions, each can be replaced
/// by a looser majoriser with the larger `growing` and the smaller `decaying` (`u^a/a ≤ u^b/b +
/// const` for `a ≤ b`), so powers combine by maximum and minimum and the update stays monotone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MajoriserPowers {
    /// Power of u that multiplies `∇⁺`.
    pub growing: f64,
    /// Power of u that multiplies `∇⁻`.
    pub decaying: f64,
}

impl MajoriserPowers {
    /// The powers of a sum of two functions.
    #[must_use]
    pub(crate) fn combined(self, other: Self) -> Self {
        Self {
            growing: self.growing.max(other.growing),
            decaying: self.decaying.min(other.decaying),
        }
    }

    /// `γ = 1 / (growing − decaying)`.
    pub(crate) fn exponent(self) -> f64 {
        1.0 / (self.growing - self.decaying)
    }
}

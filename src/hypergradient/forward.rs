//! Forward mode: hand-written tangents, the mode that the paper's algorithm uses.

use burn::tensor::Tensor;

use super::{Differentiate, Hypergradient, unit};
use crate::bunch::Bunch;
use crate::error::{Error, Result};
use crate::numerics::{Floored, Precision};
use crate::update::Direction;

/// Carries the tangent `s_t = dw⁽ᵗ⁾/dλ` along with the updates,
///
/// $$ s_t = A_t s_{t-1} + b_t, \quad s_0 = 0, \qquad dE/d\lambda_i = g_T^\top s_T $$
///
/// as Jacobian-vector products: O(nmr) per step, A_t is never formed. Where rows
/// are independent, one tangent serves all λ_i at once. A coupled penalty needs
/// one tangent per λ_i, n times the work: use reverse or adjoint mode there,
/// except to check them.
///
/// # Memory
/// w and s (n×r), and the temporaries of one step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Forward {
    pub(crate) fault: Fault,
}

/// A deliberate mistake, for the negative controls of the gradient checker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fault {
    /// None: the correct formulas.
    #[default]
    None,
    /// The outer gradient as the paper prints it, `−(∇⁺ + ∇⁻) Hᵀ`.
    PrintedOuterGradient,
    /// `s_T = A_T s_{T−1} − b_T`: one sign of the last step is flipped. (A sign
    /// before A_T would not do: where one update reaches the fixed point, as with
    /// β = 2 and r = 1, A_T is zero.)
    FlippedSign,
}

impl Fault {
    /// In a few words.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::None => "no mistake",
            Self::PrintedOuterGradient => "outer gradient as printed",
            Self::FlippedSign => "one sign flipped in the tangent",
        }
    }
}

impl Forward {
    /// `(w⁽ᵀ⁾, s_T)` when λ moves in a direction (n×1).
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`] where a part has no tangent.
    pub fn tangent(
        &self,
        bunch: &Bunch,
        w: &Tensor<2>,
        lambda: &Tensor<2>,
        lambda_direction: &Tensor<2>,
    ) -> Result<(Tensor<2>, Tensor<2>)> {
        let mut w = w.clone();
        let mut direction = Direction::of_lambda(&bunch.rule, w.zeros_like(), lambda_direction);
        for t in 1..=bunch.length {
            if self.fault == Fault::FlippedSign && t == bunch.length {
                let flipped = -lambda_direction.clone();
                direction = Direction::of_lambda(&bunch.rule, direction.factor, &flipped);
            }
            let observed = &bunch.observed;
            (w, direction.factor) = bunch.rule.update_with_tangent(
                self.name(),
                observed,
                &w,
                &bunch.other,
                lambda,
                &direction,
            )?;
        }
        Ok((w, direction.factor))
    }

    /// How large the terms are whose sum is dE/dλ, row by row (n×1): where they
    /// cancel, only rounding is left.
    pub(crate) fn scale(
        &self,
        bunch: &Bunch,
        w: &Tensor<2>,
        lambda: &Tensor<2>,
    ) -> Result<Tensor<2>> {
        let (end, tangent) = self.tangent(bunch, w, lambda, &lambda.ones_like())?;
        let y = bunch.rule.reconstruct(&end, &bunch.other);
        let split = bunch.rule.divergence.split(&bunch.observed.x, &y);
        let y_dot = tangent.matmul(bunch.other.clone()).abs();
        Ok(((split.positive + split.negative) * y_dot).sum_dim(1))
    }

    fn outer_gradient(&self, bunch: &Bunch, w: &Tensor<2>) -> Result<Tensor<2>> {
        match self.fault {
            Fault::PrintedOuterGradient => {
                let y = bunch.rule.reconstruct(w, &bunch.other);
                let split = bunch.rule.divergence.split(&bunch.observed.x, &y);
                let printed = -(split.positive + split.negative);
                Ok(printed
                    .expand(y.dims())
                    .matmul(bunch.other.clone().transpose()))
            }
            _ => outer_gradient(self.name(), bunch, w),
        }
    }
}

/// `g_T = ∂E/∂w⁽ᵀ⁾`, n×r, by hand. For KL and the training error it is
/// `Σ_j h_kj (1 − x_ij/y_ij)`.
pub(super) fn outer_gradient(
    mode: &'static str,
    bunch: &Bunch,
    w: &Tensor<2>,
) -> Result<Tensor<2>> {
    let floor = bunch.rule.divergence.floor(Precision::of(w));
    let floored = Floored::new(w.clone().matmul(bunch.other.clone()), floor);
    let derivative = bunch
        .criterion
        .derivative(
            bunch.rule.divergence.as_ref(),
            &bunch.observed,
            &floored.value,
        )
        .ok_or_else(|| Error::ModeUnsupported {
            mode,
            reason: format!("criterion '{}' has no derivative", bunch.criterion.name()),
        })?;
    Ok(floored
        .silence(derivative)
        .matmul(bunch.other.clone().transpose()))
}

impl Differentiate for Forward {
    fn name(&self) -> &'static str {
        "forward"
    }

    fn compute(&self, bunch: &Bunch, w: &Tensor<2>, lambda: &Tensor<2>) -> Result<Hypergradient> {
        if bunch.rule.is_separable() {
            let (end, tangent) = self.tangent(bunch, w, lambda, &lambda.ones_like())?;
            let gradient = (self.outer_gradient(bunch, &end)? * tangent).sum_dim(1);
            return Ok(bunch.outcome(end, gradient));
        }
        let n = lambda.dims()[0];
        let mut end = w.clone();
        let mut entries = Vec::with_capacity(n);
        for row in 0..n {
            let (w_end, tangent) = self.tangent(bunch, w, lambda, &unit(lambda, row))?;
            let product = self.outer_gradient(bunch, &w_end)? * tangent;
            entries.push(product.sum().reshape([1, 1]));
            end = w_end;
        }
        Ok(bunch.outcome(end, Tensor::cat(entries, 0)))
    }
}

//! Adjoint mode: the paper's Lagrangian recursion, corrected.

use burn::tensor::Tensor;

use super::forward::outer_gradient;
use super::{Differentiate, Hypergradient};
use crate::bunch::Bunch;
use crate::error::Result;
use crate::update::Multiplier;

/// Carries the multipliers α_t backwards through the stored states,
///
/// $$ \alpha_T = g_T, \qquad h_{t-1} = h_t + b_t^\top \alpha_t, \qquad \alpha_{t-1} = A_t^\top \alpha_t $$
///
/// with `h_T = 0`; the hypergradient is h_0. (The paper prints `A_t α_t` and
/// `b_t α_tᵀ`, which is off by a transpose.) Hand-written like forward mode, but
/// one pass serves every λ_i, coupled penalties included.
///
/// # Memory
/// The states w⁽⁰⁾ … w⁽ᵀ⁾ (n×r each); all else is computed again.
#[derive(Debug, Clone, Copy, Default)]
pub struct Adjoint;

impl Differentiate for Adjoint {
    fn name(&self) -> &'static str {
        "adjoint"
    }

    fn compute(&self, bunch: &Bunch, w: &Tensor<2>, lambda: &Tensor<2>) -> Result<Hypergradient> {
        let states = bunch.trajectory(w, lambda);
        let end = states[bunch.length].clone();
        let mut alpha = outer_gradient(self.name(), bunch, &end)?;
        let mut gradient = lambda.zeros_like();
        for state in states[..bunch.length].iter().rev() {
            let bars = bunch.rule.update_cotangent(
                self.name(),
                &bunch.observed,
                state,
                &bunch.other,
                lambda,
                Multiplier {
                    alpha: &alpha,
                    other_moves: false,
                },
            )?;
            for of_weight in bars.weights.into_iter().flatten() {
                gradient = gradient + of_weight.sum_dim(1);
            }
            alpha = bars.factor;
        }
        Ok(bunch.outcome(end, gradient))
    }
}

//! The λ step: projected gradient descent.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The step size c of `λ ← clip(λ − c · dE/dλ, 0, λ_max)`.
///
/// The projection is part of the method although the paper does not print it:
/// `‖LW‖₁ = Σ λ_i ‖w_i‖₁` needs λ ≥ 0, and without it runs become non-finite at
/// some scales of H.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LambdaStep {
    /// `c = 1/iteration`, the paper's; iterations count from 1.
    #[default]
    InverseIteration,
    /// The same c throughout.
    Constant(f64),
}

impl LambdaStep {
    /// Refuses a step that is not a positive number.
    ///
    /// # Errors
    /// [`Error::Setting`].
    pub fn check(self) -> Result<()> {
        match self {
            Self::Constant(c) if !(c.is_finite() && c > 0.0) => Err(Error::Setting {
                setting: "the λ step",
                value: c,
                range: "a positive number",
            }),
            _ => Ok(()),
        }
    }

    /// c in iteration `iteration` (from 1).
    pub fn size(self, iteration: usize) -> f64 {
        match self {
            Self::InverseIteration => 1.0 / iteration as f64,
            Self::Constant(c) => c,
        }
    }

    /// One projected step.
    ///
    /// # Shapes
    /// `lambda` and `hypergradient` n×1.
    pub fn apply(
        self,
        lambda: &Tensor<2>,
        hypergradient: &Tensor<2>,
        iteration: usize,
        lambda_max: f64,
    ) -> Tensor<2> {
        let stepped = lambda.clone() - hypergradient.clone() * self.size(iteration);
        let projected = stepped.clamp_min(0.0);
        if lambda_max.is_finite() {
            projected.clamp_max(lambda_max)
        } else {
            projected
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::numerics::{Precision, to_host};

    #[test]
    fn steps_are_projected_to_the_interval() {
        let column = |v: [f64; 3]| Device::default().tensor(v.to_vec(), [3, 1], Precision::F64);
        let lambda = column([1.0, 1.0, 1.0]);
        let gradient = column([4.0, 1.0, -8.0]);
        let step = LambdaStep::InverseIteration;
        let moved = to_host(&step.apply(&lambda, &gradient, 2, f64::INFINITY));
        assert_eq!(moved, [0.0, 0.5, 5.0]);
        let moved = to_host(&step.apply(&lambda, &gradient, 2, 3.0));
        assert_eq!(moved, [0.0, 0.5, 3.0]);
        let moved = to_host(&LambdaStep::Constant(0.1).apply(&lambda, &gradient, 9, 3.0));
        assert_eq!(moved, [0.6, 0.9, 1.8]);
        for bad in [0.0, -1.0, f64::NAN] {
            assert!(LambdaStep::Constant(bad).check().is_err());
        }
    }
}

//! The λ step: projected gradient descent.

use ndarray::Array2;
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

    /// One projected step, in place.
    ///
    /// # Shapes
    /// `lambda` and `hypergradient` n×1.
    pub fn apply(
        self,
        lambda: &mut Array2<f64>,
        hypergradient: &Array2<f64>,
        iteration: usize,
        lambda_max: f64,
    ) {
        let size = self.size(iteration);
        lambda.zip_mut_with(hypergradient, |lambda, slope| {
            // Not `clamp`: what is not a number must stay one, to be noticed.
            let stepped = *lambda - size * slope;
            *lambda = if stepped < 0.0 {
                0.0
            } else if stepped > lambda_max {
                lambda_max
            } else {
                stepped
            };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn steps_are_projected_to_the_interval() {
        let gradient = array![[4.0], [1.0], [-8.0], [f64::NAN]];
        let moved = |step: LambdaStep, iteration, lambda_max| {
            let mut lambda = Array2::ones((4, 1));
            step.apply(&mut lambda, &gradient, iteration, lambda_max);
            assert!(lambda[[3, 0]].is_nan());
            [lambda[[0, 0]], lambda[[1, 0]], lambda[[2, 0]]]
        };
        let step = LambdaStep::InverseIteration;
        assert_eq!(moved(step, 2, f64::INFINITY), [0.0, 0.5, 5.0]);
        assert_eq!(moved(step, 2, 3.0), [0.0, 0.5, 3.0]);
        assert_eq!(moved(LambdaStep::Constant(0.1), 9, 3.0), [0.6, 0.9, 1.8]);
        for bad in [0.0, -1.0, f64::NAN] {
            assert!(LambdaStep::Constant(bad).check().is_err());
        }
    }
}

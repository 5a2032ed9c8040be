//! The λ step: from λ and its hypergradient to the next λ.
//!
//! | name | step |
//! |---|---|
//! | `inv-iter` | `λ − dE/dλ / iteration`: the paper's |
//! | `constant:c` | `λ − c dE/dλ` |
//! | `normalized:ρ` | `log λ − ρ u / max abs u`, with `u = λ dE/dλ`, the slope along log λ |
//! | `adam:ρ` | Adam (0.9, 0.99) on log λ, its rate falling from ρ to 0 over the iterations |
//!
//! The first two depend on the scale of X, W and λ. The last two do not, and even a huge
//! hypergradient moves log λ by little more than ρ.

use std::fmt::{self, Debug};
use std::str::FromStr;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A rule for the steps of λ. Your own rule is used like the built-in ones ([`LambdaStep`]):
/// [`Solver::with_lambda_step`](crate::Solver::with_lambda_step).
///
/// ```
/// use altbi::lambda::{StepAt, StepRule};
/// use ndarray::Array2;
///
/// /// Against the sign of the slope, by a share of λ.
/// #[derive(Debug)]
/// struct BySign;
///
/// impl StepRule for BySign {
///     fn step(&self, lambda: &mut Array2<f64>, slope: &Array2<f64>, _: StepAt, _: &mut Array2<f64>) {
///         lambda.zip_mut_with(slope, |l, slope| *l *= 1.0 - 0.05 * slope.signum());
///     }
/// }
///
/// let x = ndarray::array![[1.0, 2.0, 0.5], [0.3, 1.0, 4.0]];
/// let config = altbi::AltBiConfig::new(1).with_max_iterations(5);
/// let outcome = config.solver(altbi::Beta::KL, altbi::L1).with_lambda_step(BySign).fit(&x)?;
/// assert!(outcome.lambda.iter().all(|weight| *weight > 0.0));
/// # Ok::<(), altbi::Error>(())
/// ```
pub trait StepRule: Debug + Send + Sync {
    /// One step, in place. The solver projects the result to the interval of λ.
    ///
    /// # Shapes
    /// `lambda` and `hypergradient` p×1, `memory` p×[`memories`](Self::memories): zeros in the
    /// first iteration, then the values of the last step. Checkpoints save it.
    fn step(
        &self,
        lambda: &mut Array2<f64>,
        hypergradient: &Array2<f64>,
        at: StepAt,
        memory: &mut Array2<f64>,
    );

    /// Numbers of memory per weight.
    fn memories(&self) -> usize {
        0
    }

    /// Returns true if the step of a weight does not depend on other weights. Otherwise several
    /// processes exchange all weights before a step.
    fn is_entrywise(&self) -> bool {
        false
    }

    /// Returns true if it steps along log λ, which
    /// [`Scope::Hierarchical`](super::Scope::Hierarchical) needs.
    fn is_along_logarithm(&self) -> bool {
        false
    }
}

/// The iteration that a step belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepAt {
    /// The iteration, counted from 1.
    pub iteration: usize,
    /// The largest number of iterations.
    pub iterations: usize,
}

/// The built-in steps. The result of every rule is projected to the interval of λ.
///
/// The projection is part of the method, although the paper does not mention it: `‖LW‖₁ = Σ λ_i
/// ‖w_i‖₁` needs λ ≥ 0, and without it runs become non-finite at some scales of H. Steps along log
/// λ never leave zero.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LambdaStep {
    /// `λ − dE/dλ / iteration`, as in the paper. Iterations are counted from 1.
    #[default]
    InverseIteration,
    /// `λ − c dE/dλ`.
    Constant(f64),
    /// A step in log λ. The weight with the steepest slope moves by this much.
    Normalized(f64),
    /// Adam on log λ with this rate, which falls linearly to 0.
    Adam(f64),
}

/// Decay rates of Adam's means of slopes and of squares.
const MEMORY: (f64, f64) = (0.9, 0.99);
/// Slopes are clipped to this, so that their squares are finite.
const STEEPEST: f64 = 1e100;

impl FromStr for LambdaStep {
    type Err = Error;

    /// # Errors
    /// [`Error::UnknownName`]; [`Error::Setting`] for a number that is not positive.
    fn from_str(text: &str) -> Result<Self> {
        let step = match text.split_once(':') {
            None if text == "inv-iter" => Some(Self::InverseIteration),
            Some(("constant", number)) => number.parse().ok().map(Self::Constant),
            Some(("normalized", number)) => number.parse().ok().map(Self::Normalized),
            Some(("adam", number)) => number.parse().ok().map(Self::Adam),
            _ => None,
        };
        let step = step.ok_or_else(|| Error::UnknownName {
            kind: "λ step",
            name: text.into(),
            known: "inv-iter, constant:<number>, normalized:<rate>, adam:<rate>",
        })?;
        step.check()?;
        Ok(step)
    }
}

impl fmt::Display for LambdaStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InverseIteration => formatter.write_str("inv-iter"),
            Self::Constant(c) => write!(formatter, "constant:{c}"),
            Self::Normalized(rate) => write!(formatter, "normalized:{rate}"),
            Self::Adam(rate) => write!(formatter, "adam:{rate}"),
        }
    }
}

impl LambdaStep {
    /// Refuses a step that is not a positive number.
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Self::InverseIteration => Ok(()),
            Self::Constant(c) | Self::Normalized(c) | Self::Adam(c) => {
                let positive = c.is_finite() && c > 0.0;
                Error::require(positive, "the λ step", c, "a positive number")
            }
        }
    }
}

impl StepRule for LambdaStep {
    fn memories(&self) -> usize {
        match self {
            // Running means of the slope along log λ and of its square.
            Self::Adam(_) => 2,
            _ => 0,
        }
    }

    fn is_entrywise(&self) -> bool {
        !matches!(self, Self::Normalized(_))
    }

    fn is_along_logarithm(&self) -> bool {
        matches!(self, Self::Normalized(_) | Self::Adam(_))
    }

    fn step(
        &self,
        lambda: &mut Array2<f64>,
        hypergradient: &Array2<f64>,
        at: StepAt,
        memory: &mut Array2<f64>,
    ) {
        let StepAt {
            iteration,
            iterations,
        } = at;
        let descend = |lambda: &mut Array2<f64>, size: f64| {
            lambda.zip_mut_with(hypergradient, |l, slope| *l -= size * slope);
        };
        match *self {
            Self::InverseIteration => descend(lambda, 1.0 / iteration as f64),
            Self::Constant(c) => descend(lambda, c),
            Self::Normalized(rate) => {
                let slopes = lambda.iter().zip(hypergradient).map(|(l, g)| (l * g).abs());
                let steepest = slopes.fold(0.0, f64::max);
                if steepest > 0.0 {
                    lambda.zip_mut_with(hypergradient, |l, g| {
                        *l *= (-rate * (*l * g / steepest)).exp();
                    });
                }
            }
            Self::Adam(rate) => {
                let (slow, slower) = MEMORY;
                let power = i32::try_from(iteration).unwrap_or(i32::MAX);
                // This corrects for means that begin at zero.
                let (ripe, riper) = (1.0 - slow.powi(power), 1.0 - slower.powi(power));
                let left = 1.0 - (iteration - 1) as f64 / iterations as f64;
                let entries = lambda.iter_mut().zip(hypergradient);
                for ((l, g), mut means) in entries.zip(memory.rows_mut()) {
                    let slope = (*l * g).clamp(-STEEPEST, STEEPEST);
                    means[0] = slow * means[0] + (1.0 - slow) * slope;
                    means[1] = slower * means[1] + (1.0 - slower) * slope * slope;
                    let size = (means[1] / riper).sqrt();
                    if size > 0.0 {
                        *l *= (-rate * left * (means[0] / ripe) / size).exp();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn steps_have_words() {
        for text in ["inv-iter", "constant:0.1", "normalized:0.05", "adam:0.3"] {
            assert_eq!(text.parse::<LambdaStep>().unwrap().to_string(), text);
        }
        for wrong in ["constant:0", "constant", "adam"] {
            assert!(wrong.parse::<LambdaStep>().is_err(), "{wrong}");
        }
    }

    fn at(iteration: usize, iterations: usize) -> StepAt {
        StepAt {
            iteration,
            iterations,
        }
    }

    #[test]
    fn steps_go_down() {
        let gradient = array![[4.0], [1.0], [-8.0], [f64::NAN]];
        let moved = |step: LambdaStep, iteration| {
            let mut lambda = Array2::ones((4, 1));
            let mut memory = Array2::zeros((4, 0));
            step.step(&mut lambda, &gradient, at(iteration, 10), &mut memory);
            assert!(lambda[[3, 0]].is_nan());
            [lambda[[0, 0]], lambda[[1, 0]], lambda[[2, 0]]]
        };
        assert_eq!(moved(LambdaStep::InverseIteration, 2), [-1.0, 0.5, 5.0]);
        assert_eq!(moved(LambdaStep::Constant(0.1), 9), [0.6, 0.9, 1.8]);
        for bad in [0.0, -1.0, f64::NAN] {
            assert!(LambdaStep::Constant(bad).check().is_err());
            assert!(LambdaStep::Adam(bad).check().is_err());
            assert!(LambdaStep::Normalized(bad).check().is_err());
        }
    }

    #[test]
    fn normalised_steps_know_no_units() {
        let step = LambdaStep::Normalized(0.5);
        let moved = |scale: f64| {
            // λ in other units: λ grows by the scale, and dE/dλ shrinks by it.
            let mut lambda = array![[1.0], [2.0], [0.0], [4.0]] * scale;
            let gradient = array![[1.0], [-2.0], [7.0], [0.25]] / scale;
            step.step(
                &mut lambda,
                &gradient,
                at(1, 10),
                &mut Array2::zeros((4, 0)),
            );
            lambda / scale
        };
        let plain = moved(1.0);
        // u = (1, −4, 0, 1), so log λ moves by −0.5 u / 4.
        let expected = [
            (-0.125f64).exp(),
            2.0 * 0.5f64.exp(),
            0.0,
            4.0 * (-0.125f64).exp(),
        ];
        for (found, expected) in plain.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-14);
        }
        for (a, b) in plain.iter().zip(&moved(1e60)) {
            assert!((a - b).abs() <= 1e-12 * a.abs());
        }
        let mut lambda = array![[1.0]];
        step.step(
            &mut lambda,
            &array![[0.0]],
            at(1, 10),
            &mut Array2::zeros((1, 0)),
        );
        assert_eq!(lambda[[0, 0]], 1.0);
    }

    #[test]
    fn adam_agrees_with_a_plain_loop_and_is_not_blown_up() {
        let (rate, iterations) = (0.3, 8);
        let step = LambdaStep::Adam(rate);
        let mut lambda = array![[0.5], [2.0], [0.0]];
        let mut memory = Array2::zeros((3, step.memories()));
        let (mut theta, mut m, mut v) = ([0.5f64.ln(), 2.0f64.ln()], [0.0; 2], [0.0; 2]);
        for k in 1..=iterations {
            let gradient = array![[1.0 / k as f64], [-3.0], [5.0]];
            step.step(&mut lambda, &gradient, at(k, iterations), &mut memory);
            for i in 0..2 {
                let slope = theta[i].exp() * gradient[[i, 0]];
                m[i] = 0.9 * m[i] + 0.1 * slope;
                v[i] = 0.99 * v[i] + 0.01 * slope * slope;
                let first = m[i] / (1.0 - 0.9f64.powi(k as i32));
                let second: f64 = v[i] / (1.0 - 0.99f64.powi(k as i32));
                let left = 1.0 - (k as f64 - 1.0) / iterations as f64;
                theta[i] -= rate * left * first / second.sqrt();
                let expected = theta[i].exp();
                assert!(
                    (lambda[[i, 0]] - expected).abs() < 1e-12 * expected,
                    "{k} {i}"
                );
            }
            assert_eq!(lambda[[2, 0]], 0.0, "steps along log λ never leave zero");
        }
        let mut lambda = array![[1.0]];
        let mut memory = Array2::zeros((1, step.memories()));
        for (k, gradient) in [1e-5, -1e77, 1e300, 1.0].into_iter().enumerate() {
            let before = lambda[[0, 0]];
            step.step(&mut lambda, &array![[gradient]], at(k + 1, 8), &mut memory);
            let change = (lambda[[0, 0]] / before).ln().abs();
            // At most (1 − 0.9) / √(1 − 0.99) = 1, with the correction for the start.
            assert!(
                change <= 2.0 * rate && lambda[[0, 0]].is_finite(),
                "{change}"
            );
        }
    }
}

//! The λ step: from λ and its hypergradient to the next λ.
//!
//! | name | step |
//! |---|---|
//! | `inv-iter` | `λ − dE/dλ / iteration`: the paper's |
//! | `constant:c` | `λ − c dE/dλ` |
//! | `normalized:ρ` | `log λ − ρ u / max abs u`, with `u = λ dE/dλ`, the slope along log λ |
//! | `adam:ρ` | Adam (0.9, 0.99) on log λ, its rate falling from ρ to 0 over the iterations |
//!
//! The first two have units: what they do depends on the scale of X, W and λ. The last
//! two do not, and no hypergradient, however large, moves log λ by much more than ρ.

use std::fmt;
use std::str::FromStr;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How λ moves. Whatever the rule, the result is kept in `[0, λ_max]`.
///
/// The projection is part of the method although the paper does not print it:
/// `‖LW‖₁ = Σ λ_i ‖w_i‖₁` needs λ ≥ 0, and without it runs become non-finite at
/// some scales of H. Steps along log λ never leave zero.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LambdaStep {
    /// `λ − dE/dλ / iteration`, the paper's; iterations count from 1.
    #[default]
    InverseIteration,
    /// `λ − c dE/dλ`.
    Constant(f64),
    /// Along log λ, the row with the steepest slope by this much.
    Normalized(f64),
    /// Adam on log λ with this rate, which falls linearly to 0.
    Adam(f64),
}

/// What Adam remembers: running means of the slope along log λ and of its square.
///
/// # Shapes
/// n×1 each.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// Of the slope.
    pub first: Array2<f64>,
    /// Of its square.
    pub second: Array2<f64>,
}

/// Adam's memory of slopes and of squares.
const MEMORY: (f64, f64) = (0.9, 0.99);
/// Slopes beyond this are cut: their squares must be finite.
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
    ///
    /// # Errors
    /// [`Error::Setting`].
    pub fn check(self) -> Result<()> {
        match self {
            Self::Constant(c) | Self::Normalized(c) | Self::Adam(c)
                if !(c.is_finite() && c > 0.0) =>
            {
                Err(Error::Setting {
                    setting: "the λ step",
                    value: c,
                    range: "a positive number",
                })
            }
            _ => Ok(()),
        }
    }

    /// What the step has to remember from one iteration to the next, if anything.
    pub fn moments(self, lambda: &Array2<f64>) -> Option<Moments> {
        matches!(self, Self::Adam(_)).then(|| Moments {
            first: Array2::zeros(lambda.raw_dim()),
            second: Array2::zeros(lambda.raw_dim()),
        })
    }

    /// One step, in place, in iteration `iteration` (from 1) of `iterations`. `moments` is
    /// what [`moments`](Self::moments) gave at the start.
    ///
    /// # Panics
    /// If Adam's moments are missing.
    ///
    /// # Shapes
    /// `lambda` and `hypergradient` n×1.
    pub fn apply(
        self,
        lambda: &mut Array2<f64>,
        hypergradient: &Array2<f64>,
        iteration: usize,
        iterations: usize,
        lambda_max: f64,
        moments: Option<&mut Moments>,
    ) {
        let kept = |stepped: f64| {
            // Not `clamp`: what is not a number must stay one, to be noticed.
            if stepped < 0.0 {
                0.0
            } else if stepped > lambda_max {
                lambda_max
            } else {
                stepped
            }
        };
        let descend = |lambda: &mut Array2<f64>, size: f64| {
            lambda.zip_mut_with(hypergradient, |l, slope| *l = kept(*l - size * slope));
        };
        match self {
            Self::InverseIteration => descend(lambda, 1.0 / iteration as f64),
            Self::Constant(c) => descend(lambda, c),
            Self::Normalized(rate) => {
                let slopes = lambda.iter().zip(hypergradient).map(|(l, g)| (l * g).abs());
                let steepest = slopes.fold(0.0, f64::max);
                if steepest > 0.0 {
                    lambda.zip_mut_with(hypergradient, |l, g| {
                        *l = kept(*l * (-rate * (*l * g / steepest)).exp());
                    });
                }
            }
            Self::Adam(rate) => {
                let moments = moments.expect("Adam's moments are made at the start");
                let (slow, slower) = MEMORY;
                let power = i32::try_from(iteration).unwrap_or(i32::MAX);
                // Both means begin at zero; this makes up for it.
                let (ripe, riper) = (1.0 - slow.powi(power), 1.0 - slower.powi(power));
                let left = 1.0 - (iteration - 1) as f64 / iterations as f64;
                let both = moments.first.iter_mut().zip(&mut moments.second);
                let entries = lambda.iter_mut().zip(hypergradient).zip(both);
                for ((l, g), (first, second)) in entries {
                    let slope = (*l * g).clamp(-STEEPEST, STEEPEST);
                    *first = slow * *first + (1.0 - slow) * slope;
                    *second = slower * *second + (1.0 - slower) * slope * slope;
                    let size = (*second / riper).sqrt();
                    if size > 0.0 {
                        *l = kept(*l * (-rate * left * (*first / ripe) / size).exp());
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_words() {
        for text in ["inv-iter", "constant:0.1", "normalized:0.05", "adam:0.3"] {
            assert_eq!(text.parse::<LambdaStep>().unwrap().to_string(), text);
        }
        for wrong in ["constant:0", "constant", "adam"] {
            assert!(wrong.parse::<LambdaStep>().is_err(), "{wrong}");
        }
    }
    use ndarray::array;

    #[test]
    fn steps_are_projected_to_the_interval() {
        let gradient = array![[4.0], [1.0], [-8.0], [f64::NAN]];
        let moved = |step: LambdaStep, iteration, lambda_max| {
            let mut lambda = Array2::ones((4, 1));
            step.apply(&mut lambda, &gradient, iteration, 10, lambda_max, None);
            assert!(lambda[[3, 0]].is_nan());
            [lambda[[0, 0]], lambda[[1, 0]], lambda[[2, 0]]]
        };
        let step = LambdaStep::InverseIteration;
        assert_eq!(moved(step, 2, f64::INFINITY), [0.0, 0.5, 5.0]);
        assert_eq!(moved(step, 2, 3.0), [0.0, 0.5, 3.0]);
        assert_eq!(moved(LambdaStep::Constant(0.1), 9, 3.0), [0.6, 0.9, 1.8]);
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
            step.apply(&mut lambda, &gradient, 1, 10, f64::INFINITY, None);
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
        step.apply(&mut lambda, &array![[0.0]], 1, 10, 1.0, None);
        assert_eq!(lambda[[0, 0]], 1.0);
    }

    #[test]
    fn adam_agrees_with_a_plain_loop_and_is_not_blown_up() {
        let (rate, iterations) = (0.3, 8);
        let step = LambdaStep::Adam(rate);
        let mut lambda = array![[0.5], [2.0], [0.0]];
        let mut moments = step.moments(&lambda).unwrap();
        let (mut theta, mut m, mut v) = ([0.5f64.ln(), 2.0f64.ln()], [0.0; 2], [0.0; 2]);
        for k in 1..=iterations {
            let gradient = array![[1.0 / k as f64], [-3.0], [5.0]];
            step.apply(
                &mut lambda,
                &gradient,
                k,
                iterations,
                1e3,
                Some(&mut moments),
            );
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
        let mut moments = step.moments(&lambda).unwrap();
        for (k, gradient) in [1e-5, -1e77, 1e300, 1.0].into_iter().enumerate() {
            let before = lambda[[0, 0]];
            step.apply(
                &mut lambda,
                &array![[gradient]],
                k + 1,
                8,
                1e9,
                Some(&mut moments),
            );
            let change = (lambda[[0, 0]] / before).ln().abs();
            // At most (1 − 0.9) / √(1 − 0.99) = 1, with what the beginning adds.
            assert!(
                change <= 2.0 * rate && lambda[[0, 0]].is_finite(),
                "{change}"
            );
        }
    }
}

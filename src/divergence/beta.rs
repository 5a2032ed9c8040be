//! The β-divergences: every real β, with exact cases 2, 1 and 0.

use burn::tensor::Tensor;

use super::{Divergence, Fused, Slope};
use crate::numerics::{Precision, power};
use crate::split::{MajoriserPowers, Split};

/// The β-divergence.
///
/// $$ d_\beta(x, y) = \frac{x^\beta + (\beta - 1) y^\beta - \beta x y^{\beta - 1}}{\beta (\beta - 1)} $$
///
/// | β | name | d(x, y) |
/// |---|---|---|
/// | 2 | squared Frobenius | ½ (x − y)² |
/// | 1 | Kullback-Leibler | x log(x/y) − x + y |
/// | 0 | Itakura-Saito | x/y − log(x/y) − 1 |
///
/// Its derivative splits into `∇⁺ = y^(β−1)` and `∇⁻ = x y^(β−2)`. For β ≤ 0 the divergence is
/// infinite at x = 0, so such data are refused.
///
/// Within about 1e-6 of β = 1 and β = 0 (but not at them) the general formula
/// subtracts nearly equal numbers and loses digits of the *value*; the updates
/// and hypergradients do not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beta(pub f64);

impl Beta {
    /// Generalised Kullback-Leibler divergence: the paper's choice.
    pub const KL: Self = Self(1.0);
    /// Half the squared Frobenius distance.
    pub const FROBENIUS: Self = Self(2.0);
    /// Itakura-Saito divergence.
    pub const ITAKURA_SAITO: Self = Self(0.0);
}

impl Divergence for Beta {
    fn name(&self) -> String {
        match self.0 {
            2.0 => "frobenius".into(),
            1.0 => "kl".into(),
            0.0 => "is".into(),
            beta => format!("beta:{beta}"),
        }
    }

    fn is_of_counts(&self) -> bool {
        *self == Self::KL
    }

    fn value(&self, x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2> {
        let floor = Precision::of(x).floor();
        // log x and x^β are constants on the tape; 0 · log 0 = 0 and 0^β = 0.
        let positive_x = x.clone().clamp_min(floor);
        let (x, y) = (x.clone(), y.clone());
        match self.0 {
            2.0 => (x - y).square() * 0.5,
            1.0 => x.clone() * (positive_x / y.clone()).log() - x + y,
            0.0 => x / y.clone() - positive_x.log() + y.log() - 1.0,
            beta => {
                let zero = x.clone().lower_elem(floor);
                let x_part = power(&positive_x, beta).mask_fill(zero, 0.0);
                let y_part = power(&y, beta - 1.0);
                // It multiplies by the inverse: see `numerics` on dividing by a number.
                let scale = (beta * (beta - 1.0)).recip();
                (x_part + y_part * (y * (beta - 1.0) - x * beta)) * scale
            }
        }
    }

    fn split(&self, x: &Tensor<2>, y: &Tensor<2>) -> Split {
        let (x, y) = (x.clone(), y.clone());
        match self.0 {
            2.0 => Split {
                positive: y,
                negative: x,
            },
            1.0 => Split {
                positive: y.clone().slice([0..1, 0..1]).ones_like(),
                negative: x / y,
            },
            0.0 => {
                let inverse = y.recip();
                Split {
                    negative: x * inverse.clone() * inverse.clone(),
                    positive: inverse,
                }
            }
            beta => {
                let common = power(&y, beta - 2.0);
                Split {
                    positive: common.clone() * y,
                    negative: x * common,
                }
            }
        }
    }

    /// `∂∇⁺/∂y = (β−1) y^(β−2)` and `∂∇⁻/∂y = (β−2) x y^(β−3)`.
    fn slope(&self, x: &Tensor<2>, y: &Tensor<2>) -> Option<Slope> {
        let beta = self.0;
        let positive = (beta != 1.0).then(|| power(y, beta - 2.0) * (beta - 1.0));
        let negative = (beta != 2.0).then(|| x.clone() * power(y, beta - 3.0) * (beta - 2.0));
        Some(Slope { positive, negative })
    }

    fn accepts(&self, x: f64) -> bool {
        self.0 > 0.0 || x > 0.0
    }

    fn condition(&self) -> String {
        if self.0 > 0.0 {
            "nonnegative entries".into()
        } else {
            "positive entries (it is infinite at 0)".into()
        }
    }

    /// The convex-concave majoriser of Févotte and Idier: for β < 1 the growing
    /// part is linearised, for β > 2 the decaying part.
    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        Some(MajoriserPowers {
            growing: (self.0 - 1.0).max(0.0),
            decaying: (self.0 - 2.0).min(0.0),
        })
    }

    fn fused(&self) -> Option<Fused> {
        Some(Fused::Beta {
            beta: self.0,
            shift: 0.0,
        })
    }

    /// Measured in seconds it is about 3 under KL, whose ∇⁺ does not depend on y, and about 4
    /// otherwise (docs/performance.md).
    fn derivative_cost(&self) -> f64 {
        if self.0 == 1.0 { 3.0 } else { 4.0 }
    }

    /// For β < 1 the floor is higher, so that the `y^(β−3)` of the slope stays finite (and `0 ·
    /// y^(β−3)` stays 0).
    fn floor(&self, precision: Precision) -> f64 {
        let power_that_fits = 2.0 / (3.0 - self.0).max(2.0);
        precision.floor().powf(power_that_fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::numerics::to_host;

    const BETAS: [f64; 8] = [3.0, 2.0, 1.5, 1.0, 0.5, 0.0, -0.5, 0.3];

    fn scalar(beta: f64, x: f64, y: f64) -> f64 {
        match beta {
            1.0 => x * (x / y).ln() - x + y,
            0.0 => x / y - (x / y).ln() - 1.0,
            b => (x.powf(b) + (b - 1.0) * y.powf(b) - b * x * y.powf(b - 1.0)) / (b * (b - 1.0)),
        }
    }

    fn row(values: &[f64]) -> Tensor<2> {
        Device::default().tensor(values.to_vec(), [1, values.len()], Precision::F64)
    }

    fn entry(tensor: Tensor<2>, index: usize) -> f64 {
        let host = to_host(&tensor);
        host[index.min(host.len() - 1)]
    }

    #[test]
    fn value_split_and_slope_are_derivatives_of_each_other() {
        let (xs, ys) = ([0.2, 1.0, 3.0], [0.5, 1.0, 2.0]);
        for beta in BETAS {
            let divergence = Beta(beta);
            let step = 1e-5;
            let at = |shift: f64| row(&ys.map(|y| y + shift));
            let difference = |f: &dyn Fn(&Tensor<2>) -> Tensor<2>, i| {
                (entry(f(&at(step)), i) - entry(f(&at(-step)), i)) / (2.0 * step)
            };
            for i in 0..3 {
                let value = entry(divergence.value(&row(&xs), &at(0.0)), i);
                let want = scalar(beta, xs[i], ys[i]);
                assert!((value - want).abs() < 1e-14, "β={beta}: {value} {want}");

                let split = divergence.split(&row(&xs), &at(0.0));
                let gradient = entry(split.positive, i) - entry(split.negative, i);
                let numeric = difference(&|y| divergence.value(&row(&xs), y), i);
                assert!((gradient - numeric).abs() < 1e-8, "β={beta}");

                let slope = divergence.slope(&row(&xs), &at(0.0)).unwrap();
                for (part, hand) in [(0, slope.positive), (1, slope.negative)] {
                    let numeric = difference(
                        &|y| {
                            let split = divergence.split(&row(&xs), y);
                            [split.positive, split.negative][part].clone()
                        },
                        i,
                    );
                    let hand = hand.map_or(0.0, |slope| entry(slope, i));
                    assert!((hand - numeric).abs() < 1e-7, "β={beta} part {part}");
                }
            }
        }
    }

    #[test]
    fn zeros_cost_what_the_limit_says() {
        for beta in [3.0, 2.0, 1.5, 1.0, 0.5] {
            let value = entry(Beta(beta).value(&row(&[0.0]), &row(&[0.7])), 0);
            let limit = 0.7f64.powf(beta) / beta;
            assert!((value - limit).abs() < 1e-15, "β={beta}: {value} {limit}");
            assert!(Beta(beta).accepts(0.0));
        }
        assert!(!Beta(0.0).accepts(0.0) && !Beta(-0.5).accepts(0.0));
    }

    #[test]
    fn the_floor_leaves_room_for_split_and_slope() {
        for beta in BETAS.into_iter().chain([-3.0]) {
            for precision in [Precision::F64, Precision::F32] {
                let floor = Beta(beta).floor(precision);
                let y = Device::default().tensor(vec![floor], [1, 1], precision);
                let split = Beta(beta).split(&y.ones_like(), &y);
                assert!(entry(split.negative, 0).is_finite(), "β={beta}");
                assert!(entry(split.positive, 0).is_finite(), "β={beta}");
                let slope = Beta(beta).slope(&y.zeros_like(), &y).unwrap();
                for part in [slope.positive, slope.negative].into_iter().flatten() {
                    assert!(entry(part, 0).is_finite(), "β={beta}");
                }
            }
        }
    }

    #[test]
    fn monotone_exponents_are_the_known_ones() {
        for (beta, exponent) in [(3.0, 0.5), (2.0, 1.0), (1.5, 1.0), (1.0, 1.0), (0.0, 0.5)] {
            let powers = Beta(beta).majoriser_powers().unwrap();
            assert_eq!(powers.exponent(), exponent, "β={beta}");
        }
    }
}

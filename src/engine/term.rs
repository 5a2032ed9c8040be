//! The row-separable penalties on a block of rows.

use pulp::Simd;

use super::kernel::{RowState, Sums};
use super::lanes::{Lanes, Real};
use crate::penalty::FusedPenalty;

/// λ_i and its derivative: 1 if the term is tuned, 0 if it is fixed.
pub(super) struct TermWeight<T: Real, S: Simd> {
    pub(super) value: Lanes<T, S>,
    pub(super) dot: Lanes<T, S>,
}

impl FusedPenalty {
    /// Adds `λ p±` and its derivative to the sums.
    #[inline(always)]
    pub(super) fn add<T: Real, S: Simd>(
        self,
        simd: S,
        weight: &TermWeight<T, S>,
        point: &RowState<'_, T::Vector<S>>,
        sums: &mut Sums<&mut [T::Vector<S>]>,
    ) {
        let rank = point.w.len();
        let zero = Lanes::<T, S>::zero(simd);
        let w = |k: usize| Lanes::<T, S>::new(simd, point.w[k]);
        let w_dot = |k: usize| Lanes::<T, S>::new(simd, point.w_dot[k]);
        let add = |sum: &mut [T::Vector<S>], k: usize, part: Lanes<T, S>| {
            sum[k] = (Lanes::new(simd, sum[k]) + part).value;
        };
        let TermWeight { value, dot } = *weight;
        match self {
            Self::None => {}
            Self::L1 => {
                for k in 0..rank {
                    add(sums.positive, k, value);
                    add(sums.positive_dot, k, dot);
                }
            }
            Self::SquaredL2 => {
                for k in 0..rank {
                    add(sums.positive, k, value * w(k));
                    add(sums.positive_dot, k, value * w_dot(k) + dot * w(k));
                }
            }
            Self::SquaredL1 => {
                let two = zero.constant(2.0);
                let (sum, sum_dot) = (two * total(zero, rank, w), two * total(zero, rank, w_dot));
                for k in 0..rank {
                    add(sums.positive, k, value * sum);
                    add(sums.positive_dot, k, value * sum_dot + dot * sum);
                }
            }
            Self::Group => {
                let Norm { inverse, above } = Norm::of(zero, total(zero, rank, |k| w(k) * w(k)));
                let along = total(zero, rank, |k| w(k) * w_dot(k)) * inverse * above;
                for k in 0..rank {
                    let unit = w(k) * inverse;
                    add(sums.positive, k, value * unit);
                    let unit_dot = (w_dot(k) - unit * above * along) * inverse;
                    add(sums.positive_dot, k, value * unit_dot + dot * unit);
                }
            }
            Self::Hoyer => {
                let Norm { inverse, above } = Norm::of(zero, total(zero, rank, |k| w(k) * w(k)));
                let ratio = total(zero, rank, w) * inverse;
                let along = total(zero, rank, |k| w(k) * w_dot(k)) * inverse;
                let sum_dot = total(zero, rank, w_dot);
                let square = inverse * inverse * above;
                let steady = sum_dot - zero.constant(3.0) * ratio * along;
                for k in 0..rank {
                    let unit = w(k) * inverse;
                    let positive = inverse * above;
                    let negative = unit * ratio * inverse * above;
                    let negative_dot = square * (ratio * w_dot(k) + unit * steady);
                    add(sums.positive, k, value * positive);
                    add(sums.negative, k, value * negative);
                    add(
                        sums.positive_dot,
                        k,
                        dot * positive - value * square * along,
                    );
                    add(sums.negative_dot, k, dot * negative + value * negative_dot);
                }
            }
        }
    }

    /// r(w) of one row.
    pub(super) fn value(self, row: &[f64], floor: f64) -> f64 {
        let sum = || row.iter().sum::<f64>();
        let squares = || row.iter().map(|w| w * w).sum::<f64>();
        match self {
            Self::None => 0.0,
            Self::L1 => sum(),
            Self::SquaredL2 => 0.5 * squares(),
            Self::Group => squares().sqrt(),
            Self::SquaredL1 => sum() * sum(),
            Self::Hoyer => sum() / squares().max(floor * floor).sqrt(),
        }
    }
}

/// `Σ_k f(k)`.
#[inline(always)]
fn total<T: Real, S: Simd>(
    zero: Lanes<T, S>,
    rank: usize,
    f: impl Fn(usize) -> Lanes<T, S>,
) -> Lanes<T, S> {
    let mut sum = zero;
    for k in 0..rank {
        sum = sum + f(k);
    }
    sum
}

/// 1/‖w‖ of a row, constant below the floor. `above` is 1 above it and 0 below.
struct Norm<T: Real, S: Simd> {
    inverse: Lanes<T, S>,
    above: Lanes<T, S>,
}

impl<T: Real, S: Simd> Norm<T, S> {
    #[inline(always)]
    fn of(zero: Lanes<T, S>, squares: Lanes<T, S>) -> Self {
        let floor = T::PRECISION.floor();
        let least = zero.constant(floor * floor);
        Self {
            inverse: squares.max(least).sqrt().recip(),
            above: squares.where_less(least, zero, zero.constant(1.0)),
        }
    }
}

//! The β-divergences entry by entry: the same as [`Beta`](crate::Beta), but on a vector of rows at
//! a time.

use pulp::Simd;

use super::lanes::{Lanes, Real};

/// The two parts of the derivative at an entry, and their change along ẏ.
pub(crate) struct Parts<T: Real, S: Simd> {
    pub(crate) positive: Lanes<T, S>,
    pub(crate) negative: Lanes<T, S>,
    pub(crate) positive_dot: Lanes<T, S>,
    pub(crate) negative_dot: Lanes<T, S>,
}

/// A divergence of the fused engine.
pub(crate) trait Entry: Copy + Send + Sync {
    /// True if ∇⁺ depends on y. Otherwise it is 1.
    const POSITIVE_VARIES: bool;
    /// True if ∇⁻ depends on y.
    const NEGATIVE_VARIES: bool;

    /// The parts at (x, y), with their derivatives in the direction ẏ. The inverse of y is given,
    /// because a caller with several entries computes it once.
    fn parts<T: Real, S: Simd>(
        self,
        x: Lanes<T, S>,
        y: Lanes<T, S>,
        inverse: Lanes<T, S>,
        y_dot: Lanes<T, S>,
    ) -> Parts<T, S>;

    /// d(x, y) of `J` entries.
    fn values<T: Real, S: Simd, const J: usize>(
        self,
        x: [Lanes<T, S>; J],
        y: [Lanes<T, S>; J],
        inverse: [Lanes<T, S>; J],
    ) -> [Lanes<T, S>; J];
}

/// x, or a tiny number if x is zero, so that its logarithm exists.
#[inline(always)]
fn positive<T: Real, S: Simd>(x: Lanes<T, S>) -> Lanes<T, S> {
    x.max(x.constant(T::PRECISION.floor()))
}

/// β = 2.
#[derive(Clone, Copy)]
pub(crate) struct Frobenius;

impl Entry for Frobenius {
    const POSITIVE_VARIES: bool = true;
    const NEGATIVE_VARIES: bool = false;

    #[inline(always)]
    fn parts<T: Real, S: Simd>(
        self,
        x: Lanes<T, S>,
        y: Lanes<T, S>,
        _inverse: Lanes<T, S>,
        y_dot: Lanes<T, S>,
    ) -> Parts<T, S> {
        Parts {
            positive: y,
            negative: x,
            positive_dot: y_dot,
            negative_dot: x.constant(0.0),
        }
    }

    #[inline(always)]
    fn values<T: Real, S: Simd, const J: usize>(
        self,
        x: [Lanes<T, S>; J],
        y: [Lanes<T, S>; J],
        _inverse: [Lanes<T, S>; J],
    ) -> [Lanes<T, S>; J] {
        let mut values = x;
        for j in 0..J {
            let residual = x[j] - y[j];
            values[j] = residual * residual * x[j].constant(0.5);
        }
        values
    }
}

/// β = 1.
#[derive(Clone, Copy)]
pub(crate) struct KullbackLeibler;

impl Entry for KullbackLeibler {
    const POSITIVE_VARIES: bool = false;
    const NEGATIVE_VARIES: bool = true;

    #[inline(always)]
    fn parts<T: Real, S: Simd>(
        self,
        x: Lanes<T, S>,
        _y: Lanes<T, S>,
        inverse: Lanes<T, S>,
        y_dot: Lanes<T, S>,
    ) -> Parts<T, S> {
        let negative = x * inverse;
        Parts {
            positive: x.constant(1.0),
            negative,
            positive_dot: x.constant(0.0),
            // ẏ/y is computed first, because it is 0 at the floor, where x/y² may be infinite.
            negative_dot: -negative * (y_dot * inverse),
        }
    }

    #[inline(always)]
    fn values<T: Real, S: Simd, const J: usize>(
        self,
        x: [Lanes<T, S>; J],
        y: [Lanes<T, S>; J],
        inverse: [Lanes<T, S>; J],
    ) -> [Lanes<T, S>; J] {
        let mut ratios = x;
        for j in 0..J {
            ratios[j] = positive(x[j] * inverse[j]);
        }
        let logarithms = Lanes::ln_each(ratios);
        let mut values = x;
        for j in 0..J {
            values[j] = x[j].mul_add(logarithms[j], y[j] - x[j]);
        }
        values
    }
}

/// β = 0.
#[derive(Clone, Copy)]
pub(crate) struct ItakuraSaito;

impl Entry for ItakuraSaito {
    const POSITIVE_VARIES: bool = true;
    const NEGATIVE_VARIES: bool = true;

    #[inline(always)]
    fn parts<T: Real, S: Simd>(
        self,
        x: Lanes<T, S>,
        _y: Lanes<T, S>,
        inverse: Lanes<T, S>,
        y_dot: Lanes<T, S>,
    ) -> Parts<T, S> {
        let negative = x * inverse * inverse;
        let rate = y_dot * inverse;
        Parts {
            positive: inverse,
            negative,
            positive_dot: -inverse * rate,
            negative_dot: x.constant(-2.0) * negative * rate,
        }
    }

    #[inline(always)]
    fn values<T: Real, S: Simd, const J: usize>(
        self,
        x: [Lanes<T, S>; J],
        y: [Lanes<T, S>; J],
        inverse: [Lanes<T, S>; J],
    ) -> [Lanes<T, S>; J] {
        let (mut ratios, mut values) = (x, y);
        for j in 0..J {
            values[j] = x[j] * inverse[j];
            // An entry without weight may be 0; its value must stay finite.
            ratios[j] = positive(values[j]);
        }
        let logarithms = Lanes::ln_each(ratios);
        for j in 0..J {
            values[j] = values[j] - logarithms[j] - x[j].constant(1.0);
        }
        values
    }
}

/// Any other β.
#[derive(Clone, Copy)]
pub(crate) struct General {
    beta: f64,
    /// 2β, if it is a small whole number. Powers are then products and a square root.
    twice: Option<i32>,
}

/// The largest 2β for which products are cheaper than a logarithm and an exponential.
const MOST_HALVES: f64 = 12.0;

impl General {
    pub(crate) fn new(beta: f64) -> Self {
        let twice = 2.0 * beta;
        let is_small = twice.fract() == 0.0 && twice.abs() <= MOST_HALVES;
        Self {
            beta,
            twice: is_small.then_some(twice as i32),
        }
    }

    /// `v^(β + shift)`, given 1/v.
    #[inline(always)]
    fn raised<T: Real, S: Simd>(
        self,
        v: Lanes<T, S>,
        inverse: Lanes<T, S>,
        shift: i32,
    ) -> Lanes<T, S> {
        let Some(twice) = self.twice else {
            return v.power(self.beta + f64::from(shift));
        };
        let halves = twice + 2 * shift;
        let base = if halves < 0 { inverse } else { v };
        let halves = halves.unsigned_abs();
        let mut power = v.constant(1.0);
        for _ in 0..halves / 2 {
            power = power * base;
        }
        if halves % 2 == 1 {
            power = power * base.sqrt();
        }
        power
    }
}

impl Entry for General {
    const POSITIVE_VARIES: bool = true;
    const NEGATIVE_VARIES: bool = true;

    #[inline(always)]
    fn parts<T: Real, S: Simd>(
        self,
        x: Lanes<T, S>,
        y: Lanes<T, S>,
        inverse: Lanes<T, S>,
        y_dot: Lanes<T, S>,
    ) -> Parts<T, S> {
        let common = self.raised(y, inverse, -2);
        let (positive, negative) = (common * y, x * common);
        let rate = y_dot * inverse;
        Parts {
            positive,
            negative,
            positive_dot: x.constant(self.beta - 1.0) * positive * rate,
            negative_dot: x.constant(self.beta - 2.0) * negative * rate,
        }
    }

    #[inline(always)]
    fn values<T: Real, S: Simd, const J: usize>(
        self,
        x: [Lanes<T, S>; J],
        y: [Lanes<T, S>; J],
        inverse: [Lanes<T, S>; J],
    ) -> [Lanes<T, S>; J] {
        let beta = self.beta;
        let mut values = x;
        for j in 0..J {
            let (x, y) = (x[j], y[j]);
            let floor = x.constant(T::PRECISION.floor());
            let from_floor = positive(x);
            let raised = self.raised(from_floor, from_floor.recip(), 0);
            let of_x = x.where_less(floor, x.constant(0.0), raised);
            let linear = x.constant(beta - 1.0) * y - x.constant(beta) * x;
            let scale = x.constant((beta * (beta - 1.0)).recip());
            values[j] = (of_x + self.raised(y, inverse[j], -1) * linear) * scale;
        }
        values
    }
}

//! Logarithm, exponential and powers of vectors, for which processors have no instructions.

use pulp::Simd;

use super::lanes::{Lanes, Real};
use crate::numerics::Precision;

/// `(2 atanh(s) − 2 s) / s³` as a polynomial in s², lowest power first; s² up to 0.0295. They are
/// Chebyshev fits in 40 digits, with errors 6e-20 and 3e-11.
const ATANH_F64: [f64; 8] = [
    0.666_666_666_666_666_7,
    0.400_000_000_000_008_8,
    0.285_714_285_707_997_85,
    0.222_222_223_925_810_45,
    0.181_817_955_475_211_36,
    0.153_862_447_376_216_67,
    0.132_686_383_692_668_24,
    0.130_880_348_509_275_54,
];
const ATANH_F32: [f64; 4] = [
    0.666_666_665_540_420_1,
    0.400_001_222_118_106_5,
    0.285_507_786_331_919_65,
    0.233_316_144_718_435,
];

/// ln 2 in two parts. The first has few digits, so that k times it is exact.
const LN_2_HIGH_F64: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW_F64: f64 = 1.908_214_929_270_587_7e-10;
const LN_2_HIGH_F32: f64 = 0.693_359_375;
const LN_2_LOW_F32: f64 = std::f64::consts::LN_2 - LN_2_HIGH_F32;

impl<T: Real, S: Simd> Lanes<T, S> {
    #[inline(always)]
    fn polynomial<const N: usize>(self, coefficients: [f64; N]) -> Self {
        let mut sum = self.constant(coefficients[N - 1]);
        for power in (0..N - 1).rev() {
            sum = sum.mul_add(self, self.constant(coefficients[power]));
        }
        sum
    }

    #[inline(always)]
    fn ln_2(self) -> (Self, Self) {
        match T::PRECISION {
            Precision::F64 => (self.constant(LN_2_HIGH_F64), self.constant(LN_2_LOW_F64)),
            Precision::F32 => (self.constant(LN_2_HIGH_F32), self.constant(LN_2_LOW_F32)),
        }
    }

    /// ln v for a positive normal v.
    #[inline(always)]
    pub(crate) fn ln(self) -> Self {
        Self::ln_each([self])[0]
    }

    /// ln of several positive normal numbers.
    ///
    /// `ln(2^k f) = k ln 2 + 2 atanh(s)` with `s = (f − 1)/(f + 1)`. One division serves all
    /// numbers: `1/a = b/(ab)`.
    #[inline(always)]
    pub(crate) fn ln_each<const J: usize>(numbers: [Self; J]) -> [Self; J] {
        let mut exponents = numbers;
        let mut fractions = numbers;
        let one = numbers[0].constant(1.0);
        // The products of the divisors before each.
        let mut before = numbers;
        let mut product = one;
        for j in 0..J {
            (exponents[j], fractions[j]) = numbers[j].split_exponent();
            before[j] = product;
            product = product * (fractions[j] + one);
        }
        let mut inverse_of_rest = product.recip();
        // This is exact, because the scale is a power of two.
        let unit = one.constant(T::EXPONENT_SCALE.recip());
        let (high, low) = one.ln_2();
        let (high, low) = (high * unit, low * unit);
        let mut logarithms = numbers;
        for j in (0..J).rev() {
            let above = fractions[j] - one;
            let s = above * (inverse_of_rest * before[j]);
            inverse_of_rest = inverse_of_rest * (fractions[j] + one);
            let square = s * s;
            let tail = match T::PRECISION {
                Precision::F64 => square.polynomial(ATANH_F64),
                Precision::F32 => square.polynomial(ATANH_F32),
            };
            // 2 s = f − 1 − s (f − 1), whose first part is exact.
            let correction = s * (square.mul_add(tail, -above));
            let k = exponents[j];
            logarithms[j] = k.mul_add(high, k.mul_add(low, correction) + above);
        }
        logarithms
    }

    /// e^v for a v whose result is a normal number.
    ///
    /// `e^v = 2^k e^f` with `abs(f) ≤ ½ ln 2`, by Taylor's series.
    #[inline(always)]
    pub(crate) fn exp(self) -> Self {
        let (limit, rounder, terms) = match T::PRECISION {
            Precision::F64 => (708.0, 6_755_399_441_055_744.0, 14),
            Precision::F32 => (87.0, 12_582_912.0, 8),
        };
        let (limit, rounder) = (self.constant(limit), self.constant(rounder));
        let v = -((-self).max(-limit));
        let v = v.max(-limit);
        // Adding and subtracting 1.5 · 2^52 rounds to a whole number.
        let k = v.mul_add(self.constant(std::f64::consts::LOG2_E), rounder) - rounder;
        let (high, low) = self.ln_2();
        let f = (-k).mul_add(low, (-k).mul_add(high, v));
        let one = self.constant(1.0);
        let mut series = one;
        let mut power = terms;
        while power > 1 {
            power -= 1;
            series = series.mul_add(f * self.constant(1.0 / f64::from(power)), one);
        }
        series * k.two_to_the()
    }

    /// `v^exponent` for a positive v.
    #[inline(always)]
    pub(crate) fn power(self, exponent: f64) -> Self {
        (self.ln() * self.constant(exponent)).exp()
    }
}

#[cfg(test)]
mod tests {
    use pulp::{Arch, WithSimd};

    use super::*;

    struct Apply<'a, T, F> {
        values: &'a mut [T],
        function: F,
    }

    trait OfLanes {
        fn of<T: Real, S: Simd>(&self, v: Lanes<T, S>) -> Lanes<T, S>;
    }

    #[derive(Clone, Copy)]
    struct Ln;
    #[derive(Clone, Copy)]
    struct Exp;
    #[derive(Clone, Copy)]
    struct Inverse;
    impl OfLanes for Inverse {
        #[inline(always)]
        fn of<T: Real, S: Simd>(&self, v: Lanes<T, S>) -> Lanes<T, S> {
            v.recip_by_products()
        }
    }
    impl OfLanes for Ln {
        #[inline(always)]
        fn of<T: Real, S: Simd>(&self, v: Lanes<T, S>) -> Lanes<T, S> {
            v.ln()
        }
    }
    impl OfLanes for Exp {
        #[inline(always)]
        fn of<T: Real, S: Simd>(&self, v: Lanes<T, S>) -> Lanes<T, S> {
            v.exp()
        }
    }

    impl<T: Real, F: OfLanes> WithSimd for Apply<'_, T, F> {
        type Output = ();
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            for v in T::vectors_mut::<S>(self.values) {
                *v = self.function.of(Lanes::<T, S>::new(simd, *v)).value;
            }
        }
    }

    fn apply<T: Real, F: OfLanes + Copy>(values: &[T], function: F) -> [Vec<T>; 2] {
        let mut best = values.to_vec();
        let mut plain = values.to_vec();
        Arch::new().dispatch(Apply {
            values: &mut best,
            function,
        });
        Apply {
            values: &mut plain,
            function,
        }
        .with_simd(pulp::Scalar::new());
        [best, plain]
    }

    #[test]
    fn logarithms_are_right_to_two_units_in_the_last_place() {
        let mut values: Vec<f64> = (0..64_000)
            .map(|i| 10f64.powf(f64::from(i) / 100.0 - 300.0))
            .collect();
        values.truncate(60_800);
        values.extend((0..6400).map(|i| 0.6 + f64::from(i) * 1.3e-4));
        for found in apply(&values, Ln) {
            for (v, found) in values.iter().zip(found) {
                let want = v.ln();
                assert!(
                    (found - want).abs() <= 2.0 * f64::EPSILON * want.abs(),
                    "ln {v:e}: {found} {want}"
                );
            }
        }
        let values: Vec<f32> = (0..6400)
            .map(|i| 10f32.powf(i as f32 / 100.0 - 32.0))
            .collect();
        for found in apply(&values, Ln) {
            for (v, found) in values.iter().zip(found) {
                let want = f64::from(*v).ln();
                let error = (f64::from(found) - want).abs();
                assert!(
                    error <= 2.0 * f64::from(f32::EPSILON) * want.abs(),
                    "ln {v:e}: {found} {want}"
                );
            }
        }
    }

    #[test]
    fn inverses_are_right_to_two_units_in_the_last_place() {
        let values: Vec<f64> = (0..48_000)
            .map(|i| 10f64.powf(f64::from(i) / 100.0 - 240.0))
            .collect();
        for found in apply(&values, Inverse) {
            for (v, found) in values.iter().zip(found) {
                let error = (found * v - 1.0).abs();
                assert!(error <= 2.0 * f64::EPSILON, "1/{v:e}: {error:e}");
            }
        }
        let values: Vec<f32> = (0..4_800)
            .map(|i| 10f32.powf(i as f32 / 100.0 - 24.0))
            .collect();
        for found in apply(&values, Inverse) {
            for (v, found) in values.iter().zip(found) {
                let error = (f64::from(found) * f64::from(*v) - 1.0).abs();
                assert!(error <= 2.0 * f64::from(f32::EPSILON), "1/{v:e}: {error:e}");
            }
        }
    }

    #[test]
    fn exponentials_are_right_to_two_units_in_the_last_place() {
        let values: Vec<f64> = (-70_400..70_400).map(|i| f64::from(i) / 100.0).collect();
        for found in apply(&values, Exp) {
            for (v, found) in values.iter().zip(found) {
                let want = v.exp();
                assert!(
                    (found - want).abs() <= 2.0 * f64::EPSILON * want,
                    "exp {v}: {found:e} {want:e}"
                );
            }
        }
        let values: Vec<f32> = (-8_640..8_640).map(|i| i as f32 / 100.0).collect();
        for found in apply(&values, Exp) {
            for (v, found) in values.iter().zip(found) {
                let want = f64::from(*v).exp();
                let error = (f64::from(found) - want).abs();
                assert!(
                    error <= 2.0 * f64::from(f32::EPSILON) * want,
                    "exp {v}: {found:e} {want:e}"
                );
            }
        }
    }
}

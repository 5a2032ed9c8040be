//! Vectors of rows: one entry of as many rows as the processor computes at once.
//!
//! [`Lanes`] wraps a vector of the crate pulp with the ordinary operators, so that the code of the
//! engine looks like its formulas. Everything here is inlined into functions that pulp compiles for
//! each kind of processor.

use std::ops::{Add, Div, Mul, Neg, Sub};

use pulp::Simd;

pub(crate) use super::real::Real;

/// One number for each row of a block, with operators.
pub(crate) struct Lanes<T: Real, S: Simd> {
    simd: S,
    pub(crate) value: T::Vector<S>,
}

impl<T: Real, S: Simd> Clone for Lanes<T, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Real, S: Simd> Copy for Lanes<T, S> {}

impl<T: Real, S: Simd> Lanes<T, S> {
    #[inline(always)]
    pub(crate) fn new(simd: S, value: T::Vector<S>) -> Self {
        Self { simd, value }
    }

    #[inline(always)]
    pub(crate) fn splat(simd: S, value: T) -> Self {
        Self::new(simd, T::splat(simd, value))
    }

    /// The same constant in every row.
    #[inline(always)]
    pub(crate) fn constant(self, value: f64) -> Self {
        Self::splat(self.simd, T::from_f64(value))
    }

    #[inline(always)]
    pub(crate) fn zero(simd: S) -> Self {
        Self::splat(simd, T::from_f64(0.0))
    }

    #[inline(always)]
    pub(crate) fn mul_add(self, b: Self, c: Self) -> Self {
        Self::new(
            self.simd,
            T::mul_add(self.simd, self.value, b.value, c.value),
        )
    }

    #[inline(always)]
    pub(crate) fn max(self, other: Self) -> Self {
        Self::new(self.simd, T::max(self.simd, self.value, other.value))
    }

    #[inline(always)]
    pub(crate) fn sqrt(self) -> Self {
        Self::new(self.simd, T::sqrt(self.simd, self.value))
    }

    #[inline(always)]
    pub(crate) fn recip(self) -> Self {
        self.constant(1.0) / self
    }

    /// 1/v for a normal v > 0 whose inverse is normal. Vectors of 64 bytes take so long to divide
    /// that products are faster. Shorter ones are divided while other units make products.
    #[inline(always)]
    pub(crate) fn inverse(self) -> Self {
        if size_of::<T::Vector<S>>() >= 64 {
            self.recip_by_products()
        } else {
            self.recip()
        }
    }

    /// 1/v without a division, for a normal v > 0 whose inverse is normal.
    ///
    /// A guess g has the error e = 1 − v g, at most 0.051. `g (1 + e)(1 + e²)` has the error e⁴. A
    /// further step `g (1 + e + e²)` cubes it, to below the rounding.
    #[inline(always)]
    pub(crate) fn recip_by_products(self) -> Self {
        let guess = Self::new(self.simd, T::about_inverse(self.simd, self.value));
        let e = self.error_of_inverse(guess);
        let better = guess.mul_add(e, guess);
        let guess = better.mul_add(e * e, better);
        let e = self.error_of_inverse(guess);
        guess.mul_add(e.mul_add(e, e), guess)
    }

    /// 1 − v g.
    #[inline(always)]
    fn error_of_inverse(self, guess: Self) -> Self {
        let one = self.constant(1.0).value;
        let error = T::negative_mul_add(self.simd, self.value, guess.value, one);
        Self::new(self.simd, error)
    }

    /// `yes` if `self < bound`, else `no`, lane by lane.
    #[inline(always)]
    pub(crate) fn where_less(self, bound: Self, yes: Self, no: Self) -> Self {
        let value = T::where_less(self.simd, self.value, bound.value, yes.value, no.value);
        Self::new(self.simd, value)
    }

    /// `(c k, f)`: see [`Real::split_exponent`].
    #[inline(always)]
    pub(crate) fn split_exponent(self) -> (Self, Self) {
        let (exponent, fraction) = T::split_exponent(self.simd, self.value);
        (
            Self::new(self.simd, exponent),
            Self::new(self.simd, fraction),
        )
    }

    #[inline(always)]
    pub(crate) fn two_to_the(self) -> Self {
        Self::new(self.simd, T::two_to_the(self.simd, self.value))
    }
}

macro_rules! operator {
    ($trait:ident, $name:ident) => {
        impl<T: Real, S: Simd> $trait for Lanes<T, S> {
            type Output = Self;
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                Self::new(self.simd, T::$name(self.simd, self.value, other.value))
            }
        }
    };
}

operator!(Add, add);
operator!(Sub, sub);
operator!(Mul, mul);
operator!(Div, div);

impl<T: Real, S: Simd> Neg for Lanes<T, S> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self::new(self.simd, T::neg(self.simd, self.value))
    }
}

//! The two floating-point types and their vectors, by the crate pulp.

use std::borrow::Cow;

use pulp::Simd;
use pulp::bytemuck::{Pod, cast};

use crate::numerics::Precision;

/// `f64` or `f32`, with its vectors.
pub(crate) trait Real: Pod + PartialOrd + std::fmt::Debug + Send + Sync {
    /// A vector of a processor.
    type Vector<S: Simd>: Pod + Send + Sync;
    /// The precision of the type.
    const PRECISION: Precision;

    /// Numbers in this type, without a copy if they already are.
    fn rounded(values: &[f64]) -> Cow<'_, [Self]>;
    /// Rounds a number to this type.
    fn from_f64(value: f64) -> Self;
    /// Converts to 64 bits.
    fn to_f64(self) -> f64;
    /// Number of rows that a vector holds.
    fn lanes<S: Simd>() -> usize;
    /// A slice of whole vectors.
    fn vectors<S: Simd>(slice: &[Self]) -> &[Self::Vector<S>];
    /// A mutable slice of whole vectors.
    fn vectors_mut<S: Simd>(slice: &mut [Self]) -> &mut [Self::Vector<S>];

    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    fn add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn sub<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn mul<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn div<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn neg<S: Simd>(simd: S, a: Self::Vector<S>) -> Self::Vector<S>;
    fn sqrt<S: Simd>(simd: S, a: Self::Vector<S>) -> Self::Vector<S>;
    fn max<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    /// `a · b + c`, rounded once if the processor can.
    fn mul_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// `yes` if `a < b`, else `no`, lane by lane.
    fn where_less<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        yes: Self::Vector<S>,
        no: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// `c − a · b`, rounded once if the processor can.
    fn negative_mul_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    /// The sum of all lanes.
    fn sum<S: Simd>(simd: S, v: Self::Vector<S>) -> Self;
    /// 1/v within a twentieth, for a normal v > 0 whose inverse is normal.
    fn about_inverse<S: Simd>(simd: S, v: Self::Vector<S>) -> Self::Vector<S>;
    /// The factor c of [`split_exponent`](Real::split_exponent).
    const EXPONENT_SCALE: f64;
    /// `(c k, f)` with `v = 2^k f` and f between √½ and √2; v > 0. Callers remove the factor c,
    /// [`EXPONENT_SCALE`](Real::EXPONENT_SCALE), at no cost.
    fn split_exponent<S: Simd>(simd: S, v: Self::Vector<S>) -> (Self::Vector<S>, Self::Vector<S>);
    /// `2^k` for a whole number k that is the exponent of a normal number.
    fn two_to_the<S: Simd>(simd: S, k: Self::Vector<S>) -> Self::Vector<S>;
}

macro_rules! plain_operations {
    ($type:ident, $vector:ident, $lanes:ident, $as_simd:ident, $as_mut_simd:ident, $splat:ident, $add:ident, $sub:ident, $mul:ident, $div:ident, $neg:ident, $sqrt:ident, $max:ident, $mul_add:ident, $less:ident, $select:ident, $sum:ident) => {
        type Vector<S: Simd> = S::$vector;

        #[inline(always)]
        fn from_f64(value: f64) -> Self {
            value as $type
        }
        #[inline(always)]
        fn to_f64(self) -> f64 {
            f64::from(self)
        }
        #[inline(always)]
        fn lanes<S: Simd>() -> usize {
            S::$lanes
        }
        #[inline(always)]
        fn vectors<S: Simd>(slice: &[Self]) -> &[Self::Vector<S>] {
            S::$as_simd(slice).0
        }
        #[inline(always)]
        fn vectors_mut<S: Simd>(slice: &mut [Self]) -> &mut [Self::Vector<S>] {
            S::$as_mut_simd(slice).0
        }
        #[inline(always)]
        fn splat<S: Simd>(simd: S, value: Self) -> S::$vector {
            simd.$splat(value)
        }
        #[inline(always)]
        fn add<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
            simd.$add(a, b)
        }
        #[inline(always)]
        fn sub<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
            simd.$sub(a, b)
        }
        #[inline(always)]
        fn mul<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
            simd.$mul(a, b)
        }
        #[inline(always)]
        fn div<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
            simd.$div(a, b)
        }
        #[inline(always)]
        fn neg<S: Simd>(simd: S, a: S::$vector) -> S::$vector {
            simd.$neg(a)
        }
        #[inline(always)]
        fn sqrt<S: Simd>(simd: S, a: S::$vector) -> S::$vector {
            simd.$sqrt(a)
        }
        #[inline(always)]
        fn max<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
            simd.$max(a, b)
        }
        #[inline(always)]
        fn mul_add<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
            simd.$mul_add(a, b, c)
        }
        #[inline(always)]
        fn where_less<S: Simd>(
            simd: S,
            a: S::$vector,
            b: S::$vector,
            yes: S::$vector,
            no: S::$vector,
        ) -> S::$vector {
            simd.$select(simd.$less(a, b), yes, no)
        }
        #[inline(always)]
        fn sum<S: Simd>(simd: S, v: S::$vector) -> $type {
            simd.$sum(v)
        }
    };
}

impl Real for f64 {
    const PRECISION: Precision = Precision::F64;
    const EXPONENT_SCALE: f64 = 4_294_967_296.0;

    fn rounded(values: &[f64]) -> Cow<'_, [f64]> {
        Cow::Borrowed(values)
    }

    plain_operations!(
        f64,
        f64s,
        F64_LANES,
        as_simd_f64s,
        as_mut_simd_f64s,
        splat_f64s,
        add_f64s,
        sub_f64s,
        mul_f64s,
        div_f64s,
        neg_f64s,
        sqrt_f64s,
        max_f64s,
        mul_add_e_f64s,
        less_than_f64s,
        select_f64s,
        reduce_sum_f64s
    );

    #[inline(always)]
    fn negative_mul_add<S: Simd>(simd: S, a: S::f64s, b: S::f64s, c: S::f64s) -> S::f64s {
        simd.negate_mul_add_e_f64s(a, b, c)
    }

    #[inline(always)]
    fn about_inverse<S: Simd>(simd: S, v: S::f64s) -> S::f64s {
        // The bits of a float approximate its logarithm.
        let magic = simd.splat_u64s(0x7fde_6238_22fc_16e6);
        simd.transmute_f64s_u64s(simd.sub_u64s(magic, simd.transmute_u64s_f64s(v)))
    }

    #[inline(always)]
    fn split_exponent<S: Simd>(simd: S, v: S::f64s) -> (S::f64s, S::f64s) {
        // The bits are shifted by those of √½, so that the exponent changes there.
        let root_bits = std::f64::consts::FRAC_1_SQRT_2.to_bits();
        let root = simd.splat_u64s(root_bits);
        let shifted = simd.sub_u64s(simd.transmute_u64s_f64s(v), root);
        let mantissa = simd.and_u64s(shifted, simd.splat_u64s((1 << 52) - 1));
        let fraction = simd.transmute_f64s_u64s(simd.add_u64s(mantissa, root));
        let exponent = if S::IS_SCALAR {
            let bits: u64 = cast(shifted);
            cast(((bits as i64) >> 52) as f64 * Self::EXPONENT_SCALE)
        } else {
            // pulp can shift only halves of words. So the exponent is moved to the low end of the
            // high half, and read as part of a float 2^52 + (k + 2048) 2^32. 2048 makes it
            // positive, and the sum wraps as intended.
            let bias = root_bits.wrapping_sub(2048 << 52);
            let biased = simd.sub_u64s(simd.transmute_u64s_f64s(v), simd.splat_u64s(bias));
            let halves = simd.wrapping_dyn_shr_u32s(cast(biased), simd.splat_u32s(20));
            let high = simd.and_u64s(cast(halves), simd.splat_u64s(0xfff << 32));
            let magic = (1u64 << 52) as f64;
            let bits = simd.or_u64s(high, simd.splat_u64s(magic.to_bits()));
            let offset = simd.splat_f64s(magic + 2048.0 * 4_294_967_296.0);
            simd.sub_f64s(simd.transmute_f64s_u64s(bits), offset)
        };
        (exponent, fraction)
    }

    #[inline(always)]
    fn two_to_the<S: Simd>(simd: S, k: S::f64s) -> S::f64s {
        if S::IS_SCALAR {
            let k: f64 = cast(k);
            return cast(f64::from_bits(((k as i64 + 1023) as u64) << 52));
        }
        // The reverse of the trick above: k + 1023 in the low end of the high half.
        let magic = simd.splat_f64s((1u64 << 52) as f64 + 1023.0 * 4_294_967_296.0);
        let scaled = simd.mul_add_e_f64s(k, simd.splat_f64s(4_294_967_296.0), magic);
        cast(simd.wrapping_dyn_shl_u32s(cast(scaled), simd.splat_u32s(20)))
    }
}

impl Real for f32 {
    const PRECISION: Precision = Precision::F32;
    const EXPONENT_SCALE: f64 = 1.0;

    fn rounded(values: &[f64]) -> Cow<'_, [f32]> {
        values.iter().map(|value| *value as f32).collect()
    }

    plain_operations!(
        f32,
        f32s,
        F32_LANES,
        as_simd_f32s,
        as_mut_simd_f32s,
        splat_f32s,
        add_f32s,
        sub_f32s,
        mul_f32s,
        div_f32s,
        neg_f32s,
        sqrt_f32s,
        max_f32s,
        mul_add_e_f32s,
        less_than_f32s,
        select_f32s,
        reduce_sum_f32s
    );

    #[inline(always)]
    fn negative_mul_add<S: Simd>(simd: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
        simd.negate_mul_add_e_f32s(a, b, c)
    }

    #[inline(always)]
    fn about_inverse<S: Simd>(simd: S, v: S::f32s) -> S::f32s {
        let magic = simd.splat_u32s(0x7ef3_11c7);
        simd.transmute_f32s_u32s(simd.sub_u32s(magic, simd.transmute_u32s_f32s(v)))
    }

    #[inline(always)]
    fn split_exponent<S: Simd>(simd: S, v: S::f32s) -> (S::f32s, S::f32s) {
        let root = simd.splat_u32s(std::f32::consts::FRAC_1_SQRT_2.to_bits());
        let shifted = simd.sub_u32s(simd.transmute_u32s_f32s(v), root);
        let mantissa = simd.and_u32s(shifted, simd.splat_u32s((1 << 23) - 1));
        let fraction = simd.transmute_f32s_u32s(simd.add_u32s(mantissa, root));
        let biased = simd.add_u32s(shifted, simd.splat_u32s(256 << 23));
        let exponent = simd.wrapping_dyn_shr_u32s(biased, simd.splat_u32s(23));
        let magic = (1u32 << 23) as f32;
        let bits = simd.or_u32s(exponent, simd.splat_u32s(magic.to_bits()));
        let offset = simd.splat_f32s(magic + 256.0);
        (
            simd.sub_f32s(simd.transmute_f32s_u32s(bits), offset),
            fraction,
        )
    }

    #[inline(always)]
    fn two_to_the<S: Simd>(simd: S, k: S::f32s) -> S::f32s {
        let magic = simd.splat_f32s((1u32 << 23) as f32 + 127.0);
        let bits = simd.transmute_u32s_f32s(simd.add_f32s(k, magic));
        simd.transmute_f32s_u32s(simd.wrapping_dyn_shl_u32s(bits, simd.splat_u32s(23)))
    }
}

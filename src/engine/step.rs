//! One update of a block, from its sums over columns.

use pulp::{Simd, WithSimd};

use super::kernel::{RowState, Sums};
use super::lanes::{Lanes, Real};
use super::plan::{Plan, TermScale};
use super::scratch::MOST_LANES;
use super::term::TermWeight;

/// `w ← w (N/P)^γ` and its derivative, with the penalty terms added to N and P.
pub(crate) struct Update<'a, T> {
    pub(crate) plan: &'a Plan,
    /// Index of the block's first row.
    pub(crate) first: usize,
    /// λ of its rows.
    pub(crate) lambda: &'a [f64],
    pub(crate) w: &'a mut [T],
    pub(crate) w_dot: &'a mut [T],
    pub(crate) sums: Sums<&'a mut [T]>,
}

impl<T: Real> WithSimd for Update<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let w = T::vectors_mut::<S>(self.w);
        let w_dot = T::vectors_mut::<S>(self.w_dot);
        let mut sums = self.sums.map(T::vectors_mut::<S>);
        let zero = Lanes::<T, S>::zero(simd);
        for term in &self.plan.terms {
            let rows = match &term.scale {
                TermScale::Tuned => rows::<T, S>(simd, self.lambda),
                TermScale::Fixed(value) => zero.constant(*value),
                TermScale::FixedRows(values) => {
                    let end = values.len().min(self.first + T::lanes::<S>());
                    rows::<T, S>(simd, &values[self.first..end])
                }
            };
            let tuned = matches!(term.scale, TermScale::Tuned);
            let weight = TermWeight {
                value: rows,
                dot: zero.constant(f64::from(u8::from(tuned))),
            };
            let point = RowState {
                w: &*w,
                w_dot: &*w_dot,
            };
            term.penalty.add::<T, S>(simd, &weight, &point, &mut sums);
        }
        // (Two loops, because the compiler might compute both kinds of powers in a single one.)
        if self.plan.exponent == 1.0 {
            multiply::<T, S>(simd, w, w_dot, &sums, |ratio| (ratio, zero.constant(1.0)));
        } else {
            let floor = zero.constant(T::PRECISION.floor());
            let exponent = self.plan.exponent;
            multiply::<T, S>(simd, w, w_dot, &sums, |ratio| {
                // 0^γ = 0, with zero derivative.
                let power = ratio.max(floor).power(exponent);
                let slope = power * zero.constant(exponent) / ratio.max(floor);
                (
                    ratio.where_less(floor, zero, power),
                    ratio.where_less(floor, zero, slope),
                )
            });
        }
    }
}

/// The update and its derivative, where `gain` is q^γ and its derivative.
#[inline(always)]
fn multiply<T: Real, S: Simd>(
    simd: S,
    w: &mut [T::Vector<S>],
    w_dot: &mut [T::Vector<S>],
    sums: &Sums<&mut [T::Vector<S>]>,
    gain: impl Fn(Lanes<T, S>) -> (Lanes<T, S>, Lanes<T, S>),
) {
    let zero = Lanes::<T, S>::zero(simd);
    let floor = zero.constant(T::PRECISION.floor());
    let each = |values: &[T::Vector<S>], k: usize| Lanes::<T, S>::new(simd, values[k]);
    for k in 0..w.len() {
        let raw = each(sums.positive, k);
        let denominator = raw.max(floor);
        let denominator_dot = raw.where_less(floor, zero, each(sums.positive_dot, k));
        let inverse = denominator.recip();
        let ratio = each(sums.negative, k) * inverse;
        let ratio_dot = (each(sums.negative_dot, k) - ratio * denominator_dot) * inverse;
        let (gain, slope) = gain(ratio);
        let (here, dot) = (each(w, k), each(w_dot, k));
        w_dot[k] = (dot * gain + here * slope * ratio_dot).value;
        w[k] = (here * gain).value;
    }
}

/// Numbers of a block's rows as a vector; rows that do not exist have 0.
#[inline(always)]
fn rows<T: Real, S: Simd>(simd: S, values: &[f64]) -> Lanes<T, S> {
    let mut padded = [T::from_f64(0.0); MOST_LANES];
    for (slot, value) in padded.iter_mut().zip(values) {
        *slot = T::from_f64(*value);
    }
    Lanes::new(simd, T::vectors::<S>(&padded)[0])
}

//! The divergences of plug-ins, applied to one number at a time.

use pulp::Simd;
use pulp::bytemuck::{cast_slice, cast_slice_mut};

use super::MOST_LANES;
use super::entry::{Entry, Parts};
use super::lanes::{Lanes, Real};
use crate::divergence::{EntryParts, PerEntry};

/// The functions of a plug-in.
#[derive(Clone, Copy)]
pub(crate) struct PlugIn<'a>(pub(crate) &'a dyn PerEntry);

/// The numbers of a vector.
#[inline(always)]
fn numbers<T: Real, S: Simd>(lanes: Lanes<T, S>) -> [f64; MOST_LANES] {
    let mut numbers = [1.0; MOST_LANES];
    let values: &[T] = cast_slice(std::slice::from_ref(&lanes.value));
    for (number, value) in numbers.iter_mut().zip(values) {
        *number = value.to_f64();
    }
    numbers
}

/// A vector of numbers, of the same kind as another.
#[inline(always)]
fn vector<T: Real, S: Simd>(like: Lanes<T, S>, number: impl Fn(usize) -> f64) -> Lanes<T, S> {
    let mut vector = like;
    let values: &mut [T] = cast_slice_mut(std::slice::from_mut(&mut vector.value));
    for (index, value) in values.iter_mut().enumerate() {
        *value = T::from_f64(number(index));
    }
    vector
}

impl Entry for PlugIn<'_> {
    const POSITIVE_VARIES: bool = true;
    const NEGATIVE_VARIES: bool = true;

    #[inline(always)]
    fn parts<T: Real, S: Simd>(
        self,
        x: Lanes<T, S>,
        y: Lanes<T, S>,
        _inverse: Lanes<T, S>,
        y_dot: Lanes<T, S>,
    ) -> Parts<T, S> {
        let lanes = T::lanes::<S>();
        let zero = EntryParts {
            positive: 0.0,
            negative: 0.0,
        };
        let (mut parts, mut slopes) = ([zero; MOST_LANES], [zero; MOST_LANES]);
        let (xs, ys) = (numbers(x), numbers(y));
        self.0.parts(
            &xs[..lanes],
            &ys[..lanes],
            &mut parts[..lanes],
            &mut slopes[..lanes],
        );
        let y_dot = numbers(y_dot);
        // A slope may be infinite at the floor, where ẏ is 0.
        let along = |slope: f64, y_dot: f64| if y_dot == 0.0 { 0.0 } else { slope * y_dot };
        Parts {
            positive: vector(x, |at| parts[at].positive),
            negative: vector(x, |at| parts[at].negative),
            positive_dot: vector(x, |at| along(slopes[at].positive, y_dot[at])),
            negative_dot: vector(x, |at| along(slopes[at].negative, y_dot[at])),
        }
    }

    #[inline(always)]
    fn values<T: Real, S: Simd, const J: usize>(
        self,
        x: [Lanes<T, S>; J],
        y: [Lanes<T, S>; J],
        _inverse: [Lanes<T, S>; J],
    ) -> [Lanes<T, S>; J] {
        let lanes = T::lanes::<S>();
        let mut values = x;
        for j in 0..J {
            let (xs, ys, mut out) = (numbers(x[j]), numbers(y[j]), [0.0; MOST_LANES]);
            self.0.values(&xs[..lanes], &ys[..lanes], &mut out[..lanes]);
            values[j] = vector(x[j], |at| out[at]);
        }
        values
    }
}

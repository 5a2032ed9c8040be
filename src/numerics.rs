//! The numerical conventions that every formula shares: precision, the floor
//! under divisions, and powers in full precision.
//!
//! Three conventions keep zeros harmless (benchmark A of the paper has 31 rows
//! that are all zero, and unguarded code turns them into NaN after one update):
//!
//! - reconstructions `y` and denominators never fall below a tiny positive **floor**; at the floor
//!   the derivative is zero, on the tape and in the hand-written tangents;
//! - `0 / 0 = 0` and `0 · log 0 = 0` follow from that;
//! - an entry of X below the floor counts as 0.
//!
//! Two operations of Burn 0.22 lose half the digits of a 64-bit tensor, and
//! plug-ins should avoid them as altbi does (the [checker](mod@crate::check)
//! notices them): **dividing by a number** on the tape, whose gradient uses a
//! 32-bit reciprocal (multiply by the reciprocal instead), and **`powf`** on the
//! ndarray device, which rounds its exponent to 32 bits (use [`power`]).

use burn::tensor::{Bool, DType, Tensor};
use ndarray::ArrayView1;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::primitive;
use crate::words::words;

/// The floating-point type that tensors are made of.
///
/// | precision | floor | use |
/// |---|---|---|
/// | `F64` (default) | 1e-150 | everything; the consistency tolerances hold here |
/// | `F32` | 1e-18 | half the memory; hypergradients to about 1e-3 |
///
/// The floor can be squared without leaving the normal range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 64-bit floats.
    #[default]
    F64,
    /// 32-bit floats.
    F32,
}

words!(Precision, "floating-point type" { F64 = "f64", F32 = "f32" });

impl Precision {
    /// Burn's name of the type. Always passed when a tensor is made: Burn's own
    /// default is 32 bits.
    pub fn dtype(self) -> DType {
        match self {
            Self::F64 => DType::F64,
            Self::F32 => DType::F32,
        }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
        }
    }

    /// The smallest value that a reconstruction or a denominator may take.
    pub fn floor(self) -> f64 {
        match self {
            Self::F64 => 1e-150,
            Self::F32 => 1e-18,
        }
    }

    /// The allowed range of the largest entry of X. Within it the products and powers of the
    /// updates stay above the floor and below overflow.
    pub fn range(self) -> (f64, f64) {
        match self {
            Self::F64 => (1e-60, 1e100),
            Self::F32 => (1e-6, 1e12),
        }
    }

    /// Returns true if a number is finite in this precision.
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::F64 => value.is_finite(),
            Self::F32 => (value as f32).is_finite(),
        }
    }

    /// The distance from 1 to the next number.
    pub fn epsilon(self) -> f64 {
        match self {
            Self::F64 => f64::EPSILON,
            Self::F32 => f64::from(f32::EPSILON),
        }
    }

    /// The precision that a tensor has.
    ///
    /// # Panics
    /// If the tensor is neither 32 nor 64 bits wide; [`Problem`](crate::Problem)
    /// makes no others.
    pub fn of(tensor: &Tensor<2>) -> Self {
        match tensor.dtype() {
            DType::F64 => Self::F64,
            DType::F32 => Self::F32,
            other => panic!("altbi makes no tensors of type {other:?}"),
        }
    }
}

/// A hypergradient below this share of its terms counts as rounding.
pub(crate) const CANCELLATION: f64 = 1e-6;

/// A tensor with a floor, and the entries that were below it.
///
/// Burn's `clamp_min` has zero gradient for entries below the floor. Hand-written tangents do the
/// same by [`silence`](Floored::silence).
#[derive(Debug, Clone)]
pub struct Floored {
    /// `max(raw, floor)`.
    pub value: Tensor<2>,
    /// True where `raw < floor`.
    pub bound: Tensor<2, Bool>,
}

impl Floored {
    /// Applies the floor to `raw`.
    pub fn new(raw: Tensor<2>, floor: f64) -> Self {
        let bound = raw.clone().lower_elem(floor);
        let value = raw.mask_fill(bound.clone(), floor);
        Self { value, bound }
    }

    /// Sets a derivative to zero for entries below the floor. (It does not multiply by zero,
    /// because the derivative may be infinite.)
    pub fn silence(&self, derivative: Tensor<2>) -> Tensor<2> {
        let (here, there) = (derivative.dims(), self.bound.dims());
        let shape = [here[0].max(there[0]), here[1].max(there[1])];
        derivative
            .expand(shape)
            .mask_fill(self.bound.clone().expand(shape), 0.0)
    }
}

/// `base^exponent`, entrywise, in the tensor's full precision; `base > 0`.
///
/// Burn's ndarray device rounds the exponent of `powf` to 32 bits, also for
/// 64-bit tensors, which costs eight digits for an exponent such as 0.3. So the
/// general case goes through `exp(exponent · log(base))`, and the exponents that
/// the common divergences need are spelt out.
///
/// # Shapes
/// `base` is n×m; so is the result.
pub fn power(base: &Tensor<2>, exponent: f64) -> Tensor<2> {
    let base = base.clone();
    match exponent {
        0.0 => base.ones_like(),
        1.0 => base,
        2.0 => base.clone() * base,
        -1.0 => base.recip(),
        -2.0 => (base.clone() * base).recip(),
        0.5 => base.sqrt(),
        -0.5 => base.sqrt().recip(),
        1.5 => base.clone() * base.sqrt(),
        2.5 => base.clone() * base.clone() * base.sqrt(),
        -1.5 | -2.5 => power(&base, -exponent).recip(),
        _ => (base.log() * exponent).exp(),
    }
}

/// `base^exponent` for `base ≥ 0`, with `0^exponent = 0` (zero derivative
/// there): the γ-th power of an update's ratio.
///
/// # Shapes
/// `base` is n×r; so is the result.
pub fn power_of_ratio(base: Tensor<2>, exponent: f64) -> Tensor<2> {
    if exponent == 1.0 {
        return base;
    }
    let floor = Precision::of(&base).floor();
    let floored = Floored::new(base, floor);
    floored.silence(power(&floored.value, exponent))
}

/// The largest change of an entry of a signal, relative to its largest entry; NaN if an entry is.
pub(crate) fn movement(before: ArrayView1<f64>, after: ArrayView1<f64>) -> f64 {
    let (mut moved, mut largest) = (0.0, 0.0);
    for (b, a) in before.iter().zip(after) {
        let step = (a - b).abs();
        if step.is_nan() {
            return f64::NAN;
        }
        moved = f64::max(moved, step);
        largest = f64::max(largest, *a);
    }
    if moved == 0.0 { 0.0 } else { moved / largest }
}

/// The γ of an update, with fast special cases.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Gamma {
    /// 1.
    One,
    /// ½.
    Half,
    /// Any other.
    General(f64),
}

impl Gamma {
    /// (It is not inlined. Otherwise the compiler merges the case γ = 1 with the general power,
    /// because it knows that `x.powf(1.0)` is x.)
    #[inline(never)]
    pub(crate) fn new(exponent: f64) -> Self {
        if exponent == 1.0 {
            Self::One
        } else if exponent == 0.5 {
            Self::Half
        } else {
            Self::General(exponent)
        }
    }

    /// Runs a loop that is compiled for γ = 1 alone, and once more for all others.
    #[inline(always)]
    pub(crate) fn specialised(self, mut run: impl FnMut(Self)) {
        match self {
            Self::One => run(Self::One),
            other => run(other),
        }
    }

    /// `q^γ`, and 0 below the floor.
    #[inline(always)]
    pub(crate) fn gain(self, ratio: f64, floor: f64) -> f64 {
        match self {
            Self::One => ratio,
            _ if ratio < floor => 0.0,
            Self::Half => ratio.sqrt(),
            Self::General(exponent) => ratio.powf(exponent),
        }
    }

    /// `γ q^(γ−1)`, and 0 below the floor.
    #[inline(always)]
    pub(crate) fn slope(self, ratio: f64, floor: f64) -> f64 {
        match self {
            Self::One => 1.0,
            _ if ratio < floor => 0.0,
            Self::Half => 0.5 / ratio.sqrt(),
            Self::General(exponent) => exponent * ratio.powf(exponent - 1.0),
        }
    }

    /// q, given `q^γ`.
    #[inline(always)]
    pub(crate) fn ratio(self, gain: f64) -> f64 {
        match self {
            Self::One => gain,
            Self::Half => gain * gain,
            Self::General(exponent) => gain.powf(exponent.recip()),
        }
    }
}

/// The tensor's entries as 64-bit floats, row by row.
pub(crate) fn to_host(tensor: &Tensor<2>) -> Vec<f64> {
    primitive::copied(tensor).unwrap_or_else(|| {
        tensor
            .clone()
            .without_autodiff()
            .into_data_dtype(DType::F64)
            .try_into_vec::<f64>()
            .expect("a float tensor converts to f64")
    })
}

/// Entries in one task of loops over a factor: a few microseconds of work. It does not depend on the
/// machine, so sums do not either.
pub(crate) const TASK: usize = 1 << 12;

/// The same in rows of r numbers.
pub(crate) fn rows_in_task(rank: usize) -> usize {
    (TASK / rank).max(1)
}

/// Rows in one task of [`add_summed`], whatever the number of threads.
const ROWS: usize = 1024;

/// Components that are summed together.
const SIDE: usize = 4;

/// Adds r numbers to as many, or to one.
pub(crate) fn add_row(sums: &mut [f64], row: &[f64]) {
    if let [sum] = sums {
        *sum += row.iter().sum::<f64>();
    } else {
        add(sums, row);
    }
}

/// Adds numbers to as many others.
#[inline(always)]
pub(crate) fn add(to: &mut [f64], share: &[f64]) {
    to.iter_mut()
        .zip(share)
        .for_each(|(to, share)| *to += share);
}

/// Adds rows of r numbers to one row, or all numbers to one.
pub(crate) fn add_rows(matrix: &[f64], rank: usize, sums: &mut [f64]) {
    let rows = matrix.chunks_exact(rank);
    if sums.len() == rank {
        // (Sums of some components stay in registers.)
        for (first, sums) in sums.chunks_mut(SIDE).enumerate() {
            match sums.as_mut_array::<SIDE>() {
                Some(sums) => {
                    let mut totals = *sums;
                    for row in rows.clone() {
                        add(&mut totals, &row[first * SIDE..][..SIDE]);
                    }
                    *sums = totals;
                }
                None => rows.clone().for_each(|row| add(sums, &row[first * SIDE..])),
            }
        }
    } else {
        rows.for_each(|row| add_row(sums, row));
    }
}

/// Sums an n×r matrix to the shape of a weight that is spread over it, and adds the sums. All cores
/// work.
pub(crate) fn add_summed(matrix: &[f64], rank: usize, [rows, width]: [usize; 2], sums: &mut [f64]) {
    if rows > 1 {
        let of_rows = sums.par_chunks_exact_mut(width).with_min_len(ROWS);
        let of_rows = of_rows.zip(matrix.par_chunks_exact(rank));
        of_rows.for_each(|(sums, row)| add_row(sums, row));
        return;
    }
    let pieces = matrix.par_chunks(ROWS * rank).map(|piece| {
        let mut sums = vec![0.0; width];
        add_rows(piece, rank, &mut sums);
        sums
    });
    for piece in pieces.collect::<Vec<_>>() {
        add(sums, &piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    fn row(values: &[f64]) -> Tensor<2> {
        Device::default().tensor(values.to_vec(), [1, values.len()], Precision::F64)
    }

    #[test]
    fn powers_keep_all_sixty_four_bits_of_the_exponent() {
        let bases = [1e-150, 3e-7, 0.02, 0.9, 1.0, 7.5, 1e6];
        for exponent in [
            0.3,
            -1.7,
            2.0 / 3.0,
            0.5,
            -0.5,
            1.5,
            -1.5,
            2.0,
            -2.0,
            1.0,
            0.0,
            -1.0,
            1.1,
        ] {
            let powers = to_host(&power(&row(&bases), exponent));
            for (base, got) in bases.iter().zip(powers) {
                let want = base.powf(exponent);
                assert!(
                    (got / want - 1.0).abs() < 2e-13,
                    "{base}^{exponent}: {got} instead of {want}"
                );
            }
        }
    }

    #[test]
    fn zero_to_a_fraction_is_zero() {
        let powers = to_host(&power_of_ratio(row(&[0.0, 4.0]), 0.5));
        assert_eq!(powers, [0.0, 2.0]);
    }

    #[test]
    fn the_floor_binds_below_and_silences_derivatives() {
        let floored = Floored::new(row(&[0.0, 1e-200, 1.0]), 1e-150);
        assert_eq!(to_host(&floored.value), [1e-150, 1e-150, 1.0]);
        let slope = floored.silence(row(&[f64::INFINITY, f64::NAN, 3.0]));
        assert_eq!(to_host(&slope), [0.0, 0.0, 3.0]);
    }
}

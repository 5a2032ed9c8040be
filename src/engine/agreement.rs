//! Whether the two engines agree, on the very data of a run.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, Axis, Slice, concatenate};

use super::{Autodiff, Engine};
use crate::bunch::Bunch;
use crate::error::{Error, Result};
use crate::factors::{Factors, Side};
use crate::hypergradient::{Forward, Mode};
use crate::numerics::{CANCELLATION, Precision, to_host};
use crate::problem::{Problem, ToMatrix};

/// The largest relative difference between the engines that a run accepts. Autodiff
/// is computed in 64 bits in either case.
pub fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F64 => 1e-8,
        Precision::F32 => 1e-2,
    }
}

/// Updates of a bunch that are compared: all of the usual ones. The tape of a longer one
/// would take longer than the run.
pub const COMPARED_UPDATES: usize = 64;

/// Computes one iteration by both engines and compares H, W and, where λ is tuned,
/// the hypergradient by Burn's reverse mode. Returns the largest difference,
/// relative to the largest entry. Of a bunch longer than [`COMPARED_UPDATES`] only so many
/// updates are compared.
///
/// # Errors
/// [`Error::EnginesDisagree`] above the [`tolerance`].
pub(crate) fn agreement(
    problem: &Problem,
    fused: &mut dyn Engine,
    autodiff: &mut Autodiff,
    start: &Factors,
    lambda: &Array2<f64>,
    tuned: bool,
) -> Result<f64> {
    let length = autodiff.length;
    let compared = length.min(COMPARED_UPDATES);
    autodiff.set_length(compared);
    fused.set_length(compared);
    let difference = largest_difference(problem, fused, autodiff, start, lambda, tuned);
    fused.set_length(length);
    difference
}

fn largest_difference(
    problem: &Problem,
    fused: &mut dyn Engine,
    autodiff: &Autodiff,
    start: &Factors,
    lambda: &Array2<f64>,
    tuned: bool,
) -> Result<f64> {
    let mut factors = start.clone();
    fused.update_other(problem, &mut factors);
    let expected = update_h(problem, autodiff, start)?;
    let mut largest = Largest::new(problem.precision());
    largest.compare("H", &factors.h, &expected, 0.0)?;

    // From the same H on, or the differences would add up.
    let h = factors.h.clone();
    let mut gradient = tuned.then(|| Array2::zeros(lambda.raw_dim()));
    fused.bunch(problem, &mut factors, lambda, gradient.as_mut())?;
    let expected = bunch(problem, autodiff, &start.w, &h, lambda, tuned)?;
    largest.compare("W", &factors.w, &expected.w, 0.0)?;
    if let Some(gradient) = gradient {
        // Where the terms of dE/dλ cancel, as at a perfect fit, rounding is all
        // that is left of it, and no two programs agree.
        let least = expected.scale * CANCELLATION;
        largest.compare("the hypergradient", &gradient, &expected.gradient, least)?;
    }
    Ok(largest.difference)
}

pub(super) struct Largest {
    tolerance: f64,
    pub(super) difference: f64,
}

impl Largest {
    pub(super) fn new(precision: Precision) -> Self {
        Self {
            tolerance: tolerance(precision),
            difference: 0.0,
        }
    }

    pub(super) fn compare(
        &mut self,
        quantity: &'static str,
        found: &impl ToMatrix,
        expected: &impl ToMatrix,
        least_scale: f64,
    ) -> Result<()> {
        let (found, expected) = (&found.to_matrix()?, &expected.to_matrix()?);
        let largest =
            |values: ArrayView2<f64>| values.iter().fold(0.0, |a, b| f64::max(a, b.abs()));
        let scale = f64::max(largest(expected.view()), least_scale);
        let difference = largest((found - expected).view());
        let difference = if difference == 0.0 {
            0.0
        } else {
            difference / scale
        };
        // What is not finite in both is for the solver to refuse.
        let finite = |values: &Array2<f64>| values.iter().all(|value| value.is_finite());
        if !(finite(found) || finite(expected)) {
            return Ok(());
        }
        if !(difference <= self.tolerance && finite(found) && finite(expected)) {
            return Err(Error::EnginesDisagree {
                quantity,
                difference,
                tolerance: self.tolerance,
            });
        }
        self.difference = self.difference.max(difference);
        Ok(())
    }
}

fn part(matrix: &Array2<f64>, rows: &Range<usize>) -> Array2<f64> {
    matrix
        .slice_axis(Axis(0), Slice::from(rows.clone()))
        .to_owned()
}

fn joined(parts: &[Array2<f64>]) -> Array2<f64> {
    let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
    concatenate(Axis(0), &views).expect("blocks of the same width")
}

/// One update of H on tensors of 64 bits, some columns at a time.
fn update_h(problem: &Problem, autodiff: &Autodiff, factors: &Factors) -> Result<Array2<f64>> {
    let exact = |matrix: &Array2<f64>| problem.tensor_as(matrix, Precision::F64);
    let other = exact(&factors.w.t().to_owned());
    let transposed = factors.h.t().to_owned();
    let no_lambda = exact(&Array2::zeros((1, 1)));
    let mut parts = Vec::new();
    for columns in problem.blocks(Side::H) {
        let observed = problem.part(Side::H, columns.clone(), Precision::F64);
        let factor = exact(&part(&transposed, &columns));
        let updated = autodiff.of_h.update(&observed, &factor, &other, &no_lambda);
        parts.push(updated.to_matrix()?);
    }
    Ok(joined(&parts).t().as_standard_layout().into_owned())
}

struct Expected {
    w: Array2<f64>,
    gradient: Array2<f64>,
    /// The size of the terms that a hypergradient sums.
    scale: f64,
}

/// The bunch and its hypergradient by Burn's reverse mode on tensors of 64 bits,
/// some rows at a time.
fn bunch(
    problem: &Problem,
    autodiff: &Autodiff,
    w: &Array2<f64>,
    h: &Array2<f64>,
    lambda: &Array2<f64>,
    tuned: bool,
) -> Result<Expected> {
    let exact = |matrix: &Array2<f64>| problem.tensor_as(matrix, Precision::F64);
    let other = exact(h);
    let (mut ends, mut gradients) = (Vec::new(), Vec::new());
    let mut scale = 0.0;
    for rows in problem.blocks(Side::W) {
        let weights_of_rows = |weights: &burn::tensor::Tensor<2>| {
            let weights = weights.to_matrix().expect("a tensor fills its shape");
            exact(&part(&weights, &rows))
        };
        let bunch = Bunch {
            rule: autodiff.of_w.map_weights(weights_of_rows),
            observed: problem.part(Side::W, rows.clone(), Precision::F64),
            other: other.clone(),
            criterion: autodiff.criterion.clone(),
            length: autodiff.length,
        };
        let (w, lambda) = (exact(&part(w, &rows)), exact(&part(lambda, &rows)));
        if !tuned {
            ends.push(bunch.run(&w, &lambda).to_matrix()?);
            continue;
        }
        let end = bunch.hypergradient(&w, &lambda, Mode::Reverse)?;
        let of_block = Forward::default().scale(&bunch, &w, &lambda)?;
        scale = to_host(&of_block).into_iter().fold(scale, f64::max);
        ends.push(end.w.to_matrix()?);
        gradients.push(end.gradient.to_matrix()?);
    }
    Ok(Expected {
        w: joined(&ends),
        gradient: if tuned {
            joined(&gradients)
        } else {
            Array2::zeros((0, 1))
        },
        scale,
    })
}

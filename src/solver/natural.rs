//! Conversion of relative weights to absolute ones, at the end of a run.

use std::sync::Arc;

use burn::tensor::Tensor;
use ndarray::{Array2, Axis};

use crate::error::Result;
use crate::numerics::Precision;
use crate::penalty::{Penalty, PenaltyTerm, Weight};
use crate::problem::{Observed, ToMatrix};
use crate::update::Rule;

/// Largest number of entries of WH that are computed. A larger WH is sampled at evenly spaced rows.
const ENTRIES: usize = 1 << 24;

/// λ times the weight at which penalty and fit pull equally hard: `ΣP / Σp⁺` over the entries that
/// share a weight (for weights of entries: over their component).
///
/// P is that of `y = WH`. For β-divergences it does not depend on X.
///
/// # Shapes
/// `lambda` broadcasts to the factor, n×r; `other` r×m. The result has the shape of `lambda`. If λ
/// has a row for each row of the factor, it has one for each sampled row.
pub(super) fn absolute(
    lambda: &Array2<f64>,
    (factor, other): (&Array2<f64>, &Array2<f64>),
    rule: &Rule,
    penalty: &Arc<dyn Penalty>,
    tensor: impl Fn(&Array2<f64>) -> Tensor<2>,
) -> Result<Array2<f64>> {
    let (n, rank) = factor.dim();
    let looked_at = (ENTRIES / other.ncols().max(1)).clamp(1, n);
    let rows: Vec<usize> = (0..looked_at).map(|row| row * n / looked_at).collect();
    let factor = tensor(&factor.select(Axis(0), &rows));
    let other = tensor(other);
    let observed = Observed {
        x: rule.reconstruct(&factor, &other),
        mask: None,
        held_out: None,
        second: None,
    };
    let size = factor.dims();
    let fit = rule.fit_denominator(&observed, &factor, &other);
    let fit = fit.expand(size).to_matrix()?;
    let term = PenaltyTerm {
        penalty: penalty.clone(),
        weight: Weight::Fixed(1.0),
    };
    let pull = term.weighted_split(&factor).positive;
    let pull = pull.expand(size).to_matrix()?;
    let floor = Precision::of(&factor).floor();
    let by_row = lambda.nrows() > 1;
    let lambda = match by_row {
        true => lambda.select(Axis(0), &rows),
        false => lambda.clone(),
    };
    let by_component = ratios(&fit, &pull, 0, floor);
    let scales = match lambda.dim() {
        (1, 1) => vec![ratio(fit.sum(), pull.sum(), floor)],
        (rows, columns) if columns == rank && rank > 1 || !by_row => by_component.repeat(rows),
        _ => ratios(&fit, &pull, 1, floor),
    };
    let scales = Array2::from_shape_vec(lambda.dim(), scales).expect("one for each weight");
    Ok(lambda * scales)
}

/// ΣP / Σp⁺ along an axis.
fn ratios(fit: &Array2<f64>, pull: &Array2<f64>, axis: usize, floor: f64) -> Vec<f64> {
    let (fit, pull) = (fit.sum_axis(Axis(axis)), pull.sum_axis(Axis(axis)));
    let pairs = fit.iter().zip(&pull);
    pairs.map(|(fit, pull)| ratio(*fit, *pull, floor)).collect()
}

/// The ratio; 1 if the penalty does not pull.
fn ratio(fit: f64, pull: f64, floor: f64) -> f64 {
    if pull <= floor { 1.0 } else { fit / pull }
}

//! The first λ.

use burn::tensor::Tensor;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::numerics::to_host;
use crate::update::Rule;

/// Where λ starts.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LambdaStart {
    /// The method's own: balanced for AltBi and frozen, 0.5 for P-MU.
    #[default]
    Auto,
    /// The same number for every row.
    Value(f64),
}

/// The λ at which the penalty is a tenth of the divergence, row by row:
///
/// $$ \lambda_i = \frac{\sum_j d(x_{ij}, y_{ij})}{10 \, r(w_i)} $$
///
/// and 0 where `r(w_i) = 0`. Sums over all tuned terms' r.
///
/// # Shapes
/// `divergences` n numbers, `w` n×r; the result is n×1.
pub fn balanced_lambda(rule: &Rule, divergences: &[f64], w: &Tensor<2>) -> Array2<f64> {
    let mut penalties = vec![0.0; divergences.len()];
    for term in rule.terms.iter().filter(|term| term.is_tuned()) {
        for (sum, penalty) in penalties.iter_mut().zip(to_host(&term.penalty.value(w))) {
            *sum += penalty;
        }
    }
    Array2::from_shape_fn((divergences.len(), 1), |(row, _)| {
        if penalties[row] == 0.0 {
            0.0
        } else {
            // A divergence of a perfect fit may round to −1e-17.
            (divergences[row] / (10.0 * penalties[row])).max(0.0)
        }
    })
}

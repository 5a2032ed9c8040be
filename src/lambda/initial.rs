//! The first λ.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::criterion::weighted_divergence;
use crate::problem::Observed;
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
/// `observed.x` n×m, `w` n×r, `h` r×m; the result is n×1.
pub fn balanced_lambda(
    rule: &Rule,
    observed: &Observed,
    w: &Tensor<2>,
    h: &Tensor<2>,
) -> Tensor<2> {
    let y = rule.reconstruct(w, h);
    let divergence = rule.divergence.as_ref();
    let distance = weighted_divergence(divergence, &observed.x, observed.mask.as_ref(), &y);
    let penalty = rule
        .terms
        .iter()
        .filter(|term| term.is_tuned())
        .fold(distance.zeros_like(), |sum, term| {
            sum + term.penalty.value(w)
        });
    let none = penalty.clone().equal_elem(0.0);
    let safe = penalty.mask_fill(none.clone(), 1.0);
    // A divergence of a perfect fit may round to −1e-17.
    (distance / (safe * 10.0))
        .mask_fill(none, 0.0)
        .clamp_min(0.0)
}

//! The first λ.

use serde::{Deserialize, Serialize};

/// The first λ.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LambdaStart {
    /// Chosen by the method: balanced for AltBi and frozen, 0.5 for P-MU.
    #[default]
    Auto,
    /// The same number for every row.
    Value(f64),
}

/// The λ at which a penalty is a tenth of the divergence, row by row:
///
/// $$ \lambda_i = \frac{\sum_j d(x_{ij}, y_{ij})}{10 \, r(w_i)} $$
///
/// and 0 if `r(w_i) = 0`.
///
/// # Shapes
/// n numbers each.
pub fn balanced_lambda(divergences: &[f64], penalties: &[f64]) -> Vec<f64> {
    let rows = divergences.iter().zip(penalties);
    let balanced = rows.map(|(divergence, penalty)| {
        if *penalty == 0.0 {
            0.0
        } else {
            // A divergence of a perfect fit may round to −1e-17.
            (divergence / (10.0 * penalty)).max(0.0)
        }
    });
    balanced.collect()
}

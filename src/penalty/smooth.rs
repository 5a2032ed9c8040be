//! Smoothness along the rows: neighbouring rows should be alike.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::across::SmoothAcross;
use super::edges::{Along, Edges, POWERS, along_edges};
use super::{Coupling, HostPenalty, Penalty, constant_like};
use crate::processes::Processes;
use crate::split::{MajoriserPowers, Split};

/// Squared differences between neighbouring rows, so that each *column* of the
/// factor is a smooth signal.
///
/// $$ \sum_i r_i(W) = \frac12 \sum_{i=1}^{n-1} \sum_k (w_{i+1,k} - w_{i,k})^2 $$
///
/// Half of each difference belongs to each of its two rows: `r_i = ¼ Σ_k [(w_i − w_{i−1})² + (w_i −
/// w_{i+1})²]`. With weights λ_i the difference between rows i and i+1 then has the weight `e_i = ½
/// (λ_i + λ_{i+1})`, and the gradient splits into `p⁺_i = (e_{i−1} + e_i) w_i` and `p⁻_i = e_{i−1}
/// w_{i−1} + e_i w_{i+1}`. With one shared λ the parts are `λ d_i w_i` and `λ s_i`, where d_i is
/// the number of neighbours and s_i their sum.
///
/// Rows are coupled, so modes that treat rows as independent cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Smooth;

impl Along for Smooth {
    fn edges_of(&self, w: &Tensor<2>) -> Edges {
        let [n, _] = w.dims();
        Edges::chain(n)
    }

    /// The rows above and below, if they exist.
    #[inline(always)]
    fn neighbours(&self, i: usize, count: usize) -> impl Iterator<Item = (usize, f64)> {
        let above = i.checked_sub(1);
        let both = above.into_iter().chain((i + 1 < count).then_some(i + 1));
        both.map(|j| (j, 1.0))
    }
}

impl Penalty for Smooth {
    fn name(&self) -> String {
        "smooth".into()
    }

    along_edges!(self, w => self.edges_of(w).shares(w));

    fn takes_any_rows(&self) -> bool {
        true
    }

    fn across(&self, processes: &Processes) -> Option<Arc<dyn Penalty>> {
        Some(Arc::new(SmoothAcross::new(processes)))
    }

    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        Some(POWERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::numerics::{Precision, to_host};

    #[test]
    fn keeps_the_rules() {
        super::super::tests::verify(&Smooth, |rows, i| {
            let mut sum = 0.0;
            for k in 0..3 {
                if i > 0 {
                    sum += (rows[i][k] - rows[i - 1][k]).powi(2);
                }
                if i + 1 < rows.len() {
                    sum += (rows[i][k] - rows[i + 1][k]).powi(2);
                }
            }
            sum / 4.0
        });
    }

    #[test]
    fn row_weights_enter_by_their_mean_over_each_difference() {
        let tensor = |values: &[f64], shape| {
            Device::default().tensor(values.to_vec(), shape, Precision::F64)
        };
        let w = tensor(&[0.3, 1.0, 0.2, 0.9], [4, 1]);
        let weight = tensor(&[1.0, 3.0, 0.5, 2.0], [4, 1]);
        let objective = |w: &Tensor<2>, weight: &Tensor<2>| {
            to_host(&(Smooth.value(w) * weight.clone()))
                .iter()
                .sum::<f64>()
        };
        let split = Smooth.weighted_split(&w, &weight);
        let gradient = to_host(&(split.positive - split.negative));
        let cotangents = Split {
            positive: tensor(&[0.4, -0.2, 0.7, 0.1], [4, 1]),
            negative: tensor(&[-0.3, 0.8, 0.5, -0.6], [4, 1]),
        };
        let pulled = to_host(&Smooth.weight_cotangent(&w, &cotangents).unwrap());
        for i in 0..4 {
            let mut unit = [0.0; 4];
            unit[i] = 1.0;
            let unit = tensor(&unit, [4, 1]);
            let step = 1e-6;
            let numeric = (objective(&(w.clone() + unit.clone() * step), &weight)
                - objective(&(w.clone() - unit.clone() * step), &weight))
                / (2.0 * step);
            assert!((gradient[i] - numeric).abs() < 1e-8, "row {i}");

            // Linear in the weights: the transpose is a dot product with e_i.
            let parts = Smooth.weighted_split(&w, &unit);
            let paired = parts.positive * cotangents.positive.clone()
                + parts.negative * cotangents.negative.clone();
            let want: f64 = to_host(&paired).iter().sum();
            assert!((pulled[i] - want).abs() < 1e-14, "weight {i}");
        }
    }

    #[test]
    fn one_row_has_no_neighbours() {
        let w = Device::default().tensor(vec![0.3, 2.0], [1, 2], Precision::F64);
        assert_eq!(to_host(&Smooth.value(&w)), [0.0]);
        assert_eq!(to_host(&Smooth.split(&w).positive), [0.0, 0.0]);
    }
}

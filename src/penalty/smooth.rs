//! Smoothness along the rows: neighbouring rows should be alike.

use std::ops::Range;

use burn::tensor::Tensor;

use super::{Coupling, HostPenalty, Penalty, Rows, Spread, constant_like};
use crate::split::{MajoriserPowers, Split};

/// Squared differences between neighbouring rows, so that each *column* of the
/// factor is a smooth signal.
///
/// $$ \sum_i r_i(W) = \frac12 \sum_{i=1}^{n-1} \sum_k (w_{i+1,k} - w_{i,k})^2 $$
///
/// Each difference is shared half and half by its two rows, which defines
/// `r_i = ¼ Σ_k [(w_i − w_{i−1})² + (w_i − w_{i+1})²]`. With weights λ_i the
/// difference between rows i and i+1 then weighs `e_i = ½ (λ_i + λ_{i+1})`, and
/// the gradient splits into
/// `p⁺_i = (e_{i−1} + e_i) w_i` and `p⁻_i = e_{i−1} w_{i−1} + e_i w_{i+1}`.
/// With one shared λ that is `λ d_i w_i` and `λ s_i`, d_i the number of
/// neighbours and s_i their sum.
///
/// Rows are coupled, so modes that treat rows as independent cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Smooth;

/// The rows moved by one: row i becomes row i+1 (`Down`) or i−1 (`Up`), with
/// zeros where nothing comes from.
enum Shift {
    Down,
    Up,
}

fn shifted(w: &Tensor<2>, shift: Shift) -> Tensor<2> {
    let [n, r] = w.dims();
    let zeros = Tensor::zeros([1, r], (&w.device(), w.dtype()));
    if n == 1 {
        return zeros;
    }
    match shift {
        Shift::Down => Tensor::cat(vec![zeros, w.clone().slice([0..n - 1, 0..r])], 0),
        Shift::Up => Tensor::cat(vec![w.clone().slice([1..n, 0..r]), zeros], 0),
    }
}

/// Weights of the differences to the row above and to the row below, n×r each;
/// zero at the ends. Linear and, as a map to the edges, its own bookkeeping: the
/// edge between i and i+1 appears in row i as `below` and in row i+1 as `above`.
fn edge_weights(weight: &Tensor<2>, dims: [usize; 2]) -> (Tensor<2>, Tensor<2>) {
    let weight = weight.clone().expand(dims);
    let [n, r] = dims;
    if n == 1 {
        return (weight.zeros_like(), weight.zeros_like());
    }
    let edges = (weight.clone().slice([0..n - 1, 0..r]) + weight.slice([1..n, 0..r])) * 0.5;
    let zeros = Tensor::zeros([1, r], (&edges.device(), edges.dtype()));
    (
        Tensor::cat(vec![zeros.clone(), edges.clone()], 0),
        Tensor::cat(vec![edges, zeros], 0),
    )
}

/// A quarter of the squared differences to the rows above and below, n×r.
fn shares(w: &Tensor<2>) -> Tensor<2> {
    let (above, below) = edge_weights(&constant_like(w, 1.0), w.dims());
    // (A product: Burn's square calls a general power.)
    let squared = |difference: Tensor<2>| difference.clone() * difference;
    let up = squared(w.clone() - shifted(w, Shift::Down)) * above;
    let down = squared(w.clone() - shifted(w, Shift::Up)) * below;
    (up + down) * 0.25
}

impl Penalty for Smooth {
    fn name(&self) -> String {
        "smooth".into()
    }

    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        shares(w).sum_dim(1)
    }

    fn is_sum_over_entries(&self) -> bool {
        true
    }

    fn entries(&self, w: &Tensor<2>) -> Option<Tensor<2>> {
        Some(shares(w))
    }

    fn takes_any_rows(&self) -> bool {
        true
    }

    fn split(&self, w: &Tensor<2>) -> Split {
        self.weighted_split(w, &constant_like(w, 1.0))
    }

    fn coupling(&self) -> Option<&dyn Coupling> {
        Some(self)
    }

    /// `−w_i w_j` is majorised by `−w̃_i w̃_j (1 + log(u_i u_j))`, whose
    /// derivative decays as 1/u; the squares grow with u.
    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        Some(MajoriserPowers {
            growing: 1.0,
            decaying: -1.0,
        })
    }

    fn on_host(&self) -> Option<&dyn HostPenalty> {
        Some(self)
    }
}

/// `½ (λ_i + λ_j)` of an entry, for neighbouring rows.
#[inline]
fn edge(weight: &Spread, i: usize, j: usize, k: usize) -> f64 {
    0.5 * (weight.at(i, k) + weight.at(j, k))
}

/// The rows above and below, where they exist.
fn neighbours(i: usize, count: usize) -> impl Iterator<Item = usize> {
    let above = i.checked_sub(1);
    above.into_iter().chain((i + 1 < count).then_some(i + 1))
}

impl HostPenalty for Smooth {
    fn add_split(
        &self,
        w: Rows<'_>,
        weight: &Spread,
        rows: Range<usize>,
        positive: &mut [f64],
        negative: &mut [f64],
    ) {
        let slots = positive.chunks_exact_mut(w.rank);
        let slots = slots.zip(negative.chunks_exact_mut(w.rank));
        for (i, (positive, negative)) in rows.zip(slots) {
            let own = w.row(i);
            for j in neighbours(i, w.count()) {
                let other = w.row(j);
                for k in 0..w.rank {
                    let edge = edge(weight, i, j, k);
                    positive[k] += edge * own[k];
                    negative[k] += edge * other[k];
                }
            }
        }
    }

    fn add_cotangent(
        &self,
        w: Rows<'_>,
        weight: &Spread,
        [of_positive, of_negative]: [Rows<'_>; 2],
        rows: Range<usize>,
        factor: &mut [f64],
        weights: &mut [f64],
    ) {
        weights.fill(0.0);
        let slots = factor.chunks_exact_mut(w.rank);
        let slots = slots.zip(weights.chunks_exact_mut(w.rank));
        for (i, (factor, weights)) in rows.zip(slots) {
            let (own, positive, negative) = (w.row(i), of_positive.row(i), of_negative.row(i));
            for j in neighbours(i, w.count()) {
                let (other, positive_there) = (w.row(j), of_positive.row(j));
                let negative_there = of_negative.row(j);
                for k in 0..w.rank {
                    factor[k] += edge(weight, i, j, k) * (positive[k] + negative_there[k]);
                    // Half of the edge's, which both of its ends share.
                    weights[k] += 0.5
                        * (positive[k] * own[k]
                            + positive_there[k] * other[k]
                            + negative[k] * other[k]
                            + negative_there[k] * own[k]);
                }
            }
        }
    }
}

impl Coupling for Smooth {
    fn weighted_split(&self, w: &Tensor<2>, weight: &Tensor<2>) -> Split {
        let (above, below) = edge_weights(weight, w.dims());
        Split {
            positive: (above.clone() + below.clone()) * w.clone(),
            negative: above * shifted(w, Shift::Down) + below * shifted(w, Shift::Up),
        }
    }

    /// Both parts are linear in w.
    fn weighted_tangent(
        &self,
        _w: &Tensor<2>,
        weight: &Tensor<2>,
        direction: &Tensor<2>,
    ) -> Option<Split> {
        Some(self.weighted_split(direction, weight))
    }

    /// Both linear maps are symmetric: one is diagonal, and the other carries
    /// the same edge weight from i to i+1 as back.
    fn weighted_cotangent(
        &self,
        _w: &Tensor<2>,
        weight: &Tensor<2>,
        parts: &Split,
    ) -> Option<Tensor<2>> {
        let of_positive = self.weighted_split(&parts.positive, weight).positive;
        let of_negative = self.weighted_split(&parts.negative, weight).negative;
        Some(of_positive + of_negative)
    }

    /// `ē_i = p̄⁺_i w_i + p̄⁺_{i+1} w_{i+1} + p̄⁻_i w_{i+1} + p̄⁻_{i+1} w_i`, and half
    /// of each edge's cotangent goes to either end.
    fn weight_cotangent(&self, w: &Tensor<2>, parts: &Split) -> Option<Tensor<2>> {
        let [n, _] = w.dims();
        if n == 1 {
            return Some(w.zeros_like());
        }
        let own = parts.positive.clone() * w.clone();
        let from_below = parts.negative.clone() * shifted(w, Shift::Up);
        let from_above = parts.negative.clone() * shifted(w, Shift::Down);
        // Edge i lies between rows i and i+1; the last row has none below it.
        let (_, exists) = edge_weights(&constant_like(w, 1.0), w.dims());
        let edge =
            (own.clone() + shifted(&own, Shift::Up) + from_below + shifted(&from_above, Shift::Up))
                * exists;
        Some((edge.clone() + shifted(&edge, Shift::Down)) * 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::numerics::{Precision, to_host};

    #[test]
    fn bench() {
        super::super::tests::bench(&Smooth, |rows, i| {
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

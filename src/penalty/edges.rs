//! Edges between rows, and squared differences along them: the common part of smoothness, graphs and
//! steps.
//!
//! An edge between rows i and j with strength a adds `½ a Σ_k (w_ik − w_jk)²`. Half of it belongs
//! to each of its rows. So with weights λ the edge has the weight `e = ½ a (λ_i + λ_j)`, and the
//! gradient splits into
//!
//! $$ p^+_i = \Big(\sum_j e_{ij}\Big) w_i, \qquad p^-_i = \sum_j e_{ij} w_j $$
//!
//! Both are linear in w, and symmetric; both are linear in λ.

use std::fmt::Debug;
use std::ops::Range;

use burn::tensor::{IndexingUpdateOp, Int, Tensor, TensorData};

use super::{Coupling, HostPenalty, Rows, Spread};
use crate::split::{MajoriserPowers, Split};

/// Edges on tensors.
///
/// # Shapes
/// Factors are n×r, weights broadcast to that, and each edge has one strength.
pub(super) struct Edges {
    /// `None`: edge i lies between rows i and i + 1.
    ends: Option<[Vec<i64>; 2]>,
    strengths: Vec<f64>,
}

impl Edges {
    /// Edges from pairs of rows.
    pub(super) fn new(pairs: impl Iterator<Item = (usize, usize, f64)>) -> Self {
        let (mut from, mut to, mut strengths) = (Vec::new(), Vec::new(), Vec::new());
        for (i, j, strength) in pairs {
            from.push(i as i64);
            to.push(j as i64);
            strengths.push(strength);
        }
        Self {
            ends: Some([from, to]),
            strengths,
        }
    }

    /// Edges from each of `rows` rows to the next. They use slices, because selecting rows one by
    /// one is much slower.
    pub(super) fn chain(rows: usize) -> Self {
        Self {
            ends: None,
            strengths: vec![1.0; rows.saturating_sub(1)],
        }
    }

    /// Both ends of each edge, and the strengths, on the device of a tensor. `None` if there is no
    /// edge.
    pub(super) fn beside(&self, w: &Tensor<2>) -> Option<Taken> {
        if self.strengths.is_empty() {
            return None;
        }
        let device = w.device();
        let ends = self.ends.as_ref().map(|ends| {
            ends.each_ref().map(|ends| {
                let data = TensorData::new(ends.clone(), [ends.len()]);
                Tensor::<1, Int>::from_data(data, &device)
            })
        });
        let count = self.strengths.len();
        let data = TensorData::new(self.strengths.clone(), [count, 1]);
        Some(Taken {
            ends,
            strengths: Tensor::from_data(data, (&device, w.dtype())),
            shape: w.dims(),
        })
    }

    /// The share of each entry in `Σ_i r_i`, n×r.
    pub(super) fn shares(&self, w: &Tensor<2>) -> Tensor<2> {
        let Some(edges) = self.beside(w) else {
            return w.zeros_like();
        };
        let [here, there] = edges.of(w);
        let difference = here - there;
        // (A product: Burn's square calls a general power.)
        let share = difference.clone() * difference * edges.strengths.clone() * 0.25;
        edges.summed([share.clone(), share], w)
    }

    /// The gradient of `Σ λ r` in nonnegative parts.
    pub(super) fn weighted_split(&self, w: &Tensor<2>, weight: &Tensor<2>) -> Split {
        let Some(edges) = self.beside(w) else {
            return Split {
                positive: w.zeros_like(),
                negative: w.zeros_like(),
            };
        };
        let [here, there] = edges.of(w);
        let of_edge = edges.weights(weight);
        let (here, there) = (here * of_edge.clone(), there * of_edge);
        Split {
            positive: edges.summed([here.clone(), there.clone()], w),
            negative: edges.summed([there, here], w),
        }
    }

    /// The transpose of the split in the weights, n×r:
    /// `ē = a (p̄⁺_i w_i + p̄⁺_j w_j + p̄⁻_i w_j + p̄⁻_j w_i)`, half of it to either end.
    pub(super) fn weight_cotangent(&self, w: &Tensor<2>, parts: &Split) -> Tensor<2> {
        let Some(edges) = self.beside(w) else {
            return w.zeros_like();
        };
        let [here, there] = edges.of(w);
        let [positive_here, positive_there] = edges.of(&parts.positive);
        let [negative_here, negative_there] = edges.of(&parts.negative);
        let along = positive_here * here.clone()
            + positive_there * there.clone()
            + negative_here * there
            + negative_there * here;
        let half = along * edges.strengths.clone() * 0.5;
        edges.summed([half.clone(), half], w)
    }
}

/// `−w_i w_j` is majorised by `−w̃_i w̃_j (1 + log(u_i u_j))`, whose derivative decays as 1/u;
/// the squares grow with u.
pub(super) const POWERS: MajoriserPowers = MajoriserPowers {
    growing: 1.0,
    decaying: -1.0,
};

/// Edges as tensors on the device of a factor.
pub(super) struct Taken {
    ends: Option<[Tensor<1, Int>; 2]>,
    /// One column.
    pub(super) strengths: Tensor<2>,
    shape: [usize; 2],
}

impl Taken {
    /// A matrix at both ends of each edge.
    pub(super) fn of(&self, matrix: &Tensor<2>) -> [Tensor<2>; 2] {
        let full = matrix.clone().expand(self.shape);
        let [n, r] = self.shape;
        match self.ends.clone() {
            Some([from, to]) => [full.clone().select(0, from), full.select(0, to)],
            None => [
                full.clone().slice([0..n - 1, 0..r]),
                full.slice([1..n, 0..r]),
            ],
        }
    }

    /// `½ a (λ_i + λ_j)`.
    pub(super) fn weights(&self, weight: &Tensor<2>) -> Tensor<2> {
        // A weight that all rows share is the weight of both ends.
        let ends = match weight.dims() {
            [1, _] => weight.clone(),
            _ => {
                let [here, there] = self.of(weight);
                (here + there) * 0.5
            }
        };
        ends * self.strengths.clone()
    }

    /// The contributions of the edges to their ends, summed in each row.
    pub(super) fn summed(&self, values: [Tensor<2>; 2], like: &Tensor<2>) -> Tensor<2> {
        let Some(ends) = self.ends.clone() else {
            let [_, r] = self.shape;
            let nothing = Tensor::zeros([1, r], (&like.device(), like.dtype()));
            let [above, below] = values;
            return Tensor::cat(vec![above, nothing.clone()], 0)
                + Tensor::cat(vec![nothing, below], 0);
        };
        let ends = ends.into_iter().zip(values);
        ends.fold(like.zeros_like(), |sum, (rows, values)| {
            sum.select_assign(0, rows, values, IndexingUpdateOp::Add)
        })
    }
}

/// A penalty of squared differences along edges. [`Coupling`] and [`EdgeOnHost`] are implemented for
/// it.
pub(super) trait Along: Debug + Sync {
    /// The edges between the rows of a factor.
    fn edges_of(&self, w: &Tensor<2>) -> Edges;

    /// The neighbours of row i of `count`, with the strengths of the edges to them.
    fn neighbours(&self, i: usize, count: usize) -> impl Iterator<Item = (usize, f64)>;
}

impl<P: Along> Coupling for P {
    fn weighted_split(&self, w: &Tensor<2>, weight: &Tensor<2>) -> Split {
        self.edges_of(w).weighted_split(w, weight)
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

    /// Both linear maps are symmetric.
    fn weighted_cotangent(
        &self,
        w: &Tensor<2>,
        weight: &Tensor<2>,
        parts: &Split,
    ) -> Option<Tensor<2>> {
        let edges = self.edges_of(w);
        let of_positive = edges.weighted_split(&parts.positive, weight).positive;
        let of_negative = edges.weighted_split(&parts.negative, weight).negative;
        Some(of_positive + of_negative)
    }

    fn weight_cotangent(&self, w: &Tensor<2>, parts: &Split) -> Option<Tensor<2>> {
        Some(self.edges_of(w).weight_cotangent(w, parts))
    }
}

/// A penalty of the two ends of each edge, on plain numbers: a function of an entry and its
/// neighbour. [`HostPenalty`] is implemented for it.
pub(super) trait EdgeOnHost: Sync {
    /// The neighbours of row i of `count`, with the strengths of the edges to them.
    fn edges_from(&self, i: usize, count: usize) -> impl Iterator<Item = (usize, f64)>;

    /// The share of the end `a` in r, for an edge of strength 1.
    fn share(&self, a: f64, b: f64) -> f64;

    /// p⁺ and p⁻ of the end `a`, for an edge of weight 1.
    fn parts(&self, a: f64, b: f64) -> [f64; 2];

    /// The cotangents of a and of the edge's weight, from those of p⁺ and p⁻ at both ends.
    fn cotangents(&self, ends: [f64; 2], of_a: [f64; 2], of_b: [f64; 2]) -> [f64; 2];
}

impl<P: Along> EdgeOnHost for P {
    fn edges_from(&self, i: usize, count: usize) -> impl Iterator<Item = (usize, f64)> {
        self.neighbours(i, count)
    }

    #[inline]
    fn share(&self, a: f64, b: f64) -> f64 {
        0.25 * (a - b) * (a - b)
    }

    #[inline]
    fn parts(&self, a: f64, b: f64) -> [f64; 2] {
        [a, b]
    }

    #[inline]
    fn cotangents(&self, [a, b]: [f64; 2], of_a: [f64; 2], of_b: [f64; 2]) -> [f64; 2] {
        let [positive, negative] = of_a;
        let [positive_there, negative_there] = of_b;
        let of_weight = positive * a + positive_there * b + negative * b + negative_there * a;
        [positive + negative_there, of_weight]
    }
}

/// The sum of the weights of both ends of an edge, for each component.
struct OfEnds<'a> {
    weight: &'a Spread,
    sums: Vec<f64>,
    rooms: [Vec<f64>; 2],
}

impl<'a> OfEnds<'a> {
    fn new(weight: &'a Spread, rank: usize) -> Self {
        let mut ends = Self {
            weight,
            sums: vec![0.0; rank],
            rooms: [vec![0.0; rank], vec![0.0; rank]],
        };
        ends.sum(0, 0);
        ends
    }

    fn sum(&mut self, i: usize, j: usize) {
        let [here, there] = &mut self.rooms;
        let ends = self.weight.row(i, here).iter();
        let ends = ends.zip(self.weight.row(j, there));
        for (sum, (here, there)) in self.sums.iter_mut().zip(ends) {
            *sum = here + there;
        }
    }

    /// Those of an edge.
    fn of(&mut self, i: usize, j: usize) -> &[f64] {
        if !self.weight.is_shared() {
            self.sum(i, j);
        }
        &self.sums
    }
}

impl<E: EdgeOnHost> HostPenalty for E {
    fn weighted_value(&self, w: Rows<'_>, weight: &Spread, rows: Range<usize>) -> f64 {
        let rank = w.rank;
        let mut room = vec![0.0; rank];
        let of_rows = rows.map(|i| {
            let (own, weights) = (&w.row(i)[..rank], &weight.row(i, &mut room)[..rank]);
            let of_edges = self.edges_from(i, w.count()).map(|(j, strength)| {
                let other = &w.row(j)[..rank];
                let entries = (0..rank).map(|k| weights[k] * self.share(own[k], other[k]));
                strength * entries.sum::<f64>()
            });
            of_edges.sum::<f64>()
        });
        of_rows.sum()
    }

    fn add_split(
        &self,
        w: Rows<'_>,
        weight: &Spread,
        rows: Range<usize>,
        positive: &mut [f64],
        negative: &mut [f64],
    ) {
        let rank = w.rank;
        let mut ends = OfEnds::new(weight, rank);
        let slots = positive.chunks_exact_mut(rank);
        let slots = slots.zip(negative.chunks_exact_mut(rank));
        for (i, (positive, negative)) in rows.zip(slots) {
            let own = w.row(i);
            for (j, strength) in self.edges_from(i, w.count()) {
                // (Slices of equal length, so that the loop has no bounds checks.)
                let (other, sums) = (&w.row(j)[..rank], &ends.of(i, j)[..rank]);
                for k in 0..rank {
                    let edge = 0.5 * strength * sums[k];
                    let [of_positive, of_negative] = self.parts(own[k], other[k]);
                    positive[k] += edge * of_positive;
                    negative[k] += edge * of_negative;
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
        let rank = w.rank;
        let mut ends = OfEnds::new(weight, rank);
        weights.fill(0.0);
        let slots = factor.chunks_exact_mut(rank);
        let slots = slots.zip(weights.chunks_exact_mut(rank));
        for (i, (factor, weights)) in rows.zip(slots) {
            let [own, positive, negative] = [w, of_positive, of_negative].map(|of| of.row(i));
            for (j, strength) in self.edges_from(i, w.count()) {
                let there = [w, of_positive, of_negative].map(|of| &of.row(j)[..rank]);
                let [other, positive_there, negative_there] = there;
                let sums = &ends.of(i, j)[..rank];
                for k in 0..rank {
                    let edge = 0.5 * strength * sums[k];
                    let of_own = [positive[k], negative[k]];
                    let of_other = [positive_there[k], negative_there[k]];
                    let [of_end, of_weight] = self.cotangents([own[k], other[k]], of_own, of_other);
                    factor[k] += edge * of_end;
                    // Half of the weight's cotangent, because both ends share it.
                    weights[k] += 0.5 * strength * of_weight;
                }
            }
        }
    }
}

//! Steps along the rows: columns that are piecewise constant.

use burn::tensor::Tensor;

use super::edges::{Along, EdgeOnHost, POWERS, along_edges};
use super::{Coupling, Graph, HostPenalty, Penalty, Smooth, constant_like};
use crate::numerics::Precision;
use crate::split::{MajoriserPowers, Split};

/// Differences that grow in proportion to a jump, so that each *column* of the factor is piecewise
/// constant: total variation, with corners that are rounded relative to the size of the entries.
///
/// $$ \sum_i r_i(W) = \sum_{\text{edges } ij} a_{ij} \sum_k \big(R_{ij,k} - \epsilon (w_{i,k} + w_{j,k})\big), \qquad R_{ij,k} = \sqrt{(w_{i,k} - w_{j,k})^2 + \epsilon^2 (w_{i,k} + w_{j,k})^2} $$
///
/// A jump that is large beside `ε (w_i + w_j)` costs its size, a small one about its square.
/// ([`Smooth`] lets every jump cost its square, so it rounds the corners of a step.) ε has no unit:
/// if W is c times as large, so is the penalty. The edges are those of a chain, or of a
/// [`Graph`]. Half of every edge belongs to each of its rows, so it has the weight `e = ½ a (λ_i +
/// λ_j)`, and the gradient splits into
///
/// $$ p^+_i = \sum_j e_{ij} (1 + \epsilon^2) \frac{w_i}{R_{ij}}, \qquad p^-_i = \sum_j e_{ij} \Big((1 - \epsilon^2) \frac{w_j}{R_{ij}} + \epsilon\Big) $$
///
/// Rows are coupled, so modes that treat rows as independent cannot be used.
#[derive(Debug, Clone)]
pub struct Steps<Neighbours = Smooth> {
    neighbours: Neighbours,
    corner: f64,
}

/// ε of the built-in penalty.
const CORNER: f64 = 0.1;

impl Steps {
    /// Steps from each row to the next.
    pub fn along_rows() -> Self {
        Self {
            neighbours: Smooth,
            corner: CORNER,
        }
    }
}

impl Steps<Graph> {
    /// Steps along the edges of a graph.
    pub fn along(graph: Graph) -> Self {
        Self {
            neighbours: graph,
            corner: CORNER,
        }
    }
}

impl<Neighbours> Steps<Neighbours> {
    /// Sets ε, by default 0.1.
    ///
    /// # Panics
    /// If it is not between 0 and 1. (The split would have negative parts.)
    #[must_use]
    pub fn with_corner(mut self, corner: f64) -> Self {
        assert!(corner > 0.0 && corner <= 1.0, "0 < ε ≤ 1");
        self.corner = corner;
        self
    }

    /// ε, or 0 if R is.
    #[inline]
    fn corner_at(&self, inverse: f64) -> f64 {
        if inverse > 0.0 { self.corner } else { 0.0 }
    }

    /// 1 + ε² and 1 − ε².
    fn factors(&self) -> [f64; 2] {
        let square = self.corner * self.corner;
        [1.0 + square, 1.0 - square]
    }
}

/// The two ends of each edge.
struct Jump {
    /// 1 / R, or 0 if R is.
    inverse: Tensor<2>,
    /// ε, or 0 if R is.
    corner: Tensor<2>,
    /// Both ends divided by R.
    here: Tensor<2>,
    there: Tensor<2>,
}

impl Jump {
    fn new([a, b]: [Tensor<2>; 2], corner: f64) -> Self {
        let difference = a.clone() - b.clone();
        let sum = (a.clone() + b.clone()) * corner;
        // (Products: Burn's square calls a general power.)
        let square = difference.clone() * difference + sum.clone() * sum;
        let floor = Precision::of(&square).floor();
        let zero = square.clone().lower_elem(floor * floor);
        // (Filled before the root, whose derivative is infinite at 0.)
        let inverse = square.mask_fill(zero.clone(), 1.0).sqrt().recip();
        let inverse = inverse.mask_fill(zero.clone(), 0.0);
        Self {
            corner: inverse.full_like(corner).mask_fill(zero, 0.0),
            here: a * inverse.clone(),
            there: b * inverse.clone(),
            inverse,
        }
    }
}

/// The share of each entry in `Σ_i r_i`, n×r.
fn shares(along: &impl Along, w: &Tensor<2>, corner: f64) -> Tensor<2> {
    let Some(edges) = along.edges_of(w).beside(w) else {
        return w.zeros_like();
    };
    let [a, b] = edges.of(w);
    let Jump { here, there, .. } = Jump::new([a.clone(), b.clone()], corner);
    // R − ε (a + b) without cancellation: (a − b)² / (R + ε (a + b)).
    let below = (here.clone() + there.clone()) * corner + 1.0;
    let share = (a - b) * (here - there) / below * edges.strengths.clone() * 0.5;
    edges.summed([share.clone(), share], w)
}

impl<P: Along + Penalty> Penalty for Steps<P> {
    fn name(&self) -> String {
        "steps".into()
    }

    along_edges!(self, w => shares(&self.neighbours, w, self.corner));

    fn rows(&self) -> Option<usize> {
        self.neighbours.rows()
    }

    fn takes_any_rows(&self) -> bool {
        self.neighbours.takes_any_rows()
    }

    fn reads_data(&self) -> bool {
        self.neighbours.reads_data()
    }

    /// The root is concave in the squares below it, so it lies below a multiple of them, which has the
    /// powers of squared differences; `−ε (w_i + w_j)` is linear.
    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        Some(POWERS)
    }
}

impl<P: Along> Coupling for Steps<P> {
    fn weighted_split(&self, w: &Tensor<2>, weight: &Tensor<2>) -> Split {
        let Some(edges) = self.neighbours.edges_of(w).beside(w) else {
            return Split {
                positive: w.zeros_like(),
                negative: w.zeros_like(),
            };
        };
        let of_edge = edges.weights(weight);
        let Jump {
            here,
            there,
            corner,
            ..
        } = Jump::new(edges.of(w), self.corner);
        let [plus, minus] = self.factors();
        let positive = |end: &Tensor<2>| end.clone() * of_edge.clone() * plus;
        let negative = |end: &Tensor<2>| (end.clone() * minus + corner.clone()) * of_edge.clone();
        Split {
            positive: edges.summed([positive(&here), positive(&there)], w),
            negative: edges.summed([negative(&there), negative(&here)], w),
        }
    }

    /// With ends a and b, `dR = ((1+ε²) a − (1−ε²) b) da / R + ((1+ε²) b − (1−ε²) a) db / R`, and
    /// `d (a/R) = da/R − (a/R) dR/R`.
    fn weighted_tangent(
        &self,
        w: &Tensor<2>,
        weight: &Tensor<2>,
        direction: &Tensor<2>,
    ) -> Option<Split> {
        let Some(edges) = self.neighbours.edges_of(w).beside(w) else {
            return Some(Split {
                positive: w.zeros_like(),
                negative: w.zeros_like(),
            });
        };
        let Jump {
            inverse,
            here,
            there,
            ..
        } = Jump::new(edges.of(w), self.corner);
        let [of_here, of_there] = edges.of(direction).map(|end| end * inverse.clone());
        let [plus, minus] = self.factors();
        let turn = (here.clone() * plus - there.clone() * minus) * of_here.clone()
            + (there.clone() * plus - here.clone() * minus) * of_there.clone();
        let of_edge = edges.weights(weight);
        let here = (of_here - here * turn.clone()) * of_edge.clone();
        let there = (of_there - there * turn) * of_edge;
        Some(Split {
            positive: edges.summed([here.clone() * plus, there.clone() * plus], w),
            negative: edges.summed([there * minus, here * minus], w),
        })
    }

    fn weighted_cotangent(
        &self,
        w: &Tensor<2>,
        weight: &Tensor<2>,
        parts: &Split,
    ) -> Option<Tensor<2>> {
        let Some(edges) = self.neighbours.edges_of(w).beside(w) else {
            return Some(w.zeros_like());
        };
        let Jump {
            inverse,
            here,
            there,
            ..
        } = Jump::new(edges.of(w), self.corner);
        let [positive_here, positive_there] = edges.of(&parts.positive);
        let [negative_here, negative_there] = edges.of(&parts.negative);
        let [plus, minus] = self.factors();
        // The cotangents of a/R and b/R, and of the common dR/R.
        let of_here = positive_here * plus + negative_there * minus;
        let of_there = positive_there * plus + negative_here * minus;
        let turn = here.clone() * of_here.clone() + there.clone() * of_there.clone();
        let of_edge = edges.weights(weight) * inverse;
        let slope = |own: &Tensor<2>, other: &Tensor<2>| own.clone() * plus - other.clone() * minus;
        let to_here = (of_here - slope(&here, &there) * turn.clone()) * of_edge.clone();
        let to_there = (of_there - slope(&there, &here) * turn) * of_edge;
        Some(edges.summed([to_here, to_there], w))
    }

    fn weight_cotangent(&self, w: &Tensor<2>, parts: &Split) -> Option<Tensor<2>> {
        let Some(edges) = self.neighbours.edges_of(w).beside(w) else {
            return Some(w.zeros_like());
        };
        let Jump {
            here,
            there,
            corner,
            ..
        } = Jump::new(edges.of(w), self.corner);
        let [positive_here, positive_there] = edges.of(&parts.positive);
        let [negative_here, negative_there] = edges.of(&parts.negative);
        let [plus, minus] = self.factors();
        let along = (positive_here * here.clone() + positive_there * there.clone()) * plus
            + negative_here * (there * minus + corner.clone())
            + negative_there * (here * minus + corner);
        let half = along * edges.strengths.clone() * 0.5;
        Some(edges.summed([half.clone(), half], w))
    }
}

/// 1 / R of two entries, or 0 if R is.
#[inline]
fn inverse_of_root(a: f64, b: f64, corner: f64) -> f64 {
    let (difference, sum) = (a - b, corner * (a + b));
    let square = difference * difference + sum * sum;
    let floor = Precision::F64.floor();
    if square < floor * floor {
        0.0
    } else {
        square.sqrt().recip()
    }
}

impl<P: Along> EdgeOnHost for Steps<P> {
    #[inline(always)]
    fn edges_from(&self, i: usize, count: usize) -> impl Iterator<Item = (usize, f64)> {
        self.neighbours.neighbours(i, count)
    }

    /// `½ (R − ε (a + b))`, without cancellation.
    #[inline]
    fn share(&self, a: f64, b: f64) -> f64 {
        let inverse = inverse_of_root(a, b, self.corner);
        let below = self.corner * (a + b) * inverse + 1.0;
        0.5 * (a - b) * (a - b) * inverse / below
    }

    #[inline(always)]
    fn parts(&self, a: f64, b: f64) -> [f64; 2] {
        let [plus, minus] = self.factors();
        let inverse = inverse_of_root(a, b, self.corner);
        let negative = minus * b * inverse + self.corner_at(inverse);
        [plus * a * inverse, negative]
    }

    #[inline(always)]
    fn cotangents(&self, [a, b]: [f64; 2], of_a: [f64; 2], of_b: [f64; 2]) -> [f64; 2] {
        let [positive, negative] = of_a;
        let [positive_there, negative_there] = of_b;
        let [plus, minus] = self.factors();
        let inverse = inverse_of_root(a, b, self.corner);
        let (here, there, corner) = (a * inverse, b * inverse, self.corner_at(inverse));
        let of_here = plus * positive + minus * negative_there;
        let of_there = plus * positive_there + minus * negative;
        let turn = here * of_here + there * of_there;
        let slope = plus * here - minus * there;
        let of_weight = plus * (positive * here + positive_there * there)
            + negative * (minus * there + corner)
            + negative_there * (minus * here + corner);
        [inverse * (of_here - slope * turn), of_weight]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jump(a: f64, b: f64) -> f64 {
        ((a - b).powi(2) + 0.01 * (a + b).powi(2)).sqrt() - 0.1 * (a + b)
    }

    #[test]
    fn keeps_the_rules() {
        super::super::tests::verify(&Steps::along_rows(), |rows, i| {
            let neighbours = [i.checked_sub(1), Some(i + 1).filter(|j| *j < 4)];
            let jumps = neighbours.into_iter().flatten().map(|j| {
                let of_row = (0..3).map(|k| jump(rows[i][k], rows[j][k]));
                0.5 * of_row.sum::<f64>()
            });
            jumps.sum()
        });
    }

    #[test]
    fn keeps_the_rules_along_a_graph() {
        let ring = [(0, 1, 1.0), (1, 2, 2.0), (2, 3, 1.0), (3, 0, 0.5)];
        let graph = Graph::from_edges(4, ring).unwrap();
        super::super::tests::verify(&Steps::along(graph), |rows, i| {
            let of_row = ring.iter().filter(|(a, b, _)| *a == i || *b == i);
            let jumps = of_row.map(|(a, b, strength)| {
                let of_edge = (0..3).map(|k| jump(rows[*a][k], rows[*b][k]));
                0.5 * strength * of_edge.sum::<f64>()
            });
            jumps.sum()
        });
    }
}

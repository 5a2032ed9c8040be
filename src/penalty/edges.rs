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
use pulp::{Arch, Simd, WithSimd};

use super::{Coupling, HostPenalty, Rows, Spread, powers};
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
pub(super) const POWERS: MajoriserPowers = powers(1.0, -1.0);

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

/// The methods that each [`Penalty`](super::Penalty) along edges has, given the share of each entry in
/// `Σ_i r_i`, n×r.
macro_rules! along_edges {
    ($this:ident, $w:ident => $shares:expr) => {
        fn value(&$this, $w: &Tensor<2>) -> Tensor<2> {
            $shares.sum_dim(1)
        }

        fn is_sum_over_entries(&self) -> bool {
            true
        }

        fn entries(&$this, $w: &Tensor<2>) -> Option<Tensor<2>> {
            Some($shares)
        }

        fn split(&self, w: &Tensor<2>) -> Split {
            self.weighted_split(w, &constant_like(w, 1.0))
        }

        fn coupling(&self) -> Option<&dyn Coupling> {
            Some(self)
        }

        fn on_host(&self) -> Option<&dyn HostPenalty> {
            Some(self)
        }
    };
}
pub(super) use along_edges;

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
    #[inline(always)]
    fn edges_from(&self, i: usize, count: usize) -> impl Iterator<Item = (usize, f64)> {
        self.neighbours(i, count)
    }

    #[inline(always)]
    fn share(&self, a: f64, b: f64) -> f64 {
        0.25 * (a - b) * (a - b)
    }

    #[inline(always)]
    fn parts(&self, a: f64, b: f64) -> [f64; 2] {
        [a, b]
    }

    #[inline(always)]
    fn cotangents(&self, [a, b]: [f64; 2], of_a: [f64; 2], of_b: [f64; 2]) -> [f64; 2] {
        let [positive, negative] = of_a;
        let [positive_there, negative_there] = of_b;
        let of_weight = positive * a + positive_there * b + negative * b + negative_there * a;
        [positive + negative_there, of_weight]
    }
}

/// Components that are computed together. Their numbers are copied, so that the compiler knows that no
/// result is stored among them.
const SIDE: usize = 8;
const HALF: usize = SIDE / 2;

/// Some components of a row.
#[inline(always)]
fn some<const K: usize>(row: &[f64], from: usize) -> [f64; K] {
    *row[from..].first_chunk().expect("a row of components")
}

/// The input of the edges of a row.
#[derive(Clone, Copy)]
struct Given<'a> {
    w: Rows<'a>,
    weight: &'a Spread,
    /// The cotangents of p⁺ and p⁻, if they are given.
    parts: [Rows<'a>; 2],
}

impl Given<'_> {
    /// `½ a (λ_i + λ_j)` for some components.
    #[inline(always)]
    fn edge<const K: usize>(self, [i, j]: [usize; 2], strength: f64, from: usize) -> [f64; K] {
        let mut ends = self.weight.some::<K>(i, from);
        let there = self.weight.some::<K>(j, from);
        for k in 0..K {
            ends[k] = 0.5 * strength * (ends[k] + there[k]);
        }
        ends
    }

    /// Adds p⁺ and p⁻ of some components of row i.
    #[inline(always)]
    fn add_split<const K: usize>(
        self,
        penalty: &impl EdgeOnHost,
        i: usize,
        from: usize,
        [positive, negative]: [&mut [f64]; 2],
    ) {
        let own = some::<K>(self.w.row(i), from);
        let (mut p, mut n) = (some::<K>(positive, from), some::<K>(negative, from));
        for (j, strength) in penalty.edges_from(i, self.w.count()) {
            let other = some::<K>(self.w.row(j), from);
            let edge = self.edge::<K>([i, j], strength, from);
            for k in 0..K {
                let [of_positive, of_negative] = penalty.parts(own[k], other[k]);
                p[k] += edge[k] * of_positive;
                n[k] += edge[k] * of_negative;
            }
        }
        positive[from..from + K].copy_from_slice(&p);
        negative[from..from + K].copy_from_slice(&n);
    }

    /// Adds the cotangent of some components of row i, and writes those of their weights.
    #[inline(always)]
    fn add_cotangent<const K: usize>(
        self,
        penalty: &impl EdgeOnHost,
        i: usize,
        from: usize,
        [factor, weights]: [&mut [f64]; 2],
    ) {
        let [of_positive, of_negative] = self.parts;
        let own = some::<K>(self.w.row(i), from);
        let positive = some::<K>(of_positive.row(i), from);
        let negative = some::<K>(of_negative.row(i), from);
        let (mut of_row, mut of_weights) = (some::<K>(factor, from), [0.0; K]);
        for (j, strength) in penalty.edges_from(i, self.w.count()) {
            let other = some::<K>(self.w.row(j), from);
            let positive_there = some::<K>(of_positive.row(j), from);
            let negative_there = some::<K>(of_negative.row(j), from);
            let edge = self.edge::<K>([i, j], strength, from);
            for k in 0..K {
                let of_own = [positive[k], negative[k]];
                let of_other = [positive_there[k], negative_there[k]];
                let [of_end, of_weight] = penalty.cotangents([own[k], other[k]], of_own, of_other);
                of_row[k] += edge[k] * of_end;
                // Half of the weight's cotangent, because both ends share it.
                of_weights[k] += 0.5 * strength * of_weight;
            }
        }
        factor[from..from + K].copy_from_slice(&of_row);
        weights[from..from + K].copy_from_slice(&of_weights);
    }
}

/// A loop over some rows. It is a type, so that it is compiled for each kind of processor.
macro_rules! over_rows {
    ($name:ident, $method:ident) => {
        struct $name<'a, E> {
            penalty: &'a E,
            given: Given<'a>,
            rows: Range<usize>,
            out: [&'a mut [f64]; 2],
        }

        impl<E: EdgeOnHost> WithSimd for $name<'_, E> {
            type Output = ();

            #[inline(always)]
            fn with_simd<S: Simd>(self, _simd: S) {
                let (rank, [first, second]) = (self.given.w.rank, self.out);
                let slots = first.chunks_exact_mut(rank);
                let slots = slots.zip(second.chunks_exact_mut(rank));
                for (i, (first, second)) in self.rows.zip(slots) {
                    let mut from = 0;
                    while from + SIDE <= rank {
                        self.given
                            .$method::<SIDE>(self.penalty, i, from, [first, second]);
                        from += SIDE;
                    }
                    if from + HALF <= rank {
                        self.given
                            .$method::<HALF>(self.penalty, i, from, [first, second]);
                        from += HALF;
                    }
                    while from < rank {
                        self.given
                            .$method::<1>(self.penalty, i, from, [first, second]);
                        from += 1;
                    }
                }
            }
        }
    };
}

over_rows!(AddSplit, add_split);
over_rows!(AddCotangent, add_cotangent);

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
        Arch::new().dispatch(AddSplit {
            penalty: self,
            given: Given {
                w,
                weight,
                // (They have none.)
                parts: [Rows {
                    values: &[],
                    rank: w.rank,
                }; 2],
            },
            rows,
            out: [positive, negative],
        });
    }

    fn add_cotangent(
        &self,
        w: Rows<'_>,
        weight: &Spread,
        parts: [Rows<'_>; 2],
        rows: Range<usize>,
        factor: &mut [f64],
        weights: &mut [f64],
    ) {
        Arch::new().dispatch(AddCotangent {
            penalty: self,
            given: Given { w, weight, parts },
            rows,
            out: [factor, weights],
        });
    }
}

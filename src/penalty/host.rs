//! Penalties on plain numbers.
//!
//! On a small factor the overhead of a tensor operation exceeds its arithmetic. A penalty with this
//! form avoids it in adjoint mode, in runs without derivatives and in objectives. In 64 bits, up to
//! two penalties of a factor that couple rows avoid it in reverse mode too. Forward mode and the
//! reference use tensor operations.

use std::ops::Range;

use rayon::prelude::*;

use crate::numerics::rows_in_task;

/// A factor, or a matrix of its shape: r numbers for each row.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The numbers, row by row.
    pub values: &'a [f64],
    /// r.
    pub rank: usize,
}

impl<'a> Rows<'a> {
    /// Row i.
    #[inline]
    pub fn row(self, i: usize) -> &'a [f64] {
        &self.values[i * self.rank..(i + 1) * self.rank]
    }

    /// The number of rows.
    pub fn count(self) -> usize {
        self.values.len() / self.rank
    }
}

/// Weights that broadcast to a factor.
///
/// # Shapes
/// n×r, n×1, 1×r or 1×1.
#[derive(Debug, Clone)]
pub struct Spread {
    values: Vec<f64>,
    shape: [usize; 2],
}

impl Spread {
    /// Weights from numbers, row by row.
    ///
    /// # Panics
    /// If their number does not match the shape.
    pub fn new(values: Vec<f64>, shape: [usize; 2]) -> Self {
        assert_eq!(
            values.len(),
            shape[0] * shape[1],
            "a number for each weight"
        );
        Self { values, shape }
    }

    /// Rows and columns.
    pub(crate) fn shape(&self) -> [usize; 2] {
        self.shape
    }

    /// The r weights of a row. If the row has one weight, it is copied into `room`, which has r numbers.
    #[inline]
    pub fn row<'a>(&'a self, i: usize, room: &'a mut [f64]) -> &'a [f64] {
        let [rows, columns] = self.shape;
        let i = if rows == 1 { 0 } else { i };
        let line = &self.values[i * columns..(i + 1) * columns];
        if columns == room.len() {
            return line;
        }
        room.fill(line[0]);
        room
    }

    /// The weighted sum of a function of the entries of some rows.
    pub(super) fn sum(&self, w: Rows<'_>, rows: Range<usize>, of: impl Fn(f64) -> f64) -> f64 {
        let mut room = vec![0.0; w.rank];
        let of_rows = rows.map(|i| {
            let weighted = self.row(i, &mut room).iter().zip(w.row(i));
            weighted.map(|(weight, w)| weight * of(*w)).sum::<f64>()
        });
        of_rows.sum()
    }

    /// The weights of some components of a row.
    #[inline(always)]
    pub(super) fn some<const K: usize>(&self, i: usize, from: usize) -> [f64; K] {
        let [rows, columns] = self.shape;
        let start = if rows == 1 { 0 } else { i * columns };
        if columns == 1 {
            return [self.values[start]; K];
        }
        let row = self.values[start + from..].first_chunk();
        *row.expect("a weight for each component")
    }
}

/// The hand-written parts of a penalty on some rows.
///
/// The range depends on the number of threads, so the numbers of a row must not depend on where its
/// range begins or ends.
///
/// # Shapes
/// The output has r numbers for each row of the range. Inputs have all rows.
pub trait HostPenalty: Sync {
    /// `Σ λ_i r_i` over the rows of the range. Each end of an edge has half of it.
    fn weighted_value(&self, w: Rows<'_>, weight: &Spread, rows: Range<usize>) -> f64;

    /// Adds `λ p⁺` and `λ p⁻`.
    fn add_split(
        &self,
        w: Rows<'_>,
        weight: &Spread,
        rows: Range<usize>,
        positive: &mut [f64],
        negative: &mut [f64],
    );

    /// For cotangents of these parts, adds the cotangent of w and writes that of each entry's
    /// weight. (`weights` may hold anything before.)
    fn add_cotangent(
        &self,
        w: Rows<'_>,
        weight: &Spread,
        parts: [Rows<'_>; 2],
        rows: Range<usize>,
        factor: &mut [f64],
        weights: &mut [f64],
    );
}

/// `λ p⁺` and `λ p⁻` of all rows.
pub(super) fn split(penalty: &dyn HostPenalty, w: Rows<'_>, weight: &Spread) -> [Vec<f64>; 2] {
    let rows = rows_in_task(w.rank);
    let [mut positive, mut negative] = [(); 2].map(|()| vec![0.0; w.values.len()]);
    let tasks = positive
        .par_chunks_mut(rows * w.rank)
        .zip(negative.par_chunks_mut(rows * w.rank));
    tasks.enumerate().for_each(|(task, (positive, negative))| {
        let range = task * rows..task * rows + positive.len() / w.rank;
        penalty.add_split(w, weight, range, positive, negative);
    });
    [positive, negative]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use burn::tensor::Tensor;

    use super::*;
    use crate::device::Device;
    use crate::numerics::{Precision, add_summed, to_host};
    use crate::penalty::{Graph, Penalty, Smooth, Steps};

    const ROWS: usize = 7;

    fn tensor(shape: [usize; 2], seed: usize) -> Tensor<2> {
        let number = |at: usize| ((at * 7919 + seed * 104_729) % 1013) as f64 / 1013.0 + 0.01;
        let values = (0..shape[0] * shape[1]).map(number).collect();
        Device::default().tensor(values, shape, Precision::F64)
    }

    /// Both parts by tensor operations, and the derivatives of a sum with fixed factors in w and in
    /// the weight.
    fn by_tensors(penalty: &dyn Penalty, rank: usize, weight: [usize; 2]) -> [Vec<f64>; 4] {
        let leaf = |shape, seed| tensor(shape, seed).autodiff().require_grad();
        let (w, weight) = (leaf([ROWS, rank], 1), leaf(weight, 2));
        let parts = penalty.coupling().unwrap().weighted_split(&w, &weight);
        let [first, second] = [3, 4].map(|seed| tensor([ROWS, rank], seed).autodiff());
        let sum = (parts.positive.clone() * first + parts.negative.clone() * second).sum();
        let gradients = sum.backward();
        let gradient = |leaf: &Tensor<2>| to_host(&leaf.grad(&gradients).unwrap());
        let [positive, negative] = [parts.positive, parts.negative].map(|part| to_host(&part));
        [positive, negative, gradient(&w), gradient(&weight)]
    }

    /// The same by loops.
    fn by_loops(penalty: &dyn Penalty, rank: usize, weight: [usize; 2]) -> [Vec<f64>; 4] {
        let loops = penalty.on_host().unwrap();
        let numbers = |seed| to_host(&tensor([ROWS, rank], seed));
        let [w, first, second] = [1, 3, 4].map(numbers);
        let [w, first, second] = [&w, &first, &second].map(|values| Rows { values, rank });
        let weight = Spread::new(to_host(&tensor(weight, 2)), weight);
        let [positive, negative] = split(loops, w, &weight);
        let [mut of_w, mut of_weights] = [(); 2].map(|()| vec![0.0; ROWS * rank]);
        let parts = [first, second];
        // (In two pieces, like tasks.)
        for range in [0..3, 3..ROWS] {
            let place = range.start * rank..range.end * rank;
            let (of_w, of_weights) = (&mut of_w[place.clone()], &mut of_weights[place]);
            loops.add_cotangent(w, &weight, parts, range, of_w, of_weights);
        }
        let shape = weight.shape();
        let mut of_weight = vec![0.0; shape[0] * shape[1]];
        add_summed(&of_weights, rank, shape, &mut of_weight);
        [positive, negative, of_w, of_weight]
    }

    /// The largest difference, relative to the largest number of each.
    fn apart(a: &[Vec<f64>; 4], b: &[Vec<f64>; 4]) -> f64 {
        let relative = |(a, b): (&Vec<f64>, &Vec<f64>)| {
            assert_eq!(a.len(), b.len());
            let largest = a.iter().fold(0.0, |largest: f64, a| largest.max(a.abs()));
            let pairs = a.iter().zip(b).map(|(a, b)| (a - b).abs());
            pairs.fold(0.0, f64::max) / largest
        };
        a.iter().zip(b).map(relative).fold(0.0, f64::max)
    }

    #[test]
    fn loops_along_edges_are_like_tensor_operations_and_their_derivatives() {
        let ring = (0..ROWS).map(|i| (i, (i + 1) % ROWS, 0.5 + i as f64));
        let graph = Graph::from_edges(ROWS, ring).unwrap();
        let penalties: [Arc<dyn Penalty>; 3] = [
            Arc::new(Smooth),
            Arc::new(Steps::along(graph.clone())),
            Arc::new(graph),
        ];
        // (Components are computed eight, four and one at a time.)
        for (penalty, rank) in penalties
            .iter()
            .flat_map(|penalty| [3, 8, 13].map(|rank| (penalty, rank)))
        {
            for shape in [[1, 1], [1, rank], [ROWS, 1], [ROWS, rank]] {
                let expected = by_tensors(penalty.as_ref(), rank, shape);
                let mut found = by_loops(penalty.as_ref(), rank, shape);
                let name = penalty.name();
                assert!(apart(&expected, &found) < 1e-14, "{name} {rank} {shape:?}");
                // A control: a change is noticed.
                found[3][0] *= 1.001;
                assert!(apart(&expected, &found) > 1e-6, "{name} {rank} {shape:?}");
            }
        }
    }
}

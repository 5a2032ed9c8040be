//! The graph of nearest neighbours.

use rayon::prelude::*;

use super::Graph;
use crate::error::{Error, Result};
use crate::factors::Side;
use crate::problem::Problem;

impl Graph {
    /// Ties every row of X (for H: every column) to the `count` others that are most alike: by
    /// the cosine between them, over the entries that the updates see in both. An edge is there
    /// if either of its ends asks for it. It takes a multiplication for each pair of rows and
    /// column.
    ///
    /// # Errors
    /// [`Error::Setting`] for a count that is not between 1 and the number of other rows.
    pub fn nearest(problem: &Problem, side: Side, count: usize) -> Result<Self> {
        let [n, m] = problem.shape();
        let (lines, length) = match side {
            Side::W => (n, m),
            Side::H => (m, n),
        };
        if count == 0 || count >= lines {
            return Err(Error::Setting {
                setting: "the number of nearest neighbours",
                value: count as f64,
                range: "at least 1 and fewer than there are rows (of H: columns)",
            });
        }
        let index = |line: usize, place: usize| match side {
            Side::W => (line, place),
            Side::H => (place, line),
        };
        // x where it is seen, and whether it is, line by line.
        let weight = |at| problem.mask().map_or(1.0, |mask| mask[at]);
        let places = || (0..lines).flat_map(|line| (0..length).map(move |place| (line, place)));
        let seen: Vec<f64> = places()
            .map(|(line, place)| f64::from(u8::from(weight(index(line, place)) > 0.0)))
            .collect();
        let values: Vec<f64> = places()
            .zip(&seen)
            .map(|((line, place), seen)| problem.x()[index(line, place)] * seen)
            .collect();
        let of = |all: &[f64], line: usize| all[line * length..(line + 1) * length].to_vec();
        let edges = (0..lines).into_par_iter().flat_map_iter(|i| {
            let (x, here) = (of(&values, i), of(&seen, i));
            let others = (0..lines).filter(|j| *j != i).map(|j| {
                let range = j * length..(j + 1) * length;
                let (mut product, mut own, mut other) = (0.0, 0.0, 0.0);
                let there = values[range.clone()].iter().zip(&seen[range]);
                for ((x, here), (z, there)) in x.iter().zip(&here).zip(there) {
                    product += x * z;
                    own += x * x * there;
                    other += z * z * here;
                }
                let size = (own * other).sqrt();
                let cosine = if size > 0.0 { product / size } else { 0.0 };
                (j, cosine)
            });
            let mut others: Vec<(usize, f64)> = others.collect();
            // Equal ones in their order, so that the graph does not depend on the machine.
            others.sort_by(|(i, a), (j, b)| b.total_cmp(a).then(i.cmp(j)));
            others.truncate(count);
            others.into_iter().map(move |(j, _)| (i.min(j), i.max(j)))
        });
        let mut edges: Vec<(usize, usize)> = edges.collect();
        edges.sort_unstable();
        edges.dedup();
        Self::from_edges(lines, edges.into_iter().map(|(i, j)| (i, j, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::Precision;
    use ndarray::array;

    #[test]
    fn rows_that_point_the_same_way_are_neighbours_whatever_their_size() {
        let x = array![
            [1.0, 2.0, 0.0],
            [10.0, 19.0, 0.5],
            [0.0, 0.1, 3.0],
            [0.2, 0.0, 7.0]
        ];
        let problem = Problem::new(&x, Precision::F64).unwrap();
        let graph = Graph::nearest(&problem, Side::W, 1).unwrap();
        let edges: Vec<_> = graph.edges().collect();
        assert_eq!(edges, [(0, 1, 1.0), (2, 3, 1.0)]);
        let columns = Graph::nearest(&problem, Side::H, 1).unwrap();
        assert_eq!(columns.vertices(), 3);
        // What is not seen does not count: row 2 is then like row 0.
        let mask = array![
            [1.0, 1.0, 1.0],
            [1.0, 1.0, 0.0],
            [1.0, 1.0, 0.0],
            [1.0, 0.0, 1.0]
        ];
        let masked = Problem::masked(&x, &mask, Precision::F64).unwrap();
        let graph = Graph::nearest(&masked, Side::W, 1).unwrap();
        assert!(graph.edges().any(|(i, j, _)| j == 2 && i < 2));
        for count in [0, 4] {
            let found = Graph::nearest(&problem, Side::W, count);
            assert!(matches!(found, Err(Error::Setting { .. })));
        }
    }
}

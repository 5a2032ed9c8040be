//! The graph of nearest neighbours.

use rayon::prelude::*;

use super::Graph;
use crate::error::{Error, Result};
use crate::factors::Side;
use crate::problem::{Problem, Weights};
use crate::sparse::{Matrix, SparseMatrix};

impl Graph {
    /// Connects every row of X (for H: every column) to the `count` others that are most alike, by
    /// the cosine over the entries that the updates see in both. There is an edge if either row is
    /// among the neighbours of the other. The cost is a multiplication for each pair of rows and
    /// each column.
    ///
    /// # Errors
    /// [`Error::Setting`] for a count that is not between 1 and the number of other rows.
    pub fn nearest(problem: &Problem, side: Side, count: usize) -> Result<Self> {
        let [n, m] = problem.shape();
        let (lines, length) = match side {
            Side::W => (n, m),
            Side::H => (m, n),
        };
        Error::require(
            (1..lines).contains(&count),
            "the number of nearest neighbours",
            count as f64,
            "at least 1 and fewer than there are rows (of H: columns)",
        )?;
        if let Matrix::Sparse(x) = problem.x() {
            let edges = sparse_edges(problem, x, side, count);
            return Self::of_neighbours(lines, edges);
        }
        let index = |line: usize, place: usize| match side {
            Side::W => (line, place),
            Side::H => (place, line),
        };
        // For each line: x of the entries that the updates see, and a mask of these entries.
        let weight = |at| problem.mask().map_or(1.0, |mask| mask[at]);
        let places = || (0..lines).flat_map(|line| (0..length).map(move |place| (line, place)));
        let seen: Vec<f64> = places()
            .map(|(line, place)| f64::from(u8::from(weight(index(line, place)) > 0.0)))
            .collect();
        let values: Vec<f64> = places()
            .zip(&seen)
            .map(|((line, place), seen)| {
                let (row, column) = index(line, place);
                problem.x().entry(row, column) * seen
            })
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
                let size: f64 = (own * other).sqrt();
                let cosine = if size > 0.0 { product / size } else { 0.0 };
                (j, cosine)
            });
            nearest_of(i, others.collect(), count)
        });
        let edges = once_each(edges.collect());
        Self::of_neighbours(lines, edges)
    }

    fn of_neighbours(lines: usize, edges: Vec<(usize, usize)>) -> Result<Self> {
        let edges = edges.into_iter().map(|(i, j)| (i, j, 1.0));
        let mut graph = Self::from_edges(lines, edges)?;
        graph.reads_data = true;
        Ok(graph)
    }
}

/// The edges from a line to those that are most alike.
fn nearest_of(line: usize, mut others: Vec<(usize, f64)>, count: usize) -> Vec<(usize, usize)> {
    // Ties are broken by index, so that the graph does not depend on the machine.
    let order = |(i, a): &(usize, f64), (j, b): &(usize, f64)| b.total_cmp(a).then(i.cmp(j));
    if others.len() > count {
        others.select_nth_unstable_by(count - 1, order);
        others.truncate(count);
    }
    let edges = others.into_iter().map(|(j, _)| (line.min(j), line.max(j)));
    edges.collect()
}

fn once_each(mut edges: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// The same for a sparse X. Only entries that both lines store are multiplied.
fn sparse_edges(
    problem: &Problem,
    x: &SparseMatrix,
    side: Side,
    count: usize,
) -> Vec<(usize, usize)> {
    let turned = |matrix: SparseMatrix| match side {
        Side::W => matrix,
        Side::H => matrix.transposed(),
    };
    let weight = |row, column| problem.mask().map_or(1.0, |mask| mask[(row, column)]);
    let seen = turned(x.filter(|row, column, _| weight(row, column) > 0.0));
    let by_place = seen.transposed();
    let [lines, length] = seen.shape();
    // If zeros are data, the entries that are not seen are listed; otherwise those that are seen.
    let (zeros_count, gaps) = match problem.mask() {
        Some(Weights::Listed { at, elsewhere }) => {
            (*elsewhere > 0.0, turned(at.filter(|_, _, of| of == 0.0)))
        }
        _ => (
            true,
            SparseMatrix::from_rows(length, (0..lines).map(|_| Vec::new())),
        ),
    };
    let gaps_by_place = gaps.transposed();
    let squares = |line: usize| seen.row(line).1.iter().map(|x| x * x).sum::<f64>();
    let sizes: Vec<f64> = (0..lines).map(squares).collect();
    let edges = (0..lines).into_par_iter().flat_map_iter(|line| {
        let mut product = vec![0.0; lines];
        // Sums of squares of either line over the entries that are seen in both.
        let (mut own, mut other) = if zeros_count {
            (vec![sizes[line]; lines], sizes.clone())
        } else {
            (vec![0.0; lines], vec![0.0; lines])
        };
        let (places, values) = seen.row(line);
        for (place, x) in places.iter().zip(values) {
            let (there, others) = by_place.row(*place as usize);
            for (j, z) in there.iter().zip(others) {
                let j = *j as usize;
                product[j] += x * z;
                if !zeros_count {
                    own[j] += x * x;
                    other[j] += z * z;
                }
            }
            if zeros_count {
                for j in gaps_by_place.row(*place as usize).0 {
                    own[*j as usize] -= x * x;
                }
            }
        }
        if zeros_count {
            for place in gaps.row(line).0 {
                let (there, others) = by_place.row(*place as usize);
                for (j, z) in there.iter().zip(others) {
                    other[*j as usize] -= z * z;
                }
            }
        }
        let cosine = |j: usize| {
            let size: f64 = (own[j] * other[j]).max(0.0).sqrt();
            if size > 0.0 { product[j] / size } else { 0.0 }
        };
        let others = (0..lines).filter(|j| *j != line).map(|j| (j, cosine(j)));
        nearest_of(line, others.collect(), count)
    });
    once_each(edges.collect())
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
        // Unseen entries do not count, so row 2 is like row 0.
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

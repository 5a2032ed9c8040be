//! The graph penalty: neighbours in a graph should be alike.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::edges::{Along, Edges, POWERS, along_edges};
use super::{Coupling, HostPenalty, Penalty, constant_like};
use crate::error::{Error, Result};
use crate::split::{MajoriserPowers, Split};

/// Squared differences along the edges of a graph whose vertices are the rows of the factor, as in
/// graph-regularised NMF.
///
/// $$ \sum_i r_i(W) = \frac12 \sum_{\text{edges } ij} a_{ij} \sum_k (w_{i,k} - w_{j,k})^2 $$
///
/// Half of every edge belongs to each of its two rows. [`Smooth`](super::Smooth) is the special
/// case of a chain. Rows are coupled, so modes that treat rows as independent cannot be used.
///
/// ```
/// use altbi::penalty::Graph;
/// // The pixels of pictures of 28 by 23, row by row.
/// let pixels = Graph::grid(28, 23);
/// assert_eq!(pixels.vertices(), 644);
/// ```
#[derive(Clone)]
pub struct Graph {
    name: String,
    adjacency: Arc<Adjacency>,
    /// True if it was made from data.
    pub(super) reads_data: bool,
}

/// The neighbours of each vertex, one vertex after another.
struct Adjacency {
    starts: Vec<usize>,
    neighbours: Vec<(usize, f64)>,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, vertices, edges) = (&self.name, self.vertices(), self.edges().count());
        write!(formatter, "{name}: {vertices} vertices, {edges} edges")
    }
}

impl Graph {
    /// A graph from edges (i, j, strength) between vertices that are counted from 0. If an edge is
    /// given twice, in either direction, its strengths are added. A loop has no effect.
    ///
    /// # Errors
    /// [`Error::Edge`] for a vertex that does not exist, or a strength that is negative or not
    /// finite.
    pub fn from_edges(
        vertices: usize,
        edges: impl IntoIterator<Item = (usize, usize, f64)>,
    ) -> Result<Self> {
        let mut both_ways = Vec::new();
        for (i, j, strength) in edges {
            if i >= vertices || j >= vertices || !(strength >= 0.0 && strength.is_finite()) {
                return Err(Error::Edge {
                    from: i,
                    to: j,
                    strength,
                    vertices,
                });
            }
            if i != j && strength > 0.0 {
                both_ways.push((i, j, strength));
                both_ways.push((j, i, strength));
            }
        }
        both_ways.sort_by_key(|(i, j, _)| (*i, *j));
        both_ways.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });
        let mut starts = vec![0; vertices + 1];
        for (i, _, _) in &both_ways {
            starts[i + 1] += 1;
        }
        for vertex in 0..vertices {
            starts[vertex + 1] += starts[vertex];
        }
        let neighbours = both_ways.into_iter().map(|(_, j, strength)| (j, strength));
        Ok(Self {
            name: "graph".into(),
            adjacency: Arc::new(Adjacency {
                starts,
                neighbours: neighbours.collect(),
            }),
            reads_data: false,
        })
    }

    /// The graph of a picture's pixels, row by row. Each pixel is a neighbour of those beside,
    /// above and below it.
    pub fn grid(height: usize, width: usize) -> Self {
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (y, x)));
        let edges = pixels.flat_map(|(y, x)| {
            let here = y * width + x;
            let right = (x + 1 < width).then(|| (here, here + 1, 1.0));
            let below = (y + 1 < height).then(|| (here, here + width, 1.0));
            right.into_iter().chain(below)
        });
        let graph = Self::from_edges(height * width, edges);
        graph.expect("its vertices exist")
    }

    /// The number of vertices.
    pub fn vertices(&self) -> usize {
        self.adjacency.starts.len() - 1
    }

    /// Every edge once, (i, j, strength) with i < j.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let vertices = 0..self.vertices();
        vertices.flat_map(|i| {
            let later = self.adjacency.of(i).filter(move |(j, _)| *j > i);
            later.map(move |(j, strength)| (i, j, strength))
        })
    }
}

impl Adjacency {
    fn of(&self, i: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.starts[i]..self.starts[i + 1];
        self.neighbours[range].iter().copied()
    }
}

impl Along for Graph {
    fn edges_of(&self, _w: &Tensor<2>) -> Edges {
        Edges::new(self.edges())
    }

    #[inline(always)]
    fn neighbours(&self, i: usize, _count: usize) -> impl Iterator<Item = (usize, f64)> {
        self.adjacency.of(i)
    }
}

impl Penalty for Graph {
    fn name(&self) -> String {
        self.name.clone()
    }

    along_edges!(self, w => self.edges_of(w).shares(w));

    fn reads_data(&self) -> bool {
        self.reads_data
    }

    fn rows(&self) -> Option<usize> {
        Some(self.vertices())
    }

    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        Some(POWERS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A square with a diagonal, one of its edges twice as strong.
    const EDGES: [(usize, usize, f64); 5] = [
        (0, 1, 1.0),
        (1, 2, 2.0),
        (2, 3, 1.0),
        (3, 0, 1.0),
        (0, 2, 0.5),
    ];

    #[test]
    fn keeps_the_rules() {
        let graph = Graph::from_edges(4, EDGES).unwrap();
        super::super::tests::verify(&graph, |rows, i| {
            let of_vertex = EDGES.iter().filter(|(a, b, _)| *a == i || *b == i);
            let shares = of_vertex.map(|(a, b, strength)| {
                let squares = (0..3).map(|k| (rows[*a][k] - rows[*b][k]).powi(2));
                strength * squares.sum::<f64>() / 4.0
            });
            shares.sum()
        });
    }

    #[test]
    fn grids_tie_pixels_beside_and_below() {
        let edges: Vec<_> = Graph::grid(2, 3).edges().collect();
        let pairs = [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)];
        assert_eq!(edges, pairs.map(|(i, j)| (i, j, 1.0)));
        assert_eq!(Graph::grid(1, 1).edges().count(), 0);
    }

    #[test]
    fn doubled_edges_add_up_and_wrong_ones_are_refused() {
        let graph = Graph::from_edges(3, [(0, 1, 1.0), (1, 0, 0.5), (2, 2, 9.0)]).unwrap();
        assert_eq!(graph.edges().collect::<Vec<_>>(), [(0, 1, 1.5)]);
        for (from, to, strength) in [(0, 3, 1.0), (0, 1, -1.0), (0, 1, f64::NAN)] {
            let found = Graph::from_edges(3, [(from, to, strength)]);
            assert!(matches!(found, Err(Error::Edge { vertices: 3, .. })));
        }
    }
}

//! Flags for the neighbours of rows and columns.

use std::path::Path;
use std::str::FromStr;

use crate::data::read_edges;
use crate::penalty::Graph;
use crate::report::Labels;
use crate::{Error, Problem, Result, Side};
use clap::Args;

/// How a graph of nearest neighbours begins. Everything else is a file.
pub const NEAREST: &str = "knn:";

/// `--graph`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphArgument {
    /// The nearest neighbours of each row.
    Nearest(usize),
    /// Edges from a file.
    File(String),
}

impl FromStr for GraphArgument {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some(count) = text.strip_prefix(NEAREST) else {
            return Ok(Self::File(text.into()));
        };
        let count = count.parse().map_err(|_| Error::UnknownName {
            kind: "graph",
            name: text.into(),
            known: "a file, knn:<number>",
        })?;
        Ok(Self::Nearest(count))
    }
}

/// `--shape-w`, `--shape-h`: height and width of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    height: usize,
    width: usize,
}

impl FromStr for Shape {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let sides = text.split_once(['x', '×']);
        let sides = sides.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        match sides {
            Some((height, width)) if height > 0 && width > 0 => Ok(Self { height, width }),
            _ => Err(Error::UnknownName {
                kind: "shape",
                name: text.into(),
                known: "<height>x<width>, such as 28x23",
            }),
        }
    }
}

/// The neighbours of rows and columns.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = super::headings::PENALTIES)]
pub struct GraphArguments {
    /// Graph of the penalty graph (or steps) on W: a file (edge list or Matrix Market), or knn:<k>,
    /// the k nearest neighbours of each row of X, by the data that the updates see
    #[arg(long, value_name = "FILE")]
    pub graph: Option<GraphArgument>,
    /// The same on H, for the columns of X
    #[arg(long, value_name = "FILE")]
    pub graph_h: Option<GraphArgument>,
    /// The rows of X are the pixels of a picture, row by row; the report shows components of W as
    /// pictures, and the penalties graph and steps make neighbouring pixels alike
    #[arg(long, value_name = "HEIGHTxWIDTH")]
    pub shape_w: Option<Shape>,
    /// The same for the columns of X and components of H: each row of X is a picture
    #[arg(long, value_name = "HEIGHTxWIDTH", visible_alias = "image-shape")]
    pub shape_h: Option<Shape>,
}

impl GraphArguments {
    /// The files among these flags, with the names of the flags.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let graphs = [("graph", &self.graph), ("graph-h", &self.graph_h)];
        graphs.into_iter().filter_map(|(flag, graph)| match graph {
            Some(GraphArgument::File(file)) => Some((flag, file)),
            _ => None,
        })
    }

    /// Refuses pictures of another size than the data.
    pub fn check(&self, problem: &Problem) -> Result<()> {
        let [n, m] = problem.whole_shape();
        for (shape, lines, found) in [(self.shape_w, "rows", n), (self.shape_h, "columns", m)] {
            if let Some(Shape { height, width }) = shape
                && height.checked_mul(width) != Some(found)
            {
                return Err(Error::PictureShape {
                    height,
                    width,
                    lines,
                    found,
                });
            }
        }
        Ok(())
    }

    /// Returns true if there is a graph of a side's rows.
    pub fn has(&self, side: Side) -> bool {
        match side {
            Side::W => self.graph.is_some() || self.shape_w.is_some(),
            Side::H => self.graph_h.is_some() || self.shape_h.is_some(),
        }
    }

    /// The graph of a side's rows.
    pub fn of(&self, side: Side, problem: &Problem, labels: Option<&Labels>) -> Result<Graph> {
        let [n, m] = problem.whole_shape();
        let (graph, shape, lines, names) = match side {
            Side::W => (&self.graph, self.shape_w, n, labels.map(|of| &of.rows)),
            Side::H => (&self.graph_h, self.shape_h, m, labels.map(|of| &of.columns)),
        };
        let names = names.and_then(|names| names.as_deref());
        match (graph, shape) {
            (Some(GraphArgument::Nearest(_)), _) if problem.share().is_split() => {
                Err(Error::NotSplit {
                    what: "a graph of nearest neighbours".into(),
                    processes: problem.processes().size(),
                    reason: "it compares all rows or whole columns; give the graph as a file",
                })
            }
            (Some(GraphArgument::Nearest(count)), _) => Graph::nearest(problem, side, *count),
            (Some(GraphArgument::File(file)), _) => {
                Graph::from_edges(lines, read_edges(Path::new(file), lines, names)?)
            }
            (None, Some(Shape { height, width })) => Ok(Graph::grid(height, width)),
            (None, None) => Err(Error::Conflict {
                first: "the penalty graph",
                second: "no graph",
                reason: "--graph or --shape-w gives the graph of W, --graph-h or --shape-h that of H",
            }),
        }
    }
}

//! Flags for the penalties.

use std::sync::Arc;

use crate::penalty::{self, Graph, Penalty, Steps};
use crate::report::Labels;
use crate::words::words;
use crate::{BunchOver, Error, PenaltyTerm, Problem, Result, Side};
use clap::Args;

use super::arguments::words;
use super::graphs::GraphArguments;

/// The penalty that needs a graph.
const GRAPH: &str = "graph";
/// The penalty that can have one instead of the order of the rows.
const STEPS: &str = "steps";

/// A built-in penalty. (The graph of `graph` is added later.)
fn by_name(name: &str) -> Result<Arc<dyn Penalty>> {
    if name == GRAPH {
        return Ok(Arc::new(Graph::from_edges(0, [])?));
    }
    penalty::by_name(name).map_err(|error| match error {
        Error::UnknownName { kind, name, .. } => Error::UnknownName {
            kind,
            name,
            known: "l1, l2, group, l21, hoyer, smooth, steps, graph, none",
        },
        error => error,
    })
}

/// Checks the names of a sum of penalties, such as smooth+l1.
pub fn penalty_names(names: &str) -> Result<String> {
    for name in names.split('+') {
        by_name(name)?;
    }
    Ok(names.into())
}

/// The penalties on the factors.
#[derive(Debug, Args)]
#[command(next_help_heading = super::headings::PENALTIES)]
pub struct PenaltyArguments {
    /// l1, l2, group, l21, hoyer, smooth, steps, graph, or none; several with +, each with a λ of
    /// its own: smooth+l1 (scikit-learn: l1_ratio, 1 for l1 and 0 for l2)
    #[arg(long, default_value = "l1", value_parser = penalty_names)]
    pub penalty: String,
    /// The penalised factor (scikit-learn: w by alpha_W, h by alpha_H)
    #[arg(long, default_value = "w", value_parser = words::<Penalize>())]
    pub penalize: Penalize,
    /// Penalty on H [default: as on W]
    #[arg(long, value_name = "PENALTY", value_parser = penalty_names)]
    pub penalty_h: Option<String>,
    #[command(flatten)]
    pub graphs: GraphArguments,
}

/// `--penalize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Penalize {
    /// W.
    W,
    /// H.
    H,
    /// Both.
    Both,
}

words!(Penalize, "penalised factor" { W = "w", H = "h", Both = "both" });

impl Penalize {
    /// The factors that a bunch updates by default.
    pub fn over(self) -> BunchOver {
        match self {
            Self::Both => BunchOver::Both,
            Self::W | Self::H => BunchOver::One,
        }
    }
}

impl PenaltyArguments {
    /// The penalties for these data, each with a tuned λ. Held-out data must be removed before,
    /// because neighbours are computed from the rest.
    pub fn terms_for(
        &self,
        problem: &Problem,
        labels: Option<&Labels>,
    ) -> Result<Vec<(Side, PenaltyTerm)>> {
        self.graphs.check(problem)?;
        let mut terms = self.terms()?;
        for (side, flag, given) in [
            (Side::W, "--graph", &self.graphs.graph),
            (Side::H, "--graph-h", &self.graphs.graph_h),
        ] {
            let uses = |(on, term): &(Side, PenaltyTerm)| {
                *on == side && [GRAPH, STEPS].contains(&term.penalty.name().as_str())
            };
            if given.is_some() && !terms.iter().any(uses) {
                return Err(Error::Conflict {
                    first: flag,
                    second: "penalties without graph",
                    reason: "only the penalties graph and steps use it: --penalty graph for W, \
                             --penalty-h graph for H",
                });
            }
        }
        for (side, term) in &mut terms {
            let graph = || self.graphs.of(*side, problem, labels);
            match term.penalty.name().as_str() {
                GRAPH => *term = PenaltyTerm::tuned(graph()?),
                STEPS if self.graphs.has(*side) => {
                    *term = PenaltyTerm::tuned(Steps::along(graph()?));
                }
                _ => {}
            }
        }
        Ok(terms)
    }

    /// The penalties, each with a tuned λ. `graph` has no graph yet.
    pub fn terms(&self) -> Result<Vec<(Side, PenaltyTerm)>> {
        if self.penalize == Penalize::W && self.penalty_h.is_some() {
            return Err(Error::Conflict {
                first: "--penalty-h",
                second: "--penalize w",
                reason: "H then has no penalty; use --penalize h or both",
            });
        }
        let of_h = self.penalty_h.as_ref().unwrap_or(&self.penalty);
        let sides: &[(Side, &String)] = match self.penalize {
            Penalize::W => &[(Side::W, &self.penalty)],
            Penalize::H => &[(Side::H, of_h)],
            Penalize::Both => &[(Side::W, &self.penalty), (Side::H, of_h)],
        };
        let mut terms = Vec::new();
        for (side, names) in sides {
            for name in names.split('+') {
                terms.push((*side, PenaltyTerm::tuned(by_name(name)?)));
            }
        }
        Ok(terms)
    }

    /// "smooth on W, l1 on H".
    pub fn describe(&self) -> String {
        let of_h = self.penalty_h.as_ref().unwrap_or(&self.penalty);
        match self.penalize {
            Penalize::W => format!("{} penalty", self.penalty),
            Penalize::H => format!("{of_h} penalty on H"),
            Penalize::Both => format!("penalties {} on W and {of_h} on H", self.penalty),
        }
    }
}

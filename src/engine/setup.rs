//! The task of an engine, and the engines that support it.

use std::sync::Arc;

use ndarray::{Array2, Axis};

use super::split_loops::SplitLoops;
use super::taped::Taped;
use super::{Engine, FusedEngine, Plan};
use crate::bunch::{Bunch, Data, Span};
use crate::criterion::Criterion;
use crate::error::{Error, Result};
use crate::factors::Side;
use crate::hypergradient::Mode;
use crate::lambda::{Layout, Scope, Units};
use crate::numerics::Precision;
use crate::problem::Problem;
use crate::update::Rule;

/// From this many products per update, the data term is as fast as the paper's loops.
const LARGE: usize = 1 << 21;

/// The parts of an iteration, apart from the data.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// The update of W.
    pub(crate) of_w: Rule,
    /// The update of Hᵀ.
    pub(crate) of_h: Rule,
    pub(crate) criterion: Arc<dyn Criterion>,
    /// The factors that a bunch updates.
    pub(crate) span: Span,
    /// T.
    pub(crate) length: usize,
    /// The layout of the column of weights.
    pub(crate) layout: Layout,
    pub(crate) units: Units,
    pub(crate) mode: Mode,
    /// True if λ is tuned, which needs hypergradients.
    pub(crate) tuned: bool,
    pub(crate) rank: usize,
    pub(crate) threads: usize,
}

impl Setup {
    /// The fastest engine: the paper's loops if they support every part, otherwise the fused data
    /// term.
    ///
    /// # Errors
    /// [`Error::EngineUnsupported`] with the part that cannot be fused.
    pub(crate) fn fused(&self, problem: &Problem) -> Result<Box<dyn Engine + Send>> {
        let loops = match self.loops(problem) {
            Some(engine) if !problem.share().is_split() => return Ok(engine),
            loops => loops,
        };
        if self.tuned && self.mode == Mode::FiniteDifferences {
            return Err(Error::EngineUnsupported {
                reason: format!("hypergradients by {}", self.mode),
            });
        }
        let data = Data::fused(
            problem,
            self.of_w.divergence.as_ref(),
            self.criterion.as_ref(),
        )?;
        let taped = self.taped(problem, data)?;
        let taped = taped.by_rows(self.plan_of_rows(problem));
        Ok(match loops {
            Some(loops) => Box::new(SplitLoops { loops, of_h: taped }),
            None => Box::new(taped),
        })
    }

    /// The reference: tensors as large as X, any divergence, any device.
    pub(crate) fn reference(&self, problem: &Problem) -> Result<Taped> {
        self.taped(problem, Data::tensors(problem)?)
    }

    fn taped(&self, problem: &Problem, data: Data) -> Result<Taped> {
        let (rules, criterion) = (
            [self.of_w.clone(), self.of_h.clone()],
            self.criterion.clone(),
        );
        let bunch = Bunch::with_data(problem, rules, criterion, self.span, self.length, data)?;
        Ok(Taped::new(
            bunch,
            self.layout.clone(),
            self.units,
            self.mode,
        ))
    }

    /// The loops of the paper's bunch, which hold a block of rows in the cache for all T updates: W
    /// alone, one λ for each row, and the penalties that they support.
    fn loops(&self, problem: &Problem) -> Option<Box<dyn Engine + Send>> {
        // Single plain updates are as fast on the data term, except for small problems.
        let [n, m] = problem.whole_shape();
        let plain = !self.tuned && self.length == 1;
        let known = self.is_papers()
            && !(plain && n * m * self.rank >= LARGE)
            && self.of_h.terms.is_empty()
            && (!self.tuned || self.mode == Mode::Reverse)
            && Plan::check(problem, self.criterion.as_ref()).is_ok();
        if !known {
            return None;
        }
        let plans = [Plan::of(&self.of_w).ok()?, Plan::of(&self.of_h).ok()?];
        let (rank, length, threads) = (self.rank, self.length, self.threads);
        Some(match problem.precision() {
            Precision::F64 => Box::new(FusedEngine::<f64>::new(
                problem, plans, rank, length, threads,
            )),
            Precision::F32 => Box::new(FusedEngine::<f32>::new(
                problem, plans, rank, length, threads,
            )),
        })
    }

    /// Returns true for a bunch over W with one λ for each row, or with fixed ones.
    fn is_papers(&self) -> bool {
        let papers_lambda = match self.layout.groups.as_slice() {
            [group] => group.scope == Scope::Row && self.units == Units::Absolute,
            _ => false,
        };
        self.span == Span::One(Side::W) && (papers_lambda || self.of_w.tuned().next().is_none())
    }

    /// The rule of W, if the rows of a sparse X can go through the paper's bunch one by one.
    fn plan_of_rows(&self, problem: &Problem) -> Option<Plan> {
        let by_tangents = matches!(self.mode, Mode::Reverse | Mode::Forward);
        let known = self.is_papers()
            && (by_tangents || self.of_w.tuned().next().is_none())
            && problem.is_sparse()
            && problem.precision() == Precision::F64;
        known.then(|| Plan::of(&self.of_w).ok()).flatten()
    }

    /// The same on some rows and columns of a problem.
    pub(super) fn selected(&self, part: &Problem, rows: &[usize], columns: &[usize]) -> Self {
        let mut layout = self.layout.clone();
        for group in &mut layout.groups {
            let lines = match group.side {
                Side::W => rows.len(),
                Side::H => columns.len(),
            };
            group.shape = group.scope.shape(lines, self.rank);
        }
        Self {
            of_w: self.of_w.selected(part, rows),
            of_h: self.of_h.selected(part, columns),
            layout,
            ..self.clone()
        }
    }

    /// The weights of some rows and columns.
    pub(super) fn weights_of(
        &self,
        lambda: &Array2<f64>,
        rows: &[usize],
        columns: &[usize],
        of: &Layout,
    ) -> Array2<f64> {
        let groups = self.layout.groups.iter().zip(self.layout.split(lambda));
        let parts = groups.map(|(group, weights)| match (group.scope, group.side) {
            (Scope::Row | Scope::Entry, Side::W) => weights.select(Axis(0), rows),
            (Scope::Row | Scope::Entry, Side::H) => weights.select(Axis(0), columns),
            _ => weights,
        });
        let parts: Vec<Array2<f64>> = parts.collect();
        of.join(&parts)
    }
}

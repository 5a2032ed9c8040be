//! Continuation of a finished run.

use ndarray::Array2;

use super::checkpoint::Resumed;
use super::{Outcome, Record, Solver, State};
use crate::error::{Error, Result};
use crate::factors::Factors;
use crate::problem::Problem;

/// The result of a finished run.
///
/// # Shapes
/// W n×r, H r×m, λ p×1 for p weights.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    /// The kept factors.
    pub factors: Factors,
    /// Their λ.
    pub lambda: Array2<f64>,
    /// λ at the start.
    pub lambda_at_start: Array2<f64>,
    /// The records up to the iteration of these factors.
    pub history: Vec<Record>,
}

impl Ended {
    /// The iteration of the factors.
    pub fn iteration(&self) -> usize {
        self.history.last().map_or(0, |record| record.iteration)
    }
}

impl Solver {
    /// Goes on with a finished run. Iterations and steps of λ are counted from its start. The
    /// stopping rule starts afresh: it is relative to the divergence at which the new run starts.
    /// The memory of a step that has one (Adam) starts afresh too.
    ///
    /// If the old run ended by its number of iterations and its step has no memory, the result has
    /// the same bits as that of one longer run.
    ///
    /// ```
    /// use altbi::{AltBiConfig, Beta, L1, Precision, Problem};
    /// let x = ndarray::Array2::from_shape_fn((20, 12), |(i, j)| 1.0 + ((i * j) % 5) as f64);
    /// let problem = Problem::new(&x, Precision::F64)?;
    /// let config = AltBiConfig::new(3).with_tolerance(0.0);
    /// let solver = |iterations| {
    ///     let config = config.clone().with_max_iterations(iterations);
    ///     config.solver(Beta::KL, L1)
    /// };
    /// let half = solver(10).run(&problem)?;
    /// let whole = solver(20).go_on_after(&problem, &half)?;
    /// assert_eq!(whole.w, solver(20).run(&problem)?.w);
    /// # Ok::<(), altbi::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`run`](Self::run); [`Error::Shape`] for factors or a λ of another problem;
    /// [`Error::Setting`] if no iteration is left.
    pub fn go_on_after(&mut self, problem: &Problem, outcome: &Outcome) -> Result<Outcome> {
        let factors = match outcome.scaling() {
            Some(scaling) => Factors {
                w: scaling.w_scaled(&outcome.w),
                h: scaling.h_scaled(&outcome.h),
            },
            None => outcome.factors(),
        };
        let history = outcome.history.iter();
        let until = history.filter(|record| record.iteration <= outcome.selected);
        let ended = Ended {
            factors,
            lambda: outcome.lambda.clone(),
            lambda_at_start: outcome.lambda_at_start.clone(),
            history: until.cloned().collect(),
        };
        self.go_on_from(problem, ended)
    }

    /// The same from what is left of a run.
    pub(crate) fn go_on_from(&mut self, problem: &Problem, ended: Ended) -> Result<Outcome> {
        problem.processes().agree(self.check(problem))?;
        let (iteration, limit) = (ended.iteration(), self.config.max_iterations);
        Error::require(
            limit > iteration,
            "the number of iterations",
            limit as f64,
            "more than the run has done already (--max-iter counts from its start)",
        )?;
        let [n, m] = problem.whole_shape();
        let share = self.lambda_share(problem);
        let whole = share.whole_layout();
        let (rank, weights) = (self.config.rank, whole.len());
        let Some(mut record) = ended.history.last().cloned() else {
            return Err(Error::EmptyMatrix {
                what: "the history",
                rows: 0,
                columns: 0,
            });
        };
        record.relative_change = f64::NAN;
        let mut state = State {
            iteration,
            factors: Factors {
                w: problem.matrix("W", &ended.factors.w, [n, rank])?,
                h: problem.matrix("H", &ended.factors.h, [rank, m])?,
            },
            lambda: problem.matrix("λ", &ended.lambda, [weights, 1])?,
            divergence_at_start: record.divergence,
            record,
            best: None,
            memory: self.memory_of(&whole),
            other_splits: Vec::new(),
            share: None,
        };
        state = state.cut(&share);
        let acted = state.lambda.clone();
        state.remember(self.config.select, &acted);
        let story = Resumed {
            state,
            lambda_at_start: share.cut(&ended.lambda_at_start),
            history: ended.history,
        };
        self.on_threads(problem, |solver| {
            let (engine, used) = problem.processes().agree(solver.engine(problem))?;
            let used = solver.compared(problem, used, &story.state)?;
            solver.go_on(problem, story, (engine, Vec::new()), used)
        })
    }
}

//! Going on after the end of a run.

use ndarray::Array2;

use super::checkpoint::Resumed;
use super::{Outcome, Record, Solver, State};
use crate::error::{Error, Result};
use crate::factors::Factors;
use crate::problem::Problem;

/// What is left of a run that ended.
///
/// # Shapes
/// W n×r, H r×m, λ p×1 for p weights.
#[derive(Debug, Clone)]
pub(crate) struct Ended {
    /// The factors that were kept.
    pub factors: Factors,
    /// λ that belongs to them.
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
    /// Goes on after the end of a run: iterations are counted from there, and so are the
    /// steps of λ. The stopping rule begins anew: its unit is the divergence from which the run
    /// goes on. So does the memory of a step that has one (Adam).
    ///
    /// A run that ended by its number of iterations goes on to the same bits as one that was
    /// longer from the start, if its step has no memory.
    ///
    /// # Errors
    /// As [`run`](Self::run); [`Error::Shape`] for factors or a λ of another problem;
    /// [`Error::Setting`] if there is no iteration left to do.
    pub(crate) fn go_on_after(&mut self, problem: &Problem, ended: Ended) -> Result<Outcome> {
        problem.processes().agree(self.check(problem))?;
        let (iteration, limit) = (ended.iteration(), self.config.max_iterations);
        if limit <= iteration {
            return Err(Error::Setting {
                setting: "the number of iterations",
                value: limit as f64,
                range: "more than the run has done already (--max-iter counts from its start)",
            });
        }
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
            solver.go_on(problem, story, engine, used)
        })
    }
}

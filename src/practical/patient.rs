//! Solves that end when the held-out error has stopped falling.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::PATIENCE;
use crate::error::Result;
use crate::problem::Problem;
use crate::solver::{Checkpoint, Outcome, Record, Signal, Solver, State, StopReason};

/// `None` if an observer ended the run.
fn finished(outcome: Outcome) -> Option<Outcome> {
    (outcome.stop_reason != StopReason::Interrupted).then_some(outcome)
}

/// A solve that ends when the outer error has not fallen for a while.
pub(crate) struct Patient {
    solver: Solver,
    gave_up: Arc<AtomicBool>,
}

pub(crate) fn patient(solver: Solver) -> Patient {
    let gave_up = Arc::new(AtomicBool::new(false));
    let flag = gave_up.clone();
    let solver = solver
        .by_outer_error()
        .observe(move |record: &Record, state: &State| {
            let best = state.best.as_ref().map_or(0, |best| best.record.iteration);
            if record.iteration > best + PATIENCE {
                flag.store(true, Ordering::SeqCst);
                return Signal::Stop;
            }
            Signal::Continue
        });
    Patient { solver, gave_up }
}

impl Patient {
    /// Runs it; `None` if another observer ended the run.
    pub(crate) fn run(self, problem: &Problem) -> Result<Option<Outcome>> {
        let outcome = self.solver.into_run(problem)?;
        let by_itself = self.gave_up.load(Ordering::SeqCst);
        Ok(if by_itself {
            Some(outcome)
        } else {
            finished(outcome)
        })
    }
}

impl Solver {
    pub(super) fn into_run(mut self, problem: &Problem) -> Result<Outcome> {
        self.run(problem)
    }

    pub(super) fn into_resumed(
        mut self,
        problem: &Problem,
        checkpoint: &Checkpoint,
    ) -> Result<Outcome> {
        self.resume(problem, checkpoint)
    }
}

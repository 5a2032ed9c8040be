//! Solves that end when the held-out error has stopped falling.

use std::sync::Arc;

use parking_lot::Mutex;

use super::PATIENCE;
use crate::error::Result;
use crate::factors::Factors;
use crate::problem::Problem;
use crate::solver::{Outcome, Record, Signal, Solver, State, StopReason};

/// Sets the stopping rule of solves with one update in an iteration.
pub(crate) fn patient(solver: Solver) -> Solver {
    solver.by_outer_error().with_patience(PATIENCE)
}

/// Returns `None` if an observer ended the solve.
pub(crate) fn uninterrupted(outcome: Outcome) -> Option<Outcome> {
    (outcome.stop_reason != StopReason::Interrupted).then_some(outcome)
}

/// Runs plain updates. Also returns the starts of solves with the final λ: an early iterate, if the
/// run went on after it, and the last one.
pub(crate) fn with_starts(
    solver: Solver,
    problem: &Problem,
    early: usize,
) -> Result<(Outcome, Vec<Factors>)> {
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let mut solver = solver.observe(move |record: &Record, state: &State| {
        if record.iteration == early {
            *keep.lock() = Some(state.factors.clone());
        }
        Signal::Continue
    });
    let outcome = solver.run(problem)?;
    let early = kept.lock().take().filter(|_| early < outcome.iterations);
    let starts = early.into_iter().chain([outcome.last_factors()]);
    Ok((outcome, starts.collect()))
}

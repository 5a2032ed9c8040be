//! Solves without tuning. They end when the held-out error no longer falls.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{EARLY, PATIENCE, STRIDE};
use crate::error::Result;
use crate::factors::Factors;
use crate::problem::Problem;
use crate::solver::{Outcome, Record, Signal, Solver, State, StopReason};

/// Sets their stopping rule.
pub(crate) fn patient(solver: Solver) -> Solver {
    solver.by_outer_error().with_patience(PATIENCE / STRIDE)
}

/// Returns `None` if an observer ended the solve.
pub(crate) fn uninterrupted(outcome: Outcome) -> Option<Outcome> {
    (outcome.stop_reason != StopReason::Interrupted).then_some(outcome)
}

/// Runs plain updates. Also returns the starts of solves with the final λ: their last iterate and,
/// if the run went on after it, an early one. `before` is the number of updates that led to the
/// start of the run.
pub(crate) fn with_starts(
    solver: Solver,
    problem: &Problem,
    before: usize,
) -> Result<(Outcome, Vec<Factors>)> {
    let early = (EARLY - before) / STRIDE;
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let mut solver = patient(solver).observe(move |record: &Record, state: &State| {
        if record.iteration == early {
            *keep.lock() = Some(state.factors.clone());
        }
        Signal::Continue
    });
    let outcome = solver.run(problem)?;
    let early = kept.lock().take().filter(|_| early < outcome.iterations);
    let starts = [outcome.last_factors()].into_iter().chain(early);
    Ok((outcome, starts.collect()))
}

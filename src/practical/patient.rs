//! Solves that end when the held-out error has stopped falling.

use super::PATIENCE;
use crate::error::Result;
use crate::problem::Problem;
use crate::solver::{Outcome, Solver, StopReason};

/// Runs a solve until the outer error no longer falls. Returns `None` if an observer ended it.
pub(crate) fn patient(solver: Solver, problem: &Problem) -> Result<Option<Outcome>> {
    let mut solver = solver.by_outer_error().with_patience(PATIENCE);
    let outcome = solver.run(problem)?;
    Ok((outcome.stop_reason != StopReason::Interrupted).then_some(outcome))
}

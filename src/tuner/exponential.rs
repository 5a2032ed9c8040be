//! The exponential rule: λ_k = λ₀ e^(−τk), k the number of updates. Strong at first, then
//! gone; no search, one solve.

use super::books::Answer;
use super::{Books, DIAL};
use crate::error::Result;

/// log λ₀, in relative units: as strong as the fit.
const START: f64 = 0.0;
/// τ: λ falls to a hundredth within a hundred updates.
const DECAY: f64 = 0.046;

pub(super) fn run(mut books: Books<'_>) -> Result<Answer> {
    let solved = books.solve_scheduled(START, |lambda, updates| {
        let dial = START - DECAY * updates as f64;
        lambda.fill(dial.exp());
        // Not before the penalty is gone.
        dial < DIAL.0
    })?;
    books.answer(solved)
}

//! The exponential rule: λ_k = λ₀ e^(−τk), where k is the number of updates. The penalty is strong
//! at first and vanishes later. There is one solve and no search.

use super::books::Answer;
use super::{Books, DIAL};
use crate::error::Result;

/// log λ₀ in relative units: penalty and fit pull equally hard.
const START: f64 = 0.0;
/// τ: λ falls to a hundredth within a hundred updates.
const DECAY: f64 = 0.046;

pub(super) fn run(mut books: Books<'_>) -> Result<Answer> {
    let solved = books.solve_scheduled(START, |lambda, updates| {
        let dial = START - DECAY * updates as f64;
        lambda.fill(dial.exp());
        // The solve may end only after the penalty has vanished.
        dial < DIAL.0
    })?;
    books.answer(solved)
}

//! Rivals that make one solve: no penalty, stopped early or not; the paper's fixed λ.

use super::books::Answer;
use super::{Books, Rival};
use crate::error::Result;

/// λ of the paper's P-MU.
const FIXED: f64 = 0.5;

pub(super) fn run(rival: Rival, mut books: Books<'_>) -> Result<Answer> {
    let solved = match rival {
        Rival::None => books.solve_to_the_end()?,
        Rival::Fixed => books.solve_absolute(FIXED)?,
        _ => books.solve_plain()?,
    };
    books.answer(rival, solved)
}

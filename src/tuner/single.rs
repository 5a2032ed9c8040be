//! Rivals that make one solve: no penalty, stopped early or not; the paper's fixed λ.

use super::Books;
use super::books::Answer;
use crate::error::Result;
use crate::lambda::Units;

/// λ of the paper's P-MU.
const FIXED: f64 = 0.5;

/// No penalty, stopped early.
pub(super) fn plain(mut books: Books<'_>) -> Result<Answer> {
    let solved = books.solve_plain()?;
    books.answer(solved)
}

/// No penalty, not stopped.
pub(super) fn none(mut books: Books<'_>) -> Result<Answer> {
    let solved = books.solve_to_the_end()?;
    books.answer(solved)
}

/// A fixed λ.
pub(super) fn fixed(mut books: Books<'_>) -> Result<Answer> {
    let solved = books.solve_absolute(FIXED)?;
    let solved = books.or_start(solved);
    let config = books.config().with_units(Units::Absolute);
    let terms = books.task.terms.clone();
    books.answer_with(solved, config, terms)
}

//! Rivals without a search: no penalty, stopped early, not stopped, or ended as scikit-learn
//! does; the paper's fixed λ.

use super::Books;
use super::books::Answer;
use crate::error::Result;
use crate::factors::Initial;
use crate::lambda::Units;
use crate::practical::LONGEST;

/// λ of the paper's P-MU.
const FIXED: f64 = 0.5;
/// scikit-learn's `max_iter` and `tol`.
const MOST_UPDATES: usize = 200;
const TOLERANCE: f64 = 1e-4;

/// No penalty, stopped early.
pub(super) fn plain(mut books: Books<'_>) -> Result<Answer> {
    let solved = books.solve_plain()?;
    books.answer(solved)
}

/// No penalty, not stopped.
pub(super) fn none(mut books: Books<'_>) -> Result<Answer> {
    let solved = books.solve_to_the_end(LONGEST, None, None)?;
    books.answer_as_it_is(solved)
}

/// scikit-learn's defaults (`NMF(solver="mu")`): no penalty, the start NNDSVDa, at most 200 updates of
/// both factors, and an end when ten of them lower the square root of D by less than 1e-4 of its first
/// value. It does not look at the held-out data.
/// (scikit-learn itself cannot have missing entries.)
pub(super) fn scikit_learn(mut books: Books<'_>) -> Result<Answer> {
    let initial = Some(Initial::Nndsvda);
    let solved = books.solve_to_the_end(MOST_UPDATES, Some(TOLERANCE), initial)?;
    books.answer_as_it_is(solved)
}

/// A fixed λ.
pub(super) fn fixed(mut books: Books<'_>) -> Result<Answer> {
    let solved = books.solve_absolute(FIXED, None)?;
    let solved = books.chosen_as_in_practical(solved, |books, from| {
        books.solve_absolute(FIXED, Some(from))
    })?;
    let config = books.config().with_units(Units::Absolute);
    let terms = books.task.terms.clone();
    books.answer_with(solved, config, terms)
}

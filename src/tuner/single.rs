//! Rivals that make one solve: no penalty, stopped early or not; the paper's fixed λ.

use super::bench::Answer;
use super::{Bench, Rival};
use crate::error::Result;

/// λ of the paper's P-MU.
const FIXED: f64 = 0.5;

pub(super) fn run(rival: Rival, mut bench: Bench<'_>) -> Result<Answer> {
    let solved = match rival {
        Rival::None => bench.solve_to_the_end()?,
        Rival::Fixed => bench.solve_absolute(FIXED)?,
        _ => bench.solve_plain()?,
    };
    bench.answer(rival, solved)
}

//! The discrepancy principle: the largest λ whose divergence is not above that of the noise.
//!
//! The size of the noise must be known. If the true matrix is known, it is D(X, truth). Otherwise
//! it is estimated by the held-out error of a plain solve, stopped early. This estimate is too
//! large, and so is λ.

use super::books::{Answer, Solved};
use super::{Books, DIAL};
use crate::error::Result;

/// Halvings of the interval.
const STEPS: usize = 8;

pub(super) fn run(mut books: Books<'_>) -> Result<Answer> {
    let plain = books.solve_plain()?;
    let most = match (books.task.noise(), &plain) {
        (Some(noise), _) => noise,
        (None, Some(plain)) => plain.outer_error * books.task.training_per_held_out(),
        (None, None) => 0.0,
    };
    let (mut weak, mut strong) = DIAL;
    let mut chosen: Option<Solved> = None;
    for _ in 0..STEPS {
        let dial = (weak + strong) / 2.0;
        let Some(solved) = books.solve_alike(dial, None)? else {
            break;
        };
        if solved.divergence <= most {
            weak = dial;
            chosen = Some(solved);
        } else {
            strong = dial;
        }
    }
    books.answer(chosen.or(plain))
}

//! A grid of equally spaced dials, every solve from the same start; then a finer one, until
//! the budget is spent.

use rand::seq::SliceRandom;

use super::books::{Answer, better};
use super::random::generator;
use super::{Books, DIAL};
use crate::error::Result;

pub(super) fn run(mut books: Books<'_>) -> Result<Answer> {
    let dials = books.dials();
    // The first solve has all dials in the middle. It also measures the cost of a solve.
    let before = books.ledger.left();
    let mut best = books.solve_alike((DIAL.0 + DIAL.1) / 2.0, None)?;
    let cost = (before - books.ledger.left()).max(1.0);
    let affordable = (books.ledger.left() / cost).powf(1.0 / dials as f64);
    let mut per_dial = (affordable.floor() as usize).max(2);
    let mut generator = generator(books.task.seed);
    while !books.ledger.is_spent() {
        let mut places: Vec<usize> = (0..per_dial.saturating_pow(dials as u32).min(MOST)).collect();
        // The order is random, so that no end of a dial is favoured if the budget runs out.
        places.shuffle(&mut generator);
        for place in places {
            let theta: Vec<f64> = (0..dials)
                .map(|dial| at(place / per_dial.pow(dial as u32) % per_dial, per_dial))
                .collect();
            match books.solve(&theta, None)? {
                Some(solved) => best = better(best, solved),
                None => break,
            }
        }
        per_dial += 1;
    }
    books.answer(best)
}

/// Largest size of the grid.
const MOST: usize = 1 << 20;

/// The points are the centres of equal parts of a dial, because its ends are extreme.
fn at(step: usize, of: usize) -> f64 {
    DIAL.0 + (DIAL.1 - DIAL.0) * (step as f64 + 0.5) / of as f64
}

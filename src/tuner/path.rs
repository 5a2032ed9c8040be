//! A path of λ from weak to strong. Each solve starts from the result of the one before. With
//! several dials, all move together first; then each moves on its own, with the others at their
//! best values.
//!
//! (From strong to weak, as in other solvers, it is worse than no penalty, because multiplicative
//! updates never leave the zeros that a strong penalty has made.)

use super::books::{Answer, Solved, better};
use super::{Books, DIAL};
use crate::error::Result;

/// Solves along one path.
pub(super) const POINTS: usize = 8;

/// The dials of a path, weak ones first.
pub(super) fn points() -> impl Iterator<Item = f64> {
    let step = (DIAL.1 - DIAL.0) / POINTS as f64;
    (0..POINTS).map(move |place| DIAL.0 + step * (place as f64 + 0.5))
}

/// All solves of the path on which all dials are equal.
pub(super) fn alike(books: &mut Books<'_>) -> Result<Vec<Solved>> {
    let mut solves: Vec<Solved> = Vec::new();
    for dial in points() {
        let from = solves.last().map(|solved| solved.factors.clone());
        match books.solve_alike(dial, from.as_ref())? {
            Some(solved) => solves.push(solved),
            None => break,
        }
    }
    Ok(solves)
}

pub(super) fn run(mut books: Books<'_>) -> Result<Answer> {
    let mut best = alike(&mut books)?.into_iter().fold(None, better);
    let dials = books.dials();
    let mut turn = 0;
    // With one dial only the step is refined.
    while let Some(so_far) = best.clone().filter(|_| !books.ledger.is_spent()) {
        let width = (DIAL.1 - DIAL.0) / POINTS as f64 * 0.5f64.powi((turn / dials) as i32);
        let mut from = so_far.factors.clone();
        for shift in [-1.0, -0.5, 0.5, 1.0] {
            let mut theta = so_far.dials.clone();
            theta[turn % dials] += shift * width;
            let Some(solved) = books.solve(&theta, Some(&from))? else {
                break;
            };
            from = solved.factors.clone();
            best = better(best, solved);
        }
        turn += 1;
    }
    books.answer(best)
}

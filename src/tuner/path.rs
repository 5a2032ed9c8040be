//! A path: from weak to strong, each solve from where the one before ended. With several
//! dials first all alike, then each on its own, with the others where they were best.
//!
//! (From strong to weak, as paths go for other solvers, it does worse than no penalty:
//! multiplicative updates do not bring back what a strong penalty has brought to zero.)

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

/// All solves of the path on which all dials are alike.
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
    // One dial leaves nothing to refine but the step.
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

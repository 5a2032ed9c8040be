//! A grid of equally spaced dials, every solve from the same start.

use super::bench::{Answer, better};
use super::{Bench, DIAL, Rival};
use crate::error::Result;

/// Updates that a solve takes, as far as planning the grid goes.
const TYPICAL_SOLVE: f64 = 120.0;

pub(super) fn run(mut bench: Bench<'_>) -> Result<Answer> {
    let dials = bench.dials();
    let solves = (bench.ledger.left() / TYPICAL_SOLVE).max(2.0);
    let per_dial = (solves.powf(1.0 / dials as f64).floor() as usize).max(2);
    let at = |step: usize| {
        // Both ends are extremes; the points lie in the middle of equal parts.
        DIAL.0 + (DIAL.1 - DIAL.0) * (step as f64 + 0.5) / per_dial as f64
    };
    let mut best = None;
    let mut places = vec![0; dials];
    loop {
        let theta: Vec<f64> = places.iter().map(|place| at(*place)).collect();
        match bench.solve(&theta, None)? {
            Some(solved) => best = better(best, solved),
            None => break,
        }
        // The next place, as one counts.
        let Some(moved) = places.iter().position(|place| place + 1 < per_dial) else {
            break;
        };
        places[..moved].fill(0);
        places[moved] += 1;
    }
    bench.answer(Rival::Grid, best)
}

//! Random search: dials drawn evenly.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::bench::{Answer, better};
use super::{Bench, DIAL, Rival};
use crate::error::Result;

/// The random numbers of searches, in a stream of their own.
pub(super) fn generator(seed: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(4);
    generator
}

pub(super) fn run(mut bench: Bench<'_>) -> Result<Answer> {
    let mut generator = generator(bench.task.seed);
    let mut best = None;
    loop {
        let dials = (0..bench.dials()).map(|_| generator.random_range(DIAL.0..DIAL.1));
        let dials: Vec<f64> = dials.collect();
        match bench.solve(&dials, None)? {
            Some(solved) => best = better(best, solved),
            None => break,
        }
    }
    bench.answer(Rival::Random, best)
}

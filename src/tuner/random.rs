//! Random search: dials with a uniform distribution.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::books::{Answer, better};
use super::{Books, DIAL};
use crate::error::Result;

/// The random numbers of searches, in a stream of their own.
pub(super) fn generator(seed: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(4);
    generator
}

pub(super) fn run(mut books: Books<'_>) -> Result<Answer> {
    let mut generator = generator(books.task.seed);
    let mut best = None;
    loop {
        let dials = (0..books.dials()).map(|_| generator.random_range(DIAL.0..DIAL.1));
        let dials: Vec<f64> = dials.collect();
        match books.solve(&dials, None)? {
            Some(solved) => best = better(best, solved),
            None => break,
        }
    }
    books.answer(best)
}

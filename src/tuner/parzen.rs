//! Tree-structured Parzen estimators (crate tpe), one for each dial.

use rand::RngExt;
use tpe::{TpeOptimizer, parzen_estimator, range};

use super::books::{Answer, better};
use super::random::generator;
use super::{Books, DIAL};
use crate::error::Result;

/// Random trials before the first estimate.
const RANDOM_TRIALS: usize = 5;

pub(super) fn run(mut books: Books<'_>) -> Result<Answer> {
    let mut generator = generator(books.task.seed);
    let interval = range(DIAL.0, DIAL.1).expect("a proper interval");
    let estimators = (0..books.dials()).map(|_| TpeOptimizer::new(parzen_estimator(), interval));
    let mut estimators: Vec<_> = estimators.collect();
    let mut best = None;
    let mut trial = 0;
    loop {
        trial += 1;
        let asked = estimators.iter_mut().map(|estimator| {
            if trial <= RANDOM_TRIALS {
                return generator.random_range(DIAL.0..DIAL.1);
            }
            let asked = estimator.ask(&mut generator);
            asked.expect("an estimate over an interval")
        });
        let dials: Vec<f64> = asked.collect();
        let Some(solved) = books.solve(&dials, None)? else {
            break;
        };
        for (estimator, dial) in estimators.iter_mut().zip(&dials) {
            // (The estimator refuses NaN.)
            if solved.outer_error.is_finite() {
                let told = estimator.tell(*dial, solved.outer_error);
                told.expect("a dial that was asked for");
            }
        }
        best = better(best, solved);
    }
    books.answer(best)
}

//! CMA-ES (crate cmaes): a normal distribution of dials that learns its covariance.

use cmaes::{CMAESOptions, DVector};

use super::books::{Answer, Solved, better};
use super::{Books, DIAL};
use crate::error::{Error, Result};

pub(super) fn run(mut books: Books<'_>) -> Result<Answer> {
    let middle = (DIAL.0 + DIAL.1) / 2.0;
    let quarter = (DIAL.1 - DIAL.0) / 4.0;
    let (dials, seed) = (books.dials(), books.task.seed);
    let mut best: Option<Solved> = None;
    let mut failed: Option<Error> = None;
    let objective = |theta: &DVector<f64>| -> f64 {
        match books.solve(theta.as_slice(), None) {
            Ok(Some(solved)) => {
                let outside = theta.iter().map(|dial| dial - dial.clamp(DIAL.0, DIAL.1));
                // Beyond the ends of a dial the error is constant, so a penalty leads back.
                let lead: f64 = outside.map(|distance| distance * distance).sum();
                let error = solved.outer_error * (1.0 + 0.01 * lead);
                best = better(best.take(), solved);
                error
            }
            // The budget is spent, so this generation is ignored.
            Ok(None) => f64::MAX,
            Err(error) => {
                failed = Some(error);
                f64::MAX
            }
        }
    };
    let options = CMAESOptions::new(vec![middle; dials], quarter).seed(seed);
    let mut search = options.build(objective).expect("options that hold");
    // Every solve is charged, so this ends.
    while search.next().is_none() {
        let spent = search
            .current_best_individual()
            .is_some_and(|individual| individual.value == f64::MAX);
        let enough = search.function_evals() > 10_000;
        if spent || enough {
            break;
        }
    }
    drop(search);
    match failed {
        Some(error) => Err(error),
        None => books.answer(best),
    }
}

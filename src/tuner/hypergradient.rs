//! Hypergradients: the preset practical, with its updates counted.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Task;
use super::books::Answer;
use super::ledger::Ledger;
use crate::error::Result;
use crate::lambda::Scope;
use crate::practical::{Practical, STRIDE, Stage};
use crate::solver::{Observer, Record, Signal, State};

pub(super) fn run(task: &Task, scope: Scope) -> Result<Answer> {
    let mut practical = Practical::new(task.rank, task.divergence.clone(), task.terms.clone())
        .with_outer_error(task.outer);
    practical.config = practical
        .config
        .with_seed(task.seed)
        .with_scope(scope)
        .with_threads(1);
    let mut splits = vec![task.split.clone()];
    splits.extend(practical.further_splits(&task.full, task.seed)?);
    let price = task.divergence.derivative_cost();
    // (Each split begins with plain updates of its own.)
    let (length, warm_up) = (
        practical.config.bunch,
        splits.len() * practical.config.warm_up,
    );
    let ledger = Arc::new(Mutex::new(Ledger::new(f64::INFINITY, &|| true)));
    let mut solves = 0;
    let mut observers = |stage: Stage| -> Vec<Box<dyn Observer>> {
        solves += usize::from(stage != Stage::Refit);
        let (at_start, each) = match stage {
            Stage::Plain | Stage::SolvedAgain => (0.0, STRIDE as f64),
            Stage::Tuned => (warm_up as f64, length as f64 * price),
            // The refit of an answer is not charged.
            Stage::Refit => return Vec::new(),
        };
        let (ledger, task) = (ledger.clone(), task.clone());
        vec![Box::new(move |record: &Record, state: &State| {
            let work = if record.iteration == 0 {
                at_start
            } else {
                each
            };
            ledger
                .lock()
                .book(&task, work, record.outer_error, &state.factors);
            Signal::Continue
        })]
    };
    let result = practical.watched(&splits, &task.full, None, &mut observers)?;
    let result = result.expect("nobody interrupts");
    let ledger = ledger.lock();
    Ok(Answer {
        outer_error: result.outcome.outer_error,
        lambda: result.outcome.lambda.clone(),
        refit: result.outcome.factors(),
        factors: result.before_refit,
        divergence: (result.divergence_before_refit, result.outcome.divergence),
        solves,
        work: ledger.work(),
        seconds: ledger.seconds(),
        points: ledger.points.clone(),
    })
}

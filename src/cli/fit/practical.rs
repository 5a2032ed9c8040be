//! `--preset practical`: plain updates, the tuned run, the final λ again, a refit.

use std::sync::Arc;

use crate::practical::{Practical, Stage};
use crate::report::Choice;
use crate::{Checkpoint, Observer, Outcome, Problem, Record, Result, Signal, State};

use parking_lot::Mutex;

use super::Run;
use crate::cli::arguments::{LambdaArgument, read_lambda};
use crate::cli::checkpoints::Checkpoints;
use crate::cli::progress::Watch;

impl Run<'_> {
    /// All stages. After an interruption in any of them the run goes on from the last checkpoint of
    /// the tuned run.
    pub(super) fn practical(
        &self,
        full: &Problem,
        checkpoints: Checkpoints,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<(Outcome, Option<Choice>)> {
        let arguments = self.arguments;
        let terms = self.terms.clone();
        let mut practical = Practical::new(self.solver.rank, arguments.divergence, terms)
            .with_outer_error(self.outer)
            .with_factors(arguments.given_factors(self.scaling.as_ref())?);
        practical.config = self.solver.clone();
        if let Some(updates) = arguments.refit {
            practical = practical.with_refit(updates);
        }
        if let Some(splits) = arguments.splits {
            practical = practical.with_splits(splits);
        }
        let mut splits = vec![self.problem.clone()];
        let seed = arguments.criterion.held_out_seed;
        splits.extend(practical.further_splits(full, seed)?);
        // (Only a fresh run reads it.)
        if let (LambdaArgument::File(path), None) = (&arguments.lambda, checkpoint) {
            practical = practical.with_lambda(read_lambda(path)?);
        }
        // The tuned run's last state, to go on from if a later stage is interrupted.
        let story = Arc::new(Mutex::new((checkpoints, None::<State>)));
        let mut observers = |stage: Stage| {
            let story = story.clone();
            let mut observers: Vec<Box<dyn Observer>> = Vec::new();
            if stage == Stage::Tuned {
                observers.push(Box::new(move |record: &Record, state: &State| {
                    let (checkpoints, last) = &mut *story.lock();
                    *last = Some(state.clone());
                    checkpoints.iterated(record, state)
                }));
            } else {
                observers.push(Box::new(move |_: &Record, _: &State| {
                    let (checkpoints, last) = &mut *story.lock();
                    if !checkpoints.is_interrupted() {
                        return Signal::Continue;
                    }
                    if let Some(last) = last.take() {
                        checkpoints.write_again(&last);
                    }
                    Signal::Stop
                }));
            }
            let resumed = checkpoint.filter(|_| stage == Stage::Tuned);
            let done = resumed.map_or(0, Checkpoint::iteration);
            let (name, of) = (activity(stage), practical.longest(stage));
            let watch = Watch::new(&self.progress, name, of, done);
            observers.push(Box::new(watch));
            observers
        };
        let result = practical.watched(&splits, full, checkpoint, &mut observers)?;
        Ok(match result {
            Ok(result) => {
                let choice = Choice {
                    candidates: result.candidates,
                    chosen: result.chosen,
                    splits: splits.len(),
                };
                (result.outcome, Some(choice))
            }
            Err(interrupted) => (*interrupted, None),
        })
    }
}

/// Name of a stage for the progress line.
fn activity(stage: Stage) -> &'static str {
    match stage {
        Stage::Plain => "plain updates",
        Stage::Tuned => "tuning λ",
        Stage::SolvedAgain => "final λ again",
        Stage::Refit => "refitting",
    }
}

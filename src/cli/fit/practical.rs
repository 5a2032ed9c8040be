//! `--preset practical`: plain updates, the tuned run, the final λ again, a refit.

use altbi::practical::{Practical, Stage};
use altbi::report::Choice;
use altbi::{
    Checkpoint, Error, GivenFactors, Observer, Outcome, Problem, Record, Result, Signal, State,
};
use std::sync::atomic::Ordering;

use super::Run;
use crate::cli::arguments::{LambdaArgument, read_lambda, read_optional};
use crate::cli::checkpoints::Checkpoints;

impl Run<'_> {
    /// All stages; an interruption in any of them goes on from the tuned run's last
    /// checkpoint.
    pub(super) fn practical(
        &self,
        full: &Problem,
        checkpoints: Checkpoints,
        checkpoint: Option<&Checkpoint>,
    ) -> Result<(Result<Outcome>, Option<Choice>)> {
        let arguments = self.arguments;
        let terms = arguments.tuning.penalties.terms()?;
        let mut practical = Practical::new(self.solver.rank, arguments.divergence, terms)
            .with_factors(GivenFactors {
                w: read_optional(arguments.init_w.as_ref())?,
                h: read_optional(arguments.init_h.as_ref())?,
            });
        practical.config = self.solver.clone();
        if let LambdaArgument::File(path) = &arguments.lambda {
            practical = practical.with_lambda(read_lambda(path)?);
        }
        let interrupted = checkpoints.flag();
        let mut checkpoints = Some(checkpoints.and_at(self.solver.max_iterations));
        let mut observers = |stage: Stage| {
            let mut observers: Vec<Box<dyn Observer>> = Vec::new();
            if stage == Stage::Tuned {
                let checkpoints = checkpoints.take().expect("it is tuned once");
                observers.push(Box::new(checkpoints));
                observers.extend(self.progress());
            } else {
                let interrupted = interrupted.clone();
                observers.push(Box::new(move |_: &Record, _: &State| {
                    if interrupted.load(Ordering::SeqCst) {
                        Signal::Stop
                    } else {
                        Signal::Continue
                    }
                }));
            }
            observers
        };
        let result = practical.watched(&self.problem, full, checkpoint, &mut observers);
        Ok(match result {
            Ok(Ok(result)) => {
                let choice = Choice {
                    candidates: result.candidates,
                    chosen: result.chosen,
                };
                (Ok(result.outcome), Some(choice))
            }
            Ok(Err(interrupted)) => (Ok(*interrupted), None),
            Err(error @ (Error::NotFinite { .. } | Error::Stopped { .. })) => (Err(error), None),
            Err(error) => return Err(error),
        })
    }
}

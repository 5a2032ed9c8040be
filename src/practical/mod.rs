//! The preset `practical`: λ tuned on data that the updates never see.
//!
//! On the training error the best penalty is none, so λ is tuned on held-out data: entries, or a
//! part of the counts ([`OuterError`]). A penalty does not always help. So the preset makes three
//! candidates:
//!
//! 1. **plain**: multiplicative updates without penalty, stopped early;
//! 2. **tuned**: the run that tunes λ by hypergradients, its best iterate;
//! 3. **solved again**: with the final λ kept, stopped early. The solve starts where the plain
//!    updates ended. If it does not count (see below), another one starts after the first 100 of
//!    them, and the one with the lower outer error is the candidate.
//!
//! A candidate counts only if its outer error is below that of plain updates by more than one
//! standard error. (The margin is needed because λ was tuned on the same data.) Of those that do,
//! the one with the lowest outer error wins. If none does, plain updates win.
//!
//! λ is tuned on three splits of the data, which take turns: each bunch is one of a split, with
//! factors of its own. λ then depends less on the chance of one split, at the same cost. The
//! candidates are those of the first split. Large data are split once.
//!
//! The refit starts from the factors of the winner. With its λ it makes a few updates on all data,
//! in bunches as long as the winner's own. Of these iterates and the winner itself, the one with
//! the lowest divergence is kept. (The winner was stopped early, and more updates with a strong λ
//! can raise the divergence.)
//!
//! ```
//! use altbi::practical::{Practical, Stage};
//! use altbi::{Beta, L1, PenaltyTerm, Precision, Problem, Side, Smooth};
//! let x = ndarray::Array2::from_shape_fn((30, 20), |(i, j)| {
//!     2.0 + (0.3 * i as f64).sin() + ((i * 7 + j * 3) % 5) as f64 * 0.1
//! });
//! let problem = Problem::new(&x, Precision::F64)?;
//! let terms = [(Side::W, PenaltyTerm::tuned(Smooth)), (Side::H, PenaltyTerm::tuned(L1))];
//! let result = Practical::new(2, Beta::KL, terms).run(&problem, 0)?;
//! assert_eq!(result.candidates.len(), 3);
//! println!("{} wins", result.candidates[result.chosen].stage);
//! # assert!(result.candidates.iter().all(|c| c.stage != Stage::Refit));
//! # Ok::<(), altbi::Error>(())
//! ```

mod choice;
mod patient;
mod settings;

use std::fmt;
use std::sync::Arc;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::config::AltBiConfig;
use crate::criterion::{OuterError, Training};
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::factors::{Factors, GivenFactors, Side};
use crate::penalty::{NoPenalty, PenaltyTerm};
use crate::problem::Problem;
use crate::solver::{Checkpoint, Observer, Outcome, Record, Signal, Solver, State, StopReason};

use self::choice::Gain;
pub(crate) use self::choice::{MARGIN, RowErrors};
pub(crate) use self::patient::{patient, uninterrupted, with_starts};
pub(crate) use self::settings::SCOPE;
pub use self::settings::settings;

/// Plain updates before the second solve with the final λ.
pub(crate) const EARLY: usize = 100;
/// Largest number of updates of a solve without tuning.
pub(crate) const LONGEST: usize = 1000;
/// Its updates between two evaluations of the held-out error, which cost almost as much.
pub(crate) const STRIDE: usize = 5;
/// Such a solve ends after this many updates without a lower held-out error.
pub(crate) const PATIENCE: usize = 50;
/// Splits of the data that tune λ.
const SPLITS: usize = 3;
/// Data with more stored entries are split once: each split needs memory of its own, and their
/// chance matters less.
const MANY_ENTRIES: f64 = 1e6;
/// Updates of the refit: one bunch of the tuned run. More of them can undo early stopping.
pub(crate) const REFIT: usize = 10;

/// The parts of the procedure, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Plain updates, stopped early.
    Plain,
    /// The run that tunes λ.
    Tuned,
    /// Solves with the final λ, from iterates of the plain updates.
    SolvedAgain,
    /// The refit of the winner on all entries.
    Refit,
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Plain => "plain updates, stopped early",
            Self::Tuned => "the tuned run's best iterate",
            Self::SolvedAgain => "solved again with the final λ",
            Self::Refit => "refit on all entries",
        })
    }
}

/// A candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The stage that made it.
    pub stage: Stage,
    /// Its held-out error E.
    pub outer_error: f64,
    /// The standard error of the difference from plain updates, from the differences of rows.
    /// `None` for plain updates.
    #[serde(default)]
    pub standard_error: Option<f64>,
    /// Its iteration: of five updates, or of a bunch in the tuned run.
    pub iteration: usize,
}

/// The result of the procedure.
#[derive(Debug, Clone)]
pub struct PracticalOutcome {
    /// The factors after the refit, with the λ of the winner. History and start are those of the
    /// tuned run; the seconds are those of all stages. `outer_error` is that of the winner before
    /// the refit (after it, nothing is held out). `divergence`, and all numbers that follow from
    /// it, are over all entries.
    pub outcome: Outcome,
    /// The candidates, in the order of the stages.
    pub candidates: Vec<Candidate>,
    /// Index of the winner.
    pub chosen: usize,
    /// The winner's factors before the refit.
    pub before_refit: Factors,
    /// D of the winner on all entries, before the refit. (`outcome.divergence` is that after the
    /// refit, and never higher.)
    pub divergence_before_refit: f64,
}

/// Settings and penalties of the procedure.
pub struct Practical {
    /// The settings of the tuned run. Those of the other stages follow from them.
    pub config: AltBiConfig,
    divergence: Arc<dyn Divergence>,
    terms: Vec<(Side, PenaltyTerm)>,
    given: GivenFactors,
    given_lambda: Option<Array2<f64>>,
    refit: usize,
    outer: OuterError,
    splits: Option<usize>,
}

impl Practical {
    /// The preset for a rank.
    pub fn new(
        rank: usize,
        divergence: impl Divergence + 'static,
        terms: impl IntoIterator<Item = (Side, PenaltyTerm)>,
    ) -> Self {
        let divergence: Arc<dyn Divergence> = Arc::new(divergence);
        let terms: Vec<(Side, PenaltyTerm)> = terms.into_iter().collect();
        Self {
            config: settings(rank, divergence.as_ref(), &terms),
            divergence,
            terms,
            given: GivenFactors::default(),
            given_lambda: None,
            refit: REFIT,
            outer: OuterError::default(),
            splits: None,
        }
    }

    /// Sets the number of splits that tune λ. By default it is 3, or 1 for more than a million
    /// stored entries.
    #[must_use]
    pub fn with_splits(mut self, splits: usize) -> Self {
        self.splits = Some(splits);
        self
    }

    /// Sets the number of updates of the refit. With 0 the winner stays as it is.
    #[must_use]
    pub fn with_refit(mut self, updates: usize) -> Self {
        self.refit = updates;
        self
    }

    /// Largest number of iterations of a stage.
    pub(crate) fn longest(&self, stage: Stage) -> usize {
        match stage {
            Stage::Plain | Stage::SolvedAgain => LONGEST / STRIDE,
            Stage::Tuned => self.config.max_iterations,
            Stage::Refit => self.refit / self.refit_bunch(STRIDE),
        }
    }

    /// Starts the tuned run from given weights, p×1.
    #[must_use]
    pub fn with_lambda(mut self, lambda: Array2<f64>) -> Self {
        self.given_lambda = Some(lambda);
        self
    }

    /// Starts from given factors.
    #[must_use]
    pub fn with_factors(mut self, given: GivenFactors) -> Self {
        self.given = given;
        self
    }

    /// Sets the outer error, which tunes λ and chooses among the candidates. By default the data
    /// decide.
    #[must_use]
    pub fn with_outer_error(mut self, outer: impl Into<OuterError>) -> Self {
        self.outer = outer.into();
        self
    }

    /// Runs all stages. The seed draws the data that the updates do not see.
    ///
    /// # Errors
    /// Those of [`OuterError::split`] and [`Solver::run`].
    pub fn run(&self, problem: &Problem, seed: u64) -> Result<PracticalOutcome> {
        let outer = self.outer.for_data(problem, self.divergence.as_ref());
        let mut splits = vec![outer.split(problem, seed)?];
        splits.extend(self.further_splits(problem, seed)?);
        let result = self.watched(&splits, problem, None, &mut |_| Vec::new())?;
        Ok(result.expect("nobody interrupts"))
    }

    /// The splits of a problem after the first one, whose seed is given.
    ///
    /// # Errors
    /// Those of [`OuterError::split`].
    pub fn further_splits(&self, problem: &Problem, seed: u64) -> Result<Vec<Problem>> {
        let stored = problem.processes().total(problem.stored() as f64);
        let terms = || self.terms.iter().map(|(_, term)| &term.penalty);
        let alone = stored > MANY_ENTRIES || terms().any(|penalty| penalty.reads_data());
        let by_size = if alone { 1 } else { SPLITS };
        let outer = self.outer.for_data(problem, self.divergence.as_ref());
        // (Seeds far apart from those that users count up.)
        let seeds = (1..self.splits.unwrap_or(by_size) as u64)
            .map(|split| seed.wrapping_add(split.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        seeds.map(|seed| outer.split(problem, seed)).collect()
    }

    /// The same with given splits, an optional checkpoint of the tuned run, and observers of each
    /// stage, which are requested for each solve of a stage. The candidates are those of the first
    /// split. If an observer ends a stage, the inner `Err` has the outcome of the tuned run so far.
    ///
    /// # Errors
    /// Those of [`run`](Self::run).
    ///
    /// # Panics
    /// If there is no split.
    pub fn watched(
        &self,
        splits: &[Problem],
        full: &Problem,
        checkpoint: Option<&Checkpoint>,
        observers: &mut dyn FnMut(Stage) -> Vec<Box<dyn Observer>>,
    ) -> Result<std::result::Result<PracticalOutcome, Box<Outcome>>> {
        let (split, further) = splits.split_first().expect("at least one split");
        let outer = self.outer.for_data(full, self.divergence.as_ref());
        let solver = |config: AltBiConfig, stage: Stage| {
            let mut solver =
                Solver::penalizing(config, self.divergence.clone(), self.terms.clone())
                    .with_factors(self.given.clone());
            if stage != Stage::Refit {
                solver = solver.with_shared_criterion(outer.criterion());
            }
            solver
        };
        let mut watch = |mut solver: Solver, stage: Stage| {
            for observer in observers(stage) {
                solver = solver.observe_boxed(observer);
            }
            solver
        };
        let mut tuned = watch(solver(self.config.clone(), Stage::Tuned), Stage::Tuned)
            .with_other_splits(further.to_vec());
        if let Some(lambda) = &self.given_lambda {
            tuned = tuned.with_lambda(lambda.clone());
        }
        let tuned = match checkpoint {
            Some(checkpoint) => tuned.resume(split, checkpoint)?,
            None => tuned.run(split)?,
        };
        if tuned.stop_reason == StopReason::Interrupted {
            return Ok(Err(Box::new(tuned)));
        }
        let interrupted = |mut tuned: Outcome| {
            tuned.stop_reason = StopReason::Interrupted;
            Ok(Err(Box::new(tuned)))
        };
        // Without penalties the fused engine supports it.
        let plain = Solver::new(self.plain(), self.divergence.clone(), NoPenalty)
            .with_factors(self.given.clone())
            .with_shared_criterion(outer.criterion());
        let (plain, starts) = with_starts(watch(plain, Stage::Plain), split, 0)?;
        let Some(plain) = uninterrupted(plain) else {
            return interrupted(tuned);
        };
        let gain = |outcome: &Outcome| {
            let criterion = outer.criterion();
            // (Made each time, because it may keep data as large as X.)
            RowErrors::new(split, self.divergence.as_ref(), criterion.as_ref())
                .gain(&plain.factors(), &outcome.factors())
        };
        let mut again: Option<(Outcome, Gain)> = None;
        let mut broken = None;
        let mut seconds = tuned.seconds + plain.seconds;
        // After many plain updates the components are apart, which helps at the true rank. But a
        // penalty needs many updates to undo an overfit, and the solve may end before.
        for start in starts {
            let solve = solver(self.again(), Stage::SolvedAgain)
                .with_lambda(tuned.final_lambda())
                .with_factors(start.into());
            let solve = match watch(patient(solve), Stage::SolvedAgain).run(split) {
                // (Its start breaks down. The other one may do.)
                Err(error @ Error::NotFinite { .. }) => {
                    broken = Some(error);
                    continue;
                }
                other => other?,
            };
            let Some(solve) = uninterrupted(solve) else {
                return interrupted(tuned);
            };
            seconds += solve.seconds;
            let of_solve = gain(&solve);
            if again
                .as_ref()
                .is_none_or(|(best, _)| solve.outer_error < best.outer_error)
            {
                again = Some((solve, of_solve));
            }
            if of_solve.exceeds(MARGIN) {
                break;
            }
        }
        let Some((again, of_again)) = again else {
            return Err(broken.expect("the end of plain updates is a start"));
        };
        let outcomes = [
            (Stage::Plain, &plain),
            (Stage::Tuned, &tuned),
            (Stage::SolvedAgain, &again),
        ];
        let gains = [None, Some(gain(&tuned)), Some(of_again)];
        let candidates = [0, 1, 2].map(|index| {
            let (stage, outcome) = outcomes[index];
            Candidate {
                stage,
                outer_error: outcome.outer_error,
                standard_error: gains[index].map(|gain| gain.standard_error),
                iteration: outcome.selected,
            }
        });
        let mut chosen = 0;
        for (index, candidate) in candidates.iter().enumerate() {
            let lower = candidate.outer_error < candidates[chosen].outer_error;
            if lower && gains[index].is_some_and(|gain| gain.exceeds(MARGIN)) {
                chosen = index;
            }
        }
        let winner = outcomes[chosen].1;
        let lambda = match outcomes[chosen].0 {
            Stage::Plain => Array2::zeros(tuned.lambda.raw_dim()),
            // The λ that led to these factors, not the one after the step.
            _ => winner.acting_lambda(),
        };
        let before_refit = winner.factors();
        let mut refit = solver(self.all_entries(outcomes[chosen].0), Stage::Refit)
            .with_factors(before_refit.clone().into())
            .with_criterion(Training)
            .with_lambda(lambda.clone());
        if self.refit == 0 {
            // It is measured on all entries, but not updated.
            refit = refit.observe(|_: &Record, _: &State| Signal::Stop);
        }
        let refit = watch(refit, Stage::Refit).run(full)?;
        if refit.stop_reason == StopReason::Interrupted && self.refit > 0 {
            return interrupted(tuned);
        }
        let outer_error = winner.outer_error;
        let divergence_before_refit = refit.history[0].divergence;
        seconds += refit.seconds;
        let mut outcome = tuned.clone().refitted(refit, lambda, outer_error);
        outcome.seconds = seconds;
        // A breakdown ends only the tuned run. The state before it was a candidate.
        outcome.breakdown = None;
        Ok(Ok(PracticalOutcome {
            outcome,
            candidates: candidates.to_vec(),
            chosen,
            before_refit,
            divergence_before_refit,
        }))
    }
}

//! The preset `practical`: weights that hold on entries the updates never saw.
//!
//! On the training error the best penalty is none, so λ is tuned on held-out entries; and
//! since a penalty does not always help, what it gives is only taken where it beats plain
//! updates stopped in time:
//!
//! 1. **plain**: multiplicative updates without penalty, stopped early;
//! 2. **tuned**: the run that tunes λ by hypergradients, its best iterate;
//! 3. **solved again**: from a start of plain updates, with the final λ kept, stopped
//!    early.
//!
//! Of the three the one with the lowest held-out error is taken. Then the held-out entries
//! come back: from the factors of the candidate, with its λ, a few updates are made on all
//! entries.
//!
//! ```
//! use altbi::practical::{Practical, Stage};
//! use altbi::{Beta, L1, PenaltyTerm, Precision, Problem, Side, Smooth};
//! let x = ndarray::Array2::from_shape_fn((30, 20), |(i, j)| {
//!     2.0 + (0.3 * i as f64).sin() + ((i * 7 + j * 3) % 5) as f64 * 0.1
//! });
//! let problem = Problem::new(&x, Precision::F64)?;
//! let terms = [(Side::W, PenaltyTerm::tuned(Smooth)), (Side::H, PenaltyTerm::tuned(L1))];
//! let result = Practical::new(2, Beta::KL, terms).run(&problem, 0.1, 0)?;
//! assert_eq!(result.candidates.len(), 3);
//! println!("{} wins", result.candidates[result.chosen].stage);
//! # assert!(result.candidates.iter().all(|c| c.stage != Stage::Refit));
//! # Ok::<(), altbi::Error>(())
//! ```

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::config::{AltBiConfig, BunchOver, Exponent, Method, Normalization, Selection};
use crate::criterion::{HeldOut, Training};
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::factors::{Factors, GivenFactors, Side};
use crate::hypergradient::Mode;
use crate::lambda::{LambdaStart, LambdaStep, Scope, Units};
use crate::penalty::{NoPenalty, PenaltyTerm};
use crate::problem::Problem;
use crate::solver::{Checkpoint, Observer, Outcome, Record, Signal, Solver, State, StopReason};

/// Updates of the plain start of "solved again".
pub(crate) const WARM_START: usize = 100;
/// Updates that a solve without tuning may take.
pub(crate) const LONGEST: usize = 1000;
/// Updates without a lower held-out error after which such a solve ends.
pub(crate) const PATIENCE: usize = 50;
/// Updates on all entries at the end.
const REFIT: usize = 20;

/// The parts of the procedure, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Plain updates, stopped early.
    Plain,
    /// The run that tunes λ.
    Tuned,
    /// The final λ, from a start of plain updates.
    SolvedAgain,
    /// The candidate that won, on all entries.
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

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// Where it comes from.
    pub stage: Stage,
    /// Its held-out error E.
    pub outer_error: f64,
    /// The iteration it was found in.
    pub iteration: usize,
}

/// What the procedure gives back.
#[derive(Debug, Clone)]
pub struct PracticalOutcome {
    /// The factors after the refit, with the λ of the winner; history, start and seconds
    /// are those of the tuning run. `outer_error` is the winner's, before the refit (after
    /// it, nothing is held out any more); `divergence` and what follows from it are over
    /// all entries.
    pub outcome: Outcome,
    /// The candidates, in the order of the stages.
    pub candidates: Vec<Candidate>,
    /// Which of them won.
    pub chosen: usize,
    /// The winner's factors, as they were before the refit.
    pub before_refit: Factors,
}

/// Settings and penalties of the procedure.
pub struct Practical {
    /// The settings of the tuning run; the other stages follow from them.
    pub config: AltBiConfig,
    divergence: Arc<dyn Divergence>,
    terms: Vec<(Side, PenaltyTerm)>,
    given: GivenFactors,
    given_lambda: Option<Array2<f64>>,
}

impl Practical {
    /// The preset for a rank.
    pub fn new(
        rank: usize,
        divergence: impl Divergence + 'static,
        terms: impl IntoIterator<Item = (Side, PenaltyTerm)>,
    ) -> Self {
        let divergence: Arc<dyn Divergence> = Arc::new(divergence);
        Self {
            config: settings(rank, divergence.as_ref()),
            divergence,
            terms: terms.into_iter().collect(),
            given: GivenFactors::default(),
            given_lambda: None,
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

    /// Runs all stages, holding out a fraction of the entries.
    ///
    /// # Errors
    /// As [`Problem::speckled`] and [`Solver::run`].
    pub fn run(&self, problem: &Problem, fraction: f64, seed: u64) -> Result<PracticalOutcome> {
        let split = problem.clone().speckled(fraction, seed)?;
        let result = self.watched(&split, problem, None, &mut |_| Vec::new())?;
        Ok(result.expect("nobody interrupts"))
    }

    /// The same with the split given, from a checkpoint of the tuning run if there is
    /// one, and watched: `observers` gives those of each stage. If one of them ends a
    /// stage, the inner `Err` has what the tuned run had come to.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn watched(
        &self,
        split: &Problem,
        full: &Problem,
        checkpoint: Option<&Checkpoint>,
        observers: &mut dyn FnMut(Stage) -> Vec<Box<dyn Observer>>,
    ) -> Result<std::result::Result<PracticalOutcome, Box<Outcome>>> {
        let solver = |config: AltBiConfig, stage: Stage| {
            let mut solver =
                Solver::penalizing(config, self.divergence.clone(), self.terms.clone())
                    .with_factors(self.given.clone());
            if stage != Stage::Refit {
                solver = solver.with_criterion(HeldOut);
            }
            solver
        };
        let mut watch = |mut solver: Solver, stage: Stage| {
            for observer in observers(stage) {
                solver = solver.observe_boxed(observer);
            }
            solver
        };
        let mut tuned = watch(solver(self.config.clone(), Stage::Tuned), Stage::Tuned);
        if let Some(lambda) = &self.given_lambda {
            tuned = tuned.with_lambda(lambda.clone());
        }
        let tuned = match checkpoint {
            Some(checkpoint) => tuned.into_resumed(split, checkpoint),
            None => tuned.into_run(split),
        };
        // A blow-up ends the tuning, not the procedure: what came before it is a candidate.
        let tuned = match tuned {
            Err(Error::NotFinite {
                last: Some(last), ..
            }) => *last,
            other => other?,
        };
        if tuned.stop_reason == StopReason::Interrupted {
            return Ok(Err(Box::new(tuned)));
        }
        let interrupted = |mut tuned: Outcome| {
            tuned.stop_reason = StopReason::Interrupted;
            Ok(Err(Box::new(tuned)))
        };
        // Without penalties: the fused engine can do that.
        let plain = Solver::new(self.plain(), self.divergence.clone(), NoPenalty)
            .with_factors(self.given.clone())
            .with_criterion(HeldOut);
        let plain = patient(watch(plain, Stage::Plain));
        let Some(plain) = plain.run(split)? else {
            return interrupted(tuned);
        };
        let again = solver(self.again(), Stage::SolvedAgain).with_lambda(tuned.final_lambda());
        let Some(again) = patient(watch(again, Stage::SolvedAgain)).run(split)? else {
            return interrupted(tuned);
        };
        let outcomes = [
            (Stage::Plain, &plain),
            (Stage::Tuned, &tuned),
            (Stage::SolvedAgain, &again),
        ];
        let candidates = outcomes.map(|(stage, outcome)| Candidate {
            stage,
            outer_error: outcome.outer_error,
            iteration: outcome.selected,
        });
        let mut chosen = 0;
        for (index, candidate) in candidates.iter().enumerate() {
            if candidate.outer_error < candidates[chosen].outer_error {
                chosen = index;
            }
        }
        let winner = outcomes[chosen].1;
        let lambda = match outcomes[chosen].0 {
            Stage::Plain => Array2::zeros(tuned.lambda.raw_dim()),
            _ => winner.lambda.clone(),
        };
        let before_refit = winner.factors();
        let refit = solver(self.refit(), Stage::Refit)
            .with_factors(GivenFactors {
                w: Some(before_refit.w.clone()),
                h: Some(before_refit.h.clone()),
            })
            .with_criterion(Training)
            .with_lambda(lambda.clone());
        let refit = match watch(refit, Stage::Refit).into_run(full) {
            Err(Error::NotFinite {
                last: Some(last), ..
            }) => *last,
            other => other?,
        };
        if refit.stop_reason == StopReason::Interrupted {
            return interrupted(tuned);
        }
        let outer_error = winner.outer_error;
        let seconds = [&plain, &tuned, &again, &refit].map(|outcome| outcome.seconds);
        let mut outcome = tuned.clone().refitted(refit, lambda, outer_error);
        outcome.seconds = seconds.iter().sum();
        Ok(Ok(PracticalOutcome {
            outcome,
            candidates: candidates.to_vec(),
            chosen,
            before_refit,
        }))
    }

    /// One update of both factors per iteration, the best of them kept.
    fn updates(&self, method: Method) -> AltBiConfig {
        let mut config = self.config.clone();
        config.lambda = LambdaStart::Auto;
        config
            .with_method(method)
            .with_bunch(1)
            .with_max_iterations(LONGEST)
            .with_tolerance(0.0)
            .with_select(Selection::Best)
    }

    fn plain(&self) -> AltBiConfig {
        self.updates(Method::Mu)
            .with_warm_up(0)
            .with_bunch_over(BunchOver::One)
            .with_scope(Scope::Row)
            .with_units(Units::Absolute)
            .with_normalize(Normalization::None)
    }

    fn again(&self) -> AltBiConfig {
        self.updates(Method::Frozen).with_warm_up(WARM_START)
    }

    fn refit(&self) -> AltBiConfig {
        self.updates(Method::Frozen)
            .with_warm_up(0)
            .with_max_iterations(REFIT)
            .with_select(Selection::Last)
    }
}

/// The settings of the tuning run for a rank and a divergence.
pub fn settings(rank: usize, divergence: &dyn Divergence) -> AltBiConfig {
    // With β < 1 and γ = 1 updates overshoot; the errors were 2 to 24 times as large.
    let overshoots = divergence
        .majoriser_powers()
        .is_none_or(|powers| powers.exponent() < 1.0);
    AltBiConfig::new(rank)
        .with_bunch_over(BunchOver::Both)
        .with_bunch(10)
        .with_warm_up(20)
        .with_exponent(if overshoots {
            Exponent::Monotone
        } else {
            Exponent::One
        })
        .with_scope(Scope::Hierarchical(1.0))
        .with_units(Units::Relative)
        .with_lambda_step(LambdaStep::Adam(0.3))
        .with_lambda_min((-9.0f64).exp())
        .with_lambda_max(4.0f64.exp())
        .with_normalize(Normalization::HRms)
        .with_hypergradient(Mode::Adjoint)
        .with_max_iterations(70)
        .with_tolerance(0.0)
        .with_select(Selection::Best)
}

/// `None` if an observer ended the run.
fn finished(outcome: Outcome) -> Option<Outcome> {
    (outcome.stop_reason != StopReason::Interrupted).then_some(outcome)
}

/// A solve that ends when the outer error has not fallen for a while.
pub(crate) struct Patient {
    solver: Solver,
    gave_up: Arc<AtomicBool>,
}

pub(crate) fn patient(solver: Solver) -> Patient {
    let gave_up = Arc::new(AtomicBool::new(false));
    let flag = gave_up.clone();
    let solver = solver.observe(move |record: &Record, state: &State| {
        let best = state.best.as_ref().map_or(0, |best| best.record.iteration);
        if record.iteration > best + PATIENCE {
            flag.store(true, Ordering::SeqCst);
            return Signal::Stop;
        }
        Signal::Continue
    });
    Patient { solver, gave_up }
}

impl Patient {
    /// Runs it; `None` if another observer ended the run.
    pub(crate) fn run(self, problem: &Problem) -> Result<Option<Outcome>> {
        let outcome = match self.solver.into_run(problem) {
            Err(Error::NotFinite {
                last: Some(last), ..
            }) => return Ok(Some(*last)),
            other => other?,
        };
        let by_itself = self.gave_up.load(Ordering::SeqCst);
        Ok(if by_itself {
            Some(outcome)
        } else {
            finished(outcome)
        })
    }
}

impl Solver {
    fn into_run(mut self, problem: &Problem) -> Result<Outcome> {
        self.run(problem)
    }

    fn into_resumed(mut self, problem: &Problem, checkpoint: &Checkpoint) -> Result<Outcome> {
        self.resume(problem, checkpoint)
    }
}

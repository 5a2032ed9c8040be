//! The outer loop.

use std::sync::Arc;
use std::time::Instant;

use ndarray::Array2;

use super::checkpoint::Resumed;
use super::iteration::{Engines, Workspace, not_finite};
use super::{Checkpoint, Observer, Outcome, Record, Signal, StopReason, Stopping, StoppingRule};
use crate::config::{AltBiConfig, Selection};
use crate::criterion::{Criterion, Training};
use crate::device::Device;
use crate::divergence::Divergence;
use crate::engine::EngineUsed;
use crate::error::{CheckpointFault, Error, Result};
use crate::factors::{Factors, GivenFactors, Side};
use crate::lambda::{LambdaShare, StepRule};
use crate::penalty::{Penalty, PenaltyTerm};
use crate::problem::{Problem, ToMatrix};
use crate::threads::in_own_pool;

/// A solver: settings and plug-ins, ready to run.
///
/// Made by [`AltBiConfig::solver`].
pub struct Solver {
    pub(super) config: AltBiConfig,
    pub(super) divergence: Arc<dyn Divergence>,
    /// Penalties of W.
    pub(super) terms: Vec<PenaltyTerm>,
    /// Penalties of H.
    pub(super) terms_of_h: Vec<PenaltyTerm>,
    pub(super) criterion: Arc<dyn Criterion>,
    pub(super) given: GivenFactors,
    pub(super) given_lambda: Option<Array2<f64>>,
    pub(super) observers: Vec<Box<dyn Observer>>,
    pub(super) step_rule: Arc<dyn StepRule>,
    /// True if the tolerance can end the run.
    stops: bool,
    patience: Option<usize>,
    stopping_rule: Option<Arc<dyn StoppingRule>>,
    device: Device,
    /// True if D is computed in every iteration.
    pub(super) measures: bool,
    /// Other splits of the data, which tune λ in turn with the problem.
    pub(super) other_splits: Vec<Problem>,
}

/// The state of a run between two iterations.
///
/// # Shapes
/// W n×r, H r×m, λ n×1 (p×1 where there are p weights, one penalty after another, W's first).
#[derive(Debug, Clone)]
pub struct State {
    /// Iterations done.
    pub iteration: usize,
    /// W and H.
    pub factors: Factors,
    /// λ.
    pub lambda: Array2<f64>,
    /// The record of the last iteration.
    pub record: Record,
    /// D at the start, the unit of the stopping rule.
    pub divergence_at_start: f64,
    /// The iterate with the lowest outer error so far, with [`Selection::Best`].
    pub best: Option<Arc<Best>>,
    /// Memory of the λ step ([`StepRule`]).
    pub memory: Array2<f64>,
    /// W and H of the other splits.
    pub(super) other_splits: Vec<Factors>,
    /// The rows and weights of this process, if several share the run.
    pub(super) share: Option<Arc<LambdaShare>>,
}

/// A saved iterate.
///
/// # Shapes
/// W n×r, H r×m, λ n×1.
#[derive(Debug, Clone)]
pub struct Best {
    /// W and H.
    pub factors: Factors,
    /// λ after the iteration's step.
    pub lambda: Array2<f64>,
    /// λ that led to these factors: the one before the step.
    pub acted: Array2<f64>,
    /// Its record, with the iteration.
    pub record: Record,
}

impl State {
    /// The state with the rows and weights of all processes, on process 0. All processes must call
    /// this together. With one process it is a copy.
    pub fn gathered(&self) -> Option<Self> {
        let Some(share) = &self.share else {
            return Some(self.clone());
        };
        let rows = share.rows();
        let best = self.best.as_ref().map(|best| {
            let w = rows.gather(&best.factors.w);
            let [lambda, acted] = [&best.lambda, &best.acted].map(|of| share.gather(of));
            Some(Arc::new(Best {
                factors: Factors {
                    w: w?,
                    h: best.factors.h.clone(),
                },
                lambda: lambda?,
                acted: acted?,
                record: best.record.clone(),
            }))
        });
        let gathered = |of: &Factors| {
            let (w, h) = (rows.gather(&of.w), of.h.clone());
            Some(Factors { w: w?, h })
        };
        // (All processes gather everything, even if only the first one gets it.)
        let other_splits: Vec<Option<Factors>> = self.other_splits.iter().map(gathered).collect();
        let w = rows.gather(&self.factors.w);
        let [lambda, memory] = [&self.lambda, &self.memory].map(|of| share.gather(of));
        Some(Self {
            factors: Factors {
                w: w?,
                h: self.factors.h.clone(),
            },
            lambda: lambda?,
            memory: memory?,
            other_splits: other_splits.into_iter().collect::<Option<_>>()?,
            best: match best {
                Some(best) => Some(best?),
                None => None,
            },
            share: None,
            record: self.record.clone(),
            ..*self
        })
    }

    /// The rows and weights of one process, from the state of all.
    pub(super) fn cut(self, share: &Arc<LambdaShare>) -> Self {
        if !share.rows().is_split() {
            return self;
        }
        let factors = |of: &Factors| Factors {
            w: share.rows().cut(&of.w),
            h: of.h.clone(),
        };
        Self {
            factors: factors(&self.factors),
            lambda: share.cut(&self.lambda),
            memory: share.cut(&self.memory),
            other_splits: self.other_splits.iter().map(factors).collect(),
            best: self.best.map(|best| {
                Arc::new(Best {
                    factors: factors(&best.factors),
                    lambda: share.cut(&best.lambda),
                    acted: share.cut(&best.acted),
                    record: best.record.clone(),
                })
            }),
            share: Some(share.clone()),
            ..self
        }
    }

    /// Refuses errors that are not finite. D is checked only if it is `measured`.
    pub(super) fn check_errors(&self, measured: bool) -> Result<()> {
        for (quantity, error, counts) in [
            ("divergence", self.record.divergence, measured),
            ("the outer error", self.record.outer_error, true),
        ] {
            if counts && !error.is_finite() {
                return Err(not_finite(quantity, self.iteration));
            }
        }
        Ok(())
    }

    /// Keeps this iterate if no earlier one has a lower outer error; `acted` is the λ that
    /// led to it.
    pub(super) fn remember(&mut self, select: Selection, acted: &Array2<f64>) {
        let record = &self.record;
        let beaten = |best: &Arc<Best>| best.record.outer_error <= record.outer_error;
        if select == Selection::Best && !self.best.as_ref().is_some_and(beaten) {
            self.best = Some(Arc::new(Best {
                factors: self.factors.clone(),
                lambda: self.lambda.clone(),
                acted: acted.clone(),
                record: record.clone(),
            }));
        }
    }

    /// Copies a state of the same shape without allocating.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.iteration = other.iteration;
        self.factors.w.assign(&other.factors.w);
        self.factors.h.assign(&other.factors.h);
        self.lambda.assign(&other.lambda);
        self.record.clone_from(&other.record);
        self.divergence_at_start = other.divergence_at_start;
        self.best.clone_from(&other.best);
        self.memory.assign(&other.memory);
        for (own, other) in self.other_splits.iter_mut().zip(&other.other_splits) {
            own.w.assign(&other.w);
            own.h.assign(&other.h);
        }
    }
}

impl Solver {
    pub(crate) fn new(
        config: AltBiConfig,
        divergence: impl Divergence + 'static,
        penalty: impl Penalty + 'static,
    ) -> Self {
        Self::penalizing(config, divergence, [(Side::W, PenaltyTerm::tuned(penalty))])
    }

    pub(crate) fn penalizing(
        config: AltBiConfig,
        divergence: impl Divergence + 'static,
        terms: impl IntoIterator<Item = (Side, PenaltyTerm)>,
    ) -> Self {
        let (of_w, of_h): (Vec<_>, Vec<_>) =
            terms.into_iter().partition(|(side, _)| *side == Side::W);
        let bare = |terms: Vec<(Side, PenaltyTerm)>| terms.into_iter().map(|(_, term)| term);
        Self {
            step_rule: Arc::new(config.lambda_step),
            config,
            divergence: Arc::new(divergence),
            terms: bare(of_w).collect(),
            terms_of_h: bare(of_h).collect(),
            criterion: Arc::new(Training),
            given: GivenFactors::default(),
            given_lambda: None,
            observers: Vec::new(),
            stops: true,
            patience: None,
            stopping_rule: None,
            device: Device::default(),
            measures: true,
            other_splits: Vec::new(),
        }
    }

    /// Adds another penalty on W, with a weight of its own.
    #[must_use]
    pub fn with_term(mut self, term: PenaltyTerm) -> Self {
        self.terms.push(term);
        self
    }

    /// Tunes λ for another outer error.
    #[must_use]
    pub fn with_criterion(mut self, criterion: impl Criterion + 'static) -> Self {
        self.criterion = Arc::new(criterion);
        self
    }

    /// The same with a value that is chosen at run time.
    #[must_use]
    pub fn with_shared_criterion(mut self, criterion: Arc<dyn Criterion>) -> Self {
        self.criterion = criterion;
        self
    }

    /// Replaces the configured rule for the steps of λ.
    #[must_use]
    pub fn with_lambda_step(mut self, rule: impl StepRule + 'static) -> Self {
        self.step_rule = Arc::new(rule);
        self
    }

    /// Starts from given factors instead of random ones.
    #[must_use]
    pub fn with_factors(mut self, given: GivenFactors) -> Self {
        self.given = given;
        self
    }

    /// Starts from a given λ, n×1 (p×1 for p weights), instead of the configured one.
    #[must_use]
    pub fn with_lambda(mut self, lambda: Array2<f64>) -> Self {
        self.given_lambda = Some(lambda);
        self
    }

    /// Sets the device on which [`fit`](Self::fit) computes and which holds the outcome's tensors,
    /// for example your own Burn device. (A [`Problem`] has a [device](Problem::on) of its own.)
    #[must_use]
    pub fn on(mut self, device: impl Into<Device>) -> Self {
        self.device = device.into();
        self
    }

    /// Adds an observer.
    #[must_use]
    pub fn observe(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// The same with a value that is chosen at run time.
    #[must_use]
    pub fn observe_boxed(mut self, observer: Box<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Ignores the tolerance: only the last iteration or an observer ends the run. (A tolerance of
    /// 0 would still end a run whose divergence does not change by a single bit.)
    #[must_use]
    pub fn to_the_last_iteration(mut self) -> Self {
        self.stops = false;
        self
    }

    /// Ends the run when the outer error has not fallen for this many iterations. It needs
    /// [`Selection::Best`].
    #[must_use]
    pub fn with_patience(mut self, iterations: usize) -> Self {
        self.patience = Some(iterations);
        self
    }

    /// Replaces tolerance and patience by another stopping rule. The last iteration still ends the
    /// run.
    #[must_use]
    pub fn with_stopping(mut self, rule: impl StoppingRule + 'static) -> Self {
        self.stopping_rule = Some(Arc::new(rule));
        self.stops = false;
        self.patience = None;
        self
    }

    /// Tunes λ on other splits of the data as well. They take turns: each iteration makes a bunch of
    /// one split, with factors of its own, and then a λ step. Records and results are those of the
    /// problem that is run.
    #[must_use]
    pub(crate) fn with_other_splits(mut self, other_splits: Vec<Problem>) -> Self {
        self.other_splits = other_splits;
        self
    }

    /// The built-in stopping rule of the run.
    pub fn stopping(&self) -> Stopping {
        Stopping {
            tolerance: self.stops.then_some(self.config.tolerance),
            patience: self.patience,
            limit: self.config.max_iterations,
        }
    }

    /// Computes only the outer error in every iteration, for solves that it stops. D and the
    /// objective are then NaN in all records but the first.
    pub(crate) fn by_outer_error(mut self) -> Self {
        self.measures = false;
        self
    }

    /// The settings.
    pub fn config(&self) -> &AltBiConfig {
        &self.config
    }

    /// Factorises a matrix.
    ///
    /// # Errors
    /// Those of [`Problem::new`] and [`run`](Self::run), and the error of a breakdown.
    ///
    /// # Shapes
    /// `x` is n×m.
    pub fn fit(&mut self, x: &(impl ToMatrix + ?Sized)) -> Result<Outcome> {
        let problem = Problem::new(x, self.config.precision)?.on(self.device.clone());
        let mut outcome = self.run(&problem)?;
        match outcome.breakdown.take().and_then(Arc::into_inner) {
            Some(breakdown) => Err(breakdown),
            None => Ok(outcome),
        }
    }

    /// Factorises a checked problem: [`init`](Self::init), then [`step`](Self::step) until the
    /// stopping rule or an observer ends the run.
    ///
    /// A run breaks down if a number becomes non-finite or the hypergradient's mode refuses during
    /// the run. It then returns the state before the breakdown: see [`Outcome::breakdown`].
    ///
    /// # Errors
    /// Those of [`init`](Self::init); [`Error::ModeUnsupported`].
    pub fn run(&mut self, problem: &Problem) -> Result<Outcome> {
        problem.processes().agree(self.check(problem))?;
        self.on_threads(problem, |solver| {
            let (mut engine, used) = problem.processes().agree(solver.engine(problem))?;
            let mut state = solver.start(problem, engine.as_mut())?;
            let other_splits = solver.split_engines()?;
            for (split, engine) in solver.other_splits.iter().zip(&other_splits) {
                state
                    .other_splits
                    .push(solver.first_factors(split, engine.as_ref())?);
            }
            let used = solver.compared(problem, used, &state)?;
            let story = Resumed {
                lambda_at_start: state.lambda.clone(),
                history: vec![state.record.clone()],
                state,
            };
            if solver.notify(problem, &story.state) == Signal::Stop {
                return solver.outcome(problem, story, StopReason::Interrupted, None, used);
            }
            solver.go_on(problem, story, (engine, other_splits), used)
        })
    }

    /// Goes on from a [`Checkpoint`](super::Checkpoint). The result has the same bits as that of an
    /// uninterrupted run, except for the seconds.
    ///
    /// # Errors
    /// Those of [`run`](Self::run), [`Error::Shape`] for a checkpoint of another problem, and
    /// [`CheckpointFault::OtherSettings`] for one without the memory of the λ step.
    pub fn resume(&mut self, problem: &Problem, checkpoint: &Checkpoint) -> Result<Outcome> {
        problem.processes().agree(self.check(problem))?;
        let mut story = checkpoint.restore(problem)?;
        let share = self.lambda_share(problem);
        let whole = share.whole_layout();
        // A step with a memory cannot go on without it.
        if self.memory_of(&whole).dim() != story.state.memory.dim()
            || self.other_splits.len() != story.state.other_splits.len()
        {
            return Err(CheckpointFault::OtherSettings.into());
        }
        let weights = whole.len();
        Error::require_shape("λ", story.state.lambda.dim(), [weights, 1])?;
        story.state = story.state.cut(&share);
        story.lambda_at_start = share.cut(&story.lambda_at_start);
        self.on_threads(problem, |solver| {
            let (engine, used) = problem.processes().agree(solver.engine(problem))?;
            let other_splits = solver.split_engines()?;
            let used = solver.compared(problem, used, &story.state)?;
            solver.go_on(problem, story, (engine, other_splits), used)
        })
    }

    /// Number of threads.
    pub(super) fn threads(&self) -> usize {
        match self.config.threads {
            0 => rayon::current_num_threads(),
            threads => threads,
        }
    }

    /// Runs work inside a thread pool, where distributing tasks costs little. (A small problem uses
    /// one thread and needs no pool.)
    pub(super) fn on_threads<R: Send>(
        &mut self,
        problem: &Problem,
        work: impl FnOnce(&mut Self) -> Result<R> + Send,
    ) -> Result<R> {
        let alone = self.threads() == 1 && problem.is_small();
        if alone || rayon::current_thread_index().is_some() {
            return work(self);
        }
        in_own_pool(self.threads(), || work(self))?
    }

    pub(super) fn go_on(
        &mut self,
        problem: &Problem,
        mut story: Resumed,
        engines: Engines,
        used: EngineUsed,
    ) -> Result<Outcome> {
        let mut workspace = Workspace::new(engines, self.lambda_share(problem), &story.state);
        // The capacity is enough for the history of most runs, so that iterations allocate nothing.
        story
            .history
            .reserve(self.config.max_iterations.min(1 << 14));
        let (stopping, clock) = (self.stopping(), Instant::now());
        let own = self.stopping_rule.clone();
        let own = own.as_deref();
        let seconds_before = story.state.record.seconds;
        let mut interrupted = false;
        let (reason, breakdown) = loop {
            let state = &story.state;
            let best = state.best.as_ref().map(|best| best.record.iteration);
            if state.iteration > 0
                && let Some(reason) = own
                    .and_then(|rule| rule.reason(&state.record, best))
                    .or_else(|| stopping.reason(&state.record, best))
            {
                break (reason, None);
            }
            if interrupted {
                break (StopReason::Interrupted, None);
            }
            match self.advance(problem, state, &mut workspace) {
                Ok(()) => std::mem::swap(&mut story.state, &mut workspace.next),
                // A mode that cannot do this at all refuses in the first iteration.
                Err(refusal @ (Error::ModeUnsupported { .. } | Error::NotSplit { .. })) => {
                    return problem.processes().agree(Err(refusal));
                }
                Err(error @ Error::NotFinite { .. }) => break (StopReason::NotFinite, Some(error)),
                Err(refusal) => break (StopReason::Refused, Some(refusal)),
            }
            story.state.record.seconds = seconds_before + clock.elapsed().as_secs_f64();
            story.history.push(story.state.record.clone());
            interrupted = self.notify(problem, &story.state) == Signal::Stop;
        };
        // (The results are measured without the memory of the iterations.)
        drop(workspace);
        self.outcome(problem, story, reason, breakdown, used)
    }

    /// Shows a state to all observers. If one of them wants to stop, on any process, all processes
    /// stop.
    fn notify(&mut self, problem: &Problem, state: &State) -> Signal {
        let mut stop = false;
        for observer in &mut self.observers {
            stop |= observer.iterated(&state.record, state) == Signal::Stop;
        }
        match problem.processes().any(stop) {
            true => Signal::Stop,
            false => Signal::Continue,
        }
    }

    fn outcome(
        &self,
        problem: &Problem,
        story: Resumed,
        reason: StopReason,
        breakdown: Option<Error>,
        used: EngineUsed,
    ) -> Result<Outcome> {
        let rules = self.rules()?;
        let (config, share) = (&self.config, self.lambda_share(problem));
        let layout = self.layout(problem);
        let mut outcome = Outcome::new(problem, rules, config, layout, story, reason, used);
        outcome.share = share.rows().is_split().then_some(share);
        outcome.breakdown = breakdown.map(Arc::new);
        Ok(outcome)
    }
}

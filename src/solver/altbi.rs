//! The loop itself.

use std::sync::Arc;
use std::time::Instant;

use burn::tensor::Tensor;
use ndarray::Array2;

use super::checkpoint::Resumed;
use super::stopping::stop_reason;
use super::{Checkpoint, Observer, Outcome, Record, Signal, StopReason};
use crate::config::AltBiConfig;
use crate::criterion::{Criterion, Training};
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::factors::{Factors, GivenFactors};
use crate::penalty::{Penalty, PenaltyTerm};
use crate::problem::{Problem, ToMatrix};

/// Settings and plug-ins, ready to run.
///
/// Made by [`AltBiConfig::solver`].
pub struct Solver {
    pub(super) config: AltBiConfig,
    pub(super) divergence: Arc<dyn Divergence>,
    pub(super) terms: Vec<PenaltyTerm>,
    pub(super) criterion: Arc<dyn Criterion>,
    pub(super) given: GivenFactors,
    pub(super) given_lambda: Option<Array2<f64>>,
    pub(super) observers: Vec<Box<dyn Observer>>,
}

/// Where a run stands between two iterations.
///
/// # Shapes
/// W n×r, H r×m, λ n×1.
#[derive(Debug, Clone)]
pub struct State {
    /// Iterations done.
    pub iteration: usize,
    /// W and H.
    pub factors: Factors,
    /// λ.
    pub lambda: Tensor<2>,
    /// The record of the last iteration.
    pub record: Record,
    /// D at the start, the unit of the stopping rule.
    pub divergence_at_start: f64,
}

impl Solver {
    pub(crate) fn new(
        config: AltBiConfig,
        divergence: impl Divergence + 'static,
        penalty: impl Penalty + 'static,
    ) -> Self {
        Self {
            config,
            divergence: Arc::new(divergence),
            terms: vec![PenaltyTerm::tuned(penalty)],
            criterion: Arc::new(Training),
            given: GivenFactors::default(),
            given_lambda: None,
            observers: Vec::new(),
        }
    }

    /// Adds another penalty on W, with a weight of its own
    /// ([`PenaltyTerm::fixed`], [`PenaltyTerm::fixed_rows`]). A second tuned term
    /// is refused when the run starts.
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

    /// Starts from given factors instead of random ones.
    #[must_use]
    pub fn with_factors(mut self, given: GivenFactors) -> Self {
        self.given = given;
        self
    }

    /// Starts from a given λ, n×1, instead of the configured one.
    #[must_use]
    pub fn with_lambda(mut self, lambda: Array2<f64>) -> Self {
        self.given_lambda = Some(lambda);
        self
    }

    /// Adds an observer.
    #[must_use]
    pub fn observe(mut self, observer: impl Observer + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// The settings.
    pub fn config(&self) -> &AltBiConfig {
        &self.config
    }

    /// Factorises a matrix.
    ///
    /// # Errors
    /// What [`Problem::new`] and [`run`](Self::run) refuse.
    ///
    /// # Shapes
    /// `x` is n×m.
    pub fn fit(&mut self, x: &(impl ToMatrix + ?Sized)) -> Result<Outcome> {
        let problem = Problem::new(x, self.config.precision)?;
        self.run(&problem)
    }

    /// Factorises a checked problem: [`init`](Self::init), then
    /// [`step`](Self::step) until the stopping rule or an observer says so.
    ///
    /// # Errors
    /// What `init` refuses; [`Error::NotFinite`] with the last finite state if a
    /// number blows up; [`Error::Stopped`] with the last state if the
    /// hypergradient's mode refuses on the way.
    pub fn run(&mut self, problem: &Problem) -> Result<Outcome> {
        let state = self.init(problem)?;
        let story = Resumed {
            lambda_at_start: state.lambda.to_matrix()?,
            history: vec![state.record.clone()],
            state,
        };
        if self.notify(&story.state) == Signal::Stop {
            return self.outcome(problem, story, StopReason::Interrupted);
        }
        self.go_on(problem, story)
    }

    /// Goes on from a [`Checkpoint`](super::Checkpoint) as if nothing had
    /// happened: the result is the same to the bit (but for the seconds).
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Error::Shape`] for a checkpoint of another
    /// problem.
    pub fn resume(&mut self, problem: &Problem, checkpoint: &Checkpoint) -> Result<Outcome> {
        self.config.check()?;
        problem.check_domain(self.divergence.as_ref())?;
        self.criterion.check(problem.rows())?;
        let story = checkpoint.restore(problem)?;
        self.go_on(problem, story)
    }

    fn go_on(&mut self, problem: &Problem, mut story: Resumed) -> Result<Outcome> {
        let clock = Instant::now();
        let seconds_before = story.state.record.seconds;
        let mut interrupted = false;
        let reason = loop {
            let state = &story.state;
            if state.iteration > 0
                && let Some(reason) = stop_reason(
                    state.record.relative_change,
                    self.config.tolerance,
                    state.iteration,
                    self.config.max_iterations,
                )
            {
                break reason;
            }
            if interrupted {
                break StopReason::Interrupted;
            }
            match self.step(problem, state) {
                Ok(next) => story.state = next,
                Err(Error::NotFinite {
                    iteration,
                    quantity,
                    ..
                }) => {
                    let last = self.outcome(problem, story, StopReason::NotFinite)?;
                    return Err(Error::NotFinite {
                        iteration,
                        quantity,
                        last: Some(Box::new(last)),
                    });
                }
                // What the mode can never do, it refuses in the first iteration.
                Err(refusal @ Error::ModeUnsupported { .. }) => return Err(refusal),
                Err(source) => {
                    let iteration = story.state.iteration + 1;
                    let last = self.outcome(problem, story, StopReason::Refused)?;
                    return Err(Error::Stopped {
                        iteration,
                        source: Box::new(source),
                        last: Box::new(last),
                    });
                }
            }
            story.state.record.seconds = seconds_before + clock.elapsed().as_secs_f64();
            story.history.push(story.state.record.clone());
            interrupted = self.notify(&story.state) == Signal::Stop;
        };
        self.outcome(problem, story, reason)
    }

    fn notify(&mut self, state: &State) -> Signal {
        let mut signal = Signal::Continue;
        for observer in &mut self.observers {
            if observer.iterated(&state.record, state) == Signal::Stop {
                signal = Signal::Stop;
            }
        }
        signal
    }

    fn outcome(&self, problem: &Problem, story: Resumed, reason: StopReason) -> Result<Outcome> {
        let (_, rule_of_h) = self.rules()?;
        Outcome::new(problem, rule_of_h, &self.config, story, reason)
    }
}

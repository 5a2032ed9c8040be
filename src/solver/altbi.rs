//! The loop itself.

use std::sync::Arc;
use std::time::Instant;

use burn::tensor::Tensor;
use ndarray::Array2;

use super::checkpoint::Resumed;
use super::history::median;
use super::stopping::{relative_change, stop_reason};
use super::{Checkpoint, Observer, Outcome, Record, Signal, StopReason};
use crate::bunch::Bunch;
use crate::config::{AltBiConfig, Exponent, Method, Normalization};
use crate::criterion::{Criterion, Training, weighted_divergence};
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::factors::{Factors, GivenFactors};
use crate::lambda::{LambdaStart, balanced_lambda};
use crate::numerics::to_host;
use crate::penalty::{Penalty, PenaltyTerm};
use crate::problem::{Problem, ToMatrix};
use crate::update::Rule;

/// λ of P-MU where none is given: the paper's.
const PENALIZED_MU_LAMBDA: f64 = 0.5;

/// Settings and plug-ins, ready to run.
///
/// Made by [`AltBiConfig::solver`].
pub struct Solver {
    config: AltBiConfig,
    divergence: Arc<dyn Divergence>,
    terms: Vec<PenaltyTerm>,
    criterion: Arc<dyn Criterion>,
    given: GivenFactors,
    given_lambda: Option<Array2<f64>>,
    observers: Vec<Box<dyn Observer>>,
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

    /// The state before the first iteration.
    ///
    /// # Errors
    /// [`Error::Setting`], [`Error::Conflict`] and [`Error::NoMonotoneExponent`]
    /// for settings; [`Error::OutsideDomain`] for data that the divergence cannot
    /// measure; [`Error::Rank`], [`Error::Shape`], [`Error::NegativeEntry`] and
    /// [`Error::NotFiniteEntry`] for a start that does not fit.
    pub fn init(&self, problem: &Problem) -> Result<State> {
        self.config.check()?;
        problem.check_domain(self.divergence.as_ref())?;
        self.criterion.check(problem.rows())?;
        let (rule, _) = self.rules()?;
        let AltBiConfig {
            rank,
            initial,
            seed,
            ..
        } = self.config;
        let drawn = Factors::start(problem, rank, initial, seed, &self.given)?;
        // Before λ is balanced: its scale is that of the factors the loop will see.
        let factors = self.normalized(drawn);
        let lambda = self.initial_lambda(problem, &rule, &factors)?;
        let lambda = settled(problem, "λ", 0, &lambda)?;
        let mut state = State {
            iteration: 0,
            factors,
            lambda,
            record: Record {
                iteration: 0,
                divergence: f64::NAN,
                objective: f64::NAN,
                outer_error: f64::NAN,
                relative_change: f64::NAN,
                lambda_min: f64::NAN,
                lambda_median: f64::NAN,
                lambda_max: f64::NAN,
                hypergradient_norm: f64::NAN,
                seconds: 0.0,
            },
            divergence_at_start: f64::NAN,
        };
        let bunch = self.bunch(problem, &rule, &state.factors.h);
        let outer_error = sum(&bunch.outer_errors(&state.factors.w));
        self.measure(problem, &rule, &mut state, outer_error, f64::NAN);
        state.divergence_at_start = state.record.divergence;
        finite("divergence", 0, &[state.record.divergence])?;
        Ok(state)
    }

    /// One outer iteration.
    ///
    /// # Errors
    /// [`Error::NotFinite`] (without a last state: the caller has it), and what
    /// the hypergradient's mode refuses.
    pub fn step(&self, problem: &Problem, state: &State) -> Result<State> {
        let iteration = state.iteration + 1;
        let (rule, rule_of_h) = self.rules()?;

        // 1. H, by the same rule on the transposed problem.
        let transposed = rule_of_h.update(
            problem.columns(),
            &state.factors.h.clone().transpose(),
            &state.factors.w.clone().transpose(),
            &state.lambda,
        );
        // 2. The scale of the factors.
        let factors = self.normalized(Factors {
            w: state.factors.w.clone(),
            h: transposed.transpose(),
        });
        let factors = Factors {
            w: settled(problem, "W", iteration, &factors.w)?,
            h: settled(problem, "H", iteration, &factors.h)?,
        };

        // 3. The bunch and 4. its hypergradient.
        let bunch = self.bunch(problem, &rule, &factors.h);
        let (w, outer_error, gradient) = if self.config.method == Method::AltBi {
            let mode = self.config.hypergradient;
            let end = bunch.hypergradient(&factors.w, &state.lambda, mode)?;
            (end.w, end.outer_error, Some(end.gradient))
        } else {
            let w = bunch.run(&factors.w, &state.lambda);
            let outer_error = sum(&bunch.outer_errors(&w));
            (w, outer_error, None)
        };
        let w = settled(problem, "W", iteration, &w)?;

        // 5. The projected λ step.
        let (lambda, norm) = match gradient {
            Some(gradient) => {
                let values = to_host(&gradient);
                finite("hypergradient", iteration, &values)?;
                let (step, max) = (self.config.lambda_step, self.config.lambda_max);
                let lambda = step.apply(&state.lambda, &gradient, iteration, max);
                (lambda, values.iter().map(|g| g * g).sum::<f64>().sqrt())
            }
            None => (state.lambda.clone(), 0.0),
        };
        let lambda = settled(problem, "λ", iteration, &lambda)?;

        // 6. The record.
        let mut next = State {
            iteration,
            factors: Factors { w, h: factors.h },
            lambda,
            record: state.record.clone(),
            divergence_at_start: state.divergence_at_start,
        };
        self.measure(problem, &rule, &mut next, outer_error, norm);
        finite("divergence", iteration, &[next.record.divergence])?;
        Ok(next)
    }

    /// The rules for W and for H, which carries no penalty.
    fn rules(&self) -> Result<(Rule, Rule)> {
        let mut of_w = Rule::new(self.divergence.clone(), self.terms.clone());
        let mut of_h = Rule::new(self.divergence.clone(), Vec::new());
        of_w.check()?;
        if self.config.exponent == Exponent::Monotone {
            // Before the tuned term goes: a baseline without it must differ from
            // AltBi in λ alone, not in γ as well.
            of_w = of_w.monotone()?;
            of_h = of_h.monotone()?;
        }
        if matches!(self.config.method, Method::Mu | Method::MuT) {
            of_w.terms.retain(|term| !term.is_tuned());
        }
        Ok((of_w, of_h))
    }

    /// The bunch of one iteration; `init` has checked its parts.
    fn bunch(&self, problem: &Problem, rule: &Rule, h: &Tensor<2>) -> Bunch {
        Bunch {
            rule: rule.clone(),
            observed: problem.rows().clone(),
            other: h.clone(),
            criterion: self.criterion.clone(),
            length: self.config.updates_of_w(),
        }
    }

    fn initial_lambda(
        &self,
        problem: &Problem,
        rule: &Rule,
        factors: &Factors,
    ) -> Result<Tensor<2>> {
        let [n, _] = problem.shape();
        let all = |value: f64| problem.tensor("λ", &Array2::from_elem((n, 1), value), [n, 1]);
        let given = self.given_lambda.is_some() || self.config.lambda != LambdaStart::Auto;
        if given && matches!(self.config.method, Method::Mu | Method::MuT) {
            return Err(Error::Conflict {
                first: "a given λ",
                second: "a method without penalty (mu, mu-t)",
                reason: "they are defined by λ = 0; p-mu and frozen keep a given λ",
            });
        }
        if let Some(lambda) = &self.given_lambda {
            let lambda = problem.tensor("λ", lambda, [n, 1])?;
            return Ok(lambda.clamp_max(self.config.lambda_max));
        }
        let start = match (self.config.lambda, self.config.method) {
            (LambdaStart::Value(value), _) => all(value),
            (LambdaStart::Auto, Method::Mu | Method::MuT) => all(0.0),
            (LambdaStart::Auto, Method::PenalizedMu) => all(PENALIZED_MU_LAMBDA),
            (LambdaStart::Auto, Method::AltBi | Method::Frozen) => Ok(balanced_lambda(
                rule,
                problem.rows(),
                &factors.w,
                &factors.h,
            )),
        }?;
        Ok(start.clamp_max(self.config.lambda_max))
    }

    /// Rows of H to sum 1, columns of W scaled in return, so that WH stays.
    fn normalized(&self, factors: Factors) -> Factors {
        match self.config.normalize {
            Normalization::None => factors,
            Normalization::HRows => {
                let sums = factors.h.clone().sum_dim(1);
                // A row that died stays as it is.
                let dead = sums.clone().equal_elem(0.0);
                let sums = sums.mask_fill(dead, 1.0);
                Factors {
                    w: factors.w * sums.clone().transpose(),
                    h: factors.h / sums,
                }
            }
        }
    }

    fn measure(
        &self,
        problem: &Problem,
        rule: &Rule,
        state: &mut State,
        outer_error: f64,
        hypergradient_norm: f64,
    ) {
        let observed = problem.rows();
        let y = rule.reconstruct(&state.factors.w, &state.factors.h);
        let divergence = self.divergence.as_ref();
        let distances = weighted_divergence(divergence, &observed.x, observed.mask.as_ref(), &y);
        let divergence = sum(&distances);
        let penalty = sum(&rule.penalty(&state.factors.w, &state.lambda));
        let lambda = to_host(&state.lambda);
        let before = &state.record;
        let change = if state.iteration == 0 {
            f64::NAN
        } else {
            relative_change(divergence, before.divergence, state.divergence_at_start)
        };
        state.record = Record {
            iteration: state.iteration,
            divergence,
            objective: divergence + penalty,
            outer_error,
            relative_change: change,
            lambda_min: lambda.iter().copied().fold(f64::INFINITY, f64::min),
            lambda_median: median(&lambda),
            lambda_max: lambda.iter().copied().fold(0.0, f64::max),
            hypergradient_norm,
            seconds: before.seconds,
        };
    }

    fn outcome(&self, problem: &Problem, story: Resumed, reason: StopReason) -> Result<Outcome> {
        let (_, rule_of_h) = self.rules()?;
        Outcome::new(problem, rule_of_h, &self.config, story, reason)
    }
}

fn sum(column: &Tensor<2>) -> f64 {
    to_host(column).iter().sum()
}

/// A new state's tensor: checked to be finite, and laid out row by row whatever
/// the operations before it left behind, so that a state read back from a
/// checkpoint is the same in every bit and in every sum over it.
fn settled(
    problem: &Problem,
    quantity: &'static str,
    iteration: usize,
    tensor: &Tensor<2>,
) -> Result<Tensor<2>> {
    let values = to_host(tensor);
    finite(quantity, iteration, &values)?;
    Ok(problem.tensor_of(values, tensor.dims()))
}

fn finite(quantity: &'static str, iteration: usize, values: &[f64]) -> Result<()> {
    if values.iter().all(|value| value.is_finite()) {
        Ok(())
    } else {
        Err(Error::NotFinite {
            iteration,
            quantity,
            last: None,
        })
    }
}

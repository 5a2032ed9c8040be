//! The engine of a run, and the state before its first iteration.

use ndarray::Array2;

use super::iteration::{finite, measure};
use super::{Record, Solver, State};
use crate::config::{AltBiConfig, Method};
use crate::engine::{Autodiff, Engine, EngineChoice, EngineUsed, FusedEngine, Plan, agreement};
use crate::error::{Error, Result};
use crate::factors::{Factors, check_rank};
use crate::hypergradient::Mode;
use crate::lambda::{LambdaStart, balanced_lambda};
use crate::numerics::Precision;
use crate::problem::Problem;
use crate::update::Rule;

/// λ of P-MU where none is given: the paper's.
pub(super) const PENALIZED_MU_LAMBDA: f64 = 0.5;

impl Solver {
    /// The state before the first iteration.
    ///
    /// # Errors
    /// [`Error::Setting`], [`Error::Conflict`] and [`Error::NoMonotoneExponent`]
    /// for settings; [`Error::EngineUnsupported`]; [`Error::OutsideDomain`] for
    /// data that the divergence cannot measure; [`Error::Rank`], [`Error::Shape`],
    /// [`Error::NegativeEntry`] and [`Error::NotFiniteEntry`] for a start that
    /// does not fit.
    pub fn init(&self, problem: &Problem) -> Result<State> {
        self.check(problem)?;
        self.start(problem, self.engine(problem)?.0.as_mut())
    }

    /// Refuses settings and data that no run could begin with.
    pub(super) fn check(&self, problem: &Problem) -> Result<()> {
        self.config.check()?;
        problem.check_domain(self.divergence.as_ref())?;
        self.criterion.check(problem)?;
        // Before anything of its size is made.
        check_rank(problem, self.config.rank)?;
        self.check_scopes()
    }

    pub(super) fn start(&self, problem: &Problem, engine: &mut dyn Engine) -> Result<State> {
        let (rule, _) = self.rules()?;
        let AltBiConfig {
            rank,
            initial,
            seed,
            ..
        } = self.config;
        let mut factors = Factors::start(problem, rank, initial, seed, &self.given)?;
        self.warm_up(problem, engine, &mut factors)?;
        // Before λ is balanced: its scale is that of the factors the loop will see.
        self.normalize(problem, &mut factors);
        finite("W", 0, &factors.w)?;
        finite("H", 0, &factors.h)?;
        let (errors, divergences) = engine.errors(problem, &factors);
        let lambda = if self.is_joint() {
            self.initial_weights(problem, &factors, &divergences)?
        } else {
            self.initial_lambda(problem, &rule, &factors.w, &divergences)?
        };
        finite("λ", 0, &lambda)?;
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
            divergence_at_start: errors.divergence,
            best: None,
            moments: None,
        };
        state.moments = self.moments(problem, &state.lambda);
        measure(
            problem,
            engine,
            &mut state,
            errors,
            f64::NAN,
            &mut Vec::new(),
        );
        state.check_errors(true)?;
        // The start is an iterate like any other.
        let acted = state.lambda.clone();
        state.remember(self.config.select, &acted);
        Ok(state)
    }

    /// Refuses a λ for methods that have none.
    pub(super) fn check_given_lambda(&self) -> Result<()> {
        let given = self.given_lambda.is_some() || self.config.lambda != LambdaStart::Auto;
        if given && matches!(self.config.method, Method::Mu | Method::MuT) {
            return Err(Error::Conflict {
                first: "a given λ",
                second: "a method without penalty (mu, mu-t)",
                reason: "they are defined by λ = 0; p-mu and frozen keep a given λ",
            });
        }
        Ok(())
    }

    /// A first weight, kept in its interval; zero stays.
    pub(super) fn within(&self, value: f64) -> f64 {
        if value > self.config.lambda_max {
            self.config.lambda_max
        } else if value > 0.0 && value < self.config.lambda_min {
            self.config.lambda_min
        } else {
            value
        }
    }

    fn initial_lambda(
        &self,
        problem: &Problem,
        rule: &Rule,
        w: &Array2<f64>,
        divergences: &[f64],
    ) -> Result<Array2<f64>> {
        let [n, _] = problem.shape();
        let all = |value: f64| Array2::from_elem((n, 1), value);
        self.check_given_lambda()?;
        let start = match (&self.given_lambda, self.config.lambda, self.config.method) {
            (Some(lambda), _, _) => lambda.clone(),
            (None, LambdaStart::Value(value), _) => all(value),
            (None, LambdaStart::Auto, Method::Mu | Method::MuT) => all(0.0),
            (None, LambdaStart::Auto, Method::PenalizedMu) => all(PENALIZED_MU_LAMBDA),
            (None, LambdaStart::Auto, Method::AltBi | Method::Frozen) => {
                // An overflow is for the caller to refuse as such.
                let mut balanced = balanced_lambda(rule, divergences, &problem.state(w));
                problem.round(&mut balanced);
                balanced.mapv_inplace(|value| self.within(value));
                return Ok(balanced);
            }
        };
        let mut start = problem.matrix("λ", &start, [n, 1])?;
        start.mapv_inplace(|value| self.within(value));
        Ok(start)
    }

    /// The engine that the settings ask for and the parts of the run allow.
    pub(super) fn engine(&self, problem: &Problem) -> Result<(Box<dyn Engine + Send>, EngineUsed)> {
        let (mut engine, used) = self.any_engine(problem)?;
        if !self.measures {
            engine.leave_divergence_out();
        }
        Ok((engine, used))
    }

    fn any_engine(&self, problem: &Problem) -> Result<(Box<dyn Engine + Send>, EngineUsed)> {
        let autodiff = |solver: &Self| -> Result<(Box<dyn Engine + Send>, EngineUsed)> {
            Ok((Box::new(solver.autodiff()?), EngineUsed::Autodiff))
        };
        if self.is_joint() {
            let (joint, used) = self.joint(problem)?;
            return Ok((Box::new(joint), used));
        }
        if let (EngineChoice::Auto | EngineChoice::Fused, Ok(engine)) =
            (self.config.engine, self.fused(problem)?)
        {
            return Ok((engine, EngineUsed::Fused));
        }
        // What the paper's own loops do not know (smoothness, a penalty from outside) runs on
        // the data term.
        match self.fused_joint(problem) {
            Ok(joint) => Ok((Box::new(joint), EngineUsed::Fused)),
            Err(Error::EngineUnsupported { .. }) if self.config.engine != EngineChoice::Fused => {
                autodiff(self)
            }
            Err(error) => Err(error),
        }
    }

    fn autodiff(&self) -> Result<Autodiff> {
        let (of_w, of_h) = self.rules()?;
        Ok(Autodiff {
            of_w,
            of_h,
            criterion: self.criterion.clone(),
            mode: self.config.hypergradient,
            length: self.config.updates_of_w(),
        })
    }

    /// The fused engine, or what it cannot do.
    fn fused(
        &self,
        problem: &Problem,
    ) -> Result<std::result::Result<Box<dyn Engine + Send>, String>> {
        if self.config.engine == EngineChoice::Autodiff {
            return Ok(Err("autodiff was asked for".into()));
        }
        let (of_w, of_h) = self.rules()?;
        let plan = || {
            let mode = self.config.hypergradient;
            if self.config.method == Method::AltBi && mode != Mode::Reverse {
                return Err(format!("hypergradients by {mode} mode"));
            }
            if !self.criterion.is_divergence() {
                return Err(format!("criterion '{}'", self.criterion.name()));
            }
            Ok([Plan::of(&of_w)?, Plan::of(&of_h)?])
        };
        let plans = match plan() {
            Ok(plans) => plans,
            Err(reason) => return Ok(Err(reason)),
        };
        let AltBiConfig { rank, .. } = self.config;
        let (length, threads) = (self.config.updates_of_w(), self.threads());
        let over = self.criterion.entries();
        Ok(Ok(match problem.precision() {
            Precision::F64 => Box::new(FusedEngine::<f64>::new(
                problem, plans, over, rank, length, threads,
            )),
            Precision::F32 => Box::new(FusedEngine::<f32>::new(
                problem, plans, over, rank, length, threads,
            )),
        }))
    }

    /// Compares the engines in the first iteration, where that is asked for.
    pub(super) fn compared(
        &self,
        problem: &Problem,
        engine: &mut dyn Engine,
        used: EngineUsed,
        state: &State,
    ) -> Result<EngineUsed> {
        if (self.config.engine, used) != (EngineChoice::Auto, EngineUsed::Fused) {
            return Ok(used);
        }
        let tuned = self.config.method == Method::AltBi;
        let State {
            factors, lambda, ..
        } = state;
        if let Some(difference) = engine.sampled_agreement(problem, factors, lambda, tuned) {
            return Ok(difference?.map_or(used, EngineUsed::Checked));
        }
        let mut autodiff = self.autodiff()?;
        let difference = agreement(problem, engine, &mut autodiff, factors, lambda, tuned)?;
        Ok(EngineUsed::Checked(difference))
    }
}

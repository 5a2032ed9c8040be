//! The state before the first iteration.

use burn::tensor::Tensor;
use ndarray::Array2;

use super::iteration::{finite, settled, sum};
use super::{Record, Solver, State};
use crate::config::{AltBiConfig, Method};
use crate::error::{Error, Result};
use crate::factors::Factors;
use crate::lambda::{LambdaStart, balanced_lambda};
use crate::problem::Problem;
use crate::update::Rule;

/// λ of P-MU where none is given: the paper's.
const PENALIZED_MU_LAMBDA: f64 = 0.5;

impl Solver {
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
        let factors = Factors {
            w: settled(problem, "W", 0, &factors.w)?,
            h: settled(problem, "H", 0, &factors.h)?,
        };
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
}

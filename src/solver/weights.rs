//! The tuned weights of a run: layout, checks and first values.

use std::sync::Arc;

use ndarray::Array2;

use super::Solver;
use crate::bunch::{Data, Pair, Span};
use crate::config::{BunchOver, Method};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::factors::{Factors, Side};
use crate::lambda::{
    Hierarchy, LambdaShare, LambdaStart, Layout, Scope, Units, WeightGroup, balanced_lambda,
};
use crate::numerics::to_host;
use crate::penalty::PenaltyTerm;
use crate::problem::Problem;

/// Default λ of P-MU, as in the paper.
const PENALIZED_MU_LAMBDA: f64 = 0.5;
/// log λ at the start in relative units. It is weak, because some runs failed from a strong start.
const RELATIVE_START: f64 = -5.0;

impl Solver {
    /// The tuned penalties, W's first.
    fn tuned(&self) -> impl Iterator<Item = (Side, &PenaltyTerm)> {
        let of_w = self.terms.iter().map(|term| (Side::W, term));
        let of_h = self.terms_of_h.iter().map(|term| (Side::H, term));
        of_w.chain(of_h).filter(|(_, term)| term.is_tuned())
    }

    /// The position of each penalty's weights in the column λ.
    pub(crate) fn layout(&self, problem: &Problem) -> Layout {
        let [n, m] = problem.shape();
        let scope = self.config.scope;
        let groups = self.tuned().map(|(side, term)| {
            let rows = match side {
                Side::W => n,
                Side::H => m,
            };
            WeightGroup {
                side,
                penalty: term.penalty.name(),
                scope,
                shape: scope.shape(rows, self.config.rank),
            }
        });
        Layout {
            groups: groups.collect(),
        }
    }

    /// The weights of this process among those of all.
    pub(super) fn lambda_share(&self, problem: &Problem) -> Arc<LambdaShare> {
        Arc::new(LambdaShare::new(self.layout(problem), problem.share()))
    }

    /// The memory of the λ step before the first iteration.
    pub(super) fn memory(&self, problem: &Problem) -> Array2<f64> {
        self.memory_of(&self.layout(problem))
    }

    pub(super) fn memory_of(&self, layout: &Layout) -> Array2<f64> {
        match self.config.method {
            Method::AltBi => Hierarchy::new(layout).memory(self.step_rule.as_ref(), layout.len()),
            _ => Array2::zeros((0, 0)),
        }
    }

    /// Refuses scopes that a penalty does not support, and AltBi without any weight.
    pub(super) fn check_scopes(&self) -> Result<()> {
        if matches!(self.config.scope, Scope::Hierarchical(_))
            && self.config.method == Method::AltBi
            && !self.step_rule.is_along_logarithm()
        {
            return Err(Error::Conflict {
                first: "a hierarchical scope",
                second: "a step along λ itself (inv-iter, constant)",
                reason: "it pulls log λ towards a mean; use a step along log λ (adam, normalized)",
            });
        }
        for (_, term) in self.tuned() {
            self.config.scope.check_penalty(term.penalty.as_ref())?;
        }
        if self.tuned().next().is_none() {
            return Err(Error::Conflict {
                first: "penalties with fixed weights only",
                second: "a run that tunes weights",
                reason: "at least one penalty must be tuned (PenaltyTerm::tuned)",
            });
        }
        self.span().map(drop)
    }

    /// The factors that a bunch updates.
    pub(super) fn span(&self) -> Result<Span> {
        let on = |side: Side| self.tuned().any(|(of, _)| of == side);
        match (self.config.bunch_over, on(Side::W), on(Side::H)) {
            (BunchOver::Both, _, _) => Ok(Span::Both),
            (BunchOver::One, true, true) => Err(Error::Conflict {
                first: "tuned penalties on both factors",
                second: "a bunch over one of them",
                reason: "hypergradients must go through both; use a bunch over both",
            }),
            (BunchOver::One, _, false) => Ok(Span::One(Side::W)),
            (BunchOver::One, false, true) => Ok(Span::One(Side::H)),
        }
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

    /// A first weight, clipped to its interval. Zero stays zero.
    fn within(&self, value: f64) -> f64 {
        if value > self.config.lambda_max {
            self.config.lambda_max
        } else if value > 0.0 && value < self.config.lambda_min {
            self.config.lambda_min
        } else {
            value
        }
    }

    /// The first weights. They are given, or weak (in relative units), or chosen such that each
    /// penalty is a tenth of the divergence (of its row, or of all rows).
    pub(super) fn initial_weights(
        &self,
        problem: &Problem,
        engine: &dyn Engine,
        factors: &Factors,
        divergences: &[f64],
    ) -> Result<Array2<f64>> {
        self.check_given_lambda()?;
        let layout = self.layout(problem);
        let weights = layout.len();
        let all = |value: f64| Array2::from_elem((weights, 1), value);
        let column = match (&self.given_lambda, self.config.lambda, self.config.method) {
            // A given λ has the weights of all processes, or of this one.
            (Some(lambda), _, _) => {
                let share = self.lambda_share(problem);
                match lambda.nrows() == share.whole_layout().len() {
                    true => share.cut(lambda),
                    false => lambda.clone(),
                }
            }
            (None, LambdaStart::Value(value), _) => all(value),
            (None, LambdaStart::Auto, Method::Mu | Method::MuT) => all(0.0),
            (None, LambdaStart::Auto, Method::PenalizedMu) => all(PENALIZED_MU_LAMBDA),
            (None, LambdaStart::Auto, Method::AltBi | Method::Frozen) => match self.config.units {
                Units::Relative => all(RELATIVE_START.exp()),
                Units::Absolute => {
                    let pair = Pair::of(problem, factors);
                    let mut balanced = self.balanced(problem, engine, &pair, divergences)?;
                    // The caller refuses an overflow.
                    problem.round(&mut balanced);
                    balanced.mapv_inplace(|value| self.within(value));
                    return Ok(balanced);
                }
            },
        };
        let mut column = problem.matrix("λ", &column, [weights, 1])?;
        column.mapv_inplace(|value| self.within(value));
        Ok(column)
    }

    fn balanced(
        &self,
        problem: &Problem,
        engine: &dyn Engine,
        pair: &Pair,
        divergences: &[f64],
    ) -> Result<Array2<f64>> {
        let (layout, processes) = (self.layout(problem), problem.processes());
        let (rule, of_h) = self.rules_on(problem)?;
        let parts = rule
            .tuned()
            .chain(of_h.tuned())
            .zip(&layout.groups)
            .map(|(term, group)| {
                let side = group.side;
                let (factor, _) = pair.seen_from(side);
                let of_columns = |data: &Data| to_host(&data.divergences(&rule, side, pair));
                let errors = match (side, engine.data()) {
                    (Side::H, Some(data)) => of_columns(data),
                    // (The paper's loops penalise W, with weights of rows.)
                    _ => divergences.to_vec(),
                };
                let penalties = to_host(&term.penalty.value(factor));
                let balanced = if group.shape[0] == 1 {
                    // (Sums over columns of X are the same everywhere.)
                    let sum = |values: &[f64]| match side {
                        Side::W => [processes.total(values.iter().sum())],
                        Side::H => [values.iter().sum()],
                    };
                    balanced_lambda(&sum(&errors), &sum(&penalties))
                } else {
                    balanced_lambda(&errors, &penalties)
                };
                Array2::from_shape_fn(group.shape, |(i, _)| balanced[i])
            });
        let parts: Vec<Array2<f64>> = parts.collect();
        Ok(layout.join(&parts))
    }
}

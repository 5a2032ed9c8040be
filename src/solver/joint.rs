//! What a run needs beyond the paper's: several penalties, other scopes, both factors.

use ndarray::Array2;

use super::Solver;
use super::start::PENALIZED_MU_LAMBDA;
use crate::config::{BunchOver, Method};
use crate::criterion::weighted_divergence;
use crate::engine::{Engine, EngineChoice, EngineUsed, Joint};
use crate::error::{Error, Result};
use crate::factors::{Factors, Side};
use crate::hypergradient::Mode;
use crate::joint::{JointBunch, Pair, Span};
use crate::lambda::{Hierarchy, LambdaStart, Layout, Moments, Scope, Units, WeightGroup};
use crate::numerics::to_host;
use crate::penalty::PenaltyTerm;
use crate::problem::{Problem, ToMatrix};

/// log λ at the start in relative units: weak. From a strong start runs were seen to fail.
const RELATIVE_START: f64 = -5.0;

impl Solver {
    /// Whether the run goes beyond one tuned penalty of W with a λ for each row and
    /// bunches over W.
    pub(super) fn is_joint(&self) -> bool {
        let tuned = self.terms.iter().filter(|term| term.is_tuned()).count();
        tuned != 1
            || !self.terms_of_h.is_empty()
            || self.config.scope != Scope::Row
            || self.config.units != Units::Absolute
            || self.config.bunch_over != BunchOver::One
    }

    /// The tuned penalties, W's first.
    fn tuned(&self) -> impl Iterator<Item = (Side, &PenaltyTerm)> {
        let of_w = self.terms.iter().map(|term| (Side::W, term));
        let of_h = self.terms_of_h.iter().map(|term| (Side::H, term));
        of_w.chain(of_h).filter(|(_, term)| term.is_tuned())
    }

    /// Where each penalty's weights lie in the column λ.
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

    pub(super) fn moments(&self, problem: &Problem, lambda: &Array2<f64>) -> Option<Moments> {
        let tuned = self.config.method == Method::AltBi;
        let hierarchy = Hierarchy::new(&self.layout(problem));
        hierarchy
            .moments(self.config.lambda_step, lambda)
            .filter(|_| tuned || !self.is_joint())
    }

    /// Refuses scopes that a penalty cannot have, and a run without any weight.
    pub(super) fn check_scopes(&self) -> Result<()> {
        if !self.is_joint() {
            return Ok(());
        }
        for (_, term) in self.tuned() {
            self.config.scope.check_penalty(term.penalty.as_ref())?;
        }
        if self.tuned().next().is_none() {
            return Err(Error::Conflict {
                first: "penalties with fixed weights only",
                second: "a run that tunes weights",
                reason: "one penalty at least must be tuned (PenaltyTerm::tuned)",
            });
        }
        self.span().map(drop)
    }

    fn span(&self) -> Result<Span> {
        let on = |side: Side| self.tuned().any(|(of, _)| of == side);
        match (self.config.bunch_over, on(Side::W), on(Side::H)) {
            (BunchOver::Both, _, _) => Ok(Span::Both),
            (BunchOver::One, true, true) => Err(Error::Conflict {
                first: "tuned penalties on both factors",
                second: "a bunch over one of them",
                reason: "hypergradients must go through both; let the bunch be over both",
            }),
            (BunchOver::One, _, false) => Ok(Span::One(Side::W)),
            (BunchOver::One, false, true) => Ok(Span::One(Side::H)),
        }
    }

    /// The engine of bunches over either factor or both: fused where every part can be.
    pub(super) fn joint(&self, problem: &Problem) -> Result<(Joint, EngineUsed)> {
        match self.fused_joint(problem) {
            Err(Error::EngineUnsupported { .. }) if self.config.engine != EngineChoice::Fused => {
                let (of_w, of_h) = self.rules()?;
                let (criterion, length) = (self.criterion.clone(), self.config.updates_of_w());
                let bunch = JointBunch::new(problem, of_w, of_h, criterion, self.span()?, length)?;
                Ok((self.joint_of(problem, bunch), EngineUsed::Autodiff))
            }
            fused => Ok((fused?, EngineUsed::Fused)),
        }
    }

    /// The same on a fused data term.
    ///
    /// # Errors
    /// [`Error::EngineUnsupported`] with what cannot be fused.
    pub(super) fn fused_joint(&self, problem: &Problem) -> Result<Joint> {
        let refused = |reason: String| Err(Error::EngineUnsupported { reason });
        let mode = self.config.hypergradient;
        if self.config.engine == EngineChoice::Autodiff {
            return refused("autodiff was asked for".into());
        }
        if self.config.method == Method::AltBi && !matches!(mode, Mode::Reverse | Mode::Adjoint) {
            return refused(format!("hypergradients by {mode} mode"));
        }
        let (of_w, of_h) = self.rules()?;
        let (criterion, length) = (self.criterion.clone(), self.config.updates_of_w());
        let bunch = JointBunch::fused(problem, of_w, of_h, criterion, self.span()?, length)?;
        Ok(self.joint_of(problem, bunch))
    }

    fn joint_of(&self, problem: &Problem, bunch: JointBunch) -> Joint {
        let (units, mode) = (self.config.units, self.config.hypergradient);
        Joint::new(bunch, self.layout(problem), units, mode)
    }

    /// Plain updates of both factors, so that a run does not begin with noise.
    pub(super) fn warm_up(
        &self,
        problem: &Problem,
        engine: &dyn Engine,
        factors: &mut Factors,
    ) -> Result<()> {
        if self.config.warm_up == 0 {
            return Ok(());
        }
        let (mut of_w, mut of_h) = self.rules()?;
        of_w.terms.retain(|term| !term.is_tuned());
        of_h.terms.retain(|term| !term.is_tuned());
        let (criterion, length) = (self.criterion.clone(), self.config.warm_up);
        let bunch = match engine.data() {
            Some(data) => {
                let rules = [of_w, of_h];
                JointBunch::with_data(problem, rules, criterion, Span::Both, length, data.clone())
            }
            None => JointBunch::new(problem, of_w, of_h, criterion, Span::Both, length),
        }?;
        let start = Pair {
            w: problem.state(&factors.w),
            h: problem.state(&factors.h).transpose(),
        };
        let end = bunch.run(&start, &[]);
        factors.w = end.w.to_matrix()?;
        factors.h = end.h.transpose().to_matrix()?;
        Ok(())
    }

    /// The first weights: given, or weak in relative units, or such that each penalty is
    /// a tenth of the divergence (of its row, or of all).
    pub(super) fn initial_weights(
        &self,
        problem: &Problem,
        factors: &Factors,
        divergences: &[f64],
    ) -> Result<Array2<f64>> {
        self.check_given_lambda()?;
        let layout = self.layout(problem);
        let weights = layout.len();
        let all = |value: f64| Array2::from_elem((weights, 1), value);
        let column = match (&self.given_lambda, self.config.lambda, self.config.method) {
            (Some(lambda), _, _) => lambda.clone(),
            (None, LambdaStart::Value(value), _) => all(value),
            (None, LambdaStart::Auto, Method::Mu | Method::MuT) => all(0.0),
            (None, LambdaStart::Auto, Method::PenalizedMu) => all(PENALIZED_MU_LAMBDA),
            (None, LambdaStart::Auto, Method::AltBi | Method::Frozen) => match self.config.units {
                Units::Relative => all(RELATIVE_START.exp()),
                Units::Absolute => {
                    let mut balanced = self.balanced(problem, factors, divergences, &layout)?;
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
        factors: &Factors,
        divergences: &[f64],
        layout: &Layout,
    ) -> Result<Array2<f64>> {
        let w = problem.state(&factors.w);
        let h = problem.state(&factors.h).transpose();
        let (rule, _) = self.rules()?;
        let y = rule.reconstruct(&h, &w.clone().transpose());
        let columns = problem.columns();
        let of_columns = weighted_divergence(
            rule.divergence.as_ref(),
            &columns.x,
            columns.mask.as_ref(),
            &y,
        );
        let of_columns = to_host(&of_columns);
        let parts = self
            .tuned()
            .zip(&layout.groups)
            .map(|((side, term), group)| {
                let (factor, errors): (_, &[f64]) = match side {
                    Side::W => (&w, divergences),
                    Side::H => (&h, &of_columns),
                };
                let penalties = to_host(&term.penalty.value(factor));
                let balance = |error: f64, penalty: f64| {
                    if penalty == 0.0 {
                        0.0
                    } else {
                        (error / (10.0 * penalty)).max(0.0)
                    }
                };
                let [rows, _] = group.shape;
                if rows == 1 {
                    let of_all = balance(errors.iter().sum(), penalties.iter().sum());
                    Array2::from_elem(group.shape, of_all)
                } else {
                    Array2::from_shape_fn(group.shape, |(i, _)| balance(errors[i], penalties[i]))
                }
            });
        let parts: Vec<Array2<f64>> = parts.collect();
        Ok(layout.join(&parts))
    }
}

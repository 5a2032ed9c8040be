//! Hypergradients through one factor or both, on the user's data.

use std::sync::Arc;

use altbi::check::{JointDraw, MODES, check_joint};
use altbi::joint::{JointBunch, Span};
use altbi::update::Rule;
use altbi::{Beta, Exponent, Mode, Problem, Result, Scope, Side, ToMatrix};
use ndarray::Array2;

use super::GradcheckArguments;
use crate::cli::arguments::{BunchOverName, LambdaArgument, read_lambda};
use crate::cli::penalties::{Penalize, PenaltyArguments, TuningArguments};

impl GradcheckArguments {
    /// Whether more is asked for than the paper's bunch.
    pub(super) fn is_joint(&self) -> bool {
        self.penalize != Penalize::W
            || self.penalty_h.is_some()
            || self.penalty.as_ref().is_some_and(|name| name.contains('+'))
            || self.lambda_scope != Scope::Row
            || self.bunch_over == Some(BunchOverName::Both)
    }

    /// A bunch over one factor or both on the user's data.
    pub(super) fn check_joint(&self, problem: &Problem) -> Result<bool> {
        let penalties = PenaltyArguments {
            penalty: self.penalty.clone().unwrap_or_else(|| "l1".into()),
            penalize: self.penalize,
            penalty_h: self.penalty_h.clone(),
        };
        let tuning = TuningArguments {
            penalties,
            lambda_scope: self.lambda_scope,
            bunch_over: self.bunch_over,
        };
        let divergence = Arc::new(self.divergence.unwrap_or(Beta::KL));
        let (mut of_w, mut of_h) = (
            Rule::new(divergence.clone(), Vec::new()),
            Rule::new(divergence, Vec::new()),
        );
        for (side, term) in tuning.penalties.terms()? {
            match side {
                Side::W => of_w.terms.push(term),
                Side::H => of_h.terms.push(term),
            }
        }
        if self.exponent.map(Exponent::from) == Some(Exponent::Monotone) {
            (of_w, of_h) = (of_w.monotone()?, of_h.monotone()?);
        }
        let span = match (tuning.over(), self.penalize) {
            (BunchOverName::Both, _) => Span::Both,
            (BunchOverName::One, Penalize::H) => Span::One(Side::H),
            (BunchOverName::One, _) => Span::One(Side::W),
        };
        let (criterion, length) = (self.criterion.outer_error(), self.length());
        let bunch = JointBunch::new(problem, of_w, of_h, criterion, span, length)?;
        let given = self.given()?;
        let (rank, seed) = (self.rank_of(&given)?, self.seed.unwrap_or(0));
        let draw = |lambda: Option<&Array2<f64>>| {
            JointDraw::complete(
                problem,
                &bunch,
                self.lambda_scope,
                rank,
                seed,
                &given,
                lambda,
            )
        };
        let draw = match &self.lambda {
            None | Some(LambdaArgument::Auto) => draw(None)?,
            Some(LambdaArgument::Value(value)) => {
                let weights = draw(None)?.layout.len();
                draw(Some(&Array2::from_elem((weights, 1), *value)))?
            }
            Some(LambdaArgument::File(path)) => draw(Some(&read_lambda(path)?))?,
        };
        let mode = self.mode.map_or(Mode::Reverse, Mode::from);
        let result = bunch.hypergradient(&draw.pair, &draw.lambda, mode)?;
        let report = check_joint(&bunch, &draw.pair, &draw.lambda, &MODES)?;
        let parts = result.gradients.iter().map(ToMatrix::to_matrix);
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let gradient = draw.layout.join(&parts);
        self.tell(mode, result.outer_error, &gradient, report)
    }
}

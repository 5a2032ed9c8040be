//! Where the parts of updates and the errors come from: tensor operations, or a data term.

use burn::tensor::Tensor;

use super::Pair;
use super::bunch::unused;
use crate::criterion::{Criterion, Entries, weighted_divergence};
use crate::error::{Error, Result};
use crate::factors::Side;
use crate::numerics::{Floored, Precision};
use crate::problem::{Observed, Problem};
use crate::split::Split;
use crate::term::{self, Kept, SharedTerm};
use crate::update::{Multiplier, Rule};

/// X and its weights, as a bunch sees them.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "there is one for a bunch")]
pub(crate) enum Data {
    /// The reference: tensors as large as X, for any divergence and device.
    Tensors {
        /// X as updates of W see it, n×m.
        rows: Observed,
        /// As updates of H see it, m×n.
        columns: Observed,
    },
    /// A fused data term, and the entries that the outer error counts.
    Fused(SharedTerm, Entries),
}

/// The cotangents of an update.
pub(super) struct UpdateBars {
    /// Of the factor, n×r.
    pub(super) factor: Tensor<2>,
    /// Of the other factor, m×r, where it moves.
    pub(super) other: Option<Tensor<2>>,
    /// Of each term's weight, n×r.
    pub(super) weights: Vec<Option<Tensor<2>>>,
}

impl Data {
    pub(super) fn tensors(problem: &Problem) -> Self {
        Self::Tensors {
            rows: problem.rows().clone(),
            columns: problem.columns().clone(),
        }
    }

    /// n and m.
    pub(super) fn shape(&self) -> [usize; 2] {
        match self {
            Self::Tensors { rows, .. } => rows.x.dims(),
            Self::Fused(term, _) => term.shape(Side::W),
        }
    }

    /// The tensors that a mode needs.
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`] for a fused data term.
    pub(super) fn observed(&self, mode: &'static str, side: Side) -> Result<&Observed> {
        match self.of_side(side) {
            Of::Tensors(observed) => Ok(observed),
            Of::Fused(_) => Err(Error::ModeUnsupported {
                mode,
                reason: "it is the witness of the fused loops, and runs on tensors".into(),
            }),
        }
    }

    /// The same data as constants on the tape.
    pub(super) fn on_tape(&self) -> Self {
        match self {
            Self::Tensors { rows, columns } => Self::Tensors {
                rows: rows.on_tape(),
                columns: columns.on_tape(),
            },
            fused @ Self::Fused(..) => fused.clone(),
        }
    }

    fn of_side(&self, side: Side) -> Of<'_> {
        match (self, side) {
            (Self::Tensors { rows, .. }, Side::W) => Of::Tensors(rows),
            (Self::Tensors { columns, .. }, Side::H) => Of::Tensors(columns),
            (Self::Fused(term, _), _) => Of::Fused(term),
        }
    }

    /// `Φ(factor)` with weights bound into the rule.
    ///
    /// # Shapes
    /// `factor` n×r, `other` m×r.
    pub(super) fn update(
        &self,
        rule: &Rule,
        side: Side,
        factor: &Tensor<2>,
        other: &Tensor<2>,
    ) -> Tensor<2> {
        let unused = unused(factor);
        match self.of_side(side) {
            Of::Tensors(observed) => {
                rule.update(observed, factor, &other.clone().transpose(), &unused)
            }
            Of::Fused(term) => {
                let penalties = rule.penalty_split(factor, &unused);
                term::update(term, side, factor, other, &penalties, rule.exponent)
            }
        }
    }

    /// The same, with what the way back needs beyond the factors.
    pub(super) fn update_and_keep(
        &self,
        rule: &Rule,
        side: Side,
        factor: &Tensor<2>,
        other: &Tensor<2>,
    ) -> (Tensor<2>, Option<Kept>) {
        match self.of_side(side) {
            Of::Tensors(_) => (self.update(rule, side, factor, other), None),
            Of::Fused(term) => {
                let penalties = rule.penalty_split(factor, &unused(factor));
                let exponent = rule.exponent;
                let (updated, kept) =
                    term::update_and_keep(term, side, factor, other, &penalties, exponent);
                (updated, Some(kept))
            }
        }
    }

    /// The transposed derivative of an update, by hand.
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`] where a part has no cotangent.
    pub(super) fn update_cotangent(
        &self,
        mode: &'static str,
        rule: &Rule,
        side: Side,
        ([factor, other], kept): ([&Tensor<2>; 2], Option<&Kept>),
        multiplier: Multiplier<'_>,
    ) -> Result<UpdateBars> {
        let unused = unused(factor);
        match (self.of_side(side), kept) {
            (Of::Fused(_), Some(kept)) => {
                let Multiplier { alpha, other_moves } = multiplier;
                let gradient = kept.gradient(alpha, other_moves);
                let (of_penalties, weights) =
                    rule.penalty_cotangents(mode, factor, &unused, &gradient.parts)?;
                Ok(UpdateBars {
                    factor: gradient.factor + of_penalties,
                    other: gradient.other,
                    weights,
                })
            }
            (Of::Fused(_), None) => unreachable!("a fused update is kept"),
            (Of::Tensors(observed), _) => {
                let other = other.clone().transpose();
                let bars =
                    rule.update_cotangent(mode, observed, factor, &other, &unused, multiplier)?;
                Ok(UpdateBars {
                    factor: bars.factor,
                    other: bars.other.map(Tensor::transpose),
                    weights: bars.weights,
                })
            }
        }
    }

    /// `E_i` of each row, n×1.
    pub(super) fn outer_errors(
        &self,
        rule: &Rule,
        criterion: &dyn Criterion,
        pair: &Pair,
    ) -> Tensor<2> {
        match self {
            Self::Tensors { rows, .. } => {
                let y = rule.reconstruct(&pair.w, &pair.h.clone().transpose());
                criterion.value(rule.divergence.as_ref(), rows, &y)
            }
            Self::Fused(term, over) => term::errors(term, *over, &pair.w, &pair.h),
        }
    }

    /// `D_i` of each row over the entries that are fitted, n×1.
    pub(crate) fn divergences(&self, rule: &Rule, pair: &Pair) -> Tensor<2> {
        match self {
            Self::Tensors { rows, .. } => {
                let y = rule.reconstruct(&pair.w, &pair.h.clone().transpose());
                let divergence = rule.divergence.as_ref();
                weighted_divergence(divergence, &rows.x, rows.mask.as_ref(), &y)
            }
            Self::Fused(term, _) => term::errors(term, Entries::Training, &pair.w, &pair.h),
        }
    }

    /// `(∂E/∂w, ∂E/∂h)`, n×r and m×r, by hand.
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`] for a criterion without a derivative.
    pub(super) fn outer_gradient(
        &self,
        mode: &'static str,
        rule: &Rule,
        criterion: &dyn Criterion,
        pair: &Pair,
    ) -> Result<(Tensor<2>, Tensor<2>)> {
        let rows = match self {
            Self::Fused(term, over) => {
                return Ok(term::errors_gradient(term, *over, &pair.w, &pair.h));
            }
            Self::Tensors { rows, .. } => rows,
        };
        let divergence = rule.divergence.as_ref();
        let product = pair.w.clone().matmul(pair.h.clone().transpose());
        let y = Floored::new(product, divergence.floor(Precision::of(&pair.w)));
        let derivative = criterion.derivative(divergence, rows, &y.value);
        let derivative = derivative.ok_or_else(|| Error::ModeUnsupported {
            mode,
            reason: format!("criterion '{}' has no derivative", criterion.name()),
        })?;
        let derivative = y.silence(derivative);
        Ok((
            derivative.clone().matmul(pair.h.clone()),
            derivative.transpose().matmul(pair.w.clone()),
        ))
    }

    /// P of the unpenalised update, broadcasting to n×r.
    pub(super) fn fit_denominator(
        &self,
        rule: &Rule,
        side: Side,
        factor: &Tensor<2>,
        other: &Tensor<2>,
    ) -> Tensor<2> {
        match self.of_side(side) {
            Of::Tensors(observed) => {
                rule.fit_denominator(observed, factor, &other.clone().transpose())
            }
            Of::Fused(term) => term::denominator(term, side, factor, other),
        }
    }
}

enum Of<'a> {
    Tensors(&'a Observed),
    Fused(&'a SharedTerm),
}

impl Rule {
    /// The weighted parts of all penalties, `Σ λ p⁺` and `Σ λ p⁻`, broadcasting to n×r.
    pub(crate) fn penalty_split(&self, factor: &Tensor<2>, lambda: &Tensor<2>) -> Split {
        let none = Split {
            positive: unused(factor),
            negative: unused(factor),
        };
        let terms = self.terms.iter();
        terms.fold(none, |sum, term| {
            sum.plus(term.weighted_split(factor, lambda))
        })
    }
}

//! The source of the parts of updates and of the errors: tensor operations, or a data term.

use std::ops::Range;

use burn::tensor::Tensor;

use super::Pair;
use crate::criterion::{Criterion, weighted_divergence};
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::factors::{Factors, Side};
use crate::numerics::{Floored, Precision, to_host};
use crate::problem::{Observed, Problem};
use crate::term::{self, Asked, Kept, Penalties, SharedTerm};
use crate::update::{Direction, Multiplier, Rule};

/// Largest number of entries of a sparse X that is made dense for tensor operations: a gigabyte.
const LARGEST_DENSE: f64 = 1e9 / 8.0;

/// X and its weights, for a bunch.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "there is one for a bunch")]
pub(crate) enum Data {
    /// The reference: tensors as large as X, for any divergence and device.
    Tensors {
        /// X for updates of W, n×m, or a block of its rows.
        rows: Observed,
        /// The problem, which makes X for updates of H, m×n, on first use.
        problem: Problem,
        taped: bool,
    },
    /// A fused data term.
    Fused(SharedTerm),
}

/// An update, for its backward pass.
pub(crate) struct Passed<'a> {
    pub(crate) factor: &'a Tensor<2>,
    /// m×r.
    pub(crate) other: &'a Tensor<2>,
    /// Saved values of a fused update.
    pub(crate) kept: Option<Kept>,
}

/// The cotangents of an update.
pub(crate) struct UpdateBars {
    /// Cotangent of the factor, n×r.
    pub(crate) factor: Tensor<2>,
    /// Cotangent of the other factor, m×r, if it moves.
    pub(crate) other: Option<Tensor<2>>,
    /// Cotangent of each term's weight, n×r.
    pub(crate) weights: Vec<Option<Tensor<2>>>,
}

impl Data {
    /// Tensors as large as X.
    ///
    /// # Errors
    /// [`Error::SparseUnsupported`] for a sparse X that is too large to be made dense;
    /// [`Error::NotSplit`] if other processes have other rows.
    pub(crate) fn tensors(problem: &Problem) -> Result<Self> {
        let [n, m] = problem.shape();
        if problem.share().is_split() {
            return Err(Error::NotSplit {
                what: "tensors as large as X".into(),
                processes: problem.processes().size(),
                reason: "only the fused engine supports several processes; --engine autodiff, and \
                         divergences without formulas in plain numbers, run in one process",
            });
        }
        if problem.is_sparse() && n as f64 * m as f64 > LARGEST_DENSE {
            return Err(Error::SparseUnsupported {
                reason: format!(
                    "tensor operations need every entry of a {n}×{m} matrix; without \
                     --engine autodiff, and with a divergence in plain numbers, only \
                     stored entries are needed"
                ),
            });
        }
        Ok(Self::Tensors {
            rows: problem.rows().clone(),
            problem: problem.clone(),
            taped: false,
        })
    }

    /// A fused data term.
    ///
    /// # Errors
    /// [`Error::EngineUnsupported`] with the part that cannot be fused; [`Error::OutsideDomain`].
    pub(crate) fn fused(
        problem: &Problem,
        divergence: &dyn Divergence,
        criterion: &dyn Criterion,
    ) -> Result<Self> {
        let refused = |reason: String| Error::EngineUnsupported { reason };
        let fused = |divergence: &dyn Divergence| {
            let fused = divergence.fused();
            fused.ok_or_else(|| refused(format!("divergence '{}'", divergence.name())))
        };
        if !criterion.is_divergence() {
            return Err(refused(format!("criterion '{}'", criterion.name())));
        }
        let asked = Asked {
            divergence: fused(divergence)?,
            outer: criterion.own_divergence().map(fused).transpose()?,
            over: criterion.entries(),
            floor: divergence.floor(problem.precision()),
        };
        if !problem.device().is_host() {
            return Err(refused("another device than ndarray".into()));
        }
        // Data outside the domain are refused before they are packed.
        problem.check_domain(divergence)?;
        criterion.check(problem)?;
        Ok(Self::Fused(term::fused(problem, asked)))
    }

    /// n and m.
    pub(crate) fn shape(&self) -> [usize; 2] {
        match self {
            Self::Tensors { rows, .. } => rows.x.dims(),
            Self::Fused(term) => term.shape(Side::W),
        }
    }

    /// Returns true if it has tensors as large as X.
    pub(crate) fn is_reference(&self) -> bool {
        matches!(self, Self::Tensors { .. })
    }

    /// The same data as constants on the tape.
    pub(super) fn on_tape(&self) -> Self {
        match self {
            Self::Tensors { rows, problem, .. } => Self::Tensors {
                rows: rows.on_tape(),
                problem: problem.clone(),
                taped: true,
            },
            fused @ Self::Fused(..) => fused.clone(),
        }
    }

    /// Some rows of it, for bunches over W.
    ///
    /// # Panics
    /// On a fused data term, which needs no blocks.
    pub(super) fn rows(&self, range: Range<usize>) -> Self {
        match self {
            Self::Tensors {
                rows,
                problem,
                taped,
            } => Self::Tensors {
                rows: rows.rows(range),
                problem: problem.clone(),
                taped: *taped,
            },
            Self::Fused(..) => unreachable!("blocks of rows are for tensors as large as X"),
        }
    }

    fn of_side(&self, side: Side) -> Of<'_> {
        match (self, side) {
            (Self::Tensors { rows, .. }, Side::W) => Of::Tensors(rows.clone()),
            (Self::Tensors { problem, taped, .. }, Side::H) => Of::Tensors(if *taped {
                problem.columns().on_tape()
            } else {
                problem.columns().clone()
            }),
            (Self::Fused(term), _) => Of::Fused(term),
        }
    }

    /// `Φ(factor)` with weights bound into the rule.
    ///
    /// # Shapes
    /// `factor` n×r, `other` m×r.
    pub(crate) fn update(
        &self,
        rule: &Rule,
        side: Side,
        factor: &Tensor<2>,
        other: &Tensor<2>,
    ) -> Tensor<2> {
        match self.of_side(side) {
            Of::Tensors(observed) => rule.update(&observed, factor, &other.clone().transpose()),
            Of::Fused(term) => {
                let penalties = Penalties::of(rule, factor);
                term::update(term, side, factor, other, &penalties, rule.exponent)
            }
        }
    }

    /// The same, with the saved values that the backward pass needs.
    pub(crate) fn update_and_keep(
        &self,
        rule: &Rule,
        side: Side,
        factor: &Tensor<2>,
        other: &Tensor<2>,
    ) -> (Tensor<2>, Option<Kept>) {
        match self.of_side(side) {
            Of::Tensors(_) => (self.update(rule, side, factor, other), None),
            Of::Fused(term) => {
                let penalties = Penalties::of(rule, factor);
                let exponent = rule.exponent;
                let (updated, kept) =
                    term::update_and_keep(term, side, factor, other, &penalties, exponent);
                (updated, Some(kept))
            }
        }
    }

    /// The update and its hand-written derivative in a direction.
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`] if a part has no tangent.
    pub(crate) fn update_with_tangent(
        &self,
        mode: &'static str,
        rule: &Rule,
        side: Side,
        [factor, other]: [&Tensor<2>; 2],
        direction: &Direction,
    ) -> Result<(Tensor<2>, Tensor<2>)> {
        match self.of_side(side) {
            Of::Tensors(observed) => {
                let other = other.clone().transpose();
                rule.update_with_tangent(mode, &observed, factor, &other, direction)
            }
            Of::Fused(term) => {
                let moves = [Some(&direction.factor), direction.other.as_ref()];
                let (fit, dot) = term::parts_with_tangent(term, side, [factor, other], moves);
                rule.tangent_of_parts(mode, factor, fit, dot, direction)
            }
        }
    }

    /// The hand-written transposed derivative of an update.
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`] if a part has no cotangent.
    pub(crate) fn update_cotangent(
        &self,
        mode: &'static str,
        rule: &Rule,
        side: Side,
        passed: Passed<'_>,
        multiplier: Multiplier<'_>,
    ) -> Result<UpdateBars> {
        let Passed {
            factor,
            other,
            kept,
        } = passed;
        match (self.of_side(side), kept) {
            (Of::Fused(_), Some(kept)) => {
                let Multiplier { alpha, other_moves } = multiplier;
                let gradient = kept.gradient(alpha, other_moves);
                let (of_penalties, weights) =
                    rule.penalty_cotangents(mode, factor, &gradient.parts)?;
                Ok(UpdateBars {
                    factor: gradient.factor + of_penalties,
                    other: gradient.other,
                    weights,
                })
            }
            (Of::Fused(_), None) => unreachable!("a fused update is kept"),
            (Of::Tensors(observed), _) => {
                let other = other.clone().transpose();
                let bars = rule.update_cotangent(mode, &observed, factor, &other, multiplier)?;
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
            Self::Fused(term) => term::outer_errors(term, &pair.w, &pair.h),
        }
    }

    /// `E_i` of each row on a fused data term, without tensors in between.
    pub(crate) fn fused_outer_errors(
        &self,
        problem: &Problem,
        factors: &Factors,
    ) -> Option<Vec<f64>> {
        let Self::Fused(term) = self else {
            return None;
        };
        let pair = Pair::of(problem, factors);
        Some(to_host(&term::outer_errors(term, &pair.w, &pair.h)))
    }

    /// D of each row of X, or of each column for H, over the fitted entries.
    ///
    /// # Shapes
    /// n×1, or m×1.
    pub(crate) fn divergences(&self, rule: &Rule, side: Side, pair: &Pair) -> Tensor<2> {
        let (factor, other) = pair.seen_from(side);
        match self.of_side(side) {
            Of::Tensors(observed) => {
                let y = rule.reconstruct(factor, &other.clone().transpose());
                let divergence = rule.divergence.as_ref();
                weighted_divergence(divergence, &observed.x, observed.mask.as_ref(), &y)
            }
            Of::Fused(term) => term::divergences(term, side, factor, other),
        }
    }

    /// The hand-written `(∂E/∂w, ∂E/∂h)`, n×r and m×r.
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`] for a criterion without a derivative.
    pub(crate) fn outer_gradient(
        &self,
        mode: &'static str,
        rule: &Rule,
        criterion: &dyn Criterion,
        pair: &Pair,
    ) -> Result<Pair> {
        let rows = match self {
            Self::Fused(term) => {
                let (w, h) = term::outer_gradient(term, &pair.w, &pair.h);
                return Ok(Pair { w, h });
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
        Ok(Pair {
            w: derivative.clone().matmul(pair.h.clone()),
            h: derivative.transpose().matmul(pair.w.clone()),
        })
    }

    /// `∇⁺ + ∇⁻` of every entry, n×m: the size of the terms whose difference is the slope of D.
    /// (Without tensors of X it is computed for a perfect fit.)
    pub(crate) fn slope_terms(&self, rule: &Rule, pair: &Pair) -> Tensor<2> {
        let y = rule.reconstruct(&pair.w, &pair.h.clone().transpose());
        let split = match self {
            Self::Tensors { rows, .. } => rule.divergence.split(&rows.x, &y),
            Self::Fused(..) => rule.divergence.split(&y, &y),
        };
        (split.positive + split.negative).expand(y.dims())
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
                rule.fit_denominator(&observed, factor, &other.clone().transpose())
            }
            Of::Fused(term) => term::denominator(term, side, factor, other),
        }
    }
}

#[expect(clippy::large_enum_variant, reason = "it lives for one operation")]
enum Of<'a> {
    Tensors(Observed),
    Fused(&'a SharedTerm),
}

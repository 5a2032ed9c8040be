//! The bunch as a function of (W, H) and the weights.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::data::Data;
use super::{adjoint, differences, forward, reverse};
use crate::bunch::check_length;
use crate::criterion::Criterion;
use crate::error::{Error, Result};
use crate::factors::Side;
use crate::hypergradient::{Fault, Mode};
use crate::lambda::check_weights_by_component;
use crate::numerics::{Precision, to_host};
use crate::penalty::Weight;
use crate::problem::Problem;
use crate::term::{self, Kept};
use crate::update::Rule;

/// Which factors a bunch updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// One factor; the other stays, as in the paper.
    One(Side),
    /// Both, in turn: H, then W.
    Both,
}

impl Span {
    /// Whether this factor is updated.
    pub fn covers(self, side: Side) -> bool {
        match self {
            Self::One(one) => one == side,
            Self::Both => true,
        }
    }
}

/// Both factors, each with its rows as rows.
///
/// # Shapes
/// `w` n×r, `h` m×r: Hᵀ.
#[derive(Debug, Clone)]
pub struct Pair {
    /// W.
    pub w: Tensor<2>,
    /// Hᵀ.
    pub h: Tensor<2>,
}

/// The end of a bunch and the hypergradients through it, off the tape.
#[derive(Debug, Clone)]
pub struct JointHypergradient {
    /// The state at the end.
    pub pair: Pair,
    /// E there.
    pub outer_error: f64,
    /// dE/dλ of each tuned penalty, in the shape of its λ.
    pub gradients: Vec<Tensor<2>>,
}

/// T updates of one factor or both.
///
/// Wherever weights are asked for, there is one tensor for each tuned term, W's terms
/// first, in any shape that broadcasts to the factor (n×r, or m×r for Hᵀ).
#[derive(Debug, Clone)]
pub struct JointBunch {
    /// The update of W.
    pub of_w: Rule,
    /// The update of Hᵀ.
    pub of_h: Rule,
    /// X and its weights.
    pub(crate) data: Data,
    /// E.
    pub criterion: Arc<dyn Criterion>,
    /// Which factors are updated.
    pub span: Span,
    /// T.
    pub length: usize,
    pub(crate) precision: Precision,
}

/// The rules with the weights in them.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) of_w: Rule,
    pub(super) of_h: Rule,
}

impl JointBunch {
    /// A bunch with every part given.
    ///
    /// # Errors
    /// [`Error::Setting`] for T = 0, [`Error::OutsideDomain`], what the criterion
    /// refuses, and [`Error::Conflict`] for a tuned penalty on a factor that the bunch
    /// does not update.
    pub fn new(
        problem: &Problem,
        of_w: Rule,
        of_h: Rule,
        criterion: Arc<dyn Criterion>,
        span: Span,
        length: usize,
    ) -> Result<Self> {
        let data = Data::tensors(problem);
        Self::with_data(problem, [of_w, of_h], criterion, span, length, data)
    }

    /// The same on a data term, where the parts can be fused: a β-divergence, an outer error
    /// over entries of X, and tensors in this process's memory.
    ///
    /// # Errors
    /// As [`new`](Self::new); [`Error::EngineUnsupported`] with what cannot be fused.
    pub fn fused(
        problem: &Problem,
        of_w: Rule,
        of_h: Rule,
        criterion: Arc<dyn Criterion>,
        span: Span,
        length: usize,
    ) -> Result<Self> {
        let refused = |reason: String| Error::EngineUnsupported { reason };
        let beta = of_w.divergence.fused();
        let beta =
            beta.ok_or_else(|| refused(format!("divergence '{}'", of_w.divergence.name())))?;
        if !criterion.is_divergence() {
            return Err(refused(format!("criterion '{}'", criterion.name())));
        }
        if !problem.device().is_host() {
            return Err(refused("another device than ndarray".into()));
        }
        let floor = of_w.divergence.floor(problem.precision());
        // What it cannot measure is refused before it is packed.
        problem.check_domain(of_w.divergence.as_ref())?;
        let data = Data::Fused(term::dense(problem, beta, floor), criterion.entries());
        Self::with_data(problem, [of_w, of_h], criterion, span, length, data)
    }

    pub(crate) fn with_data(
        problem: &Problem,
        [of_w, of_h]: [Rule; 2],
        criterion: Arc<dyn Criterion>,
        span: Span,
        length: usize,
        data: Data,
    ) -> Result<Self> {
        check_length(length)?;
        for rule in [&of_w, &of_h] {
            problem.check_domain(rule.divergence.as_ref())?;
        }
        criterion.check(problem)?;
        for (side, rule) in [(Side::W, &of_w), (Side::H, &of_h)] {
            if !span.covers(side) && rule.terms.iter().any(|term| term.is_tuned()) {
                return Err(Error::Conflict {
                    first: "a tuned penalty on one factor",
                    second: "a bunch that updates only the other",
                    reason: "the hypergradient would be zero; let the bunch cover both",
                });
            }
        }
        Ok(Self {
            of_w,
            of_h,
            data,
            precision: problem.precision(),
            criterion,
            span,
            length,
        })
    }

    /// The number of tuned penalties on W, and of all.
    pub(super) fn tuned(&self) -> (usize, usize) {
        let count = |rule: &Rule| rule.terms.iter().filter(|term| term.is_tuned()).count();
        let of_w = count(&self.of_w);
        (of_w, of_w + count(&self.of_h))
    }

    /// The rules with these weights.
    pub(super) fn bind(&self, lambda: &[Tensor<2>]) -> Bound {
        let mut weights = lambda.iter();
        let mut bind = |rule: &Rule| {
            let mut rule = rule.clone();
            for term in rule.terms.iter_mut().filter(|term| term.is_tuned()) {
                let weight = weights.next().expect("a weight for each tuned term");
                term.weight = Weight::Bound(weight.clone());
            }
            rule
        };
        Bound {
            of_w: bind(&self.of_w),
            of_h: bind(&self.of_h),
        }
    }

    /// One step: an update of each factor in the span, H first.
    pub(super) fn step(&self, bound: &Bound, pair: &Pair) -> Pair {
        let mut next = pair.clone();
        if self.span.covers(Side::H) {
            next.h = self.data.update(&bound.of_h, Side::H, &next.h, &next.w);
        }
        if self.span.covers(Side::W) {
            next.w = self.data.update(&bound.of_w, Side::W, &next.w, &next.h);
        }
        next
    }

    /// The same, with what the way back through the updates of W and H needs.
    pub(super) fn step_and_keep(&self, bound: &Bound, pair: &Pair) -> (Pair, [Option<Kept>; 2]) {
        let mut next = pair.clone();
        let mut kept = [None, None];
        if self.span.covers(Side::H) {
            (next.h, kept[1]) = self
                .data
                .update_and_keep(&bound.of_h, Side::H, &next.h, &next.w);
        }
        if self.span.covers(Side::W) {
            (next.w, kept[0]) = self
                .data
                .update_and_keep(&bound.of_w, Side::W, &next.w, &next.h);
        }
        (next, kept)
    }

    /// The state after T steps.
    pub fn run(&self, pair: &Pair, lambda: &[Tensor<2>]) -> Pair {
        let bound = self.bind(lambda);
        (0..self.length).fold(pair.clone(), |pair, _| self.step(&bound, &pair))
    }

    /// `E_i` of each row, n×1.
    pub fn outer_errors(&self, pair: &Pair) -> Tensor<2> {
        self.data
            .outer_errors(&self.of_w, self.criterion.as_ref(), pair)
    }

    /// E.
    pub fn outer_error(&self, pair: &Pair) -> f64 {
        to_host(&self.outer_errors(pair)).iter().sum()
    }

    /// `Σ λ r` over all penalties of both factors, 1×1.
    pub fn penalty(&self, pair: &Pair, lambda: &[Tensor<2>]) -> Tensor<2> {
        let bound = self.bind(lambda);
        let unused = unused(&pair.w);
        let of_w = bound.of_w.penalty(&pair.w, &unused).sum();
        (of_w + bound.of_h.penalty(&pair.h, &unused).sum()).reshape([1, 1])
    }

    /// dE/dλ of every tuned penalty through the bunch.
    ///
    /// # Errors
    /// [`Error::Shape`] for what does not fit; [`Error::ModeUnsupported`] for the
    /// implicit mode, and where a part lacks what a mode needs.
    pub fn hypergradient(
        &self,
        pair: &Pair,
        lambda: &[Tensor<2>],
        mode: Mode,
    ) -> Result<JointHypergradient> {
        self.check(pair, lambda)?;
        match mode {
            Mode::Reverse => Ok(reverse::gradients(self, pair, lambda)),
            Mode::Adjoint => adjoint::gradients(self, pair, lambda),
            Mode::Forward => forward::gradients(self, pair, lambda, Fault::None),
            Mode::FiniteDifferences => Ok(differences::gradients(self, pair, lambda)),
            Mode::Implicit => Err(Error::ModeUnsupported {
                mode: "implicit",
                reason: "it needs a bunch over W alone with one λ per row".into(),
            }),
        }
    }

    fn check(&self, pair: &Pair, lambda: &[Tensor<2>]) -> Result<()> {
        let [n, m] = self.data.shape();
        let [_, rank] = pair.w.dims();
        let shape = |what, expected, found| Error::Shape {
            what,
            expected,
            found,
        };
        for (what, tensor, expected) in [("W", &pair.w, [n, rank]), ("Hᵀ", &pair.h, [m, rank])] {
            if tensor.dims() != expected {
                return Err(shape(what, expected, tensor.dims()));
            }
        }
        let tensors = [("W", &pair.w), ("Hᵀ", &pair.h)];
        let weights = lambda.iter().map(|weight| ("λ", weight));
        for (what, tensor) in tensors.into_iter().chain(weights) {
            if tensor.dtype() != self.precision.dtype() {
                return Err(Error::Precision {
                    what,
                    expected: format!("{:?}", self.precision.dtype()),
                    found: format!("{:?}", tensor.dtype()),
                });
            }
        }
        let (of_w, all) = self.tuned();
        if lambda.len() != all {
            return Err(shape("the list of λ", [all, 1], [lambda.len(), 1]));
        }
        for (index, weight) in lambda.iter().enumerate() {
            let rows = if index < of_w { n } else { m };
            let found = weight.dims();
            let fits = |found: usize, expected: usize| found == 1 || found == expected;
            if !(fits(found[0], rows) && fits(found[1], rank)) {
                return Err(shape("λ", [rows, rank], found));
            }
        }
        let terms = self.of_w.terms.iter().chain(&self.of_h.terms);
        let tuned = terms.filter(|term| term.is_tuned());
        for (term, weight) in tuned.zip(lambda) {
            // Weighted by component, a penalty that mixes components is no gradient.
            if weight.dims()[1] > 1 {
                check_weights_by_component(term.penalty.as_ref(), "component")?;
            }
        }
        Ok(())
    }

    /// The same bunch with its data as constants on the tape.
    pub(super) fn on_tape(&self) -> Self {
        let lift = |rule: &Rule| rule.map_weights(|weights| weights.clone().autodiff());
        Self {
            of_w: lift(&self.of_w),
            of_h: lift(&self.of_h),
            data: self.data.on_tape(),
            ..self.clone()
        }
    }
}

/// The λ of a rule all of whose weights are bound.
pub(super) fn unused(like: &Tensor<2>) -> Tensor<2> {
    Tensor::zeros([1, 1], (&like.device(), like.dtype()))
}

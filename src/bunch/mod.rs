//! The bunch: T multiplicative updates of one factor or both, as a function of
//! (W, H) and λ.
//!
//! The paper's bunch updates W alone, with H fixed, one penalty and one λ_i per row:
//! [`Bunch::new`]. [`Bunch::with_rules`] is more general:
//!
//! - the state is the [`Pair`] (W, Hᵀ), and a [`Span`] names the updated factors. With both, each
//!   step is an update of H and then one of W, and hypergradients go through both;
//! - W and H may each have several tuned penalties, each with its own weights in any
//!   [scope](crate::Scope).
//!
//! H is the W of the transposed problem, so the same [`Rule`] updates both factors, and its tangent
//! and cotangent differentiate both. The same code runs on the tape (reverse mode puts its inputs
//! on Burn's tape) and off it (baselines, finite differences), on tensors as large as X or on a
//! fused data term ([`Bunch::fused`]).
//!
//! ```
//! use std::sync::Arc;
//! use altbi::bunch::{Pair, Span};
//! use altbi::update::Rule;
//! use altbi::{Beta, Bunch, L1, Mode, PenaltyTerm, Precision, Problem, Smooth, Training};
//!
//! let x = ndarray::Array2::from_shape_fn((6, 5), |(i, j)| 1.0 + ((i * j) % 4) as f64);
//! let problem = Problem::new(&x, Precision::F64)?;
//! // Smooth columns of W, sparse H, a weight for each component of either.
//! let of_w = Rule::new(Arc::new(Beta::KL), vec![PenaltyTerm::tuned(Smooth)]);
//! let of_h = Rule::new(Arc::new(Beta::KL), vec![PenaltyTerm::tuned(L1)]);
//! let bunch = Bunch::with_rules(&problem, of_w, of_h, Arc::new(Training), Span::Both, 4)?;
//! let numbers = |rows, columns| {
//!     ndarray::Array2::from_shape_fn((rows, columns), |(i, k)| 0.5 + ((i + k) % 3) as f64)
//! };
//! let pair = Pair::new(&problem, &numbers(6, 2), &numbers(2, 5))?;
//! let lambda = [
//!     problem.tensor("λ of W", &numbers(1, 2), [1, 2])?,
//!     problem.tensor("λ of H", &numbers(1, 2), [1, 2])?,
//! ];
//! let reverse = bunch.hypergradient(&pair, &lambda, Mode::Reverse)?;
//! let adjoint = bunch.hypergradient(&pair, &lambda, Mode::Adjoint)?;
//! assert!((reverse.outer_error - adjoint.outer_error).abs() < 1e-12);
//! assert_eq!(reverse.gradients[1].dims(), [1, 2]);
//! # Ok::<(), altbi::Error>(())
//! ```

mod data;
mod host;
mod scale;

use std::ops::Range;
use std::sync::Arc;

use burn::tensor::{Tensor, TensorData};

pub(crate) use self::data::{Data, Passed};
use self::host::Spare;
pub(crate) use self::host::{HostBunch, HostPair, Passage};
pub(crate) use self::scale::summed_to;
use crate::criterion::{Criterion, Training};
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::factors::{Factors, Side};
use crate::hypergradient::{Hypergradient, Mode};
use crate::lambda::check_weights_by_component;
use crate::numerics::{Precision, to_host};
use crate::penalty::{Penalty, PenaltyTerm};
use crate::problem::{Problem, ToMatrix};
use crate::processes::Processes;
use crate::update::Rule;

/// The factors that a bunch updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// One factor. The other is fixed, as in the paper.
    One(Side),
    /// Both, in turn: H, then W.
    Both,
}

impl Span {
    /// Returns true if this factor is updated.
    pub fn covers(self, side: Side) -> bool {
        match self {
            Self::One(one) => one == side,
            Self::Both => true,
        }
    }
}

/// Both factors: W, and H transposed.
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

impl Pair {
    /// Checked factors as tensors on the device of a problem.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NegativeEntry`] or [`Error::NotFiniteEntry`].
    ///
    /// # Shapes
    /// `w` n×r, `h` r×m.
    pub fn new(
        problem: &Problem,
        w: &(impl ToMatrix + ?Sized),
        h: &(impl ToMatrix + ?Sized),
    ) -> Result<Self> {
        let ([n, m], w) = (problem.shape(), w.to_matrix()?);
        let rank = w.ncols();
        Ok(Self {
            w: problem.tensor("W", &w, [n, rank])?,
            h: problem.state_of_view(problem.matrix("H", h, [rank, m])?.t()),
        })
    }

    /// A pair from checked factors.
    pub(crate) fn of(problem: &Problem, factors: &Factors) -> Self {
        Self {
            w: problem.state(&factors.w),
            // It is transposed while it is copied, because a tensor that is transposed later is
            // read entry by entry.
            h: problem.state_of_view(factors.h.t()),
        }
    }

    /// The factor of a side, and the other one.
    pub(crate) fn seen_from(&self, side: Side) -> (&Tensor<2>, &Tensor<2>) {
        match side {
            Side::W => (&self.w, &self.h),
            Side::H => (&self.h, &self.w),
        }
    }

    pub(crate) fn factor_mut(&mut self, side: Side) -> &mut Tensor<2> {
        match side {
            Side::W => &mut self.w,
            Side::H => &mut self.h,
        }
    }

    pub(crate) fn map(&self, f: impl Fn(&Tensor<2>) -> Tensor<2>) -> Self {
        Self {
            w: f(&self.w),
            h: f(&self.h),
        }
    }
}

/// T updates of one factor or both, and the outer error at the end.
///
/// Weights are passed as one tensor for each tuned term, W's terms first, in any shape that
/// broadcasts to the factor (n×r, or m×r for Hᵀ).
///
/// ```
/// use altbi::bunch::Pair;
/// use altbi::{Beta, Bunch, L1, Mode, Precision, Problem};
/// let x = ndarray::array![[1.0, 2.0, 0.5], [0.3, 1.0, 4.0]];
/// let problem = Problem::new(&x, Precision::F64)?;
/// let pair = Pair::new(&problem, &ndarray::array![[0.5], [1.0]], &ndarray::array![[1.0, 1.5, 2.0]])?;
/// let lambda = [problem.tensor("λ", &ndarray::array![[0.1], [0.2]], [2, 1])?];
/// let bunch = Bunch::new(&problem, Beta::KL, L1, 4)?;
/// let reverse = bunch.hypergradient(&pair, &lambda, Mode::Reverse)?;
/// let forward = bunch.hypergradient(&pair, &lambda, Mode::Forward)?;
/// assert!((reverse.outer_error - forward.outer_error).abs() < 1e-12);
/// # Ok::<(), altbi::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Bunch {
    /// The update of W.
    pub of_w: Rule,
    /// The update of Hᵀ.
    pub of_h: Rule,
    /// X and its weights.
    pub(crate) data: Data,
    /// E.
    pub criterion: Arc<dyn Criterion>,
    /// The updated factors.
    pub span: Span,
    /// T.
    pub length: usize,
    pub(crate) precision: Precision,
    /// The processes that share the rows.
    pub(crate) processes: Processes,
    spare: Arc<Spare>,
}

/// The rules with bound weights.
#[derive(Debug, Clone)]
pub(crate) struct Bound {
    pub(crate) of_w: Rule,
    pub(crate) of_h: Rule,
}

impl Bound {
    pub(crate) fn rule(&self, side: Side) -> &Rule {
        match side {
            Side::W => &self.of_w,
            Side::H => &self.of_h,
        }
    }
}

/// The order in which the factors of a span are updated.
pub(crate) const ORDER: [Side; 2] = [Side::H, Side::W];

impl Bunch {
    /// The paper's bunch: updates of W with H fixed, one tuned penalty, the training error
    /// as outer error, and exponent 1.
    ///
    /// # Errors
    /// [`Error::Setting`] for a T outside 1 … 100000, [`Error::OutsideDomain`] for data outside the
    /// domain of the divergence.
    pub fn new(
        problem: &Problem,
        divergence: impl Divergence + 'static,
        penalty: impl Penalty + 'static,
        length: usize,
    ) -> Result<Self> {
        let of_w = Rule::new(Arc::new(divergence), vec![PenaltyTerm::tuned(penalty)]);
        let of_h = of_w.without_terms();
        let (criterion, span) = (Arc::new(Training), Span::One(Side::W));
        Self::with_rules(problem, of_w, of_h, criterion, span, length)
    }

    /// A bunch with every part given, on tensors as large as X.
    ///
    /// # Errors
    /// Those of [`new`](Self::new) and of the criterion, and [`Error::Conflict`] for a tuned
    /// penalty on a factor that the bunch does not update.
    pub fn with_rules(
        problem: &Problem,
        of_w: Rule,
        of_h: Rule,
        criterion: Arc<dyn Criterion>,
        span: Span,
        length: usize,
    ) -> Result<Self> {
        let data = Data::tensors(problem)?;
        Self::with_data(problem, [of_w, of_h], criterion, span, length, data)
    }

    /// The same on a data term. It needs parts that can be fused: one β-divergence for both factors,
    /// an outer error over entries of X, and tensors in this process's memory.
    ///
    /// # Errors
    /// Those of [`with_rules`](Self::with_rules); [`Error::EngineUnsupported`] with the part that
    /// cannot be fused.
    pub fn fused(
        problem: &Problem,
        of_w: Rule,
        of_h: Rule,
        criterion: Arc<dyn Criterion>,
        span: Span,
        length: usize,
    ) -> Result<Self> {
        let names = [&of_w, &of_h].map(|rule| rule.divergence.name());
        if names[0] != names[1] {
            let reason = format!("updates by two divergences, {} and {}", names[0], names[1]);
            return Err(Error::EngineUnsupported { reason });
        }
        let data = Data::fused(problem, of_w.divergence.as_ref(), criterion.as_ref())?;
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
            check_rows(problem, side, rule)?;
            if !span.covers(side) && rule.tuned().next().is_some() {
                return Err(Error::Conflict {
                    first: "a tuned penalty on one factor",
                    second: "a bunch that updates only the other",
                    reason: "the hypergradient would be zero; use a bunch over both",
                });
            }
        }
        Ok(Self {
            of_w,
            of_h,
            data,
            precision: problem.precision(),
            processes: problem.processes().clone(),
            spare: Arc::default(),
            criterion,
            span,
            length,
        })
    }

    /// The same bunch with another T.
    ///
    /// # Errors
    /// [`Error::Setting`] for a T outside 1 … 100000.
    pub fn with_length(&self, length: usize) -> Result<Self> {
        check_length(length)?;
        Ok(Self {
            length,
            ..self.clone()
        })
    }

    /// The side with independent rows: the updated factor, if the bunch updates one factor only and
    /// no penalty couples its rows. `None` otherwise.
    pub fn independent_rows(&self) -> Option<Side> {
        match self.span {
            Span::One(Side::W) if self.of_w.is_separable() => Some(Side::W),
            Span::One(Side::H) if self.of_h.is_separable() => Some(Side::H),
            _ => None,
        }
    }

    /// The number of tuned penalties on W, and of all.
    pub(crate) fn tuned(&self) -> (usize, usize) {
        let of_w = self.of_w.tuned().count();
        (of_w, of_w + self.of_h.tuned().count())
    }

    /// The side of a tuned penalty.
    pub(crate) fn side_of(&self, index: usize) -> Side {
        if index < self.tuned().0 {
            Side::W
        } else {
            Side::H
        }
    }

    /// The rules with these weights.
    pub(crate) fn bind(&self, lambda: &[Tensor<2>]) -> Bound {
        let (on_w, _) = self.tuned();
        Bound {
            of_w: self.of_w.bind(&lambda[..on_w]),
            of_h: self.of_h.bind(&lambda[on_w..]),
        }
    }

    /// One step: an update of each factor in the span, H first.
    pub(crate) fn step(&self, bound: &Bound, pair: &Pair) -> Pair {
        let mut next = pair.clone();
        for side in ORDER {
            if self.span.covers(side) {
                let (factor, other) = next.seen_from(side);
                let updated = self.data.update(bound.rule(side), side, factor, other);
                *next.factor_mut(side) = updated;
            }
        }
        next
    }

    /// The state after T steps.
    pub fn run(&self, pair: &Pair, lambda: &[Tensor<2>]) -> Pair {
        let bound = self.bind(lambda);
        (0..self.length).fold(pair.clone(), |pair, _| self.step(&bound, &pair))
    }

    /// `E_i` of each row of X, n×1.
    pub fn outer_errors(&self, pair: &Pair) -> Tensor<2> {
        self.data
            .outer_errors(&self.of_w, self.criterion.as_ref(), pair)
    }

    /// E, over the rows of all processes.
    pub fn outer_error(&self, pair: &Pair) -> f64 {
        let own = to_host(&self.outer_errors(pair)).iter().sum();
        self.processes.total(own)
    }

    /// Adds up a sum that all rows of W share, over all processes. Sums of H, and sums of each row,
    /// stay as they are.
    pub(crate) fn over_processes(&self, side: Side, sum: Tensor<2>) -> Tensor<2> {
        let [rows, columns] = sum.dims();
        if self.processes.is_alone() || side == Side::H || rows > 1 {
            return sum;
        }
        let mut values = to_host(&sum);
        self.processes.sum(&mut values);
        let data = TensorData::new(values, [rows, columns]);
        Tensor::from_data(data, (&sum.device(), sum.dtype()))
    }

    /// `Σ λ r` over all penalties of both factors.
    pub fn penalty(&self, pair: &Pair, lambda: &[Tensor<2>]) -> f64 {
        let bound = self.bind(lambda);
        let of = |rule: &Rule, factor| to_host(&rule.penalty(factor)).iter().sum::<f64>();
        self.processes.total(of(&bound.of_w, &pair.w)) + of(&bound.of_h, &pair.h)
    }

    /// dE/dλ of every tuned penalty through the bunch, by the given mode with its default
    /// settings.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Precision`] for bad factors or weights;
    /// [`Error::ScopeUnsupported`] for weights of components on a penalty that is not a sum over
    /// entries; [`Error::ModeUnsupported`] if the mode does not support the bunch; those of the
    /// implicit mode.
    pub fn hypergradient(
        &self,
        pair: &Pair,
        lambda: &[Tensor<2>],
        mode: Mode,
    ) -> Result<Hypergradient> {
        self.check(pair, lambda)?;
        self.check_processes(lambda, mode)?;
        mode.method().compute(self, pair, lambda)
    }

    /// Refuses modes that need the rows of other processes.
    fn check_processes(&self, lambda: &[Tensor<2>], mode: Mode) -> Result<()> {
        if self.processes.is_alone() {
            return Ok(());
        }
        let (on_w, _) = self.tuned();
        let by_row = lambda[..on_w].iter().any(|weight| weight.dims()[0] > 1);
        let reason = match mode {
            Mode::Reverse | Mode::Adjoint => return Ok(()),
            Mode::Forward if self.independent_rows().is_some() || !by_row => return Ok(()),
            Mode::Forward => "a tangent for each row would pass through all processes",
            Mode::Implicit => "processes would need different numbers of updates",
            Mode::FiniteDifferences => "it moves one weight at a time",
        };
        Err(Error::NotSplit {
            what: format!("{mode} mode"),
            processes: self.processes.size(),
            reason,
        })
    }

    pub(crate) fn check(&self, pair: &Pair, lambda: &[Tensor<2>]) -> Result<()> {
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
        let tuned = self.of_w.tuned().chain(self.of_h.tuned());
        for (term, weight) in tuned.zip(lambda) {
            // With weights of components, a penalty that is not a sum over entries has no gradient
            // of this form.
            if weight.dims()[1] > 1 {
                check_weights_by_component(term.penalty.as_ref(), "component")?;
            }
        }
        Ok(())
    }

    /// The same bunch over W on a block of rows, which must be independent.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Self {
        let columns = |weights: &Tensor<2>| weights.clone().slice([rows.clone(), 0..1]);
        Self {
            of_w: self.of_w.map_weights(columns),
            data: self.data.rows(rows.clone()),
            ..self.clone()
        }
    }

    /// The same bunch with its data as constants on the tape.
    pub(crate) fn on_tape(&self) -> Self {
        let lift = |rule: &Rule| rule.map_weights(|weights| weights.clone().autodiff());
        Self {
            of_w: lift(&self.of_w),
            of_h: lift(&self.of_h),
            data: self.data.on_tape(),
            ..self.clone()
        }
    }

    /// The result of a mode, from a final state and hypergradients.
    pub(crate) fn outcome(&self, pair: Pair, gradients: Vec<Tensor<2>>) -> Hypergradient {
        Hypergradient {
            outer_error: self.outer_error(&pair),
            pair,
            gradients,
        }
    }
}

/// Largest T. A longer bunch would take too long, and its tape too much memory.
const LONGEST: usize = 100_000;

/// Refuses penalties for factors of another size.
fn check_rows(problem: &Problem, side: Side, rule: &Rule) -> Result<()> {
    let [n, m] = problem.shape();
    let (factor, lines, found) = match side {
        Side::W => ("W", "rows", n),
        Side::H => ("H", "columns", m),
    };
    for term in &rule.terms {
        match term.penalty.rows() {
            Some(expected) if expected != found => {
                return Err(Error::PenaltyRows {
                    penalty: term.penalty.name(),
                    factor,
                    lines,
                    expected,
                    found,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

pub(crate) fn check_length(length: usize) -> Result<()> {
    let fits = (1..=LONGEST).contains(&length);
    let range = "at least 1 and at most 100000";
    Error::require(fits, "the bunch length T", length as f64, range)
}

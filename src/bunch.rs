//! The bunch: T multiplicative updates of W with H fixed, as a function of
//! `(w⁽⁰⁾, λ)`.
//!
//! The same code runs taped (reverse mode lifts its inputs onto Burn's tape) and
//! untaped (baselines, finite differences).

use std::ops::Range;
use std::sync::Arc;

use burn::tensor::Tensor;

use crate::criterion::{Criterion, Training};
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::hypergradient::{Hypergradient, Mode};
use crate::numerics::to_host;
use crate::penalty::{Penalty, PenaltyTerm};
use crate::problem::{Observed, Problem};
use crate::update::Rule;

/// `w⁽ᵗ⁾ = Φ(w⁽ᵗ⁻¹⁾, λ)` for t = 1 … T, and the outer error at the end.
///
/// ```
/// use altbi::{Beta, Bunch, L1, Mode, Precision, Problem};
/// let x = ndarray::array![[1.0, 2.0, 0.5], [0.3, 1.0, 4.0]];
/// let problem = Problem::new(&x, Precision::F64)?;
/// let w = problem.tensor("W", &ndarray::array![[0.5], [1.0]], [2, 1])?;
/// let h = problem.tensor("H", &ndarray::array![[1.0, 1.5, 2.0]], [1, 3])?;
/// let lambda = problem.tensor("λ", &ndarray::array![[0.1], [0.2]], [2, 1])?;
/// let bunch = Bunch::new(&problem, &h, Beta::KL, L1, 4)?;
/// let reverse = bunch.hypergradient(&w, &lambda, Mode::Reverse)?;
/// let forward = bunch.hypergradient(&w, &lambda, Mode::Forward)?;
/// assert!((reverse.outer_error - forward.outer_error).abs() < 1e-12);
/// # Ok::<(), altbi::Error>(())
/// ```
///
/// # Shapes
/// `w` is n×r, `other` (H) r×m, `lambda` n×1.
#[derive(Debug, Clone)]
pub struct Bunch {
    /// The update Φ.
    pub rule: Rule,
    /// X and its weights.
    pub observed: Observed,
    /// H, fixed during the bunch.
    pub other: Tensor<2>,
    /// E.
    pub criterion: Arc<dyn Criterion>,
    /// T.
    pub length: usize,
}

impl Bunch {
    /// A bunch with one tuned penalty, the training error as outer error, and
    /// exponent 1: the paper's. Other choices are public fields.
    ///
    /// # Errors
    /// [`Error::Setting`] for T = 0, [`Error::OutsideDomain`] for data that the
    /// divergence cannot measure, [`Error::Shape`] for an H that does not fit X.
    pub fn new(
        problem: &Problem,
        h: &Tensor<2>,
        divergence: impl Divergence + 'static,
        penalty: impl Penalty + 'static,
        length: usize,
    ) -> Result<Self> {
        let rule = Rule::new(Arc::new(divergence), vec![PenaltyTerm::tuned(penalty)]);
        Self::with_rule(problem, h, rule, Arc::new(Training), length)
    }

    /// A bunch with every part given.
    ///
    /// # Errors
    /// As [`new`](Self::new), and what the criterion's
    /// [`check`](Criterion::check) refuses.
    pub fn with_rule(
        problem: &Problem,
        h: &Tensor<2>,
        rule: Rule,
        criterion: Arc<dyn Criterion>,
        length: usize,
    ) -> Result<Self> {
        check_length(length)?;
        rule.check()?;
        problem.check_domain(rule.divergence.as_ref())?;
        criterion.check(problem)?;
        let [rank, columns] = h.dims();
        let expected = [rank, problem.shape()[1]];
        if columns != expected[1] {
            return Err(Error::Shape {
                what: "H",
                expected,
                found: h.dims(),
            });
        }
        if h.dtype() != problem.precision().dtype() {
            return Err(Error::Precision {
                what: "H",
                expected: format!("{:?}", problem.precision().dtype()),
                found: format!("{:?}", h.dtype()),
            });
        }
        Ok(Self {
            rule,
            observed: problem.rows().clone(),
            other: h.clone(),
            criterion,
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

    /// `w⁽ᵀ⁾`.
    pub fn run(&self, w: &Tensor<2>, lambda: &Tensor<2>) -> Tensor<2> {
        (0..self.length).fold(w.clone(), |w, _| self.step(&w, lambda))
    }

    /// `[w⁽⁰⁾, …, w⁽ᵀ⁾]`.
    pub fn trajectory(&self, w: &Tensor<2>, lambda: &Tensor<2>) -> Vec<Tensor<2>> {
        let mut states = vec![w.clone()];
        for t in 0..self.length {
            states.push(self.step(&states[t], lambda));
        }
        states
    }

    /// `Φ(w, λ)`: one update.
    pub fn step(&self, w: &Tensor<2>, lambda: &Tensor<2>) -> Tensor<2> {
        self.rule.update(&self.observed, w, &self.other, lambda)
    }

    /// `E_i(w)` of each row, n×1.
    pub fn outer_errors(&self, w: &Tensor<2>) -> Tensor<2> {
        let y = self.rule.reconstruct(w, &self.other);
        self.criterion
            .value(self.rule.divergence.as_ref(), &self.observed, &y)
    }

    /// `dE/dλ` through the bunch, by the given mode with its default settings.
    ///
    /// # Errors
    /// [`Error::Shape`] for a w or λ that does not fit;
    /// [`Error::ModeUnsupported`] where the mode cannot do what is asked; what
    /// the implicit mode refuses.
    pub fn hypergradient(
        &self,
        w: &Tensor<2>,
        lambda: &Tensor<2>,
        mode: Mode,
    ) -> Result<Hypergradient> {
        self.check_shapes(w, lambda)?;
        mode.method().compute(self, w, lambda)
    }

    pub(crate) fn check_shapes(&self, w: &Tensor<2>, lambda: &Tensor<2>) -> Result<()> {
        let [n, _] = self.observed.x.dims();
        let [rank, _] = self.other.dims();
        for (what, tensor, expected) in [("W", w, [n, rank]), ("λ", lambda, [n, 1])] {
            if tensor.dims() != expected {
                return Err(Error::Shape {
                    what,
                    expected,
                    found: tensor.dims(),
                });
            }
            if tensor.dtype() != self.other.dtype() {
                return Err(Error::Precision {
                    what,
                    expected: format!("{:?}", self.other.dtype()),
                    found: format!("{:?}", tensor.dtype()),
                });
            }
        }
        Ok(())
    }

    /// The same bunch on a block of rows; rows must be independent.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Self {
        let columns = |weights: &Tensor<2>| weights.clone().slice([rows.clone(), 0..1]);
        Self {
            rule: self.rule.map_weights(columns),
            observed: self.observed.rows(rows.clone()),
            ..self.clone()
        }
    }

    /// The same bunch with its data as constants on the tape.
    pub(crate) fn on_tape(&self) -> Self {
        Self {
            rule: self.rule.map_weights(|weights| weights.clone().autodiff()),
            observed: self.observed.on_tape(),
            other: self.other.clone().autodiff(),
            ..self.clone()
        }
    }

    /// What every mode returns, from a final state and a hypergradient.
    pub(crate) fn outcome(&self, w: Tensor<2>, gradient: Tensor<2>) -> Hypergradient {
        let outer_error = to_host(&self.outer_errors(&w)).iter().sum();
        Hypergradient {
            w,
            outer_error,
            gradient,
        }
    }
}

/// A longer bunch would not end, and its tape would not fit anywhere.
const LONGEST: usize = 100_000;

pub(crate) fn check_length(length: usize) -> Result<()> {
    if (1..=LONGEST).contains(&length) {
        return Ok(());
    }
    Err(Error::Setting {
        setting: "the bunch length T",
        value: length as f64,
        range: "at least 1 and at most 100000",
    })
}

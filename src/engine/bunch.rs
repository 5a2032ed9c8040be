//! The fused engine for callers with their own loop.

use ndarray::Array2;

use super::block::Wanted;
use super::lanes::Real;
use super::{Engine, FusedEngine, Plan};
use crate::criterion::Criterion;
use crate::error::{Error, Result};
use crate::factors::Factors;
use crate::numerics::Precision;
use crate::problem::Problem;
use crate::update::Rule;

/// Fused updates of a problem's factors, on the host: [`Bunch`](crate::Bunch)
/// without tensors and without a tape.
///
/// ```
/// use std::sync::Arc;
/// use altbi::engine::FusedBunch;
/// use altbi::update::Rule;
/// use altbi::{Beta, Factors, L1, PenaltyTerm, Precision, Problem, Training};
/// use ndarray::{Array2, array};
///
/// let x = array![[1.0, 2.0, 0.5], [0.3, 1.0, 4.0]];
/// let problem = Problem::new(&x, Precision::F64)?;
/// let rule = Rule::new(Arc::new(Beta::KL), vec![PenaltyTerm::tuned(L1)]);
/// let mut bunch = FusedBunch::new(&problem, &rule, &Training, 1, 4)?;
///
/// let mut factors = Factors { w: array![[0.5], [1.0]], h: array![[1.0, 1.5, 2.0]] };
/// let mut gradient = Array2::zeros((2, 1));
/// bunch.update_h(&mut factors);
/// let error = bunch.run(&mut factors, &array![[0.1], [0.2]], &mut gradient);
/// assert!(error > 0.0 && gradient.iter().all(|slope| slope.is_finite()));
/// # Ok::<(), altbi::Error>(())
/// ```
///
/// The work is shared by the threads of the rayon pool that it is called in.
pub struct FusedBunch<'a> {
    problem: &'a Problem,
    engine: Box<dyn Updates + Send>,
    rank: usize,
}

impl<'a> FusedBunch<'a> {
    /// A bunch of T updates of W by a rule, per update of H by the same rule without penalties.
    ///
    /// # Errors
    /// [`Error::EngineUnsupported`] for parts that these loops do not support, for example weights of
    /// entries or a second tuned term; those of [`Bunch::with_rules`](crate::Bunch::with_rules).
    pub fn new(
        problem: &'a Problem,
        rule: &Rule,
        criterion: &dyn Criterion,
        rank: usize,
        length: usize,
    ) -> Result<Self> {
        crate::bunch::check_length(length)?;
        problem.check_domain(rule.divergence.as_ref())?;
        criterion.check(problem)?;
        let unsupported = |reason| Error::EngineUnsupported { reason };
        let of_h = rule.without_terms();
        let plans = [
            Plan::of(rule).map_err(unsupported)?,
            Plan::of(&of_h).map_err(unsupported)?,
        ];
        Plan::check(problem, criterion).map_err(unsupported)?;
        let threads = rayon::current_num_threads();
        let engine: Box<dyn Updates + Send> = match problem.precision() {
            Precision::F64 => Box::new(FusedEngine::<f64>::new(
                problem, plans, rank, length, threads,
            )),
            Precision::F32 => Box::new(FusedEngine::<f32>::new(
                problem, plans, rank, length, threads,
            )),
        };
        Ok(Self {
            problem,
            engine,
            rank,
        })
    }

    /// One update of H.
    ///
    /// # Panics
    /// If the factors do not have the problem's shape and the rank.
    pub fn update_h(&mut self, factors: &mut Factors) {
        self.check(factors);
        self.engine.update_other(self.problem, factors);
    }

    /// T updates of W and the hypergradient through them; returns E at their end.
    ///
    /// # Panics
    /// If something does not have the problem's shape and the rank.
    ///
    /// # Shapes
    /// `lambda` and `gradient` n×1.
    pub fn run(
        &mut self,
        factors: &mut Factors,
        lambda: &Array2<f64>,
        gradient: &mut Array2<f64>,
    ) -> f64 {
        self.check_lambda(factors, lambda);
        assert_eq!(
            gradient.dim(),
            lambda.dim(),
            "the hypergradient has λ's shape"
        );
        let gradient = Some(gradient);
        let errors = self.engine.bunch(self.problem, factors, lambda, gradient);
        errors.expect("only modes of the tape refuse").outer_error
    }

    /// T updates of W alone.
    ///
    /// # Panics
    /// If something does not have the problem's shape and the rank.
    pub fn update_w(&mut self, factors: &mut Factors, lambda: &Array2<f64>) {
        self.check_lambda(factors, lambda);
        self.engine.update_w(self.problem, factors, lambda);
    }

    fn check(&self, factors: &mut Factors) {
        let [n, m] = self.problem.shape();
        assert_eq!(factors.w.dim(), (n, self.rank), "the shape of W");
        assert_eq!(factors.h.dim(), (self.rank, m), "the shape of H");
        for factor in [&mut factors.w, &mut factors.h] {
            if !factor.is_standard_layout() {
                *factor = factor.as_standard_layout().into_owned();
            }
        }
    }

    fn check_lambda(&self, factors: &mut Factors, lambda: &Array2<f64>) {
        self.check(factors);
        assert_eq!(lambda.dim(), (factors.w.nrows(), 1), "the shape of λ");
    }
}

/// An engine that can leave the errors out.
trait Updates: Engine {
    fn update_w(&mut self, problem: &Problem, factors: &mut Factors, lambda: &Array2<f64>);
}

impl<T: Real> Updates for FusedEngine<T> {
    fn update_w(&mut self, problem: &Problem, factors: &mut Factors, lambda: &Array2<f64>) {
        self.bunch_of(problem, factors, lambda, Wanted::Factor);
    }
}

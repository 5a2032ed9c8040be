//! The result of a run.

use std::fmt;
use std::sync::Arc;

use burn::tensor::Tensor;
use ndarray::Array2;

use super::checkpoint::Resumed;
use super::model::{Model, WeightedPenalty};
use super::{Record, StopReason};
use crate::config::{AltBiConfig, Selection};
use crate::device::Device;
use crate::engine::EngineUsed;
use crate::error::{Error, Result};
use crate::factors::{Factors, Side};
use crate::lambda::{LambdaShare, Layout, Scope, Units};
use crate::metrics::{
    paper_relative_error, relative_error, sparsity_h, sparsity_w, sparsity_w_over,
};
use crate::penalty::Weight;
use crate::problem::{Problem, Scaling, ToMatrix};
use crate::update::Rule;

/// The result of a run: factors, λ and history.
///
/// Matrices are [`ndarray::Array2`] of `f64` for every precision of the run.
/// [`w_tensor`](Outcome::w_tensor), [`h_tensor`](Outcome::h_tensor) and
/// [`lambda_tensor`](Outcome::lambda_tensor) give Burn tensors. `as_slice()` of a matrix gives its
/// entries in row order.
///
/// # Shapes
/// W n×r, H r×m, λ n×1 (p×1 for p weights).
#[derive(Clone)]
pub struct Outcome {
    /// The basis.
    pub w: Array2<f64>,
    /// The encoding.
    pub h: Array2<f64>,
    /// The penalty weights at the end. [`weights`](Outcome::weights) splits them by penalty.
    pub lambda: Array2<f64>,
    /// The penalty weights at the start.
    pub lambda_at_start: Array2<f64>,
    /// One record per iteration, the start included.
    pub history: Vec<Record>,
    /// The reason for the end of the run.
    pub stop_reason: StopReason,
    /// The error of a breakdown. The state is then the one before it.
    pub breakdown: Option<Arc<Error>>,
    /// Outer iterations done.
    pub iterations: usize,
    /// The iteration of these factors and λ: the last one, or with
    /// [`Selection::Best`](crate::Selection::Best) the one with the lowest outer error. The numbers
    /// below belong to this iterate.
    pub selected: usize,
    /// E, the outer error.
    pub outer_error: f64,
    /// D(X, WH).
    pub divergence: f64,
    /// D + Σ_i λ_i r(w_i).
    pub objective: f64,
    /// D(X, WH) / D(X, mean of X): 0 is perfect, 1 no better than a constant.
    /// NaN for a constant X.
    pub relative_error: f64,
    /// The paper's D₁(X, WH) / Σ x log x, whose denominator can be negative.
    pub paper_relative_error: f64,
    /// Percentage of W's entries that are (almost) zero.
    pub sparsity_w: f64,
    /// Percentage of H's entries that are (almost) zero.
    pub sparsity_h: f64,
    /// The engine.
    pub engine: EngineUsed,
    /// Seconds the run took.
    pub seconds: f64,
    /// The rules of W and H, their weights not bound.
    rules: (Rule, Rule),
    config: AltBiConfig,
    layout: Layout,
    lambda_at_end: Array2<f64>,
    acting_lambda: Array2<f64>,
    /// The last iterate, if another one was selected.
    last: Option<Factors>,
    device: Device,
    /// The scaling of the data, if the factors are in their units again.
    scaling: Option<Scaling>,
    /// The rows and weights of this process, if several share the run.
    pub(super) share: Option<Arc<LambdaShare>>,
}

/// The weights of one tuned penalty at the end of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct TunedWeights {
    /// The penalised factor.
    pub side: Side,
    /// The penalty.
    pub penalty: String,
    /// Scope of the weights.
    pub scope: Scope,
    /// λ at the end, in a shape that broadcasts to W (n×r) or, transposed to H's own
    /// order, to H (r×m).
    pub lambda: Array2<f64>,
    /// λ at the start, likewise.
    pub at_start: Array2<f64>,
}

impl fmt::Debug for Outcome {
    /// Leaves out the matrices and the history, which are too long.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Outcome")
            .field("stop_reason", &self.stop_reason)
            .field("iterations", &self.iterations)
            .field("divergence", &self.divergence)
            .field("objective", &self.objective)
            .finish_non_exhaustive()
    }
}

impl Outcome {
    pub(super) fn new(
        problem: &Problem,
        rules: (Rule, Rule),
        config: &AltBiConfig,
        layout: Layout,
        story: Resumed,
        stop_reason: StopReason,
        engine: EngineUsed,
    ) -> Self {
        let state = &story.state;
        let (factors, lambda, acted, record) = match (config.select, &state.best) {
            (Selection::Best, Some(best)) => {
                (&best.factors, &best.lambda, &best.acted, &best.record)
            }
            _ => (&state.factors, &state.lambda, &state.lambda, &state.record),
        };
        // (During a run H may be stored by columns.)
        let by_rows = |factors: &Factors| Factors {
            w: factors.w.clone(),
            h: factors.h.as_standard_layout().into_owned(),
        };
        let is_last = record.iteration == state.iteration;
        let last = (!is_last).then(|| by_rows(&state.factors));
        let factors = by_rows(factors);
        let paper_relative_error = paper_relative_error(problem, &factors);
        let Factors { w, h } = factors;
        Self {
            relative_error: relative_error(problem, &rules.1.without_terms(), record.divergence),
            paper_relative_error,
            sparsity_w: sparsity_w_over(&w, problem.processes()),
            sparsity_h: sparsity_h(&h),
            w,
            h,
            lambda: lambda.clone(),
            lambda_at_end: state.lambda.clone(),
            acting_lambda: acted.clone(),
            last,
            device: problem.device().clone(),
            scaling: None,
            share: None,
            stop_reason,
            breakdown: None,
            iterations: state.iteration,
            selected: record.iteration,
            outer_error: record.outer_error,
            divergence: record.divergence,
            objective: record.objective,
            seconds: state.record.seconds,
            lambda_at_start: story.lambda_at_start,
            history: story.history,
            rules,
            config: config.clone(),
            layout,
            engine,
        }
    }

    /// The outcome with the rows and weights of all processes, on process 0. All processes must
    /// call this together. With one process it is the outcome itself.
    pub fn gathered(mut self) -> Option<Self> {
        let Some(share) = self.share.take() else {
            return Some(self);
        };
        let w = share.rows().gather(&self.w);
        let columns = [
            &self.lambda,
            &self.lambda_at_start,
            &self.lambda_at_end,
            &self.acting_lambda,
        ];
        let [lambda, at_start, at_end, acting] = columns.map(|column| share.gather(column));
        Some(Self {
            w: w?,
            lambda: lambda?,
            lambda_at_start: at_start?,
            lambda_at_end: at_end?,
            acting_lambda: acting?,
            last: None,
            layout: share.whole_layout(),
            ..self
        })
    }

    /// λ of each tuned penalty in the shape of its scope, those of W first.
    pub fn weights(&self) -> Vec<TunedWeights> {
        let ends = self.layout.split(&self.lambda);
        let starts = self.layout.split(&self.lambda_at_start);
        let groups = self.layout.groups.iter().zip(ends).zip(starts);
        let groups = groups.map(|((group, lambda), at_start)| {
            let placed = |matrix: Array2<f64>| match group.side {
                Side::W => matrix,
                Side::H => matrix.t().as_standard_layout().into_owned(),
            };
            TunedWeights {
                side: group.side,
                penalty: group.penalty.clone(),
                scope: group.scope,
                lambda: placed(lambda),
                at_start: placed(at_start),
            }
        });
        groups.collect()
    }

    /// λ that led to these factors: with [`Selection::Best`](crate::Selection::Best) the one
    /// before the step of the selected iteration.
    pub fn acting_lambda(&self) -> Array2<f64> {
        self.acting_lambda.clone()
    }

    /// λ after the last iteration, even if another iterate was kept.
    pub fn final_lambda(&self) -> Array2<f64> {
        self.lambda_at_end.clone()
    }

    /// The factors after the last iteration, even if another iterate was kept. (Only of an outcome as
    /// a solver returns it: not gathered, refitted, or in the units of the data.)
    pub(crate) fn last_factors(&self) -> Factors {
        self.last.clone().unwrap_or_else(|| self.factors())
    }

    /// The history of this run with the factors of a refit and their numbers.
    pub(crate) fn refitted(self, refit: Self, lambda: Array2<f64>, outer_error: f64) -> Self {
        Self {
            w: refit.w,
            h: refit.h,
            lambda,
            outer_error,
            divergence: refit.divergence,
            objective: refit.objective,
            relative_error: refit.relative_error,
            paper_relative_error: refit.paper_relative_error,
            sparsity_w: refit.sparsity_w,
            sparsity_h: refit.sparsity_h,
            last: None,
            ..self
        }
    }

    /// The outcome of a [scaled](Problem::scaled) problem with factors in the units of the
    /// data. λ, divergence, objective and errors stay those of the scaled problem.
    #[must_use]
    pub fn in_units_of_data(mut self, scaling: &Scaling) -> Self {
        let Factors { w, h } = scaling.undone(&self.factors());
        (self.sparsity_w, self.sparsity_h) = (sparsity_w(&w), sparsity_h(&h));
        (self.w, self.h) = (w, h);
        self.last = None;
        self.scaling = Some(scaling.clone());
        self
    }

    /// The settings it was found with, and the name of the divergence.
    pub(crate) fn settings(&self) -> (&AltBiConfig, String) {
        (&self.config, self.rules.0.divergence.name())
    }

    /// The scaling of the data, if they were scaled.
    pub fn scaling(&self) -> Option<&Scaling> {
        self.scaling.as_ref()
    }

    /// The model, which encodes new data.
    pub fn model(&self) -> Model {
        let mut tuned = self.weights().into_iter();
        let mut penalties = Vec::new();
        for (side, rule) in [(Side::W, &self.rules.0), (Side::H, &self.rules.1)] {
            for term in &rule.terms {
                let (scope, lambda, units) = match &term.weight {
                    Weight::Tuned | Weight::Bound(_) => {
                        let of = tuned.next().expect("a group for each tuned term");
                        (of.scope, of.lambda, self.config.units)
                    }
                    Weight::Fixed(weight) => {
                        let weight = Array2::from_elem((1, 1), *weight);
                        (Scope::Shared, weight, Units::Absolute)
                    }
                    Weight::FixedRows(weights) => {
                        let weights = weights.to_matrix().expect("a tensor fills its shape");
                        let placed = match side {
                            Side::W => weights,
                            Side::H => weights.reversed_axes(),
                        };
                        (Scope::Row, placed, Units::Absolute)
                    }
                };
                penalties.push(WeightedPenalty {
                    side,
                    penalty: term.penalty.clone(),
                    scope,
                    lambda,
                    units,
                });
            }
        }
        Model {
            w: self.w.clone(),
            h: self.h.clone(),
            divergence: self.rules.0.divergence.clone(),
            config: self.config.clone(),
            penalties,
            device: self.device.clone(),
            scaling: self.scaling.clone(),
        }
    }

    /// Encodes new rows with H fixed, under the run's penalties on W: [`Model::encode_rows`].
    /// (scikit-learn: `transform`.)
    ///
    /// # Errors
    /// Those of [`Model::encode_rows`].
    ///
    /// # Shapes
    /// `x` p×m, result p×r.
    pub fn encode_rows(&self, x: &(impl ToMatrix + ?Sized)) -> Result<Array2<f64>> {
        self.model().encode_rows(x)
    }

    /// Encodes new columns with W fixed, under the run's penalties on H:
    /// [`Model::encode_columns`].
    ///
    /// # Errors
    /// Those of [`Model::encode_rows`].
    ///
    /// # Shapes
    /// `x` n×p, result r×p.
    pub fn encode_columns(&self, x: &(impl ToMatrix + ?Sized)) -> Result<Array2<f64>> {
        self.model().encode_columns(x)
    }

    /// The seed of the random start.
    pub fn seed(&self) -> u64 {
        self.config.seed
    }

    /// W and H together.
    pub fn factors(&self) -> Factors {
        Factors {
            w: self.w.clone(),
            h: self.h.clone(),
        }
    }

    /// W as a Burn tensor in the run's precision.
    pub fn w_tensor(&self) -> Tensor<2> {
        self.tensor(&self.w)
    }

    /// H as a Burn tensor in the run's precision.
    pub fn h_tensor(&self) -> Tensor<2> {
        self.tensor(&self.h)
    }

    /// λ as a Burn tensor in the run's precision.
    pub fn lambda_tensor(&self) -> Tensor<2> {
        self.tensor(&self.lambda)
    }

    /// A matrix as a tensor on the device of the run.
    fn tensor(&self, matrix: &Array2<f64>) -> Tensor<2> {
        let shape = [matrix.nrows(), matrix.ncols()];
        let values = matrix.iter().copied().collect();
        self.device.tensor(values, shape, self.config.precision)
    }
}

//! The measures of a fit, and the moments at which they are taken.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::factors::Initial;

/// The settings of all fits of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// Random starts, the same for every contender; their seeds are 1, 2, ….
    pub runs: usize,
    /// Largest number of iterations.
    pub max_iterations: usize,
    /// Tolerance of the stopping rule, abs(D_k − D_{k−1}) / D_0 ≤ tolerance.
    pub tolerance: f64,
    /// T.
    pub bunch: usize,
    /// W and H at the start.
    pub initial: Initial,
}

impl Default for Protocol {
    /// The paper's protocol: 30 starts from uniform random factors, 1000 iterations, 1e-6, T = 4.
    fn default() -> Self {
        Self {
            runs: 30,
            max_iterations: 1000,
            tolerance: 1e-6,
            bunch: 4,
            initial: Initial::Uniform,
        }
    }
}

impl Protocol {
    /// Updates of W that count as equal work: those of T-update methods in
    /// `max_iterations`.
    pub(crate) fn work(&self) -> usize {
        self.bunch * self.max_iterations
    }
}

/// A moment at which a fit is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// When the stopping rule ends it, at most after `max_iterations`: the paper's moment.
    Stopped,
    /// After `max_iterations`, without a stopping rule.
    Iterations,
    /// After T · `max_iterations` updates of W.
    Work,
    /// After the time that AltBi's `max_iterations` took from the same start. It is not
    /// reproducible.
    Time,
}

impl Moment {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Stopped, Self::Iterations, Self::Work, Self::Time];

    /// Name in tables of numbers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Iterations => "iterations",
            Self::Work => "work",
            Self::Time => "time",
        }
    }

    /// Description in sentences.
    pub(crate) fn describe(self, protocol: &Protocol) -> String {
        let (iterations, work) = (protocol.max_iterations, protocol.work());
        match self {
            Self::Stopped => format!("at the stopping rule (at most {iterations} iterations)"),
            Self::Iterations => format!("at equal iterations ({iterations})"),
            Self::Work => format!("at equal work ({work} updates of W)"),
            Self::Time => format!("at equal time (that of AltBi's {iterations} iterations)"),
        }
    }
}

/// The numbers of a fit at a moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measures {
    /// Iterations done.
    pub iterations: usize,
    /// Updates of W done.
    pub updates_of_w: usize,
    /// Seconds since the start.
    pub seconds: f64,
    /// D(X, WH).
    pub divergence: f64,
    /// D + Σ λ_i r(w_i).
    pub objective: f64,
    /// D(X, WH) / D(X, mean of X).
    pub relative_error: f64,
    /// The paper's D(X, WH) / Σ x log x.
    pub paper_relative_error: f64,
    /// Percentage of W that is almost zero.
    pub sparsity_w: f64,
    /// Percentage of H that is almost zero.
    pub sparsity_h: f64,
    /// Mean SIR of W in dB, if the true factors are known.
    pub sir_w: Option<f64>,
    /// Mean SIR of H in dB, if the true factors are known.
    pub sir_h: Option<f64>,
    /// Median of the λ_i at the start.
    pub lambda_at_start: f64,
    /// Median of the λ_i now.
    pub lambda: f64,
}

/// A number that is taken of each fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Mean SIR of W.
    SirW,
    /// Mean SIR of H.
    SirH,
    /// Error relative to a constant fit.
    RelativeError,
    /// Relative error by the paper's definition.
    PaperRelativeError,
    /// D(X, WH).
    Divergence,
    /// Objective.
    Objective,
    /// Sparsity of W.
    SparsityW,
    /// Sparsity of H.
    SparsityH,
    /// Median λ at the start.
    LambdaAtStart,
    /// Median λ.
    Lambda,
    /// Iterations.
    Iterations,
    /// Updates of W.
    UpdatesOfW,
    /// Seconds.
    Seconds,
}

impl Measure {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 13] = [
        Self::SirW,
        Self::SirH,
        Self::RelativeError,
        Self::PaperRelativeError,
        Self::Divergence,
        Self::Objective,
        Self::SparsityW,
        Self::SparsityH,
        Self::LambdaAtStart,
        Self::Lambda,
        Self::Iterations,
        Self::UpdatesOfW,
        Self::Seconds,
    ];

    /// Its value.
    pub(crate) fn of(self, measures: &Measures) -> Option<f64> {
        match self {
            Self::SirW => measures.sir_w,
            Self::SirH => measures.sir_h,
            Self::RelativeError => Some(measures.relative_error),
            Self::PaperRelativeError => Some(measures.paper_relative_error),
            Self::Divergence => Some(measures.divergence),
            Self::Objective => Some(measures.objective),
            Self::SparsityW => Some(measures.sparsity_w),
            Self::SparsityH => Some(measures.sparsity_h),
            Self::LambdaAtStart => Some(measures.lambda_at_start),
            Self::Lambda => Some(measures.lambda),
            Self::Iterations => Some(measures.iterations as f64),
            Self::UpdatesOfW => Some(measures.updates_of_w as f64),
            Self::Seconds => Some(measures.seconds),
        }
    }

    /// Name in tables of numbers.
    pub fn name(self) -> &'static str {
        match self {
            Self::SirW => "sir_w",
            Self::SirH => "sir_h",
            Self::RelativeError => "relative_error",
            Self::PaperRelativeError => "paper_relative_error",
            Self::Divergence => "divergence",
            Self::Objective => "objective",
            Self::SparsityW => "sparsity_w",
            Self::SparsityH => "sparsity_h",
            Self::LambdaAtStart => "lambda_at_start",
            Self::Lambda => "lambda",
            Self::Iterations => "iterations",
            Self::UpdatesOfW => "updates_of_w",
            Self::Seconds => "seconds",
        }
    }
}

impl fmt::Display for Measure {
    /// Name in headings.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::SirW => "SIR of W, dB",
            Self::SirH => "SIR of H, dB",
            Self::RelativeError => "relative error",
            Self::PaperRelativeError => "relative error (paper's)",
            Self::Divergence => "divergence",
            Self::Objective => "objective",
            Self::SparsityW => "sparsity of W, %",
            Self::SparsityH => "sparsity of H, %",
            Self::LambdaAtStart => "median λ at the start",
            Self::Lambda => "median λ",
            Self::Iterations => "iterations",
            Self::UpdatesOfW => "updates of W",
            Self::Seconds => "seconds",
        })
    }
}

//! The summary of a run.

use serde::{Deserialize, Serialize};

use super::PenaltyRecord;
use crate::criterion::{Entries, OuterError};
use crate::data::Reading;
use crate::metrics::Recovery;
use crate::practical::Candidate;
use crate::problem::Problem;
use crate::solver::{Outcome, StartRecord, StopReason};
use crate::sparse::Zeros;

/// The contents of `summary.json` and the output of `--json`.
///
/// `settings` is the configuration of the run. The command passes all its settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Summary<Settings> {
    /// The run's configuration.
    pub settings: Settings,
    /// The seed of its random start.
    pub seed: u64,
    /// SHA-256 of the data.
    pub data_hash: String,
    /// (n, m).
    pub shape: [usize; 2],
    /// The reason for its end.
    pub stop_reason: StopReason,
    /// Outer iterations.
    pub iterations: usize,
    /// The iteration of the kept factors.
    #[serde(default)]
    pub selected_iteration: usize,
    /// E, the outer error.
    #[serde(default)]
    pub outer_error: f64,
    /// The outer error of a constant, the mean of the data that the updates see, if data were held
    /// out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outer_error_of_constant: Option<f64>,
    /// The tuned penalties, and the files of their weights.
    #[serde(default)]
    pub penalties: Vec<PenaltyRecord>,
    /// The weights of fitted and held-out entries, if data were held out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub held_out: Option<HeldOutShare>,
    /// The kind of outer error: the unseen part, and its divergence if it differs.
    #[serde(default)]
    pub outer: String,
    /// The reason for this choice, if the data decided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outer_reason: Option<String>,
    /// The total weight of the entries of `divergence`. 0 if unknown.
    #[serde(default)]
    pub entries: f64,
    /// D(X, WH).
    pub divergence: f64,
    /// D plus the weighted penalty.
    pub objective: f64,
    /// D(X, WH) / D(X, mean of X).
    pub relative_error: f64,
    /// The paper's D₁ / Σ x log x.
    pub paper_relative_error: f64,
    /// Percentage of W that is almost zero.
    pub sparsity_w: f64,
    /// Percentage of H that is almost zero.
    pub sparsity_h: f64,
    /// Mean SIR of W in dB, if the true factors are known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sir_w: Option<f64>,
    /// Mean SIR of H in dB, if the true factors are known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sir_h: Option<f64>,
    /// `fused` or `autodiff`.
    pub engine: String,
    /// The largest relative difference between the two engines in the first iteration, if they were
    /// compared.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub engine_difference: Option<f64>,
    /// The numbers of rows and columns of X that they were compared on.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub engine_compared_on: Option<[usize; 2]>,
    /// The candidates of the preset `practical` and the winner.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub choice: Option<Choice>,
    /// All starts, if there were several.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub starts: Vec<StartRecord>,
    /// The run that this one goes on from, if there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub continued: Option<Continued>,
    /// The reading of the table, if the data are one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub table: Option<Reading>,
    /// The stored entries of a sparse X.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sparse: Option<SparseRecord>,
    /// Seconds in the solver.
    pub seconds: f64,
    /// The version of altbi.
    pub version: String,
}

/// The candidates of a run with the preset `practical`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Choice {
    /// All of them.
    pub candidates: Vec<Candidate>,
    /// The index of the winner.
    pub chosen: usize,
    /// The number of splits that tuned λ. Records of older versions do not have it.
    #[serde(default = "one")]
    pub splits: usize,
}

fn one() -> usize {
    1
}

/// The stored entries of a sparse X, and the meaning of the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SparseRecord {
    /// Entries that are stored.
    pub stored: usize,
    /// Their share of all entries.
    pub share: f64,
    /// The meaning of the others: "data" (they are zeros) or "missing".
    pub zeros: String,
}

impl SparseRecord {
    /// The record of a problem. `None` if X is dense.
    pub fn of(problem: &Problem, zeros: Zeros) -> Option<Self> {
        let x = problem.as_sparse()?;
        let [rows, columns] = problem.whole_shape();
        let stored = problem.processes().total(x.stored() as f64);
        Some(Self {
            stored: stored as usize,
            share: stored / (rows as f64 * columns as f64),
            zeros: zeros.to_string(),
        })
    }
}

/// A run that another one goes on from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Continued {
    /// Its folder.
    pub run: String,
    /// Its number of iterations.
    pub iterations: usize,
}

/// The weights of all fitted entries and of all held-out ones, summed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct HeldOutShare {
    /// Total weight of the fitted entries.
    pub training_weight: f64,
    /// Total weight of the held-out entries.
    pub held_out_weight: f64,
}

impl HeldOutShare {
    /// The weights of a problem. `None` if nothing is held out.
    pub fn of(problem: &Problem) -> Option<Self> {
        problem.held_out_weights()?;
        Some(Self {
            held_out_weight: Entries::HeldOut.weight(problem),
            training_weight: Entries::Training.weight(problem),
        })
    }
}

impl<Settings> Summary<Settings> {
    /// Collects the numbers of an outcome.
    pub fn new(
        settings: Settings,
        seed: u64,
        data_hash: String,
        outcome: &Outcome,
        recovery: Option<&Recovery>,
        held_out: Option<HeldOutShare>,
    ) -> Self {
        Self {
            settings,
            seed,
            data_hash,
            shape: [outcome.w.nrows(), outcome.h.ncols()],
            stop_reason: outcome.stop_reason,
            iterations: outcome.iterations,
            selected_iteration: outcome.selected,
            outer_error: outcome.outer_error,
            outer_error_of_constant: None,
            penalties: PenaltyRecord::all_of(outcome),
            held_out,
            outer: String::new(),
            outer_reason: None,
            entries: 0.0,
            divergence: outcome.divergence,
            objective: outcome.objective,
            relative_error: outcome.relative_error,
            paper_relative_error: outcome.paper_relative_error,
            sparsity_w: outcome.sparsity_w,
            sparsity_h: outcome.sparsity_h,
            sir_w: recovery.map(Recovery::mean_w),
            sir_h: recovery.map(Recovery::mean_h),
            engine: outcome.engine.name().into(),
            engine_difference: outcome.engine.difference(),
            engine_compared_on: outcome.engine.compared_on(),
            choice: None,
            starts: Vec::new(),
            continued: None,
            table: None,
            sparse: None,
            seconds: outcome.seconds,
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// Adds the kind of outer error, and the reason for it.
    #[must_use]
    pub fn with_outer(
        mut self,
        outer: OuterError,
        reason: Option<String>,
        of_constant: Option<f64>,
    ) -> Self {
        self.outer = outer.to_string();
        self.outer_reason = reason;
        self.outer_error_of_constant = of_constant;
        self
    }

    /// The outer error relative to that of a constant, if it is known.
    pub fn relative_outer_error(&self) -> Option<f64> {
        let constant = self.outer_error_of_constant?;
        Some(self.outer_error / constant)
    }

    /// Adds the total weight of the entries of the divergence.
    #[must_use]
    pub fn with_entries(mut self, weight: f64) -> Self {
        self.entries = weight;
        self
    }

    /// Adds the candidates of the preset `practical`.
    #[must_use]
    pub fn with_choice(mut self, choice: Option<Choice>) -> Self {
        self.choice = choice;
        self
    }

    /// Adds the stored entries of a sparse X.
    #[must_use]
    pub fn with_sparse(mut self, sparse: Option<SparseRecord>) -> Self {
        self.sparse = sparse;
        self
    }

    /// Adds all starts, if there were several.
    #[must_use]
    pub fn with_starts(mut self, starts: Vec<StartRecord>) -> Self {
        self.starts = starts;
        self
    }

    /// Adds the run that this one goes on from.
    #[must_use]
    pub fn with_continued(mut self, continued: Option<Continued>) -> Self {
        self.continued = continued;
        self
    }

    /// Adds the reading of the table.
    #[must_use]
    pub fn with_reading(mut self, reading: Option<Reading>) -> Self {
        self.table = reading;
        self
    }
}

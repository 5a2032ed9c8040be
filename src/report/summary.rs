//! A run in a dozen numbers.

use serde::{Deserialize, Serialize};

use super::PenaltyRecord;
use crate::criterion::{Entries, OuterError};
use crate::data::Reading;
use crate::metrics::Recovery;
use crate::practical::Candidate;
use crate::problem::Problem;
use crate::solver::{Outcome, StartRecord, StopReason};
use crate::sparse::Zeros;

/// The contents of `summary.json`, and what `--json` prints.
///
/// `settings` is whatever the run was configured with; the command passes its
/// whole configuration.
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
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Outer iterations.
    pub iterations: usize,
    /// The iteration whose factors were kept.
    #[serde(default)]
    pub selected_iteration: usize,
    /// E, what λ was tuned for.
    #[serde(default)]
    pub outer_error: f64,
    /// The tuned penalties, and the files of their weights.
    #[serde(default)]
    pub penalties: Vec<PenaltyRecord>,
    /// How much was held out, where something was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub held_out: Option<HeldOutShare>,
    /// The outer error: the unseen part, and its divergence where that is another.
    #[serde(default)]
    pub outer: String,
    /// Why, where the data decided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outer_reason: Option<String>,
    /// The sum of the weights of the entries that `divergence` is over; 0 where it is not known.
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
    /// Percent of W that is almost zero.
    pub sparsity_w: f64,
    /// Percent of H that is almost zero.
    pub sparsity_h: f64,
    /// Mean SIR of W in dB, where the truth is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sir_w: Option<f64>,
    /// Mean SIR of H in dB, where the truth is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sir_h: Option<f64>,
    /// `fused` or `autodiff`.
    pub engine: String,
    /// The largest relative difference between the two in the first iteration,
    /// where they were compared.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub engine_difference: Option<f64>,
    /// Which candidates there were and which one was taken, where there was a choice.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub choice: Option<Choice>,
    /// All starts, where there were several.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub starts: Vec<StartRecord>,
    /// The run that this one goes on from, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub continued: Option<Continued>,
    /// How the table was read, where the data is one.
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
    /// The one that was taken: that with the lowest outer error, or plain updates where it does
    /// not beat them clearly.
    pub chosen: usize,
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
    /// Of a problem; `None` where every entry is stored.
    pub fn of(problem: &Problem, zeros: Zeros) -> Option<Self> {
        let x = problem.x().as_sparse()?;
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
    /// The iterations after which it ended.
    pub iterations: usize,
}

/// The weights of all fitted entries and of all held-out ones, summed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct HeldOutShare {
    /// Of the entries that the updates saw.
    pub training_weight: f64,
    /// Of the entries that they did not.
    pub held_out_weight: f64,
}

impl HeldOutShare {
    /// Of a problem; `None` where nothing is held out.
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
            choice: None,
            starts: Vec::new(),
            continued: None,
            table: None,
            sparse: None,
            seconds: outcome.seconds,
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// Notes what E is, and why.
    #[must_use]
    pub fn with_outer(mut self, outer: OuterError, reason: Option<String>) -> Self {
        self.outer = outer.to_string();
        self.outer_reason = reason;
        self
    }

    /// Notes the weight of the entries that the divergence is over.
    #[must_use]
    pub fn with_entries(mut self, weight: f64) -> Self {
        self.entries = weight;
        self
    }

    /// With the candidates of the preset `practical`.
    #[must_use]
    pub fn with_choice(mut self, choice: Option<Choice>) -> Self {
        self.choice = choice;
        self
    }

    /// With what a sparse X stores.
    #[must_use]
    pub fn with_sparse(mut self, sparse: Option<SparseRecord>) -> Self {
        self.sparse = sparse;
        self
    }

    /// With all starts, where there were several.
    #[must_use]
    pub fn with_starts(mut self, starts: Vec<StartRecord>) -> Self {
        self.starts = starts;
        self
    }

    /// With the run that this one goes on from.
    #[must_use]
    pub fn with_continued(mut self, continued: Option<Continued>) -> Self {
        self.continued = continued;
        self
    }

    /// With how the table was read.
    #[must_use]
    pub fn with_reading(mut self, reading: Option<Reading>) -> Self {
        self.table = reading;
        self
    }
}

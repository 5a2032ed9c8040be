//! One fit, measured at its moments.

use std::collections::BTreeMap;
use std::sync::Arc;

use ndarray::Array2;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{Contender, Dataset, Measures, Moment, Protocol, Watcher};
use crate::config::AltBiConfig;
use crate::divergence::Beta;
use crate::error::{Error, Result};
use crate::factors::{Factors, GivenFactors, Initial};
use crate::metrics::{paper_relative_error, recovery, relative_error, sparsity_h, sparsity_w};
use crate::numerics::Precision;
use crate::penalty::L1;
use crate::problem::Problem;
use crate::solver::{Observer, Outcome, Record, Signal, State};
use crate::update::Rule;

/// The record of a fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrialRecord {
    /// Name of the contender.
    pub contender: String,
    /// The seed of the start.
    pub start: u64,
    /// The measures at each moment. After a breakdown they are those of the last state before it.
    pub moments: BTreeMap<Moment, Measures>,
    /// The error of a breakdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<String>,
    /// The course of the fit at selected iterations, for followed contenders only.
    pub curve: Vec<CurvePoint>,
}

impl TrialRecord {
    /// Returns true if it is the record of this contender and start, with every moment.
    pub(super) fn is_whole(&self, contender: &Contender, start: u64) -> bool {
        let moments = self.moments.keys().copied();
        self.contender == contender.name
            && self.start == start
            && moments.eq(contender.moments().iter().copied())
            && (self.curve.is_empty() != contender.followed)
    }
}

/// A point of the course of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct CurvePoint {
    /// Iterations done.
    pub iteration: usize,
    /// D(X, WH) / D(X, mean of X).
    pub relative_error: f64,
    /// D + Σ λ_i r(w_i).
    pub objective: f64,
    /// Seconds since the start.
    pub seconds: f64,
}

/// A finished fit.
pub(super) struct Fitted {
    pub(super) record: TrialRecord,
    /// The factors at the stopping rule.
    pub(super) factors: Factors,
    pub(super) lambda: Array2<f64>,
    pub(super) lambda_at_start: Array2<f64>,
}

/// A dataset, prepared once for all fits.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    pub(super) dataset: &'a Dataset,
    problem: Problem,
    /// 1 / D(X, mean of X).
    unit_of_error: f64,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(dataset: &'a Dataset) -> Result<Self> {
        let problem = Problem::new(&dataset.x, Precision::F64)?;
        // Bad settings are refused here, before anything is written.
        let nothing = GivenFactors::default();
        Factors::start(&problem, dataset.rank, Initial::Uniform, 1, &nothing)?;
        let rule = Rule::new(Arc::new(Beta::KL), Vec::new());
        Ok(Self {
            dataset,
            unit_of_error: relative_error(&problem, &rule, 1.0),
            problem,
        })
    }

    /// Fits the dataset. Returns `None` if the watcher ends it. `seconds` is the time of
    /// [`Moment::Time`]; without it, that moment is [`Moment::Iterations`].
    pub(super) fn fit(
        &self,
        contender: &Contender,
        start: u64,
        protocol: &Protocol,
        seconds: Option<f64>,
        watcher: &Arc<dyn Watcher>,
    ) -> Result<Option<Fitted>> {
        let mut config = AltBiConfig::new(self.dataset.rank)
            .with_method(contender.method)
            .with_bunch(protocol.bunch)
            .with_initial(protocol.initial)
            .with_seed(start)
            // The observer ends the run after its last moment.
            .with_max_iterations(usize::MAX)
            .with_threads(1);
        if let Some(lambda) = contender.lambda {
            config = config.with_lambda(lambda);
        }
        let notes = Arc::new(Mutex::new(Notes::default()));
        let follower = Follower {
            protocol: protocol.clone(),
            updates_of_w: contender.updates_of_w(protocol),
            moments: contender.moments(),
            seconds,
            unit_of_error: self.unit_of_error,
            watcher: watcher.clone(),
            notes: notes.clone(),
        };
        let updates_of_w = follower.updates_of_w;
        let outcome = config
            .solver(Beta::KL, L1)
            .to_the_last_iteration()
            .observe(follower)
            .run(&self.problem)
            .map_err(|source| Error::Trial {
                dataset: self.dataset.name.clone(),
                contender: contender.name.clone(),
                start,
                source: Box::new(source),
            })?;
        let notes = std::mem::take(&mut *notes.lock());
        if notes.interrupted {
            return Ok(None);
        }
        self.collect(contender, start, notes, updates_of_w, outcome)
            .map(Some)
    }

    fn collect(
        &self,
        contender: &Contender,
        start: u64,
        mut notes: Notes,
        updates_of_w: usize,
        outcome: Outcome,
    ) -> Result<Fitted> {
        let (first, last) = (&outcome.history[0], outcome.history.last());
        if outcome.breakdown.is_some() {
            // One fit that breaks down does not end a campaign.
            for moment in contender.moments() {
                notes.snapshots.entry(*moment).or_insert_with(|| Snapshot {
                    factors: outcome.last_factors(),
                    lambda: outcome.final_lambda(),
                    record: last.unwrap_or(first).clone(),
                });
            }
        }
        let measured = |(moment, snapshot): (&Moment, &Snapshot)| {
            Ok((*moment, self.measure(snapshot, updates_of_w, first)?))
        };
        let moments: Result<_> = notes.snapshots.iter().map(measured).collect();
        let stopped = notes.snapshots.remove(&Moment::Stopped);
        let stopped = stopped.expect("a fit that was not interrupted reaches its stopping rule");
        Ok(Fitted {
            record: TrialRecord {
                contender: contender.name.clone(),
                start,
                moments: moments?,
                breakdown: outcome.breakdown.map(|error| error.to_string()),
                curve: notes.curve,
            },
            factors: stopped.factors,
            lambda: stopped.lambda,
            lambda_at_start: outcome.lambda_at_start,
        })
    }

    fn measure(
        &self,
        snapshot: &Snapshot,
        updates_of_w: usize,
        first: &Record,
    ) -> Result<Measures> {
        let Snapshot {
            factors, record, ..
        } = snapshot;
        let Factors { w, h } = factors;
        let recovery = match &self.dataset.truth {
            // If there are fewer components than true ones, each is compared with the closest true
            // one. (The SIR is symmetric in the two.)
            Some(truth) if w.ncols() < truth.w.ncols() => Some(recovery(w, h, &truth.w, &truth.h)?),
            Some(truth) => Some(recovery(&truth.w, &truth.h, w, h)?),
            None => None,
        };
        Ok(Measures {
            iterations: record.iteration,
            updates_of_w: updates_of_w * record.iteration,
            seconds: record.seconds,
            divergence: record.divergence,
            objective: record.objective,
            relative_error: self.unit_of_error * record.divergence,
            paper_relative_error: paper_relative_error(&self.problem, factors),
            sparsity_w: sparsity_w(w),
            sparsity_h: sparsity_h(h),
            sir_w: recovery.as_ref().map(|recovery| recovery.mean_w()),
            sir_h: recovery.as_ref().map(|recovery| recovery.mean_h()),
            lambda_at_start: first.lambda_median,
            lambda: record.lambda_median,
        })
    }
}

/// A state that is measured later, when the clock no longer runs.
#[derive(Clone)]
struct Snapshot {
    factors: Factors,
    lambda: Array2<f64>,
    record: Record,
}

#[derive(Default)]
struct Notes {
    snapshots: BTreeMap<Moment, Snapshot>,
    curve: Vec<CurvePoint>,
    interrupted: bool,
}

/// Takes snapshots at the moments, and ends the run after the last one.
struct Follower {
    protocol: Protocol,
    updates_of_w: usize,
    moments: &'static [Moment],
    seconds: Option<f64>,
    unit_of_error: f64,
    watcher: Arc<dyn Watcher>,
    notes: Arc<Mutex<Notes>>,
}

impl Follower {
    fn has_come(&self, moment: Moment, record: &Record) -> bool {
        let Protocol {
            max_iterations,
            tolerance,
            ..
        } = self.protocol;
        let last = record.iteration >= max_iterations;
        match moment {
            Moment::Stopped => last || record.relative_change <= tolerance,
            Moment::Iterations => last,
            Moment::Work => self.updates_of_w * record.iteration >= self.protocol.work(),
            Moment::Time => self.seconds.map_or(last, |limit| record.seconds >= limit),
        }
    }
}

impl Observer for Follower {
    fn iterated(&mut self, record: &Record, state: &State) -> Signal {
        let mut notes = self.notes.lock();
        if self.watcher.interrupted() {
            notes.interrupted = true;
            return Signal::Stop;
        }
        let followed = self.moments.len() > 1;
        if followed && on_curve(record.iteration) && record.iteration <= self.protocol.work() {
            notes.curve.push(CurvePoint {
                iteration: record.iteration,
                relative_error: self.unit_of_error * record.divergence,
                objective: record.objective,
                seconds: record.seconds,
            });
        }
        if record.iteration == 0 {
            return Signal::Continue;
        }
        for moment in self.moments {
            if !notes.snapshots.contains_key(moment) && self.has_come(*moment, record) {
                let snapshot = Snapshot {
                    factors: state.factors.clone(),
                    lambda: state.lambda.clone(),
                    record: record.clone(),
                };
                notes.snapshots.insert(*moment, snapshot);
            }
        }
        if notes.snapshots.len() == self.moments.len() {
            Signal::Stop
        } else {
            Signal::Continue
        }
    }
}

/// Returns true for iterations on the curve: every one at first, then about thirty per doubling,
/// which is enough for a figure.
fn on_curve(iteration: usize) -> bool {
    let step = (iteration / 32).next_power_of_two().max(1);
    iteration.is_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::benchmark_a;
    use crate::experiment::campaign::Unwatched;

    /// A fit that breaks down before its stopping rule still has a whole record.
    #[test]
    fn a_breakdown_keeps_the_state_before_it() {
        let x = benchmark_a(12, 8, 2, 0).x;
        let dataset = Dataset::new("a", x, 2, None);
        let prepared = Prepared::new(&dataset).unwrap();
        let contender = &Contender::all()[0];
        let watcher: Arc<dyn Watcher> = Arc::new(Unwatched);
        let config = AltBiConfig::new(2).with_max_iterations(3);
        let mut outcome = config.solver(Beta::KL, L1).run(&prepared.problem).unwrap();
        let collect = |outcome: &Outcome| {
            let notes = Notes::default();
            prepared.collect(contender, 1, notes, 1, outcome.clone())
        };
        outcome.breakdown = Some(Arc::new(Error::NotFinite {
            iteration: 4,
            quantity: "W",
        }));
        let fitted = collect(&outcome).unwrap();
        assert!(fitted.record.breakdown.unwrap().contains("W"));
        assert_eq!(fitted.factors.w, outcome.w);
        let protocol = Protocol::default();
        let whole = prepared.fit(contender, 1, &protocol, None, &watcher);
        let reached = whole.unwrap().unwrap().record.moments;
        let stood_in = fitted.record.moments;
        assert!(stood_in.keys().eq(reached.keys()));
        assert!(stood_in.values().all(|measures| measures.iterations == 3));
    }
}

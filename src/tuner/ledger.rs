//! The work of a rival, and its errors.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::Task;
use crate::factors::Factors;

/// The best result so far, at some point of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Updates of both factors so far. An update that a hypergradient goes through counts as its
    /// [cost](crate::Divergence::derivative_cost).
    pub work: f64,
    /// Seconds so far.
    pub seconds: f64,
    /// The lowest held-out error so far, per entry.
    pub held_out: f64,
    /// The judge's error of the same factors. NaN without a judge.
    #[serde(with = "or_null")]
    pub judged: f64,
}

/// Serialises NaN as null, because JSON has no NaN.
pub(super) mod or_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        Some(*value).filter(|value| !value.is_nan()).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Option::<f64>::deserialize(from).map(|value| value.unwrap_or(f64::NAN))
    }
}

/// The work and errors of one rival.
pub(crate) struct Ledger<'a> {
    budget: f64,
    /// Returns true while work may go on.
    going: &'a (dyn Fn() -> bool + Sync),
    work: f64,
    seconds: f64,
    clock: Instant,
    best: Option<(f64, Factors)>,
    /// One point for each improvement.
    pub(crate) points: Vec<Point>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(budget: f64, going: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            budget,
            going,
            work: 0.0,
            seconds: 0.0,
            clock: Instant::now(),
            best: None,
            points: Vec::new(),
        }
    }

    pub(crate) fn work(&self) -> f64 {
        self.work
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.seconds
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.work >= self.budget || !(self.going)()
    }

    /// Lets the rival make its last solves.
    pub(crate) fn lift_the_budget(&mut self) {
        self.budget = f64::INFINITY;
    }

    /// Forgets all work and all errors.
    pub(crate) fn begin_again(&mut self) {
        *self = Self::new(self.budget, self.going);
    }

    /// Leaves out the time since the last record.
    pub(crate) fn skip_time(&mut self) {
        self.clock = Instant::now();
    }

    /// The work that is left.
    pub(crate) fn left(&self) -> f64 {
        (self.budget - self.work).max(0.0)
    }

    /// The factors with the lowest held-out error.
    pub(crate) fn best(&self) -> Option<&(f64, Factors)> {
        self.best.as_ref()
    }

    /// Records some updates and their result. The judge's time is not counted.
    pub(crate) fn book(&mut self, task: &Task, work: f64, outer_error: f64, factors: &Factors) {
        self.seconds += self.clock.elapsed().as_secs_f64();
        self.work += work;
        let better = |(best, _): &(f64, Factors)| outer_error < *best;
        if outer_error.is_finite() && self.best.as_ref().is_none_or(better) {
            self.points.push(Point {
                work: self.work,
                seconds: self.seconds,
                held_out: outer_error / task.held_out_weight(),
                judged: task.judged(factors),
            });
            self.best = Some((outer_error, factors.clone()));
        }
        self.clock = Instant::now();
    }
}

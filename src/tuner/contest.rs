//! All rivals on many tasks, and statistics of their answers.

use ndarray::Axis;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::books::Answer;
use super::ledger::or_null;
use super::{Books, BuiltIn, Point, Rival, Task, hypergradient};
use crate::error::{Error, Result};
use crate::experiment::PairedDifference;
use crate::factors::Factors;
use crate::lambda::Scope;
use crate::metrics::Spread;
use crate::practical::SCOPE;

/// The result of one rival on one task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Name of the rival.
    pub rival: String,
    /// True if it uses its whole budget.
    #[serde(default)]
    pub searches: bool,
    /// The seed of the task.
    pub seed: u64,
    /// The held-out error of the answer, per entry.
    pub held_out: f64,
    /// The judge's error of the answer ([`Task::judged`]).
    #[serde(with = "or_null")]
    pub judged: f64,
    /// The judge's error after the refit.
    #[serde(with = "or_null")]
    pub refit: f64,
    /// D on all entries before and after the refit, which never raises it.
    pub divergence: (f64, f64),
    /// Number of solves.
    pub solves: usize,
    /// Updates made.
    pub work: f64,
    /// Seconds of all updates.
    pub seconds: f64,
    /// The smallest and the largest λ of the answer.
    pub lambda: (f64, f64),
    /// Number of components with at least a thousandth of the sum of WH. (Older records do not have
    /// it.)
    #[serde(default)]
    pub components: usize,
    /// The course of the search.
    pub points: Vec<Point>,
}

/// The standings of all rivals on all tasks.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Contest {
    /// Sorted by task, then by rival.
    pub standings: Vec<Standing>,
}

/// A number of a standing.
pub(crate) type ErrorOf = fn(&Standing) -> f64;

impl Contest {
    /// The rivals that took part, in order.
    pub fn rivals(&self) -> Vec<&str> {
        let mut rivals = Vec::new();
        for standing in &self.standings {
            if !rivals.contains(&standing.rival.as_str()) {
                rivals.push(&standing.rival);
            }
        }
        rivals
    }

    /// The standings of one rival, by seed.
    pub fn of<'a>(&'a self, rival: &'a str) -> impl Iterator<Item = &'a Standing> {
        self.standings
            .iter()
            .filter(move |standing| standing.rival == rival)
    }

    /// The paired differences of log errors between two rivals: negative if the first is better.
    /// `None` if an error is unknown.
    pub(crate) fn compared(
        &self,
        first: &str,
        second: &str,
        measure: ErrorOf,
    ) -> Option<PairedDifference> {
        let differences: Vec<f64> = self
            .of(first)
            .filter_map(|a| {
                let b = self.of(second).find(|b| b.seed == a.seed)?;
                let tiny = f64::MIN_POSITIVE;
                Some(measure(a).max(tiny).ln() - measure(b).max(tiny).ln())
            })
            .collect();
        // (`max` would ignore a NaN.)
        let known = |rival| self.of(rival).all(|standing| !measure(standing).is_nan());
        (known(first) && known(second)).then(|| PairedDifference::of(&differences))?
    }

    /// Returns true if there is a judge.
    pub(crate) fn is_judged(&self) -> bool {
        self.standings
            .iter()
            .all(|standing| !standing.judged.is_nan())
    }

    /// The deciding error: the judge's, or without a judge the held-out one.
    pub(crate) fn deciding(&self) -> ErrorOf {
        if self.is_judged() {
            |standing| standing.judged
        } else {
            |standing| standing.held_out
        }
    }

    /// The rivals by the geometric mean of a measure, best first.
    pub(crate) fn ranking(&self, measure: ErrorOf) -> Vec<&str> {
        let mut rivals = self.rivals();
        let place = |rival: &str| {
            let logs = self.mean(rival, measure).map(|_| {
                let logs = self.of(rival).map(|standing| measure(standing).ln());
                logs.sum::<f64>()
            });
            logs.unwrap_or(f64::INFINITY)
        };
        rivals.sort_by(|a, b| place(a).total_cmp(&place(b)));
        rivals
    }

    /// The mean of some number of a rival.
    pub(crate) fn mean(&self, rival: &str, measure: ErrorOf) -> Option<Spread> {
        Spread::of(&self.of(rival).map(measure).collect::<Vec<_>>())
    }
}

/// The conditions of a contest.
#[derive(Clone, Copy)]
pub struct ContestSettings<'a> {
    /// The scope of λ in `practical`.
    pub scope: Scope,
    /// The scope of the other rivals' dials: shared, or component.
    pub dials: Scope,
    /// The updates of each rival. By default, those of `practical`.
    pub budget: Option<f64>,
    /// Called with each answer.
    pub done: &'a (dyn Fn(&Standing) + Sync),
    /// Work ends when it returns false.
    pub going: &'a (dyn Fn() -> bool + Sync),
}

impl Default for ContestSettings<'_> {
    fn default() -> Self {
        Self {
            scope: SCOPE,
            dials: Scope::Shared,
            budget: None,
            done: &|_| (),
            going: &|| true,
        }
    }
}

/// Runs the rivals on every task, on the threads of the current pool. `practical` always runs
/// first.
///
/// # Errors
/// Those of a solve.
pub fn contest(
    tasks: &[Task],
    rivals: &[&dyn Rival],
    settings: ContestSettings<'_>,
) -> Result<Contest> {
    let ContestSettings {
        scope,
        dials,
        budget,
        done,
        going,
    } = settings;
    if matches!(dials, Scope::Row | Scope::Entry | Scope::Hierarchical(_)) {
        return Err(Error::ScopeUnsupported {
            scope: dials.to_string(),
            reason: "a search has a dial for each penalty (shared) or component (component)".into(),
        });
    }
    let standings = tasks.par_iter().map(|task| {
        let mut standings = Vec::new();
        if !going() {
            return Ok(standings);
        }
        let first = hypergradient::run(task, scope)?;
        let budget = budget.unwrap_or(first.work);
        let mut stand = |rival: &dyn Rival, answer: Answer| {
            let standing = standing(task, rival, answer);
            done(&standing);
            standings.push(standing);
        };
        stand(&BuiltIn::Practical, first);
        for rival in rivals {
            if !going() {
                break;
            }
            // It has already run.
            if rival.name() == BuiltIn::Practical.name() {
                continue;
            }
            let answer = rival.choose(Books::new(task, dials, budget, going)?)?;
            // An interrupted search has no answer.
            if going() {
                stand(*rival, answer);
            }
        }
        Ok(standings)
    });
    let standings: Vec<Vec<Standing>> = standings.collect::<Result<_>>()?;
    Ok(Contest {
        standings: standings.into_iter().flatten().collect(),
    })
}

fn standing(task: &Task, rival: &dyn Rival, answer: Answer) -> Standing {
    let weights = answer.lambda.iter().copied();
    let lambda = weights.fold((f64::INFINITY, 0.0), |(least, most), weight| {
        (f64::min(least, weight), f64::max(most, weight))
    });
    Standing {
        rival: rival.name(),
        searches: rival.searches(),
        seed: task.seed,
        held_out: answer.outer_error / task.held_out_weight(),
        judged: task.judged(&answer.factors),
        refit: task.judged(&answer.refit),
        divergence: answer.divergence,
        solves: answer.solves,
        work: answer.work,
        seconds: answer.seconds,
        lambda,
        components: components(&answer.factors),
        points: answer.points,
    }
}

/// A component counts if it has at least this share of the sum of WH.
const LEAST_SHARE: f64 = 1e-3;

fn components(factors: &Factors) -> usize {
    let of_w = factors.w.sum_axis(Axis(0));
    let sums = of_w * factors.h.sum_axis(Axis(1));
    let least = LEAST_SHARE * sums.sum();
    sums.iter().filter(|sum| **sum > least).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_paired_by_seed() {
        let standing = |rival: &str, seed, judged| Standing {
            rival: rival.into(),
            searches: false,
            seed,
            held_out: f64::NAN,
            judged,
            refit: judged,
            divergence: (1.0, 1.0),
            solves: 1,
            work: 1.0,
            seconds: 1.0,
            lambda: (0.0, 0.0),
            components: 2,
            points: Vec::new(),
        };
        let contest = Contest {
            standings: vec![
                standing("practical", 0, 2.0),
                standing("plain", 0, 4.0),
                standing("practical", 1, 5.0),
                standing("plain", 1, 10.0),
            ],
        };
        let found = contest.compared("practical", "plain", |standing| standing.judged);
        assert!((found.unwrap().mean - 0.5f64.ln()).abs() < 1e-15);
        let unknown = contest.compared("practical", "plain", |standing| standing.held_out);
        assert!(unknown.is_none());
    }
}

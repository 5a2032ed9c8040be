//! How many components? The outer error of each rank, over a few splits of the data.
//!
//! For every split and every rank, multiplicative updates without penalty are stopped early on
//! what they never see ([`OuterError`]): the plain candidate of
//! [`practical`](mod@crate::practical). On request the whole of that procedure follows, with
//! penalties. What is compared is the outer error per unit of held-out weight. Too few
//! components leave structure in it, too many fit noise.
//!
//! The recommendation is the *one-standard-error rule* on paired differences
//! ([`RankOutcome::recommended`]): the smallest rank whose mean over the splits exceeds the
//! lowest mean by no more than a standard error of that very difference.
//!
//! ```
//! use altbi::data::poisson;
//! use altbi::ranks::{Measure, RankSearch};
//! use altbi::{Beta, Precision, Problem};
//! let counts = poisson(40, 30, 2, 40.0, 1);
//! let problem = Problem::new(&counts.x, Precision::F64)?;
//! let outcome = RankSearch::new(1..=3, Beta::KL).with_splits(3).run(&problem)?;
//! assert_eq!(outcome.recommended(Measure::Plain), Some(2));
//! # Ok::<(), altbi::Error>(())
//! ```

mod outcome;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::criterion::{OuterError, Unseen};
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::factors::{Side, check_rank};
use crate::lambda::Scope;
use crate::penalty::{NoPenalty, PenaltyTerm};
use crate::practical::{Practical, patient};
use crate::problem::Problem;
use crate::solver::{Observer, Record, Signal, Solver, State};

pub use self::outcome::{Measure, RankError, RankOutcome, RankSummary};

/// Splits that a search may have.
const MOST_SPLITS: usize = 1000;

/// Finds the penalties for a split of the data.
type Penalties<'a> = Arc<dyn Fn(&Problem) -> Result<Vec<(Side, PenaltyTerm)>> + Send + Sync + 'a>;

/// Which ranks are tried, and how.
#[derive(Clone)]
pub struct RankSearch<'a> {
    ranks: RangeInclusive<usize>,
    splits: usize,
    seed: u64,
    outer: OuterError,
    divergence: Arc<dyn Divergence>,
    tuned: Option<(Penalties<'a>, Scope)>,
}

impl<'a> RankSearch<'a> {
    /// Ranks from the first to the last, on five splits, by the outer error that suits the
    /// data.
    pub fn new(ranks: RangeInclusive<usize>, divergence: impl Divergence + 'static) -> Self {
        Self {
            ranks,
            splits: 5,
            seed: 0,
            outer: OuterError::default(),
            divergence: Arc::new(divergence),
            tuned: None,
        }
    }

    /// Takes so many splits.
    #[must_use]
    pub fn with_splits(mut self, splits: usize) -> Self {
        self.splits = splits;
        self
    }

    /// The seed of the first split and its starts; each further split has the next one.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Compares ranks by this outer error.
    #[must_use]
    pub fn with_outer_error(mut self, outer: impl Into<OuterError>) -> Self {
        self.outer = outer.into();
        self
    }

    /// Runs the preset [`practical`](mod@crate::practical) too. `penalties` gives those of a
    /// split, of which it sees what the updates see; `scope` is what each λ belongs to.
    #[must_use]
    pub fn with_penalties(
        mut self,
        penalties: impl Fn(&Problem) -> Result<Vec<(Side, PenaltyTerm)>> + Send + Sync + 'a,
        scope: Scope,
    ) -> Self {
        self.tuned = Some((Arc::new(penalties), scope));
        self
    }

    /// All (rank, split) pairs, by rank.
    pub fn pairs(&self) -> Vec<(usize, usize)> {
        let splits = 0..self.splits;
        let of_rank = |rank| splits.clone().map(move |split| (rank, split));
        self.ranks.clone().flat_map(of_rank).collect()
    }

    /// Refuses what cannot be done with these data.
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Setting`], [`Error::Conflict`], and as [`OuterError::split`].
    pub fn check(&self, problem: &Problem) -> Result<()> {
        check_rank(problem, *self.ranks.start())?;
        check_rank(problem, *self.ranks.end())?;
        if self.ranks.is_empty() {
            return Err(Error::Setting {
                setting: "the last rank",
                value: *self.ranks.end() as f64,
                range: "at least the first",
            });
        }
        if !(1..=MOST_SPLITS).contains(&self.splits) {
            return Err(Error::Setting {
                setting: "the number of splits",
                value: self.splits as f64,
                range: "between 1 and 1000",
            });
        }
        if self.outer.unseen == Unseen::Nothing {
            return Err(Error::Conflict {
                first: "the training error",
                second: "a search for the rank",
                reason: "it falls with every component; ranks are compared by what the updates do not see",
            });
        }
        problem.check_domain(self.divergence.as_ref())?;
        let split = self.decided(problem).split(problem, self.seed)?;
        if let Some((penalties, _)) = &self.tuned {
            penalties(&split)?;
        }
        Ok(())
    }

    /// The outer error, with what the data decide, decided.
    pub fn decided(&self, problem: &Problem) -> OuterError {
        self.outer.for_data(problem, self.divergence.as_ref())
    }

    /// Does all pairs, on as many threads as the current rayon pool has.
    ///
    /// # Errors
    /// Those of [`check`](Self::check), and what a solve refuses.
    pub fn run(&self, problem: &Problem) -> Result<RankOutcome> {
        let stop = Arc::new(AtomicBool::new(false));
        self.watched(problem, &[], &|_| (), &stop)
    }

    /// The same without the pairs that are known already, which stand in the outcome as
    /// they are. `done` is told of each other; when `stop` is raised the search ends with the
    /// pairs that it has. Each pair is computed on one thread, so that nothing depends on
    /// their number.
    ///
    /// # Errors
    /// Those of [`run`](Self::run).
    pub fn watched(
        &self,
        problem: &Problem,
        known: &[RankError],
        done: &(dyn Fn(&RankError) + Sync),
        stop: &Arc<AtomicBool>,
    ) -> Result<RankOutcome> {
        self.check(problem)?;
        let mut pairs = self.pairs();
        let known = known.iter().filter(|error| pairs.contains(&error.pair()));
        let known: Vec<RankError> = known.cloned().collect();
        pairs.retain(|pair| known.iter().all(|error| error.pair() != *pair));
        // The longest first, so that no thread is left with one at the end.
        pairs.reverse();
        let found: Vec<Option<RankError>> = pairs
            .par_iter()
            .with_max_len(1)
            .map(|(rank, split)| {
                let error = self.error(problem, *rank, *split, stop)?;
                if let Some(error) = &error {
                    done(error);
                }
                Ok(error)
            })
            .collect::<Result<_>>()?;
        let found = found.into_iter().flatten();
        Ok(RankOutcome::new(known.into_iter().chain(found)))
    }

    /// One pair; `None` if it was stopped.
    fn error(
        &self,
        problem: &Problem,
        rank: usize,
        split: usize,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<RankError>> {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let outer = self.decided(problem);
        let seed = self.seed.wrapping_add(split as u64);
        let seen = outer.split(problem, seed)?;
        let weight = seen.held_out_weights().map_or(0.0, |of| of.sum());
        let settled = |terms: Vec<(Side, PenaltyTerm)>| {
            let mut practical = Practical::new(rank, self.divergence.clone(), terms)
                .with_outer_error(outer)
                .with_refit(0);
            practical.config = practical
                .config
                .with_seed(seed)
                .with_threads(1)
                .with_precision(problem.precision());
            practical
        };
        let watch = || {
            let stop = stop.clone();
            move |_: &Record, _: &State| {
                if stop.load(Ordering::Relaxed) {
                    Signal::Stop
                } else {
                    Signal::Continue
                }
            }
        };
        let config = settled(Vec::new()).plain();
        let plain = Solver::new(config, self.divergence.clone(), NoPenalty)
            .with_shared_criterion(outer.criterion())
            .observe(watch());
        let Some(plain) = patient(plain, &seen)? else {
            return Ok(None);
        };
        let tuned = match &self.tuned {
            None => None,
            Some((penalties, scope)) => {
                let mut practical = settled(penalties(&seen)?);
                practical.config = practical.config.with_scope(*scope);
                let mut observers = |_| vec![Box::new(watch()) as Box<dyn Observer>];
                match practical.watched(&seen, problem, None, &mut observers)? {
                    Ok(result) => Some(result.outcome.outer_error),
                    Err(_) => return Ok(None),
                }
            }
        };
        let per_weight = |error: f64| {
            let finite = Some(error / weight).filter(|error| error.is_finite());
            finite.ok_or(Error::NotFinite {
                iteration: 0,
                quantity: "outer error",
            })
        };
        Ok(Some(RankError {
            rank,
            split,
            plain: per_weight(plain.outer_error)?,
            tuned: tuned.map(per_weight).transpose()?,
        }))
    }
}

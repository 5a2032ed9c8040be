//! Choice of the rank by the outer error, over a few splits of the data.
//!
//! For every split and every rank, multiplicative updates without penalty are stopped early on data
//! that they never see ([`OuterError`]). This is the plain candidate of
//! [`practical`](mod@crate::practical). On request the whole preset is run too, with penalties.
//! Ranks are compared by the outer error per unit of held-out weight. Too few components leave
//! structure in the residual; too many fit noise.
//!
//! The recommended rank follows the *one-standard-error rule* on paired differences
//! ([`RankOutcome::recommended`]): it is the smallest rank whose mean over the splits exceeds the
//! lowest mean by at most one standard error of that difference.
//!
//! ```
//! use altbi::data::poisson;
//! use altbi::ranks::{RankBy, RankSearch};
//! use altbi::{Beta, Precision, Problem};
//! let counts = poisson(40, 30, 2, 40.0, 1);
//! let problem = Problem::new(&counts.x, Precision::F64)?;
//! let outcome = RankSearch::new(1..=3, Beta::KL).with_splits(3).run(&problem)?;
//! assert_eq!(outcome.recommended(RankBy::Plain), Some(2));
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
use crate::practical::{Practical, patient, uninterrupted};
use crate::problem::Problem;
use crate::solver::{Observer, Record, Signal, Solver, State};

pub use self::outcome::{RankBy, RankError, RankOutcome, RankSummary};

/// Largest number of splits.
const MOST_SPLITS: usize = 1000;

/// Function from a split of the data to its penalties.
type Penalties<'a> = Arc<dyn Fn(&Problem) -> Result<Vec<(Side, PenaltyTerm)>> + Send + Sync + 'a>;

/// A search over ranks.
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
    /// A search over these ranks on five splits. The data decide the outer error.
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

    /// Sets the number of splits.
    #[must_use]
    pub fn with_splits(mut self, splits: usize) -> Self {
        self.splits = splits;
        self
    }

    /// Sets the seed of the first split and its starts. Each further split has the next seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the outer error.
    #[must_use]
    pub fn with_outer_error(mut self, outer: impl Into<OuterError>) -> Self {
        self.outer = outer.into();
        self
    }

    /// Also runs the preset [`practical`](mod@crate::practical). `penalties` returns the penalties
    /// for a split; it gets the data that the updates see. `scope` is the scope of λ.
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

    /// Refuses settings that do not suit the data.
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Setting`], [`Error::Conflict`], and those of
    /// [`OuterError::split`].
    pub fn check(&self, problem: &Problem) -> Result<()> {
        check_rank(problem, *self.ranks.start())?;
        check_rank(problem, *self.ranks.end())?;
        let (last, splits) = (*self.ranks.end() as f64, self.splits as f64);
        let fits = !self.ranks.is_empty();
        Error::require(fits, "the last rank", last, "at least the first")?;
        let fits = (1..=MOST_SPLITS).contains(&self.splits);
        Error::require(fits, "the number of splits", splits, "between 1 and 1000")?;
        if self.outer.unseen == Unseen::Nothing {
            return Err(Error::Conflict {
                first: "the training error",
                second: "a search for the rank",
                reason: "it falls with every component; ranks are compared on data that the updates do not see",
            });
        }
        problem.check_domain(self.divergence.as_ref())?;
        let split = self.decided(problem).split(problem, self.seed)?;
        if let Some((penalties, _)) = &self.tuned {
            penalties(&split)?;
        }
        Ok(())
    }

    /// The outer error for these data.
    pub fn decided(&self, problem: &Problem) -> OuterError {
        self.outer.for_data(problem, self.divergence.as_ref())
    }

    /// Computes all pairs, on the threads of the current rayon pool.
    ///
    /// # Errors
    /// Those of [`check`](Self::check) and of the solves.
    pub fn run(&self, problem: &Problem) -> Result<RankOutcome> {
        let stop = Arc::new(AtomicBool::new(false));
        self.watched(problem, &[], &|_| (), &stop)
    }

    /// The same, but pairs that are already `known` are copied into the outcome. `done` is called
    /// with each new pair. When `stop` is raised, the search ends with the pairs so far. Each pair
    /// is computed on one thread, so the result does not depend on the number of threads.
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
        // The longest pairs come first, so that threads finish together.
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

    /// The errors of one pair. `None` if it was stopped.
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
        let Some(plain) = uninterrupted(patient(plain).run(&seen)?) else {
            return Ok(None);
        };
        let tuned = match &self.tuned {
            None => None,
            Some((penalties, scope)) => {
                let mut practical = settled(penalties(&seen)?);
                practical.config = practical.config.with_scope(*scope);
                let mut observers = |_| vec![Box::new(watch()) as Box<dyn Observer>];
                let mut splits = vec![seen.clone()];
                splits.extend(practical.further_splits(problem, seed)?);
                match practical.watched(&splits, problem, None, &mut observers)? {
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

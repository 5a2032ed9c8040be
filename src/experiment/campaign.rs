//! All fits of an experiment, on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::trial::Prepared;
use super::{Archive, Contender, Dataset, Moment, Protocol};
use crate::config::Method;
use crate::error::{Error, Result};

/// Sees an experiment's progress and may end it.
pub trait Watcher: Send + Sync {
    /// A fit is done, or was done before.
    fn progressed(&self, progress: &Progress<'_>) {
        let _ = progress;
    }

    /// Whether to end soon; asked in every iteration of every fit. A fit that is ended
    /// on its way is not kept.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watcher for Unwatched {}

/// How far an experiment is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The dataset of the last fit.
    pub dataset: &'a str,
    /// Its start.
    pub start: u64,
    /// Whether it was found in the archive.
    pub found: bool,
    /// Fits done.
    pub done: usize,
    /// Fits in all.
    pub of: usize,
    /// The share of the whole work that was done in this call, roughly.
    pub share_done: f64,
    /// The share that was found done.
    pub share_found: f64,
}

/// How an experiment ended, short of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CampaignEnding {
    /// Every fit is in the archive.
    Complete,
    /// The watcher ended it.
    Interrupted,
}

/// Every contender on every dataset from every start.
#[derive(Debug)]
pub struct Campaign<'a> {
    archive: &'a Archive,
    datasets: Vec<Dataset>,
    protocol: Protocol,
}

/// What is counted while threads work.
#[derive(Default)]
struct Tally {
    done: usize,
    cost_done: f64,
    cost_found: f64,
    error: Option<Error>,
}

impl<'a> Campaign<'a> {
    /// To be kept in an archive that was opened for these datasets and this protocol.
    pub fn new(archive: &'a Archive, datasets: Vec<Dataset>, protocol: Protocol) -> Self {
        Self {
            archive,
            datasets,
            protocol,
        }
    }

    /// Fits in all.
    pub fn fits(&self) -> usize {
        self.datasets.len() * self.protocol.runs * Contender::all().len()
    }

    /// Does the fits that are not in the archive yet; `threads` of them at a time, each
    /// on one thread, 0 for one per core. The results do not depend on it, except at
    /// [`Moment::Time`].
    ///
    /// # Errors
    /// [`Error::Trial`] for the first fit that fails, [`Error::Write`]; fits that are
    /// finished stay.
    pub fn run(&self, threads: usize, watcher: Arc<dyn Watcher>) -> Result<CampaignEnding> {
        let prepared: Result<Vec<_>> = self.datasets.iter().map(Prepared::new).collect();
        let prepared = prepared?;
        let starts = 1..=self.protocol.runs as u64;
        let jobs: Vec<(&Prepared, u64)> = prepared
            .iter()
            .flat_map(|data| starts.clone().map(move |start| (data, start)))
            .collect();
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let next = AtomicUsize::new(0);
        let tally = Mutex::new(Tally::default());
        let work = || {
            // A pool of one: what a fit deals out to threads stays with it, so that none
            // waits for another's work and times mean something.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
            let pool = pool.map_err(|error| Error::Threads {
                threads: 1,
                reason: error.to_string(),
            })?;
            while let Some((data, start)) = jobs.get(next.fetch_add(1, Ordering::SeqCst)) {
                if watcher.interrupted() || held(&tally).error.is_some() {
                    break;
                }
                pool.install(|| self.start(data, *start, &tally, &watcher))?;
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            for _ in 0..threads.min(jobs.len()) {
                scope.spawn(|| {
                    if let Err(error) = work() {
                        held(&tally).error.get_or_insert(error);
                    }
                });
            }
        });
        let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        match tally.error {
            Some(error) => Err(error),
            None if tally.done == self.fits() => Ok(CampaignEnding::Complete),
            None => Ok(CampaignEnding::Interrupted),
        }
    }

    /// Every contender from one start, AltBi first.
    fn start(
        &self,
        data: &Prepared<'_>,
        start: u64,
        tally: &Mutex<Tally>,
        watcher: &Arc<dyn Watcher>,
    ) -> Result<()> {
        let name = &data.dataset.name;
        let mut seconds = None;
        for contender in Contender::all() {
            let earlier = self.archive.find(name, &contender, start);
            let found = earlier.is_some();
            let record = match earlier {
                Some(record) => record,
                None => {
                    let fitted = data.fit(&contender, start, &self.protocol, seconds, watcher)?;
                    let Some(fitted) = fitted else {
                        return Ok(());
                    };
                    self.archive.keep(name, &contender, &fitted)?;
                    fitted.record
                }
            };
            if contender.method == Method::AltBi {
                seconds = record.moments.get(&Moment::Time).map(|at| at.seconds);
            }
            self.count(data.dataset, &contender, start, found, tally, watcher);
        }
        Ok(())
    }

    fn count(
        &self,
        dataset: &Dataset,
        contender: &Contender,
        start: u64,
        found: bool,
        tally: &Mutex<Tally>,
        watcher: &Arc<dyn Watcher>,
    ) {
        let cost = |dataset: &Dataset, contender: &Contender| {
            dataset.x.len() as f64 * cost_per_entry(contender)
        };
        let total: f64 = self
            .datasets
            .iter()
            .map(|dataset| {
                Contender::all()
                    .iter()
                    .map(|c| cost(dataset, c))
                    .sum::<f64>()
            })
            .sum::<f64>()
            * self.protocol.runs as f64;
        let mut tally = held(tally);
        tally.done += 1;
        let spent = cost(dataset, contender);
        if found {
            tally.cost_found += spent;
        } else {
            tally.cost_done += spent;
        }
        watcher.progressed(&Progress {
            dataset: &dataset.title,
            start,
            found,
            done: tally.done,
            of: self.fits(),
            share_done: tally.cost_done / total,
            share_found: tally.cost_found / total,
        });
    }
}

fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a fit costs, relative to others: all that are followed run for about the time
/// of AltBi.
fn cost_per_entry(contender: &Contender) -> f64 {
    if contender.followed { 1.0 } else { 0.25 }
}

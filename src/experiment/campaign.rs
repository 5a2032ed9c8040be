//! All fits of an experiment, on all cores.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::trial::Prepared;
use super::{Archive, Contender, Dataset, Moment, Protocol, Results};
use crate::config::Method;
use crate::error::{Error, Result};

/// Sees an experiment's progress and may end it.
pub(crate) trait Watcher: Send + Sync {
    /// Called when a fit is done, or was found in the archive.
    fn progressed(&self, progress: &Progress<'_>) {
        let _ = progress;
    }

    /// Returns true to end the experiment. It is called in every iteration of every fit. An
    /// unfinished fit is not saved.
    fn interrupted(&self) -> bool {
        false
    }
}

/// A watcher that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unwatched;

impl Watcher for Unwatched {}

/// The progress of an experiment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress<'a> {
    /// The dataset of the last fit.
    pub dataset: &'a str,
    /// Its start.
    pub start: u64,
    /// Fits done.
    pub done: usize,
    /// Fits in all.
    pub of: usize,
    /// The approximate share of the whole work that was done in this call.
    pub share_done: f64,
    /// The share that was found in the archive.
    pub share_found: f64,
}

/// Ending of an experiment without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CampaignEnding {
    /// Every fit is in the archive.
    Complete,
    /// The watcher ended it.
    Interrupted,
}

/// Every contender on every dataset from every start.
#[derive(Debug)]
pub struct Campaign<'a> {
    datasets: &'a [Dataset],
    prepared: Vec<Prepared<'a>>,
    protocol: Protocol,
}

/// Counts that the threads share.
#[derive(Default)]
struct Tally {
    done: usize,
    cost_done: f64,
    cost_found: f64,
    error: Option<Error>,
}

/// State that the threads share.
struct AtWork<'a> {
    archive: &'a Archive,
    tally: &'a Mutex<Tally>,
    watcher: &'a Arc<dyn Watcher>,
}

/// Allowed numbers of starts.
pub(super) const STARTS: RangeInclusive<usize> = 1..=1000;

impl<'a> Campaign<'a> {
    /// Prepares the datasets.
    ///
    /// # Errors
    /// [`Error::Setting`] for a number of starts outside 1 … 1000; those of
    /// [`Problem::new`](crate::Problem::new) and [`Factors::start`](crate::Factors::start)
    /// for data that cannot be factorised.
    pub fn new(datasets: &'a [Dataset], protocol: Protocol) -> Result<Self> {
        let (fits, runs) = (STARTS.contains(&protocol.runs), protocol.runs as f64);
        Error::require(fits, "the number of starts", runs, "between 1 and 1000")?;
        let prepared: Result<_> = datasets.iter().map(Prepared::new).collect();
        Ok(Self {
            datasets,
            prepared: prepared?,
            protocol,
        })
    }

    /// The protocol of its fits.
    pub(super) fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The datasets.
    pub(super) fn datasets(&self) -> &'a [Dataset] {
        self.datasets
    }

    /// Fits in all.
    pub(crate) fn fits(&self) -> usize {
        self.datasets.len() * self.protocol.runs * Contender::all().len()
    }

    /// Does the fits that are not in the folder yet; `threads` of them at a time, each
    /// thread; 0 means one per core. The results do not depend on `threads`, except at
    /// [`Moment::Time`].
    ///
    /// # Errors
    /// [`Error::NotAnExperiment`] and [`Error::OtherExperiment`] for a folder that must not be
    /// written to; [`Error::Busy`]; [`Error::Trial`] for the first fit that fails,
    /// [`Error::Write`], [`Error::Threads`]; fits that are finished stay.
    pub fn run(&self, folder: &Path, threads: usize) -> Result<Results> {
        let archive = Archive::open(folder, self)?;
        self.watched(&archive, threads, Arc::new(Unwatched))?;
        Results::read(folder)
    }

    /// The same with somebody who watches and may end it.
    pub(crate) fn watched(
        &self,
        archive: &Archive,
        threads: usize,
        watcher: Arc<dyn Watcher>,
    ) -> Result<CampaignEnding> {
        let starts = 1..=self.protocol.runs as u64;
        let with_starts = |data| starts.clone().map(move |start| (data, start));
        let jobs: Vec<(&Prepared, u64)> = self.prepared.iter().flat_map(with_starts).collect();
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let threads = threads.min(jobs.len());
        let refused = |reason: String| Error::Threads { threads, reason };
        let next = AtomicUsize::new(0);
        let tally = Mutex::new(Tally::default());
        let at_work = AtWork {
            archive,
            tally: &tally,
            watcher: &watcher,
        };
        let work = || {
            // A pool of one thread: the parallel work of a fit stays on its thread. So no fit waits
            // for another, and times are comparable.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
            let pool = pool.map_err(|error| refused(error.to_string()))?;
            while let Some((data, start)) = jobs.get(next.fetch_add(1, Ordering::SeqCst)) {
                pool.install(|| self.start(data, *start, &at_work))?;
            }
            Ok(())
        };
        let note = |result: Result<()>| {
            if let Err(error) = result {
                tally.lock().error.get_or_insert(error);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let spawned = std::thread::Builder::new().spawn_scoped(scope, || note(work()));
                note(
                    spawned
                        .map(drop)
                        .map_err(|error| refused(error.to_string())),
                );
            }
        });
        let tally = tally.into_inner();
        match tally.error {
            Some(error) => Err(error),
            None if tally.done == self.fits() => Ok(CampaignEnding::Complete),
            None => Ok(CampaignEnding::Interrupted),
        }
    }

    /// Every contender from one start, AltBi first.
    fn start(&self, data: &Prepared<'_>, start: u64, at_work: &AtWork<'_>) -> Result<()> {
        let name = &data.dataset.name;
        let (archive, watcher) = (at_work.archive, at_work.watcher);
        let mut seconds = None;
        for contender in Contender::all() {
            if watcher.interrupted() || at_work.tally.lock().error.is_some() {
                break;
            }
            let earlier = archive.find(name, &contender, start);
            let found = earlier.is_some();
            let record = match earlier {
                Some(record) => record,
                None => {
                    let fitted = data.fit(&contender, start, &self.protocol, seconds, watcher)?;
                    let Some(fitted) = fitted else {
                        break;
                    };
                    archive.keep(name, &contender, &fitted)?;
                    fitted.record
                }
            };
            if contender.method == Method::AltBi {
                // (A fit that broke down says nothing about the time of a whole one.)
                let whole = record.breakdown.is_none().then_some(&record.moments);
                let at_end = whole.and_then(|moments| moments.get(&Moment::Time));
                seconds = at_end.map(|at| at.seconds);
            }
            self.count(data.dataset, &contender, start, found, at_work);
        }
        Ok(())
    }

    fn count(
        &self,
        dataset: &Dataset,
        contender: &Contender,
        start: u64,
        found: bool,
        at_work: &AtWork<'_>,
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
        let mut tally = at_work.tally.lock();
        tally.done += 1;
        let spent = cost(dataset, contender);
        if found {
            tally.cost_found += spent;
        } else {
            tally.cost_done += spent;
        }
        at_work.watcher.progressed(&Progress {
            dataset: &dataset.title,
            start,
            done: tally.done,
            of: self.fits(),
            share_done: tally.cost_done / total,
            share_found: tally.cost_found / total,
        });
    }
}

/// The cost of a fit relative to others. All followed contenders run for about the time of AltBi.
fn cost_per_entry(contender: &Contender) -> f64 {
    if contender.followed { 1.0 } else { 0.25 }
}

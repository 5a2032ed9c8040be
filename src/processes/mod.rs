//! The processes that share one run.
//!
//! A large X is split by rows. Each process has some rows of X and W, and the λ of these rows. H is
//! the same on all. Processes exchange only sums of the shape of H and a few numbers such as the
//! divergence. All other modules use a [`Processes`] for these sums, with one of these
//! communicators:
//!
//! | communicator | processes |
//! |---|---|
//! | `Alone` | one: nothing is exchanged |
//! | [`Threads`] | threads of one program, for tests without MPI |
//! | `MessagePassing` | the processes of an MPI job (feature `mpi`) |
//!
//! Each process makes a problem of its own rows, and all of them run it together:
//!
//! ```
//! use altbi::processes::{Processes, Share, Threads};
//! use altbi::{AltBiConfig, Beta, L1, Outcome, Precision, Problem, Result, Zeros};
//!
//! fn fit(x: &ndarray::Array2<f64>, processes: &Processes) -> Result<Option<Outcome>> {
//!     let share = Share::of(processes, x.nrows())?;
//!     // (A program whose X is too large for a machine reads only these rows.)
//!     let rows = share.cut(x).into();
//!     let problem = Problem::of_share(rows, Zeros::Data, None, Precision::F64, share)?;
//!     let config = AltBiConfig::new(2).with_max_iterations(10);
//!     let outcome = config.solver(Beta::KL, L1).run(&problem)?;
//!     // All rows of W and λ, on process 0.
//!     Ok(outcome.gathered())
//! }
//!
//! let x = ndarray::Array2::from_shape_fn((20, 6), |(i, j)| 1.0 + ((i * j) % 5) as f64);
//! let mut outcomes = Threads::run(2, |processes| fit(&x, &processes)).into_iter();
//! assert_eq!(outcomes.next().unwrap()?.unwrap().w.dim(), (20, 2));
//! assert!(outcomes.next().unwrap()?.is_none());
//! # Ok::<(), altbi::Error>(())
//! ```
//!
//! Under `mpirun -n 4`, in a build with the feature `mpi`, a [`Job`] has the processes, and each
//! of them reads its rows of a file ([`Source::read_share`](crate::data::Source::read_share)):
//!
//! ```no_run
//! use altbi::data::{Contents, Source, TableOptions};
//! use altbi::processes::Job;
//! use altbi::{AltBiConfig, Beta, L1, Precision, Problem, Zeros};
//!
//! fn main() -> altbi::Result<()> {
//!     let job = Job::join()?;
//!     let file = Source::from("big.npy");
//!     let (contents, share) = file.read_share(TableOptions::default(), job.processes())?;
//!     let rows = match contents {
//!         Contents::Table(table) => table.values.into(),
//!         Contents::Sparse(matrix) => matrix.into(),
//!     };
//!     let problem = Problem::of_share(rows, Zeros::Data, None, Precision::F64, share)?;
//!     let outcome = AltBiConfig::new(20).solver(Beta::KL, L1).run(&problem)?;
//!     if let Some(outcome) = outcome.gathered() {
//!         println!("{} after {} iterations", outcome.stop_reason, outcome.iterations);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! All processes must make the same calls in the same order. A [checked](Processes::checked)
//! [`Processes`], as in debug builds, first compares the number, kind and length of every call, and
//! ends the job with a message if they differ.

mod alone;
mod borders;
#[cfg(feature = "data")]
mod exact;
mod job;
#[cfg(feature = "mpi")]
mod message_passing;
mod selection;
mod share;
mod threads;

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use alone::Alone;
#[cfg(feature = "data")]
pub(crate) use exact::{Wide, add};
pub use job::Job;
#[cfg(feature = "mpi")]
use message_passing::MessagePassing;
pub use share::Share;
pub use threads::Threads;

use crate::error::{Error, Result};

/// Communication between processes. Every method except the first two must be called by all
/// processes together.
pub(crate) trait Communicator: Debug + Send + Sync {
    /// The number of this process, counted from 0.
    fn rank(&self) -> usize;

    /// The number of processes.
    fn size(&self) -> usize;

    /// Replaces each number by its sum over all processes, the same in every bit on all.
    fn sum(&self, values: &mut [f64]);

    /// Replaces each number by the largest of all processes.
    fn largest(&self, values: &mut [f64]);

    /// The numbers of all processes, one process after another: on process 0, or on all.
    fn gather(&self, part: &[f64], on_all: bool) -> Option<Vec<f64>>;

    /// Sends numbers to the processes before and after this one, and returns theirs.
    fn exchange(&self, to_before: &[f64], to_after: &[f64]) -> [Option<Vec<f64>>; 2];
}

/// The kinds of calls, for checked jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Sum = 1,
    Largest = 2,
    Gather = 3,
    Exchange = 4,
}

/// Calls and bytes of this process so far.
#[derive(Debug, Default)]
struct Traffic {
    calls: AtomicU64,
    bytes: AtomicU64,
    /// True if all processes know of an error.
    failed: AtomicBool,
}

/// All processes of a run, for one of them. A clone stands for the same process.
#[derive(Debug, Clone)]
pub struct Processes {
    communicator: Arc<dyn Communicator>,
    traffic: Arc<Traffic>,
    checked: bool,
}

impl Default for Processes {
    /// A single process.
    fn default() -> Self {
        Self::new(Alone)
    }
}

impl Processes {
    /// The processes of a communicator.
    pub(crate) fn new(communicator: impl Communicator + 'static) -> Self {
        Self {
            communicator: Arc::new(communicator),
            traffic: Arc::default(),
            checked: cfg!(debug_assertions),
        }
    }

    /// The same, with or without a comparison of every call.
    #[must_use]
    pub fn checked(mut self, checked: bool) -> Self {
        self.checked = checked;
        self
    }

    /// The number of this process, counted from 0.
    pub fn rank(&self) -> usize {
        self.communicator.rank()
    }

    /// The number of processes.
    pub fn size(&self) -> usize {
        self.communicator.size()
    }

    /// Returns true if there is only one process.
    pub fn is_alone(&self) -> bool {
        self.size() == 1
    }

    /// Returns true on process 0, which writes and prints.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// The number of calls of this process so far, and the bytes that it sent.
    pub fn traffic(&self) -> (u64, u64) {
        let Traffic { calls, bytes, .. } = self.traffic.as_ref();
        (calls.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
    }

    /// Counts a call, and compares it with those of the other processes. `length` is `None` if the
    /// count of numbers may differ between processes.
    fn before(&self, call: Call, numbers: usize, length: Option<usize>) {
        let number = self.traffic.calls.fetch_add(1, Ordering::Relaxed);
        let bytes = (numbers * size_of::<f64>()) as u64;
        self.traffic.bytes.fetch_add(bytes, Ordering::Relaxed);
        if !self.checked {
            return;
        }
        let mine = [
            number as f64,
            f64::from(call as u8),
            length.unwrap_or(0) as f64,
        ];
        let mut ends = [mine[0], mine[1], mine[2], -mine[0], -mine[1], -mine[2]];
        self.communicator.largest(&mut ends);
        let [most, least] = [&ends[..3], &ends[3..]];
        if most.iter().zip(least).any(|(most, least)| *most != -least) {
            panic!(
                "process {} makes call {number} ({call:?} of {} numbers), another process a \
                 different one: all must make the same calls in the same order",
                self.rank(),
                mine[2],
            );
        }
    }

    /// Replaces each number by its sum over all processes.
    pub fn sum(&self, values: &mut [f64]) {
        if !self.is_alone() {
            self.before(Call::Sum, values.len(), Some(values.len()));
            self.communicator.sum(values);
        }
    }

    /// A sum over all processes.
    pub fn total(&self, value: f64) -> f64 {
        let mut values = [value];
        self.sum(&mut values);
        values[0]
    }

    /// Replaces each number by the largest of all processes.
    pub(crate) fn largest(&self, values: &mut [f64]) {
        if !self.is_alone() {
            self.before(Call::Largest, values.len(), Some(values.len()));
            self.communicator.largest(values);
        }
    }

    /// Returns true if `holds` is true on some process.
    pub(crate) fn any(&self, holds: bool) -> bool {
        let mut flag = [f64::from(u8::from(holds))];
        self.largest(&mut flag);
        flag[0] > 0.0
    }

    /// The numbers of all processes, on process 0.
    pub fn gather(&self, part: Vec<f64>) -> Option<Vec<f64>> {
        if self.is_alone() {
            return Some(part);
        }
        self.before(Call::Gather, part.len(), None);
        self.communicator.gather(&part, false)
    }

    /// The numbers of all processes, on all of them.
    pub(crate) fn gather_on_all(&self, part: Vec<f64>) -> Vec<f64> {
        if self.is_alone() {
            return part;
        }
        self.before(Call::Gather, part.len(), None);
        let all = self.communicator.gather(&part, true);
        all.expect("every process gets them")
    }

    /// Sends numbers to the processes before and after this one, and returns theirs. `None` if
    /// there is no such process.
    pub(crate) fn exchange(&self, to_before: &[f64], to_after: &[f64]) -> [Option<Vec<f64>>; 2] {
        if self.is_alone() {
            return [None, None];
        }
        self.before(Call::Exchange, to_before.len() + to_after.len(), None);
        self.communicator.exchange(to_before, to_after)
    }

    /// Returns true if there was an error that all processes know of, so that none waits for
    /// another.
    pub(crate) fn has_failed_together(&self) -> bool {
        self.traffic.failed.load(Ordering::Relaxed)
    }

    /// A result that is `Ok` on all processes or an error on all. If some process has an error, the
    /// first of them keeps it, and the others get [`Error::OtherProcess`].
    ///
    /// # Errors
    /// The error of this process, or [`Error::OtherProcess`].
    pub fn agree<T>(&self, result: Result<T>) -> Result<T> {
        if self.is_alone() {
            return result;
        }
        let (size, rank) = (self.size() as f64, self.rank());
        let failed = match &result {
            Ok(_) => 0.0,
            // An error that was agreed on before stays as it is.
            Err(Error::OtherProcess { process }) => (size - *process as f64) / (2.0 * size),
            Err(_) => size - rank as f64,
        };
        let mut first = [failed];
        self.largest(&mut first);
        if first[0] == 0.0 {
            return result;
        }
        self.traffic.failed.store(true, Ordering::Relaxed);
        let process = match first[0] {
            share if share < 1.0 => size - share * 2.0 * size,
            share => size - share,
        };
        let process = process.round() as usize;
        match result {
            Err(error) if process == rank => Err(error),
            _ => Err(Error::OtherProcess { process }),
        }
    }
}

//! Observers of a run.

use super::{Record, State};

/// The request of an observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Go on.
    Continue,
    /// End the run after this iteration, with
    /// [`StopReason::Interrupted`](super::StopReason::Interrupted).
    Stop,
}

/// Sees every iteration of a run, the start (iteration 0) included: progress
/// bars, loggers, checkpoints, interrupts.
///
/// Any closure that takes the record and the state is one:
///
/// ```
/// use altbi::{AltBiConfig, Beta, L1, Record, Signal, State};
/// let x = ndarray::Array2::from_shape_fn((6, 5), |(i, j)| 1.0 + (i * j) as f64);
/// let outcome = AltBiConfig::new(2)
///     .solver(Beta::KL, L1)
///     .observe(|record: &Record, _: &State| {
///         if record.iteration == 3 { Signal::Stop } else { Signal::Continue }
///     })
///     .fit(&x)?;
/// assert_eq!(outcome.iterations, 3);
/// # Ok::<(), altbi::Error>(())
/// ```
///
/// Runs are computed on threads of their own, so observers must be `Send`.
pub trait Observer: Send {
    /// Called after each iteration.
    fn iterated(&mut self, record: &Record, state: &State) -> Signal;
}

impl<F: FnMut(&Record, &State) -> Signal + Send> Observer for F {
    fn iterated(&mut self, record: &Record, state: &State) -> Signal {
        self(record, state)
    }
}

//! A line every few seconds, so that a long run is seen to be alive.

use std::time::{Duration, Instant};

use altbi::{Observer, Record, Signal, State};

/// Time between two lines.
const INTERVAL: Duration = Duration::from_secs(3);

/// Writes plain lines to standard error.
pub struct PlainLines {
    last: Instant,
    max_iterations: usize,
}

impl PlainLines {
    /// For a run of at most so many iterations.
    pub fn new(max_iterations: usize) -> Self {
        Self {
            last: Instant::now(),
            max_iterations,
        }
    }
}

impl Observer for PlainLines {
    fn iterated(&mut self, record: &Record, _state: &State) -> Signal {
        if self.last.elapsed() >= INTERVAL {
            self.last = Instant::now();
            eprintln!(
                "iteration {} of at most {}: divergence {:.6e}, median λ {:.3e}, {:.0} s",
                record.iteration,
                self.max_iterations,
                record.divergence,
                record.lambda_median,
                record.seconds
            );
        }
        Signal::Continue
    }
}

//! A sign of life: a bar on a terminal, a line every few seconds elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use altbi::{Observer, Record, Signal, State};
use indicatif::{ProgressBar, ProgressStyle};

use super::output::complain;

/// Time between two plain lines.
const INTERVAL: Duration = Duration::from_secs(3);

/// Shows how far a run is, on standard error.
pub enum Progress {
    /// On a terminal.
    Bar(ProgressBar),
    /// Elsewhere.
    Lines {
        /// When the last line was written.
        last: Instant,
        /// Iterations at most.
        of: usize,
    },
}

impl Progress {
    /// For a run of at most so many iterations.
    pub fn new(max_iterations: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines {
                last: Instant::now(),
                of: max_iterations,
            };
        }
        let bar = ProgressBar::new(max_iterations as u64);
        let template = "{bar:30} {pos}/{len} {msg}, at most {eta} left";
        let style = ProgressStyle::with_template(template).expect("a template that parses");
        bar.set_style(style);
        Self::Bar(bar)
    }
}

impl Observer for Progress {
    fn iterated(&mut self, record: &Record, _state: &State) -> Signal {
        let numbers = format!(
            "divergence {:.6e}, median λ {:.3e}",
            record.divergence, record.lambda_median
        );
        match self {
            Self::Bar(bar) => {
                bar.set_position(record.iteration as u64);
                bar.set_message(numbers);
            }
            Self::Lines { last, of } => {
                if last.elapsed() >= INTERVAL {
                    *last = Instant::now();
                    let (iteration, seconds) = (record.iteration, record.seconds);
                    complain(format!(
                        "iteration {iteration} of at most {of}: {numbers}, {seconds:.0} s"
                    ));
                }
            }
        }
        Signal::Continue
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

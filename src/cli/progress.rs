//! Progress of a command: one line on a terminal, otherwise a plain line every few seconds.
//!
//! Long work consists of stages. A stage with steps has its own bar and estimate. A stage without
//! steps (reading a file, writing a report) shows only its name.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Observer, Record, Signal, State};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

use super::output::complain;

/// Time between two plain lines.
const INTERVAL: Duration = Duration::from_secs(3);
/// Time between two redraws of the line on a terminal.
const TICK: Duration = Duration::from_millis(200);

/// Shows the progress of a command on standard error. Clones share one line.
#[derive(Clone)]
pub struct Progress {
    line: Option<Arc<Line>>,
    lines: bool,
    now: Arc<Mutex<Now>>,
}

/// The line on a terminal. It disappears when the last clone is dropped.
struct Line(ProgressBar);

impl Drop for Line {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The present stage.
struct Now {
    stage: String,
    of: u64,
    /// Steps that were done in an earlier run.
    before: u64,
    began: Instant,
    last_line: Instant,
}

impl Progress {
    /// Shows nothing if `silent`.
    pub fn new(silent: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let line = (!silent && terminal).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK);
            Arc::new(Line(bar))
        });
        Self {
            line,
            lines: !silent && !terminal,
            now: Arc::new(Mutex::new(Now {
                stage: String::new(),
                of: 0,
                before: 0,
                began: Instant::now(),
                last_line: Instant::now(),
            })),
        }
    }

    /// Begins a stage without steps.
    pub fn begin(&self, stage: &str) {
        self.steps(stage, 0, 0);
    }

    /// Begins a stage with `of` steps, of which `before` were done in an earlier run.
    pub fn steps(&self, stage: &str, of: usize, before: usize) {
        let mut now = self.now.lock();
        now.stage = stage.into();
        now.of = of as u64;
        now.before = before as u64;
        now.began = Instant::now();
        drop(now);
        let Some(Line(bar)) = self.line.as_deref() else {
            return;
        };
        // The message takes the rest of the line.
        let template = if of == 0 {
            "{spinner} {wide_msg}"
        } else {
            "{bar:12} {percent:>3} % {wide_msg}"
        };
        bar.set_style(ProgressStyle::with_template(template).expect("a template that parses"));
        bar.set_length(of as u64);
        bar.set_position(before as u64);
        bar.set_message(stage.to_owned());
    }

    /// Starts the estimate of the speed at this step, because earlier steps were done in an earlier
    /// run or in another way.
    fn count_from(&self, step: usize) {
        let mut now = self.now.lock();
        now.before = step as u64;
        now.began = Instant::now();
    }

    /// Reports the number of steps that are done.
    pub fn at(&self, step: usize, text: impl FnOnce() -> String) {
        if let Some(Line(bar)) = self.line.as_deref() {
            let now = self.now.lock();
            let left = now
                .left(step as u64)
                .map_or(String::new(), |left| match left {
                    0.0..100.0 => format!("({left:.0}s left) "),
                    left => format!("({:.0}m left) ", left / 60.0),
                });
            bar.set_position(step as u64);
            bar.set_message(format!("{left}{}: {}", now.stage, text()));
        } else if self.lines {
            let mut now = self.now.lock();
            if now.last_line.elapsed() < INTERVAL {
                return;
            }
            now.last_line = Instant::now();
            let Now { stage, of, .. } = &*now;
            let left = now.left(step as u64);
            let left = left.map_or(String::new(), |left| format!(", about {left:.0} s left"));
            complain(format!("{stage}, {step} of {of}: {}{left}", text()));
        }
    }

    /// Removes the line, so that something else can be printed.
    pub fn clear(&self) {
        if let Some(Line(bar)) = self.line.as_deref() {
            bar.finish_and_clear();
        }
    }
}

impl Now {
    /// Estimate of the remaining seconds, from the speed so far.
    fn left(&self, step: u64) -> Option<f64> {
        let done = step.saturating_sub(self.before);
        if done == 0 || step >= self.of {
            return None;
        }
        let each = self.began.elapsed().as_secs_f64() / done as f64;
        Some(each * (self.of - step) as f64)
    }
}

/// Watches a run of the solver.
pub struct Watch {
    progress: Progress,
    /// True after the first iteration.
    begun: bool,
}

impl Watch {
    /// A run of at most `of` iterations, of which `before` were done in an earlier run.
    pub fn new(progress: &Progress, stage: &str, of: usize, before: usize) -> Self {
        progress.steps(stage, of, before);
        Self {
            progress: progress.clone(),
            begun: false,
        }
    }
}

impl Observer for Watch {
    fn iterated(&mut self, record: &Record, _state: &State) -> Signal {
        if !self.begun {
            self.progress.count_from(record.iteration);
            self.begun = true;
        }
        self.progress.at(record.iteration, || {
            let Record {
                divergence,
                outer_error,
                lambda_median,
                ..
            } = record;
            // (D is not computed in each iteration if the outer error decides.)
            if divergence.is_nan() {
                format!("E {outer_error:.3e}")
            } else {
                format!("D {divergence:.3e}, λ {lambda_median:.1e}")
            }
        });
        Signal::Continue
    }
}

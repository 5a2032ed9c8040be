//! A sign of life: one line on a terminal, a plain line every few seconds elsewhere.
//!
//! Long work is a row of stages. A stage with steps has a bar and an estimate of its own;
//! one without (reading a file, writing a report) has its name.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::{Observer, Record, Signal, State};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

use super::output::complain;

/// Time between two plain lines.
const INTERVAL: Duration = Duration::from_secs(3);
/// Time between two looks of the line on a terminal.
const TICK: Duration = Duration::from_millis(200);

/// Shows how far a command is, on standard error. Copies show the same.
#[derive(Clone)]
pub struct Progress {
    line: Option<Arc<Line>>,
    lines: bool,
    now: Arc<Mutex<Now>>,
}

/// The line on a terminal; it goes with the last who shows something there.
struct Line(ProgressBar);

impl Drop for Line {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The stage at work.
struct Now {
    stage: String,
    of: u64,
    /// Steps that were done before the stage began here.
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

    /// Work without steps begins.
    pub fn begin(&self, stage: &str) {
        self.steps(stage, 0, 0);
    }

    /// Work of so many steps begins; some of them were done before.
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
        // The message takes what is left of the line, whatever its width.
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

    /// The steps so far say nothing about the speed: they were done before, or in another
    /// way.
    fn count_from(&self, step: usize) {
        let mut now = self.now.lock();
        now.before = step as u64;
        now.began = Instant::now();
    }

    /// So many steps are done.
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

    /// Takes the line away, before anything else is printed.
    pub fn clear(&self) {
        if let Some(Line(bar)) = self.line.as_deref() {
            bar.finish_and_clear();
        }
    }
}

impl Now {
    /// Seconds that are left, from the speed so far.
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
    /// Whether an iteration was seen.
    begun: bool,
}

impl Watch {
    /// A run of at most so many iterations, some of which were done before.
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
            // (Where the outer error decides, D is not computed on the way.)
            if divergence.is_nan() {
                format!("E {outer_error:.3e}")
            } else {
                format!("D {divergence:.3e}, λ {lambda_median:.1e}")
            }
        });
        Signal::Continue
    }
}

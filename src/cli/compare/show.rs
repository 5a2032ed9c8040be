//! How far a comparison is.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use altbi::tuner::Standing;
use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

use crate::cli::checkpoints::interruption;
use crate::cli::output::complain;

/// Time between two plain lines.
const INTERVAL: Duration = Duration::from_secs(5);

/// How far it is: a bar on a terminal, lines elsewhere.
pub(super) struct Show {
    bar: Option<ProgressBar>,
    silent: bool,
    of: usize,
    count: Mutex<(usize, Instant)>,
    pub(super) interrupted: Arc<AtomicBool>,
}

impl Show {
    pub(super) fn new(silent: bool, of: usize) -> Self {
        let bar = (!silent && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(of as u64);
            let template = "{bar:30} {pos}/{len} {msg}, about {eta} left";
            let style = ProgressStyle::with_template(template);
            bar.set_style(style.expect("a template that parses"));
            bar
        });
        Self {
            bar,
            silent,
            of,
            count: Mutex::new((0, Instant::now())),
            interrupted: interruption(),
        }
    }

    pub(super) fn found(&self, answers: usize) {
        self.count.lock().0 = answers;
        if let Some(bar) = &self.bar {
            bar.set_position(answers as u64);
            bar.reset_eta();
        }
    }

    pub(super) fn done(&self, standing: &Standing) {
        let mut count = self.count.lock();
        count.0 += 1;
        let text = format!("{}, seed {}", standing.rival, standing.seed);
        if let Some(bar) = &self.bar {
            bar.set_position(count.0 as u64);
            bar.set_message(text);
            if count.0 == self.of {
                bar.finish_and_clear();
            }
        } else if !self.silent && count.1.elapsed() >= INTERVAL {
            count.1 = Instant::now();
            complain(format!("answer {} of {}: {text}", count.0, self.of));
        }
    }
}

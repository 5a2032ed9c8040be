//! Checkpoints during a run, and an orderly end on Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::processes::Processes;
use crate::report::RunFolder;
use crate::{Checkpoint, Error, Observer, Record, Result, Signal, State};
use ndarray::Array2;
use parking_lot::{Mutex, MutexGuard};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

use super::job;

/// Default time between two checkpoints.
const INTERVAL: Duration = Duration::from_secs(10);

/// A flag that Ctrl-C or SIGTERM raises. A second signal ends the program at once. A hang-up is not
/// handled, so that `nohup` protects a run.
pub fn interruption() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The order matters: the second signal must find the flag raised. Without a handler the run
        // can still be killed, and its last checkpoint stays.
        let _ = register_conditional_shutdown(signal, 130, flag.clone());
        let _ = register(signal, flag.clone());
    }
    flag
}

/// State of the writer after the run.
#[derive(Default)]
pub struct Aftermath {
    /// True if the run folder was created.
    pub folder_made: bool,
    /// The error that ended the run, if writing failed.
    pub error: Option<Error>,
}

/// Writes checkpoints into the run folder, which it creates with the first one.
pub struct Checkpoints {
    folder: Option<RunFolder>,
    config: String,
    inputs: Vec<(&'static str, String)>,
    data_hash: String,
    settings_hash: String,
    every: Option<usize>,
    last: Instant,
    history: Vec<Record>,
    lambda_at_start: Option<Array2<f64>>,
    interrupted: Arc<AtomicBool>,
    processes: Processes,
    aftermath: Arc<Mutex<Aftermath>>,
}

impl Checkpoints {
    /// For a run with or without a folder.
    pub fn new(
        folder: Option<RunFolder>,
        config: &str,
        data_hash: &str,
        settings_hash: &str,
        every: Option<usize>,
    ) -> Self {
        Self {
            folder,
            config: config.into(),
            inputs: Vec::new(),
            data_hash: data_hash.into(),
            settings_hash: settings_hash.into(),
            every,
            last: Instant::now(),
            history: Vec::new(),
            lambda_at_start: None,
            interrupted: interruption(),
            processes: job::processes(),
            aftermath: Arc::default(),
        }
    }

    /// Adds copies of data from standard input, to be stored in the folder.
    pub fn with_inputs(mut self, inputs: Vec<(&'static str, String)>) -> Self {
        self.inputs = inputs;
        self
    }

    /// Adds the history of an earlier part of the run, whose folder exists.
    pub fn resumed(mut self, history: Vec<Record>, lambda_at_start: Array2<f64>) -> Self {
        self.history = history;
        self.lambda_at_start = Some(lambda_at_start);
        self.note().folder_made = true;
        self
    }

    /// Adds the history of a finished run, which has another folder.
    pub fn after(mut self, history: Vec<Record>, lambda_at_start: Array2<f64>) -> Self {
        self.history = history;
        self.lambda_at_start = Some(lambda_at_start);
        self
    }

    /// State of the writer, to be read after the run.
    pub fn aftermath(&self) -> Arc<Mutex<Aftermath>> {
        self.aftermath.clone()
    }

    fn note(&self) -> MutexGuard<'_, Aftermath> {
        self.aftermath.lock()
    }

    /// Returns true if Ctrl-C was pressed, on any process. All processes must call it together.
    pub fn is_interrupted(&self) -> bool {
        let here = self.interrupted.load(Ordering::SeqCst);
        self.processes.any(here)
    }

    /// Writes a state that was observed before other work was interrupted.
    pub fn write_again(&mut self, state: &State) {
        if let Err(error) = self.write(state) {
            self.note().error = Some(error);
        }
    }

    /// Returns true if process 0, which has the folder, should write a checkpoint.
    fn is_due(&self, iteration: usize) -> bool {
        let due = match self.every {
            Some(every) => iteration > 0 && iteration.is_multiple_of(every),
            None => self.last.elapsed() >= INTERVAL,
        };
        self.processes.any(due && self.folder.is_some())
    }

    /// Writes the state of all processes.
    fn write(&mut self, state: &State) -> Result<()> {
        let (Some(state), Some(folder)) = (state.gathered(), &self.folder) else {
            return Ok(());
        };
        let made = self.note().folder_made;
        if !made {
            folder.create(&self.config, &self.inputs)?;
            self.note().folder_made = true;
        }
        let lambda = self.lambda_at_start.as_ref().expect("the start was seen");
        let (data, settings) = (&self.data_hash, &self.settings_hash);
        let checkpoint = Checkpoint::new(data, settings, &state, lambda, &self.history);
        folder.write_checkpoint(&checkpoint.encode())?;
        self.last = Instant::now();
        Ok(())
    }

    fn observed(&mut self, record: &Record, state: &State) -> Result<Signal> {
        self.history.push(record.clone());
        if record.iteration == 0 {
            self.lambda_at_start = state.gathered().map(|state| state.lambda);
        }
        let stop = self.is_interrupted();
        if stop || self.is_due(record.iteration) {
            self.write(state)?;
        }
        Ok(if stop { Signal::Stop } else { Signal::Continue })
    }
}

impl Observer for Checkpoints {
    fn iterated(&mut self, record: &Record, state: &State) -> Signal {
        match self.observed(record, state) {
            Ok(signal) => signal,
            Err(error) => {
                self.note().error = Some(error);
                Signal::Stop
            }
        }
    }
}

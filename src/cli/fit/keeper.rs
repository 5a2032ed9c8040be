//! The saved starts of `--restarts`, so that none is done twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::data::text_fingerprint;
use crate::report::RunFolder;
use crate::{Checkpoint, CheckpointFault, Observer, Problem, Record, Result, Signal, State};
use ndarray::Array2;
use parking_lot::Mutex;

/// Work of a start between two checkpoints.
const INTERVAL: Duration = Duration::from_secs(10);

/// The folder of all starts. It is created with the first checkpoint.
pub(super) struct Starts {
    folder: Option<RunFolder>,
    config: String,
    inputs: Vec<(&'static str, String)>,
    data_hash: String,
    settings_hash: String,
    interrupted: Arc<AtomicBool>,
    made: Mutex<bool>,
}

impl Starts {
    pub fn new(
        folder: Option<RunFolder>,
        (config, inputs): (&str, &[(&'static str, String)]),
        data_hash: &str,
        interrupted: Arc<AtomicBool>,
        made: bool,
    ) -> Self {
        Self {
            folder,
            config: config.into(),
            inputs: inputs.to_vec(),
            data_hash: data_hash.into(),
            settings_hash: text_fingerprint(config),
            interrupted,
            made: Mutex::new(made),
        }
    }

    /// Returns true if the folder was created.
    pub fn folder_made(&self) -> bool {
        *self.made.lock()
    }

    /// The checkpoint of a start from an earlier call.
    pub fn earlier(&self, seed: u64) -> Result<Option<Checkpoint>> {
        let folder = self.folder.as_ref().filter(|_| self.folder_made());
        let bytes = match folder {
            Some(folder) => folder.read_start(seed)?,
            None => None,
        };
        let Some(bytes) = bytes else {
            return Ok(None);
        };
        let checkpoint = Checkpoint::decode(&bytes)?;
        if checkpoint.settings_hash != self.settings_hash {
            return Err(CheckpointFault::OtherSettings.into());
        }
        if checkpoint.data_hash != self.data_hash {
            return Err(CheckpointFault::OtherData.into());
        }
        Ok(Some(checkpoint))
    }

    fn write(&self, seed: u64, story: &Story) -> Result<()> {
        let (Some(folder), Some(state)) = (&self.folder, &story.state) else {
            return Ok(());
        };
        let mut made = self.made.lock();
        if !*made {
            folder.create(&self.config, &self.inputs)?;
            *made = true;
        }
        drop(made);
        let (data, settings) = (&self.data_hash, &self.settings_hash);
        let lambda = story.lambda_at_start.as_ref().expect("the start was seen");
        let checkpoint = Checkpoint::new(data, settings, state, lambda, &story.history);
        folder.write_start(seed, &checkpoint.encode())
    }
}

/// The last observed state of a start.
#[derive(Default)]
struct Story {
    state: Option<State>,
    lambda_at_start: Option<Array2<f64>>,
    history: Vec<Record>,
}

/// Watches one start.
#[derive(Clone)]
pub(super) struct Keeper {
    seed: u64,
    starts: Arc<Starts>,
    story: Arc<Mutex<Story>>,
    written: Instant,
}

impl Keeper {
    /// A keeper of a start that begins, or that goes on from a checkpoint.
    pub fn new(
        seed: u64,
        starts: &Arc<Starts>,
        earlier: Option<&Checkpoint>,
        problem: &Problem,
    ) -> Result<Self> {
        let mut story = Story::default();
        if let Some(earlier) = earlier {
            let of = earlier.restore(problem)?;
            story.lambda_at_start = Some(of.lambda_at_start);
            story.history = of.history;
        }
        Ok(Self {
            seed,
            starts: starts.clone(),
            story: Arc::new(Mutex::new(story)),
            written: Instant::now(),
        })
    }

    /// Writes the state in which the start ended.
    pub fn keep(&self) -> Result<()> {
        self.starts.write(self.seed, &self.story.lock())
    }
}

impl Observer for Keeper {
    fn iterated(&mut self, record: &Record, state: &State) -> Signal {
        if self.starts.folder.is_some() {
            let mut story = self.story.lock();
            story.history.push(record.clone());
            if story.lambda_at_start.is_none() {
                story.lambda_at_start = Some(state.lambda.clone());
            }
            match &mut story.state {
                Some(last) => last.clone_from(state),
                last => *last = Some(state.clone()),
            }
            if self.written.elapsed() >= INTERVAL {
                // (A full disk is reported at the end.)
                let _ = self.starts.write(self.seed, &story);
                self.written = Instant::now();
            }
        }
        match self.starts.interrupted.load(Ordering::SeqCst) {
            true => Signal::Stop,
            false => Signal::Continue,
        }
    }
}

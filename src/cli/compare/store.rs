//! Runs that are finished, so that a comparison can go on.

use std::path::{Path, PathBuf};

use altbi::data::{Lock, write_whole};
use altbi::tuner::{Contest, Standing};
use altbi::{Error, Result};
use parking_lot::Mutex;

use crate::cli::output::json;

/// Standings of finished runs, in memory and in the folder.
pub(super) struct Store {
    /// Held while runs are written; the system releases it if the program dies.
    _lock: Option<Lock>,
    folder: Option<PathBuf>,
    fingerprint: String,
    about: String,
    rivals: usize,
    standings: Mutex<Vec<Standing>>,
    failed: Mutex<Option<Error>>,
    /// One writer at a time, or an older state could come last.
    writing: Mutex<()>,
}

/// What `standings.json` holds.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct Kept {
    fingerprint: String,
    /// What was compared on what.
    #[serde(default)]
    pub(super) about: String,
    pub(super) contest: Contest,
}

impl Kept {
    /// Of a folder; `None` if it is not a comparison's.
    pub(super) fn read(folder: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(folder.join("standings.json")).ok()?;
        serde_json::from_str(&text).ok()
    }
}

/// Makes a folder if need be, and keeps others from writing into it.
fn claim(folder: &Path) -> Result<Lock> {
    let failed = |source| Error::Write {
        path: folder.into(),
        source,
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("compare.lock"))
        .map_err(failed)?;
    Lock::take(file, folder)
}

impl Store {
    pub(super) fn open(
        folder: Option<&Path>,
        fingerprint: &str,
        about: &str,
        rivals: usize,
    ) -> Result<Self> {
        let mut standings = Vec::new();
        let mut lock = None;
        if let Some(folder) = folder {
            let kept = Kept::read(folder);
            if folder.exists() && kept.is_none() {
                return Err(Error::NotAnExperiment {
                    path: folder.into(),
                    reason: "it has no standings.json that altbi compare wrote",
                });
            }
            lock = Some(claim(folder)?);
            // (Again: whoever had the folder before may have written into it.)
            if let Some(kept) = Kept::read(folder).or(kept) {
                if kept.fingerprint != fingerprint {
                    return Err(Error::OtherComparison {
                        path: folder.into(),
                    });
                }
                standings = kept.contest.standings;
            }
        }
        let store = Self {
            _lock: lock,
            folder: folder.map(Path::to_owned),
            fingerprint: fingerprint.into(),
            about: about.into(),
            rivals,
            standings: Mutex::new(standings),
            failed: Mutex::new(None),
            writing: Mutex::new(()),
        };
        // From now on the folder is a comparison's, whatever happens next.
        store.write()?;
        Ok(store)
    }

    pub(super) fn has(&self, seed: u64) -> bool {
        let standings = self.standings.lock();
        standings.iter().filter(|of| of.seed == seed).count() == self.rivals
    }

    /// Takes a standing; with the last one of a run, writes.
    pub(super) fn keep(&self, standing: &Standing) {
        self.standings.lock().push(standing.clone());
        if !self.has(standing.seed) {
            return;
        }
        if let Err(error) = self.write() {
            *self.failed.lock() = Some(error);
        }
    }

    /// The finished runs, by seed.
    fn contest(&self) -> Contest {
        let mut standings = self.standings.lock().clone();
        standings.retain(|standing| self.has(standing.seed));
        // (Stable: the rivals of a run keep their order.)
        standings.sort_by_key(|standing| standing.seed);
        Contest { standings }
    }

    fn write(&self) -> Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let _one_at_a_time = self.writing.lock();
        let kept = Kept {
            fingerprint: self.fingerprint.clone(),
            about: self.about.clone(),
            contest: self.contest(),
        };
        write_whole(&folder.join("standings.json"), json(&kept).as_bytes())
    }

    pub(super) fn finished(&self) -> Result<Contest> {
        match self.failed.lock().take() {
            Some(error) => Err(error),
            None => Ok(self.contest()),
        }
    }
}

//! Runs that are finished, so that a comparison can go on.

use std::path::{Path, PathBuf};

use altbi::data::{Reservation, write_whole};
use altbi::tuner::{Contest, Standing};
use altbi::{Error, Result};
use parking_lot::Mutex;

use crate::cli::output::json;

/// Standings of finished runs, in memory and in the folder.
pub(super) struct Store {
    /// Held while runs are written; without any, the folder goes again.
    reservation: Mutex<Option<Reservation>>,
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

impl Store {
    pub(super) fn open(
        folder: Option<&Path>,
        fingerprint: &str,
        about: &str,
        rivals: usize,
    ) -> Result<Self> {
        let mut standings = Vec::new();
        let mut reservation = None;
        if let Some(folder) = folder {
            let kept = Kept::read(folder);
            // (A folder with the lock in it is being made by another comparison, or was.)
            let begun = folder.join("compare.lock").is_file();
            if folder.exists() && kept.is_none() && !begun {
                return Err(Error::NotAnExperiment {
                    path: folder.into(),
                    reason: "it has no standings.json that altbi compare wrote",
                });
            }
            let claim = Reservation::of(folder, "compare.lock", &["standings.json"])?;
            let claim = reservation.insert(claim);
            if kept.is_some() {
                claim.keep();
            }
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
            reservation: Mutex::new(reservation),
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
        if let Some(reservation) = &mut *self.reservation.lock() {
            reservation.keep();
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

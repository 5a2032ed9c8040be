//! Finished runs, so that a comparison can go on.

use std::path::{Path, PathBuf};

use crate::data::Reservation;
use crate::report::{ContestRecords, KeptRecords};
use crate::tuner::{Contest, Standing};
use crate::{Error, Result};
use parking_lot::Mutex;

use crate::cli::search::claim;

/// Standings of finished runs, in memory and in the folder.
pub(super) struct Store {
    /// Held while runs are written. If none is written, the folder is removed.
    reservation: Mutex<Option<Reservation>>,
    folder: Option<PathBuf>,
    fingerprint: String,
    data: String,
    about: String,
    rivals: usize,
    standings: Mutex<Vec<Standing>>,
    failed: Mutex<Option<Error>>,
    /// One writer at a time, so that an older state never overwrites a newer one.
    writing: Mutex<()>,
}

impl Store {
    pub(super) fn open(
        folder: Option<&Path>,
        fingerprint: &str,
        [data, about]: [&str; 2],
        rivals: usize,
    ) -> Result<Self> {
        let mut standings = Vec::new();
        let mut reservation = None;
        if let Some(folder) = folder {
            let same = |kept: &ContestRecords| kept.fingerprint == fingerprint;
            let foreign = "it has no standings.json that altbi compare wrote";
            let (claimed, kept) = claim(folder, "compare.lock", foreign, same)?;
            reservation = Some(claimed);
            standings = kept.map_or_else(Vec::new, |kept| kept.contest.standings);
        }
        let store = Self {
            reservation: Mutex::new(reservation),
            folder: folder.map(Path::to_owned),
            fingerprint: fingerprint.into(),
            data: data.into(),
            about: about.into(),
            rivals,
            standings: Mutex::new(standings),
            failed: Mutex::new(None),
            writing: Mutex::new(()),
        };
        // From now on the folder belongs to this comparison, even if it fails.
        store.write()?;
        Ok(store)
    }

    pub(super) fn has(&self, seed: u64) -> bool {
        let standings = self.standings.lock();
        standings.iter().filter(|of| of.seed == seed).count() == self.rivals
    }

    /// Adds a standing. Writes after the last standing of a run.
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
    fn records(&self) -> ContestRecords {
        let mut standings = self.standings.lock().clone();
        standings.retain(|standing| self.has(standing.seed));
        // (Stable: the rivals of a run keep their order.)
        standings.sort_by_key(|standing| standing.seed);
        ContestRecords {
            fingerprint: self.fingerprint.clone(),
            data: self.data.clone(),
            about: self.about.clone(),
            contest: Contest { standings },
        }
    }

    fn write(&self) -> Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let _one_at_a_time = self.writing.lock();
        self.records().write(folder)
    }

    pub(super) fn finished(&self) -> Result<ContestRecords> {
        match self.failed.lock().take() {
            Some(error) => Err(error),
            None => Ok(self.records()),
        }
    }
}

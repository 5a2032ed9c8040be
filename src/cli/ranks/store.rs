//! Finished pairs of rank and split, so that a search can go on.

use std::path::{Path, PathBuf};

use crate::data::Reservation;
use crate::ranks::{RankBy, RankError, RankOutcome};
use crate::report::{KeptRecords, RankRecords};
use crate::{Error, Result};
use parking_lot::Mutex;

use crate::cli::search::claim;

/// Records in memory and in the folder.
pub(super) struct Store {
    folder: Option<PathBuf>,
    state: Mutex<State>,
}

struct State {
    records: RankRecords,
    /// Held while pairs are written. If none is written, the folder is removed.
    reservation: Option<Reservation>,
    failed: Option<Error>,
}

impl Store {
    /// Takes over the pairs of a folder with the same data and settings.
    pub(super) fn open(folder: Option<&Path>, mut records: RankRecords) -> Result<Self> {
        let mut reservation = None;
        if let Some(folder) = folder {
            let same = |kept: &RankRecords| kept.fingerprint == records.fingerprint;
            let foreign = "it has no ranks.json that altbi ranks wrote";
            let (claimed, kept) = claim(folder, "ranks.lock", foreign, same)?;
            reservation = Some(claimed);
            if let Some(kept) = kept {
                records.done = kept.done;
            }
            // From now on the folder belongs to this search, even if it fails.
            records.write(folder)?;
        }
        Ok(Self {
            folder: folder.map(Path::to_owned),
            state: Mutex::new(State {
                records,
                reservation,
                failed: None,
            }),
        })
    }

    /// The finished pairs.
    pub(super) fn known(&self) -> Vec<RankError> {
        self.state.lock().records.done.errors.clone()
    }

    /// Adds a pair and writes the records. (One thread at a time, so that an older state never
    /// overwrites a newer one.)
    pub(super) fn keep(&self, error: &RankError) {
        let mut state = self.state.lock();
        let known = std::mem::take(&mut state.records.done.errors);
        state.records.done = RankOutcome::new(known.into_iter().chain([error.clone()]));
        let Some(folder) = &self.folder else {
            return;
        };
        if let Some(reservation) = &mut state.reservation {
            reservation.keep();
        }
        if let Err(error) = state.records.write(folder) {
            state.failed = Some(error);
        }
    }

    /// The records of a finished search, with its recommendation.
    pub(super) fn finished(&self) -> Result<RankRecords> {
        let mut state = self.state.lock();
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        let outcome = state.records.outcome();
        state.records.recommended = outcome.recommended(RankBy::Plain);
        state.records.recommended_tuned = outcome.recommended(RankBy::Tuned);
        if let Some(folder) = &self.folder {
            state.records.write(folder)?;
        }
        Ok(state.records.clone())
    }

    /// The error of a failed write, if there was one.
    pub(super) fn failure(&self) -> Result<()> {
        self.state.lock().failed.take().map_or(Ok(()), Err)
    }
}

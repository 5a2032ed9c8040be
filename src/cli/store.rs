//! What a search has found so far, so that it can go on.

use std::path::{Path, PathBuf};

use crate::data::Reservation;
use crate::report::KeptRecords;
use crate::{Error, Result};
use parking_lot::Mutex;

/// Records in memory and in the folder.
pub struct Store<R> {
    folder: Option<PathBuf>,
    state: Mutex<State<R>>,
}

struct State<R> {
    records: R,
    /// Held while the search runs. Unless something is kept, the folder is removed.
    reservation: Option<Reservation>,
    failed: Option<Error>,
}

impl<R: KeptRecords + Clone> Store<R> {
    /// Claims the folder of a search. `take_over` adds the records of an earlier one; it returns
    /// false if that had other data or settings.
    ///
    /// # Errors
    /// [`Error::NotAnExperiment`] for a folder of something else, [`Error::OtherComparison`] for
    /// records that are not taken over, [`Error::Busy`], [`Error::Write`].
    pub fn open(
        folder: Option<&Path>,
        mut records: R,
        (lock, foreign): (&'static str, &'static str),
        take_over: impl FnOnce(&mut R, R) -> bool,
    ) -> Result<Self> {
        let mut reservation = None;
        if let Some(path) = folder {
            let read = || R::read(path).ok();
            let kept = read();
            // (A folder with a lock in it is or was being made by another search.)
            if path.exists() && kept.is_none() && !path.join(lock).is_file() {
                return Err(Error::NotAnExperiment {
                    path: path.into(),
                    reason: foreign,
                });
            }
            let claim = reservation.insert(Reservation::of(path, lock, &[R::FILE])?);
            // (It is read again, because another process may have written into it before the claim.)
            if let Some(kept) = read().or(kept) {
                claim.keep();
                if !take_over(&mut records, kept) {
                    return Err(Error::OtherComparison { path: path.into() });
                }
            }
            // From now on the folder belongs to this search, even if it fails.
            records.write(path)?;
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

    /// Adds to the records and writes them. (One thread at a time, so that an older state never
    /// overwrites a newer one.)
    pub fn keep(&self, add: impl FnOnce(&mut R)) {
        let mut state = self.state.lock();
        add(&mut state.records);
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

    /// The records so far, or the error of a failed write.
    pub fn records(&self) -> Result<R> {
        let mut state = self.state.lock();
        match state.failed.take() {
            Some(error) => Err(error),
            None => Ok(state.records.clone()),
        }
    }
}

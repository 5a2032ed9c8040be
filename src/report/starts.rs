//! Finished and interrupted starts of a run, stored in its folder until all are done.

use std::fs;
use std::path::Path;

use super::run_folder::RunFolder;
use crate::error::{Error, Result};

/// Prefix of the names of their files. The seed follows.
const START: &str = "start-";

/// Returns true if a file of a run folder holds a start.
pub(super) fn is_start(name: &str) -> bool {
    let seed = name.strip_prefix(START);
    seed.is_some_and(|seed| seed.parse::<u64>().is_ok())
}

/// Returns true if a run folder has starts of an unfinished run.
pub(super) fn has_starts(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name());
    names.any(|name| name.to_str().is_some_and(is_start))
}

impl RunFolder {
    /// Writes the checkpoint of a start over an older one.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write_start(&self, seed: u64, bytes: &[u8]) -> Result<()> {
        self.write(&format!("{START}{seed}"), bytes)
    }

    /// The checkpoint of a start, if there is one.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn read_start(&self, seed: u64) -> Result<Option<Vec<u8>>> {
        let path = self.path().join(format!("{START}{seed}"));
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    /// Refuses a folder without starts to go on with.
    ///
    /// # Errors
    /// [`Error::NoCheckpoint`].
    pub fn check_starts(&self) -> Result<()> {
        if has_starts(self.path()) {
            return Ok(());
        }
        Err(Error::NoCheckpoint {
            path: self.path().into(),
            reason: match self.path().join("summary.json").exists() {
                true => "the run is finished",
                false => "no start was finished or interrupted",
            },
        })
    }

    /// Removes the starts.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(super) fn remove_starts(&self) -> Result<()> {
        let entries = fs::read_dir(self.path()).map_err(Error::writing(self.path()))?;
        for entry in entries.flatten() {
            if entry.file_name().to_str().is_some_and(is_start) {
                let path = entry.path();
                fs::remove_file(&path).map_err(Error::writing(&path))?;
            }
        }
        Ok(())
    }
}

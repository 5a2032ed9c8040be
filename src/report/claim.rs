//! Taking a folder's name: making it, claiming it, and what `--force` may replace.

use std::fs;
use std::path::Path;

use super::run_folder::RunFolder;
use crate::data::{Lock, folder_of};
use crate::error::{Error, Result};

/// The name of the checkpoint in a run folder.
pub(super) const CHECKPOINT: &str = "checkpoint";

/// How the names of files begin that are still being written.
pub(super) const STRAY: &str = ".altbi-";

impl RunFolder {
    /// Makes an empty folder of this name, in place of an older run's that may be
    /// there, and writes the settings into it; with a copy of the data where it is
    /// nowhere else. The older run is kept aside until the new one's results are
    /// written.
    ///
    /// # Errors
    /// As [`new`](Self::new): what was not there before the run is not replaced
    /// either. [`Error::Write`].
    pub fn create(&self, config: &str, data: Option<&str>) -> Result<()> {
        let failed = |source| Error::Write {
            path: self.path.clone(),
            source,
        };
        let parent = folder_of(&self.path);
        fs::create_dir_all(parent).map_err(failed)?;
        let aside = tempfile::Builder::new()
            .prefix(STRAY)
            .tempdir_in(parent)
            .map_err(failed)?;
        let fresh = Self::at(&aside.path().join("new"), false);
        fs::create_dir(&fresh.path).map_err(failed)?;
        fresh.write("config.toml", config.as_bytes())?;
        if let Some(data) = data {
            fresh.write("data.csv", data.as_bytes())?;
        }
        let replaced = self.path.symlink_metadata().is_ok();
        if replaced {
            // It may have come while the run was under way.
            if !self.replace {
                return Err(Error::RunFolderExists {
                    path: self.path.clone(),
                });
            }
            check_replaceable(&self.path)?;
            if self.path.join("config.toml").exists() {
                // Not under the hands of another run.
                Self::at(&self.path, false).lock()?;
            }
            fs::rename(&self.path, aside.path().join("old")).map_err(failed)?;
        }
        let made = fs::rename(&fresh.path, &self.path).map_err(failed);
        if replaced {
            *self.old.lock() = Some(aside);
            if made.is_err() {
                self.restore();
            }
        }
        made?;
        self.lock()
    }

    /// Claims the folder for this program until it ends.
    ///
    /// # Errors
    /// [`Error::Busy`] if another run writes into it; [`Error::Read`].
    pub fn lock(&self) -> Result<()> {
        let path = self.path.join("config.toml");
        let failed = |source| Error::Read {
            path: path.clone(),
            source,
        };
        let file = fs::File::open(&path).map_err(failed)?;
        *self.lock.lock() = Some(Lock::take(file, &self.path)?);
        Ok(())
    }

    /// Removes the folder and what is in it, for a run that could not be written;
    /// an older run that it replaced comes back.
    pub fn discard(&self) {
        // Nothing more can be done where even this fails.
        let _ = fs::remove_dir_all(&self.path);
        self.restore();
    }

    fn restore(&self) {
        if let Some(aside) = self.old.lock().take() {
            let _ = fs::rename(aside.path().join("old"), &self.path);
        }
    }
}

/// What altbi writes into a run folder.
const OWN: [&str; 14] = [
    "W.npy",
    "H.npy",
    "lambda.npy",
    "lambda_start.npy",
    "W.csv",
    "H.csv",
    "held_out.npy",
    "history.csv",
    "summary.json",
    "config.toml",
    "report.html",
    "figures",
    "data.csv",
    CHECKPOINT,
];

/// Refuses anything but a folder that holds a run and nothing else: `--force` is
/// not a way to lose a thesis.
pub(super) fn check_replaceable(path: &Path) -> Result<()> {
    let refused = |stranger: String| Error::NotARunFolder {
        path: path.into(),
        stranger,
    };
    let kind = path.symlink_metadata().map_err(|source| Error::Read {
        path: path.into(),
        source,
    })?;
    if !kind.is_dir() {
        return Err(refused("it is not a folder".into()));
    }
    let entries = fs::read_dir(path).map_err(|source| Error::Read {
        path: path.into(),
        source,
    })?;
    let mut any = false;
    let mut is_run = false;
    for entry in entries {
        let name = entry
            .map_err(|source| Error::Read {
                path: path.into(),
                source,
            })?
            .file_name();
        let name = name.to_string_lossy();
        any = true;
        is_run |= name == "config.toml";
        if !(OWN.contains(&name.as_ref()) || name.starts_with(STRAY)) {
            return Err(refused(format!("it holds '{name}'")));
        }
    }
    if any && !is_run {
        return Err(refused("it holds no config.toml".into()));
    }
    Ok(())
}

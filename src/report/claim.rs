//! Creating, locking and replacing run folders.

use std::fs;
use std::path::Path;

use super::figures::is_figure;
use super::run_folder::RunFolder;
use super::starts::is_start;
use crate::data::lock::Lock;
use crate::data::{Reservation, folder_of};
use crate::error::{Error, Result};

/// The name of the checkpoint in a run folder.
pub(super) const CHECKPOINT: &str = "checkpoint";

/// Prefix of the names of temporary files.
pub(super) const STRAY: &str = ".altbi-";

/// The file that reserves a folder before results are written.
const RESERVED: &str = ".altbi-reserved";

impl RunFolder {
    /// Reserves the folder, so that no other run can take it.
    pub(super) fn reserve(&self) -> Result<()> {
        let path = &self.path;
        let reserve = || {
            let reservation =
                Reservation::of(path, RESERVED, &["data.csv", "mask.csv", "config.toml"])?;
            *self.reservation.lock() = Some(reservation);
            Ok(())
        };
        if path.symlink_metadata().is_err() {
            return reserve();
        }
        // The reservation of a killed run can be taken over, unless it is still locked.
        if is_reserved(path) {
            return reserve();
        }
        if !self.replace {
            return Err(Error::RunFolderExists { path: path.clone() });
        }
        check_replaceable(path)?;
        if path.join("config.toml").exists() {
            // Another run may be writing into it.
            self.lock()
        } else {
            reserve()
        }
    }

    /// Writes the settings into the folder, with a copy of data from standard input. A replaced
    /// older run is kept under another name until the results of the new one are written.
    ///
    /// # Errors
    /// Those of [`new`](Self::new), if the folder was created in the meantime; [`Error::Write`].
    pub fn create(&self, config: &str, inputs: &[(&str, String)]) -> Result<()> {
        let fill = |folder: &Self| {
            for (name, text) in inputs {
                folder.write(name, text.as_bytes())?;
            }
            folder.write("config.toml", config.as_bytes())
        };
        let reservation = self.reservation.lock().take();
        if let Some(mut reservation) = reservation {
            fill(self)?;
            self.lock()?;
            reservation.keep();
            return sweep(&self.path);
        }
        let failed = Error::writing(&self.path);
        let parent = folder_of(&self.path);
        fs::create_dir_all(parent).map_err(&failed)?;
        let aside = tempfile::Builder::new()
            .prefix(STRAY)
            .tempdir_in(parent)
            .map_err(&failed)?;
        let fresh = Self::at(&aside.path().join("new"), false);
        fs::create_dir(&fresh.path).map_err(&failed)?;
        fill(&fresh)?;
        let replaced = self.path.symlink_metadata().is_ok();
        if replaced {
            // The folder may have changed during the run.
            if !self.replace {
                return Err(Error::RunFolderExists {
                    path: self.path.clone(),
                });
            }
            check_replaceable(&self.path)?;
            // (Some systems cannot rename a folder with an open file in it.)
            self.lock.lock().take();
            fs::rename(&self.path, aside.path().join("old")).map_err(&failed)?;
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
        let reserved = self.path.join(RESERVED);
        if let (false, Ok(file)) = (path.exists(), fs::File::open(&reserved)) {
            // This run has not written its settings yet, or was killed before.
            Lock::take(file, &self.path)?;
        }
        let file = fs::File::open(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::NoCheckpoint {
                path: self.path.clone(),
                reason: "it is not a run folder, or the run ended before its first checkpoint",
            },
            _ => Error::reading(&path)(source),
        })?;
        *self.lock.lock() = Some(Lock::take(file, &self.path)?);
        Ok(())
    }

    /// Removes the folder of a run that could not be written, and restores an older run that it
    /// replaced.
    pub fn discard(&self) {
        // If this fails, nothing more can be done.
        let _ = fs::remove_dir_all(&self.path);
        self.restore();
    }

    fn restore(&self) {
        if let Some(aside) = self.old.lock().take() {
            let _ = fs::rename(aside.path().join("old"), &self.path);
        }
    }
}

/// The files that altbi writes into a run folder.
const OWN: [&str; 17] = [
    "W.npy",
    "H.npy",
    "W.csv",
    "labels.json",
    "scale.npy",
    "H.csv",
    "lambda.csv",
    "held_out.npy",
    "held_out.mtx",
    "thinned.npy",
    "thinned.mtx",
    "history.csv",
    "summary.json",
    "config.toml",
    "report.html",
    "data.csv",
    "mask.csv",
];

/// `lambda.npy`, `lambda_h_2_start.npy`, …
fn is_weights(name: &str) -> bool {
    let Some(name) = name.strip_prefix("lambda") else {
        return false;
    };
    let Some(name) = name.strip_suffix(".npy") else {
        return false;
    };
    let name = name.strip_suffix("_start").unwrap_or(name);
    let name = name.strip_prefix("_h").unwrap_or(name);
    let number = name.strip_prefix('_').map(str::parse::<usize>);
    name.is_empty() || number.is_some_and(|number| number.is_ok())
}

fn is_own(name: &str) -> bool {
    let known = OWN.contains(&name) || name == CHECKPOINT;
    known || is_weights(name) || is_start(name) || name.starts_with(STRAY)
}

fn is_own_figure(name: &str) -> bool {
    let figure = name.strip_suffix(".svg");
    figure.is_some_and(is_figure) || name.starts_with(STRAY)
}

/// Names in a folder, each with true if it is a folder.
fn entries(path: &Path) -> Result<Vec<(String, bool)>> {
    let failed = Error::reading(path);
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        let is_folder = entry.file_type().map_err(&failed)?.is_dir();
        names.push((entry.file_name().to_string_lossy().into_owned(), is_folder));
    }
    Ok(names)
}

/// Returns true if a folder holds a reservation and the first files of a run, but no results.
fn is_reserved(path: &Path) -> bool {
    let is_folder = path.symlink_metadata().is_ok_and(|kind| kind.is_dir());
    let first = |(name, is_folder): &(String, bool)| {
        !is_folder && (name.starts_with(STRAY) || name == "data.csv" || name == "mask.csv")
    };
    is_folder
        && path.join(RESERVED).is_file()
        && entries(path).is_ok_and(|names| names.iter().all(first))
}

/// Removes temporary files of killed runs, and an old reservation.
pub(super) fn sweep(path: &Path) -> Result<()> {
    for (name, is_folder) in entries(path)? {
        if name.starts_with(STRAY) && !is_folder {
            let path = path.join(name);
            fs::remove_file(&path).map_err(Error::writing(&path))?;
        }
    }
    Ok(())
}

/// Refuses anything but a folder that holds only a run, so that `--force` never deletes other
/// files.
pub(super) fn check_replaceable(path: &Path) -> Result<()> {
    let refused = |stranger: String| Error::NotARunFolder {
        path: path.into(),
        stranger,
    };
    let kind = path.symlink_metadata().map_err(Error::reading(path))?;
    if !kind.is_dir() {
        return Err(refused("it is not a folder".into()));
    }
    let names = entries(path)?;
    for (name, is_folder) in &names {
        if *is_folder && name == "figures" {
            let figures = entries(&path.join(name))?;
            let stranger = figures
                .iter()
                .find(|(name, is_folder)| *is_folder || !is_own_figure(name));
            if let Some((name, _)) = stranger {
                return Err(refused(format!("it holds 'figures/{name}'")));
            }
        } else if *is_folder || !is_own(name) {
            return Err(refused(format!("it holds '{name}'")));
        }
    }
    let is_run = names.iter().any(|(name, _)| name == "config.toml");
    if !names.is_empty() && !is_run {
        return Err(refused("it holds no config.toml".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_files_are_known_and_no_others() {
        for name in [
            "lambda.npy",
            "lambda_start.npy",
            "lambda_h.npy",
            "lambda_2_start.npy",
            "lambda_h_3.npy",
            "W.csv",
            "lambda.csv",
            "labels.json",
            "start-12",
        ] {
            assert!(is_own(name), "{name}");
        }
        for name in [
            "lambda_mine.npy",
            "lambda_h.csv",
            "notes.npy",
            "lambda_h",
            "start-up",
        ] {
            assert!(!is_own(name), "{name}");
        }
        assert!(is_own_figure("convergence.svg") && !is_own_figure("sketch.svg"));
    }

    #[test]
    fn a_name_is_taken_at_once_and_given_back() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b/run");
        let first = RunFolder::new(&path, false).unwrap();
        for force in [false, true] {
            let second = RunFolder::new(&path, force);
            assert!(matches!(second, Err(Error::Busy { .. })), "{second:?}");
        }
        // After bad input nothing is left, not even the folders above.
        drop(first);
        assert!(!parent.path().join("a").exists());
        // A run that was killed before it wrote anything does not keep the folder.
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(RESERVED), "").unwrap();
        let next = RunFolder::new(&path, false).unwrap();
        next.create("", &[]).unwrap();
        assert!(!path.join(RESERVED).exists() && path.join("config.toml").exists());
        // A run that will be replaced is locked at once too, and stays until the new results are
        // written.
        drop(next);
        let first = RunFolder::new(&path, true).unwrap();
        let second = RunFolder::new(&path, true);
        assert!(matches!(second, Err(Error::Busy { .. })), "{second:?}");
        drop(first);
        assert!(path.join("config.toml").exists());
    }
}

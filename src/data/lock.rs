//! One writer at a time.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A file that is locked as long as this lives; the system releases it if the program dies.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Locks an open file on behalf of a folder. A file system without locks must do
    /// without them.
    ///
    /// # Errors
    /// [`Error::Busy`], naming the folder, if somebody else has it.
    pub(crate) fn take(file: File, folder: &Path) -> Result<Self> {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(Error::Busy {
                path: folder.into(),
            }),
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Self(file)),
        }
    }
}

impl Drop for Lock {
    /// Closing the file would not do: a child process that is just being started has a copy
    /// of it, and the lock with it, until it becomes another program.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// A folder that belongs to one command from the first moment. Unless it is
/// [kept](Self::keep), it goes again, with the folders above it that were made for it.
#[derive(Debug)]
pub(crate) struct Reservation {
    path: PathBuf,
    /// The file in it that is locked.
    file: &'static str,
    /// What else may be in it when nothing came of the command.
    leftovers: &'static [&'static str],
    /// Folders that did not exist before, the outermost first.
    made: Vec<PathBuf>,
    kept: bool,
    _lock: Lock,
}

impl Reservation {
    /// Makes a folder, or takes one that is there, and locks a file of this name in it.
    ///
    /// # Errors
    /// [`Error::Busy`] if another command has it; [`Error::Write`].
    pub fn of(path: &Path, file: &'static str, leftovers: &'static [&'static str]) -> Result<Self> {
        let failed = |source| Error::Write {
            path: path.into(),
            source,
        };
        // A folder with this file in it was made for such a command, too.
        let here = path.join(file).is_file();
        let missing = path.ancestors().take_while(|folder| {
            let new = folder.symlink_metadata().is_err() || (here && *folder == path);
            !folder.as_os_str().is_empty() && new
        });
        let mut made: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        made.reverse();
        fs::create_dir_all(path).map_err(failed)?;
        let locked = File::options()
            .create(true)
            .append(true)
            .open(path.join(file))
            .map_err(failed)?;
        Ok(Self {
            path: path.into(),
            file,
            leftovers,
            made,
            kept: false,
            _lock: Lock::take(locked, path)?,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder stays, with all that is in it.
    pub fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // Nothing more can be done where even this fails.
        for name in self.leftovers.iter().chain([&self.file]) {
            let _ = fs::remove_file(self.path.join(name));
        }
        for folder in self.made.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_file_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let open = || {
            File::options()
                .create(true)
                .append(true)
                .open(&path)
                .unwrap()
        };
        let first = Lock::take(open(), folder.path()).unwrap();
        let second = Lock::take(open(), folder.path());
        assert!(matches!(second, Err(Error::Busy { .. })));
        // What a child process has between its birth and its program.
        let copy = first.0.try_clone().unwrap();
        drop(first);
        assert!(Lock::take(open(), folder.path()).is_ok());
        drop(copy);
    }
}

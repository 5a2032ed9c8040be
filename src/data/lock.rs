//! Locks, so that a folder has one writer at a time.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A locked file. The lock is released on drop, and by the system if the program dies.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Locks an open file on behalf of a folder. On a file system without locks nothing is locked.
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
    /// Unlocks explicitly. Closing the file is not enough: a child process that is just being
    /// started holds a copy of the file, and so of the lock, until it executes its program.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// A folder that is reserved for one command. Unless it is [kept](Self::keep), it is removed on
/// drop, with the folders above it that were created for it.
#[derive(Debug)]
pub(crate) struct Reservation {
    path: PathBuf,
    /// The locked file in it.
    file: &'static str,
    /// Other files that may be removed with it.
    leftovers: &'static [&'static str],
    /// Folders that were created, the outermost first.
    made: Vec<PathBuf>,
    kept: bool,
    _lock: Lock,
}

impl Reservation {
    /// Creates a folder, or takes an existing one, and locks a file of this name in it.
    pub fn of(path: &Path, file: &'static str, leftovers: &'static [&'static str]) -> Result<Self> {
        // An existing folder with this file was created by such a command, too.
        let here = path.join(file).is_file();
        let missing = path.ancestors().take_while(|folder| {
            let new = folder.symlink_metadata().is_err() || (here && *folder == path);
            !folder.as_os_str().is_empty() && new
        });
        let mut made: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        made.reverse();
        fs::create_dir_all(path).map_err(Error::writing(path))?;
        let locked = File::options()
            .create(true)
            .append(true)
            .open(path.join(file))
            .map_err(Error::writing(path))?;
        Ok(Self {
            path: path.into(),
            file,
            leftovers,
            made,
            kept: false,
            _lock: Lock::take(locked, path)?,
        })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the folder and its contents.
    pub fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // If this fails, nothing more can be done.
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
        // The copy that a child process holds before it executes its program.
        let copy = first.0.try_clone().unwrap();
        drop(first);
        assert!(Lock::take(open(), folder.path()).is_ok());
        drop(copy);
    }
}

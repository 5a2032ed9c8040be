//! One writer at a time.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::{Error, Result};

/// A file that is locked as long as this lives; the system releases it if the program dies.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Locks an open file on behalf of a folder. A file system without locks must do
    /// without them.
    ///
    /// # Errors
    /// [`Error::Busy`], naming the folder, if somebody else has it.
    pub fn take(file: File, folder: &Path) -> Result<Self> {
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

//! How large a matrix may be on this machine, and how much of a file may be kept.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The share of the memory that is free which X may take as 64-bit floats. A fit needs
/// room for two to three copies of it.
const SHARE: f64 = 0.25;
/// What fits anywhere; no need to ask.
const SMALL: f64 = 1e8;
/// Bytes that a row or a column of a sparse matrix takes without an entry: where it begins,
/// both in the matrix and in its transpose, while one is made of the other.
const PER_LINE: f64 = 32.0;
/// Bytes of memory per byte of a row of text, at most: fields of no length at all, their ends
/// kept twice in vectors that grow by doubling, and a number for each.
const PER_BYTE_OF_ROW: usize = 32;

/// Refuses a matrix that this machine has no room to work on, before any of it is read or
/// made; `path` is the file that it comes from or goes to.
///
/// # Errors
/// [`Error::TooLarge`] with the sizes.
pub(crate) fn check_room(path: &Path, rows: usize, columns: usize) -> Result<()> {
    let needed = rows as f64 * columns as f64 * size_of::<f64>() as f64;
    fits(needed).map_err(|free| Error::TooLarge {
        path: path.into(),
        rows,
        columns,
        gigabytes: needed / 1e9,
        free: free / 1e9,
    })
}

/// Refuses a sparse matrix whose rows and columns alone take too much, however few entries it
/// has: a header of a few bytes can promise any number of them.
///
/// # Errors
/// [`Error::TooManyLines`] with the sizes.
pub(super) fn check_lines(path: &Path, rows: usize, columns: usize) -> Result<()> {
    let needed = (rows as f64 + columns as f64) * PER_LINE;
    fits(needed).map_err(|free| Error::TooManyLines {
        path: path.into(),
        rows,
        columns,
        gigabytes: needed / 1e9,
        free: free / 1e9,
    })
}

/// Whether so many bytes fit; if not, how many are free.
fn fits(needed: f64) -> Result<(), f64> {
    if needed < SMALL {
        return Ok(());
    }
    let free = free_bytes();
    if needed <= SHARE * free {
        Ok(())
    } else {
        Err(free)
    }
}

/// Memory that programs can still have, within the limits of a container.
fn free_bytes() -> f64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let free = system.available_memory();
    let limited = system.cgroup_limits().map(|limits| limits.free_memory);
    limited.map_or(free, |limit| free.min(limit)) as f64
}

/// What the contents of a file may take, and what they have taken: counted as they come,
/// because a packed file does not tell how much is in it, and a header may lie.
#[derive(Debug)]
pub(super) struct Room {
    path: PathBuf,
    taken: usize,
    allowed: usize,
    /// Memory that was free when it was asked for: not before there is much to keep.
    free: Option<f64>,
}

impl Room {
    /// The room for the contents of a file.
    pub(super) fn of(path: &Path) -> Self {
        Self {
            path: path.into(),
            taken: 0,
            allowed: SMALL as usize,
            free: None,
        }
    }

    /// Room for so many bytes, whatever the machine has.
    #[cfg(test)]
    pub(super) fn limited(path: &Path, allowed: usize) -> Self {
        Self {
            allowed,
            free: Some(allowed as f64 / SHARE),
            ..Self::of(path)
        }
    }

    /// Counts bytes that are kept from now on.
    ///
    /// # Errors
    /// [`Error::ContentsTooLarge`].
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) -> Result<()> {
        self.taken = self.taken.saturating_add(bytes);
        if self.taken <= self.allowed {
            return Ok(());
        }
        self.ask();
        if self.taken <= self.allowed {
            return Ok(());
        }
        Err(self.refusal())
    }

    /// Asks the machine, once.
    #[cold]
    fn ask(&mut self) {
        if self.free.is_none() {
            let free = free_bytes();
            self.allowed = self.allowed.max((SHARE * free) as usize);
            self.free = Some(free);
        }
    }

    fn refusal(&self) -> Error {
        Error::ContentsTooLarge {
            path: self.path.clone(),
            gigabytes: self.allowed as f64 / 1e9,
            free: self.free.unwrap_or_default() / 1e9,
        }
    }

    /// The same input, of which no row may take more than there is room for.
    pub(super) fn rows_of<R>(&self, input: R) -> Rows<R> {
        let room = Self {
            path: self.path.clone(),
            ..*self
        };
        Rows {
            input,
            given: 0,
            longest: room.allowed / PER_BYTE_OF_ROW,
            room,
            is_over: false,
        }
    }
}

/// Text that is read row by row; a row without end comes to one.
pub(super) struct Rows<R> {
    input: R,
    /// Bytes of this row.
    given: usize,
    longest: usize,
    room: Room,
    is_over: bool,
}

impl<R> Rows<R> {
    /// A new row begins.
    pub(super) fn begin(&mut self) {
        self.given = 0;
    }

    /// Whether the row is longer than it may be.
    ///
    /// # Errors
    /// [`Error::ContentsTooLarge`] if so.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_over {
            return Err(self.room.refusal());
        }
        Ok(())
    }
}

impl<R: Read> Read for Rows<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given > self.longest {
            self.room.ask();
            self.longest = self.room.allowed / PER_BYTE_OF_ROW;
            if self.given > self.longest {
                self.is_over = true;
                return Err(io::Error::other("a row has no end"));
            }
        }
        let read = self.input.read(buffer)?;
        self.given += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_read_and_what_does_not_is_refused_with_its_size() {
        let path = Path::new("x.npy");
        assert!(check_room(path, 1000, 1000).is_ok());
        let refused = check_room(path, 10_000_000, 10_000_000).unwrap_err();
        assert!(refused.to_string().contains("10000000×10000000"));
        assert!(free_bytes() > 0.0);
    }

    #[test]
    fn rows_and_columns_take_room_without_an_entry() {
        let path = Path::new("x.mtx");
        assert!(check_lines(path, 1_000_000, 1_000_000).is_ok());
        let refused = check_lines(path, 1 << 40, 3);
        assert!(matches!(
            refused,
            Err(Error::TooManyLines {
                columns: 3,
                gigabytes,
                ..
            }) if gigabytes > 1e4
        ));
    }

    #[test]
    fn contents_are_counted_as_they_come() {
        let path = Path::new("x.csv.gz");
        let mut room = Room::limited(path, 100);
        assert!(room.take(60).is_ok() && room.take(40).is_ok());
        let refused = room.take(1).unwrap_err().to_string();
        assert!(refused.contains("x.csv.gz"), "{refused}");
        assert!(room.take(usize::MAX).is_err());
        let mut machine = Room::of(path);
        assert!(machine.take(1000).is_ok() && machine.free.is_none());
        assert!(machine.take(1 << 60).is_err() && machine.free.is_some());
    }

    #[test]
    fn a_row_without_end_comes_to_one() {
        let room = Room::limited(Path::new("x.csv.gz"), 100 * PER_BYTE_OF_ROW);
        let mut rows = room.rows_of(io::repeat(b'1'));
        let mut ten = [0; 10];
        for _ in 0..10 {
            rows.begin();
            for _ in 0..10 {
                rows.read_exact(&mut ten).unwrap();
            }
        }
        assert!(rows.check().is_ok());
        let mut all = Vec::new();
        assert!(rows.read_to_end(&mut all).is_err() && rows.check().is_err());
    }
}

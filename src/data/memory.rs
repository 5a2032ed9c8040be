//! Memory limits for matrices and files.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// X as 64-bit floats may take this share of the free memory. A fit needs two to three copies of
/// it.
const SHARE: f64 = 0.25;
/// Smaller sizes are always allowed, without asking for the free memory.
const SMALL: f64 = 1e8;
/// Bytes of an empty row or column of a sparse matrix: its start in the matrix and in its
/// transpose, while one is made from the other.
const PER_LINE: f64 = 32.0;
/// Largest number of bytes of memory per byte of a row of text. The worst case is empty fields:
/// their ends are stored twice, in vectors that grow by doubling, with a number for each.
const PER_BYTE_OF_ROW: usize = 32;

/// Refuses a matrix that is too large for this machine, before any of it is read or computed.
/// `path` is the input or output file.
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

/// Refuses a sparse matrix whose rows and columns alone take too much memory. (A header of a few
/// bytes can promise any number of them.)
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

/// `Ok` if this many bytes fit, otherwise the number of free bytes.
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

/// Free memory, within the limits of a container.
fn free_bytes() -> f64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let free = system.available_memory();
    let limited = system.cgroup_limits().map(|limits| limits.free_memory);
    limited.map_or(free, |limit| free.min(limit)) as f64
}

/// A limit for the contents of a file, and a count of the bytes so far. Bytes are counted while
/// they are read, because a compressed file does not tell its full size, and a header may be wrong.
#[derive(Debug)]
pub(super) struct Room {
    path: PathBuf,
    taken: usize,
    allowed: usize,
    /// Free memory, once it was asked for. Small contents do not ask.
    free: Option<f64>,
}

impl Room {
    /// The limit for the contents of a file.
    pub(super) fn of(path: &Path) -> Self {
        Self {
            path: path.into(),
            taken: 0,
            allowed: SMALL as usize,
            free: None,
        }
    }

    /// A limit of this many bytes, independent of the machine.
    #[cfg(test)]
    pub(super) fn limited(path: &Path, allowed: usize) -> Self {
        Self {
            allowed,
            free: Some(allowed as f64 / SHARE),
            ..Self::of(path)
        }
    }

    /// Counts bytes that are kept from now on.
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

    /// Asks the system for the free memory, once.
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

    /// The same input with a limit for the length of a row.
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

/// Text that is read row by row, with a limit for each row.
pub(super) struct Rows<R> {
    input: R,
    /// Bytes of this row.
    given: usize,
    longest: usize,
    room: Room,
    is_over: bool,
}

impl<R> Rows<R> {
    /// Begins a new row.
    pub(super) fn begin(&mut self) {
        self.given = 0;
    }

    /// Refuses a row that is too long.
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

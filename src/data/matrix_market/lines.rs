//! The lines of a Matrix Market file, and its header.

use std::io::{BufRead, Read};
use std::path::Path;

use super::super::memory::Room;
use crate::error::{Error, Result};

/// Largest number of bytes of a line, a thousand times what the format allows.
const LONGEST_LINE: usize = 1 << 20;

/// Contents of the first line.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) is_array: bool,
    /// True if entries have no values; each is then 1.
    pub(super) is_pattern: bool,
    pub(super) is_symmetric: bool,
}

/// Contents of the line of sizes.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) rows: u64,
    pub(super) columns: u64,
    /// Number of entries, one per line.
    pub(super) entries: u64,
}

/// A file, line by line.
pub(super) struct Lines<'a, R> {
    pub(super) input: R,
    pub(super) path: &'a Path,
    pub(super) room: Room,
    /// The line that was read last, counted from 1.
    pub(super) number: u64,
    pub(super) text: Vec<u8>,
}

impl<R: BufRead> Lines<'_, R> {
    pub(super) fn wrong(&self, reason: impl Into<String>) -> Error {
        Error::MatrixMarket {
            path: self.path.into(),
            line: self.number.max(1),
            reason: reason.into(),
        }
    }

    /// Reads the next line; `false` at the end.
    fn next(&mut self) -> Result<bool> {
        self.text.clear();
        let mut line = self.input.by_ref().take(LONGEST_LINE as u64);
        let read = line
            .read_until(b'\n', &mut self.text)
            .map_err(Error::reading(self.path))?;
        if read == 0 {
            return Ok(false);
        }
        self.number += 1;
        if read == LONGEST_LINE && self.text.last() != Some(&b'\n') {
            return Err(self.wrong(format!("it is longer than {LONGEST_LINE} bytes")));
        }
        Ok(true)
    }

    /// Reads the next line that holds something; `false` at the end.
    pub(super) fn next_filled(&mut self) -> Result<bool> {
        while self.next()? {
            let first = self.text.iter().find(|byte| !byte.is_ascii_whitespace());
            if first.is_some_and(|byte| *byte != b'%') {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn kind(&mut self) -> Result<Kind> {
        self.next()?;
        let text = String::from_utf8_lossy(&self.text).to_ascii_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        let ["%%matrixmarket", "matrix", layout, field, symmetry] = words[..] else {
            return Err(self.wrong(
                "it must be '%%MatrixMarket matrix' and three words: coordinate or array; real, integer or pattern; general or symmetric",
            ));
        };
        let is_array = match layout {
            "coordinate" => false,
            "array" => true,
            other => {
                return Err(self.wrong(format!("'{other}' is neither coordinate nor array")));
            }
        };
        let is_pattern = match field {
            "real" | "double" | "integer" | "unsigned-integer" => false,
            "pattern" if is_array => {
                return Err(self.wrong("an array must have values, so it cannot be a pattern"));
            }
            "pattern" => true,
            "complex" => return Err(self.wrong("the matrix is complex; real ones can be read")),
            other => {
                return Err(self.wrong(format!("'{other}' is not real, integer or pattern")));
            }
        };
        let is_symmetric = match symmetry {
            "general" => false,
            "symmetric" => true,
            "skew-symmetric" => {
                return Err(
                    self.wrong("the matrix is skew-symmetric, so that it cannot be nonnegative")
                );
            }
            "hermitian" => {
                return Err(self.wrong("the matrix is Hermitian; save a real one as symmetric"));
            }
            other => {
                return Err(self.wrong(format!("'{other}' is neither general nor symmetric")));
            }
        };
        Ok(Kind {
            is_array,
            is_pattern,
            is_symmetric,
        })
    }

    pub(super) fn sizes(&mut self, kind: Kind) -> Result<Sizes> {
        if !self.next_filled()? {
            return Err(self.wrong("the file ends before the line of sizes"));
        }
        let mut sizes = Vec::new();
        for field in fields(&self.text) {
            let size = whole(field);
            sizes.push(size.ok_or_else(|| {
                self.wrong(format!("the size '{}' is not a whole number", shown(field)))
            })?);
        }
        let (rows, columns, entries) = match (kind.is_array, &sizes[..]) {
            (true, &[rows, columns]) => (rows, columns, None),
            (false, &[rows, columns, entries]) => (rows, columns, Some(entries)),
            (is_array, found) => {
                let wanted = if is_array {
                    "rows and columns"
                } else {
                    "rows, columns and entries"
                };
                let found = found.len();
                return Err(self.wrong(format!("the sizes must be {wanted}, not {found} numbers")));
            }
        };
        let most = u64::from(u32::MAX);
        if rows > most || columns > most {
            return Err(self.wrong(format!(
                "{rows}×{columns} has more than {most} rows or columns"
            )));
        }
        if kind.is_symmetric && rows != columns {
            return Err(self.wrong(format!(
                "a symmetric matrix is square, and {rows}×{columns} is not"
            )));
        }
        let all = if kind.is_symmetric {
            rows * (rows + 1) / 2
        } else {
            rows * columns
        };
        Ok(Sizes {
            rows,
            columns,
            entries: entries.unwrap_or(all),
        })
    }
}

pub(super) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let pieces = line.split(|byte| byte.is_ascii_whitespace());
    pieces.filter(|piece| !piece.is_empty())
}

/// A whole number that consists of digits.
pub(super) fn whole(field: &[u8]) -> Option<u64> {
    field.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// A field for a message, shortened if it is long.
pub(super) fn shown(field: &[u8]) -> String {
    String::from_utf8_lossy(field).chars().take(40).collect()
}

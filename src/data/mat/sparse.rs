//! Sparse matrices of a .mat file, column by column.
//!
//! The head is followed by three parts instead of one: the row of each entry, the start of each
//! column, and the values. Rows and values may be longer than the number of entries, because MATLAB
//! reserves space.

use std::io::Read;
use std::path::Path;

use super::{CHUNK, Head, Parts, Reason, each_number, width};
use crate::data::compressed::{Along, Compressed};
use crate::data::memory::{Room, check_lines};
use crate::error::{Error, Result};
use crate::sparse::SparseMatrix;

/// Types of stored numbers that are not whole: single and double.
const REAL: [u32; 2] = [7, 9];

impl Head<'_> {
    /// Its entries.
    pub(super) fn sparse(&self, path: &Path, room: &mut Room) -> Result<SparseMatrix> {
        let name = &self.name;
        let wrong = |reason: Reason| Error::Mat {
            path: path.into(),
            reason: format!("the sparse matrix {name}: {reason}"),
        };
        let (rows, columns) = self.shape;
        check_lines(path, rows, columns)?;
        let mut parts = self.element.parts().map_err(wrong)?;
        let parts = parts.as_mut().expect("it was a matrix before");
        parts.head(self.element).map_err(wrong)?;
        let mut places = parts.indices("rows", room, &wrong)?;
        let starts = parts.indices("starts of its columns", room, &wrong)?;
        // The end of the last column is the number of entries. (A number that is not a length is
        // ignored here and refused later.)
        let entries = starts.last().map_or(places.len(), |end| *end as usize);
        places.truncate(entries);
        let (along, shape) = (Along::Columns, [rows, columns]);
        // Converted before the values are read: the values then take the memory of the numbers.
        let places = along.places(shape, places, &wrong)?;
        let (_, mut values) = parts.numbers(room, &wrong)?;
        parts.finish().map_err(wrong)?;
        values.truncate(entries);
        let parts = Compressed {
            along,
            shape,
            starts,
            places,
            values,
        };
        parts.matrix(&wrong)
    }
}

impl<R: Read> Parts<R> {
    /// The next part, of whole numbers.
    fn indices(
        &mut self,
        what: &str,
        room: &mut Room,
        wrong: &impl Fn(Reason) -> Error,
    ) -> Result<Vec<f64>> {
        let (kind, numbers) = self.numbers(room, wrong)?;
        if REAL.contains(&kind) {
            return Err(wrong(format!("the {what} are not stored as integers")));
        }
        Ok(numbers)
    }

    /// The type and the numbers of the next part. Only numbers that are there are stored, even if
    /// the header promises more.
    fn numbers(
        &mut self,
        room: &mut Room,
        wrong: &impl Fn(Reason) -> Error,
    ) -> Result<(u32, Vec<f64>)> {
        let tag = self.next().map_err(wrong)?;
        let width = width(tag.kind)
            .ok_or_else(|| wrong("a part of it is stored in an unknown way".into()))?;
        if tag.length > self.left || !tag.length.is_multiple_of(width) {
            return Err(wrong("it is damaged: a part of it ends too early".into()));
        }
        room.take(tag.length / width * size_of::<f64>())?;
        let mut numbers = Vec::new();
        let mut chunk = vec![0; CHUNK.min(tag.length)];
        let mut left = tag.length;
        while left > 0 {
            let bytes = &mut chunk[..CHUNK.min(left)];
            self.fill(bytes).map_err(wrong)?;
            left -= bytes.len();
            each_number(tag.kind, bytes, self.little_endian, |number| {
                numbers.push(number);
            });
        }
        // (The last part of a matrix is not always padded.)
        let padding = tag.padding.min(self.left);
        self.fill(&mut [0; 8][..padding]).map_err(wrong)?;
        Ok((tag.kind, numbers))
    }
}

//! The rows of one process.

use std::ops::Range;

use ndarray::{Array2, Axis, Slice};

use super::Processes;
use crate::error::{Error, Result};

/// Smallest number of rows of a process.
const FEWEST: usize = 2;

/// The rows of X and W that one process has.
#[derive(Debug, Clone)]
pub struct Share {
    processes: Processes,
    /// Their range among all rows.
    rows: Range<usize>,
    all: usize,
}

impl Share {
    /// All rows, in one process.
    pub fn whole(rows: usize) -> Self {
        Self {
            processes: Processes::default(),
            rows: 0..rows,
            all: rows,
        }
    }

    /// This process's share of `all` rows. Shares differ by at most one row.
    ///
    /// # Errors
    /// [`Error::FewRows`] if there are fewer than two rows for each process.
    pub fn of(processes: &Processes, all: usize) -> Result<Self> {
        let (rank, size) = (processes.rank(), processes.size());
        if size > 1 && all < FEWEST * size {
            return Err(Error::FewRows {
                rows: all,
                processes: size,
            });
        }
        Ok(Self {
            processes: processes.clone(),
            rows: all * rank / size..all * (rank + 1) / size,
            all,
        })
    }

    /// The processes that share the rows.
    pub fn processes(&self) -> &Processes {
        &self.processes
    }

    /// The range of these rows.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// The number of all rows.
    pub fn all(&self) -> usize {
        self.all
    }

    /// Returns true if other processes have other rows.
    pub(crate) fn is_split(&self) -> bool {
        !self.processes.is_alone()
    }

    /// The same kind of result on all processes ([`Processes::agree`]), with rows counted over all
    /// of them.
    pub(crate) fn agree<T>(&self, result: Result<T>) -> Result<T> {
        let result = result.map_err(|error| error.in_rows_from(self.rows.start));
        self.processes.agree(result)
    }

    /// These rows of a matrix that has all rows.
    ///
    /// # Panics
    /// If it has another number of rows.
    pub fn cut(&self, whole: &Array2<f64>) -> Array2<f64> {
        assert_eq!(whole.nrows(), self.all, "a matrix that has all rows");
        whole
            .slice_axis(Axis(0), Slice::from(self.rows()))
            .to_owned()
    }

    /// The rows of all processes, on process 0.
    pub fn gather(&self, rows: &Array2<f64>) -> Option<Array2<f64>> {
        let columns = rows.ncols();
        let values = self.processes.gather(rows.iter().copied().collect())?;
        let shape = (values.len() / columns.max(1), columns);
        Some(Array2::from_shape_vec(shape, values).expect("whole rows"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Threads;
    use super::*;

    #[test]
    fn shares_make_up_the_whole() {
        for (all, size) in [(7, 1), (7, 3), (8, 4), (100, 3)] {
            let whole = Array2::from_shape_fn((all, 2), |(i, j)| (2 * i + j) as f64);
            let found = Threads::run(size, |processes| {
                let share = Share::of(&processes, all).unwrap();
                share.gather(&share.cut(&whole))
            });
            assert_eq!(found[0].as_ref(), Some(&whole));
            assert!(found[1..].iter().all(Option::is_none));
        }
        let found = Threads::run(4, |processes| Share::of(&processes, 7).map(drop));
        let few = |result: &Result<()>| {
            matches!(
                result,
                Err(Error::FewRows {
                    rows: 7,
                    processes: 4
                })
            )
        };
        assert!(found.iter().all(few));
    }
}

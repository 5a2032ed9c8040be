//! The numbers of a problem: a matrix, or a part of thinned counts.
//!
//! Both parts of dense counts follow from the counts, which exist anyway, and from the number that
//! was taken out of each. So a part is computed where it is read, and takes two bytes per entry
//! instead of eight.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use ndarray::{Array2, Axis, CowArray, Ix2, Slice};
use rayon::prelude::*;

use crate::sparse::{Matrix, SparseMatrix};

/// A matrix of a problem. A clone shares it.
#[derive(Debug, Clone)]
pub(super) enum Stored {
    /// All its numbers are in memory.
    Whole(Arc<Matrix>),
    /// They are computed.
    Part(Arc<CountsPart>),
}

/// One part of dense counts, scaled.
#[derive(Debug)]
pub(crate) struct CountsPart {
    counts: Arc<Matrix>,
    /// The number that was taken out of each count, row by row.
    taken: Arc<Vec<u16>>,
    /// True for the taken counts, otherwise the remaining ones.
    is_taken: bool,
    scale: f64,
    /// The part as a matrix, if somebody has asked for it.
    whole: OnceLock<Matrix>,
}

impl CountsPart {
    /// Both parts of dense counts with their scales: the remaining counts, and the taken ones. `None`
    /// if the counts are sparse, or if a number is too large.
    pub(super) fn both(counts: &Stored, taken: &[f64], scales: [f64; 2]) -> Option<[Stored; 2]> {
        let Stored::Whole(counts) = counts else {
            return None;
        };
        counts.as_dense()?;
        let largest = taken.par_iter().copied().reduce(|| 0.0, f64::max);
        if largest > f64::from(u16::MAX) {
            return None;
        }
        let taken: Arc<Vec<u16>> = Arc::new(taken.par_iter().map(|taken| *taken as u16).collect());
        Some([false, true].map(|is_taken| {
            Stored::Part(Arc::new(Self {
                counts: counts.clone(),
                taken: taken.clone(),
                is_taken,
                scale: scales[usize::from(is_taken)],
                whole: OnceLock::new(),
            }))
        }))
    }

    fn counts(&self) -> &Array2<f64> {
        self.counts.as_dense().expect("it is made of dense counts")
    }

    #[inline]
    fn of(&self, count: f64, taken: u16) -> f64 {
        let taken = f64::from(taken);
        let part = if self.is_taken { taken } else { count - taken };
        part * self.scale
    }

    #[inline]
    fn at(&self, row: usize, column: usize) -> f64 {
        let counts = self.counts();
        let taken = self.taken[row * counts.ncols() + column];
        self.of(counts[[row, column]], taken)
    }

    /// The entries of a row.
    fn row(&self, row: usize) -> impl Iterator<Item = f64> + '_ {
        let counts = self.counts().row(row);
        let taken = &self.taken[row * counts.len()..(row + 1) * counts.len()];
        let entries = counts.into_iter().zip(taken);
        entries.map(|(count, taken)| self.of(*count, *taken))
    }
}

impl From<Matrix> for Stored {
    fn from(matrix: Matrix) -> Self {
        Self::Whole(Arc::new(matrix))
    }
}

impl Stored {
    /// The matrix. A part becomes one when this is first called.
    pub(super) fn matrix(&self) -> &Matrix {
        match self {
            Self::Whole(matrix) => matrix,
            Self::Part(part) => part
                .whole
                .get_or_init(|| Matrix::Dense(DenseNumbers::Part(part).to_array().into_owned())),
        }
    }

    /// (n, m).
    pub(super) fn dim(&self) -> (usize, usize) {
        match self {
            Self::Whole(matrix) => matrix.dim(),
            Self::Part(part) => part.counts.dim(),
        }
    }

    /// The number of stored entries.
    pub(super) fn stored(&self) -> usize {
        match self {
            Self::Whole(matrix) => matrix.stored(),
            Self::Part(part) => part.counts.stored(),
        }
    }

    /// The matrix, if it is sparse.
    pub(super) fn as_sparse(&self) -> Option<&SparseMatrix> {
        match self {
            Self::Whole(matrix) => matrix.as_sparse(),
            Self::Part(_) => None,
        }
    }

    /// The numbers, if the matrix is dense.
    pub(super) fn as_dense(&self) -> Option<DenseNumbers<'_>> {
        match self {
            Self::Whole(matrix) => matrix.as_dense().map(DenseNumbers::Whole),
            Self::Part(part) => Some(DenseNumbers::Part(part)),
        }
    }

    /// An entry. 0 if it is not stored.
    pub(super) fn entry(&self, row: usize, column: usize) -> f64 {
        match self {
            Self::Whole(matrix) => matrix.entry(row, column),
            Self::Part(part) => part.at(row, column),
        }
    }
}

/// The numbers of a dense matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DenseNumbers<'a> {
    Whole(&'a Array2<f64>),
    Part(&'a CountsPart),
}

impl<'a> DenseNumbers<'a> {
    /// (n, m).
    pub(crate) fn dim(self) -> (usize, usize) {
        match self {
            Self::Whole(matrix) => matrix.dim(),
            Self::Part(part) => part.counts().dim(),
        }
    }

    /// An entry.
    #[inline]
    pub(crate) fn at(self, row: usize, column: usize) -> f64 {
        match self {
            Self::Whole(matrix) => matrix[[row, column]],
            Self::Part(part) => part.at(row, column),
        }
    }

    /// All entries, row by row.
    pub(crate) fn values(self) -> impl Iterator<Item = f64> + 'a {
        let (n, _) = self.dim();
        (0..n).flat_map(move |row| self.row(row).into_owned())
    }

    /// The entries of a row.
    pub(crate) fn row(self, row: usize) -> Cow<'a, [f64]> {
        match self {
            Self::Whole(matrix) => match matrix.row(row).to_slice() {
                Some(entries) => Cow::Borrowed(entries),
                None => Cow::Owned(matrix.row(row).to_vec()),
            },
            Self::Part(part) => Cow::Owned(part.row(row).collect()),
        }
    }

    /// Some rows. (Not on several threads: it may be called while a cell is filled, and a thread that
    /// waits for others may begin a task that needs the same cell.)
    pub(super) fn rows(self, rows: Range<usize>) -> CowArray<'a, f64, Ix2> {
        match self {
            Self::Whole(matrix) => matrix.slice_axis(Axis(0), Slice::from(rows)).into(),
            Self::Part(part) => {
                let (_, m) = self.dim();
                let shape = (rows.len(), m);
                let mut values = Vec::with_capacity(rows.len() * m);
                rows.for_each(|row| values.extend(part.row(row)));
                let values = Array2::from_shape_vec(shape, values);
                values.expect("m numbers for each row").into()
            }
        }
    }

    /// All entries. A matrix in memory is not copied.
    pub(crate) fn to_array(self) -> CowArray<'a, f64, Ix2> {
        let (n, _) = self.dim();
        self.rows(0..n)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ndarray::Array2;

    use super::*;
    use crate::bunch::{Bunch, Pair, Span};
    use crate::criterion::HeldOut;
    use crate::divergence::Beta;
    use crate::metrics::relative_error;
    use crate::numerics::Precision;
    use crate::penalty::{L1, PenaltyTerm};
    use crate::problem::Problem;
    use crate::update::Rule;
    use crate::{Error, Mode};

    fn counts() -> Array2<f64> {
        Array2::from_shape_fn((40, 30), |(i, j)| ((i * 7 + j * 3) % 11) as f64)
    }

    #[test]
    fn a_part_is_a_matrix_only_if_somebody_asks_for_it() -> Result<(), Error> {
        let problem = Problem::new(&counts(), Precision::F64)?.thinned(0.25, 3)?;
        let made = |stored: &Stored| match stored {
            Stored::Whole(_) => panic!("parts of dense counts are computed"),
            Stored::Part(part) => part.whole.get().is_some(),
        };
        let both = || [Some(&problem.x), problem.second.as_ref()].map(|of| made(of.unwrap()));
        for beta in [Beta::KL, Beta::FROBENIUS] {
            let rule = || Rule::new(Arc::new(beta), vec![PenaltyTerm::tuned(L1)]);
            let bunch = Bunch::fused(&problem, rule(), rule(), Arc::new(HeldOut), Span::Both, 2)?;
            let factor = |rows| Array2::from_shape_fn(rows, |(i, k)| 0.5 + ((i + k) % 3) as f64);
            let pair = Pair::new(&problem, &factor((40, 2)), &factor((2, 30)))?;
            let lambda = problem.tensor("λ", &Array2::from_elem((1, 1), 0.1), [1, 1])?;
            bunch.hypergradient(&pair, &[lambda.clone(), lambda], Mode::Adjoint)?;
            assert!(relative_error(&problem, &rule(), 1.0).is_finite());
        }
        assert!(problem.mean() > 0.0 && problem.stored() == 1200);
        assert_eq!(both(), [false, false]);
        let (x, second) = (problem.x().to_dense(), problem.second().unwrap().to_dense());
        assert_eq!(both(), [true, true]);
        for (index, count) in counts().indexed_iter() {
            assert_eq!(problem.x.entry(index.0, index.1), x[index]);
            let unseen = second[index] * 0.25;
            assert!((x[index] * 0.75 + unseen - count).abs() < 1e-12);
        }
        Ok(())
    }

    #[test]
    fn numbers_beyond_two_bytes_are_stored_whole() -> Result<(), Error> {
        let large = counts() * 1e6;
        let problem = Problem::new(&large, Precision::F64)?.thinned(0.25, 3)?;
        assert!(matches!(problem.x, Stored::Whole(_)));
        let second = problem.second().unwrap();
        for (index, count) in large.indexed_iter() {
            let [seen, unseen] = [problem.x(), second].map(|of| of.entry(index.0, index.1));
            assert!((seen * 0.75 + unseen * 0.25 - count).abs() < 1e-6);
        }
        Ok(())
    }

    #[test]
    fn rows_and_values_are_those_of_the_matrix() {
        let matrix = counts();
        let taken: Vec<f64> = matrix.iter().map(|count| (count / 2.0).floor()).collect();
        let stored = Stored::from(Matrix::Dense(matrix.clone()));
        let parts = CountsPart::both(&stored, &taken, [2.0, 3.0]).unwrap();
        let seen = matrix.mapv(|count| (count - (count / 2.0).floor()) * 2.0);
        let unseen = matrix.mapv(|count| (count / 2.0).floor() * 3.0);
        for (part, expected) in parts.iter().zip([seen, unseen]) {
            let numbers = part.as_dense().unwrap();
            assert!(numbers.values().eq(expected.iter().copied()));
            assert_eq!(numbers.row(7).to_vec(), expected.row(7).to_vec());
            let rows = numbers.rows(3..9);
            assert_eq!(rows.view(), expected.slice_axis(Axis(0), Slice::from(3..9)));
            assert_eq!((part.dim(), part.stored()), ((40, 30), 1200));
        }
    }
}

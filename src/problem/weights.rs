//! A weight for each entry of X.

use std::ops::{Index, Range};

use ndarray::{Array2, Axis};

use super::ToMatrix;
use crate::error::Result;
use crate::sparse::{Matrix, SparseMatrix};

/// A weight in [0, ∞) for each entry of X. Zeros and ones, the usual case, take a byte each. For a
/// sparse X, weights that differ from the common one are listed.
///
/// # Shapes
/// n×m.
#[derive(Debug, Clone, PartialEq)]
pub enum Weights {
    /// Weights 0 and 1.
    Binary(Array2<bool>),
    /// Any weights.
    Real(Array2<f64>),
    /// A list of some weights, and one weight for all others.
    Listed {
        /// The listed weights. Zeros may be among them.
        at: SparseMatrix,
        /// The weight of all others.
        elsewhere: f64,
    },
}

impl From<Array2<f64>> for Weights {
    /// The weights in their smallest form, laid out row by row.
    fn from(weights: Array2<f64>) -> Self {
        if weights
            .iter()
            .all(|weight| *weight == 0.0 || *weight == 1.0)
        {
            Self::Binary(Array2::from_shape_fn(weights.dim(), |index| {
                weights[index] == 1.0
            }))
        } else {
            Self::Real(super::in_row_order(weights))
        }
    }
}

impl From<SparseMatrix> for Weights {
    /// The stored weights. Entries that are not stored have weight 0.
    fn from(at: SparseMatrix) -> Self {
        Self::Listed { at, elsewhere: 0.0 }
    }
}

impl Index<(usize, usize)> for Weights {
    type Output = f64;

    fn index(&self, index: (usize, usize)) -> &f64 {
        match self {
            Self::Binary(counts) if counts[index] => &1.0,
            Self::Binary(_) => &0.0,
            Self::Real(weights) => &weights[index],
            Self::Listed { at, elsewhere } => {
                let (row, column) = index;
                at.get_ref(row, column).unwrap_or(elsewhere)
            }
        }
    }
}

impl ToMatrix for Weights {
    fn to_matrix(&self) -> Result<Array2<f64>> {
        Ok(self.to_array())
    }
}

impl Weights {
    /// A weight of 1 for each entry of a matrix.
    pub(super) fn ones(matrix: &Matrix) -> Self {
        match matrix {
            Matrix::Dense(matrix) => Self::Binary(Array2::from_elem(matrix.dim(), true)),
            Matrix::Sparse(matrix) => {
                let [rows, columns] = matrix.shape();
                Self::Listed {
                    at: SparseMatrix::from_rows(columns, (0..rows).map(|_| Vec::new())),
                    elsewhere: 1.0,
                }
            }
        }
    }

    /// (n, m).
    pub fn dim(&self) -> (usize, usize) {
        match self {
            Self::Binary(counts) => counts.dim(),
            Self::Real(weights) => weights.dim(),
            Self::Listed { at, .. } => at.shape().into(),
        }
    }

    /// The sum of all.
    pub fn sum(&self) -> f64 {
        match self {
            Self::Binary(counts) => counts.iter().filter(|counts| **counts).count() as f64,
            Self::Real(weights) => weights.sum(),
            Self::Listed { at, elsewhere } => {
                at.values().iter().sum::<f64>() + elsewhere * at.unstored()
            }
        }
    }

    /// All of them, row by row.
    pub fn iter(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        match self {
            Self::Binary(counts) => Box::new(counts.iter().map(|counts| f64::from(*counts))),
            Self::Real(weights) => Box::new(weights.iter().copied()),
            Self::Listed { .. } => {
                let (rows, columns) = self.dim();
                let all = (0..rows).flat_map(move |i| (0..columns).map(move |j| (i, j)));
                Box::new(all.map(|index| self[index]))
            }
        }
    }

    /// Row and column of the weights that pass a test, row by row.
    pub fn places<'a>(
        &'a self,
        test: impl Fn(f64) -> bool + 'a,
    ) -> Box<dyn Iterator<Item = (usize, usize)> + 'a> {
        if let Self::Listed { at, elsewhere } = self
            && !test(*elsewhere)
        {
            let passed = at.triplets().filter(move |(.., weight)| test(*weight));
            return Box::new(passed.map(|(row, column, _)| (row, column)));
        }
        let (rows, columns) = self.dim();
        let all = (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)));
        Box::new(all.filter(move |index| test(self[*index])))
    }

    /// The weights as an array.
    pub fn to_array(&self) -> Array2<f64> {
        match self {
            Self::Binary(counts) => counts.mapv(f64::from),
            Self::Real(weights) => weights.clone(),
            Self::Listed { at, elsewhere } => {
                let mut all = Array2::from_elem(at.shape(), *elsewhere);
                for (row, column, weight) in at.triplets() {
                    all[[row, column]] = weight;
                }
                all
            }
        }
    }

    /// The weights of some rows as an array.
    pub(super) fn rows(&self, rows: Range<usize>) -> Array2<f64> {
        match self {
            Self::Binary(counts) => counts.slice_axis(Axis(0), rows.into()).mapv(f64::from),
            Self::Real(weights) => weights.slice_axis(Axis(0), rows.into()).to_owned(),
            Self::Listed { .. } => {
                let columns: Vec<usize> = (0..self.dim().1).collect();
                self.selected(&rows.collect::<Vec<_>>(), &columns)
                    .to_array()
            }
        }
    }

    /// The same as a list of the weights other than 1.
    pub(super) fn listed(self) -> Self {
        if matches!(self, Self::Listed { .. }) {
            return self;
        }
        let (rows, columns) = self.dim();
        let of_rows = (0..rows).map(|row| {
            let weights = (0..columns).map(|column| (column as u32, self[(row, column)]));
            weights.filter(|(_, weight)| *weight != 1.0).collect()
        });
        Self::Listed {
            at: SparseMatrix::from_rows(columns, of_rows),
            elsewhere: 1.0,
        }
    }

    /// The stored weights, if only listed entries have a weight.
    pub(crate) fn as_stored(&self) -> Option<&SparseMatrix> {
        match self {
            Self::Listed { at, elsewhere } if *elsewhere == 0.0 => Some(at),
            _ => None,
        }
    }

    /// The weights as a matrix: sparse if only listed entries have a weight, otherwise dense.
    pub(crate) fn to_stored(&self) -> Matrix {
        match self.as_stored() {
            Some(stored) => Matrix::Sparse(stored.clone()),
            None => Matrix::Dense(self.to_array()),
        }
    }

    /// The weights of some rows and columns, both increasing.
    pub(super) fn selected(&self, rows: &[usize], columns: &[usize]) -> Self {
        match self {
            Self::Listed { at, elsewhere } => Self::Listed {
                at: at.selected(rows, columns),
                elsewhere: *elsewhere,
            },
            _ => Self::from(Array2::from_shape_fn(
                (rows.len(), columns.len()),
                |(i, j)| self[(rows[i], columns[j])],
            )),
        }
    }

    /// For each row and each column: true if it has a positive weight.
    pub(super) fn observed(&self) -> [Vec<bool>; 2] {
        let (rows, columns) = self.dim();
        let mut seen = [vec![false; rows], vec![false; columns]];
        if let Self::Listed { at, elsewhere } = self
            && *elsewhere > 0.0
        {
            // Only entries that are listed with weight 0 are unobserved.
            let mut unseen = [vec![0; rows], vec![0; columns]];
            for (row, column, weight) in at.triplets() {
                if weight == 0.0 {
                    unseen[0][row] += 1;
                    unseen[1][column] += 1;
                }
            }
            return [
                unseen[0].iter().map(|count| *count < columns).collect(),
                unseen[1].iter().map(|count| *count < rows).collect(),
            ];
        }
        for (row, column) in self.places(|weight| weight > 0.0) {
            (seen[0][row], seen[1][column]) = (true, true);
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn zeros_and_ones_are_stored_as_such() {
        let plain = array![[0.0, 1.0], [1.0, 1.0]];
        let binary = Weights::from(plain.clone());
        assert!(matches!(binary, Weights::Binary(_)));
        assert_eq!(
            (binary.sum(), binary[(0, 0)], binary[(1, 0)]),
            (3.0, 0.0, 1.0)
        );
        let places: Vec<_> = binary.places(|weight| weight > 0.0).collect();
        assert_eq!(places, [(0, 1), (1, 0), (1, 1)]);
        assert_eq!(binary.to_array(), plain);
        let real = array![[0.0, 1.0], [0.5, 1.0]];
        let weights = Weights::from(real.clone());
        assert!(matches!(weights, Weights::Real(_)));
        assert_eq!((weights.sum(), weights.to_array()), (2.5, real));
    }

    #[test]
    fn listed_weights_are_like_any_others() {
        let at = SparseMatrix::from_triplets([2, 3], vec![(0, 1, 0.0), (1, 2, 0.5)]).unwrap();
        for elsewhere in [0.0, 1.0, 2.0] {
            let at = at.clone();
            let listed = Weights::Listed { at, elsewhere };
            let all = listed.to_array();
            assert_eq!(
                all,
                array![[elsewhere, 0.0, elsewhere], [elsewhere, elsewhere, 0.5]]
            );
            let plain = Weights::Real(all.clone());
            assert_eq!(listed.sum(), all.sum());
            assert_eq!(listed.observed(), plain.observed());
            assert!(listed.iter().eq(plain.iter()));
            for test in [|weight| weight > 0.0, |weight| weight == 0.0] {
                assert!(listed.places(test).eq(plain.places(test)));
            }
            let part = listed.selected(&[1], &[0, 2]).to_array();
            assert_eq!(part, array![[elsewhere, 0.5]]);
            let last = all.slice_axis(Axis(0), (1..2).into());
            assert_eq!(listed.rows(1..2), last);
            assert_eq!(plain.rows(1..2), last);
            let binary = Weights::from(all.mapv(|weight| f64::from(weight > 0.0)));
            let all = binary.to_array();
            assert_eq!(binary.rows(0..1), all.slice_axis(Axis(0), (0..1).into()));
        }
    }
}

//! A weight for each entry of X.

use std::ops::Index;

use ndarray::Array2;

use super::ToMatrix;
use crate::error::Result;

/// A weight in [0, ∞) for each entry of X. Zeros and ones, the usual case, take a byte each.
///
/// # Shapes
/// n×m.
#[derive(Debug, Clone, PartialEq)]
pub enum Weights {
    /// An entry counts, or it does not.
    Binary(Array2<bool>),
    /// Any weights.
    Real(Array2<f64>),
}

impl From<Array2<f64>> for Weights {
    /// In the smallest form that holds them, laid out row by row.
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

impl Index<(usize, usize)> for Weights {
    type Output = f64;

    fn index(&self, index: (usize, usize)) -> &f64 {
        match self {
            Self::Binary(counts) if counts[index] => &1.0,
            Self::Binary(_) => &0.0,
            Self::Real(weights) => &weights[index],
        }
    }
}

impl ToMatrix for Weights {
    fn to_matrix(&self) -> Result<Array2<f64>> {
        Ok(self.to_array())
    }
}

impl Weights {
    /// (n, m).
    pub fn dim(&self) -> (usize, usize) {
        match self {
            Self::Binary(counts) => counts.dim(),
            Self::Real(weights) => weights.dim(),
        }
    }

    /// The sum of all.
    pub fn sum(&self) -> f64 {
        match self {
            Self::Binary(counts) => counts.iter().filter(|counts| **counts).count() as f64,
            Self::Real(weights) => weights.sum(),
        }
    }

    /// All of them, row by row.
    pub fn iter(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        match self {
            Self::Binary(counts) => Box::new(counts.iter().map(|counts| f64::from(*counts))),
            Self::Real(weights) => Box::new(weights.iter().copied()),
        }
    }

    /// Row and column of the weights that pass a test, row by row.
    pub fn places<'a>(
        &'a self,
        test: impl Fn(f64) -> bool + 'a,
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        let (rows, columns) = self.dim();
        let all = (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)));
        all.filter(move |index| test(self[*index]))
    }

    /// As an ordinary matrix.
    pub fn to_array(&self) -> Array2<f64> {
        match self {
            Self::Binary(counts) => counts.mapv(f64::from),
            Self::Real(weights) => weights.clone(),
        }
    }

    /// The weights of some rows and columns.
    pub(super) fn selected(&self, rows: &[usize], columns: &[usize]) -> Array2<f64> {
        Array2::from_shape_fn((rows.len(), columns.len()), |(i, j)| {
            self[(rows[i], columns[j])]
        })
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
}

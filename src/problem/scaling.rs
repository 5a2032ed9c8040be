//! Scaling of the rows or columns of X, and back.

use ndarray::Array2;

use super::{Problem, Weights};
use crate::error::{Error, Result};
use crate::factors::{Factors, Side};
use crate::sparse::Matrix;
use crate::words::words;

/// The lines (rows or columns) of X that are scaled for a fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// None: X is fitted as it is.
    #[default]
    None,
    /// Each column is divided by its root mean square.
    Columns,
    /// Each row is divided by its root mean square.
    Rows,
}

words!(Scale, "scale" { None = "none", Columns = "columns", Rows = "rows" });

/// The divisors of the rows or columns of X: `s = √(Σ M x² / Σ M)` over the observed entries of a
/// line, and 1 for a line of zeros.
///
/// The scaled problem is `x_ij / s_j ≈ (W H')_ij`, and `H = H' diag(s)` has the units of X. With
/// scaled rows W is multiplied back in the same way.
///
/// # Shapes
/// m divisors for columns, n for rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// The scaled lines.
    pub scale: Scale,
    /// Their divisors.
    pub sizes: Vec<f64>,
}

impl Scaling {
    /// The divisors for a problem. `None` for [`Scale::None`].
    pub fn of(problem: &Problem, scale: Scale) -> Option<Self> {
        let lines = match scale {
            Scale::None => return None,
            Scale::Columns => problem.lines(Side::H),
            Scale::Rows => problem.lines(Side::W),
        };
        let size = |[weight, _, squares]: [f64; 3]| {
            let size = (squares / weight).sqrt();
            if size.is_finite() && size > 0.0 {
                size
            } else {
                1.0
            }
        };
        let sizes = lines.into_iter().map(size).collect();
        Some(Self { scale, sizes })
    }

    /// A scaling from saved divisors.
    ///
    /// # Errors
    /// [`Error::Shape`] for a wrong number of divisors; [`Error::NegativeEntry`] for a divisor that
    /// is not positive.
    ///
    /// # Shapes
    /// `sizes` has m entries for columns and n for rows, in any shape; `shape` is (n, m).
    pub(crate) fn read(
        scale: Scale,
        sizes: &Array2<f64>,
        shape: [usize; 2],
    ) -> Result<Option<Self>> {
        let lines = match scale {
            Scale::None => return Ok(None),
            Scale::Columns => shape[1],
            Scale::Rows => shape[0],
        };
        if sizes.len() != lines {
            return Err(Error::Shape {
                what: "the scale",
                expected: [lines, 1],
                found: sizes.dim().into(),
            });
        }
        let wrong = |size: &f64| !(size.is_finite() && *size > 0.0);
        if let Some(((row, column), value)) = sizes.indexed_iter().find(|(_, size)| wrong(size)) {
            return Err(Error::NegativeEntry {
                what: "the scale",
                row,
                column,
                value: *value,
            });
        }
        let sizes = sizes.iter().copied().collect();
        Ok(Some(Self { scale, sizes }))
    }

    /// The divisors as a matrix for a file: 1×m for columns, n×1 for rows.
    pub fn to_matrix(&self) -> Array2<f64> {
        let shape = match self.scale {
            Scale::Rows => (self.sizes.len(), 1),
            Scale::Columns | Scale::None => (1, self.sizes.len()),
        };
        Array2::from_shape_vec(shape, self.sizes.clone()).expect("as many as there are")
    }

    /// The divisor of an entry of X.
    pub(crate) fn at(&self, (row, column): (usize, usize)) -> f64 {
        match self.scale {
            Scale::None => 1.0,
            Scale::Columns => self.sizes[column],
            Scale::Rows => self.sizes[row],
        }
    }

    /// W in the units of the scaled problem.
    pub(crate) fn w_scaled(&self, w: &Array2<f64>) -> Array2<f64> {
        self.of_w(w, |w, size| w / size)
    }

    /// H in the units of the scaled problem.
    pub(crate) fn h_scaled(&self, h: &Array2<f64>) -> Array2<f64> {
        self.of_h(h, |h, size| h / size)
    }

    /// Factors of the scaled problem in the units of X.
    pub(crate) fn undone(&self, factors: &Factors) -> Factors {
        Factors {
            w: self.of_w(&factors.w, |w, size| w * size),
            h: self.of_h(&factors.h, |h, size| h * size),
        }
    }

    fn of_w(&self, w: &Array2<f64>, value: impl Fn(f64, f64) -> f64) -> Array2<f64> {
        match self.scale {
            // (A later check refuses other shapes.)
            Scale::Rows if w.nrows() == self.sizes.len() => {
                Array2::from_shape_fn(w.dim(), |(i, k)| value(w[[i, k]], self.sizes[i]))
            }
            _ => w.clone(),
        }
    }

    fn of_h(&self, h: &Array2<f64>, value: impl Fn(f64, f64) -> f64) -> Array2<f64> {
        match self.scale {
            Scale::Columns if h.ncols() == self.sizes.len() => {
                Array2::from_shape_fn(h.dim(), |(k, j)| value(h[[k, j]], self.sizes[j]))
            }
            _ => h.clone(),
        }
    }
}

impl Problem {
    /// The same problem with scaled rows or columns.
    ///
    /// # Errors
    /// Those of [`masked`](Self::masked).
    pub fn scaled(&self, scaling: &Scaling) -> Result<Self> {
        let value = |index, value: f64| value / scaling.at(index);
        let x = match self.x() {
            Matrix::Dense(x) => Matrix::Dense(super::each_entry(x.clone(), value)),
            Matrix::Sparse(x) => Matrix::Sparse(x.map_entries(value)),
        };
        let (mask, held_out) = (self.mask().cloned(), self.held_out_weights().cloned());
        let kind = super::Kind::Fit(self.share().clone());
        let problem = Self::checked(x, mask, held_out, self.precision(), kind)?;
        Ok(problem.on(self.device().clone()))
    }

    /// The largest row and the largest column of X: index and share of the sum of X.
    pub(crate) fn largest_lines(&self) -> [(usize, f64); 2] {
        let largest = |lines: &[[f64; 3]]| {
            let sums = lines.iter().map(|[_, sum, _]| *sum).enumerate();
            let largest = sums.max_by(|a, b| a.1.total_cmp(&b.1));
            largest.unwrap_or((0, 0.0))
        };
        let columns = self.lines(Side::H);
        let total: f64 = columns.iter().map(|[_, sum, _]| sum).sum();
        // The largest of the largest rows of all processes.
        let (row, sum) = largest(&self.lines(Side::W));
        let row = (self.share().rows().start + row) as f64;
        let rows = self.processes().gather_on_all(vec![row, sum]);
        let rows = rows.chunks_exact(2).map(|of| (of[0] as usize, of[1]));
        let row = rows.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
        let column = largest(&columns);
        [(row.0, row.1 / total), (column.0, column.1 / total)]
    }

    /// ΣM, ΣMx and ΣMx² of each row of this process ([`Side::W`]), or of each column.
    fn lines(&self, side: Side) -> Vec<[f64; 3]> {
        let [n, m] = self.shape();
        let (count, length) = match side {
            Side::W => (n, m),
            Side::H => (m, n),
        };
        let line = |(row, column): (usize, usize)| match side {
            Side::W => row,
            Side::H => column,
        };
        let mut lines = vec![[0.0; 3]; count];
        for (row, column, x) in self.x().entries() {
            let weight = self.mask().map_or(1.0, |mask| mask[(row, column)]);
            let of = &mut lines[line((row, column))];
            of[1] += weight * x;
            of[2] += weight * x * x;
        }
        match self.mask() {
            None => lines.iter_mut().for_each(|of| of[0] = length as f64),
            Some(Weights::Listed { at, elsewhere }) => {
                for of in &mut lines {
                    of[0] = elsewhere * length as f64;
                }
                for (row, column, weight) in at.triplets() {
                    lines[line((row, column))][0] += weight - elsewhere;
                }
            }
            Some(mask) => {
                for (place, weight) in mask.iter().enumerate() {
                    lines[line((place / m, place % m))][0] += weight;
                }
            }
        }
        if side == Side::H {
            // A column has entries in all processes.
            self.processes().sum(lines.as_flattened_mut());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::Precision;
    use crate::sparse::{SparseMatrix, Zeros};
    use ndarray::array;

    #[test]
    fn lines_have_one_size_and_get_their_own_back() {
        let x = array![[3.0, 0.0, 800.0], [4.0, 0.0, 600.0]];
        let mask = array![[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]];
        let problem = Problem::masked(&x, &mask, Precision::F64).unwrap();
        let scaling = Scaling::of(&problem, Scale::Columns).unwrap();
        assert_eq!(scaling.sizes, [12.5f64.sqrt(), 1.0, 800.0]);
        let scaled = problem.scaled(&scaling).unwrap();
        let again = Scaling::of(&scaled, Scale::Columns).unwrap();
        assert!(again.sizes.iter().all(|size| (size - 1.0).abs() < 1e-12));
        let factors = Factors {
            w: array![[1.0], [2.0]],
            h: array![[1.0, 2.0, 3.0]],
        };
        let undone = scaling.undone(&factors);
        assert_eq!((&undone.w, undone.h[[0, 2]]), (&factors.w, 2400.0));
        assert_eq!(scaling.h_scaled(&undone.h), factors.h);
        assert_eq!(problem.largest_lines()[1], (2, 800.0 / 807.0));
        let kept = Scaling::read(Scale::Columns, &scaling.to_matrix(), [2, 3]);
        assert_eq!(kept.unwrap(), Some(scaling.clone()));
        assert!(Scaling::read(Scale::Rows, &scaling.to_matrix(), [2, 3]).is_err());
        assert!(Scaling::of(&problem, Scale::None).is_none());
    }

    #[test]
    fn a_sparse_matrix_has_the_sizes_of_the_dense_one() {
        let triplets = vec![(0, 0, 3.0), (1, 0, 4.0), (2, 1, 5.0)];
        let x = SparseMatrix::from_triplets([3, 2], triplets).unwrap();
        for zeros in [Zeros::Data, Zeros::Missing] {
            let sparse = Problem::sparse(x.clone(), zeros, None, Precision::F64).unwrap();
            for scale in [Scale::Rows, Scale::Columns] {
                let of = |problem: &Problem| Scaling::of(problem, scale).unwrap();
                assert_eq!(of(&sparse), of(&sparse.dense()));
                let scaled = sparse.scaled(&of(&sparse)).unwrap();
                assert_eq!(scaled.x().entry(2, 1), 5.0 / of(&sparse).at((2, 1)));
                assert_eq!(scaled.x().stored(), 3);
            }
        }
    }
}

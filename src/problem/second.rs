//! A second matrix for the outer error.

use std::sync::Arc;

use ndarray::Array2;

use super::{Kind, Problem, Weights};
use crate::error::{Error, Result};

impl Problem {
    /// The same problem with another matrix for the outer error, for example a second measurement
    /// of the same thing. The updates see what they saw before. A [held-out](crate::HeldOut) outer
    /// error counts the same entries of the second matrix as the updates do of X.
    ///
    /// ```
    /// use altbi::{Precision, Problem};
    /// let first = ndarray::array![[1.0, 2.0], [3.0, 4.0]];
    /// let second = ndarray::array![[1.1, 1.9], [3.2, 4.0]];
    /// let problem = Problem::new(&first, Precision::F64)?.with_second(&second)?;
    /// assert_eq!(problem.second().unwrap().entry(0, 1), 1.9);
    /// # Ok::<(), altbi::Error>(())
    /// ```
    ///
    /// # Shapes
    /// `second` n×m, like X.
    ///
    /// # Errors
    /// [`Error::Shape`] for another shape; [`Error::Conflict`] if X is sparse; those of
    /// [`new`](Self::new) for the entries that are counted.
    pub fn with_second(&self, second: &Array2<f64>) -> Result<Self> {
        if self.is_sparse() {
            return Err(Error::Conflict {
                first: "a second matrix for the outer error",
                second: "a sparse X",
                reason: "the second matrix would have to be sparse too",
            });
        }
        let fits = Error::require_shape("the second matrix", second.dim(), self.shape());
        self.share().agree(fits)?;
        let kind = Kind::Fit(self.share().clone());
        let mask = self.mask().cloned();
        let checked = Self::checked(second.clone().into(), mask, None, self.precision, kind)?;
        let ones = || Arc::new(Weights::ones(self.x()));
        Ok(Self {
            held_out: Some(self.mask.clone().unwrap_or_else(ones)),
            second: Some(checked.x),
            tensors: Arc::default(),
            ..self.clone()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criterion::HeldOut;
    use crate::divergence::Beta;
    use crate::numerics::Precision;
    use crate::penalty::L1;
    use crate::sparse::{SparseMatrix, Zeros};
    use crate::{AltBiConfig, EngineChoice, Solver};

    fn matrix(shift: usize) -> Array2<f64> {
        Array2::from_shape_fn((12, 9), |(i, j)| {
            ((i * 7 + j * 5 + shift) % 11) as f64 + 0.5
        })
    }

    #[test]
    fn the_outer_error_is_that_of_the_second_matrix() {
        let (x, second) = (matrix(0), matrix(3));
        let mask = Array2::from_shape_fn((12, 9), |(i, j)| f64::from((i + j) % 4 != 0));
        for mask in [None, Some(mask)] {
            let mut second = second.clone();
            if mask.is_some() {
                // It is not counted.
                second[[0, 0]] = f64::NAN;
            }
            let problem = Problem::owning(x.clone(), mask.clone(), Precision::F64).unwrap();
            let problem = problem.with_second(&second).unwrap();
            for engine in [EngineChoice::Auto, EngineChoice::Autodiff] {
                let config = AltBiConfig::new(3)
                    .with_max_iterations(4)
                    .with_engine(engine);
                let outcome = Solver::new(config, Beta::KL, L1)
                    .with_criterion(HeldOut)
                    .run(&problem)
                    .unwrap();
                let y = outcome.w.dot(&outcome.h);
                let mut expected = 0.0;
                for ((at, z), y) in second.indexed_iter().zip(&y) {
                    if mask.as_ref().is_none_or(|mask| mask[at] > 0.0) {
                        expected += z * (z / y).ln() - z + y;
                    }
                }
                let difference = (outcome.outer_error - expected).abs();
                assert!(difference < 1e-10 * expected, "{difference}");
            }
        }
    }

    #[test]
    fn another_shape_and_a_sparse_x_are_refused() {
        let problem = Problem::new(&matrix(0), Precision::F64).unwrap();
        let found = problem.with_second(&Array2::ones((9, 12)));
        assert!(matches!(found, Err(Error::Shape { found: [9, 12], .. })));
        let mut negative = matrix(0);
        negative[[2, 1]] = -1.0;
        assert!(problem.with_second(&negative).is_err());
        let triplets = matrix(0)
            .indexed_iter()
            .map(|((i, j), x)| (i as u32, j as u32, *x))
            .collect();
        let sparse = SparseMatrix::from_triplets([12, 9], triplets).unwrap();
        let sparse = Problem::sparse(sparse, Zeros::Data, None, Precision::F64).unwrap();
        let found = sparse.with_second(&matrix(3));
        assert!(matches!(found, Err(Error::Conflict { .. })));
    }
}

//! smartcore: an estimator that transforms.

use ::smartcore::api::{Transformer, UnsupervisedEstimator};
use ::smartcore::error::Failed;
use ::smartcore::linalg::basic::arrays::Array2 as Matrix;
use ndarray::Array2;

use crate::config::AltBiConfig;
use crate::solver::Outcome;

/// The axis of rows in smartcore.
const BY_ROWS: u8 = 0;

fn values(x: &impl Matrix<f64>) -> Array2<f64> {
    let values = x.iterator(BY_ROWS).copied().collect();
    Array2::from_shape_vec(x.shape(), values).expect("a matrix has as many entries as it says")
}

impl<M: Matrix<f64>> UnsupervisedEstimator<M, AltBiConfig> for Outcome {
    /// [`AltBiConfig::fit`]. Errors are converted to smartcore's.
    ///
    /// # Shapes
    /// `x` n×m.
    fn fit(x: &M, parameters: AltBiConfig) -> Result<Self, Failed> {
        let outcome = parameters.fit(&values(x));
        outcome.map_err(|error| Failed::fit(&error.to_string()))
    }
}

impl<M: Matrix<f64>> Transformer<M> for Outcome {
    /// [`Outcome::encode_rows`].
    ///
    /// # Shapes
    /// `x` p×m, result p×r.
    fn transform(&self, x: &M) -> Result<M, Failed> {
        let codes = self.encode_rows(&values(x));
        let codes = codes.map_err(|error| Failed::transform(&error.to_string()))?;
        let (rows, rank) = codes.dim();
        Ok(M::from_iterator(codes.iter().copied(), rows, rank, BY_ROWS))
    }
}

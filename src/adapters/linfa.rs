//! linfa: settings that fit a dataset, and an outcome that transforms one.
//!
//! linfa 0.8 passes arrays of ndarray 0.16. Codes are converted without a copy.

use linfa::DatasetBase;
use linfa::traits::{Fit, Transformer};
use ndarray::Array2;
use ndarray_of_linfa as theirs;

use crate::config::AltBiConfig;
use crate::error::Result;
use crate::solver::Outcome;

/// Error of a fit in a pipeline.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// An error of altbi.
    #[error(transparent)]
    Altbi(#[from] crate::Error),
    /// An error of linfa.
    #[error(transparent)]
    Linfa(#[from] linfa::Error),
}

type Records<D> = theirs::ArrayBase<D, theirs::Ix2>;

fn ours<D: theirs::Data<Elem = f64>>(records: &Records<D>) -> Array2<f64> {
    let values = records.iter().copied().collect();
    Array2::from_shape_vec(records.dim(), values).expect("an array has as many entries as it says")
}

impl<D: theirs::Data<Elem = f64>, T> Fit<Records<D>, T, FitError> for AltBiConfig {
    type Object = Outcome;

    /// [`AltBiConfig::fit`] of the records; targets are ignored.
    ///
    /// # Shapes
    /// Records n×m.
    fn fit(&self, dataset: &DatasetBase<Records<D>, T>) -> Result<Outcome, FitError> {
        Ok(AltBiConfig::fit(self, &ours(&dataset.records))?)
    }
}

impl<D: theirs::Data<Elem = f64>, T>
    Transformer<DatasetBase<Records<D>, T>, Result<DatasetBase<theirs::Array2<f64>, T>>>
    for Outcome
{
    /// [`Outcome::encode_rows`] of the records; targets are kept.
    ///
    /// # Shapes
    /// Records p×m, those of the result p×r.
    fn transform(
        &self,
        dataset: DatasetBase<Records<D>, T>,
    ) -> Result<DatasetBase<theirs::Array2<f64>, T>> {
        let codes = self.encode_rows(&ours(&dataset.records))?;
        let shape = codes.dim();
        let (values, offset) = codes
            .as_standard_layout()
            .into_owned()
            .into_raw_vec_and_offset();
        debug_assert_eq!(
            offset.unwrap_or(0),
            0,
            "an array of its own begins at its buffer"
        );
        let codes = theirs::Array2::from_shape_vec(shape, values);
        Ok(dataset.with_records(codes.expect("the same entries in the same shape")))
    }
}

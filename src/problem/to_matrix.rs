//! What altbi can read as a matrix.

use burn::tensor::Tensor;
use ndarray::Array2;

use crate::error::{Error, Result};
use crate::numerics::to_host;

/// Anything that altbi can read as a matrix of 64-bit floats: an
/// [`ndarray::Array2`] of `f64` or `f32`, a Burn [`Tensor`] of two dimensions
/// (any device, on or off the tape), or a slice in row order with its shape.
///
/// ```
/// use altbi::ToMatrix;
/// let slice = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// assert_eq!((&slice[..], [2, 3]).to_matrix()?[[1, 0]], 4.0);
/// # Ok::<(), altbi::Error>(())
/// ```
pub trait ToMatrix {
    /// The values, copied.
    ///
    /// # Errors
    /// [`Error::SliceLength`] for a slice that does not fill its shape.
    fn to_matrix(&self) -> Result<Array2<f64>>;
}

impl ToMatrix for Array2<f64> {
    fn to_matrix(&self) -> Result<Array2<f64>> {
        Ok(self.clone())
    }
}

impl ToMatrix for Array2<f32> {
    fn to_matrix(&self) -> Result<Array2<f64>> {
        Ok(self.mapv(f64::from))
    }
}

impl ToMatrix for Tensor<2> {
    fn to_matrix(&self) -> Result<Array2<f64>> {
        Ok(Array2::from_shape_vec(self.dims(), to_host(self))
            .expect("a tensor has as many entries as its shape says"))
    }
}

impl ToMatrix for (&[f64], [usize; 2]) {
    fn to_matrix(&self) -> Result<Array2<f64>> {
        let (values, [rows, columns]) = *self;
        Array2::from_shape_vec([rows, columns], values.to_vec()).map_err(|_| Error::SliceLength {
            rows,
            columns,
            length: values.len(),
        })
    }
}

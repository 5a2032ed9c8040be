//! Types that altbi can read as a matrix.

use burn::tensor::Tensor;
use ndarray::{Array2, ArrayBase, Data, Ix2};

use crate::error::{Error, Result};
use crate::numerics::to_host;

/// A type that altbi can read as a matrix of 64-bit floats:
///
/// - an ndarray of two dimensions, owned, shared or a view, in any memory order, of `f64`, `f32`
///   or integers of up to 32 bits;
/// - a slice of the same numbers in row order, with its shape;
/// - a Burn [`Tensor`] of two dimensions (any device, on or off the tape).
///
/// A sparse X is a [`SparseMatrix`](crate::SparseMatrix) in
/// [`Problem::sparse`](crate::Problem::sparse).
///
/// ```
/// use altbi::ToMatrix;
/// let slice = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let matrix = (&slice[..], [2, 3]).to_matrix()?;
/// assert_eq!(matrix[[1, 0]], 4.0);
/// assert_eq!(matrix.t().to_matrix()?[[0, 1]], 4.0);
/// # Ok::<(), altbi::Error>(())
/// ```
pub trait ToMatrix {
    /// The values, copied.
    ///
    /// # Errors
    /// [`Error::SliceLength`] for a slice that does not fill its shape.
    fn to_matrix(&self) -> Result<Array2<f64>>;
}

impl<T: Copy + Into<f64>, S: Data<Elem = T>> ToMatrix for ArrayBase<S, Ix2> {
    fn to_matrix(&self) -> Result<Array2<f64>> {
        Ok(self.mapv(Into::into))
    }
}

impl ToMatrix for Tensor<2> {
    fn to_matrix(&self) -> Result<Array2<f64>> {
        Ok(Array2::from_shape_vec(self.dims(), to_host(self))
            .expect("a tensor has as many entries as its shape says"))
    }
}

impl<T: Copy + Into<f64>> ToMatrix for (&[T], [usize; 2]) {
    fn to_matrix(&self) -> Result<Array2<f64>> {
        let (values, [rows, columns]) = *self;
        let length = values.len();
        let values = values.iter().map(|value| (*value).into()).collect();
        Array2::from_shape_vec([rows, columns], values).map_err(|_| Error::SliceLength {
            rows,
            columns,
            length,
        })
    }
}

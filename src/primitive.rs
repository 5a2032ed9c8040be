//! Tensors of the ndarray device as plain numbers, on and off the tape, for operations that are
//! written in this crate.
#![expect(deprecated, reason = "every item of burn-ndarray is; see device.rs")]

use std::borrow::Cow;

use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, NdArray, TensorMetadata};
use burn::tensor::{DType, Tensor, TensorData};
use burn_ndarray::NdArrayTensor;

/// Tensors on the tape.
pub(crate) type Tape = Autodiff<NdArray>;

/// A tensor's numbers, without a copy if possible.
pub(crate) fn view(tensor: &NdArrayTensor) -> Cow<'_, [f64]> {
    match tensor {
        NdArrayTensor::F64(storage) => {
            let view = storage.view();
            match view.to_slice() {
                Some(slice) => Cow::Borrowed(slice),
                None => Cow::Owned(view.iter().copied().collect()),
            }
        }
        NdArrayTensor::F32(storage) => {
            Cow::Owned(storage.view().iter().map(|v| f64::from(*v)).collect())
        }
        other => panic!("altbi makes no tensors of type {:?}", other.dtype()),
    }
}

/// A copy of a tensor's numbers, for the ndarray device. (Burn copies a shared tensor entry by
/// entry.)
pub(crate) fn copied(tensor: &Tensor<2>) -> Option<Vec<f64>> {
    let plain = tensor.clone().without_autodiff();
    let primitive = plain.try_into_primitive::<NdArray>().ok()?;
    Some(view(&primitive).into_owned())
}

/// Numbers as a tensor of the same type as another.
pub(crate) fn like(values: Vec<f64>, shape: [usize; 2], other: &NdArrayTensor) -> NdArrayTensor {
    let data = match other.dtype() {
        DType::F32 => {
            let narrow: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
            TensorData::new(narrow, shape)
        }
        _ => TensorData::new(values, shape),
    };
    NdArray::float_from_data(data, &other.device())
}

/// Rows and columns.
pub(crate) fn shape_of(tensor: &NdArrayTensor) -> [usize; 2] {
    tensor.shape().dims()
}

const ON_NDARRAY: &str = "a data term is made for the ndarray device only";

/// The tensor on the tape.
pub(crate) fn taped(tensor: &Tensor<2>) -> FloatTensor<Tape> {
    // A constant beside a tracked tensor becomes a constant on the tape.
    let tensor = tensor.clone().autodiff();
    tensor.try_into_primitive::<Tape>().expect(ON_NDARRAY)
}

/// The number that all entries of a tensor are, if it is not tracked.
pub(crate) fn constant(tensor: &Tensor<2>) -> Option<f64> {
    let numbers = if tensor.is_autodiff() {
        let taped = taped(tensor);
        if taped.is_tracked() {
            return None;
        }
        taped.into_primitive()
    } else {
        plain(tensor)
    };
    match &*view(&numbers) {
        [first, rest @ ..] => rest.iter().all(|value| value == first).then_some(*first),
        [] => None,
    }
}

/// The tensor off the tape.
pub(crate) fn plain(tensor: &Tensor<2>) -> NdArrayTensor {
    let tensor = tensor.clone().try_into_primitive::<NdArray>();
    tensor.expect(ON_NDARRAY)
}

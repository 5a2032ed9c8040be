//! Devices of tensors. Only this file names a Burn backend.

use std::str::FromStr;

use burn::tensor::{Tensor, TensorData};

use crate::error::{Error, Result};
use crate::numerics::Precision;

/// A Burn device.
///
/// The default is Burn's ndarray backend. Burn 0.22 has deprecated it in favour of `burn-flex`,
/// which is available as the feature `flex`.
///
/// Burn draws its random numbers from one global generator, so altbi draws its
/// own on the host ([`factors`](crate::factors)): the same seed gives the same
/// result on every device.
#[derive(Debug, Clone)]
pub struct Device(burn::tensor::Device);

impl Default for Device {
    #[expect(deprecated, reason = "the design asks for ndarray; see above")]
    fn default() -> Self {
        Self(burn::tensor::Device::ndarray())
    }
}

impl From<burn::tensor::Device> for Device {
    /// A device of the caller. If it records a tape, the tape is removed, because reverse mode
    /// makes its own.
    fn from(device: burn::tensor::Device) -> Self {
        Self(device.without_autodiff())
    }
}

impl From<Device> for burn::tensor::Device {
    /// Burn's device.
    fn from(device: Device) -> Self {
        device.0
    }
}

impl FromStr for Device {
    type Err = Error;

    /// # Errors
    /// [`Error::UnknownName`], and [`Error::NotBuilt`] for `flex` in a build
    /// without that feature.
    fn from_str(name: &str) -> Result<Self> {
        match name {
            "ndarray" => Ok(Self::default()),
            #[cfg(feature = "flex")]
            "flex" => Ok(Self(burn::tensor::Device::flex())),
            #[cfg(not(feature = "flex"))]
            "flex" => Err(Error::NotBuilt {
                what: "the device flex",
                feature: "flex",
            }),
            _ => Err(Error::UnknownName {
                kind: "device",
                name: name.into(),
                known: "ndarray, flex",
            }),
        }
    }
}

impl Device {
    /// Returns true if its tensors are in this process's memory, where a data term can read them.
    pub(crate) fn is_host(&self) -> bool {
        self.0 == Self::default().0
    }

    /// A tensor off the tape from host values in row order.
    ///
    /// # Shapes
    /// `values` has `shape[0] · shape[1]` entries.
    pub(crate) fn tensor(
        &self,
        values: Vec<f64>,
        shape: [usize; 2],
        precision: Precision,
    ) -> Tensor<2> {
        // Burn converts to the dtype on the way in.
        Tensor::from_data(TensorData::new(values, shape), (&self.0, precision.dtype()))
    }
}

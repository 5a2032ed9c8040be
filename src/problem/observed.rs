//! The data for the update of one factor.

use std::ops::Range;

use burn::tensor::Tensor;

/// X and its weights as tensors, for the update of one factor.
///
/// # Shapes
/// All n×m, or all m×n if the updated factor is H.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The data.
    pub x: Tensor<2>,
    /// M: weights of the entries in updates and in the training divergence.
    pub mask: Option<Tensor<2>>,
    /// M': weights of the entries in a held-out outer error.
    pub held_out: Option<Tensor<2>>,
    /// Z: data of a held-out outer error, if they differ from X.
    pub second: Option<Tensor<2>>,
}

impl Observed {
    fn map(&self, f: impl Fn(&Tensor<2>) -> Tensor<2>) -> Self {
        Self {
            x: f(&self.x),
            mask: self.mask.as_ref().map(&f),
            held_out: self.held_out.as_ref().map(&f),
            second: self.second.as_ref().map(&f),
        }
    }

    /// The data of a held-out outer error.
    pub(crate) fn unseen(&self) -> &Tensor<2> {
        self.second.as_ref().unwrap_or(&self.x)
    }

    /// Entries times their weights.
    pub(crate) fn masked(&self, entries: Tensor<2>) -> Tensor<2> {
        match &self.mask {
            Some(mask) => entries * mask.clone(),
            None => entries,
        }
    }

    /// A block of rows.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Self {
        let columns = self.x.dims()[1];
        self.map(|tensor| tensor.clone().slice([rows.clone(), 0..columns]))
    }

    /// The same data as constants on the tape.
    pub(crate) fn on_tape(&self) -> Self {
        self.map(|tensor| tensor.clone().autodiff())
    }
}

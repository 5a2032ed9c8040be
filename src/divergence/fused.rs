//! A divergence in plain numbers, entry by entry, for the fused data term.

use std::fmt::Debug;
use std::sync::Arc;

/// The formulas that the fused data term computes at an entry.
#[derive(Debug, Clone)]
pub enum Fused {
    /// The β-divergence of x + shift and y + shift, in vectors.
    Beta {
        /// β.
        beta: f64,
        /// The number that is added to both arguments.
        shift: f64,
    },
    /// Functions of a plug-in.
    PerEntry(Arc<dyn PerEntry>),
}

impl Fused {
    /// β, if the shift is 0.
    pub fn plain_beta(&self) -> Option<f64> {
        match self {
            Self::Beta { beta, shift } if *shift == 0.0 => Some(*beta),
            _ => None,
        }
    }

    /// Returns true if ∇⁺ is 1 for every x and y.
    pub(crate) fn positive_is_one(&self) -> bool {
        matches!(self, Self::Beta { beta, .. } if *beta == 1.0)
    }
}

/// Two numbers for an entry, one for each part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EntryParts {
    /// Number of ∇⁺.
    pub positive: f64,
    /// Number of ∇⁻.
    pub negative: f64,
}

/// A divergence in plain numbers, with the same formulas as the tensor operations of a
/// [`Divergence`](super::Divergence).
///
/// With it your own divergence runs in fused loops. [`check`](crate::check()) compares the two
/// forms, and so does every `auto` run in its first bunch. `x ≥ 0` and `y ≥`
/// [`floor`](super::Divergence::floor) may be assumed.
pub trait PerEntry: Debug + Send + Sync {
    /// `d(x, y)`.
    fn value(&self, x: f64, y: f64) -> f64;

    /// ∇⁺ and ∇⁻ at (x, y).
    fn split(&self, x: f64, y: f64) -> EntryParts;

    /// Their derivatives with respect to y.
    fn slope(&self, x: f64, y: f64) -> EntryParts;

    /// [`value`](PerEntry::value) of several entries in one call.
    ///
    /// # Shapes
    /// All slices have the same length.
    fn values(&self, x: &[f64], y: &[f64], values: &mut [f64]) {
        for ((value, x), y) in values.iter_mut().zip(x).zip(y) {
            *value = self.value(*x, *y);
        }
    }

    /// [`split`](PerEntry::split) and [`slope`](PerEntry::slope) of several entries.
    ///
    /// # Shapes
    /// All slices have the same length.
    fn parts(&self, x: &[f64], y: &[f64], parts: &mut [EntryParts], slopes: &mut [EntryParts]) {
        let places = parts.iter_mut().zip(slopes);
        for (((part, slope), x), y) in places.zip(x).zip(y) {
            *part = self.split(*x, *y);
            *slope = self.slope(*x, *y);
        }
    }
}

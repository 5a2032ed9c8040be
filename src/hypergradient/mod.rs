//! Hypergradients: `dE/dλ` through the bunch, in five independent ways.
//!
//! | mode | method | stores | cost |
//! |---|---|---|---|
//! | reverse | Burn's tape over the unrolled bunch | all intermediate tensors (of a block of rows if rows are independent) | about 3 bunches |
//! | forward | hand-written tangents, the paper's s_t | w, s | a bunch and its tangent for each direction that λ needs |
//! | adjoint | hand-written transposes, the paper's α_t | w⁽⁰⁾ … w⁽ᵀ⁾ | about 3 bunches |
//! | implicit | T → ∞ at the fixed point of one factor | r×r per row | r tangents and n small solves |
//! | finite differences | central differences, extrapolated | nothing | for checks only |
//!
//! Reverse mode works with every plug-in. The hand-written modes need the plug-ins' tangents and do
//! not use the tape, so they can check it: see [`check`](crate::check()).

mod adjoint;
mod finite_differences;
mod forward;
mod implicit;
mod reverse;

use std::fmt;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use adjoint::Adjoint;
pub(crate) use finite_differences::FiniteDifferences;
pub(crate) use forward::{Fault, Forward};
pub(crate) use implicit::Implicit;
pub(crate) use reverse::Reverse;

use crate::bunch::{Bunch, Pair};
use crate::error::Result;
use crate::words::words;

/// The end of a bunch and the hypergradients through it, off the tape.
#[derive(Debug, Clone)]
pub struct Hypergradient {
    /// The state at the end (the fixed point, for the implicit mode).
    pub pair: Pair,
    /// E there, summed over rows.
    pub outer_error: f64,
    /// dE/dλ of each tuned penalty, W's first, in the shape of its λ.
    pub gradients: Vec<Tensor<2>>,
}

/// A way to differentiate through a bunch.
pub(crate) trait Differentiate: fmt::Debug + Send + Sync {
    /// The mode's name in messages.
    fn name(&self) -> &'static str;

    /// Runs the bunch from a pair and differentiates it with respect to every λ.
    ///
    /// The start does not depend on λ: the paper's s_0 = 0.
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`](crate::Error::ModeUnsupported) if the mode does not support the
    /// bunch, and those of the implicit mode.
    ///
    /// # Shapes
    /// `lambda` has the shapes that [`Bunch`] describes.
    fn compute(&self, bunch: &Bunch, pair: &Pair, lambda: &[Tensor<2>]) -> Result<Hypergradient>;
}

/// The modes, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Burn's tape: works with every plug-in.
    #[default]
    Reverse,
    /// Hand-written tangents.
    Forward,
    /// Hand-written transposes.
    Adjoint,
    /// T → ∞.
    Implicit,
    /// Central differences, for checks.
    FiniteDifferences,
}

impl Mode {
    /// The method with its default settings.
    pub(crate) fn method(self) -> Box<dyn Differentiate> {
        match self {
            Self::Reverse => Box::new(Reverse::default()),
            Self::Forward => Box::new(Forward::default()),
            Self::Adjoint => Box::new(Adjoint),
            Self::Implicit => Box::new(Implicit::default()),
            Self::FiniteDifferences => Box::new(FiniteDifferences::default()),
        }
    }
}

words!(Mode, "hypergradient mode" {
    Reverse = "reverse",
    Forward = "forward",
    Adjoint = "adjoint",
    Implicit = "implicit",
    FiniteDifferences = "finite-differences",
});

/// The directions that together give dE/dλ of one tuned penalty.
///
/// Independent rows may all move at once, and the result is separate for each row: one direction
/// for weights of rows, r for weights of entries. Otherwise each weight needs a direction of its
/// own.
struct Directions {
    /// The directions, in the shape of the weight.
    all: Vec<Tensor<2>>,
    /// The shape of the result of one direction: n×1 or 1×1.
    told: [usize; 2],
    /// The shape of the weight.
    shape: [usize; 2],
}

impl Directions {
    fn new(weight: &Tensor<2>, rows_are_independent: bool) -> Self {
        let [rows, columns] = weight.dims();
        let at_once = if rows_are_independent { rows } else { 1 };
        let starts = (0..rows).step_by(at_once);
        let places = starts.flat_map(|row| (0..columns).map(move |column| (row, column)));
        let all = places.map(|(row, column)| {
            let place = [row..row + at_once, column..column + 1];
            let ones = weight.ones_like().slice(place.clone());
            weight.zeros_like().slice_assign(place, ones)
        });
        Self {
            all: all.collect(),
            told: [at_once, 1],
            shape: [rows, columns],
        }
    }

    /// Joins the results of all directions. `told` is n×1 or 1×1 for each.
    fn gather(&self, told: Vec<Tensor<2>>) -> Tensor<2> {
        if self.told[0] == self.shape[0] {
            Tensor::cat(told, 1)
        } else {
            Tensor::cat(told, 0).reshape(self.shape)
        }
    }
}

//! Bunches over one factor or both, with any number of tuned penalties.
//!
//! The paper's [`Bunch`](crate::Bunch) has one penalty, on W, with one λ_i per row, and
//! keeps H fixed. A [`JointBunch`] drops all of that:
//!
//! - its state is the [`Pair`] (W, Hᵀ), and a [`Span`] says which of the two it updates;
//!   where it is both, each step is an update of H and then one of W, and hypergradients
//!   go through both;
//! - W and H may each carry several tuned penalties, every one with weights of its own
//!   [scope](crate::Scope).
//!
//! Nothing is written twice: H is the W of the transposed problem, so both factors are
//! updated by the same [`Rule::update`](crate::update::Rule::update) and differentiated by
//! its tangent and cotangent.
//!
//! | mode | how | cost |
//! |---|---|---|
//! | reverse | Burn's tape over the unrolled bunch | about 3 bunches |
//! | adjoint | hand-written transposes, states stored | about 3 bunches |
//! | forward | hand-written tangents | one bunch and its tangent for each weight |
//! | finite differences | extrapolated | for checks only |
//!
//! The implicit mode asks for a fixed point of one factor alone and refuses.
//!
//! ```
//! use std::sync::Arc;
//! use altbi::joint::{JointBunch, Pair, Span};
//! use altbi::update::Rule;
//! use altbi::{Beta, L1, Mode, PenaltyTerm, Precision, Problem, Smooth, Training};
//!
//! let x = ndarray::Array2::from_shape_fn((6, 5), |(i, j)| 1.0 + ((i * j) % 4) as f64);
//! let problem = Problem::new(&x, Precision::F64)?;
//! // Smooth columns of W, sparse H, a weight for each component of either.
//! let of_w = Rule::new(Arc::new(Beta::KL), vec![PenaltyTerm::tuned(Smooth)]);
//! let of_h = Rule::new(Arc::new(Beta::KL), vec![PenaltyTerm::tuned(L1)]);
//! let bunch = JointBunch::new(&problem, of_w, of_h, Arc::new(Training), Span::Both, 4)?;
//! let matrix = |what, rows, columns| {
//!     let values = ndarray::Array2::from_shape_fn((rows, columns), |(i, k)| 0.5 + ((i + k) % 3) as f64);
//!     problem.tensor(what, &values, [rows, columns])
//! };
//! let pair = Pair { w: matrix("W", 6, 2)?, h: matrix("H", 5, 2)? };
//! let lambda = [matrix("λ of W", 1, 2)?, matrix("λ of H", 1, 2)?];
//! let reverse = bunch.hypergradient(&pair, &lambda, Mode::Reverse)?;
//! let adjoint = bunch.hypergradient(&pair, &lambda, Mode::Adjoint)?;
//! assert!((reverse.outer_error - adjoint.outer_error).abs() < 1e-12);
//! assert_eq!(reverse.gradients[1].dims(), [1, 2]);
//! # Ok::<(), altbi::Error>(())
//! ```

mod adjoint;
mod bunch;
mod data;
mod differences;
mod forward;
mod reverse;
mod scale;

pub(crate) use self::data::Data;
pub use bunch::{JointBunch, JointHypergradient, Pair, Span};
pub(crate) use forward::gradients as forward_gradients;

//! Measures of a factorisation (errors, sparsity, recovery of known signals), and statistics of
//! many.

mod relative_error;
mod sir;
mod sparsity;
mod spread;

pub use relative_error::{paper_relative_error, relative_error};
pub(crate) use sir::likeness;
pub use sir::{Recovery, recovery};
pub(crate) use sparsity::sparsity_w_over;
pub use sparsity::{sparsity_h, sparsity_w};
pub(crate) use spread::{Spread, density, quantile};

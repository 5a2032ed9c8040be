//! How good a factorisation is: errors, sparsity, and recovery of known signals.

mod relative_error;
mod sir;
mod sparsity;

pub use relative_error::{paper_relative_error, relative_error};
pub use sir::{Recovery, recovery};
pub use sparsity::{sparsity_h, sparsity_w};

//! Measures of a factorisation (errors, sparsity, recovery of known signals), and statistics of
//! many.

mod relative_error;
mod signed_rank;
mod sir;
mod sparsity;
mod spread;

pub use relative_error::{paper_relative_error, relative_error};
pub use signed_rank::{PairedDifference, holm, signed_rank};
pub use sir::{Recovery, likeness, recovery};
pub(crate) use sparsity::sparsity_w_over;
pub use sparsity::{sparsity_h, sparsity_w};
pub use spread::{Spread, density, quantile};

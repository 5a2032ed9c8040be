//! λ: where it starts, how it steps, and the interval it is kept in.
//!
//! One λ_i per row of W (the paper's scope), as an n×1 matrix.

mod initial;
mod step;

pub use initial::{LambdaStart, balanced_lambda};
pub use step::{LambdaStep, Moments};

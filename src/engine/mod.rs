//! How a run is computed.

mod block;
mod entry;
mod functions;
mod fused;
mod kernel;
mod lanes;
mod matrix;
mod pass;
mod plan;
mod scratch;
mod step;
mod term;

pub(crate) use matrix::Side;
pub use term::FusedPenalty;

/// An outer error that the fused engine knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusedCriterion {
    /// [`Training`](crate::Training).
    Training,
    /// [`HeldOut`](crate::HeldOut).
    HeldOut,
}


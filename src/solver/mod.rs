//! The outer loop: AltBi, and the baselines through the same code.
//!
//! [`Solver::step`] follows the paper's pseudocode:
//!
//! 1. one multiplicative update of H;
//! 2. optionally, rescale the factors;
//! 3. the bunch: T updates of W with H and λ fixed;
//! 4. the hypergradient of the outer error through the bunch;
//! 5. the projected λ step;
//! 6. a record, and the stopping rule.
//!
//! Steps take a state and return a state. The loop prints nothing. An [`Observer`] can watch it.

mod altbi;
mod checkpoint;
mod continuation;
mod encode;
mod history;
mod iteration;
mod model;
mod natural;
mod observer;
mod outcome;
mod restarts;
mod start;
mod stopping;
mod weights;

pub use altbi::{Best, Solver, State};
pub use checkpoint::Checkpoint;
pub(crate) use continuation::Ended;
pub use history::Record;
pub(crate) use iteration::Stepper;
pub use model::Model;
pub(crate) use model::WeightedPenalty;
pub use observer::{Observer, Signal};
pub use outcome::{Outcome, TunedWeights};
pub(crate) use restarts::{Restarted, StartRecord, restarts};
pub use stopping::{StopReason, Stopping, StoppingRule};

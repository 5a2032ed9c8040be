//! λ: what it belongs to, where it starts, how it steps, and the interval it is kept in.
//!
//! The paper has one λ_i per row of W ([`Scope::Row`]). Other [scopes](Scope) have fewer
//! weights or more, several penalties have a group of weights each (`Layout`), and all
//! of them together are one column of numbers, which is what steps and checkpoints see.

mod hierarchy;
mod initial;
mod layout;
mod scope;
mod share;
mod step;

pub(crate) use hierarchy::{Hierarchy, StepContext};
pub use initial::LambdaStart;
pub(crate) use initial::balanced_lambda;
pub(crate) use layout::{Layout, WeightGroup};
pub(crate) use scope::check_weights_by_component;
pub use scope::{SCOPES, Scope, Units};
pub(crate) use share::LambdaShare;
pub use step::{LambdaStep, StepAt, StepRule};

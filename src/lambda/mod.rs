//! λ: its scope, its first value, its steps and its interval.
//!
//! The paper has one λ_i per row of W ([`Scope::Row`]). Other [scopes](Scope) have fewer or more
//! weights. Each penalty has a group of weights (`Layout`). All groups together are one column of
//! numbers, which steps and checkpoints use.

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

//! Tests of private items. The other tests are in the folder `tests`, and share their reference
//! problems with these.

#[path = "../../tests/common/numbers.rs"]
#[allow(dead_code, reason = "other tests use the rest of this")]
mod common;
#[cfg(feature = "report")]
#[path = "../../tests/common/mat.rs"]
#[allow(dead_code, reason = "likewise")]
mod mat;
#[cfg(feature = "report")]
#[path = "../../tests/common/published.rs"]
mod published;

mod bias;
mod engine;
#[cfg(feature = "report")]
mod experiment;
mod fixtures;
mod hypergradients;

//! Tools of several test files: reference problems, and distances.

#![allow(dead_code, reason = "each test file uses its own part of this")]

#[cfg(feature = "cli")]
pub mod command;
pub mod mat;
pub mod numbers;
#[cfg(feature = "data")]
pub mod published;

#[allow(unused_imports, reason = "likewise")]
pub use numbers::*;

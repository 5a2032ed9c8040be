#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`config`] | every setting of a run, with default and range |
//! | [`solver`] | the outer loop: AltBi and its baselines; observers; [`Outcome`] |
//! | [`engine`](mod@engine) | engines, which compute iterations: on tensors, or fused |
//! | [`hypergradient`] | dE/dλ through the bunch, in five ways |
//! | [`bunch`] | T updates of one factor or both, as a function of (W, H) and λ |
//! | `term` | everything that touches X, fused and on the tape |
//! | [`update`] | the multiplicative update, and its hand-written derivatives |
//! | [`divergence`], [`penalty`], [`criterion`] | the pluggable parts |
//! | [`lambda`] | scope, first value and steps of λ |
//! | [`practical`] | the preset: λ tuned on held-out data |
//! | [`tuner`] | rivals: other ways to choose λ, at equal budget |
//! | [`check`](mod@check) | the gradient checker |
//! | [`problem`], [`factors`] | checked data and factors |
//! | [`metrics`] | relative error, sparsity, SIR |
//! | [`experiment`] | the paper's evaluation |
//! | [`data`], [`report`], [`plot`] | readers and generators; run folders, reports and figures |
//! | [`processes`] | the processes that share one run, on MPI or as threads |
//! | `adapters` | fit and transform for smartcore and linfa (features of these names) |
//! | `numerics`, [`sparse`], [`split`], `words`, [`device`], [`error`] | common basics |
//!
//! With `default-features = false` the crate only factorises and differentiates. Each feature
//! includes those before it: `data` ([`data`]), `lab` ([`experiment`], [`ranks`], [`tuner`]),
//! `report` ([`report`], [`plot`]) and `cli` ([`cli`], the command; the default).

#![forbid(unsafe_code)]
#![deny(missing_docs)]
// A type in a public signature is public itself.
#![warn(unnameable_types)]
// The command uses most of every room; a room alone need not.
#![cfg_attr(not(feature = "cli"), allow(dead_code, unused_imports))]

// Tests here share a file with those in the folder `tests`, which call the crate by its name.
#[cfg(test)]
extern crate self as altbi;

#[cfg(any(feature = "linfa", feature = "smartcore"))]
pub mod adapters;
pub mod bunch;
pub mod check;
#[cfg(feature = "cli")]
pub mod cli;
pub mod config;
pub mod criterion;
#[cfg(feature = "data")]
pub mod data;
pub mod device;
pub mod divergence;
pub mod engine;
pub mod error;
#[cfg(feature = "lab")]
pub mod experiment;
pub mod factors;
pub mod hypergradient;
pub mod lambda;
pub mod metrics;
mod numerics;
pub mod penalty;
#[cfg(feature = "report")]
pub mod plot;
pub mod practical;
mod primitive;
pub mod problem;
pub mod processes;
#[cfg(feature = "lab")]
pub mod ranks;
#[cfg(feature = "report")]
pub mod report;
pub mod solver;
pub mod sparse;
pub mod split;
mod term;
#[cfg(test)]
mod tests;
pub mod threads;
#[cfg(feature = "lab")]
pub mod tuner;
pub mod update;
mod words;

pub use bunch::{Bunch, Pair, Span};
pub use check::{CheckReport, Verdict, check};
pub use config::{AltBiConfig, BunchOver, Exponent, Method, Normalization, Selection};
pub use criterion::{Criterion, HeldOut, Measured, Training};
pub use divergence::{Beta, Divergence, Slope, SmoothedKl};
pub use engine::{EngineChoice, EngineUsed};
pub use error::{CheckpointFault, Error, Result};
pub use factors::{Factors, GivenFactors, Initial, Side};
pub use hypergradient::{Hypergradient, Mode};
pub use lambda::{LambdaStart, LambdaStep, Scope, Units};
pub use numerics::Precision;
pub use penalty::{
    Coupling, Group, Hoyer, L1, NoPenalty, Penalty, PenaltyTerm, Smooth, SquaredL1, SquaredL2,
};
pub use problem::{Problem, ToMatrix};
pub use solver::{
    Best, Checkpoint, Model, Observer, Outcome, Record, Signal, Solver, State, StopReason,
};
pub use sparse::{Matrix, SparseMatrix, Zeros};
pub use split::{MajoriserPowers, Split};

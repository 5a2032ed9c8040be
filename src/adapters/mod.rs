//! Adapters for pipelines of other crates, each behind a feature of its name.
//!
//! | feature | fit | transform |
//! |---|---|---|
//! | `smartcore` | `UnsupervisedEstimator` of [`Outcome`](crate::Outcome), with an [`AltBiConfig`](crate::AltBiConfig) as parameters | `Transformer`: rows become their codes |
//! | `linfa` | `Fit` of [`AltBiConfig`](crate::AltBiConfig) | `Transformer`: the records of a dataset become their codes |
//!
//! The code of a row x is the w ≥ 0 for which w H fits x
//! ([`Outcome::encode_rows`](crate::Outcome::encode_rows)).

#[cfg(feature = "linfa")]
pub mod linfa;
#[cfg(feature = "smartcore")]
mod smartcore;

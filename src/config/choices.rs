//! Settings that are one of a few.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::update::Rule;
use crate::words::words;

/// AltBi, or one of the baselines that its gains must be measured against.
///
/// | method | W updates per H update | λ |
/// |---|---|---|
/// | `AltBi` | T | tuned by hypergradients |
/// | `Mu` | 1 | 0 |
/// | `PenalizedMu` | 1 | fixed, 0.5 unless given |
/// | `MuT` | T | 0: shows what the T updates alone do |
/// | `Frozen` | T | AltBi's initial λ, kept: shows what tuning does |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The paper's algorithm.
    #[default]
    #[serde(rename = "altbi")]
    AltBi,
    /// Plain multiplicative updates.
    Mu,
    /// Multiplicative updates with a fixed penalty weight.
    #[serde(rename = "p-mu")]
    PenalizedMu,
    /// Plain multiplicative updates, T of W per one of H.
    MuT,
    /// AltBi without its λ step.
    Frozen,
}

/// The γ of the updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exponent {
    /// 1, the paper's.
    #[default]
    One,
    /// The one that provably keeps the objective from rising
    /// ([`Rule::monotone`](crate::update::Rule::monotone)).
    Monotone,
    /// The one that provably keeps the divergence from rising without penalties; with them it
    /// is larger than the monotone one, and faster
    /// ([`Rule::monotone_fit`](crate::update::Rule::monotone_fit)).
    Fit,
}

impl Exponent {
    /// The rule with this exponent.
    ///
    /// # Errors
    /// [`Error::NoMonotoneExponent`](crate::Error::NoMonotoneExponent) where a part has no
    /// known majoriser.
    pub fn of(self, rule: Rule) -> Result<Rule> {
        match self {
            Self::One => Ok(rule),
            Self::Monotone => rule.monotone(),
            Self::Fit => rule.monotone_fit(),
        }
    }
}

/// What happens to the scale of the factors after each H update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalization {
    /// Nothing. A penalty on W alone can then be evaded: H grows, W shrinks.
    #[default]
    None,
    /// Rows of H sum to 1, columns of W make up for it.
    HRows,
    /// Rows of H have a root mean square of 1, columns of W make up for it.
    HRms,
}

/// Which factors a bunch updates, and hypergradients go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BunchOver {
    /// T updates of the penalised factor, after one of the other: the paper's.
    #[default]
    One,
    /// T updates of both in turn.
    Both,
}

/// Which iterate a run gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    /// The last.
    #[default]
    Last,
    /// The one with the lowest outer error. With a held-out error this is early
    /// stopping.
    Best,
}

words!(Method, "method" {
    AltBi = "altbi", Mu = "mu", PenalizedMu = "p-mu", MuT = "mu-t", Frozen = "frozen",
});
words!(Exponent, "exponent" { One = "one", Monotone = "monotone", Fit = "fit" });
words!(Normalization, "normalization" { None = "none", HRows = "h-rows", HRms = "h-rms" });
words!(BunchOver, "span of a bunch" { One = "one", Both = "both" });
words!(Selection, "selection" { Best = "best", Last = "last" });

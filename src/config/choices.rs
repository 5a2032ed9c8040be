//! Settings with a few choices.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::update::Rule;
use crate::words::words;

/// AltBi, or one of its baselines.
///
/// | method | W updates per H update | λ |
/// |---|---|---|
/// | `AltBi` | T | tuned by hypergradients |
/// | `Mu` | 1 | 0 |
/// | `PenalizedMu` | 1 | fixed, 0.5 unless given |
/// | `MuT` | T | 0: shows the effect of the T updates alone |
/// | `Frozen` | T | AltBi's first λ, fixed: shows the effect of tuning |
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
    /// The exponent with which the objective provably never rises
    /// ([`Rule::monotone`](crate::update::Rule::monotone)).
    Monotone,
    /// The exponent with which the divergence without penalties provably never rises. With
    /// penalties it is larger and faster than the monotone one
    /// ([`Rule::monotone_fit`](crate::update::Rule::monotone_fit)).
    Fit,
}

impl Exponent {
    /// The rule with this exponent.
    ///
    /// # Errors
    /// [`Error::NoMonotoneExponent`](crate::Error::NoMonotoneExponent) if a part has no known
    /// majoriser.
    pub fn of(self, rule: Rule) -> Result<Rule> {
        match self {
            Self::One => Ok(rule),
            Self::Monotone => rule.monotone(),
            Self::Fit => rule.monotone_fit(),
        }
    }
}

/// The scale of the factors after each H update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalization {
    /// Not changed. A penalty on W alone can then be evaded: W shrinks, H grows.
    #[default]
    None,
    /// Rows of H sum to 1; columns of W are scaled inversely.
    HRows,
    /// Rows of H have a root mean square of 1; columns of W are scaled inversely.
    HRms,
}

/// The factors that a bunch updates and hypergradients go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BunchOver {
    /// T updates of the penalised factor, after one of the other: the paper's.
    #[default]
    One,
    /// T updates of both in turn.
    Both,
}

/// The iterate that a run returns.
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

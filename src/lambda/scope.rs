//! The scope of a weight, and its units.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::penalty::Penalty;
use crate::words::words;

/// The part of a factor that one λ belongs to.
///
/// | scope | name | weights on W (on Hᵀ) | shape |
/// |---|---|---|---|
/// | `Row` | `row` | one for each row of X (column of X) | n×1 |
/// | `Shared` | `shared` | one | 1×1 |
/// | `Component` | `component` | one for each component | 1×r |
/// | `Entry` | `entry` | one for each entry of the factor | n×r |
/// | `Hierarchical` | `hierarchical:<τ>` | one for each component, pulled towards a common mean | 1×r |
///
/// Few weights are safer: free weights of rows overfit the held-out entries. The hierarchical scope
/// has `log λ_k = μ + δ_k` with `δ_k ~ N(0, τ²)`. With a small τ it is like one shared weight, with
/// a large one like a free weight for each component.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// One weight per row, as in the paper.
    #[default]
    Row,
    /// One weight.
    Shared,
    /// One weight per component.
    Component,
    /// One weight per entry.
    Entry,
    /// One weight per component, with the spread τ of their logarithms.
    Hierarchical(f64),
}

/// The words of a [`Scope`].
pub const SCOPES: &str = "row, shared, component, entry, hierarchical, hierarchical:<τ>";

/// The default τ.
const SPREAD: f64 = 0.5;

impl FromStr for Scope {
    type Err = Error;

    /// # Errors
    /// [`Error::UnknownName`]; [`Error::Setting`] for a τ that is not positive.
    fn from_str(name: &str) -> Result<Self> {
        let scope = match name {
            "row" => Self::Row,
            "shared" => Self::Shared,
            "component" => Self::Component,
            "entry" => Self::Entry,
            "hierarchical" => Self::Hierarchical(SPREAD),
            _ => {
                let spread = name.strip_prefix("hierarchical:");
                let spread = spread.and_then(|number| number.parse().ok());
                Self::Hierarchical(spread.ok_or_else(|| Error::UnknownName {
                    kind: "scope of λ",
                    name: name.into(),
                    known: SCOPES,
                })?)
            }
        };
        scope.check()?;
        Ok(scope)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Row => "row",
            Self::Shared => "shared",
            Self::Component => "component",
            Self::Entry => "entry",
            Self::Hierarchical(spread) => return write!(formatter, "hierarchical:{spread}"),
        })
    }
}

impl Scope {
    /// Refuses a spread that is not a positive number.
    pub(crate) fn check(self) -> Result<()> {
        match self {
            Self::Hierarchical(spread) => Error::require(
                spread.is_finite() && spread > 0.0,
                "the spread τ of a hierarchical scope",
                spread,
                "a positive number",
            ),
            _ => Ok(()),
        }
    }

    /// Refuses a penalty that does not support the scope.
    pub(crate) fn check_penalty(self, penalty: &dyn Penalty) -> Result<()> {
        match self {
            Self::Row | Self::Shared => Ok(()),
            _ => check_weights_by_component(penalty, &self.to_string()),
        }
    }

    /// The shape of the weights for a factor with `rows` rows and `rank` components.
    pub fn shape(self, rows: usize, rank: usize) -> [usize; 2] {
        match self {
            Self::Row => [rows, 1],
            Self::Shared => [1, 1],
            Self::Component | Self::Hierarchical(_) => [1, rank],
            Self::Entry => [rows, rank],
        }
    }
}

/// Refuses weights of components or entries for a penalty that is not a sum over entries.
pub(crate) fn check_weights_by_component(penalty: &dyn Penalty, scope: &str) -> Result<()> {
    if penalty.is_sum_over_entries() {
        return Ok(());
    }
    Err(Error::ScopeUnsupported {
        scope: scope.into(),
        reason: format!(
            "penalty '{}' is not a sum over entries; use the scope row or shared",
            penalty.name()
        ),
    })
}

/// The units of λ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Units {
    /// λ multiplies the penalty, as in the paper.
    #[default]
    Absolute,
    /// λ is a multiple of the weight at which penalty and fit pull equally hard, `ΣP / Σp⁺` over
    /// the entries of a weight. Such numbers mean the same on all data: e⁻⁵ is weak, e⁴ dominates
    /// the fit.
    Relative,
}

words!(Units, "unit of λ" { Absolute = "absolute", Relative = "relative" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_have_names_and_shapes() {
        for (name, shape) in [
            ("row", [7, 1]),
            ("shared", [1, 1]),
            ("component", [1, 3]),
            ("entry", [7, 3]),
            ("hierarchical:0.25", [1, 3]),
        ] {
            let scope: Scope = name.parse().unwrap();
            assert_eq!(
                (scope.to_string().as_str(), scope.shape(7, 3)),
                (name, shape)
            );
        }
        assert_eq!(
            "hierarchical".parse::<Scope>().unwrap(),
            Scope::Hierarchical(0.5)
        );
        for wrong in ["rows", "hierarchical:", "hierarchical:x"] {
            let found = wrong.parse::<Scope>();
            assert!(matches!(found, Err(Error::UnknownName { .. })), "{wrong}");
        }
        for wrong in ["hierarchical:0", "hierarchical:-1", "hierarchical:nan"] {
            let found = wrong.parse::<Scope>();
            assert!(matches!(found, Err(Error::Setting { .. })), "{wrong}");
        }
    }
}

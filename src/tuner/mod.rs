//! Rivals: other ways to choose λ, on equal terms.
//!
//! "How do I choose λ?" has many answers. Each of them runs here on the same [`Task`]: the
//! same data, the same entries held out, the same start, every solve stopped at its lowest
//! held-out error, and a budget of updates that hypergradients are charged for at their
//! true price.
//!
//! | rival | how it chooses | file |
//! |---|---|---|
//! | `practical` | hypergradients, the preset [`practical`](mod@crate::practical) | `hypergradient` |
//! | `plain` | no penalty; stopped early | `single` |
//! | `none` | no penalty; not stopped | `single` |
//! | `fixed` | λ = 0.5, as the paper's P-MU | `single` |
//! | `exponential` | λ₀ e^(−τk) along the run | `exponential` |
//! | `grid` | equally spaced in log λ | `grid` |
//! | `path` | from weak to strong, each solve from the one before | `path` |
//! | `random` | uniform in log λ | `random` |
//! | `tpe` | tree-structured Parzen estimators (crate tpe) | `parzen` |
//! | `cma-es` | an adapted covariance (crate cmaes) | `covariance` |
//! | `genetic` | selection, crossover, mutation (crate genetic_algorithm) | `genetic` |
//! | `l-curve` | the corner of log D against log penalty | `l_curve` |
//! | `discrepancy` | the strongest λ that fits as well as the noise allows | `discrepancy` |
//! | `ard-l1`, `ard-l2` | automatic relevance determination, with penalties of its own | `relevance` |
//!
//! All but the first and the last choose a *dial* for each penalty: log λ in relative units
//! ([`Units::Relative`](crate::Units)), between −9 and 4. What is compared is the held-out
//! error, and where the truth or a test mask is known ([`Judge`]) the error there.

mod books;
mod contest;
mod covariance;
mod discrepancy;
mod exponential;
mod genetic;
mod grid;
mod hypergradient;
mod l_curve;
mod ledger;
mod parzen;
mod path;
mod random;
mod relevance;
mod single;
mod task;

use serde::{Deserialize, Serialize};

use crate::words::words;

pub use contest::{Contest, Standing, contest};
pub use ledger::Point;
pub use task::{Judge, Task};

pub(crate) use books::Books;

/// The interval of a dial.
pub const DIAL: (f64, f64) = (-9.0, 4.0);

/// The rivals by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rival {
    /// Hypergradients.
    Practical,
    /// No penalty, stopped early.
    Plain,
    /// No penalty, not stopped.
    None,
    /// λ = 0.5.
    Fixed,
    /// λ₀ e^(−τk).
    Exponential,
    /// A grid.
    Grid,
    /// A warm-started path.
    Path,
    /// Random search.
    Random,
    /// Parzen estimators.
    Tpe,
    /// An evolution strategy.
    CmaEs,
    /// A genetic algorithm.
    Genetic,
    /// The corner of the L-curve.
    LCurve,
    /// The discrepancy principle.
    Discrepancy,
    /// Automatic relevance determination, ℓ1.
    ArdL1,
    /// Automatic relevance determination, squared ℓ2.
    ArdL2,
}

/// All of them. The first sets the budget of the others.
pub const RIVALS: [Rival; 15] = [
    Rival::Practical,
    Rival::Plain,
    Rival::None,
    Rival::Fixed,
    Rival::Exponential,
    Rival::Grid,
    Rival::Path,
    Rival::Random,
    Rival::Tpe,
    Rival::CmaEs,
    Rival::Genetic,
    Rival::LCurve,
    Rival::Discrepancy,
    Rival::ArdL1,
    Rival::ArdL2,
];

impl Rival {
    /// Whether it goes on until the budget is spent.
    pub fn searches(self) -> bool {
        matches!(
            self,
            Self::Grid | Self::Path | Self::Random | Self::Tpe | Self::CmaEs | Self::Genetic
        )
    }
}

words!(Rival, "rival" {
    Practical = "practical",
    Plain = "plain",
    None = "none",
    Fixed = "fixed",
    Exponential = "exponential",
    Grid = "grid",
    Path = "path",
    Random = "random",
    Tpe = "tpe",
    CmaEs = "cma-es",
    Genetic = "genetic",
    LCurve = "l-curve",
    Discrepancy = "discrepancy",
    ArdL1 = "ard-l1",
    ArdL2 = "ard-l2",
});

//! The built-in rivals.

use super::{
    Answer, Books, Rival, covariance, discrepancy, exponential, genetic, grid, l_curve, parzen,
    path, random, relevance, single,
};
use crate::error::Result;
use crate::words::words;

/// The built-in rivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BuiltIn {
    /// Hypergradients.
    Practical,
    /// No penalty, stopped early.
    Plain,
    /// No penalty, not stopped.
    None,
    /// No penalty, started and ended as scikit-learn does by default.
    ScikitLearn,
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
pub const RIVALS: [BuiltIn; 16] = [
    BuiltIn::Practical,
    BuiltIn::Plain,
    BuiltIn::None,
    BuiltIn::ScikitLearn,
    BuiltIn::Fixed,
    BuiltIn::Exponential,
    BuiltIn::Grid,
    BuiltIn::Path,
    BuiltIn::Random,
    BuiltIn::Tpe,
    BuiltIn::CmaEs,
    BuiltIn::Genetic,
    BuiltIn::LCurve,
    BuiltIn::Discrepancy,
    BuiltIn::ArdL1,
    BuiltIn::ArdL2,
];

impl Rival for BuiltIn {
    fn name(&self) -> String {
        self.to_string()
    }

    fn searches(&self) -> bool {
        matches!(
            self,
            Self::Grid | Self::Path | Self::Random | Self::Tpe | Self::CmaEs | Self::Genetic
        )
    }

    fn choose(&self, books: Books<'_>) -> Result<Answer> {
        match self {
            Self::Practical => unreachable!("its work is the budget: the contest lets it go first"),
            Self::Plain => single::plain(books),
            Self::None => single::none(books),
            Self::ScikitLearn => single::scikit_learn(books),
            Self::Fixed => single::fixed(books),
            Self::Exponential => exponential::run(books),
            Self::Grid => grid::run(books),
            Self::Path => path::run(books),
            Self::Random => random::run(books),
            Self::Tpe => parzen::run(books),
            Self::CmaEs => covariance::run(books),
            Self::Genetic => genetic::run(books),
            Self::LCurve => l_curve::run(books),
            Self::Discrepancy => discrepancy::run(books),
            Self::ArdL1 => relevance::run(false, books),
            Self::ArdL2 => relevance::run(true, books),
        }
    }
}

words!(BuiltIn, "rival" {
    Practical = "practical",
    Plain = "plain",
    None = "none",
    ScikitLearn = "scikit-learn",
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

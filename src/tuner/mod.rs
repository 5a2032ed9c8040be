//! Rivals: other ways to choose λ, at equal budget.
//!
//! All rivals run on the same [`Task`]: the same data, held-out entries and start. Every solve
//! keeps the iterate with the lowest held-out error. All have the same budget of updates; updates
//! with hypergradients are charged at their measured cost. Beyond the budget, the chosen λ is solved
//! for again from both iterates of plain updates that `practical` may start from. If that does not
//! beat plain updates by the margin of `practical`, plain updates are the answer.
//!
//! | rival | choice of λ | file |
//! |---|---|---|
//! | `practical` | hypergradients, the preset [`practical`](mod@crate::practical) | `hypergradient` |
//! | `plain` | no penalty; stopped early | `single` |
//! | `none` | no penalty; not stopped | `single` |
//! | `scikit-learn` | no penalty; started and ended as scikit-learn's updates are by default | `single` |
//! | `fixed` | λ = 0.5, as the paper's P-MU | `single` |
//! | `exponential` | λ₀ e^(−τk) along the run | `exponential` |
//! | `grid` | equally spaced in log λ | `grid` |
//! | `path` | from weak to strong, each solve from the one before | `path` |
//! | `random` | uniform in log λ | `random` |
//! | `tpe` | tree-structured Parzen estimators (crate tpe) | `parzen` |
//! | `cma-es` | an adapted covariance (crate cmaes) | `covariance` |
//! | `genetic` | selection, crossover, mutation (crate genetic_algorithm) | `genetic` |
//! | `l-curve` | the corner of log D against log penalty | `l_curve` |
//! | `discrepancy` | the largest λ that fits as well as the noise allows | `discrepancy` |
//! | `ard-l1`, `ard-l2` | automatic relevance determination, with penalties of its own | `relevance` |
//!
//! All but the first and the last choose a *dial* for each penalty: log λ in relative units
//! ([`Units::Relative`](crate::Units)), between −9 and 4. Rivals are compared by the held-out
//! error, and by the judge's error if there is a true matrix or a test mask ([`Judge`]).

mod books;
mod built_in;
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

use std::fmt::Debug;

use crate::error::Result;

pub use books::{Answer, Books, Solved};
pub use built_in::{BuiltIn, RIVALS};
pub use contest::{Contest, ContestSettings, Standing, contest};
pub use ledger::Point;
pub use task::{Judge, Task, TaskSettings};

/// The interval of a dial.
pub const DIAL: (f64, f64) = (-9.0, 4.0);

/// A way to choose λ. Your own rival takes part in a [`contest`] like the [built-in ones](BuiltIn).
///
/// ```
/// use altbi::tuner::{Answer, Books, BuiltIn, ContestSettings, DIAL, Rival, Task, TaskSettings, contest};
/// use altbi::{Beta, L1, PenaltyTerm, Precision, Problem, Result, Side, criterion::Unseen};
///
/// /// The middle of all dials, and nothing else.
/// #[derive(Debug)]
/// struct Middle;
///
/// impl Rival for Middle {
///     fn name(&self) -> String {
///         "middle".into()
///     }
///
///     fn choose(&self, mut books: Books<'_>) -> Result<Answer> {
///         let dials = vec![(DIAL.0 + DIAL.1) / 2.0; books.dials()];
///         let solved = books.solve(&dials, None)?;
///         books.answer(solved)
///     }
/// }
///
/// let x = altbi::data::benchmark_a(30, 15, 2, 1).x;
/// let task = Task::of_data(
///     Problem::new(&x, Precision::F64)?,
///     0.0,
///     TaskSettings {
///         rank: 2,
///         divergence: std::sync::Arc::new(Beta::KL),
///         terms: vec![(Side::W, PenaltyTerm::tuned(L1))],
///         outer: Unseen::Entries(0.1).into(),
///     },
///     1,
/// )?;
/// let rivals: [&dyn Rival; 2] = [&BuiltIn::Plain, &Middle];
/// let all = contest(&[task], &rivals, ContestSettings::default())?;
/// assert_eq!(all.rivals(), ["practical", "plain", "middle"]);
/// assert!(all.of("middle").all(|standing| standing.held_out.is_finite()));
/// # Ok::<(), altbi::Error>(())
/// ```
pub trait Rival: Debug + Sync {
    /// Its name in standings and tables.
    fn name(&self) -> String;

    /// Returns true if it uses its whole budget.
    fn searches(&self) -> bool {
        false
    }

    /// Makes solves and returns an answer.
    ///
    /// # Errors
    /// Those of a solve.
    fn choose(&self, books: Books<'_>) -> Result<Answer>;
}

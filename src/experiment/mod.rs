//! The paper's evaluation: fits of every method to every dataset from every start.
//!
//! An experiment ([`Campaign`]) fits every contender to every [`Dataset`] from the same random
//! starts, on all cores. It saves each fit as a small file in a folder, and does not repeat fits that
//! are there. Tables and figures are made from the folder alone.
//!
//! | contender | updates of W per update of H | λ |
//! |---|---|---|
//! | MU | 1 | 0 |
//! | P-MU | 1 | 0.5, and 0.1 … 1 for the response function |
//! | MU-T | T | 0 |
//! | frozen | T | AltBi's first λ, fixed |
//! | AltBi | T | tuned |
//!
//! The cost of an iteration differs between methods. So each fit is measured at four moments
//! ([`Moment`]): when the stopping rule ends it, after equal iterations, after equal work (updates
//! of W), and after equal time.
//!
//! ```
//! use altbi::experiment::{BenchmarkName, Campaign, Dataset, Measure, Moment, Protocol, Size};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let protocol = Protocol { runs: 2, max_iterations: 20, ..Protocol::default() };
//! let datasets = Dataset::all_of(BenchmarkName::A, Size::Small, 0, None)?;
//! let campaign = Campaign::new(&datasets, protocol)?;
//! let results = campaign.run(&folder.path().join("experiment"), 1)?;
//! let sir = results.datasets[0].values("altbi", Moment::Stopped, Measure::SirW);
//! println!("{:.1} and {:.1} dB", sir[0], sir[1]);
//! # Ok::<(), altbi::Error>(())
//! ```

mod archive;
mod campaign;
mod comparison;
mod contender;
mod dataset;
mod measure;
mod results;
mod signed_rank;
mod trial;

pub(crate) use archive::{Archive, DatasetRecord};
pub use campaign::Campaign;
pub(crate) use campaign::{CampaignEnding, Progress, Watcher};
pub(crate) use comparison::{Comparison, Conclusion, comparisons};
pub(crate) use contender::Contender;
pub(crate) use dataset::Arrangement;
pub use dataset::{BenchmarkName, Dataset, Size};
pub(crate) use measure::Measures;
pub use measure::{Measure, Moment, Protocol};
pub(crate) use results::ActingLambda;
pub use results::{DatasetResults, Results};
pub(crate) use signed_rank::PairedDifference;
pub(crate) use trial::{CurvePoint, TrialRecord};

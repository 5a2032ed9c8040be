//! The paper's evaluation: fits of every method to every dataset from every start.
//!
//! An experiment fits every [`Contender`] to every [`Dataset`] from the same random starts, on all
//! cores. It saves each fit as a small file in an [`Archive`], and does not repeat fits that are
//! there. Tables and figures are made from the archive alone (see [`report`](crate::report)).
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
//! use std::sync::Arc;
//! use altbi::experiment::{
//!     Archive, BenchmarkName, Campaign, Dataset, Measure, Moment, Protocol, Results, Size, Unwatched,
//! };
//!
//! let folder = tempfile::tempdir().unwrap();
//! let protocol = Protocol { runs: 2, max_iterations: 20, ..Protocol::default() };
//! let datasets = Dataset::all_of(BenchmarkName::A, Size::Small, 0, None)?;
//! let campaign = Campaign::new(&datasets, protocol)?;
//! let archive = Archive::open(&folder.path().join("experiment"), &campaign)?;
//! campaign.run(&archive, 1, Arc::new(Unwatched))?;
//!
//! let results = Results::read(archive.path())?;
//! let sir = results.datasets[0].spread("altbi", Moment::Stopped, Measure::SirW).unwrap();
//! println!("{:.1} dB ± {:.1}", sir.mean, sir.deviation);
//! # assert_eq!(sir.count, 2);
//! # Ok::<(), altbi::Error>(())
//! ```

mod archive;
mod campaign;
mod comparison;
mod contender;
mod dataset;
mod measure;
mod results;
mod trial;

pub use archive::{Archive, DatasetRecord};
pub use campaign::{Campaign, CampaignEnding, Progress, Unwatched, Watcher};
pub use comparison::{Comparison, Conclusion, comparisons};
pub use contender::Contender;
pub use dataset::{Arrangement, BenchmarkName, Dataset, Size};
pub use measure::{Measure, Measures, Moment, Protocol};
pub use results::{ActingLambda, DatasetResults, Results};
pub use trial::{CurvePoint, TrialRecord};

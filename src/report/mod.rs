//! The folder of a run, and the page about it.
//!
//! | file | what |
//! |---|---|
//! | `W.npy`, `H.npy`, `lambda.npy` | the factors and the last λ |
//! | `lambda_start.npy` | the first λ |
//! | `lambda_h.npy`, `lambda_2.npy`, … | λ of H, of a second penalty; each with its `_start` |
//! | `W.csv`, `H.csv` | the factors with the data's labels, on request |
//! | `lambda.csv` | λ with the data's labels, likewise |
//! | `labels.json` | the names of the data's rows and columns, where it has some |
//! | `scale.npy` | what the rows or columns of the data were divided by, where they were |
//! | `held_out.npy` | the weights of held-out entries, 0 elsewhere; `.mtx` of a sparse X |
//! | `thinned.npy` | the counts that the updates did not see, where counts were thinned; likewise |
//! | `history.csv` | one row per iteration, the start included |
//! | `summary.json` | the run in a dozen numbers |
//! | `config.toml` | every setting; `altbi fit --config` repeats the run |
//! | `report.html` | a page that needs nothing but itself |
//! | `figures/*.svg` | its pictures |
//! | `start-7` | the start with the seed 7, only while a run with several is unfinished |
//! | `checkpoint` | only while a run is unfinished |
//!
//! A report is made from the folder alone, long after the run if need be. So is the
//! [report of an experiment](ExperimentReport).

mod bias;
mod claim;
mod contest;
mod experiment;
mod figures;
mod html;
mod kept;
mod labels;
mod lambda;
mod model;
mod page;
mod penalties;
mod ranks;
mod records;
mod run_folder;
mod sections;
mod signals;
mod starts;
mod story;
mod summary;

pub use bias::BiasRecords;
pub use contest::{ContestRecords, ratio};
pub use experiment::ExperimentReport;
pub use figures::Figure;
pub use html::{data_name, shell_quoted};
pub use kept::KeptRecords;
pub use labels::Labels;
pub use model::arrangement;
pub use penalties::PenaltyRecord;
pub use ranks::{RankRecords, RankSettings};
pub use records::RunRecords;
pub use run_folder::RunFolder;
pub use story::{
    Component, Feature, choice_in_words, components, fit_in_words, percent, weights_in_words,
};
pub use summary::{Choice, Continued, HeldOutShare, SparseRecord, Summary};

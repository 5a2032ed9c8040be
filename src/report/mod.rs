//! The folder of a run, and its report.
//!
//! | file | contents |
//! |---|---|
//! | `W.npy`, `H.npy`, `lambda.npy` | the factors and the last λ |
//! | `lambda_start.npy` | the first λ |
//! | `lambda_h.npy`, `lambda_2.npy`, … | λ of H, of a second penalty; each with its `_start` |
//! | `W.csv`, `H.csv` | the factors with the data's labels, on request |
//! | `lambda.csv` | λ with the data's labels, likewise |
//! | `labels.json` | the names of the data's rows and columns, if there are any |
//! | `scale.npy` | the divisors of the rows or columns of the data, if they were scaled |
//! | `held_out.npy` | the weights of held-out entries, 0 elsewhere; `.mtx` of a sparse X |
//! | `thinned.npy` | the counts that the updates did not see, if counts were thinned; likewise |
//! | `history.csv` | one row per iteration, the start included |
//! | `summary.json` | the summary of the run |
//! | `config.toml` | every setting; `altbi fit --config` repeats the run |
//! | `report.html` | the report, a self-contained page |
//! | `figures/*.svg` | its figures |
//! | `start-7` | the start with seed 7, only while a run with several starts is unfinished |
//! | `checkpoint` | only while a run is unfinished |
//!
//! A report is made from the folder alone, so it can be made again later. So is the [report of an
//! experiment](write_experiment).

mod bias;
mod claim;
mod contest;
mod experiment;
mod figures;
mod html;
mod kept;
mod labels;
mod lambda;
mod library;
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

pub(crate) use bias::BiasRecords;
pub(crate) use contest::{ContestRecords, ratio};
pub(crate) use experiment::{ExperimentReport, FEWEST};
pub(crate) use figures::Figure;
pub(crate) use html::{data_name, shell_quoted};
pub(crate) use kept::KeptRecords;
pub use labels::Labels;
pub use library::{read_model, write_experiment, write_run};
pub(crate) use model::arrangement;
pub(crate) use penalties::PenaltyRecord;
pub(crate) use ranks::{RankRecords, RankSettings};
pub(crate) use records::RunRecords;
pub(crate) use run_folder::{RunFolder, UnseenData};
pub(crate) use story::{
    Component, Feature, caution, choice_in_words, components, fit_in_words, percent,
    weights_in_words,
};
pub(crate) use summary::{Choice, Continued, HeldOutShare, SparseRecord, Summary};

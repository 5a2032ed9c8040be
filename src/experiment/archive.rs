//! The folder of an experiment: one small file per fit.
//!
//! ```text
//! experiment.json               the protocol, and the names of the datasets
//! experiment.lock               locked by the process that writes
//! DATASET/dataset.json          the dataset
//! DATASET/truth_W.npy, truth_H.npy
//! DATASET/start-07/CONTENDER.json
//! DATASET/start-07/CONTENDER_W.npy, CONTENDER_H.npy
//! DATASET/start-07/altbi_lambda.npy, altbi_lambda_start.npy
//! ```

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::trial::Fitted;
use super::{Arrangement, Campaign, Contender, Dataset, Protocol, TrialRecord};
use crate::config::Method;
use crate::data::lock::Lock;
use crate::data::{fingerprint, write_npy, write_whole};
use crate::error::{Error, Result};
use crate::factors::Factors;
use crate::metrics::{sparsity_h, sparsity_w};

/// The file that marks the folder of an experiment.
pub(super) const MAIN: &str = "experiment.json";
/// The locked file. Unlike the other one it is never replaced.
const LOCK: &str = "experiment.lock";

/// Version of the format. It is raised when fits of an earlier version must not be mixed with new
/// ones, because their records or their results have changed.
const FORMAT: u32 = 1;

/// The record of a [`Dataset`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DatasetRecord {
    /// Name in file names.
    pub name: String,
    /// Name in headings.
    pub title: String,
    /// Its origin.
    pub origin: String,
    /// (n, m).
    pub shape: [usize; 2],
    /// Number of components.
    pub rank: usize,
    /// The kind of W's columns and H's rows.
    pub layout: Arrangement,
    /// SHA-256 of X.
    pub fingerprint: String,
    /// Percentage of the true W and H that is almost zero, if they are known.
    pub true_sparsity: Option<[f64; 2]>,
}

impl From<&Dataset> for DatasetRecord {
    fn from(dataset: &Dataset) -> Self {
        let sparsity = |truth: &Factors| [sparsity_w(&truth.w), sparsity_h(&truth.h)];
        Self {
            name: dataset.name.clone(),
            title: dataset.title.clone(),
            origin: dataset.origin.clone(),
            shape: [dataset.x.nrows(), dataset.x.ncols()],
            rank: dataset.rank,
            layout: dataset.layout,
            fingerprint: fingerprint(&dataset.x.clone().into()),
            true_sparsity: dataset.truth.as_ref().map(sparsity),
        }
    }
}

/// `experiment.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Contents {
    format: u32,
    pub(super) protocol: Protocol,
    pub(super) datasets: Vec<String>,
    /// The version of altbi that wrote it last.
    pub(super) version: String,
}

/// A folder with finished fits.
#[derive(Debug)]
pub(crate) struct Archive {
    path: PathBuf,
    /// Held while fits are written; the system releases it if the program dies.
    _lock: Lock,
}

impl Archive {
    /// Opens a folder for a campaign, or creates it. Existing fits are kept, so more starts or
    /// datasets can be added with the same data and protocol.
    ///
    /// # Errors
    /// [`Error::NotAnExperiment`] and [`Error::OtherExperiment`] for folders that must not be
    /// written to; [`Error::Busy`]; [`Error::Read`] and [`Error::ConfigFile`] for a damaged folder;
    /// [`Error::Write`].
    pub fn open(path: &Path, campaign: &Campaign<'_>) -> Result<Self> {
        let (protocol, datasets) = (campaign.protocol(), campaign.datasets());
        check_kind(path)?;
        fs::create_dir_all(path).map_err(Error::writing(path))?;
        let lock = lock(path)?;
        check_contents(path, protocol, datasets)?;
        let contents = Contents {
            format: FORMAT,
            protocol: protocol.clone(),
            datasets: datasets.iter().map(|one| one.name.clone()).collect(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        // This comes first: it marks the folder, even if a later step fails.
        write_json(&path.join(MAIN), &contents)?;
        for dataset in datasets {
            let folder = path.join(&dataset.name);
            let record = DatasetRecord::from(dataset);
            write_json(&folder.join("dataset.json"), &record)?;
            if let Some(truth) = &dataset.truth {
                write_npy(&folder.join("truth_W.npy"), &truth.w)?;
                write_npy(&folder.join("truth_H.npy"), &truth.h)?;
            }
        }
        Ok(Self {
            path: path.into(),
            _lock: lock,
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if a folder holds an experiment.
    pub fn is_one(path: &Path) -> bool {
        path.join(MAIN).is_file()
    }

    /// The record of a fit, if all of it is complete.
    pub(super) fn find(
        &self,
        dataset: &str,
        contender: &Contender,
        start: u64,
    ) -> Option<TrialRecord> {
        let path = |ending| trial_path(&self.path, dataset, &contender.name, start, ending);
        let record: TrialRecord = read_json(&path(".json")).ok()?;
        let there = matrices(contender)
            .iter()
            .all(|ending| path(ending).is_file());
        (there && record.is_whole(contender, start)).then_some(record)
    }

    /// Saves a fit. The record is written last, so a record means that the other files exist.
    pub(super) fn keep(&self, dataset: &str, contender: &Contender, fitted: &Fitted) -> Result<()> {
        let start = fitted.record.start;
        let path = |ending| trial_path(&self.path, dataset, &contender.name, start, ending);
        for ending in matrices(contender) {
            let matrix = match *ending {
                W => &fitted.factors.w,
                H => &fitted.factors.h,
                LAMBDA => &fitted.lambda,
                _ => &fitted.lambda_at_start,
            };
            write_npy(&path(ending), matrix)?;
        }
        write_json(&path(".json"), &fitted.record)
    }
}

/// Endings of the files of a fit's matrices.
pub(super) const W: &str = "_W.npy";
pub(super) const H: &str = "_H.npy";
pub(super) const LAMBDA: &str = "_lambda.npy";
pub(super) const LAMBDA_AT_START: &str = "_lambda_start.npy";

/// The files beside a contender's record.
fn matrices(contender: &Contender) -> &'static [&'static str] {
    match (contender.followed, contender.method) {
        (true, Method::AltBi) => &[W, H, LAMBDA, LAMBDA_AT_START],
        (true, _) => &[W, H],
        (false, _) => &[],
    }
}

/// The file of a fit.
pub(super) fn trial_path(
    folder: &Path,
    dataset: &str,
    contender: &str,
    start: u64,
    ending: &str,
) -> PathBuf {
    let file = format!("{contender}{ending}");
    let start = format!("start-{start:02}");
    folder.join(dataset).join(start).join(file)
}

/// `experiment.json` of a folder.
pub(super) fn contents(path: &Path) -> Result<Contents> {
    read_json(&path.join(MAIN))
}

/// `dataset.json` of a dataset.
pub(super) fn dataset_record(path: &Path, dataset: &str) -> Result<DatasetRecord> {
    read_json(&path.join(dataset).join("dataset.json"))
}

pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).map_err(Error::reading(path))?;
    serde_json::from_str(&text).map_err(|error| Error::ConfigFile {
        path: path.into(),
        reason: error.to_string(),
    })
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(value).expect("it is plain data");
    write_whole(path, text.as_bytes())
}

/// Refuses other folders, before anything is written.
fn check_kind(path: &Path) -> Result<()> {
    let refused = |reason| {
        Err(Error::NotAnExperiment {
            path: path.into(),
            reason,
        })
    };
    if Archive::is_one(path) {
        return Ok(());
    }
    match fs::read_dir(path) {
        // A first attempt may have written only its lock.
        Ok(entries) => {
            let stranger = |entry: std::io::Result<fs::DirEntry>| {
                entry.map_or(true, |entry| entry.file_name() != LOCK)
            };
            if entries.into_iter().any(stranger) {
                refused("it holds something else")
            } else {
                Ok(())
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => refused("it is not a folder"),
        Err(source) => Err(Error::reading(path)(source)),
    }
}

/// Refuses other data and another protocol.
fn check_contents(path: &Path, protocol: &Protocol, datasets: &[Dataset]) -> Result<()> {
    if !Archive::is_one(path) {
        return Ok(());
    }
    let other = |what: String, found: String, expected: String| {
        Err(Error::OtherExperiment {
            path: path.into(),
            what,
            found,
            expected,
        })
    };
    let found = contents(path)?;
    if found.format != FORMAT {
        let (found, expected) = (found.format.to_string(), FORMAT.to_string());
        return other("its format is".into(), found, expected);
    }
    let comparable = |protocol: &Protocol| {
        let (max, tolerance) = (protocol.max_iterations, protocol.tolerance);
        let (bunch, initial) = (protocol.bunch, protocol.initial);
        format!("{max} iterations, tolerance {tolerance:e}, T = {bunch}, start {initial:?}")
    };
    let (found, expected) = (comparable(&found.protocol), comparable(protocol));
    if found != expected {
        return other("the protocol is".into(), found, expected);
    }
    for dataset in datasets {
        let record = DatasetRecord::from(dataset);
        let found = match dataset_record(path, &dataset.name) {
            // A first attempt may have ended before this file was written.
            Err(Error::Read { source, .. })
                if source.kind() == ErrorKind::NotFound
                    && !path.join(&dataset.name).join("start-01").exists() =>
            {
                continue;
            }
            found => found?,
        };
        if (&found.fingerprint, found.rank) != (&record.fingerprint, record.rank) {
            let what = format!("benchmark {} is", dataset.name);
            return other(what, found.origin, record.origin);
        }
    }
    Ok(())
}

fn lock(path: &Path) -> Result<Lock> {
    let file = path.join(LOCK);
    let opened = fs::File::options().create(true).append(true).open(&file);
    let file = opened.map_err(Error::writing(&file))?;
    Lock::take(file, path)
}

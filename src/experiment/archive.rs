//! The folder of an experiment: one small file per fit.
//!
//! ```text
//! experiment.json               the protocol, and which datasets there are
//! DATASET/dataset.json          what it is
//! DATASET/truth_W.npy, truth_H.npy
//! DATASET/start-07/CONTENDER.json
//! DATASET/start-07/CONTENDER_W.npy, CONTENDER_H.npy
//! DATASET/start-07/altbi_lambda.npy, altbi_lambda_start.npy
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::trial::Fitted;
use super::{Contender, Dataset, Layout, Protocol, TrialRecord};
use crate::config::Method;
use crate::data::{fingerprint, write_npy, write_whole};
use crate::error::{Error, Result};
use crate::metrics::{sparsity_h, sparsity_w};

/// The file that makes a folder an experiment's.
const MAIN: &str = "experiment.json";

/// What is remembered of a [`Dataset`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatasetRecord {
    /// In file names.
    pub name: String,
    /// In headings.
    pub title: String,
    /// Where it comes from.
    pub origin: String,
    /// (n, m).
    pub shape: [usize; 2],
    /// Components looked for.
    pub rank: usize,
    /// What W and H look like.
    pub layout: Layout,
    /// SHA-256 of X.
    pub fingerprint: String,
    /// Percent of the true W and H that is almost zero, where they are known.
    pub true_sparsity: Option<[f64; 2]>,
}

impl From<&Dataset> for DatasetRecord {
    fn from(dataset: &Dataset) -> Self {
        let sparsity = |truth: &super::Truth| [sparsity_w(&truth.w), sparsity_h(&truth.h)];
        Self {
            name: dataset.name.clone(),
            title: dataset.title.clone(),
            origin: dataset.origin.clone(),
            shape: [dataset.x.nrows(), dataset.x.ncols()],
            rank: dataset.rank,
            layout: dataset.layout,
            fingerprint: fingerprint(&dataset.x),
            true_sparsity: dataset.truth.as_ref().map(sparsity),
        }
    }
}

/// `experiment.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Contents {
    pub(super) protocol: Protocol,
    pub(super) datasets: Vec<String>,
    /// The version of altbi that wrote it last.
    pub(super) version: String,
}

/// A folder with finished fits.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    /// Held while fits are written; the system releases it if the program dies.
    _lock: fs::File,
}

impl Archive {
    /// Opens a folder for an experiment, or makes it. Fits that are there are kept, so
    /// more starts or datasets can join them, if data and protocol are the same.
    ///
    /// # Errors
    /// [`Error::NotAnExperiment`] and [`Error::OtherExperiment`] for what must not be
    /// written to; [`Error::Busy`]; [`Error::Write`].
    pub fn open(path: &Path, protocol: &Protocol, datasets: &[Dataset]) -> Result<Self> {
        check(path, protocol, datasets)?;
        for dataset in datasets {
            let folder = path.join(&dataset.name);
            let record = DatasetRecord::from(dataset);
            write_json(&folder.join("dataset.json"), &record)?;
            if let Some(truth) = &dataset.truth {
                write_npy(&folder.join("truth_W.npy"), &truth.w)?;
                write_npy(&folder.join("truth_H.npy"), &truth.h)?;
            }
        }
        let contents = Contents {
            protocol: protocol.clone(),
            datasets: datasets
                .iter()
                .map(|dataset| dataset.name.clone())
                .collect(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        write_json(&path.join(MAIN), &contents)?;
        Ok(Self {
            path: path.into(),
            _lock: lock(path)?,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a folder holds an experiment.
    pub fn is_one(path: &Path) -> bool {
        path.join(MAIN).is_file()
    }

    /// The record of a fit, if it is there and whole.
    pub(super) fn find(
        &self,
        dataset: &str,
        contender: &Contender,
        start: u64,
    ) -> Option<TrialRecord> {
        read_json(&trial_path(
            &self.path,
            dataset,
            &contender.name,
            start,
            ".json",
        ))
        .ok()
    }

    /// Keeps a fit. The record comes last: where it is, the rest is.
    pub(super) fn keep(&self, dataset: &str, contender: &Contender, fitted: &Fitted) -> Result<()> {
        let start = fitted.record.start;
        let path = |ending| trial_path(&self.path, dataset, &contender.name, start, ending);
        let record = path(".json");
        let folder = crate::data::folder_of(&record);
        fs::create_dir_all(folder).map_err(|source| Error::Write {
            path: folder.into(),
            source,
        })?;
        if contender.followed {
            write_npy(&path("_W.npy"), &fitted.factors.w)?;
            write_npy(&path("_H.npy"), &fitted.factors.h)?;
        }
        if contender.method == Method::AltBi {
            write_npy(&path("_lambda.npy"), &fitted.lambda)?;
            write_npy(&path("_lambda_start.npy"), &fitted.lambda_at_start)?;
        }
        write_json(&record, &fitted.record)
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
    folder
        .join(dataset)
        .join(format!("start-{start:02}"))
        .join(file)
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
    let text = fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.into(),
        source,
    })?;
    serde_json::from_str(&text).map_err(|error| Error::ConfigFile {
        path: path.into(),
        reason: error.to_string(),
    })
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(value).expect("it is plain data");
    write_whole(path, text.as_bytes())
}

/// Refuses folders that are something else, before anything is written.
fn check(path: &Path, protocol: &Protocol, datasets: &[Dataset]) -> Result<()> {
    let refused = |reason| {
        Err(Error::NotAnExperiment {
            path: path.into(),
            reason,
        })
    };
    if !Archive::is_one(path) {
        let first = fs::read_dir(path).map(|mut entries| entries.next().is_some());
        return match first {
            Ok(true) => refused("it holds something else"),
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
                refused("it is not a folder")
            }
            _ => Ok(()),
        };
    }
    drop(lock(path)?);
    let other = |what: String, found: String, expected: String| Error::OtherExperiment {
        path: path.into(),
        what,
        found,
        expected,
    };
    let found = contents(path)?.protocol;
    let comparable = |protocol: &Protocol| {
        let (max, tol) = (protocol.max_iterations, protocol.tolerance);
        format!(
            "{max} iterations, tolerance {tol:e}, T = {}",
            protocol.bunch
        )
    };
    if comparable(&found) != comparable(protocol) {
        let (found, expected) = (comparable(&found), comparable(protocol));
        return Err(other("the protocol is".into(), found, expected));
    }
    for dataset in datasets {
        let record = DatasetRecord::from(dataset);
        let Ok(found) = dataset_record(path, &dataset.name) else {
            continue;
        };
        if (&found.fingerprint, found.rank) != (&record.fingerprint, record.rank) {
            let what = format!("benchmark {} is", dataset.name);
            return Err(other(what, found.origin, record.origin));
        }
    }
    Ok(())
}

fn lock(path: &Path) -> Result<fs::File> {
    let main = path.join(MAIN);
    let file = fs::File::open(&main).map_err(|source| Error::Read { path: main, source })?;
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Err(Error::Busy { path: path.into() }),
        // A file system without locks must do without them.
        Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(file),
    }
}

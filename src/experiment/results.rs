//! An archive, read back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ndarray::Array2;

use super::archive::{contents, dataset_record, read_json, trial_path};
use super::{Contender, DatasetRecord, Measure, Moment, Protocol, TrialRecord, Truth};
use crate::data::read_matrix;
use crate::error::{Error, Result};
use crate::metrics::Spread;

/// Everything that an experiment found out.
#[derive(Debug, Clone)]
pub struct Results {
    /// How it was run.
    pub protocol: Protocol,
    /// One entry per dataset.
    pub datasets: Vec<DatasetResults>,
    /// Where it lies.
    pub path: PathBuf,
    /// The version of altbi that made it.
    pub version: String,
}

/// What it found out about one dataset.
#[derive(Debug, Clone)]
pub struct DatasetResults {
    /// The dataset.
    pub dataset: DatasetRecord,
    /// The fits of each contender by name, in the order of their starts.
    pub trials: BTreeMap<String, Vec<TrialRecord>>,
    folder: PathBuf,
}

impl Results {
    /// Reads a folder.
    ///
    /// # Errors
    /// [`Error::Read`] and [`Error::ConfigFile`] for files that are missing or
    /// damaged; [`Error::UnfinishedExperiment`].
    pub fn read(path: &Path) -> Result<Self> {
        let contents = contents(path)?;
        let runs = contents.protocol.runs as u64;
        let (mut done, mut wanted) = (0, 0);
        let mut datasets = Vec::new();
        for name in &contents.datasets {
            let mut trials = BTreeMap::new();
            for contender in Contender::all() {
                let files =
                    (1..=runs).map(|start| trial_path(path, name, &contender.name, start, ".json"));
                let present: Vec<PathBuf> = files.filter(|file| file.exists()).collect();
                wanted += runs as usize;
                done += present.len();
                let records: Result<Vec<TrialRecord>> =
                    present.iter().map(|file| read_json(file)).collect();
                trials.insert(contender.name, records?);
            }
            datasets.push(DatasetResults {
                dataset: dataset_record(path, name)?,
                trials,
                folder: path.into(),
            });
        }
        if done < wanted {
            return Err(Error::UnfinishedExperiment {
                path: path.into(),
                done,
                wanted,
            });
        }
        Ok(Self {
            protocol: contents.protocol,
            datasets,
            path: path.into(),
            version: contents.version,
        })
    }
}

impl DatasetResults {
    /// A measure of every fit of a contender, in the order of starts; empty where it is
    /// not known.
    pub fn values(&self, contender: &str, moment: Moment, measure: Measure) -> Vec<f64> {
        let trials = self.trials.get(contender).into_iter().flatten();
        trials
            .filter_map(|trial| measure.of(trial.moments.get(&moment)?))
            .collect()
    }

    /// Mean, deviation and quartiles of a measure; `None` where it is not known.
    pub fn spread(&self, contender: &str, moment: Moment, measure: Measure) -> Option<Spread> {
        Spread::of(&self.values(contender, moment, measure))
    }

    /// The start whose AltBi is in the middle: by SIR of W, or by relative error.
    /// Neither the best nor the worst to look at.
    pub fn middle_start(&self) -> u64 {
        let trials = self.trials.get("altbi").into_iter().flatten();
        let mut ranked: Vec<(f64, u64)> = trials
            .filter_map(|trial| {
                let measures = trial.moments.get(&Moment::Stopped)?;
                let value = measures.sir_w.unwrap_or(-measures.relative_error);
                Some((value, trial.start))
            })
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        ranked.get(ranked.len() / 2).map_or(1, |(_, start)| *start)
    }

    /// The true factors, where they are known.
    ///
    /// # Errors
    /// Those of reading them.
    pub fn truth(&self) -> Result<Option<Truth>> {
        if self.dataset.true_sparsity.is_none() {
            return Ok(None);
        }
        let folder = self.folder.join(&self.dataset.name);
        Ok(Some(Truth {
            w: read_matrix(&folder.join("truth_W.npy"))?,
            h: read_matrix(&folder.join("truth_H.npy"))?,
        }))
    }

    fn matrix(&self, contender: &str, start: u64, ending: &str) -> Result<Array2<f64>> {
        let name = &self.dataset.name;
        read_matrix(&trial_path(&self.folder, name, contender, start, ending))
    }

    /// The factors that a compared contender found, at the stopping rule.
    ///
    /// # Errors
    /// Those of reading them.
    pub fn factors(&self, contender: &str, start: u64) -> Result<Truth> {
        Ok(Truth {
            w: self.matrix(contender, start, "_W.npy")?,
            h: self.matrix(contender, start, "_H.npy")?,
        })
    }

    /// AltBi's λ, first and last (at the stopping rule).
    ///
    /// # Errors
    /// Those of reading them.
    pub fn lambda(&self, start: u64) -> Result<[Array2<f64>; 2]> {
        Ok([
            self.matrix("altbi", start, "_lambda_start.npy")?,
            self.matrix("altbi", start, "_lambda.npy")?,
        ])
    }
}

//! The results of an experiment, read from its archive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ndarray::Array2;

use super::archive::{
    H, LAMBDA, LAMBDA_AT_START, MAIN, W, contents, dataset_record, read_json, trial_path,
};
use super::campaign::STARTS;
use super::{Arrangement, Contender, DatasetRecord, Measure, Moment, Protocol, TrialRecord};
use crate::data::read_matrix;
use crate::error::{Error, Result};
use crate::factors::Factors;
use crate::metrics::Spread;

/// The results of an experiment.
#[derive(Debug, Clone)]
pub struct Results {
    /// Its protocol.
    pub protocol: Protocol,
    /// One entry per dataset.
    pub datasets: Vec<DatasetResults>,
    /// Its folder.
    pub path: PathBuf,
    /// The version of altbi that made it.
    pub version: String,
}

/// The results of one dataset.
#[derive(Debug, Clone)]
pub struct DatasetResults {
    /// The dataset.
    pub(crate) dataset: DatasetRecord,
    /// The fits of each contender by name, in the order of their starts.
    pub(crate) trials: BTreeMap<String, Vec<TrialRecord>>,
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
        let runs = contents.protocol.runs;
        if !STARTS.contains(&runs) {
            let reason = format!("{runs} starts are outside 1 … 1000");
            return Err(damaged(&path.join(MAIN), reason));
        }
        let (mut done, mut wanted) = (0, 0);
        let mut datasets = Vec::new();
        for name in &contents.datasets {
            let mut trials = BTreeMap::new();
            for contender in Contender::all() {
                let mut records = Vec::new();
                for start in 1..=runs as u64 {
                    let file = trial_path(path, name, &contender.name, start, ".json");
                    wanted += 1;
                    if !file.exists() {
                        continue;
                    }
                    done += 1;
                    let record: TrialRecord = read_json(&file)?;
                    if !record.is_whole(&contender, start) {
                        return Err(damaged(&file, "it is not a whole record".into()));
                    }
                    records.push(record);
                }
                trials.insert(contender.name, records);
            }
            let dataset = dataset_record(path, name)?;
            let [_, m] = dataset.shape;
            if let Arrangement::Maps { side } = dataset.layout
                && side.checked_mul(side) != Some(m)
            {
                let reason = format!("maps of {side}×{side} pixels do not have {m} entries");
                return Err(damaged(&path.join(name).join("dataset.json"), reason));
            }
            datasets.push(DatasetResults {
                dataset,
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
    /// The dataset's name.
    pub fn name(&self) -> &str {
        &self.dataset.name
    }

    /// A measure of every fit of a contender (`altbi`, `mu`, `p-mu`, `mu-t`, `frozen`), in the order
    /// of starts. Empty if it is unknown.
    pub fn values(&self, contender: &str, moment: Moment, measure: Measure) -> Vec<f64> {
        let trials = self.trials.get(contender).into_iter().flatten();
        trials
            .filter_map(|trial| measure.of(trial.moments.get(&moment)?))
            .collect()
    }

    /// The number of fits that broke down. The state before the breakdown counts for each.
    pub fn breakdowns(&self) -> usize {
        let trials = self.trials.values().flatten();
        trials.filter(|trial| trial.breakdown.is_some()).count()
    }

    /// Mean, deviation and quartiles of a measure. `None` if it is unknown.
    pub(crate) fn spread(
        &self,
        contender: &str,
        moment: Moment,
        measure: Measure,
    ) -> Option<Spread> {
        Spread::of(&self.values(contender, moment, measure))
    }

    /// The start with the median result of AltBi, for figures: by SIR of W if the true factors are
    /// known, otherwise by relative error.
    pub(crate) fn middle_start(&self) -> u64 {
        let trials = self.trials.get("altbi").into_iter().flatten();
        let mut ranked: Vec<(f64, u64)> = trials
            .filter_map(|trial| {
                let measures = trial.moments.get(&Moment::Stopped)?;
                let value = measures.sir_w.unwrap_or(-measures.relative_error);
                Some((value, trial.start))
            })
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        let middle = ranked.len().saturating_sub(1) / 2;
        ranked.get(middle).map_or(1, |(_, start)| *start)
    }

    /// The true factors, if they are known.
    ///
    /// # Errors
    /// Those of reading them; [`Error::Shape`].
    pub fn truth(&self) -> Result<Option<Factors>> {
        if self.dataset.true_sparsity.is_none() {
            return Ok(None);
        }
        let folder = self.folder.join(&self.dataset.name);
        let w = read_matrix(&folder.join("truth_W.npy"))?;
        let [n, m] = self.dataset.shape;
        let rank = w.ncols();
        Ok(Some(Factors {
            w: shaped("the true W", w, [n, rank])?,
            h: shaped(
                "the true H",
                read_matrix(&folder.join("truth_H.npy"))?,
                [rank, m],
            )?,
        }))
    }

    fn matrix(&self, contender: &str, start: u64, ending: &str) -> Result<Array2<f64>> {
        let name = &self.dataset.name;
        read_matrix(&trial_path(&self.folder, name, contender, start, ending))
    }

    /// The factors of a compared contender at the stopping rule.
    ///
    /// # Errors
    /// Those of reading them; [`Error::Shape`].
    pub fn factors(&self, contender: &str, start: u64) -> Result<Factors> {
        let ([n, m], rank) = (self.dataset.shape, self.dataset.rank);
        Ok(Factors {
            w: shaped("W", self.matrix(contender, start, W)?, [n, rank])?,
            h: shaped("H", self.matrix(contender, start, H)?, [rank, m])?,
        })
    }

    /// AltBi's λ, first and last (at the stopping rule), n×1 each.
    ///
    /// # Errors
    /// Those of reading them; [`Error::Shape`].
    pub fn lambda(&self, start: u64) -> Result<[Array2<f64>; 2]> {
        let [n, _] = self.dataset.shape;
        let read = |ending| shaped("λ", self.matrix("altbi", start, ending)?, [n, 1]);
        Ok([read(LAMBDA_AT_START)?, read(LAMBDA)?])
    }

    /// The same, row by row, for rows in which λ has an effect: those in which AltBi's W has a
    /// positive entry. (A row of zeros in X makes W's row zero in one update, and its λ then no
    /// longer moves.)
    pub(crate) fn acting_lambda(&self, start: u64) -> Result<Vec<ActingLambda>> {
        let [first, last] = self.lambda(start)?;
        let w = self.factors("altbi", start)?.w;
        let rows = w.rows().into_iter().enumerate();
        Ok(rows
            .filter(|(_, row)| row.iter().any(|entry| *entry > 0.0))
            .map(|(row, _)| ActingLambda {
                row,
                first: first[[row, 0]],
                last: last[[row, 0]],
            })
            .collect())
    }
}

/// λ of one row of W.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ActingLambda {
    /// The row.
    pub row: usize,
    /// λ at the start.
    pub first: f64,
    /// λ at the stopping rule.
    pub last: f64,
}

fn damaged(path: &Path, reason: String) -> Error {
    Error::ConfigFile {
        path: path.into(),
        reason,
    }
}

fn shaped(what: &'static str, matrix: Array2<f64>, expected: [usize; 2]) -> Result<Array2<f64>> {
    Error::require_shape(what, matrix.dim(), expected)?;
    Ok(matrix)
}

//! The run folder. Each file in it is complete or absent.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ndarray::Array2;
use parking_lot::Mutex;
use serde::Serialize;
use tempfile::TempDir;

use super::PenaltyRecord;
use super::Summary;
use super::claim::{CHECKPOINT, sweep};
use super::labels::{self, Labels};
use crate::data::lock::Lock;
use crate::data::{Reservation, Table, matrix_market, write_npy, write_npy_values, write_whole};
use crate::error::{Error, Result};
use crate::factors::Side;
use crate::solver::{Outcome, Record};
use crate::sparse::SparseMatrix;

/// Data that the updates did not see.
pub(crate) enum UnseenData<'a> {
    /// Every entry, row by row.
    Dense {
        /// (n, m).
        shape: (usize, usize),
        /// They are computed while the file is written.
        values: Box<dyn Iterator<Item = f64> + 'a>,
    },
    /// The stored entries.
    Sparse(Cow<'a, SparseMatrix>),
}

/// A folder that a run writes into. It is reserved at once, and removed if nothing was written into
/// it, so that bad input leaves nothing behind.
#[derive(Debug, Clone)]
pub(crate) struct RunFolder {
    pub(super) path: PathBuf,
    /// True if an older run of this name may be replaced.
    pub(super) replace: bool,
    /// An older run that was replaced, kept until the new one is written.
    pub(super) old: Arc<Mutex<Option<TempDir>>>,
    /// Held while a run writes here; the system releases it if the program dies.
    pub(super) lock: Arc<Mutex<Option<Lock>>>,
    /// The reservation of an empty folder.
    pub(super) reservation: Arc<Mutex<Option<Reservation>>>,
}

impl RunFolder {
    /// A new run's folder, reserved before the run begins, so that no work is lost.
    ///
    /// # Errors
    /// [`Error::RunFolderExists`] if it exists and may not be replaced; [`Error::Busy`] if another
    /// run has it; [`Error::NotARunFolder`] if it was not made by altbi; [`Error::Write`] if the
    /// path is not writable.
    pub fn new(path: &Path, replace: bool) -> Result<Self> {
        let folder = Self::at(path, replace);
        folder.reserve()?;
        Ok(folder)
    }

    pub(super) fn at(path: &Path, replace: bool) -> Self {
        Self {
            path: path.into(),
            replace,
            old: Arc::default(),
            lock: Arc::default(),
            reservation: Arc::default(),
        }
    }

    /// An existing folder.
    ///
    /// # Errors
    /// [`Error::Read`] if it does not.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = Error::reading(path);
        match fs::metadata(path).map_err(&failed)?.is_dir() {
            true => Ok(Self::at(path, false)),
            false => Err(failed(std::io::ErrorKind::NotADirectory.into())),
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file under a temporary name, flushes it to the disk and renames it.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write(&self, name: &str, contents: &[u8]) -> Result<()> {
        write_whole(&self.path.join(name), contents)
    }

    /// Writes the results of a run. The summary comes last, because it means that the other files
    /// exist. Then a replaced older run is removed.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write_results<Settings: Serialize>(
        &self,
        outcome: &Outcome,
        summary: &Summary<Settings>,
        labels: &Labels,
        tables: bool,
        held_out: Option<(&str, UnseenData<'_>)>,
    ) -> Result<()> {
        for (name, matrix) in [("W.npy", &outcome.w), ("H.npy", &outcome.h)] {
            write_npy(&self.path.join(name), matrix)?;
        }
        self.write_weights(outcome)?;
        if let Some(scaling) = outcome.scaling() {
            write_npy(&self.path.join("scale.npy"), &scaling.to_matrix())?;
        }
        match held_out {
            None => {}
            Some((name, UnseenData::Dense { shape, values })) => {
                write_npy_values(&self.path.join(format!("{name}.npy")), shape, values)?;
            }
            Some((name, UnseenData::Sparse(matrix))) => {
                let text = matrix_market(&matrix);
                self.write(&format!("{name}.mtx"), text.as_bytes())?;
            }
        }
        if !labels.is_empty() {
            let json = serde_json::to_string(labels).expect("names are plain data");
            self.write(labels::FILE, json.as_bytes())?;
        }
        if tables {
            let components: Vec<String> = (1..=outcome.w.ncols())
                .map(|k| format!("component {k}"))
                .collect();
            let w = Table {
                row_labels: labels.rows.clone(),
                column_labels: Some(components.clone()),
                ..Table::from(outcome.w.clone())
            };
            let h = Table {
                row_labels: Some(components),
                column_labels: labels.columns.clone(),
                ..Table::from(outcome.h.clone())
            };
            self.write("W.csv", w.to_csv().as_bytes())?;
            self.write("H.csv", h.to_csv().as_bytes())?;
            self.write("lambda.csv", lambda_csv(outcome, labels).as_bytes())?;
        }
        self.write("history.csv", history_csv(&outcome.history).as_bytes())?;
        let json = serde_json::to_string_pretty(summary).expect("a summary is plain data");
        self.write("summary.json", (json + "\n").as_bytes())?;
        self.old.lock().take();
        Ok(())
    }

    /// The weights of every penalty ([`PenaltyRecord::all_of`]). The file of W's λ always exists:
    /// without a penalty λ is 0.
    fn write_weights(&self, outcome: &Outcome) -> Result<()> {
        let write = |name: &str, matrix: &Array2<f64>| write_npy(&self.path.join(name), matrix);
        let records = PenaltyRecord::all_of(outcome);
        for (record, group) in records.iter().zip(outcome.weights()) {
            write(&record.lambda, &group.lambda)?;
            write(&record.lambda_start, &group.at_start)?;
        }
        if !records.iter().any(|record| record.factor == Side::W) {
            let none = Array2::zeros((outcome.w.nrows(), 1));
            write("lambda.npy", &none)?;
            write("lambda_start.npy", &none)?;
        }
        Ok(())
    }

    /// Removes the checkpoint and temporary files, which only an unfinished run needs.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn finish(&self) -> Result<()> {
        sweep(&self.path)?;
        self.remove_starts()?;
        self.remove_checkpoint()
    }

    /// Writes the checkpoint over an older one.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write_checkpoint(&self, bytes: &[u8]) -> Result<()> {
        self.write(CHECKPOINT, bytes)
    }

    /// The checkpoint's bytes.
    ///
    /// # Errors
    /// [`Error::NoCheckpoint`] for a run that is finished or has written none; [`Error::Read`].
    pub fn read_checkpoint(&self) -> Result<Vec<u8>> {
        let path = self.path.join(CHECKPOINT);
        match fs::read(&path) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let finished = self.path.join("summary.json").exists();
                Err(Error::NoCheckpoint {
                    path: self.path.clone(),
                    reason: if finished {
                        "the run is finished"
                    } else {
                        "it is not a run folder, or the run ended before its first checkpoint"
                    },
                })
            }
            Err(source) => Err(Error::Read { path, source }),
        }
    }

    fn remove_checkpoint(&self) -> Result<()> {
        let path = self.path.join(CHECKPOINT);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::Write { path, source })
            }
            _ => Ok(()),
        }
    }

    /// The text of `config.toml`.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn read_config(&self) -> Result<String> {
        let path = self.path.join("config.toml");
        fs::read_to_string(&path).map_err(Error::reading(&path))
    }
}

/// The history with a header. Numbers have the shortest form that gives the same value when read.
fn history_csv(history: &[Record]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in history {
        writer.serialize(record).expect("a record is plain data");
    }
    into_text(writer)
}

/// One row per weight: penalty, factor, label, and λ.
fn lambda_csv(outcome: &Outcome, labels: &Labels) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head = ["penalty", "factor", "label", "lambda"];
    writer.write_record(head).expect("writing to memory");
    for group in outcome.weights() {
        let (factor, scope) = (format!("{:?}", group.side), group.scope.to_string());
        for (place, lambda) in group.lambda.indexed_iter() {
            let label = labels::weight_name(labels, (group.side, &scope), place);
            let row = [&group.penalty, &factor, &label, &lambda.to_string()];
            writer.write_record(row).expect("writing to memory");
        }
    }
    into_text(writer)
}

fn into_text(writer: csv::Writer<Vec<u8>>) -> String {
    let bytes = writer.into_inner().expect("memory does not fail to flush");
    String::from_utf8(bytes).expect("numbers are text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AltBiConfig;
    use crate::data::{benchmark_a, read_matrix};

    fn outcome() -> (Outcome, Summary<AltBiConfig>) {
        let config = AltBiConfig::new(2).with_max_iterations(3);
        let x = benchmark_a(12, 8, 2, 3).x;
        let outcome = config.fit(&x).unwrap();
        let summary = Summary::new(config, 0, "hash".into(), &outcome, None, None);
        (outcome, summary)
    }

    #[test]
    fn a_folder_holds_everything_and_is_not_overwritten() {
        let (outcome, summary) = outcome();
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("new/run");
        let folder = RunFolder::new(&path, false).unwrap();
        folder.create("rank = 2\n", &[]).unwrap();
        folder.write_checkpoint(b"bytes").unwrap();
        assert_eq!(folder.read_checkpoint().unwrap(), b"bytes");
        folder
            .write_results(&outcome, &summary, &Labels::default(), false, None)
            .unwrap();
        assert!(!path.join("lambda.csv").exists());
        let lambda = lambda_csv(&outcome, &Labels::default());
        assert!(lambda.starts_with("penalty,factor,label,lambda\nl1,W,row 1,"));
        assert_eq!(lambda.lines().count(), 13);
        fs::write(path.join(".altbi-half"), "x").unwrap();
        folder.finish().unwrap();
        assert!(!path.join(".altbi-half").exists());
        assert!(matches!(
            folder.read_checkpoint(),
            Err(Error::NoCheckpoint {
                reason: "the run is finished",
                ..
            })
        ));
        assert_eq!(read_matrix(&path.join("W.npy")).unwrap(), outcome.w);
        assert_eq!(
            read_matrix(&path.join("lambda.npy")).unwrap(),
            outcome.lambda
        );
        assert_eq!(folder.read_config().unwrap(), "rank = 2\n");
        let history = fs::read_to_string(path.join("history.csv")).unwrap();
        let mut lines = history.lines();
        assert_eq!(
            lines.next().unwrap(),
            "iteration,divergence,objective,outer_error,relative_change,lambda_min,\
             lambda_median,lambda_max,hypergradient_norm,seconds"
        );
        assert_eq!(lines.count(), 4);
        let json = fs::read_to_string(path.join("summary.json")).unwrap();
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["divergence"].as_f64().unwrap(), outcome.divergence);

        // While one run writes here, another is refused.
        let other = RunFolder::open(&path).unwrap();
        assert!(matches!(other.lock(), Err(Error::Busy { .. })));
        drop(folder);
        assert!(other.lock().is_ok());
        drop(other);

        let again = RunFolder::new(&path, false);
        assert!(matches!(again, Err(Error::RunFolderExists { .. })));
        // altbi does not delete files that it did not make.
        fs::write(path.join("thesis"), "x").unwrap();
        let refused = RunFolder::new(&path, true);
        assert!(matches!(refused, Err(Error::NotARunFolder { .. })));
        fs::remove_file(path.join("thesis")).unwrap();
        // An older run is restored if the new one cannot be written,
        let new = RunFolder::new(&path, true).unwrap();
        new.create("", &[("data.csv", "1,2\n".into())]).unwrap();
        assert!(!path.join("W.npy").exists() && path.join("data.csv").exists());
        new.discard();
        assert_eq!(read_matrix(&path.join("W.npy")).unwrap(), outcome.w);
        // and removed when it is.
        new.create("", &[]).unwrap();
        new.write_results(&outcome, &summary, &Labels::default(), false, None)
            .unwrap();
        // A folder that existed before stays.
        let late = parent.path().join("new/late");
        fs::create_dir(&late).unwrap();
        let refused = RunFolder::new(&late, false);
        assert!(matches!(refused, Err(Error::RunFolderExists { .. })));
        fs::remove_dir(&late).unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "x").unwrap();
        let refused = RunFolder::new(&file, true);
        assert!(matches!(refused, Err(Error::NotARunFolder { .. })));
        let below = RunFolder::new(&file.join("run"), false);
        assert!(matches!(below, Err(Error::Write { .. })));
        let left: Vec<_> = fs::read_dir(parent.path().join("new")).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing is left beside the run folder");
    }
}

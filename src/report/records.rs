//! A run folder, read back.

use std::fs;
use std::path::{Path, PathBuf};

use ndarray::Array2;
use serde_json::Value;

use super::figures::{Figure, figures};
use super::html::run_page;
use super::run_folder::RunFolder;
use crate::data::read_matrix;
use crate::error::{Error, Result};
use crate::solver::Record;

/// Everything that a report is made of.
#[derive(Debug, Clone)]
pub struct RunRecords {
    /// W, n×r.
    pub w: Array2<f64>,
    /// H, r×m.
    pub h: Array2<f64>,
    /// λ at the end, n×1.
    pub lambda: Array2<f64>,
    /// λ at the start, n×1.
    pub lambda_start: Array2<f64>,
    /// The history.
    pub history: Vec<Record>,
    /// `summary.json`.
    pub summary: Value,
    /// `config.toml`.
    pub config: toml::Table,
    /// Where it lies.
    pub config_path: PathBuf,
}

impl RunRecords {
    /// Reads a run folder.
    ///
    /// # Errors
    /// [`Error::Read`] and the readers' errors for a file that is missing or
    /// damaged, by name.
    pub fn read(folder: &Path) -> Result<Self> {
        let text = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|source| Error::Read { path, source })
        };
        let broken = |name: &str, reason: String| Error::ConfigFile {
            path: folder.join(name),
            reason,
        };
        if folder.join("checkpoint").exists() && !folder.join("summary.json").exists() {
            return Err(Error::Unfinished {
                path: folder.into(),
            });
        }
        let matrix = |name: &str| read_matrix(&folder.join(name));
        let history = text("history.csv")?;
        let history = csv::Reader::from_reader(history.as_bytes())
            .deserialize()
            .collect::<std::result::Result<Vec<Record>, _>>()
            .map_err(|error| broken("history.csv", error.to_string()))?;
        let summary = serde_json::from_str(&text("summary.json")?)
            .map_err(|error| broken("summary.json", error.to_string()))?;
        let config = text("config.toml")?
            .parse()
            .map_err(|error: toml::de::Error| broken("config.toml", error.to_string()))?;
        let config_path = folder.join("config.toml");
        let records = Self {
            w: matrix("W.npy")?,
            h: matrix("H.npy")?,
            lambda: matrix("lambda.npy")?,
            lambda_start: matrix("lambda_start.npy")?,
            history,
            summary,
            config,
            config_path: std::path::absolute(&config_path).unwrap_or(config_path),
        };
        if records.history.is_empty() {
            return Err(broken("history.csv", "it is empty".into()));
        }
        for (name, matrix) in [
            ("lambda.npy", &records.lambda),
            ("lambda_start.npy", &records.lambda_start),
            ("H.npy", &records.h),
        ] {
            let fits = match name {
                "H.npy" => matrix.nrows() == records.w.ncols(),
                _ => matrix.nrows() == records.w.nrows(),
            };
            if !fits || matrix.is_empty() {
                return Err(broken(name, "it does not fit W.npy".into()));
            }
        }
        Ok(records)
    }

    /// The pictures.
    pub fn figures(&self) -> Vec<Figure> {
        figures(self)
    }

    /// Writes `report.html` and `figures/*.svg` into the folder.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write_report(&self, folder: &RunFolder) -> Result<PathBuf> {
        let figures = self.figures();
        for figure in &figures {
            folder.write(
                &format!("figures/{}.svg", figure.name),
                figure.svg.as_bytes(),
            )?;
        }
        folder.write("report.html", run_page(self, &figures).as_bytes())?;
        Ok(folder.path().join("report.html"))
    }

    /// The settings as text, in the order of the file.
    pub(super) fn settings(&self) -> Vec<(String, String)> {
        let text = |value: &toml::Value| match value {
            toml::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let entries = self.config.iter();
        entries
            .map(|(key, value)| (key.clone(), text(value)))
            .collect()
    }

    /// "KL divergence, l1 penalty, method altbi".
    pub(super) fn method_sentence(&self) -> String {
        let setting = |key: &str| {
            let value = self.config.get(key).and_then(toml::Value::as_str);
            value.unwrap_or("?").to_owned()
        };
        format!(
            "method {}, {} divergence, {} penalty",
            setting("method"),
            setting("divergence"),
            setting("penalty")
        )
    }
}

//! The records of a run, read from its folder.

use std::fs;
use std::path::{Path, PathBuf};

use ndarray::Array2;
use serde_json::Value;

use super::figures::{Figure, figures, is_figure};
use super::html::run_page;
use super::labels::Labels;
use super::run_folder::RunFolder;
use super::starts::has_starts;
use super::{Choice, PenaltyRecord};
use crate::data::read_matrix;
use crate::error::{Error, Result};
use crate::factors::Side;
use crate::practical::Stage;
use crate::solver::Record;

/// The data of a report.
#[derive(Debug, Clone)]
pub(crate) struct RunRecords {
    /// W, n×r.
    pub w: Array2<f64>,
    /// H, r×m.
    pub h: Array2<f64>,
    /// λ at the end, all weights of all penalties as a column.
    pub lambda: Array2<f64>,
    /// λ at the start, likewise.
    pub lambda_start: Array2<f64>,
    /// λ at the end, penalty by penalty: "smooth on W" and its weights.
    pub groups: Vec<(String, Array2<f64>)>,
    /// The history.
    pub history: Vec<Record>,
    /// `summary.json`.
    pub summary: Value,
    /// The candidates of the preset practical.
    pub choice: Option<Choice>,
    /// The tuned penalties.
    pub penalties: Vec<PenaltyRecord>,
    /// The names of the data's rows and columns.
    pub labels: Labels,
    /// `config.toml`.
    pub config: toml::Table,
    /// The path of `config.toml`.
    pub config_path: PathBuf,
}

impl RunRecords {
    /// Reads a run folder.
    ///
    /// # Errors
    /// [`Error::NoRun`]; [`Error::Read`] and the readers' errors for a missing or damaged file,
    /// with its name.
    pub fn read(folder: &Path) -> Result<Self> {
        let text = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(Error::reading(&path))
        };
        let broken = |name: &str, reason: String| Error::ConfigFile {
            path: folder.join(name),
            reason,
        };
        let has = |name: &str| folder.join(name).exists();
        if folder.is_dir() && !has("summary.json") && !has("config.toml") {
            return Err(Error::NoRun {
                path: folder.into(),
            });
        }
        let begun = has("checkpoint") || has_starts(folder);
        if begun && !has("summary.json") {
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
        let summary: Value = serde_json::from_str(&text("summary.json")?)
            .map_err(|error| broken("summary.json", error.to_string()))?;
        let config: toml::Table = text("config.toml")?
            .parse()
            .map_err(|error: toml::de::Error| broken("config.toml", error.to_string()))?;
        let penalties = summary.get("penalties").cloned().unwrap_or_default();
        let penalties: Vec<PenaltyRecord> = serde_json::from_value(penalties).unwrap_or_default();
        let choice = serde_json::from_value(summary["choice"].clone()).unwrap_or_default();
        let groups = weights(folder, &penalties, |one| &one.lambda)?;
        let config_path = folder.join("config.toml");
        let records = Self {
            labels: Labels::read(folder)?,
            w: matrix("W.npy")?,
            h: matrix("H.npy")?,
            lambda: column(&groups),
            lambda_start: column(&weights(folder, &penalties, |one| &one.lambda_start)?),
            groups,
            choice,
            penalties,
            history,
            summary,
            config,
            config_path: std::path::absolute(&config_path).unwrap_or(config_path),
        };
        if records.history.is_empty() {
            return Err(broken("history.csv", "it is empty".into()));
        }
        if records.h.nrows() != records.w.ncols() || records.h.is_empty() {
            return Err(broken("H.npy", "it does not fit W.npy".into()));
        }
        if records.lambda.len() != records.lambda_start.len() || records.lambda.is_empty() {
            let reason = "it does not fit lambda_start.npy";
            return Err(broken("lambda.npy", reason.into()));
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
            // Otherwise --force would refuse the folder.
            assert!(is_figure(&figure.name), "{}", figure.name);
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

    /// The weight of the entries of the history's divergence.
    pub(super) fn training_entries(&self) -> Option<f64> {
        let training = self.summary["held_out"]["training_weight"].as_f64();
        let entries = training.or_else(|| self.summary["entries"].as_f64());
        entries.filter(|entries| *entries > 0.0)
    }

    /// Returns true if plain updates won in the preset practical.
    pub(super) fn is_plain(&self) -> bool {
        let choice = self.choice.as_ref();
        let taken = choice.and_then(|choice| choice.candidates.get(choice.chosen));
        taken.is_some_and(|taken| taken.stage == Stage::Plain)
    }

    /// True if every λ is and was 0, as with plain multiplicative updates.
    pub(super) fn is_unpenalised(&self) -> bool {
        let mut weights = self.lambda.iter().chain(&self.lambda_start);
        weights.all(|weight| *weight == 0.0)
    }

    /// "smooth on W, l1 on H".
    pub(super) fn penalty_names(&self) -> String {
        let names: Vec<String> = self.penalties.iter().map(PenaltyRecord::describe).collect();
        names.join(", ")
    }

    /// Returns true if the winner of the preset practical was refitted to all data.
    pub(super) fn is_refitted(&self) -> bool {
        self.choice.is_some() && self.setting::<usize>("refit").ok() != Some(0)
    }

    /// "AltBi, kl divergence, l1 penalty".
    pub(super) fn method_sentence(&self) -> String {
        let setting = |key: &str| {
            let value = self.config.get(key).and_then(toml::Value::as_str);
            value.unwrap_or("?").to_owned()
        };
        let penalties = &self.penalties;
        let on = |side: Side| {
            let names = penalties.iter().filter(|one| one.factor == side);
            let names: Vec<&str> = names.map(|one| one.penalty.as_str()).collect();
            names.join("+")
        };
        let penalty = match (on(Side::W), on(Side::H)) {
            (of_w, of_h) if of_h.is_empty() => format!("{of_w} penalty"),
            (of_w, of_h) if of_w.is_empty() => format!("{of_h} penalty on H"),
            (of_w, of_h) => format!("penalties {of_w} on W and {of_h} on H"),
        };
        let penalty = match self.is_plain() || self.is_unpenalised() {
            true => "no penalty".to_owned(),
            false => penalty,
        };
        let method = match self.is_plain() {
            true => "plain updates stopped early".to_owned(),
            false => match setting("method").as_str() {
                "altbi" => "AltBi".into(),
                "mu" => "MU".into(),
                "p-mu" => "P-MU".into(),
                "mu-t" => "MU-T".into(),
                "frozen" => "frozen λ".into(),
                other => format!("method {other}"),
            },
        };
        format!("{method}, {} divergence, {penalty}", setting("divergence"))
    }
}

/// The weights of every penalty, with its name. Without penalties, those of W, which are 0.
fn weights(
    folder: &Path,
    penalties: &[PenaltyRecord],
    file: impl Fn(&PenaltyRecord) -> &str,
) -> Result<Vec<(String, Array2<f64>)>> {
    let read = |one: &PenaltyRecord| Ok((one.describe(), read_matrix(&folder.join(file(one)))?));
    let all: Vec<_> = penalties.iter().map(read).collect::<Result<_>>()?;
    if all.is_empty() {
        let none = read_matrix(&folder.join("lambda.npy"))?;
        return Ok(vec![("no penalty".into(), none)]);
    }
    Ok(all)
}

/// All weights, one after another.
fn column(groups: &[(String, Array2<f64>)]) -> Array2<f64> {
    let all: Vec<f64> = groups
        .iter()
        .flat_map(|(_, of_group)| of_group)
        .copied()
        .collect();
    Array2::from_shape_vec((all.len(), 1), all).expect("as many as there are")
}

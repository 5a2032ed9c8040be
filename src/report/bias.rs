//! The report of `altbi bias`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Figure;
use super::experiment::digits;
use super::kept::{KeptRecords, write_page};
use crate::check::{Bias, BiasRow};
use crate::data::{read_matrix, write_npy, write_whole};
use crate::error::{Error, Result};
use crate::plot::{Chart, Scale, Series, escape, short};

/// The contents of `bias.json`, which has everything except the hypergradients.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BiasRecords {
    /// The name of the data.
    #[serde(default)]
    pub data: String,
    /// The names of the data's rows, where it has some.
    #[serde(default)]
    pub rows: Option<Vec<String>>,
    /// Description of the bunch, in a sentence.
    pub about: String,
    /// The T of the user's runs.
    pub length: usize,
    /// The total weight of the entries that the outer error counts. Records of older versions do
    /// not have it.
    #[serde(default)]
    pub entries: Option<f64>,
    /// The comparison.
    pub bias: Bias,
}

/// A hypergradient with at most this relative error is close to the reference.
const CLOSE: f64 = 0.1;
/// The hypergradients, a column for each length.
const GRADIENTS: &str = "hypergradients.npy";

impl BiasRecords {
    /// The smallest T with a good hypergradient, in words.
    pub fn answer(&self) -> String {
        let reference = self.bias.rows.last().map_or("∞".into(), name);
        match self.bias.shortest(CLOSE) {
            Some(length) => format!(
                "From T = {length} on, the hypergradient is within a tenth of that at T = \
                 {reference}."
            ),
            None => format!(
                "No T here brings the hypergradient within a tenth of that at T = {reference}."
            ),
        }
    }

    /// Writes the records, `bias.csv` and `hypergradients.npy` (a column for each length) into a
    /// folder, and the page; returns the page.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write_all(&self, folder: &Path) -> Result<PathBuf> {
        self.write(folder)?;
        write_whole(&folder.join("bias.csv"), csv(&self.bias).as_bytes())?;
        write_npy(&folder.join(GRADIENTS), &self.bias.gradients)?;
        self.write_report(folder)
    }

    /// Reads the records with their hypergradients.
    ///
    /// # Errors
    /// Those of [`read`](KeptRecords::read), and [`Error::Npy`].
    pub fn read_all(folder: &Path) -> Result<Self> {
        let mut records = Self::read(folder)?;
        records.bias.gradients = read_matrix(&folder.join(GRADIENTS))?;
        let rows = records.bias.rows.len();
        if rows < 2 || records.bias.gradients.ncols() != rows {
            return Err(Error::ConfigFile {
                path: folder.join(Self::FILE),
                reason: format!("it does not fit {GRADIENTS}"),
            });
        }
        Ok(records)
    }
}

impl KeptRecords for BiasRecords {
    const FILE: &'static str = "bias.json";

    fn write_report(&self, folder: &Path) -> Result<PathBuf> {
        let bias = &self.bias;
        let figures = [Some(errors(bias)), rows(self)];
        let figures: Vec<Figure> = figures.into_iter().flatten().collect();
        let titles = [
            self.data.as_str(),
            "How many updates a hypergradient must go through",
        ];
        let words = [&self.answer(), self.about.as_str()];
        write_page(folder, titles, words, &table(bias, self.entries), &figures)
    }
}

/// T as text.
fn name(row: &BiasRow) -> String {
    row.length.map_or("∞".into(), |length| length.to_string())
}

fn csv(bias: &Bias) -> String {
    let mut text = String::from("length,outer_error,norm,cosine,relative_error,same_sign\n");
    for row in &bias.rows {
        let length = row.length.map_or("inf".into(), |length| length.to_string());
        let _ = writeln!(
            text,
            "{length},{},{},{},{},{}",
            row.outer_error, row.norm, row.cosine, row.relative_error, row.same_sign
        );
    }
    text
}

fn table(bias: &Bias, entries: Option<f64>) -> String {
    let unit = match entries {
        Some(_) => " per entry",
        None => ", sum",
    };
    let mut table = format!(
        "<div class=\"wide\"><table class=\"numbers\"><tr><th>T</th><th>outer error{unit}</th>\
         <th>‖dE/dλ‖</th><th>cosine</th><th>relative error</th><th>rows of the same sign</th></tr>\n",
    );
    for row in &bias.rows {
        let _ = writeln!(
            table,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.4}</td><td>{}</td><td>{:.1} %</td></tr>",
            name(row),
            digits(row.outer_error / entries.unwrap_or(1.0), 4),
            digits(row.norm, 4),
            row.cosine,
            short(row.relative_error),
            100.0 * row.same_sign
        );
    }
    table.push_str("</table></div>\n");
    if let Some(refusal) = &bias.refusal {
        let refusal = escape(refusal);
        let _ = writeln!(
            table,
            "<p>The longest bunch is the reference, because: {refusal}.</p>"
        );
    }
    table
}

fn errors(bias: &Bias) -> Figure {
    let last = bias.rows.len() - 1;
    let rows = bias.rows[..last].iter().enumerate();
    let points = rows.map(|(place, row)| (place as f64, row.relative_error));
    let ticks = bias.rows[..last].iter().map(name).collect();
    let chart = Chart::new("T (not to scale)", "relative error", Scale::Logarithmic)
        .with(Series::line("", points.collect()))
        .with_ticks(ticks);
    let reference = name(&bias.rows[last]);
    Figure {
        name: "relative_error".into(),
        title: "Relative error of the hypergradient".into(),
        caption: format!(
            "‖g − g′‖ / ‖g′‖ for the hypergradients g through T updates and g′ at T = {reference}, \
             both from the same W and λ."
        ),
        svg: chart.svg(),
        tiles: Vec::new(),
    }
}

/// The figure of all rows at the T of the user's runs.
fn rows(records: &BiasRecords) -> Option<Figure> {
    let (bias, length) = (&records.bias, records.length);
    let place = bias
        .rows
        .iter()
        .position(|row| row.length == Some(length))?;
    let last = bias.rows.len() - 1;
    let (asked, reference) = (bias.gradients.column(place), bias.gradients.column(last));
    let points: Vec<(f64, f64)> = reference
        .iter()
        .copied()
        .zip(asked.iter().copied())
        .collect();
    let ends = reference
        .iter()
        .fold((0.0f64, 0.0f64), |(low, high), value| {
            (low.min(*value), high.max(*value))
        });
    let mut series = Series::points("rows", points);
    series.names = records.rows.clone();
    let chart = Chart::new(
        &format!("dE/dλ at T = {}", name(&bias.rows[last])),
        &format!("dE/dλ at T = {length}"),
        Scale::Linear,
    )
    .with(series)
    .with(Series::line(
        "equal",
        vec![(ends.0, ends.0), (ends.1, ends.1)],
    ));
    Some(Figure {
        name: "rows".into(),
        title: format!("Row by row at T = {length}"),
        caption: "One point per row of X. On the line both hypergradients are equal.".into(),
        svg: chart.svg(),
        tiles: Vec::new(),
    })
}

//! The data of a command: reading, weights and precision.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::data::{
    Contents, Decimal, Detect, Encoding, Reading, Separator, Source, Table, TableOptions,
    check_room, fingerprint_of_share, text_fingerprint,
};
use crate::device::Device;
use crate::problem::Weights;
use crate::processes::Share;
use crate::report::Labels;
use crate::{Error, Matrix, Precision, Problem, Result, SparseMatrix, Zeros};
use clap::{Args, ValueEnum};
use ndarray::Array2;

use super::arguments::{device_name, words};
use super::job;
use super::output::complain;

/// Flags for the reading of the data and for the precision.
#[derive(Debug, Args)]
#[command(next_help_heading = super::headings::DATA)]
pub struct DataArguments {
    /// Weights of the entries of X in [0, ∞), a file like DATA; 0 marks a missing
    /// entry
    #[arg(long, value_name = "FILE")]
    pub mask: Option<String>,
    /// Treatment of missing entries (empty fields, NA, NaN); with mask, N/A, null, - and ? are
    /// missing entries too
    #[arg(long, default_value = "error")]
    pub missing: Missing,
    /// Meaning of entries that a sparse matrix does not store; data: they are 0; missing: they are
    /// unknown
    #[arg(long, default_value = "data", value_parser = words::<Zeros>())]
    pub zeros: Zeros,
    /// The first row of a table holds the names of its columns
    #[arg(long, default_value = "auto", value_parser = words::<Detect>(), hide_short_help = true)]
    pub header: Detect,
    /// The first column of a table holds the names of its rows
    #[arg(long, default_value = "auto", value_parser = words::<Detect>(), hide_short_help = true)]
    pub labels: Detect,
    /// Separator between the fields of a table: auto, comma, semicolon, tab, or whitespace
    #[arg(long, default_value = "auto", hide_short_help = true)]
    pub separator: OrAuto<Separator>,
    /// Decimal sign of numbers: auto, point, or comma
    #[arg(long, default_value = "auto", hide_short_help = true)]
    pub decimal: OrAuto<Decimal>,
    /// Encoding of a table: auto (UTF-8, or UTF-16 with a byte order mark), utf-8, utf-16, or
    /// latin-1
    #[arg(long, default_value = "auto", hide_short_help = true)]
    pub encoding: OrAuto<Encoding>,
    /// Floating-point type
    #[arg(long, default_value = "f64", value_parser = words::<Precision>(), hide_short_help = true, help_heading = super::headings::ENGINE)]
    pub dtype: Precision,
    /// Device of the tensors: ndarray, or flex in a build with that feature
    #[arg(long, default_value = "ndarray", value_parser = device_name, hide_short_help = true, help_heading = super::headings::ENGINE)]
    pub device: String,
}

/// `--missing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Missing {
    /// Refuse them.
    Error,
    /// Give them weight 0.
    Mask,
}

/// A setting, or `None` for auto.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrAuto<T>(pub Option<T>);

impl<T: FromStr<Err = Error>> FromStr for OrAuto<T> {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "auto" => Ok(Self(None)),
            said => said.parse().map(|value| Self(Some(value))),
        }
    }
}

impl<T: fmt::Display> fmt::Display for OrAuto<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => formatter.pad("auto"),
            Some(value) => value.fmt(formatter),
        }
    }
}

/// Data with all entries in memory, and weights if some are missing.
pub struct Dense {
    pub values: Array2<f64>,
    pub mask: Option<Array2<f64>>,
    pub labels: Labels,
}

/// The data as read: the matrix with its names, and the weights of its entries.
pub struct Data {
    matrix: Matrix,
    pub labels: Labels,
    /// Reading of the table, if the data are one.
    pub reading: Option<Reading>,
    weights: Option<Weights>,
    /// The rows that this process has.
    share: Share,
}

impl DataArguments {
    /// Reads data and mask, each once. Missing entries are refused unless they are allowed. A note
    /// on standard error reports a guess about the table, unless `quiet`.
    pub fn read(&self, source: &Source, quiet: bool) -> Result<Data> {
        let mask = self.mask.as_deref().map(Source::from);
        if *source == Source::StandardInput && mask == Some(Source::StandardInput) {
            return Err(Error::Conflict {
                first: "DATA from standard input",
                second: "--mask from standard input",
                reason: "it can be read only once",
            });
        }
        let processes = job::processes();
        let (contents, share) = source.read_share(self.options(), &processes)?;
        let table = match contents {
            Contents::Table(table) => table,
            Contents::Sparse(matrix) => return self.sparse(matrix, share),
        };
        let reading = table.reading.as_ref();
        if let Some(guess) = reading.and_then(|reading| reading.guess.as_ref())
            && !quiet
        {
            complain(format!("note: {source}: {guess}"));
        }
        if self.missing == Missing::Error && self.mask.is_none() {
            share.agree(table.check_complete())?;
        }
        self.weighted_rows(table, share)
    }

    /// A table that every process has, with its weights.
    pub fn weighted(&self, mut table: Table) -> Result<Data> {
        let share = Share::of(&job::processes(), table.values.nrows())?;
        table.values = share.cut(&table.values);
        self.weighted_rows(table, share)
    }

    fn weighted_rows(&self, table: Table, share: Share) -> Result<Data> {
        if self.zeros == Zeros::Missing {
            return Err(Error::Conflict {
                first: "--zeros missing",
                second: "a matrix whose entries are all stored",
                reason: "its zeros are data; use --mask to mark missing entries",
            });
        }
        let mask = self.mask.as_deref().map(Source::from);
        let given = mask.map(|mask| self.read_mask(&mask, &table, &share));
        let given = given.transpose()?;
        let present = match self.missing {
            Missing::Mask => table.mask(),
            Missing::Error => None,
        };
        let weights = match (given, present) {
            (Some(given), Some(present)) if given.dim() == present.dim() => Some(given * present),
            (Some(given), _) => Some(given),
            (None, present) => present,
        };
        Ok(Data {
            labels: Labels {
                rows: table.row_labels,
                columns: table.column_labels,
            },
            reading: table.reading,
            matrix: table.values.into(),
            weights: weights.map(Weights::from),
            share,
        })
    }

    /// A sparse matrix with its weights.
    fn sparse(&self, matrix: SparseMatrix, share: Share) -> Result<Data> {
        let mut missing = matrix.triplets().filter(|(.., x)| x.is_nan());
        let first = missing.next();
        let mask = self.mask.as_deref().map(Source::from);
        let options = TableOptions::default();
        let given = mask.map(|mask| mask.read_share(options, share.processes()));
        let given = given.transpose()?.map(|(contents, _)| match contents {
            Contents::Table(table) => Weights::Real(table.values),
            Contents::Sparse(weights) => Weights::from(weights),
        });
        let mut wrong = None;
        let weights = match (first, given) {
            // (A given mask must have weight 0 for missing entries.)
            (None, given) | (Some(_), given @ Some(_)) => given,
            (Some((row, column, _)), None) if self.missing == Missing::Error => {
                wrong = Some(Error::Missing {
                    count: missing.by_ref().count() + 1,
                    row,
                    column,
                });
                None
            }
            (Some(_), None) => {
                let places = matrix.triplets().filter(|(.., x)| x.is_nan());
                let places = places.map(|(row, column, _)| (row as u32, column as u32, 0.0));
                let at = SparseMatrix::from_triplets(matrix.shape(), places.collect())?;
                let elsewhere = 1.0;
                Some(Weights::Listed { at, elsewhere })
            }
        };
        drop(missing);
        share.agree(wrong.map_or(Ok(()), Err))?;
        Ok(Data {
            matrix: matrix.into(),
            labels: Labels::default(),
            reading: None,
            weights,
            share,
        })
    }

    /// Reads the mask by its own contents. If its shape then differs from that of X, it is read
    /// like the data.
    fn read_mask(&self, mask: &Source, table: &Table, share: &Share) -> Result<Array2<f64>> {
        let read = |options| {
            let (contents, _) = mask.read_share(options, share.processes())?;
            let (found, expected) = (contents.shape(), table.values.dim().into());
            // (A sparse mask of another shape might be too large for memory.)
            if matches!(contents, Contents::Sparse(_)) && found != expected {
                let what = "the mask";
                return Err(Error::Shape {
                    what,
                    expected,
                    found,
                });
            }
            Ok(contents.into_dense())
        };
        let weights = read(TableOptions::default())?;
        let again = self.options();
        let looks_wrong = share.processes().any(weights.dim() != table.values.dim());
        if looks_wrong && again != TableOptions::default() && *mask != Source::StandardInput {
            return read(again);
        }
        Ok(weights)
    }

    fn options(&self) -> TableOptions {
        TableOptions {
            header: self.header,
            labels: self.labels,
            separator: self.separator.0,
            decimal: self.decimal.0,
            encoding: self.encoding.0,
            missing_words: self.missing == Missing::Mask,
        }
    }

    /// The settings of `config.toml`, with the detected values instead of "auto".
    pub fn settings(&self, reading: Option<&Reading>) -> [(&'static str, String); 5] {
        let detected = |said: Detect, seen: Option<bool>| match seen {
            Some(true) => "yes".into(),
            Some(false) => "no".into(),
            None => said.to_string(),
        };
        let separator = reading.map(|reading| reading.separator);
        let decimal = reading.map(|reading| reading.decimal);
        let encoding = reading.map(|reading| reading.encoding);
        [
            ("header", detected(self.header, reading.map(|of| of.header))),
            ("labels", detected(self.labels, reading.map(|of| of.labels))),
            (
                "separator",
                OrAuto(separator.or(self.separator.0)).to_string(),
            ),
            ("decimal", OrAuto(decimal.or(self.decimal.0)).to_string()),
            ("encoding", OrAuto(encoding.or(self.encoding.0)).to_string()),
        ]
    }

    /// The files that are read: DATA and the mask.
    pub fn inputs(&self, data: Option<&str>) -> Vec<PathBuf> {
        let sources = data.into_iter().chain(self.mask.as_deref());
        let files = sources.filter_map(|text| match Source::from(text) {
            Source::File { path, .. } => Some(path),
            Source::StandardInput => None,
        });
        files.collect()
    }
}

impl Data {
    /// The data as a table for a file.
    pub fn to_csv(&self) -> String {
        let table = Table {
            values: self.matrix.to_dense(),
            row_labels: self.labels.rows.clone(),
            column_labels: self.labels.columns.clone(),
            reading: self.reading.clone(),
        };
        table.to_csv()
    }

    /// The weights of the entries as a table, if there are any.
    pub fn weights_to_csv(&self) -> Option<String> {
        let weights = self.weights.as_ref()?;
        Some(Table::from(weights.to_array()).to_csv())
    }

    /// Returns true if the matrix is sparse.
    pub fn is_sparse(&self) -> bool {
        self.matrix.as_sparse().is_some()
    }

    /// All entries; a sparse matrix is made dense if memory allows.
    pub fn dense(self, arguments: &DataArguments, path: &Path) -> Result<Dense> {
        let (rows, columns) = self.matrix.dim();
        let mut mask = self.weights.map(|weights| weights.to_array());
        let values = match self.matrix {
            Matrix::Dense(values) => values,
            Matrix::Sparse(matrix) => {
                check_room(path, rows, columns)?;
                if arguments.zeros == Zeros::Missing {
                    let mut stored = Array2::zeros((rows, columns));
                    for (row, column, _) in matrix.triplets() {
                        stored[[row, column]] = mask.as_ref().map_or(1.0, |of| of[[row, column]]);
                    }
                    mask = Some(stored);
                }
                matrix.to_dense()
            }
        };
        Ok(Dense {
            values,
            mask,
            labels: self.labels,
        })
    }

    /// The checked problem of the matrix and its weights. `self` keeps the names.
    pub fn problem(&mut self, arguments: &DataArguments) -> Result<Problem> {
        let matrix = std::mem::replace(&mut self.matrix, Array2::zeros((0, 0)).into());
        let weights = self.weights.take();
        let (zeros, precision) = (arguments.zeros, arguments.dtype);
        let problem = Problem::of_share(matrix, zeros, weights, precision, self.share.clone())?;
        Ok(problem.on(arguments.device.parse::<Device>()?))
    }

    /// A fingerprint of the data and weights.
    pub fn fingerprint(&self) -> String {
        let of_values = fingerprint_of_share(&self.matrix, &self.share);
        // If one process has weights, the weights of the others are 1.
        if !self.share.processes().any(self.weights.is_some()) {
            return of_values;
        }
        let of_weights = match &self.weights {
            Some(weights) => weights.to_stored(),
            None => Array2::from_elem(self.matrix.dim(), 1.0).into(),
        };
        let of_weights = fingerprint_of_share(&of_weights, &self.share);
        text_fingerprint(&(of_values + &of_weights))
    }
}

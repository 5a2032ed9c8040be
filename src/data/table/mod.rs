//! A matrix with the names of its rows and columns, and tables of text that hold one.
//!
//! | file | task |
//! |---|---|
//! | `text` | encodings and line ends |
//! | `blanks` | runs of blanks that separate fields |
//! | `dialect` | separators and decimal signs |
//! | `field` | numbers, missing entries, words |
//! | `names` | numbers that may be names |
//! | `body` | the rows below the first, and rules for finding names |
//! | `read` | the table as a whole: header, labels, entries |

mod blanks;
mod body;
mod dialect;
mod field;
mod names;
mod read;
mod text;

use std::fmt;

use ndarray::Array2;
use serde::{Deserialize, Serialize};

pub use dialect::{Decimal, Separator};
pub(super) use read::read_separated;
pub use text::Encoding;

use crate::error::{Error, Result};
use crate::words::words;

/// The contents of a file: numbers, and names if it has any. Missing entries are NaN.
///
/// # Shapes
/// `values` n×m; n row labels, m column labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The numbers.
    pub values: Array2<f64>,
    /// Names of the rows.
    pub row_labels: Option<Vec<String>>,
    /// Names of the columns.
    pub column_labels: Option<Vec<String>>,
    /// Its reading, if it is a table of text.
    pub(crate) reading: Option<Reading>,
}

/// The reading of a table of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reading {
    /// True if the first row holds the names of the columns.
    pub header: bool,
    /// True if the first column holds the names of the rows.
    pub labels: bool,
    /// The separator between two fields.
    pub separator: Separator,
    /// The decimal sign of numbers.
    pub decimal: Decimal,
    /// The encoding of its characters.
    pub encoding: Encoding,
    /// A note on a guess, with the option that changes it.
    #[serde(skip)]
    pub guess: Option<String>,
}

impl Reading {
    /// The reading of the same table after [`Table::to_csv`] wrote it.
    #[must_use]
    pub fn written(self) -> Self {
        Self {
            separator: Separator::Comma,
            decimal: Decimal::Point,
            encoding: Encoding::Utf8,
            ..self
        }
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |yes| if yes { "yes" } else { "no" };
        write!(
            formatter,
            "header: {}, labels: {}, separator: {}, decimal: {}, encoding: {}",
            word(self.header),
            word(self.labels),
            self.separator,
            self.decimal,
            self.encoding
        )
    }
}

impl From<Array2<f64>> for Table {
    fn from(values: Array2<f64>) -> Self {
        Self {
            values,
            row_labels: None,
            column_labels: None,
            reading: None,
        }
    }
}

impl Table {
    /// Refuses missing entries.
    ///
    /// # Errors
    /// [`Error::Missing`] with their number and the first of them.
    pub fn check_complete(&self) -> Result<()> {
        let mut missing = self.values.indexed_iter().filter(|(_, x)| x.is_nan());
        match missing.next() {
            None => Ok(()),
            Some(((row, column), _)) => Err(Error::Missing {
                count: missing.count() + 1,
                row,
                column,
            }),
        }
    }

    /// Comma-separated text with the names, in the shortest digits that read
    /// back the same; missing entries are NaN.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::WriterBuilder::new()
            .flexible(true)
            // A label that begins with # would be read as a comment.
            .quote_style(csv::QuoteStyle::NonNumeric)
            .from_writer(Vec::new());
        let fits = "memory does not fail";
        let rows = self.row_labels.as_ref();
        if let Some(columns) = &self.column_labels {
            let corner = rows.map(|_| String::new());
            let header = corner.iter().chain(columns);
            writer.write_record(header).expect(fits);
        }
        for (i, row) in self.values.rows().into_iter().enumerate() {
            let label = rows.map(|labels| labels[i].clone());
            let numbers = row.iter().map(|value| {
                if value.is_nan() {
                    "NaN".into()
                } else {
                    // Debug writes 4e-181 where Display writes 180 zeros.
                    format!("{value:?}")
                }
            });
            let record = label.into_iter().chain(numbers);
            writer.write_record(record).expect(fits);
        }
        let bytes = writer.into_inner().expect(fits);
        String::from_utf8(bytes).expect("what went in was text")
    }

    /// Weights that leave the missing entries out: 0 there, 1 elsewhere. `None` if nothing is
    /// missing.
    pub fn mask(&self) -> Option<Array2<f64>> {
        let any = self.values.iter().any(|x| x.is_nan());
        any.then(|| self.values.mapv(|x| if x.is_nan() { 0.0 } else { 1.0 }))
    }
}

/// The presence of a header or labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detect {
    /// Detected.
    #[default]
    Auto,
    /// Present.
    Yes,
    /// Absent.
    No,
}

words!(Detect, "choice" { Auto = "auto", Yes = "yes", No = "no" });

/// Options for reading a .csv, .tsv or .txt file. `None` means that the file decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableOptions {
    /// The first row holds the names of the columns.
    pub header: Detect,
    /// The first column holds the names of the rows.
    pub labels: Detect,
    /// The separator between two fields.
    pub separator: Option<Separator>,
    /// The decimal sign of numbers.
    pub decimal: Option<Decimal>,
    /// The encoding. `None` means that of the byte order mark, or UTF-8 without one. Latin-1 is
    /// never guessed.
    pub encoding: Option<Encoding>,
    /// True if `N/A`, `null`, `-` and `?` are missing entries. (An empty field, `NA` and `NaN`
    /// always are.)
    pub missing_words: bool,
}

/// The same from a [`Reading`], so that a file is read again in the same way.
impl From<&Reading> for TableOptions {
    fn from(reading: &Reading) -> Self {
        let detect = |yes| if yes { Detect::Yes } else { Detect::No };
        Self {
            header: detect(reading.header),
            labels: detect(reading.labels),
            separator: Some(reading.separator),
            decimal: Some(reading.decimal),
            encoding: Some(reading.encoding),
            missing_words: false,
        }
    }
}

//! A matrix with the names of its rows and columns.

use ndarray::Array2;

use crate::error::{Error, Result};

/// What a file held: numbers, and names where it had them. Missing entries are
/// NaN.
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
}

impl From<Array2<f64>> for Table {
    fn from(values: Array2<f64>) -> Self {
        Self {
            values,
            row_labels: None,
            column_labels: None,
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

    /// As comma-separated text with the names, in the shortest digits that read
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

    /// Weights that leave the missing entries out: 0 there, 1 elsewhere; `None`
    /// where nothing is missing.
    pub fn mask(&self) -> Option<Array2<f64>> {
        let any = self.values.iter().any(|x| x.is_nan());
        any.then(|| self.values.mapv(|x| if x.is_nan() { 0.0 } else { 1.0 }))
    }
}

/// Whether a table has a header or labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detect {
    /// Look and see.
    #[default]
    Auto,
    /// It has.
    Yes,
    /// It has not.
    No,
}

/// How a .csv or .tsv file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableOptions {
    /// Whether the first row names the columns.
    pub header: Detect,
    /// Whether the first column names the rows.
    pub labels: Detect,
}

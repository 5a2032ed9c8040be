//! The rows of a table below its first, and rules for finding names.

use ndarray::Array2;

use super::Table;
use super::field::{Field, Syntax, is_missing_word};
use super::names::{Numbers, is_empty_corner, is_year, names_an_index};
use crate::data::memory::Room;
use crate::error::{Error, Result};

/// The decision about the header: true if the first row is one, and true if that is a guess.
pub(super) struct Header {
    pub(super) is_one: bool,
    pub(super) guess: Option<String>,
}

impl Header {
    pub(super) fn of(is_one: bool) -> Self {
        Self {
            is_one,
            guess: None,
        }
    }
}

/// The rows below the first.
pub(super) struct Body<'a> {
    pub(super) name: &'a str,
    pub(super) syntax: Syntax,
    pub(super) columns: Option<usize>,
    /// Line and text of the first field of each row.
    pub(super) first_column: Vec<(u64, String)>,
    /// All other fields, as numbers.
    pub(super) rest: Vec<f64>,
    /// Memory limit for the rows.
    pub(super) room: Room,
}

impl Body<'_> {
    pub(super) fn push(&mut self, record: &csv::StringRecord) -> Result<()> {
        let columns = *self.columns.get_or_insert(record.len());
        if record.len() != columns {
            return Err(Error::RaggedTable {
                name: self.name.into(),
                line: line(record),
                expected: columns,
                found: record.len(),
            });
        }
        let numbers = (columns - 1) * size_of::<f64>();
        // (An allocation takes at least 16 bytes.)
        let first = size_of::<(u64, String)>() + record[0].len().max(16);
        self.room.take(numbers + first)?;
        self.first_column.push((line(record), record[0].into()));
        self.extend(record)
    }

    /// Adds the fields after the first.
    fn extend(&mut self, record: &csv::StringRecord) -> Result<()> {
        for (index, text) in record.iter().enumerate().skip(1) {
            let value = self.syntax.read(text).value();
            let value = value.ok_or_else(|| self.not_a_number(line(record), index, text))?;
            self.rest.push(value);
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first_column.is_empty()
    }

    pub(super) fn is_name(&self, text: &str) -> bool {
        self.syntax.read(text) == Field::Word
    }

    fn is_number(&self, text: &str) -> bool {
        matches!(self.syntax.read(text), Field::Number(_))
    }

    pub(super) fn first_line(&self) -> u64 {
        self.first_column.first().map_or(1, |(line, _)| *line)
    }

    fn first_fields(&self) -> Numbers<'_> {
        let fields = self.first_column.iter().map(|(_, text)| text.as_str());
        Numbers(fields.collect())
    }

    /// Returns true if the corner is empty, with names to its right and below it. The names may be
    /// numbers. An empty corner with other numbers around it is a missing entry.
    pub(super) fn is_framed(&self, first: &csv::StringRecord) -> bool {
        if !is_empty_corner(&first[0]) {
            return false;
        }
        let header = || first.iter().skip(1);
        let words = |mut fields: Box<dyn Iterator<Item = &str> + '_>| {
            fields.all(|field| !self.is_number(field))
        };
        if header().any(|field| self.is_name(field)) {
            return words(Box::new(header()));
        }
        let below = self.first_fields();
        if below.0.iter().any(|field| self.is_name(field)) {
            return words(Box::new(below.0.iter().copied()));
        }
        let header = Numbers(header().collect());
        if header.count_from_zero() {
            return below.are_distinct();
        }
        let counted = below.0.len() > 1 && below.count_from_zero();
        counted || (header.are_years() && below.are_distinct_integers())
    }

    /// Returns true if the first column holds only words, false if it holds none. A mixture is an
    /// error.
    pub(super) fn is_labelled(&self, first: &csv::StringRecord) -> Result<bool> {
        if self.is_empty() {
            // A single row: a word, followed by numbers.
            let numbers = first.iter().skip(1).any(|field| !self.is_name(field));
            return Ok(numbers && self.is_name(&first[0]));
        }
        let rows = || self.first_column.iter();
        match rows().find(|(_, text)| self.is_name(text)) {
            None => Ok(false),
            Some((line, text)) if rows().any(|(_, text)| self.is_number(text)) => {
                Err(self.not_a_number(*line, 0, text))
            }
            // A table of words only has no labels.
            Some(_) => Ok(self.columns.is_some_and(|columns| columns > 1)),
        }
    }

    /// Decides if the first row has the names of the columns after the labels.
    pub(super) fn header(&self, first: &csv::StringRecord, labelled: bool) -> Result<Header> {
        let fields = || first.iter().enumerate().skip(usize::from(labelled));
        let word = fields().find(|(_, field)| self.is_name(field));
        let value = fields().find(|(_, field)| self.is_number(field));
        match (word, value) {
            (Some((index, text)), Some(_)) => Err(self.not_a_number(line(first), index, text)),
            (Some(_), None) => Ok(Header::of(true)),
            (None, _) if self.is_empty() => Ok(Header::of(false)),
            (None, _) => Ok(self.header_of_numbers(fields().map(|(_, field)| field), labelled)),
        }
    }

    /// A first row of numbers is a row of data. It is a header only above labels, if it counts from
    /// 0, rises in equal steps or holds years.
    fn header_of_numbers<'b>(
        &self,
        fields: impl Iterator<Item = &'b str>,
        labelled: bool,
    ) -> Header {
        let fields = Numbers(fields.collect());
        let years = fields.are_years() && !self.rest.iter().all(|value| is_year(*value));
        let counts = fields.0.len() > 1 && fields.count_from_zero();
        let counts = counts || (labelled && fields.are_steps());
        if !(years || counts) {
            return Header::of(false);
        }
        let (first, last) = (fields.0[0], fields.0[fields.0.len() - 1]);
        let (taken, other) = if labelled {
            ("names of the columns", "--header no reads it as numbers")
        } else {
            ("numbers", "--header yes reads it as names of the columns")
        };
        Header {
            is_one: labelled,
            guess: Some(format!(
                "the first row ({first} … {last}) is read as {taken}; {other}"
            )),
        }
    }

    /// A note if the first column may be row numbers.
    pub(super) fn index_guess(&self, first: &csv::StringRecord) -> Option<String> {
        let fields = self.first_fields();
        let index = self.columns.is_some_and(|columns| columns > 1)
            && fields.0.len() > 1
            && names_an_index(&first[0])
            && fields.are_distinct_integers();
        let name = &first[0];
        index.then(|| {
            format!(
                "the first column ('{name}', distinct whole numbers) is read as numbers; \
                 --labels yes reads it as names of the rows"
            )
        })
    }

    pub(super) fn prepend(&mut self, first: &csv::StringRecord) -> Result<()> {
        let behind = std::mem::take(&mut self.rest);
        self.extend(first)?;
        self.rest.extend(behind);
        self.first_column.insert(0, (line(first), first[0].into()));
        Ok(())
    }

    pub(super) fn table(
        self,
        columns: usize,
        labelled: bool,
        column_labels: Option<Vec<String>>,
    ) -> Result<Table> {
        let rows = self.first_column.len();
        let behind = columns - 1;
        let filled = "every row has as many fields";
        if labelled {
            let values = Array2::from_shape_vec((rows, behind), self.rest).expect(filled);
            let labels = self.first_column.into_iter().map(|(_, text)| text);
            return Ok(Table {
                row_labels: Some(labels.collect()),
                column_labels,
                ..Table::from(values)
            });
        }
        let mut values = Vec::with_capacity(rows * columns);
        for (row, (line, text)) in self.first_column.iter().enumerate() {
            let first = self.syntax.read(text).value();
            values.push(first.ok_or_else(|| self.not_a_number(*line, 0, text))?);
            values.extend(&self.rest[row * behind..(row + 1) * behind]);
        }
        let values = Array2::from_shape_vec((rows, columns), values).expect(filled);
        Ok(Table {
            column_labels,
            ..Table::from(values)
        })
    }

    fn not_a_number(&self, line: u64, index: usize, text: &str) -> Error {
        let (name, field, text) = (self.name.into(), index + 1, String::from(text));
        if is_missing_word(&text) {
            return Error::MissingField {
                name,
                line,
                field,
                text,
            };
        }
        Error::NotANumber {
            name,
            line,
            field,
            decimal: self.syntax.decimal.to_string(),
            text,
        }
    }
}

fn line(record: &csv::StringRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

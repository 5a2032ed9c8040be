//! Comma- and tab-separated tables: numbers, with or without names.

use std::io::Read;

use ndarray::Array2;

use super::table::{Detect, Table, TableOptions};
use crate::error::{Error, Result};

/// Reads a table whose fields are separated by `delimiter`.
///
/// Lines that begin with `#` are comments. What is a header and what are labels is
/// decided by words (fields that are neither numbers nor missing):
///
/// - a first column of words below the first row holds labels;
/// - a first row of words (beyond a column of labels) is a header, and so is one
///   with an empty corner or one field short, as pandas and R write them;
/// - a mixture is an error, not a guess: the options say what it is.
///
/// Empty fields, `NA` and `NaN` are missing: they become NaN.
pub(super) fn read_separated(
    input: impl Read,
    name: &str,
    delimiter: u8,
    options: TableOptions,
) -> Result<Table> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(input);
    let mut records = reader.records();
    let mut next = || {
        loop {
            let record = records.next().transpose();
            let record = record.map_err(|error| csv_error(name, error))?;
            // A line of blanks is no row, wherever it stands.
            match &record {
                Some(record) if record.len() == 1 && record[0].is_empty() => {}
                _ => return Ok::<_, Error>(record),
            }
        }
    };
    let Some(first) = next()? else {
        return Ok(Table::from(Array2::zeros((0, 0))));
    };
    // The first column waits as text until it is clear what it is.
    let mut body = Body {
        name,
        columns: None,
        first_column: Vec::new(),
        rest: Vec::new(),
    };
    while let Some(record) = next()? {
        body.push(&record)?;
    }
    let columns = body.columns.unwrap_or(first.len());
    let names = || first.iter().skip(1).all(is_word);
    // One field short, of words: R's header, unless it is said to be none.
    let short = first.len() + 1 == columns
        && options.header != Detect::No
        && options.labels != Detect::No
        && (options.header == Detect::Yes || first.iter().all(is_word));
    if !short && first.len() != columns {
        return Err(Error::RaggedTable {
            name: name.into(),
            line: body.first_line(),
            expected: first.len(),
            found: columns,
        });
    }
    // An empty corner above names, or pandas' own count of rows and columns; an
    // empty corner above other numbers is a missing entry.
    let corner = !short
        && columns > 1
        && first[0].is_empty()
        && (names() || (counts(first.iter().skip(1)) && body.is_counted()));
    let framed = (short || corner) && !body.first_column.is_empty();
    let labelled = match options.labels {
        Detect::Yes => true,
        Detect::No => false,
        Detect::Auto => framed || body.is_labelled(&first)?,
    };
    let headed = match options.header {
        Detect::Yes => true,
        Detect::No => false,
        Detect::Auto => framed || is_header(name, &first, usize::from(labelled))?,
    };
    let column_labels = headed.then(|| {
        let corner = usize::from(labelled && !short);
        first.iter().skip(corner).map(String::from).collect()
    });
    if !headed {
        body.prepend(&first)?;
    }
    body.table(columns, labelled, column_labels)
}

/// Whether fields are 0, 1, 2, …
fn counts<'a>(fields: impl Iterator<Item = &'a str>) -> bool {
    let mut fields = fields.enumerate();
    fields.all(|(index, field)| field == index.to_string())
}

/// Whether the first row names the columns beyond the labels.
fn is_header(name: &str, first: &csv::StringRecord, labels: usize) -> Result<bool> {
    let fields = || first.iter().enumerate().skip(labels);
    let word = fields().find(|(_, field)| is_word(field));
    let value = fields().find(|(_, field)| !is_word(field) && !field.is_empty());
    match (word, value) {
        (None, _) => Ok(false),
        (Some(_), None) => Ok(true),
        (Some((index, text)), Some(_)) => Err(not_a_number(name, line(first), index, text)),
    }
}

/// The rows below the first.
struct Body<'a> {
    name: &'a str,
    columns: Option<usize>,
    /// Line and text of the first field of each row.
    first_column: Vec<(u64, String)>,
    /// All other fields, as numbers.
    rest: Vec<f64>,
}

impl Body<'_> {
    fn push(&mut self, record: &csv::StringRecord) -> Result<()> {
        let columns = *self.columns.get_or_insert(record.len());
        if record.len() != columns {
            return Err(Error::RaggedTable {
                name: self.name.into(),
                line: line(record),
                expected: columns,
                found: record.len(),
            });
        }
        self.first_column.push((line(record), record[0].into()));
        self.rest.extend(self.numbers(record)?);
        Ok(())
    }

    /// The fields beyond the first.
    fn numbers(&self, record: &csv::StringRecord) -> Result<Vec<f64>> {
        let fields = record.iter().enumerate().skip(1);
        fields
            .map(|(index, text)| {
                number(text).ok_or_else(|| not_a_number(self.name, line(record), index, text))
            })
            .collect()
    }

    fn is_counted(&self) -> bool {
        counts(self.first_column.iter().map(|(_, text)| text.as_str()))
    }

    fn first_line(&self) -> u64 {
        self.first_column.first().map_or(1, |(line, _)| *line)
    }

    /// Whether the first column holds words: all of it, or none of it.
    fn is_labelled(&self, first: &csv::StringRecord) -> Result<bool> {
        if self.first_column.is_empty() {
            // A single row: a word, and numbers behind it.
            let numbers = first.iter().skip(1).any(|field| !is_word(field));
            return Ok(numbers && is_word(&first[0]));
        }
        let word = self.first_column.iter().find(|(_, text)| is_word(text));
        match word {
            None => Ok(false),
            Some(_) if self.first_column.iter().all(|(_, text)| is_word(text)) => {
                // A table of words alone has nothing to label.
                Ok(self.columns.is_some_and(|columns| columns > 1))
            }
            Some((line, text)) => Err(not_a_number(self.name, *line, 0, text)),
        }
    }

    fn prepend(&mut self, first: &csv::StringRecord) -> Result<()> {
        let numbers = self.numbers(first)?;
        self.rest.splice(0..0, numbers);
        self.first_column.insert(0, (line(first), first[0].into()));
        Ok(())
    }

    fn table(
        self,
        columns: usize,
        labelled: bool,
        column_labels: Option<Vec<String>>,
    ) -> Result<Table> {
        let rows = self.first_column.len();
        let behind = columns - 1;
        if labelled {
            let values = Array2::from_shape_vec((rows, behind), self.rest);
            let labels = self.first_column.into_iter().map(|(_, text)| text);
            return Ok(Table {
                values: values.expect("every row has as many fields"),
                row_labels: Some(labels.collect()),
                column_labels,
            });
        }
        let mut values = Vec::with_capacity(rows * columns);
        for (row, (line, text)) in self.first_column.iter().enumerate() {
            let first = number(text).ok_or_else(|| not_a_number(self.name, *line, 0, text))?;
            values.push(first);
            values.extend(&self.rest[row * behind..(row + 1) * behind]);
        }
        let values = Array2::from_shape_vec((rows, columns), values);
        Ok(Table {
            values: values.expect("every row has as many fields"),
            row_labels: None,
            column_labels,
        })
    }
}

fn not_a_number(name: &str, line: u64, index: usize, text: &str) -> Error {
    Error::NotANumber {
        name: name.into(),
        line,
        field: index + 1,
        text: text.into(),
    }
}

fn line(record: &csv::StringRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

/// A field's value; NaN where it is missing, `None` where it is a word.
fn number(field: &str) -> Option<f64> {
    if field.is_empty() || field.eq_ignore_ascii_case("na") {
        return Some(f64::NAN);
    }
    let value: f64 = field.parse().ok()?;
    // "-nan" is as missing as "nan", to the bit.
    Some(if value.is_nan() { f64::NAN } else { value })
}

fn is_word(field: &str) -> bool {
    number(field).is_none()
}

fn csv_error(name: &str, error: csv::Error) -> Error {
    let text = error.to_string();
    let source = match error.into_kind() {
        csv::ErrorKind::Io(source) => source,
        // Only text that is not UTF-8 is left.
        _ => std::io::Error::new(std::io::ErrorKind::InvalidData, text),
    };
    Error::Read {
        path: name.into(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn read_with(text: &[u8], options: TableOptions) -> Result<Table> {
        read_separated(text, "a.csv", b',', options)
    }

    fn read(text: &[u8]) -> Result<Table> {
        read_with(text, TableOptions::default())
    }

    fn names(labels: &Option<Vec<String>>) -> Vec<&str> {
        labels.iter().flatten().map(String::as_str).collect()
    }

    #[test]
    fn numbers_are_read_and_mistakes_are_placed() {
        let got = read(b"1, 2.5e-3\n# a comment\n3,4\r\n").unwrap();
        assert_eq!(got, Table::from(array![[1.0, 2.5e-3], [3.0, 4.0]]));
        assert!(matches!(
            read(b"1,2,3\n4,5\n"),
            Err(Error::RaggedTable {
                line: 2,
                expected: 3,
                found: 2,
                ..
            })
        ));
        assert!(matches!(
            read(b"1,2\n3,four\n"),
            Err(Error::NotANumber { line: 2, field: 2, ref text, .. }) if text == "four"
        ));
        assert!(matches!(read(b"1,\xff\n"), Err(Error::Read { .. })));
        assert_eq!(read(b"").unwrap().values.dim(), (0, 0));
        assert_eq!(read(b"7\n").unwrap().values, array![[7.0]]);
    }

    #[test]
    fn headers_and_labels_are_seen() {
        let both = read(b"gene,a,\"b, c\"\nx,1,2\ny,3,4\n").unwrap();
        assert_eq!(both.values, array![[1.0, 2.0], [3.0, 4.0]]);
        assert_eq!(names(&both.row_labels), ["x", "y"]);
        assert_eq!(names(&both.column_labels), ["a", "b, c"]);
        let as_r_writes_it = read(b"a,b\nx,1,2\ny,3,4\n").unwrap();
        assert_eq!(as_r_writes_it, both_named(&both, ["a", "b"]));
        let header = read(b"a,b\n1,2\n").unwrap();
        assert_eq!(
            (names(&header.column_labels), header.row_labels),
            (vec!["a", "b"], None)
        );
        let labels = read(b"x,1,2\ny,3,4\n").unwrap();
        assert_eq!(
            (names(&labels.row_labels), labels.column_labels),
            (vec!["x", "y"], None)
        );
        let bom = read("\u{feff}1,2\n3,4\n".as_bytes()).unwrap();
        assert_eq!(bom.values, array![[1.0, 2.0], [3.0, 4.0]]);
    }

    fn both_named(table: &Table, columns: [&str; 2]) -> Table {
        Table {
            column_labels: Some(columns.map(String::from).to_vec()),
            ..table.clone()
        }
    }

    #[test]
    fn a_typo_is_a_mistake_and_not_a_header_or_a_label() {
        for (text, line, field) in [
            ("1,2,3x\n4,5,6\n7,8,1\n", 1, 3),
            ("1,2,3\n3x,4,5\n5,6,1\n", 2, 1),
            ("X,5,6\n1,7,8\n2,9,1\n", 1, 1),
            ("a,b,c\n1,2,3\nx,4,5\n", 3, 1),
        ] {
            let found = read(text.as_bytes());
            assert!(
                matches!(found, Err(Error::NotANumber { line: l, field: f, .. }) if (l, f) == (line, field)),
                "{text}: {found:?}"
            );
        }
        // What pandas writes, numbers for names and all.
        let pandas = read(b",0,1,2\n0,5,6,7\n1,8,9,1\n").unwrap();
        assert_eq!(pandas.values, array![[5.0, 6.0, 7.0], [8.0, 9.0, 1.0]]);
        assert_eq!(names(&pandas.row_labels), ["0", "1"]);
        // A missing entry in the corner, and a row that is too short, are just that.
        let missing = read(b",2,3\n4,5,6\n").unwrap();
        assert_eq!(missing.values.dim(), (2, 3));
        assert!(missing.values[[0, 0]].is_nan());
        assert!(matches!(
            read(b"1,2\n3,4,5\n6,7,8\n"),
            Err(Error::RaggedTable {
                line: 2,
                expected: 2,
                found: 3,
                ..
            })
        ));
        // A name above a single column.
        let column = read(b"lambda\n0.5\n0.25\n").unwrap();
        assert_eq!(column.values, array![[0.5], [0.25]]);
        let sign = read(b"1,-nan\n2,3\n").unwrap();
        assert!(sign.values[[0, 1]].is_sign_positive());
    }

    #[test]
    fn detection_can_be_overruled() {
        let forced = TableOptions {
            header: Detect::Yes,
            labels: Detect::Yes,
        };
        let years = read_with(b"0,2001,2002\n1,5,6\n2,7,8\n", forced).unwrap();
        assert_eq!(years.values, array![[5.0, 6.0], [7.0, 8.0]]);
        assert_eq!(names(&years.column_labels), ["2001", "2002"]);
        assert_eq!(names(&years.row_labels), ["1", "2"]);
        let none = TableOptions {
            header: Detect::No,
            labels: Detect::No,
        };
        assert!(matches!(
            read_with(b"a,b\n1,2\n", none),
            Err(Error::NotANumber { line: 1, .. })
        ));
        // A short first row is R's header or a mistake, never a row.
        for (header, labels) in [(Detect::No, Detect::Auto), (Detect::Yes, Detect::No)] {
            let found = read_with(b"a\nx,1\ny,2\n", TableOptions { header, labels });
            assert!(
                matches!(found, Err(Error::RaggedTable { line: 2, .. })),
                "{found:?}"
            );
        }
        let only_header = read(b"a,b\n").unwrap();
        assert_eq!(only_header.values.nrows(), 0);
    }

    #[test]
    fn missing_entries_are_nan_and_counted() {
        let table = read(b"a,b,c\n1,,3\nNA,5,nan\n").unwrap();
        assert_eq!(
            table.mask().unwrap(),
            array![[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
        );
        assert!(matches!(
            table.check_complete(),
            Err(Error::Missing {
                count: 3,
                row: 0,
                column: 1
            })
        ));
        let whole = read(b"1,2\n").unwrap();
        assert!(whole.mask().is_none() && whole.check_complete().is_ok());
    }
}

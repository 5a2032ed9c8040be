//! Comma- and tab-separated tables: numbers, with or without names.

use std::io::Read;

use ndarray::Array2;

use super::table::{Table, TableOptions};
use crate::error::{Error, Result};

/// Reads a table whose fields are separated by `delimiter`.
///
/// Lines that begin with `#` are comments. A first row with a word in it
/// (outside the column of labels) is a header; a first column whose first entry
/// below the header is a word is a column of labels; either can be forced. A
/// header may be one field short, as R writes it. Empty fields, `NA` and `NaN`
/// are missing: they become NaN.
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
    let second = next()?;

    // The second row is data in any case; it tells about the first column.
    let sample = second.as_ref().unwrap_or(&first);
    let labelled = options.labels.decide(|| sample.get(0).is_some_and(is_word));
    let skipped = usize::from(labelled);
    let headed = options
        .header
        .decide(|| first.iter().skip(skipped).any(is_word));

    let mut columns = sample.len();
    let column_labels = headed.then(|| {
        // R leaves out the corner, and then the header is one field short.
        let corner = usize::from(labelled && first.len() == columns);
        first.iter().skip(corner).map(String::from).collect()
    });
    if headed && second.is_none() {
        columns = first.len();
    }
    let mut parser = Rows {
        name,
        columns,
        skipped,
        values: Vec::new(),
        labels: Vec::new(),
    };
    if !headed {
        parser.columns = first.len();
        parser.push(&first)?;
    } else if let Some(labels) = &column_labels {
        let labels: &Vec<String> = labels;
        if second.is_some() && labels.len() + skipped != columns {
            return Err(Error::RaggedTable {
                name: name.into(),
                line: line(sample),
                expected: first.len(),
                found: columns,
            });
        }
    }
    if let Some(second) = &second {
        parser.push(second)?;
    }
    while let Some(record) = next()? {
        parser.push(&record)?;
    }
    let width = parser.columns - skipped.min(parser.columns);
    let rows = parser.values.len().checked_div(width).unwrap_or(0);
    let values = Array2::from_shape_vec((rows, width), parser.values)
        .expect("every row has as many fields as the first");
    Ok(Table {
        values,
        row_labels: labelled.then_some(parser.labels),
        column_labels,
    })
}

struct Rows<'a> {
    name: &'a str,
    columns: usize,
    skipped: usize,
    values: Vec<f64>,
    labels: Vec<String>,
}

impl Rows<'_> {
    fn push(&mut self, record: &csv::StringRecord) -> Result<()> {
        if record.len() != self.columns {
            return Err(Error::RaggedTable {
                name: self.name.into(),
                line: line(record),
                expected: self.columns,
                found: record.len(),
            });
        }
        let label = record.iter().take(self.skipped).map(String::from);
        self.labels.extend(label);
        for (index, field) in record.iter().enumerate().skip(self.skipped) {
            let value = number(field).ok_or_else(|| Error::NotANumber {
                name: self.name.into(),
                line: line(record),
                field: index + 1,
                text: field.into(),
            })?;
            self.values.push(value);
        }
        Ok(())
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
    field.parse().ok()
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
    use crate::data::Detect;
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
            Err(Error::NotANumber {
                line: 1,
                field: 1,
                ..
            })
        ));
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

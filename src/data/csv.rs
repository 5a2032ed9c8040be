//! Comma-separated numbers.

use std::path::Path;

use ndarray::Array2;

use crate::error::{Error, Result};

/// Reads rows of numbers; every line is a row.
pub(super) fn read_csv(path: &Path) -> Result<Array2<f64>> {
    let io = |source| Error::Read {
        path: path.into(),
        source,
    };
    let file = std::fs::File::open(path).map_err(io)?;
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .trim(csv::Trim::All)
        .from_reader(file);
    let mut values = Vec::new();
    let mut columns = 0;
    let mut rows = 0;
    for record in reader.records() {
        let record = record.map_err(|error| csv_error(path, error))?;
        let line = record.position().map_or(0, csv::Position::line);
        for (index, text) in record.iter().enumerate() {
            values.push(text.parse().map_err(|_| Error::CsvNumber {
                path: path.into(),
                line,
                field: index + 1,
                text: text.into(),
            })?);
        }
        columns = record.len();
        rows += 1;
    }
    Ok(Array2::from_shape_vec((rows, columns), values)
        .expect("the reader refuses rows of other lengths"))
}

fn csv_error(path: &Path, error: csv::Error) -> Error {
    let line = error.position().map_or(0, csv::Position::line);
    let text = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(source) => Error::Read {
            path: path.into(),
            source,
        },
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => Error::RaggedCsv {
            path: path.into(),
            line,
            expected: expected_len,
            found: len,
        },
        // Only text that is not UTF-8 is left.
        _ => Error::Read {
            path: path.into(),
            source: std::io::Error::new(std::io::ErrorKind::InvalidData, text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn read(text: &[u8]) -> Result<Array2<f64>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, text).unwrap();
        read_csv(&path)
    }

    #[test]
    fn numbers_are_read_and_mistakes_are_placed() {
        let got = read(b"1, 2.5e-3\n3,4\r\n").unwrap();
        assert_eq!(got, array![[1.0, 2.5e-3], [3.0, 4.0]]);
        assert!(matches!(
            read(b"1,2,3\n4,5\n"),
            Err(Error::RaggedCsv {
                line: 2,
                expected: 3,
                found: 2,
                ..
            })
        ));
        assert!(matches!(
            read(b"1,2\n3,four\n"),
            Err(Error::CsvNumber { line: 2, field: 2, ref text, .. }) if text == "four"
        ));
        assert!(matches!(read(b"1,\xff\n"), Err(Error::Read { .. })));
        assert_eq!(read(b"").unwrap().dim(), (0, 0));
    }
}

//! Separated tables: numbers, with or without names.

use std::io::Read;
use std::path::Path;

use ndarray::Array2;

use super::body::{Body, Header};
use super::dialect::{Known, Separator, detect, reader};
use super::field::Syntax;
use super::text::{Beginning, Encoding, decoded, detect as detect_encoding};
use super::{Detect, Reading, Table, TableOptions};
use crate::data::memory::Room;
use crate::error::{Error, Result};

/// Number of bytes that decide the separator and the decimal sign.
const BEGINNING: usize = 1 << 16;

/// Reads a table. `usual` is the usual separator for the ending of its name.
///
/// Lines that begin with `#` are comments. Names are recognised by words (fields that are neither
/// numbers nor missing):
///
/// - a first column of words below the first row holds labels;
/// - a first row of words (beyond a column of labels) is a header, and so is one
///   with an empty corner or one field short, as pandas and R write them;
/// - above labels, a first row that counts from 0 or holds years is a header, if the entries
///   are not years themselves;
/// - a mixture is an error, unless the options decide.
///
/// Empty fields, `NA` and `NaN` are missing: they become NaN.
pub(in crate::data) fn read_separated(
    input: impl Read,
    name: &str,
    usual: Separator,
    options: TableOptions,
) -> Result<Table> {
    read_within(input, name, usual, options, Room::of(Path::new(name)))
}

/// The same with a memory limit, because the length of a table is unknown before its end.
fn read_within(
    input: impl Read,
    name: &str,
    usual: Separator,
    options: TableOptions,
    room: Room,
) -> Result<Table> {
    let unreadable = Error::reading(Path::new(name));
    let beginning = Beginning::of(input, BEGINNING).map_err(&unreadable)?;
    let encoding = options
        .encoding
        .unwrap_or_else(|| detect_encoding(&beginning.bytes));
    let mut sample = Vec::new();
    decoded(&beginning.bytes[..], encoding)
        .read_to_end(&mut sample)
        .map_err(unreadable)?;
    if beginning.bytes.len() == BEGINNING {
        // The last line of the sample may be incomplete, so it is dropped unless it is the only
        // one.
        let end = sample.iter().rposition(|byte| *byte == b'\n');
        sample.truncate(end.map_or(sample.len(), |end| end + 1));
    }
    let known = Known {
        separator: options.separator,
        decimal: options.decimal,
        usual,
    };
    let sample = String::from_utf8_lossy(&sample);
    let (separator, decimal) = detect(&sample, &known, options.missing_words);
    drop(sample);
    let syntax = Syntax {
        decimal,
        missing_words: options.missing_words,
    };
    // A line end is added after the last line, so that each record ends with one.
    let text = decoded(beginning.whole(), encoding).chain(&b"\n"[..]);
    let mut reader = reader(room.rows_of(text), separator);
    let mut next = || {
        let mut record = csv::StringRecord::new();
        loop {
            reader.get_mut().get_mut().begin();
            let more = reader.read_record(&mut record);
            reader.get_ref().get_ref().check()?;
            // (The parser's own count is that of the comments before a record.)
            let line = reader.position().line() - 1;
            if !more.map_err(|error| csv_error(name, encoding, line, error))? {
                return Ok::<_, Error>(None);
            }
            // A line of blanks is not a row.
            if record.len() == 1 && record[0].is_empty() {
                continue;
            }
            // The decoder has replaced half a character of UTF-16 by a mark.
            if encoding == Encoding::Utf16 && is_torn(&record) {
                return Err(not_text(name, encoding, line));
            }
            let mut position = csv::Position::new();
            position.set_line(line);
            record.set_position(Some(position));
            return Ok(Some(record));
        }
    };
    let reading = |header, labels, guess| Reading {
        header,
        labels,
        separator,
        decimal,
        encoding,
        guess,
    };
    let Some(first) = next()? else {
        return Ok(Table {
            reading: Some(reading(false, false, None)),
            ..Table::from(Array2::zeros((0, 0)))
        });
    };
    // The first column is stored as text until its kind is known.
    let mut body = Body {
        name,
        syntax,
        columns: None,
        first_column: Vec::new(),
        rest: Vec::new(),
        room,
    };
    while let Some(record) = next()? {
        body.push(&record)?;
    }
    let columns = body.columns.unwrap_or(first.len());
    // A first row of words with one field less is R's header, unless the options say otherwise.
    let short = first.len() + 1 == columns
        && options.header != Detect::No
        && options.labels != Detect::No
        && (options.header == Detect::Yes || first.iter().all(|field| body.is_name(field)));
    if !short && first.len() != columns {
        return Err(Error::RaggedTable {
            name: name.into(),
            line: body.first_line(),
            expected: first.len(),
            found: columns,
        });
    }
    let framed = (short || (columns > 1 && body.is_framed(&first))) && !body.is_empty();
    let labelled = match options.labels {
        Detect::Yes => true,
        Detect::No => false,
        Detect::Auto => framed || body.is_labelled(&first)?,
    };
    let seen = match options.header {
        Detect::Auto if !framed => body.header(&first, labelled)?,
        _ => Header::of(options.header == Detect::Yes || options.header == Detect::Auto),
    };
    let guess = seen.guess.or_else(|| {
        let free = options.labels == Detect::Auto && seen.is_one && !labelled;
        free.then(|| body.index_guess(&first)).flatten()
    });
    let column_labels = seen.is_one.then(|| {
        let corner = usize::from(labelled && !short);
        first.iter().skip(corner).map(String::from).collect()
    });
    if !seen.is_one {
        body.prepend(&first)?;
    }
    let mut table = body.table(columns, labelled, column_labels)?;
    table.reading = Some(reading(seen.is_one, labelled, guess));
    Ok(table)
}

fn is_torn(record: &csv::StringRecord) -> bool {
    record.iter().any(|field| field.contains('\u{fffd}'))
}

fn not_text(name: &str, encoding: Encoding, line: u64) -> Error {
    Error::NotText {
        name: name.into(),
        line,
        encoding: encoding.to_string(),
    }
}

fn csv_error(name: &str, encoding: Encoding, line: u64, error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(source) => Error::reading(Path::new(name))(source),
        // The only other error is text that is not UTF-8.
        _ => not_text(name, encoding, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn read_with(text: &[u8], options: TableOptions) -> Result<Table> {
        read_separated(text, "a.csv", Separator::Comma, options)
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
        assert_eq!(got.values, array![[1.0, 2.5e-3], [3.0, 4.0]]);
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
        assert!(matches!(
            read(b"1,2\r\n1,\xff\r\n"),
            Err(Error::NotText { line: 2, .. })
        ));
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
        assert_eq!(as_r_writes_it.values, both.values);
        assert_eq!(names(&as_r_writes_it.row_labels), ["x", "y"]);
        assert_eq!(names(&as_r_writes_it.column_labels), ["a", "b"]);
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
        // A table of pandas, with numbers as names.
        let pandas = read(b",0,1,2\n0,5,6,7\n1,8,9,1\n").unwrap();
        assert_eq!(pandas.values, array![[5.0, 6.0, 7.0], [8.0, 9.0, 1.0]]);
        assert_eq!(names(&pandas.row_labels), ["0", "1"]);
        // A missing entry in the corner stays missing, and a row that is too short is an error.
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
            ..TableOptions::default()
        };
        let years = read_with(b"0,2001,2002\n1,5,6\n2,7,8\n", forced).unwrap();
        assert_eq!(years.values, array![[5.0, 6.0], [7.0, 8.0]]);
        assert_eq!(names(&years.column_labels), ["2001", "2002"]);
        assert_eq!(names(&years.row_labels), ["1", "2"]);
        let none = TableOptions {
            header: Detect::No,
            labels: Detect::No,
            ..TableOptions::default()
        };
        assert!(matches!(
            read_with(b"a,b\n1,2\n", none),
            Err(Error::NotANumber { line: 1, .. })
        ));
        // A short first row is R's header or a mistake, never a row.
        for (header, labels) in [(Detect::No, Detect::Auto), (Detect::Yes, Detect::No)] {
            let options = TableOptions {
                header,
                labels,
                ..TableOptions::default()
            };
            let found = read_with(b"a\nx,1\ny,2\n", options);
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

    /// Shape, header and labels.
    fn seen(text: &str) -> ((usize, usize), bool, bool) {
        let table = read_with(
            text.as_bytes(),
            TableOptions {
                missing_words: true,
                ..TableOptions::default()
            },
        )
        .unwrap();
        let reading = table.reading.unwrap();
        (table.values.dim(), reading.header, reading.labels)
    }

    fn guess(text: &str) -> Option<String> {
        read(text.as_bytes()).unwrap().reading.unwrap().guess
    }

    #[test]
    fn numbers_that_are_names_are_seen_as_such() {
        // DataFrame(X, index=names).to_csv()
        assert_eq!(seen(",0,1,2\nA,1,2,3\nB,3,4,5\n"), ((2, 3), true, true));
        assert_eq!(
            seen("country,2001,2002\nA,1,2\nB,3,4\n"),
            ((2, 2), true, true)
        );
        // An index that was shuffled, and a missing entry.
        assert_eq!(seen(",0,1\n5,1,2\n2,,4\n7,1,3\n"), ((3, 2), true, true));
        assert_eq!(seen(",0,1\n0.5,1,2\n1.5,3,4\n"), ((2, 2), true, true));
        assert_eq!(seen(",2001,2002\n0,5,6\n1,7,8\n"), ((2, 2), true, true));
        assert_eq!(seen(",2001,2002\n7,5,6\n3,7,8\n"), ((2, 2), true, true));
        assert_eq!(seen("Unnamed: 0,a\n0,5\n1,7\n"), ((2, 1), true, true));
        // A table of R, and names that look like missing entries.
        assert_eq!(seen("\"\",\"a\"\n\"1\",5\n\"2\",7\n"), ((2, 1), true, true));
        assert_eq!(
            seen("gene,a,NA\nTP53,5,6\nNA,7,8\n-,1,2\n"),
            ((3, 2), true, true)
        );
        // Steps above labels: wavelengths, samples.
        assert_eq!(seen("gene,1,2,3\nA,1,2,3\nB,3,4,5\n"), ((2, 3), true, true));
        assert_eq!(seen("s,400,402.5,405\nA,1,2,3\n"), ((1, 3), true, true));
        // Numbers that are not names.
        assert_eq!(seen("x,1,2\ny,3,4\n"), ((2, 2), false, true));
        assert_eq!(seen("x,1,3,2\ny,3,4,1\n"), ((2, 3), false, true));
        assert_eq!(seen("x,2001,2002\ny,2003,2004\n"), ((2, 2), false, true));
        assert_eq!(seen("0,1,2\n1,5,6\n"), ((2, 3), false, false));
        assert_eq!(seen("id,a,b\n1,5,6\n2,7,8\n"), ((2, 3), true, false));
    }

    #[test]
    fn guesses_are_said_aloud() {
        let said = |text, words: &str| {
            let guess = guess(text).unwrap_or_default();
            assert!(guess.contains(words), "{text}: {guess}");
        };
        said("id,a,b\n1,5,6\n2,7,8\n", "--labels yes");
        said("country,2001,2002\nA,1,2\nB,3,4\n", "--header no");
        said("2001,2002\n1,2\n3,4\n", "--header yes");
        for silent in ["1,2\n3,4\n", "a,b\n1,2\n", "id,a\n1,5\n1,6\n", "x,1\ny,2\n"] {
            assert_eq!(guess(silent), None, "{silent}");
        }
        // A decision of the options is not a guess.
        let told = TableOptions {
            labels: Detect::No,
            ..TableOptions::default()
        };
        let table = read_with(b"id,a\n1,5\n2,6\n", told).unwrap();
        assert_eq!(table.reading.unwrap().guess, None);
    }

    #[test]
    fn blanks_separate_numbers_that_are_lined_up() {
        let text = |bytes: &[u8]| {
            let options = TableOptions::default();
            read_separated(bytes, "a.txt", Separator::Whitespace, options).unwrap()
        };
        // A table of NumPy's savetxt, and hand-written ones.
        let saved = text(b"# a b\n1.5e+00 2.0e+00\n3.0e+00 4.25e+00\n");
        assert_eq!(saved.values, array![[1.5, 2.0], [3.0, 4.25]]);
        let by_hand = text(b"  x   y\n 1.5\t2 \n\n 30   nan\n");
        assert_eq!(names(&by_hand.column_labels), ["x", "y"]);
        assert!(by_hand.values[[1, 0]] == 30.0 && by_hand.values[[1, 1]].is_nan());
        assert_eq!(by_hand.reading.unwrap().separator, Separator::Whitespace);
        let column = text(b"1\n2\n");
        assert_eq!(column.values, array![[1.0], [2.0]]);
        assert_eq!(text(b"1, 2\n3, 4\n").values.dim(), (2, 2));
        // With the option, blanks separate fields in every file. Lines are counted as in the file.
        let asked = TableOptions {
            separator: Some(Separator::Whitespace),
            ..TableOptions::default()
        };
        assert_eq!(read_with(b"1  2\n", asked).unwrap().values.dim(), (1, 2));
        let wrong = read_with(b"1  2\n\n3  x\n", asked);
        assert!(
            matches!(
                wrong,
                Err(Error::NotANumber {
                    line: 3,
                    field: 2,
                    ..
                })
            ),
            "{wrong:?}"
        );
    }

    #[test]
    fn a_table_without_end_comes_to_one() {
        let within = |input: &mut dyn Read, bytes| {
            let path = Path::new("a.csv.gz");
            let (options, room) = (TableOptions::default(), Room::limited(path, bytes));
            read_within(input, "a.csv.gz", Separator::Comma, options, room)
        };
        // Too many rows, and a row that is too long. (A small compressed file can hold them.)
        let rows = "1,2,3\n".repeat(200_000);
        let found = within(&mut rows.as_bytes(), 1 << 20);
        assert!(matches!(found, Err(Error::ContentsTooLarge { .. })));
        assert!(within(&mut rows.as_bytes(), 1 << 24).is_ok());
        for endless in [b',', b'1', b'"', b' ', b'#'] {
            let found = within(&mut std::io::repeat(endless), 1 << 24);
            assert!(
                matches!(found, Err(Error::ContentsTooLarge { .. })),
                "{endless}: {found:?}"
            );
        }
    }

    #[test]
    fn separators_decimals_and_encodings() {
        let want = array![[1.5, 2.0], [3.0, 4.25]];
        let utf16: Vec<u8> = "\u{feff}1.5\t2\n3\t4.25\n"
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect();
        for text in [
            &b"1.5;2\n3;4.25\n"[..],
            b"1,5;2\r\n3;4,25\r\n",
            b"1.5\t2\n3\t4.25",
            b"\xef\xbb\xbf1.5,2\n3,4.25\n",
            b"1.5,2\r3,4.25\r",
            &utf16,
        ] {
            assert_eq!(read(text).unwrap().values, want, "{text:?}");
        }
        let table = read(b"n;1,5;x\n").map(|_| ());
        assert!(matches!(table, Err(Error::NotANumber { .. })), "{table:?}");
        // Both decimal signs in one table.
        let mixed = read(b"1,5;2,5\n3.5;1,5\n4;1,5\n");
        assert!(
            matches!(&mixed, Err(Error::NotANumber { line: 2, field: 1, decimal, .. }) if decimal == "comma"),
            "{mixed:?}"
        );
        let latin = TableOptions {
            encoding: Some(Encoding::Latin1),
            ..TableOptions::default()
        };
        let named = read_with(b"caf\xe9,1\nth\xe9,2\n", latin).unwrap();
        assert_eq!(names(&named.row_labels), ["café", "thé"]);
        // Half a pair of surrogates.
        let torn: Vec<u8> = [0xfeffu16, 0xd800, 0x2c, 0x31]
            .into_iter()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert!(matches!(read(&torn), Err(Error::NotText { line: 1, .. })));
    }

    #[test]
    fn words_for_missing_entries_need_permission() {
        for word in ["N/A", "n/a", "null", "NULL", "-", "?"] {
            let text = format!("a,b\n1,2\n3,{word}\n");
            let refused = read(text.as_bytes());
            assert!(
                matches!(&refused, Err(Error::MissingField { line: 3, field: 2, text, .. }) if text == word),
                "{refused:?}"
            );
            assert_eq!(seen(&text), ((2, 2), true, false));
        }
    }

    #[test]
    fn lines_are_counted_as_editors_count_them() {
        for text in [
            "# one\n\n1,2\n# four\n3,x\n",
            "# one\r\n\r\n1,2\r\n# four\r\n3,x\r\n",
            "# one\r\r1,2\r# four\r3,x\r",
        ] {
            let found = read(text.as_bytes());
            assert!(
                matches!(
                    found,
                    Err(Error::NotANumber {
                        line: 5,
                        field: 2,
                        ..
                    })
                ),
                "{text:?}: {found:?}"
            );
        }
        let ragged = read(b"1,2\r\n3,4\r\n5\r\n");
        assert!(
            matches!(ragged, Err(Error::RaggedTable { line: 3, .. })),
            "{ragged:?}"
        );
    }
}

//! Detection of the separator and of the decimal sign.

use serde::{Deserialize, Serialize};

use super::blanks::{BLANK, Blanks, is_blank};
use super::field::{Field, Syntax};
use crate::words::words;

/// The separator between two fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Separator {
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// A tabulator.
    Tab,
    /// Any number of blanks and tabulators.
    Whitespace,
}

impl Separator {
    /// Its byte for the parser.
    fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
            Self::Whitespace => BLANK,
        }
    }

    /// Returns true if a byte of the text is this separator.
    fn is(self, byte: u8) -> bool {
        match self {
            Self::Whitespace => is_blank(byte),
            _ => byte == self.byte(),
        }
    }
}

words!(Separator, "separator" {
    Comma = "comma" | ",", Semicolon = "semicolon" | ";", Tab = "tab" | "\t" | "\\t",
    Whitespace = "whitespace" | " ",
});

/// The decimal sign of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decimal {
    /// 1.5
    Point,
    /// 1,5
    Comma,
}

words!(Decimal, "decimal mark" { Point = "point" | ".", Comma = "comma" | "," });

/// Parts of a table's dialect that are given.
pub(super) struct Known {
    pub(super) separator: Option<Separator>,
    pub(super) decimal: Option<Decimal>,
    /// The usual separator for the ending of the file's name.
    pub(super) usual: Separator,
}

/// The separator and the decimal mark of a table, from its first lines.
///
/// A separator is a candidate if it occurs outside quotes. The best candidate gives lines with
/// equally many fields, and fields that are numbers. Among equals a tabulator comes before a
/// semicolon and a semicolon before a comma, because the latter occur in numbers and names. Blanks
/// are candidates only for some endings of the name, and come last, because they also follow
/// commas.
pub(super) fn detect(sample: &str, known: &Known, missing_words: bool) -> (Separator, Decimal) {
    let separators = match (known.separator, known.usual) {
        (Some(separator), _) => vec![separator],
        (None, Separator::Tab) if occurs(sample, Separator::Tab) => vec![Separator::Tab],
        (None, usual) => [Separator::Tab, Separator::Semicolon, Separator::Comma]
            .into_iter()
            .chain((usual == Separator::Whitespace).then_some(usual))
            // A comma that is the given decimal sign is not a separator.
            .filter(|of| !(*of == Separator::Comma && known.decimal == Some(Decimal::Comma)))
            .filter(|separator| occurs(sample, *separator))
            .collect(),
    };
    let decimals = match known.decimal {
        Some(decimal) => vec![decimal],
        None => vec![Decimal::Point, Decimal::Comma],
    };
    let mut best = None;
    for separator in separators {
        for decimal in &decimals {
            let syntax = Syntax {
                decimal: *decimal,
                missing_words,
            };
            let misfit = misfit(sample, separator, syntax);
            // The earlier candidate wins a tie.
            if best.as_ref().is_none_or(|(_, _, least)| misfit < *least) {
                best = Some((separator, *decimal, misfit));
            }
        }
    }
    match best {
        Some((separator, decimal, _)) => (separator, decimal),
        None => (known.usual, known.decimal.unwrap_or(Decimal::Point)),
    }
}

pub(super) fn reader<R: std::io::Read>(input: R, separator: Separator) -> csv::Reader<Blanks<R>> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator.byte())
        .terminator(csv::Terminator::Any(b'\n'))
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(Blanks::of(input, separator == Separator::Whitespace))
}

/// Returns true if a separator occurs outside quotes.
fn occurs(sample: &str, separator: Separator) -> bool {
    let mut quoted = false;
    sample.bytes().any(|byte| {
        quoted ^= byte == b'"';
        !quoted && separator.is(byte)
    })
}

/// Misfit of a reading: true if lines differ in length, then the share of words inside the table,
/// then the share of words among all fields.
fn misfit(sample: &str, separator: Separator, syntax: Syntax) -> (bool, f64, f64) {
    let mut reader = reader(sample.as_bytes(), separator);
    let records: Vec<csv::StringRecord> = reader.records().map_while(Result::ok).collect();
    let Some((first, body)) = records.split_first() else {
        return (true, 1.0, 1.0);
    };
    let columns = body.first().map_or(first.len(), |record| record.len());
    let even = body.iter().all(|record| record.len() == columns)
        && (first.len() == columns || first.len() + 1 == columns);
    let body = if body.is_empty() { &records[..] } else { body };
    // Names are only in the first row and in the first column.
    let share = |records: &[csv::StringRecord], skip: usize| {
        let fields = || records.iter().flat_map(|record| record.iter().skip(skip));
        let words = fields().filter(|text| syntax.read(text) == Field::Word);
        words.count() as f64 / fields().count().max(1) as f64
    };
    let inner = share(body, usize::from(columns > 1));
    (!even, inner, share(&records, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(sample: &str) -> (Separator, Decimal) {
        let known = Known {
            separator: None,
            decimal: None,
            usual: Separator::Comma,
        };
        detect(sample, &known, false)
    }

    #[test]
    fn dialects_are_told_apart() {
        use Decimal::Point;
        use Separator::{Comma, Semicolon, Tab};
        assert_eq!(look("1,2\n3,4\n"), (Comma, Point));
        assert_eq!(look("1;2\n3;4\n"), (Semicolon, Point));
        assert_eq!(look("1,5;2\n3;4,25\n"), (Semicolon, Decimal::Comma));
        assert_eq!(look("a;b\n1,5;2\n3;4,25\n"), (Semicolon, Decimal::Comma));
        assert_eq!(look("1.5\t2\n3\t4\n"), (Tab, Point));
        assert_eq!(look("1,5\t2\n3\t4\n"), (Tab, Decimal::Comma));
        // A quoted separator, or one in a name, does not separate fields.
        assert_eq!(look("a,\"x;y\"\n1,2\n"), (Comma, Point));
        assert_eq!(look("k;1,1,2\nl;2,3,4\n"), (Comma, Point));
        assert_eq!(look("\"1,5\",\"2,5\"\n"), (Comma, Decimal::Comma));
        assert_eq!(look("7\n8\n"), (Comma, Point));
        assert_eq!(look(""), (Comma, Point));
        // A .tsv file without tabulators is read by its contents.
        let known = |decimal, usual| Known {
            separator: None,
            decimal,
            usual,
        };
        assert_eq!(
            detect("a,b\n1,2\n", &known(None, Tab), false),
            (Comma, Point)
        );
        let asked = known(Some(Decimal::Comma), Tab);
        assert_eq!(detect("1,5\n2,5\n", &asked, false), (Tab, Decimal::Comma));
    }

    #[test]
    fn blanks_separate_where_the_name_says_so() {
        use Separator::{Comma, Semicolon, Tab, Whitespace};
        let known = Known {
            separator: None,
            decimal: None,
            usual: Whitespace,
        };
        let of_text = |sample| detect(sample, &known, false);
        assert_eq!(of_text("1 2\n3 4\n"), (Whitespace, Decimal::Point));
        assert_eq!(
            of_text("  1.5   2\n 10 \t4\n"),
            (Whitespace, Decimal::Point)
        );
        assert_eq!(of_text("1,5 2\n3 4,25\n"), (Whitespace, Decimal::Comma));
        assert_eq!(of_text("7\n8\n"), (Whitespace, Decimal::Point));
        // Other separators, with or without blanks beside them.
        assert_eq!(of_text("1, 2\n3, 4\n"), (Comma, Decimal::Point));
        assert_eq!(of_text("a b; c\n1; 2\n"), (Semicolon, Decimal::Point));
        assert_eq!(of_text("x y\t1\t\nz\t3\t4\n"), (Tab, Decimal::Point));
        // In a .csv file blanks belong to names.
        assert_eq!(look("1 2\n3 4\n").0, Comma);
    }
}

//! One field of a table: a number, a missing entry, or a word.

use std::borrow::Cow;

use super::dialect::Decimal;

/// The kind of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Field {
    Number(f64),
    Missing,
    Word,
}

impl Field {
    /// Its value: NaN if it is missing, `None` if it is a word.
    pub(super) fn value(self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(value),
            Self::Missing => Some(f64::NAN),
            Self::Word => None,
        }
    }
}

/// Rules for reading fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Syntax {
    pub(super) decimal: Decimal,
    /// True if an [`is_missing_word`] counts as missing.
    pub(super) missing_words: bool,
}

impl Syntax {
    pub(super) fn read(self, text: &str) -> Field {
        if text.is_empty() || text.eq_ignore_ascii_case("na") {
            return Field::Missing;
        }
        let number = match self.decimal {
            Decimal::Point => Cow::Borrowed(text),
            // A table with both decimal signs is ambiguous.
            Decimal::Comma if text.contains('.') => return Field::Word,
            Decimal::Comma => Cow::Owned(text.replacen(',', ".", 1)),
        };
        match number.parse::<f64>() {
            // "-nan" is as missing as "nan".
            Ok(value) if value.is_nan() => Field::Missing,
            Ok(value) => Field::Number(value),
            Err(_) if self.missing_words && is_missing_word(text) => Field::Missing,
            Err(_) => Field::Word,
        }
    }
}

/// The usual words for a missing entry, beyond an empty field, NA and NaN. Each of them may be a
/// typing mistake, so they count only if missing entries are expected.
pub(super) fn is_missing_word(text: &str) -> bool {
    matches!(text, "-" | "?")
        || ["n/a", "null"]
            .iter()
            .any(|word| text.eq_ignore_ascii_case(word))
}

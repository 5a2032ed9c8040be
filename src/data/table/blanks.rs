//! Tables whose fields are separated by any number of blanks.

use std::io::{self, Read};

/// Bytes that are processed at a time.
const CHUNK: usize = 1 << 13;

/// The separator after the blanks are joined.
pub(super) const BLANK: u8 = b' ';

/// Returns true if a byte is a blank.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Text in which each run of blanks and tabulators between two fields is one blank, and lines
/// neither begin nor end with one. Quoted text and comments stay as they are. With another
/// separator the whole text stays as it is.
pub(super) struct Blanks<R> {
    input: R,
    joins: bool,
    place: Place,
    /// True if blanks were skipped since the last stored byte.
    apart: bool,
    /// Bytes for the reader, and the number of those that it has taken.
    ready: Vec<u8>,
    given: usize,
}

/// Position of the next byte in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Field,
    Quoted,
    /// After a quote. It ends the field unless another quote follows.
    BehindQuote,
    Comment,
}

impl<R> Blanks<R> {
    /// Joins blanks, or passes the text on unchanged.
    pub(super) fn of(input: R, joins: bool) -> Self {
        Self {
            input,
            joins,
            place: Place::Start,
            apart: false,
            ready: Vec::new(),
            given: 0,
        }
    }

    pub(super) fn get_ref(&self) -> &R {
        &self.input
    }

    pub(super) fn get_mut(&mut self) -> &mut R {
        &mut self.input
    }

    fn take(&mut self, byte: u8) {
        let next = match (self.place, byte) {
            (Place::Comment, b'\n') => Place::Start,
            (Place::Comment, _) => Place::Comment,
            (Place::Quoted, b'"') => Place::BehindQuote,
            (Place::Quoted, _) | (Place::BehindQuote, b'"') => Place::Quoted,
            (_, b'\n') => {
                self.apart = false;
                Place::Start
            }
            (place, blank) if is_blank(blank) => {
                self.apart = place != Place::Start;
                if place == Place::BehindQuote {
                    self.place = Place::Field;
                }
                return;
            }
            (Place::Start, b'#') => Place::Comment,
            (place, byte) => {
                let is_first = place == Place::Start || self.apart;
                if self.apart {
                    self.ready.push(BLANK);
                    self.apart = false;
                }
                if is_first && byte == b'"' {
                    Place::Quoted
                } else {
                    Place::Field
                }
            }
        };
        self.place = next;
        self.ready.push(byte);
    }
}

impl<R: Read> Read for Blanks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.joins {
            return self.input.read(buffer);
        }
        // A chunk of blanks gives no bytes, but it is not the end.
        while self.given == self.ready.len() {
            let mut chunk = [0; CHUNK];
            let read = self.input.read(&mut chunk)?;
            if read == 0 {
                return Ok(0);
            }
            self.ready.clear();
            self.given = 0;
            for byte in &chunk[..read] {
                self.take(*byte);
            }
        }
        let waiting = &self.ready[self.given..];
        let length = waiting.len().min(buffer.len());
        buffer[..length].copy_from_slice(&waiting[..length]);
        self.given += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(text: &str) -> String {
        let mut whole = String::new();
        let mut blanks = Blanks::of(text.as_bytes(), true);
        blanks.read_to_string(&mut whole).unwrap();
        // The same text, read in pieces of any length.
        struct Single<'a>(&'a [u8]);
        impl Read for Single<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let length = buffer.len().min(1);
                self.0.read(&mut buffer[..length])
            }
        }
        let mut torn = String::new();
        let mut blanks = Blanks::of(Single(text.as_bytes()), true);
        blanks.read_to_string(&mut torn).unwrap();
        assert_eq!(whole, torn);
        whole
    }

    #[test]
    fn runs_of_blanks_become_one() {
        assert_eq!(joined("  1 \t 2\n3    4  \n"), "1 2\n3 4\n");
        assert_eq!(joined(" \t \n\n1\n"), "\n\n1\n");
        assert_eq!(joined("a  b"), "a b");
        assert_eq!(joined("1 "), "1");
        // Quotes and comments keep their blanks.
        assert_eq!(joined("\"a  b\"  1\n"), "\"a  b\" 1\n");
        assert_eq!(joined("\"a \"\" \n b\"  1\n"), "\"a \"\" \n b\" 1\n");
        assert_eq!(joined("\"a\" \"b  c\"\n"), "\"a\" \"b  c\"\n");
        assert_eq!(joined("5\"  6\"  7\n"), "5\" 6\" 7\n");
        assert_eq!(
            joined("  # it  isn't \" so\n1  2\n"),
            "# it  isn't \" so\n1 2\n"
        );
        let kept = "  1 \t 2\n";
        let mut whole = String::new();
        let mut blanks = Blanks::of(kept.as_bytes(), false);
        blanks.read_to_string(&mut whole).unwrap();
        assert_eq!(whole, kept);
    }
}

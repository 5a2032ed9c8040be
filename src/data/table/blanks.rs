//! Tables whose fields stand apart by blanks: as many as it takes to line them up.

use std::io::{self, Read};

/// Bytes that are looked at together.
const CHUNK: usize = 1 << 13;

/// What separates the fields once the blanks are joined.
pub(super) const BLANK: u8 = b' ';

/// Whether a byte is a blank.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Text in which each run of blanks and tabulators between two fields is one blank, and none
/// stands at either end of a line. What is quoted or commented out stays as it is, and so does
/// all of it where fields are separated by something else.
pub(super) struct Blanks<R> {
    input: R,
    joins: bool,
    place: Place,
    /// Blanks were passed over since the last byte that was kept.
    apart: bool,
    /// Bytes to be handed out, and how many of them have been.
    ready: Vec<u8>,
    given: usize,
}

/// Where in a line the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Field,
    Quoted,
    /// Right behind a quote that ends a field, unless another one follows.
    BehindQuote,
    Comment,
}

impl<R> Blanks<R> {
    /// Joins blanks, or hands everything on.
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
        // A chunk of blanks alone leaves nothing, and is not yet the end.
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
        // The same, torn anywhere.
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
        // Quotes and comments keep theirs.
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

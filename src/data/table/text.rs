//! Conversion of bytes to text: encodings, byte order marks, line ends.

use std::io::{self, Read};

use encoding_rs_io::{DecodeReaderBytes, DecodeReaderBytesBuilder};
use serde::{Deserialize, Serialize};

use crate::words::words;

/// The encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// UTF-8, with or without a byte order mark.
    #[serde(rename = "utf-8")]
    Utf8,
    /// UTF-16 in the byte order of its mark.
    #[serde(rename = "utf-16")]
    Utf16,
    /// One byte per character. Bytes 80 to 9F are read as in Windows-1252, as on the web.
    #[serde(rename = "latin-1")]
    Latin1,
}

words!(Encoding, "encoding" (to_ascii_lowercase) {
    Utf8 = "utf-8" | "utf8", Utf16 = "utf-16" | "utf16",
    Latin1 = "latin-1" | "latin1" | "iso-8859-1" | "windows-1252",
});

/// The first bytes of a file, read before the rest.
pub(super) struct Beginning<R> {
    pub(super) bytes: Vec<u8>,
    rest: R,
}

impl<R: Read> Beginning<R> {
    /// Reads at most `most` bytes.
    pub(super) fn of(mut input: R, most: usize) -> io::Result<Self> {
        let mut bytes = Vec::new();
        input.by_ref().take(most as u64).read_to_end(&mut bytes)?;
        Ok(Self { bytes, rest: input })
    }

    /// The whole input again.
    pub(super) fn whole(self) -> impl Read {
        io::Cursor::new(self.bytes).chain(self.rest)
    }
}

/// The encoding of a byte order mark; UTF-8 without one.
pub(super) fn detect(beginning: &[u8]) -> Encoding {
    match beginning {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Encoding::Utf16,
        _ => Encoding::Utf8,
    }
}

/// The text as UTF-8 with `\n` at the end of each line. UTF-8 is passed on unchanged; the parser
/// finds bytes that are not UTF-8.
pub(super) fn decoded<R: Read>(input: R, encoding: Encoding) -> impl Read {
    let mut builder = DecodeReaderBytesBuilder::new();
    builder.utf8_passthru(true).strip_bom(true);
    match encoding {
        Encoding::Utf8 => {}
        // Without a mark: little-endian, the byte order of most machines that write such files.
        Encoding::Utf16 => {
            builder
                .encoding(Some(encoding_rs::UTF_16LE))
                .bom_override(true);
        }
        Encoding::Latin1 => {
            builder.encoding(Some(encoding_rs::WINDOWS_1252));
        }
    }
    Lines::of(builder.build(input))
}

/// `\r\n` and a lone `\r` become `\n`, so that lines are counted as editors count them.
struct Lines<R> {
    input: R,
    after_return: bool,
}

impl<R: Read> Lines<DecodeReaderBytes<R, Vec<u8>>> {
    fn of(input: DecodeReaderBytes<R, Vec<u8>>) -> Self {
        Self {
            input,
            after_return: false,
        }
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.input.read(buffer)?;
            let mut kept = 0;
            for at in 0..read {
                let byte = buffer[at];
                let second_of_pair = byte == b'\n' && self.after_return;
                self.after_return = byte == b'\r';
                if !second_of_pair {
                    buffer[kept] = if byte == b'\r' { b'\n' } else { byte };
                    kept += 1;
                }
            }
            // A read that gives no bytes after conversion is not the end.
            if kept > 0 || read == 0 {
                return Ok(kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], encoding: Encoding) -> String {
        let mut text = String::new();
        decoded(bytes, encoding).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn encodings_and_line_ends_become_one() {
        assert_eq!(text(b"a\r\nb\rc\n\r\n", Encoding::Utf8), "a\nb\nc\n\n");
        assert_eq!(text("\u{feff}é".as_bytes(), Encoding::Utf8), "é");
        let utf16 = |big: bool| {
            let units = "\u{feff}é1\r\n".encode_utf16();
            let bytes = units.flat_map(|unit| {
                if big {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                }
            });
            bytes.collect::<Vec<u8>>()
        };
        for bytes in [utf16(true), utf16(false)] {
            assert_eq!(detect(&bytes), Encoding::Utf16);
            assert_eq!(text(&bytes, Encoding::Utf16), "é1\n");
        }
        assert_eq!(text(b"caf\xe9", Encoding::Latin1), "café");
        // A pair that is split between two reads.
        let mut lines = decoded(&b"a\r\nb"[..], Encoding::Utf8);
        let (mut all, mut one) = (Vec::new(), [0]);
        while lines.read(&mut one).unwrap() == 1 {
            all.push(one[0]);
        }
        assert_eq!(all, b"a\nb");
    }
}

//! Files compressed by gzip, decompressed while they are read.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use flate2::bufread::MultiGzDecoder;

/// Bytes that are decompressed at a time.
const CHUNK: usize = 1 << 16;

/// The decompressed contents of a gzip file with one or several members.
///
/// Its length is unknown before the end, so callers must count the bytes that they keep.
pub(super) fn unpacked(input: impl BufRead) -> impl BufRead {
    BufReader::with_capacity(CHUNK, Unpacked(MultiGzDecoder::new(input)))
}

/// A stream whose errors describe the fault.
struct Unpacked<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::UnexpectedEof => {
                let reason = format!("its gzip stream is truncated or damaged ({error})");
                io::Error::new(error.kind(), reason)
            }
            _ => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        unpacked(bytes).read_to_end(&mut all)?;
        Ok(all)
    }

    #[test]
    fn one_piece_or_several_are_unpacked_and_a_torn_one_is_not() {
        let text: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        let whole = packed(&text);
        assert_eq!(unpack(&whole).unwrap(), text);
        let twice = [packed(b"1,2\n"), packed(b"3,4\n")].concat();
        assert_eq!(unpack(&twice).unwrap(), b"1,2\n3,4\n");
        let short = packed(b"1,2\n3,4\n");
        for cut in 0..short.len() {
            let torn = unpack(&short[..cut]).unwrap_err().to_string();
            assert!(torn.contains("damaged"), "{cut}: {torn}");
        }
        let mut damaged = short;
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        assert!(unpack(&damaged).is_err());
        assert!(unpack(b"1,2\n3,4\n").is_err());
    }
}

//! A map as a small PNG inside a page.

use std::io::Write;

use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use ndarray::Array2;

/// Shades between ground and ink: a picture has 2 to the power of [`BITS`] of them.
const BITS: u8 = 4;
const SHADES: usize = 1 << BITS;
/// The ink.
const INK: [u8; 3] = [0x00, 0x72, 0xb2];

/// A nonnegative map as a data URL: transparent where the map is 0, ink where it is largest.
pub(super) fn data_address(map: &Array2<f64>) -> String {
    format!("data:image/png;base64,{}", base64(&png(map)))
}

fn png(map: &Array2<f64>) -> Vec<u8> {
    let (rows, columns) = map.dim();
    let mut bytes = vec![0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a];
    let mut head = Vec::new();
    head.extend((columns as u32).to_be_bytes());
    head.extend((rows as u32).to_be_bytes());
    // Bits per pixel, colours from a palette, and the only methods of compression and filtering.
    head.extend([BITS, 3, 0, 0, 0]);
    chunk(&mut bytes, b"IHDR", &head);
    chunk(&mut bytes, b"PLTE", &INK.repeat(SHADES));
    let alpha: Vec<u8> = (0..SHADES)
        .map(|shade| (shade * 255 / (SHADES - 1)) as u8)
        .collect();
    chunk(&mut bytes, b"tRNS", &alpha);
    chunk(&mut bytes, b"IDAT", &deflated(&pixels(map)));
    chunk(&mut bytes, b"IEND", &[]);
    bytes
}

/// Rows of pixels, two per byte. Each row begins with a zero, which means that it is not filtered.
fn pixels(map: &Array2<f64>) -> Vec<u8> {
    let largest = map.iter().copied().fold(0.0, f64::max);
    let shade = |value: &f64| {
        let share = if largest > 0.0 { value / largest } else { 0.0 };
        (share.clamp(0.0, 1.0) * (SHADES - 1) as f64).round() as u8
    };
    let mut pixels = Vec::new();
    for row in map.rows() {
        let row: Vec<u8> = row.iter().map(shade).collect();
        pixels.push(0);
        let pairs = row.chunks(2);
        pixels.extend(pairs.map(|pair| pair[0] << BITS | pair.get(1).copied().unwrap_or(0)));
    }
    pixels
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory does not fail");
    encoder.finish().expect("memory does not fail")
}

fn chunk(bytes: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(kind);
    bytes.extend(data);
    let mut sum = Crc::new();
    sum.update(kind);
    sum.update(data);
    bytes.extend(sum.sum().to_be_bytes());
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let all = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = (all >> (18 - 6 * place)) & 63;
            let used = place <= three.len();
            text.push(if used {
                DIGITS[digit as usize] as char
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::ZlibDecoder;
    use ndarray::array;
    use std::io::Read;

    #[test]
    fn text_of_bytes_is_that_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn every_pixel_has_its_shade() {
        let map = array![[0.0, 2.0, 1.0], [2.0, 0.0, 0.0]];
        assert_eq!(pixels(&map), [0, 0x0f, 0x80, 0, 0xf0, 0x00]);
        assert_eq!(pixels(&Array2::zeros((1, 2))), [0, 0]);
        let bytes = png(&map);
        let name = bytes.windows(4).position(|four| four == b"IDAT").unwrap();
        let mut read = Vec::new();
        ZlibDecoder::new(&bytes[name + 4..])
            .read_to_end(&mut read)
            .unwrap();
        assert_eq!(read, pixels(&map));
        assert!(data_address(&map).starts_with("data:image/png;base64,iVBORw0KGgo"));
    }
}

//! MATLAB's .mat, level 5, compressed or not.
//!
//! A file is a header of 128 bytes and a chain of elements. An element has a type,
//! a length and contents, padded to eight bytes (or, if it is at most four bytes
//! long, all of that in eight bytes). A matrix is an element of elements: flags,
//! dimensions, name, real part, imaginary part. A compressed element holds one
//! element in zlib's format. Whole numbers are stored in the narrowest type that
//! holds them, whatever the matrix's class.

use std::io::Read;
use std::path::Path;

use ndarray::{Array2, ShapeBuilder};

use crate::error::{Error, Result};

const HEADER: usize = 128;
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
/// Classes of full numeric matrices: double, single, and the integers.
const NUMERIC: std::ops::RangeInclusive<u8> = 6..=15;
/// Flag of a matrix with an imaginary part.
const COMPLEX: u32 = 0x0800;

/// What is wrong with a file.
type Reason = String;

/// A two-dimensional numeric matrix in a file.
struct Matrix {
    name: String,
    shape: (usize, usize),
    is_complex: bool,
    /// Column by column.
    values: Vec<f64>,
}

/// Reads a real matrix: the one of that name, or the only one.
pub(super) fn read_mat(
    mut input: impl Read,
    path: &Path,
    variable: Option<&str>,
) -> Result<Array2<f64>> {
    let wrong = |reason: Reason| Error::Mat {
        path: path.into(),
        reason,
    };
    let mut bytes = Vec::new();
    input
        .read_to_end(&mut bytes)
        .map_err(|source| Error::Read {
            path: path.into(),
            source,
        })?;
    let matrices = matrices(&bytes).map_err(wrong)?;
    if matrices.is_empty() {
        return Err(wrong("it holds no numeric matrix".into()));
    }
    let known: Vec<&str> = matrices.iter().map(|matrix| matrix.name.as_str()).collect();
    let unknown = Error::MatVariable {
        path: path.into(),
        variable: variable.map(String::from),
        known: known.join(", "),
    };
    let single = matrices.len() == 1;
    let mut wanted = matrices.into_iter().filter(|matrix| match variable {
        Some(name) => matrix.name == name,
        None => single,
    });
    let matrix = wanted.next().ok_or(unknown)?;
    if matrix.is_complex {
        return Err(wrong(format!("the matrix {} is complex", matrix.name)));
    }
    let (rows, columns) = matrix.shape;
    let found = matrix.values.len();
    Array2::from_shape_vec(matrix.shape.f(), matrix.values)
        .map(|matrix| matrix.as_standard_layout().into_owned())
        .map_err(|_| wrong(format!("{rows}×{columns} entries promised, {found} found")))
}

/// All two-dimensional numeric matrices of a file; text, cells, structures and
/// sparse matrices are passed over.
fn matrices(bytes: &[u8]) -> Result<Vec<Matrix>, Reason> {
    if bytes.len() < HEADER {
        return Err("it is shorter than a header".into());
    }
    if bytes.starts_with(b"\x89HDF") || bytes.starts_with(b"MATLAB 7.3") {
        return Err("it is of version 7.3 (HDF5); save it with '-v7'".into());
    }
    let little_endian = match &bytes[126..128] {
        b"IM" => true,
        b"MI" => false,
        _ => return Err("it is not a level 5 MAT-file".into()),
    };
    let mut chain = Chain {
        bytes: &bytes[HEADER..],
        little_endian,
        padded: false,
    };
    let mut matrices = Vec::new();
    while let Some((kind, contents)) = chain.next()? {
        let inflated;
        let (kind, contents) = if kind == COMPRESSED {
            inflated = inflate(contents, little_endian)?;
            let mut inner = Chain {
                bytes: &inflated,
                little_endian,
                padded: false,
            };
            inner.next()?.ok_or("a compressed element is empty")?
        } else {
            (kind, contents)
        };
        if kind == MATRIX {
            matrices.extend(matrix(contents, little_endian)?);
        }
    }
    Ok(matrices)
}

/// Decompresses an element that says how long it is, and must be.
fn inflate(bytes: &[u8], little_endian: bool) -> Result<Vec<u8>, Reason> {
    let torn = || Reason::from("it is torn: a compressed element cannot be decompressed");
    let mut decoder = libflate::zlib::Decoder::new(bytes).map_err(|_| torn())?;
    let mut tag = [0; 8];
    decoder.read_exact(&mut tag).map_err(|_| torn())?;
    let promised = u64::from(number(&tag[4..], little_endian).ok_or_else(torn)?);
    let mut inflated = tag.to_vec();
    let mut rest = decoder.take(promised + 1);
    let found = rest.read_to_end(&mut inflated).map_err(|_| torn())? as u64;
    if found == promised {
        Ok(inflated)
    } else {
        Err("it is damaged: a compressed element is not as long as it says".into())
    }
}

/// The matrix that an element holds, if it is one that can be read.
fn matrix(contents: &[u8], little_endian: bool) -> Result<Option<Matrix>, Reason> {
    let mut parts = Chain {
        bytes: contents,
        little_endian,
        padded: true,
    };
    let mut part = || {
        let part = parts.next()?;
        part.ok_or_else(|| Reason::from("it is torn: a matrix lacks a part"))
    };
    let (_, flags) = part()?;
    let flags = flags
        .get(..4)
        .and_then(|flags| number(flags, little_endian));
    let flags = flags.ok_or("it is damaged: a matrix has no class")?;
    if !NUMERIC.contains(&(flags as u8)) {
        return Ok(None);
    }
    let (_, dimensions) = part()?;
    let dimensions: Option<Vec<usize>> = dimensions
        .chunks(4)
        .map(|length| usize::try_from(number(length, little_endian)? as i32).ok())
        .collect();
    let dimensions = dimensions.ok_or("it is damaged: a matrix has a negative dimension")?;
    let (_, name) = part()?;
    let name = String::from_utf8_lossy(name).into_owned();
    let [rows, columns] = dimensions[..] else {
        return Ok(None);
    };
    let (kind, real) = part()?;
    let values = numbers(kind, real, little_endian)
        .ok_or_else(|| format!("the matrix {name} is stored in an unknown way"))?;
    Ok(Some(Matrix {
        name,
        shape: (rows, columns),
        is_complex: flags & COMPLEX != 0,
        values,
    }))
}

/// Elements one after another.
struct Chain<'a> {
    bytes: &'a [u8],
    little_endian: bool,
    /// Whether elements are padded to eight bytes; those of a file are not.
    padded: bool,
}

impl<'a> Chain<'a> {
    /// The next element's type and contents; `None` at the end.
    fn next(&mut self) -> Result<Option<(u32, &'a [u8])>, Reason> {
        if self.bytes.is_empty() {
            return Ok(None);
        }
        let torn = || Reason::from("it is torn: an element is longer than the file");
        let word = |at: usize| {
            let bytes = self.bytes.get(at..at + 4);
            bytes.and_then(|bytes| number(bytes, self.little_endian))
        };
        let first = word(0).ok_or_else(torn)?;
        // A small element keeps its length in the upper half of its type.
        let small = (first >> 16) as usize;
        let (kind, start, length): (u32, usize, usize) = if small > 0 {
            (first & 0xffff, 4, small)
        } else {
            (first, 8, word(4).ok_or_else(torn)? as usize)
        };
        let end = start
            .checked_add(length)
            .filter(|end| *end <= self.bytes.len());
        let end = end.filter(|_| small <= 4).ok_or_else(torn)?;
        let contents = &self.bytes[start..end];
        let next = match (small > 0, self.padded) {
            (true, _) => 8,
            (false, true) => end.next_multiple_of(8),
            (false, false) => end,
        };
        self.bytes = self.bytes.get(next..).unwrap_or_default();
        Ok(Some((kind, contents)))
    }
}

/// Four bytes as a number.
fn number(bytes: &[u8], little_endian: bool) -> Option<u32> {
    let bytes: [u8; 4] = bytes.try_into().ok()?;
    Some(if little_endian {
        u32::from_le_bytes(bytes)
    } else {
        u32::from_be_bytes(bytes)
    })
}

/// Stored numbers as 64-bit floats; `None` for a type that is not a number, or a
/// length that is not a whole number of them.
fn numbers(kind: u32, bytes: &[u8], little_endian: bool) -> Option<Vec<f64>> {
    macro_rules! read {
        ($number:ty) => {{
            const WIDTH: usize = size_of::<$number>();
            let (numbers, rest) = bytes.as_chunks::<WIDTH>();
            let convert = |bytes: &[u8; WIDTH]| {
                let number = if little_endian {
                    <$number>::from_le_bytes(*bytes)
                } else {
                    <$number>::from_be_bytes(*bytes)
                };
                number as f64
            };
            rest.is_empty()
                .then(|| numbers.iter().map(convert).collect())
        }};
    }
    match kind {
        1 => read!(i8),
        2 => read!(u8),
        3 => read!(i16),
        4 => read!(u16),
        5 => read!(i32),
        6 => read!(u32),
        7 => read!(f32),
        9 => read!(f64),
        12 => read!(i64),
        13 => read!(u64),
        _ => None,
    }
}

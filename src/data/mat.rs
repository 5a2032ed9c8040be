//! MATLAB's .mat, level 5, compressed or not.
//!
//! A file is a header of 128 bytes and a chain of elements. An element has a type, a length and
//! contents, padded to eight bytes (or, if it is at most four bytes long, all of that in eight
//! bytes). A matrix is an element of elements: flags, dimensions, name, real part, imaginary part.
//! A compressed element holds one element in zlib's format. Whole numbers are stored in the
//! narrowest type that holds them, independent of the matrix's class.
//!
//! Only the head of each matrix is decompressed, and the entries of the requested one, straight
//! into the result. So a file cannot take more memory than its result.

mod sparse;

use std::io::Read;
use std::path::Path;

use flate2::bufread::ZlibDecoder;
use ndarray::Array2;

use super::memory::{Room, check_room};
use crate::error::{Error, Result};
use crate::sparse::Matrix;

const HEADER: usize = 128;
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
/// The class of sparse matrices.
const SPARSE: u8 = 5;
/// Classes of full numeric matrices: double, single, and the integers.
const NUMERIC: std::ops::RangeInclusive<u8> = 6..=15;
/// Flag of a matrix with an imaginary part.
const COMPLEX: u32 = 0x0800;
/// Largest number of bytes of flags, dimensions or a name. It is far more than MATLAB allows.
const LONGEST_PART: usize = 1 << 12;
/// Bytes of entries that are converted at a time.
const CHUNK: usize = 1 << 16;

/// Description of a fault of a file.
type Reason = String;

/// The head of a two-dimensional matrix in a file.
struct Head<'a> {
    name: String,
    shape: (usize, usize),
    is_sparse: bool,
    is_complex: bool,
    element: Element<'a>,
}

/// Reads a real matrix, full or sparse: the one of that name, or the only one.
pub(super) fn read_mat(
    mut input: impl Read,
    path: &Path,
    variable: Option<&str>,
) -> Result<Matrix> {
    let wrong = |reason: Reason| Error::Mat {
        path: path.into(),
        reason,
    };
    let mut bytes = Vec::new();
    input
        .read_to_end(&mut bytes)
        .map_err(Error::reading(path))?;
    let heads = heads(&bytes).map_err(wrong)?;
    if heads.is_empty() {
        return Err(wrong("it holds no numeric matrix".into()));
    }
    let is_meant = |head: &&Head| match variable {
        Some(name) => head.name == name,
        None => heads.len() == 1,
    };
    let Some(head) = heads.iter().find(is_meant) else {
        let known: Vec<&str> = heads.iter().map(|head| head.name.as_str()).collect();
        return Err(Error::MatVariable {
            path: path.into(),
            variable: variable.map(String::from),
            known: known.join(", "),
        });
    };
    if head.is_complex {
        return Err(wrong(format!("the matrix {} is complex", head.name)));
    }
    Ok(if head.is_sparse {
        head.sparse(path, &mut Room::of(path))?.into()
    } else {
        head.entries(path)?.into()
    })
}

/// The heads of all two-dimensional numeric matrices; text, cells and structures are skipped.
fn heads(bytes: &[u8]) -> Result<Vec<Head<'_>>, Reason> {
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
    let mut rest = &bytes[HEADER..];
    let mut heads = Vec::new();
    while !rest.is_empty() {
        let (element, behind) = Element::split(rest, little_endian)?;
        rest = behind;
        heads.extend(element.head()?);
    }
    Ok(heads)
}

/// An element of the file itself.
#[derive(Clone, Copy)]
struct Element<'a> {
    kind: u32,
    contents: &'a [u8],
    little_endian: bool,
}

impl<'a> Element<'a> {
    /// The first element, and the bytes after it.
    fn split(bytes: &'a [u8], little_endian: bool) -> Result<(Self, &'a [u8]), Reason> {
        let torn = || Reason::from("it is damaged: an element is longer than the file");
        let mut tag = bytes;
        let Tag { kind, length, .. } = Tag::read(&mut tag, little_endian).map_err(|_| torn())?;
        let start = bytes.len() - tag.len();
        let end = start
            .checked_add(length)
            .filter(|end| *end <= bytes.len())
            .ok_or_else(torn)?;
        let element = Self {
            kind,
            contents: &bytes[start..end],
            little_endian,
        };
        // (Elements of a file are not padded; those of a matrix are.)
        let next = if start == 4 { 8 } else { end };
        Ok((element, bytes.get(next..).unwrap_or_default()))
    }

    /// The parts of the matrix in it, to be read one after another. `None` if it is not a matrix.
    fn parts(self) -> Result<Option<Parts<Box<dyn Read + 'a>>>, Reason> {
        let (kind, length, input): (u32, usize, Box<dyn Read + 'a>) = if self.kind == COMPRESSED {
            let torn =
                |_| Reason::from("it is damaged: a compressed element cannot be decompressed");
            let mut decoder = ZlibDecoder::new(self.contents);
            let tag = Tag::read(&mut decoder, self.little_endian).map_err(torn)?;
            (tag.kind, tag.length, Box::new(decoder))
        } else {
            (self.kind, self.contents.len(), Box::new(self.contents))
        };
        Ok((kind == MATRIX).then_some(Parts {
            input,
            left: length,
            little_endian: self.little_endian,
        }))
    }

    fn head(self) -> Result<Option<Head<'a>>, Reason> {
        let Some(mut parts) = self.parts()? else {
            return Ok(None);
        };
        parts.head(self)
    }
}

impl Head<'_> {
    /// Its entries, row by row.
    fn entries(&self, path: &Path) -> Result<Array2<f64>> {
        let wrong = |reason: Reason| Error::Mat {
            path: path.into(),
            reason,
        };
        let (rows, columns) = self.shape;
        let mut parts = self.element.parts().map_err(wrong)?;
        let parts = parts.as_mut().expect("it was a matrix before");
        parts.head(self.element).map_err(wrong)?;
        let Tag { kind, length, .. } = parts.next().map_err(wrong)?;
        let name = &self.name;
        let width = width(kind)
            .ok_or_else(|| wrong(format!("the matrix {name} is stored in an unknown way")))?;
        let promised = rows.checked_mul(columns);
        if promised.and_then(|entries| entries.checked_mul(width)) != Some(length) {
            let found = length / width;
            return Err(wrong(format!(
                "{rows}×{columns} entries promised, {found} found"
            )));
        }
        check_room(path, rows, columns)?;
        let mut values = Array2::zeros(self.shape);
        let mut places = (0..columns).flat_map(|column| (0..rows).map(move |row| (row, column)));
        let mut chunk = vec![0; CHUNK.min(length)];
        let mut left = length;
        while left > 0 {
            let bytes = &mut chunk[..CHUNK.min(left)];
            parts.fill(bytes).map_err(wrong)?;
            left -= bytes.len();
            each_number(kind, bytes, self.element.little_endian, |number| {
                let place = places.next().expect("as many as were promised");
                values[place] = number;
            });
        }
        parts.finish().map_err(wrong)?;
        Ok(values)
    }
}

/// Type and length of an element.
struct Tag {
    kind: u32,
    length: usize,
    /// Bytes between its contents and the next element of a matrix.
    padding: usize,
    /// Bytes of the tag itself.
    size: usize,
}

impl Tag {
    fn read(input: &mut impl Read, little_endian: bool) -> std::io::Result<Self> {
        let mut word = || -> std::io::Result<u32> {
            let mut bytes = [0; 4];
            input.read_exact(&mut bytes)?;
            Ok(if little_endian {
                u32::from_le_bytes(bytes)
            } else {
                u32::from_be_bytes(bytes)
            })
        };
        let first = word()?;
        // A small element has its length in the upper half of its type.
        let small = (first >> 16) as usize;
        match small {
            0 => {
                let length = word()? as usize;
                Ok(Self {
                    kind: first,
                    length,
                    padding: length.next_multiple_of(8) - length,
                    size: 8,
                })
            }
            1..=4 => Ok(Self {
                kind: first & 0xffff,
                length: small,
                padding: 4 - small,
                size: 4,
            }),
            _ => Err(std::io::ErrorKind::InvalidData.into()),
        }
    }
}

/// The elements of a matrix, in the order of the file.
struct Parts<R> {
    input: R,
    /// Bytes of the matrix that are left, by its header.
    left: usize,
    little_endian: bool,
}

impl<R: Read> Parts<R> {
    fn torn() -> Reason {
        "it is damaged: a matrix lacks a part".into()
    }

    /// Reads bytes until the buffer is full.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Reason> {
        self.left = self.left.checked_sub(bytes.len()).ok_or_else(Self::torn)?;
        self.input.read_exact(bytes).map_err(|_| Self::torn())
    }

    /// The tag of the next part.
    fn next(&mut self) -> Result<Tag, Reason> {
        let tag = Tag::read(&mut self.input, self.little_endian).map_err(|_| Self::torn())?;
        self.left = self.left.checked_sub(tag.size).ok_or_else(Self::torn)?;
        Ok(tag)
    }

    /// The next part, which must be short.
    fn short(&mut self) -> Result<Vec<u8>, Reason> {
        let tag = self.next()?;
        if tag.length > LONGEST_PART.min(self.left) {
            return Err("it is damaged: the head of a matrix has no end".into());
        }
        let mut bytes = vec![0; tag.length];
        self.fill(&mut bytes)?;
        self.fill(&mut [0; 8][..tag.padding])?;
        Ok(bytes)
    }

    /// Flags, dimensions and name, if it is a matrix that altbi knows.
    fn head<'a>(&mut self, element: Element<'a>) -> Result<Option<Head<'a>>, Reason> {
        let number = |bytes: &[u8]| {
            let bytes: [u8; 4] = bytes.try_into().ok()?;
            Some(if element.little_endian {
                u32::from_le_bytes(bytes)
            } else {
                u32::from_be_bytes(bytes)
            })
        };
        let flags = self.short()?;
        let flags = flags.get(..4).and_then(number);
        let flags = flags.ok_or("it is damaged: a matrix has no class")?;
        let class = flags as u8;
        if class != SPARSE && !NUMERIC.contains(&class) {
            return Ok(None);
        }
        let dimensions: Option<Vec<usize>> = self
            .short()?
            .chunks(4)
            .map(|length| usize::try_from(number(length)? as i32).ok())
            .collect();
        let dimensions = dimensions.ok_or("it is damaged: a matrix has a negative dimension")?;
        let name = String::from_utf8_lossy(&self.short()?).into_owned();
        let [rows, columns] = dimensions[..] else {
            return Ok(None);
        };
        Ok(Some(Head {
            name,
            shape: (rows, columns),
            is_sparse: class == SPARSE,
            is_complex: flags & COMPLEX != 0,
            element,
        }))
    }

    /// Reads to the end, which must be where the header says. (The checksum of a compressed element
    /// is at its end.)
    fn finish(&mut self) -> Result<(), Reason> {
        let promised = self.left as u64;
        let mut rest = (&mut self.input).take(promised + 1);
        let found = std::io::copy(&mut rest, &mut std::io::sink());
        match found {
            Ok(found) if found == promised => Ok(()),
            Ok(_) => Err("it is damaged: an element is not as long as it says".into()),
            Err(_) => Err("it is damaged: a compressed element cannot be decompressed".into()),
        }
    }
}

/// Evaluates an expression with the type of number that has a code.
macro_rules! with_types {
    ($kind:expr, $number:ident => $use:expr, $otherwise:expr) => {
        with_types!(
            $kind, $number => $use, $otherwise;
            1 i8, 2 u8, 3 i16, 4 u16, 5 i32, 6 u32, 7 f32, 9 f64, 12 i64, 13 u64
        )
    };
    ($kind:expr, $number:ident => $use:expr, $otherwise:expr; $($code:literal $type:ty),*) => {
        match $kind {
            $($code => {
                type $number = $type;
                $use
            })*
            _ => $otherwise,
        }
    };
}

/// Bytes of a stored number; `None` for a type that is not a number.
fn width(kind: u32) -> Option<usize> {
    with_types!(kind, Number => Some(size_of::<Number>()), None)
}

/// Stored numbers as 64-bit floats, one after another.
#[expect(clippy::unnecessary_cast, reason = "one of the types is f64 itself")]
fn each_number(kind: u32, bytes: &[u8], little_endian: bool, mut take: impl FnMut(f64)) {
    with_types!(kind, Number => {
        let (numbers, _) = bytes.as_chunks::<{ size_of::<Number>() }>();
        for bytes in numbers {
            let number = if little_endian {
                Number::from_le_bytes(*bytes)
            } else {
                Number::from_be_bytes(*bytes)
            };
            take(number as f64);
        }
    }, {});
}

//! MATLAB's .mat, level 5, compressed or not.

use std::io::Read;
use std::path::Path;

use matfile::{MatFile, NumericData};
use ndarray::{Array2, ShapeBuilder};

use crate::error::{Error, Result};

/// Reads a real matrix: the one of that name, or the only one.
pub(super) fn read_mat(
    mut input: impl Read,
    path: &Path,
    variable: Option<&str>,
) -> Result<Array2<f64>> {
    let wrong = |reason: String| Error::Mat {
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
    check_frame(&bytes).map_err(|reason| wrong(reason.into()))?;
    let file = MatFile::parse(&bytes[..]).map_err(|error| wrong(error.to_string()))?;
    let matrices: Vec<_> = file.arrays().iter().filter(|a| a.ndims() == 2).collect();
    let names = || {
        let names: Vec<&str> = matrices.iter().map(|array| array.name()).collect();
        names.join(", ")
    };
    let array = match (variable, &matrices[..]) {
        (_, []) => return Err(wrong("it holds no numeric matrix".into())),
        (Some(name), _) => matrices.iter().find(|array| array.name() == name),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    let array = array.ok_or_else(|| Error::MatVariable {
        path: path.into(),
        variable: variable.map(String::from),
        known: names(),
    })?;
    let values = real(array.data())
        .ok_or_else(|| wrong(format!("the matrix {} is complex", array.name())))?;
    let shape = (array.size()[0], array.size()[1]);
    let found = values.len();
    Array2::from_shape_vec(shape.f(), values)
        .map(|matrix| matrix.as_standard_layout().into_owned())
        .map_err(|_| {
            let (rows, columns) = shape;
            wrong(format!("{rows}×{columns} entries promised, {found} found"))
        })
}

/// The 128-byte header and the chain of elements behind it: each says how long
/// it is, and the last must end where the file ends. The parser itself drops what
/// it cannot read, so that a torn file would look like an empty one.
fn check_frame(bytes: &[u8]) -> std::result::Result<(), &'static str> {
    const HEADER: usize = 128;
    if bytes.len() < HEADER {
        return Err("it is shorter than a header");
    }
    if bytes.starts_with(b"\x89HDF") || bytes.starts_with(b"MATLAB 7.3") {
        return Err("it is of version 7.3 (HDF5); save it with '-v7'");
    }
    let little_endian = match &bytes[126..128] {
        b"IM" => true,
        b"MI" => false,
        _ => return Err("it is not a level 5 MAT-file"),
    };
    let number = |bytes: &[u8]| -> Option<u32> {
        let bytes: [u8; 4] = bytes.try_into().ok()?;
        Some(if little_endian {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        })
    };
    let mut position = HEADER;
    while position < bytes.len() {
        let tag = bytes.get(position..position + 8).and_then(|tag| {
            let (kind, length) = tag.split_at(4);
            Some((number(kind)?, number(length)? as usize))
        });
        let (kind, length) = tag.ok_or("it is torn: the last element has no length")?;
        let start = position + 8;
        let end = start.checked_add(length).filter(|end| *end <= bytes.len());
        let end = end.ok_or("it is torn: an element is longer than the file")?;
        if kind == COMPRESSED {
            check_compressed(&bytes[start..end], number)?;
        }
        position = end;
    }
    Ok(())
}

/// The type of a compressed element.
const COMPRESSED: u32 = 15;

/// Decompresses without keeping anything: the element inside must be as long as
/// it says, so that what is read into memory later is no surprise.
fn check_compressed(
    bytes: &[u8],
    number: impl Fn(&[u8]) -> Option<u32>,
) -> std::result::Result<(), &'static str> {
    const TORN: &str = "it is torn: a compressed element cannot be decompressed";
    let mut decoder = libflate::zlib::Decoder::new(bytes).map_err(|_| TORN)?;
    let mut tag = [0; 8];
    decoder.read_exact(&mut tag).map_err(|_| TORN)?;
    let promised = u64::from(number(&tag[4..]).ok_or(TORN)?);
    let mut more = decoder.take(promised + 1);
    let found = std::io::copy(&mut more, &mut std::io::sink()).map_err(|_| TORN)?;
    if found == promised {
        Ok(())
    } else {
        Err("it is damaged: a compressed element is not as long as it says")
    }
}

/// The entries as 64-bit floats, whatever they are stored as; `None` if complex.
fn real(data: &NumericData) -> Option<Vec<f64>> {
    macro_rules! convert {
        ($($kind:ident),+) => {
            match data {
                $(NumericData::$kind { real, imag: None } => {
                    Some(real.iter().map(|value| *value as f64).collect())
                })+
                _ => None,
            }
        };
    }
    convert!(
        Int8, UInt8, Int16, UInt16, Int32, UInt32, Int64, UInt64, Single, Double
    )
}

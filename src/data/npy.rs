//! NumPy's .npy.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use ndarray::{Array2, ShapeBuilder};
use npyz::{NpyFile, Order, WriterBuilder};

use super::memory::check_room;
use super::write_aside;
use crate::error::{Error, Result};

/// Reads one or two dimensions of numbers.
pub(super) fn read_npy(path: &Path) -> Result<Array2<f64>> {
    let io = |source| Error::Read {
        path: path.into(),
        source,
    };
    let wrong = |reason: String| Error::Npy {
        path: path.into(),
        reason,
    };
    let file = File::open(path).map_err(io)?;
    let bytes_in_file = file.metadata().map_err(io)?.len();
    let npy = NpyFile::new(BufReader::new(file)).map_err(|error| wrong(error.to_string()))?;
    let [rows, columns] = match *npy.shape() {
        [rows] => [rows, 1],
        [rows, columns] => [rows, columns],
        ref shape => {
            let dimensions = shape.len();
            return Err(wrong(format!(
                "it has {dimensions} dimensions; 1 or 2 can be read"
            )));
        }
    };
    let type_name = npy.dtype().descr();
    // '<f8': byte order, kind, width. Dates are stored as integers, but are none.
    let kind = type_name.trim_matches('\'').chars().nth(1);
    let is_number = matches!(kind, Some('f' | 'i' | 'u' | 'b'));
    let bytes_per_entry = match npy.dtype().num_bytes() {
        Some(bytes) if is_number && (1..=8).contains(&bytes) => bytes as u64,
        _ => return Err(wrong(unreadable(&type_name))),
    };
    // A header can promise anything; memory is taken only for what is there.
    let entries = rows
        .checked_mul(columns)
        .filter(|entries| {
            let bytes = entries.checked_mul(bytes_per_entry);
            bytes.is_some_and(|bytes| bytes <= bytes_in_file)
        })
        .ok_or_else(|| {
            wrong(format!(
                "its header promises {rows}×{columns} entries, more than its {bytes_in_file} bytes hold"
            ))
        })?;
    check_room(path, rows as usize, columns as usize)?;
    let order = npy.order();
    let values = numbers(npy, entries as usize)
        .ok_or_else(|| wrong(unreadable(&type_name)))?
        .map_err(|error| wrong(error.to_string()))?;
    let shape = (rows as usize, columns as usize);
    let shape = shape.set_f(order == Order::Fortran);
    let found = values.len();
    let matrix = Array2::from_shape_vec(shape, values)
        .map_err(|_| wrong(format!("{entries} entries promised, {found} found")))?;
    Ok(if matrix.is_standard_layout() {
        matrix
    } else {
        matrix.as_standard_layout().into_owned()
    })
}

fn unreadable(type_name: &str) -> String {
    format!("its type is {type_name}; floats, integers and booleans can be read")
}

/// The entries as 64-bit floats, whatever they are stored as; `None` for a type
/// that is not a number.
fn numbers<R: std::io::Read>(npy: NpyFile<R>, entries: usize) -> Option<std::io::Result<Vec<f64>>> {
    // Room for all at once: growing by doubling would take up to three times it.
    let mut values = Vec::with_capacity(entries);
    // Each type hands the file on if it is not the one.
    macro_rules! read_as {
        ($npy:expr; $($kind:ty),+) => {{
            let npy = $npy;
            $(let npy = match npy.try_data::<$kind>() {
                Ok(reader) => {
                    for value in reader {
                        match value {
                            Ok(value) => values.push(value as f64),
                            Err(error) => return Some(Err(error)),
                        }
                    }
                    return Some(Ok(values));
                }
                Err(npy) => npy,
            };)+
            npy
        }};
    }
    let npy = read_as!(npy; f64, f32, i64, i32, i16, i8, u64, u32, u16, u8);
    let npy = match npy.try_data::<half::f16>() {
        Ok(halves) => return Some(halves.map(|half| half.map(half::f16::to_f64)).collect()),
        Err(npy) => npy,
    };
    let flags = npy.try_data::<bool>().ok()?;
    Some(
        flags
            .map(|flag| flag.map(|flag| f64::from(u8::from(flag))))
            .collect(),
    )
}

/// Writes a matrix as little-endian `f8` in C order: whole, or not at all.
///
/// # Errors
/// [`Error::Write`].
pub fn write_npy(path: &Path, matrix: &Array2<f64>) -> Result<()> {
    write_aside(path, |file| {
        let shape = [matrix.nrows() as u64, matrix.ncols() as u64];
        let little_endian = "<f8".parse().expect("a type that NumPy knows");
        let mut writer = npyz::WriteOptions::new()
            .dtype(npyz::DType::Plain(little_endian))
            .shape(&shape)
            .writer(file)
            .begin_nd()?;
        writer.extend(matrix.iter().copied())?;
        writer.finish()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn bytes(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header =
            format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        let padded = format!("{header:<117}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((padded.len() as u16).to_le_bytes());
        file.extend(padded.as_bytes());
        file.extend(data);
        file
    }

    fn read(bytes: &[u8]) -> Result<Array2<f64>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        std::fs::write(&path, bytes).unwrap();
        read_npy(&path)
    }

    #[test]
    fn both_orders_both_endings_both_widths() {
        let want = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let c: Vec<f64> = want.iter().copied().collect();
        let fortran: Vec<f64> = want.t().iter().copied().collect();
        let le: Vec<u8> = c.iter().flat_map(|v| v.to_le_bytes()).collect();
        let be: Vec<u8> = fortran.iter().flat_map(|v| v.to_be_bytes()).collect();
        let narrow: Vec<u8> = c.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect();
        assert_eq!(read(&bytes("<f8", "False", "(2, 3)", &le)).unwrap(), want);
        assert_eq!(read(&bytes(">f8", "True", "(2, 3)", &be)).unwrap(), want);
        assert_eq!(
            read(&bytes("<f4", "False", "(2, 3)", &narrow)).unwrap(),
            want
        );
        let counts: Vec<u8> = c.iter().flat_map(|v| (*v as i64).to_le_bytes()).collect();
        assert_eq!(
            read(&bytes("<i8", "False", "(2, 3)", &counts)).unwrap(),
            want
        );
        let flags = bytes("|b1", "False", "(2, 3)", &[1, 0, 1, 0, 0, 1]);
        assert_eq!(
            read(&flags).unwrap(),
            array![[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
        );
        let column = read(&bytes("<f8", "False", "(6,)", &le)).unwrap();
        assert_eq!(column.dim(), (6, 1));
    }

    #[test]
    fn promises_are_checked_before_memory_is_taken() {
        let huge = bytes("<f8", "False", "(1000000000, 1000000)", &[0; 16]);
        assert!(matches!(read(&huge), Err(Error::Npy { .. })));
        let overflow = bytes("<f8", "False", "(4294967296, 4294967297)", &[0; 16]);
        assert!(matches!(read(&overflow), Err(Error::Npy { .. })));
        let short = bytes("<f8", "False", "(2, 3)", &[0; 40]);
        assert!(matches!(read(&short), Err(Error::Npy { .. })));
        let cube = bytes("<f8", "False", "(1, 1, 1)", &[0; 8]);
        assert!(matches!(read(&cube), Err(Error::Npy { .. })));
        for other in ["<c16", "|S3", "<M8[ns]", "|O"] {
            let file = bytes(other, "False", "(1, 1)", &[0; 16]);
            assert!(matches!(read(&file), Err(Error::Npy { .. })), "{other}");
        }
        assert!(matches!(read(b"not numpy"), Err(Error::Npy { .. })));
        let missing = read_npy(Path::new("nowhere.npy"));
        assert!(matches!(missing, Err(Error::Read { .. })));
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let matrix = array![[0.1, 1e-300], [f64::MAX, 0.0], [3.0, 4.0]];
        write_npy(&path, &matrix.t().to_owned()).unwrap();
        assert_eq!(read_npy(&path).unwrap(), matrix.t());
    }
}

//! NumPy's .npy files, and the arrays of .npz files, which have the same format.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::path::Path;

use ndarray::{Array2, ShapeBuilder};
use npyz::{NpyFile, NpyHeader, Order, WriterBuilder};

use super::memory::check_room;
use super::write_aside;
use crate::error::{Error, Result};

/// Largest number of bytes of a header. (NumPy itself reads 10 000.)
const LONGEST_HEADER: usize = 1 << 16;
/// Largest depth of nested brackets in a header, because its parser is recursive.
const DEEPEST_HEADER: usize = 16;
/// Largest number of entries of an array.
const MOST_ENTRIES: f64 = 1e18;
/// Largest number of bytes of a word.
const LONGEST_WORD: u64 = 1 << 8;

/// Reads an array of one or two dimensions: those rows that `rows` returns for the number of all
/// rows.
pub(super) fn read_npy(
    path: &Path,
    rows: impl FnOnce(usize) -> Result<Range<usize>>,
) -> Result<Array2<f64>> {
    let io = Error::reading(path);
    let wrong = |reason: String| Error::Npy {
        path: path.into(),
        reason,
    };
    let file = File::open(path).map_err(&io)?;
    let bytes_in_file = file.metadata().map_err(&io)?.len();
    let mut input = BufReader::new(file);
    let promised = Promised::read(&mut input, bytes_in_file, &wrong)?;
    let [all, columns] = as_matrix(&promised.shape).map_err(wrong)?;
    let own = rows(all)?;
    check_room(path, own.len(), columns)?;
    let type_name = promised.header.dtype().descr();
    let wide = promised.bytes_per_entry * columns as u64;
    let torn = |error: io::Error| wrong(error.to_string());
    let (values, order) = match promised.header.order() {
        Order::C => {
            let skipped = own.start as u64 * wide;
            let skipped = i64::try_from(skipped).map_err(|_| wrong("it is too long".into()))?;
            input.seek_relative(skipped).map_err(io)?;
            let wanted = own.len() * columns;
            (promised.numbers(input, wanted, |_| true), Order::C)
        }
        // In Fortran order the whole file is read, and only these rows are stored.
        Order::Fortran => {
            let kept = |entry: usize| own.contains(&(entry % all));
            (promised.numbers(input, all * columns, kept), Order::Fortran)
        }
    };
    let numbers = Numbers {
        shape: vec![own.len(), columns],
        are_whole: false,
        values: values
            .ok_or_else(|| wrong(unreadable(&type_name)))?
            .map_err(torn)?,
        order,
    };
    numbers.matrix(&wrong)
}

/// The numbers of an array.
pub(super) struct Numbers {
    /// Its lengths, one for each dimension.
    pub(super) shape: Vec<usize>,
    /// True if they are stored as integers.
    pub(super) are_whole: bool,
    /// The numbers in the order of the file.
    pub(super) values: Vec<f64>,
    order: Order,
}

impl Numbers {
    /// The matrix of an array of one or two dimensions. One dimension becomes a column.
    pub(super) fn matrix(self, wrong: &impl Fn(String) -> Error) -> Result<Array2<f64>> {
        let [rows, columns] = as_matrix(&self.shape).map_err(wrong)?;
        let shape = (rows, columns).set_f(self.order == Order::Fortran);
        let found = self.values.len();
        let matrix = Array2::from_shape_vec(shape, self.values)
            .map_err(|_| wrong(format!("{rows}×{columns} entries promised, {found} found")))?;
        Ok(if matrix.is_standard_layout() {
            matrix
        } else {
            matrix.as_standard_layout().into_owned()
        })
    }
}

/// The shape as a matrix. A single dimension becomes a column.
pub(super) fn as_matrix(shape: &[usize]) -> Result<[usize; 2], String> {
    match *shape {
        [rows] => Ok([rows, 1]),
        [rows, columns] => Ok([rows, columns]),
        _ => Err(format!(
            "it has {} dimensions; 1 or 2 can be read",
            shape.len()
        )),
    }
}

/// Reads the numbers of an array of any numeric type. `available` is the largest number of bytes of
/// the input. `check` gets the shape before memory is allocated.
///
/// # Errors
/// The error of `check`; `wrong` makes the error of any other reason.
pub(super) fn read_numbers(
    mut input: impl Read,
    available: u64,
    wrong: &impl Fn(String) -> Error,
    check: impl FnOnce(&[usize]) -> Result<()>,
) -> Result<Numbers> {
    let promised = Promised::read(&mut input, available, wrong)?;
    check(&promised.shape)?;
    let Promised {
        ref header,
        ref shape,
        entries,
        kind,
        ..
    } = promised;
    let (order, type_name) = (header.order(), header.dtype().descr());
    let shape = shape.clone();
    let values = promised
        .numbers(input, entries, |_| true)
        .ok_or_else(|| wrong(unreadable(&type_name)))?
        .map_err(|error| wrong(error.to_string()))?;
    Ok(Numbers {
        shape,
        are_whole: matches!(kind, Some('i' | 'u')),
        values,
        order,
    })
}

/// The header of an array. Its size is at most what the file can hold.
struct Promised {
    header: NpyHeader,
    shape: Vec<usize>,
    entries: usize,
    bytes_per_entry: u64,
    /// The letter of its type.
    kind: Option<char>,
}

impl Promised {
    fn read(
        mut input: impl Read,
        available: u64,
        wrong: &impl Fn(String) -> Error,
    ) -> Result<Self> {
        let header = read_header(&mut input).map_err(|error| wrong(error.to_string()))?;
        let lengths = header.shape().iter().map(|length| usize::try_from(*length));
        let shape: Vec<usize> = lengths
            .collect::<Result<_, _>>()
            .map_err(|_| wrong("it has more entries than can be counted".into()))?;
        let type_name = header.dtype().descr();
        // '<f8': byte order, kind, width. Dates are stored as integers, but are refused.
        let kind = type_name.trim_matches('\'').chars().nth(1);
        let is_number = matches!(kind, Some('f' | 'i' | 'u' | 'b'));
        let bytes_per_entry = match header.dtype().num_bytes() {
            Some(bytes) if is_number && (1..=8).contains(&bytes) => bytes as u64,
            _ => return Err(wrong(unreadable(&type_name))),
        };
        // A header can promise any size. Memory is allocated only for data that are there.
        let product = |all: usize, length: &usize| all.checked_mul(*length);
        let entries = shape
            .iter()
            .try_fold(1, product)
            .filter(|entries| {
                let bytes = (*entries as u64).checked_mul(bytes_per_entry);
                bytes.is_some_and(|bytes| bytes <= available)
            })
            .ok_or_else(|| {
                let lengths: Vec<String> = shape.iter().map(usize::to_string).collect();
                wrong(format!(
                    "its header promises {} entries, more than its {available} bytes hold",
                    lengths.join("×")
                ))
            })?;
        Ok(Self {
            header,
            shape,
            entries,
            bytes_per_entry,
            kind,
        })
    }

    /// The next `entries` as 64-bit floats; only those with `kept` are stored. `None` if the type
    /// is not a number.
    fn numbers(
        self,
        input: impl Read,
        entries: usize,
        kept: impl Fn(usize) -> bool,
    ) -> Option<io::Result<Vec<f64>>> {
        numbers(NpyFile::with_header(self.header, input), entries, kept)
    }
}

/// Reads an array that is one word, stored in bytes or in characters of four bytes.
pub(super) fn read_word(mut input: impl Read) -> io::Result<String> {
    read_header(&mut input)?;
    let mut bytes = Vec::new();
    input.take(LONGEST_WORD).read_to_end(&mut bytes)?;
    // For ASCII the two encodings differ only by zero bytes.
    bytes.retain(|byte| *byte != 0);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Checks the header before it is parsed. Its parser is recursive, and trusts the lengths in it.
fn read_header(input: &mut impl Read) -> io::Result<NpyHeader> {
    let mut bytes = Vec::new();
    // The header begins with a mark of six bytes, a version of two, and the length of the rest in
    // two or four.
    input.by_ref().take(10).read_to_end(&mut bytes)?;
    let length = match bytes[..] {
        [_, _, _, _, _, _, 1, _, low, high] => usize::from(u16::from_le_bytes([low, high])),
        [_, _, _, _, _, _, _, _, low, high] => {
            input.by_ref().take(2).read_to_end(&mut bytes)?;
            match bytes[10..] {
                [third, fourth] => u32::from_le_bytes([low, high, third, fourth]) as usize,
                _ => 0,
            }
        }
        _ => 0,
    };
    let refused = |reason: &str| Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    if length > LONGEST_HEADER {
        return refused(&format!("its header is said to have {length} bytes"));
    }
    let start = bytes.len();
    input.by_ref().take(length as u64).read_to_end(&mut bytes)?;
    let text = &bytes[start..];
    // (Names of fields may have other letters, but numbers have no fields.)
    if !text.is_ascii() || text.contains(&b'\\') {
        return refused("its header is not plain ASCII");
    }
    let mut depth = 0usize;
    for byte in text {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST_HEADER {
            return refused("the brackets of its header are nested too deep");
        }
    }
    let numbers = text.split(|byte| !byte.is_ascii_digit());
    let numbers =
        numbers.filter_map(|digits| std::str::from_utf8(digits).ok()?.parse::<f64>().ok());
    let product: f64 = numbers.filter(|number| *number != 0.0).product();
    if product > MOST_ENTRIES {
        return refused("its header promises more entries than can be counted");
    }
    NpyHeader::from_reader(&bytes[..])
}

fn unreadable(type_name: &str) -> String {
    format!("its type is {type_name}; floats, integers and booleans can be read")
}

/// The entries as 64-bit floats. `None` if the type is not a number.
fn numbers<R: Read>(
    npy: NpyFile<R>,
    entries: usize,
    kept: impl Fn(usize) -> bool,
) -> Option<io::Result<Vec<f64>>> {
    // Memory for all is allocated at once, because growing by doubling would take up to three times
    // as much.
    let room = (0..entries).filter(|entry| kept(*entry)).count();
    let mut values = Vec::with_capacity(room);
    // The types are tried one after another.
    macro_rules! read_as {
        ($npy:expr; $($kind:ty),+) => {{
            let npy = $npy;
            $(let npy = match npy.try_data::<$kind>() {
                Ok(reader) => {
                    for (entry, value) in reader.take(entries).enumerate() {
                        match value {
                            Ok(value) if kept(entry) => values.push(value as f64),
                            Ok(_) => {}
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
        Ok(halves) => {
            let halves = halves.take(entries).enumerate();
            let halves = halves.filter(|(entry, _)| kept(*entry));
            let halves = halves.map(|(_, half)| half.map(half::f16::to_f64));
            return Some(halves.collect());
        }
        Err(npy) => npy,
    };
    let flags = npy.try_data::<bool>().ok()?;
    let flags = flags.take(entries).enumerate();
    Some(
        flags
            .filter(|(entry, _)| kept(*entry))
            .map(|(_, flag)| flag.map(|flag| f64::from(u8::from(flag))))
            .collect(),
    )
}

/// Writes a matrix as little-endian `f8` in C order. The file is complete or absent.
///
/// # Errors
/// [`Error::Write`].
pub fn write_npy(path: &Path, matrix: &Array2<f64>) -> Result<()> {
    write_npy_values(path, matrix.dim(), matrix.iter().copied())
}

/// The same for a matrix of n rows and m columns whose numbers are computed row by row, so that it
/// needs no memory.
pub(crate) fn write_npy_values(
    path: &Path,
    (n, m): (usize, usize),
    values: impl Iterator<Item = f64>,
) -> Result<()> {
    write_aside(path, |file| {
        let shape = [n as u64, m as u64];
        let little_endian = "<f8".parse().expect("a type that NumPy knows");
        let mut writer = npyz::WriteOptions::new()
            .dtype(npyz::DType::Plain(little_endian))
            .shape(&shape)
            .writer(file)
            .begin_nd()?;
        writer.extend(values)?;
        writer.finish()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    fn whole(path: &Path) -> Result<Array2<f64>> {
        read_npy(path, |all| Ok(0..all))
    }

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
        whole(&path)
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
        // Headers that are too long, too deep, or not ASCII.
        let mut long = b"\x93NUMPY\x02\x00".to_vec();
        long.extend(u32::MAX.to_le_bytes());
        let deep = bytes("<f8", "False", &"(".repeat(60_000), &[]);
        let letter = bytes("é", "False", "(1, 1)", &[0; 8]);
        let escaped = bytes("\\xe9", "False", "(1, 1)", &[0; 8]);
        for (file, said) in [
            (&long, "4294967295"),
            (&deep, "nested"),
            (&letter, "ASCII"),
            (&escaped, "ASCII"),
        ] {
            let found = read(file).unwrap_err().to_string();
            assert!(found.contains(said), "{found}");
        }
        let missing = whole(Path::new("nowhere.npy"));
        assert!(matches!(missing, Err(Error::Read { .. })));
    }

    #[test]
    fn words_are_read_in_bytes_and_in_characters() {
        let letters = bytes("|S3", "False", "()", b"csr");
        assert_eq!(read_word(&letters[..]).unwrap(), "csr");
        let wide: Vec<u8> = "csr"
            .chars()
            .flat_map(|c| (c as u32).to_le_bytes())
            .collect();
        let characters = bytes("<U3", "False", "()", &wide);
        assert_eq!(read_word(&characters[..]).unwrap(), "csr");
        assert!(read_word(&letters[..20]).is_err());
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let matrix = array![[0.1, 1e-300], [f64::MAX, 0.0], [3.0, 4.0]];
        write_npy(&path, &matrix.t().to_owned()).unwrap();
        assert_eq!(whole(&path).unwrap(), matrix.t());
    }
}

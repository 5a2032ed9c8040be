//! Parquet tables, as pandas, polars and Spark write them.
//!
//! Columns of numbers and truth values are the matrix, and their names are its column labels. One
//! column of text may label the rows. A null is a missing entry. Dates, nested columns and a second
//! column of text are refused by name.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use ndarray::Array2;
use parquet::basic::{ConvertedType, LogicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;

use super::memory::check_room;
use super::table::Table;
use crate::error::{Error, Result};

/// Records that are decoded at a time.
const CHUNK: usize = 1 << 14;

/// Reads a table.
pub(super) fn read_parquet(path: &Path) -> Result<Table> {
    let file = File::open(path).map_err(Error::reading(path))?;
    // Some damaged files make the decoder panic, and a damaged file is no fault of this program.
    let read = catch_unwind(AssertUnwindSafe(|| read_table(file, path)));
    read.unwrap_or_else(|_| Err(wrong(path, "it is damaged")))
}

fn wrong(path: &Path, reason: impl Into<String>) -> Error {
    Error::Parquet {
        path: path.into(),
        reason: reason.into(),
    }
}

/// The kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
}

fn read_table(file: File, path: &Path) -> Result<Table> {
    let damaged = |error: ParquetError| wrong(path, format!("it is damaged ({error})"));
    let reader = SerializedFileReader::new(file).map_err(damaged)?;
    let metadata = reader.metadata();
    let schema = metadata.file_metadata().schema_descr();
    let kinds = schema.columns().iter().map(|column| kind(column, path));
    let kinds = kinds.collect::<Result<Vec<Kind>>>()?;
    let name = |column: usize| schema.column(column).name().to_string();
    let texts: Vec<usize> = of_kind(&kinds, Kind::Text).collect();
    if let [first, second, ..] = texts[..] {
        let (first, second) = (name(first), name(second));
        return Err(wrong(
            path,
            format!("columns '{first}' and '{second}' hold text; only one can label the rows"),
        ));
    }
    let numbers: Vec<usize> = of_kind(&kinds, Kind::Number).collect();
    let groups = 0..reader.num_row_groups();
    let promised: i64 = groups
        .clone()
        .map(|i| metadata.row_group(i).num_rows())
        .sum();
    let rows = usize::try_from(promised).map_err(|_| wrong(path, "it is damaged"))?;
    check_room(path, rows, kinds.len())?;

    // Memory grows with what is decoded, not with what the metadata promise.
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); numbers.len()];
    let mut labels = Vec::new();
    for group in groups {
        let group = reader.get_row_group(group).map_err(damaged)?;
        for (column, values) in numbers.iter().zip(&mut columns) {
            let of_column = group.get_column_reader(*column).map_err(damaged)?;
            let unsigned = is_unsigned(&schema.column(*column));
            read_numbers(of_column, unsigned, values).map_err(damaged)?;
        }
        for column in &texts {
            let of_column = group.get_column_reader(*column).map_err(damaged)?;
            read_labels(of_column, &mut labels).map_err(damaged)?;
        }
    }
    let lengths = columns.iter().map(Vec::len);
    let lengths = lengths.chain(texts.iter().map(|_| labels.len()));
    for (length, column) in lengths.zip(numbers.iter().chain(&texts)) {
        if length != rows {
            let column = name(*column);
            return Err(wrong(
                path,
                format!("column '{column}' has {length} of {rows} rows"),
            ));
        }
    }
    let values = Array2::from_shape_fn((rows, columns.len()), |(i, j)| columns[j][i]);
    Ok(Table {
        row_labels: (!texts.is_empty()).then_some(labels),
        column_labels: Some(numbers.into_iter().map(name).collect()),
        ..Table::from(values)
    })
}

fn of_kind(kinds: &[Kind], kind: Kind) -> impl Iterator<Item = usize> {
    let all = kinds.iter().enumerate();
    all.filter(move |(_, of)| **of == kind)
        .map(|(index, _)| index)
}

/// The kind of a column.
///
/// # Errors
/// [`Error::Parquet`] for columns that are no numbers and no text.
fn kind(column: &ColumnDescriptor, path: &Path) -> Result<Kind> {
    use parquet::basic::Type;
    let refused = |what: &str| {
        let name = column.path().string();
        wrong(path, format!("column '{name}' holds {what}"))
    };
    if column.max_rep_level() > 0 || column.max_def_level() > 1 || column.path().parts().len() > 1 {
        return Err(refused("lists or records"));
    }
    let is_text = matches!(
        column.logical_type_ref(),
        Some(LogicalType::String | LogicalType::Enum | LogicalType::Json)
    ) || matches!(
        column.converted_type(),
        ConvertedType::UTF8 | ConvertedType::ENUM
    );
    let is_plain = matches!(
        column.logical_type_ref(),
        None | Some(LogicalType::Integer(_) | LogicalType::Unknown)
    );
    match column.physical_type() {
        Type::BYTE_ARRAY if is_text => Ok(Kind::Text),
        Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => Err(refused("bytes")),
        Type::INT96 => Err(refused("dates")),
        Type::INT32 | Type::INT64 if !is_plain => Err(refused("dates, times or decimals")),
        _ => Ok(Kind::Number),
    }
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    matches!(
        column.logical_type_ref(),
        Some(LogicalType::Integer(kind)) if !kind.is_signed
    )
}

/// Appends the numbers of a column; NaN for null.
fn read_numbers(
    column: ColumnReader,
    unsigned: bool,
    to: &mut Vec<f64>,
) -> Result<(), ParquetError> {
    let push = |value: Option<f64>| to.push(value.unwrap_or(f64::NAN));
    match column {
        ColumnReader::BoolColumnReader(column) => each(column, |v| f64::from(u8::from(v)), push),
        ColumnReader::Int32ColumnReader(column) if unsigned => {
            each(column, |v| f64::from(v as u32), push)
        }
        ColumnReader::Int32ColumnReader(column) => each(column, f64::from, push),
        ColumnReader::Int64ColumnReader(column) if unsigned => {
            each(column, |v| v as u64 as f64, push)
        }
        ColumnReader::Int64ColumnReader(column) => each(column, |v| v as f64, push),
        ColumnReader::FloatColumnReader(column) => each(column, f64::from, push),
        ColumnReader::DoubleColumnReader(column) => each(column, |v| v, push),
        _ => unreachable!("other columns were refused"),
    }
}

/// Appends the texts of a column; empty for null.
fn read_labels(column: ColumnReader, to: &mut Vec<String>) -> Result<(), ParquetError> {
    let ColumnReader::ByteArrayColumnReader(column) = column else {
        unreachable!("other columns were refused");
    };
    let text = |bytes: ByteArray| String::from_utf8_lossy(bytes.data()).into_owned();
    each(column, text, |label: Option<String>| {
        to.push(label.unwrap_or_default())
    })
}

/// Every value of a column, `None` for null.
fn each<T: DataType, V>(
    mut column: ColumnReaderImpl<T>,
    value: impl Fn(T::T) -> V,
    mut push: impl FnMut(Option<V>),
) -> Result<(), ParquetError> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    loop {
        levels.clear();
        values.clear();
        let (records, ..) = column.read_records(CHUNK, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Ok(());
        }
        let mut values = values.drain(..).map(&value);
        if levels.is_empty() {
            // The column cannot hold a null.
            values.for_each(|value| push(Some(value)));
        } else {
            for level in &levels {
                push(if *level == 1 { values.next() } else { None });
            }
        }
    }
}

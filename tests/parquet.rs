//! Tables in .parquet files. (tests/data/parquet: written by pandas and pyarrow, see
//! tests/data/README.md.)

use std::path::{Path, PathBuf};

use altbi::Error;
use altbi::data::{Source, Table, TableOptions};
use ndarray::array;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/parquet")
        .join(name)
}

fn read(path: &Path) -> Result<Table, Error> {
    Source::from(path.to_str().unwrap()).read(TableOptions::default())
}

/// Every kind of number, nulls, and an index of text; two groups of rows; four compressions.
#[test]
fn tables_of_pandas_are_read() {
    for compression in ["none", "snappy", "gzip", "zstd"] {
        let table = read(&file(&format!("{compression}.parquet"))).unwrap();
        let names = ["double", "float", "int", "unsigned", "truth"];
        assert_eq!(table.column_labels.unwrap(), names);
        assert_eq!(table.row_labels.unwrap(), ["first", "ä", "third"]);
        let missing = table.values[[1, 0]];
        assert!(missing.is_nan());
        let expected = array![
            [0.5, 0.25, 7.0, 4294967295.0, 1.0],
            [missing, 1.5, 0.0, 1.0, 0.0],
            [1e-300, 2.0, 9007199254740993_i64 as f64, 2.0, 1.0]
        ];
        let same = |a: &f64, b: &f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        assert!(table.values.iter().zip(&expected).all(|(a, b)| same(a, b)));
    }
}

#[test]
fn columns_that_are_no_numbers_are_refused_by_name() {
    for (name, words) in [
        ("dates.parquet", ["'when'", "dates"]),
        ("lists.parquet", ["list", "lists"]),
        ("texts.parquet", ["'a' and 'b'", "only one"]),
    ] {
        let error = read(&file(name)).unwrap_err();
        assert!(matches!(error, Error::Parquet { .. }), "{error}");
        let message = error.to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
}

/// Torn and altered files give an error or a table, never a panic.
#[test]
fn damaged_files_are_refused() {
    let whole = std::fs::read(file("snappy.parquet")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.parquet");
    for length in (0..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let error = read(&path).unwrap_err();
        assert!(matches!(error, Error::Parquet { .. }), "{length}: {error}");
    }
    let mut refused = 0;
    for place in 0..whole.len() {
        let mut altered = whole.clone();
        altered[place] ^= 1 << (place % 8);
        std::fs::write(&path, &altered).unwrap();
        match read(&path) {
            Ok(table) => assert!(table.values.len() <= 100),
            Err(Error::Parquet { .. } | Error::TooLarge { .. }) => refused += 1,
            Err(other) => panic!("{place}: {other}"),
        }
    }
    assert!(refused > whole.len() / 10, "{refused} of {}", whole.len());
}

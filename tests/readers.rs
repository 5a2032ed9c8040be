//! Files as they come: whole, torn, mutated, lying. No reader may panic, and none
//! may take memory for what is not there.
//!
//! `ALTBI_FUZZ_CASES` sets the number of mutations per format (2000 without it).

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};

use altbi::data::{Contents, Detect, Source, TableOptions, write_npy};
use altbi::{Error, SparseMatrix};
use common::mat::{element, mat_file, mat_matrix};
use ndarray::{Array2, array};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn compressed(element_bytes: &[u8]) -> Vec<u8> {
    let mut encoder = libflate::zlib::Encoder::new(Vec::new()).unwrap();
    encoder.write_all(element_bytes).unwrap();
    let contents = encoder.finish().into_result().unwrap();
    // No padding behind compressed elements.
    let mut bytes = 15u32.to_le_bytes().to_vec();
    bytes.extend((contents.len() as u32).to_le_bytes());
    bytes.extend(contents);
    bytes
}

fn numbers() -> Array2<f64> {
    array![[1.0, 2.5, 3.0], [4.0, 5.0, 6.25]]
}

fn read(folder: &Path, name: &str, bytes: &[u8]) -> Result<Array2<f64>, Error> {
    read_with(folder, name, bytes, TableOptions::default())
}

fn read_with(
    folder: &Path,
    name: &str,
    bytes: &[u8],
    options: TableOptions,
) -> Result<Array2<f64>, Error> {
    Ok(source(folder, name, bytes).read(options)?.values)
}

/// The content of a file, without entries that are not stored.
fn contents(
    folder: &Path,
    name: &str,
    bytes: &[u8],
    options: TableOptions,
) -> Result<Contents, Error> {
    source(folder, name, bytes).read_contents(options)
}

fn source(folder: &Path, name: &str, bytes: &[u8]) -> Source {
    let (file, variable) = name.split_once(':').unwrap_or((name, ""));
    let path = folder.join(file);
    std::fs::write(&path, bytes).unwrap();
    let suffix = if variable.is_empty() {
        String::new()
    } else {
        format!(":{variable}")
    };
    Source::from(format!("{}{suffix}", path.display()).as_str())
}

#[test]
fn mat_files_are_read_compressed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let x = mat_matrix("X", &numbers(), 6);
    let other = mat_matrix("Other", &array![[7.0]], 6);
    let text = mat_matrix("names", &array![[65.0, 66.0]], 4);
    let get = |name: &str, elements: &[Vec<u8>]| read(folder.path(), name, &mat_file(elements));
    assert_eq!(get("a.mat", std::slice::from_ref(&x)).unwrap(), numbers());
    assert_eq!(get("a.mat", &[compressed(&x)]).unwrap(), numbers());
    assert_eq!(get("a.mat", &[text.clone(), x.clone()]).unwrap(), numbers());
    let both = [other.clone(), compressed(&x)];
    assert_eq!(get("a.mat:X", &both).unwrap(), numbers());
    let which = get("a.mat", &both);
    assert!(matches!(&which, Err(Error::MatVariable { known, .. }) if known == "Other, X"));
    let none = get("a.mat:Y", &both);
    assert!(matches!(
        none,
        Err(Error::MatVariable {
            variable: Some(_),
            ..
        })
    ));
    let only_text = get("a.mat", &[text]);
    assert!(matches!(&only_text, Err(Error::Mat { reason, .. }) if reason.contains("no numeric")));
    let empty = get("a.mat", &[]);
    assert!(matches!(empty, Err(Error::Mat { .. })));
}

/// A matrix of another class, its numbers stored as `kind`.
fn mat_of_class(class: u32, kind: u32, values: &[u8]) -> Vec<u8> {
    let flags = [class.to_le_bytes(), 0u32.to_le_bytes()].concat();
    let dimensions: Vec<u8> = [1i32, 2].iter().flat_map(|d| d.to_le_bytes()).collect();
    // A name of one letter is a small element: length and type in one word.
    let name = [&(1u32 << 16 | 1).to_le_bytes()[..], b"X\0\0\0"].concat();
    let parts = [
        element(6, &flags),
        element(5, &dimensions),
        name,
        element(kind, values),
    ];
    mat_file(&[element(14, &parts.concat())])
}

#[test]
fn every_class_of_numbers_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(u32, u32, Vec<u8>); 11] = [
        (
            6,
            9,
            [3f64, 7.0].iter().flat_map(|v| v.to_le_bytes()).collect(),
        ),
        (
            7,
            7,
            [3f32, 7.0].iter().flat_map(|v| v.to_le_bytes()).collect(),
        ),
        (8, 1, vec![3, 7]),
        (9, 2, vec![3, 7]),
        (
            10,
            3,
            [3i16, 7].iter().flat_map(|v| v.to_le_bytes()).collect(),
        ),
        (
            11,
            4,
            [3u16, 7].iter().flat_map(|v| v.to_le_bytes()).collect(),
        ),
        (
            12,
            5,
            [3i32, 7].iter().flat_map(|v| v.to_le_bytes()).collect(),
        ),
        (
            13,
            6,
            [3u32, 7].iter().flat_map(|v| v.to_le_bytes()).collect(),
        ),
        (
            14,
            12,
            [3i64, 7].iter().flat_map(|v| v.to_le_bytes()).collect(),
        ),
        (
            15,
            13,
            [3u64, 7].iter().flat_map(|v| v.to_le_bytes()).collect(),
        ),
        // Doubles that happen to be small are stored in bytes.
        (6, 2, vec![3, 7]),
    ];
    for (class, kind, values) in cases {
        let file = mat_of_class(class, kind, &values);
        let got = read(folder.path(), "a.mat", &file).unwrap();
        assert_eq!(got, array![[3.0, 7.0]], "class {class}");
    }
}

#[test]
fn torn_and_lying_mat_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let x = mat_matrix("X", &numbers(), 6);
    let refused = |bytes: &[u8]| {
        let result = read(folder.path(), "a.mat", bytes);
        assert!(matches!(result, Err(Error::Mat { .. })), "{result:?}");
    };
    for whole in [
        mat_file(std::slice::from_ref(&x)),
        mat_file(&[compressed(&x)]),
    ] {
        for cut in [0, 5, 127, 130, 140, whole.len() / 2, whole.len() - 1] {
            refused(&whole[..cut]);
        }
    }
    // 3000 × 3000 entries promised by an element that holds six.
    let mut lying = mat_matrix("X", &numbers(), 6);
    let dimensions = 8 + 16 + 8;
    lying[dimensions..dimensions + 4].copy_from_slice(&3000i32.to_le_bytes());
    lying[dimensions + 4..dimensions + 8].copy_from_slice(&3000i32.to_le_bytes());
    refused(&mat_file(&[lying]));
    // A compressed element that goes on for a hundred times what it says.
    let mut bomb = x.clone();
    bomb.extend(vec![0; 100 * x.len()]);
    refused(&mat_file(&[compressed(&bomb)]));
    refused(b"\x89HDF\r\n\x1a\n");
}

/// A file that SciPy wrote.
fn fixture(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sparse");
    folder.join(name)
}

/// The matrix that SciPy wrote into most of them.
fn scipy_matrix() -> Array2<f64> {
    let mut matrix = Array2::zeros((6, 5));
    for (row, column, value) in [
        (0, 0, 3.0),
        (0, 4, 1.0),
        (1, 2, 7.0),
        (2, 0, 2.0),
        (2, 1, 12.0),
        (2, 3, 1.0),
        (4, 4, 250.0),
        (5, 1, 1.0),
        (5, 2, 4.0),
    ] {
        matrix[[row, column]] = value;
    }
    matrix
}

fn scipy(name: &str) -> Contents {
    let path = fixture(name);
    let source = Source::from(path.to_str().unwrap());
    let found = source.read_contents(TableOptions::default());
    found.unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn stored(contents: Contents) -> SparseMatrix {
    match contents {
        Contents::Sparse(matrix) => matrix,
        Contents::Table(table) => panic!("every entry is stored: {:?}", table.values),
    }
}

fn values(contents: Contents) -> Array2<f64> {
    match contents {
        Contents::Table(table) => table.values,
        Contents::Sparse(matrix) => panic!("only some entries are stored: {matrix:?}"),
    }
}

#[test]
fn whatever_scipy_writes_is_the_same_matrix() {
    let want = scipy_matrix();
    for name in [
        "csr.npz",
        "csr_compressed.npz",
        "csr_wide.npz",
        "csc.npz",
        "csc_compressed.npz",
        "coo.npz",
        "coo_compressed.npz",
        "real.mtx",
        "real.mtx.gz",
        "integer.mtx",
        "plain.mat",
        "compressed.mat:X",
    ] {
        let found = stored(scipy(name));
        assert_eq!(found.stored(), 9, "{name}");
        assert_eq!(found.to_dense(), want, "{name}");
    }
    let ones = want.mapv(|x| f64::from(x > 0.0));
    for name in ["pattern.mtx", "compressed.mat:flags"] {
        assert_eq!(stored(scipy(name)).to_dense(), ones, "{name}");
    }
    // The diagonal and what is below it, of a matrix with 15 entries.
    let symmetric = stored(scipy("symmetric.mtx"));
    assert_eq!(symmetric.stored(), 15);
    assert_eq!(symmetric.to_dense(), want.t().dot(&want));
    for name in ["array.mtx", "dense.txt", "dense.npz:A"] {
        assert_eq!(values(scipy(name)), want, "{name}");
    }
    assert_eq!(values(scipy("dense.npz:B")), want.t());
    let path = fixture("dense.npz");
    let which = Source::from(path.to_str().unwrap()).read(TableOptions::default());
    assert!(matches!(which, Err(Error::MatVariable { known, .. }) if known == "A, B"));
    // Where every entry is needed, the others are zeros.
    let path = fixture("csr.npz");
    let table = Source::from(path.to_str().unwrap()).read(TableOptions::default());
    assert_eq!(table.unwrap().values, want);
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// [[1.5, 0, 2], [0, 0, 0], [0, 4.25, 0]] in coordinates.
fn market(kind: &str) -> String {
    format!("%%MatrixMarket matrix coordinate {kind}\n% x\n3 3 3\n1 1 1.5\n1 3 2\n3 2 4.25\n")
}

fn market_matrix() -> Array2<f64> {
    array![[1.5, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 4.25, 0.0]]
}

/// A sparse matrix of a .mat file.
fn mat_sparse(
    name: &str,
    shape: [i32; 2],
    rows: &[i32],
    starts: &[i32],
    (kind, values): (u32, &[u8]),
) -> Vec<u8> {
    let flags = [5u32.to_le_bytes(), (rows.len() as u32).to_le_bytes()].concat();
    let bytes = |numbers: &[i32]| -> Vec<u8> {
        let numbers = numbers.iter();
        numbers.flat_map(|number| number.to_le_bytes()).collect()
    };
    let parts = [
        element(6, &flags),
        element(5, &bytes(&shape)),
        element(1, name.as_bytes()),
        element(5, &bytes(rows)),
        element(5, &bytes(starts)),
        element(kind, values),
    ];
    element(14, &parts.concat())
}

/// The values 1.5, 4.25 and 2, and one that is kept for later.
fn mat_values() -> Vec<u8> {
    let values = [1.5f64, 4.25, 2.0, 0.0];
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// The same matrix as [`market`]'s, with room for an entry to come.
fn sparse_mat(name: &str) -> Vec<u8> {
    mat_sparse(
        name,
        [3, 3],
        &[0, 2, 0, 0],
        &[0, 1, 2, 3],
        (9, &mat_values()),
    )
}

#[test]
fn sparse_mat_files_are_read_compressed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let get = |name: &str, elements: &[Vec<u8>]| {
        let bytes = mat_file(elements);
        contents(folder.path(), name, &bytes, TableOptions::default())
    };
    let sparse = sparse_mat("S");
    let dense = mat_matrix("X", &numbers(), 6);
    for elements in [vec![sparse.clone()], vec![compressed(&sparse)]] {
        let found = stored(get("a.mat", &elements).unwrap());
        assert_eq!((found.stored(), found.to_dense()), (3, market_matrix()));
    }
    let both = [dense, compressed(&sparse)];
    assert_eq!(stored(get("a.mat:S", &both).unwrap()).stored(), 3);
    assert_eq!(values(get("a.mat:X", &both).unwrap()), numbers());
    let which = get("a.mat", &both);
    assert!(matches!(&which, Err(Error::MatVariable { known, .. }) if known == "X, S"));
    // Flags are stored in bytes.
    let flags = mat_sparse("L", [3, 3], &[0, 2, 0], &[0, 1, 2, 3], (2, &[1, 1, 1]));
    let found = stored(get("a.mat", &[flags]).unwrap()).to_dense();
    assert_eq!(found, market_matrix().mapv(|x| f64::from(x > 0.0)));
}

#[test]
fn sparse_mat_files_that_lie_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let get = |element: &[u8]| {
        let bytes = mat_file(&[element.to_vec()]);
        contents(folder.path(), "a.mat", &bytes, TableOptions::default())
    };
    let values = mat_values();
    let real = (9, &values[..]);
    for (shape, rows, starts, said) in [
        (
            [3, 3],
            &[0, 2, 0][..],
            &[0, 1, 2][..],
            "3 columns need 4 starts",
        ),
        ([3, 3], &[0, 2, 0], &[0, 2, 1, 3], "column 2 cannot begin"),
        ([3, 3], &[0, 2, 0], &[1, 1, 2, 3], "column 0 cannot begin"),
        ([3, 3], &[0, 2, 0], &[0, 1, 2, 90], "values"),
        ([3, 3], &[0, 2, 0], &[0, 1, 2, -1], "column 1 cannot begin"),
        ([3, 3], &[0, 3, 0], &[0, 1, 2, 3], "row 3 of 3"),
        ([3, 3], &[0, -2, 0], &[0, 1, 2, 3], "row -2 of 3"),
        ([3, 3], &[0, 2], &[0, 1, 2, 3], "3 values, and 2 rows"),
    ] {
        let found = get(&mat_sparse("S", shape, rows, starts, real));
        let found = found.unwrap_err().to_string();
        assert!(
            found.contains("sparse matrix S") && found.contains(said),
            "{said}: {found}"
        );
    }
    let twice = get(&mat_sparse("S", [3, 3], &[0, 0, 2], &[0, 2, 3, 3], real));
    assert!(matches!(
        twice,
        Err(Error::DuplicateEntry { row: 0, column: 0 })
    ));
    // (A machine with a terabyte of memory looks at the starts.)
    let lines = get(&mat_sparse("S", [i32::MAX, i32::MAX], &[0], &[0, 1], real));
    assert!(matches!(
        lines,
        Err(Error::TooManyLines { .. } | Error::Mat { .. })
    ));
    let words = get(&mat_sparse(
        "S",
        [3, 3],
        &[0, 2, 0],
        &[0, 1, 2, 3],
        (16, &values),
    ));
    assert!(matches!(words, Err(Error::Mat { .. })));
    // A part that says it is longer than the matrix.
    let mut long = sparse_mat("S");
    let length = 8 + 16 + 16 + 16 + 4;
    long[length..length + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(get(&long), Err(Error::Mat { .. })));
    assert!(matches!(get(&compressed(&long)), Err(Error::Mat { .. })));
}

#[test]
fn torn_files_are_refused_wherever_they_end() {
    let folder = tempfile::tempdir().unwrap();
    let get =
        |name: &str, bytes: &[u8]| contents(folder.path(), name, bytes, TableOptions::default());
    let text = market("real general");
    let whole = get("a.mtx", text.as_bytes()).unwrap();
    assert_eq!(stored(whole).to_dense(), market_matrix());
    for cut in 0..text.len() {
        let found = get("a.mtx", &text.as_bytes()[..cut]);
        // (A number that has lost its last digits is one.)
        if cut + "4.25\n".len() <= text.len() {
            let placed = matches!(found, Err(Error::MatrixMarket { line: 1.., .. }));
            assert!(placed, "{cut}: {found:?}");
        }
    }
    for (name, bytes) in [
        ("a.mtx.gz", packed(text.as_bytes())),
        ("a.csv.gz", packed(b"1,2\n3,4\n")),
        ("a.tsv.gz", packed(b"1\t2\n3\t4\n")),
        ("a.txt.gz", packed(b"1 2\n3 4\n")),
    ] {
        assert!(get(name, &bytes).is_ok(), "{name}");
        for cut in 0..bytes.len() {
            let found = get(name, &bytes[..cut]);
            assert!(
                matches!(found, Err(Error::Read { .. })),
                "{name}, {cut}: {found:?}"
            );
        }
    }
    for (name, bytes) in [
        ("a.mat", mat_file(&[sparse_mat("S")])),
        ("a.mat", mat_file(&[compressed(&sparse_mat("S"))])),
    ] {
        for cut in 0..bytes.len() {
            let found = get(name, &bytes[..cut]);
            assert!(
                matches!(found, Err(Error::Mat { .. })),
                "{name}, {cut}: {found:?}"
            );
        }
    }
    for name in ["csr.npz", "csc_compressed.npz", "coo.npz"] {
        let bytes = std::fs::read(fixture(name)).unwrap();
        for cut in 0..bytes.len() {
            let found = get("a.npz", &bytes[..cut]);
            assert!(
                matches!(found, Err(Error::Npz { .. })),
                "{name}, {cut}: {found:?}"
            );
        }
    }
}

#[test]
fn packed_tables_keep_their_names_and_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let get = |bytes: &[u8]| {
        let packed = packed(bytes);
        source(folder.path(), "a.csv.gz", &packed).read(TableOptions::default())
    };
    let table = get(b"gene,a,b\nx,1,2\ny,3,4\n").unwrap();
    assert_eq!(table.values, array![[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(table.row_labels.unwrap(), ["x", "y"]);
    let wrong = get(b"1,2\n3,x\n");
    assert!(matches!(
        wrong,
        Err(Error::NotANumber {
            line: 2,
            field: 2,
            ..
        })
    ));
    // A header that promises a billion entries, packed or not.
    let liar =
        "%%MatrixMarket matrix coordinate real general\n900000000 900000000 900000000\n1 1 1\n";
    for (name, bytes) in [
        ("a.mtx", liar.as_bytes().to_vec()),
        ("a.mtx.gz", packed(liar.as_bytes())),
    ] {
        let found = contents(folder.path(), name, &bytes, TableOptions::default());
        let said = found.unwrap_err().to_string();
        assert!(said.contains("promise 900000000 entries"), "{said}");
    }
}

/// The change that a mutation makes to a file.
#[derive(Debug, Clone)]
enum Mutation {
    Flip(usize, u8),
    Cut(usize),
    Remove(usize, usize),
    Repeat(usize, usize),
    Insert(usize, Vec<u8>),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let place = any::<usize>;
    prop_oneof![
        4 => (place(), any::<u8>()).prop_map(|(at, bits)| Mutation::Flip(at, bits)),
        1 => place().prop_map(Mutation::Cut),
        1 => (place(), 1usize..40).prop_map(|(at, n)| Mutation::Remove(at, n)),
        1 => (place(), 1usize..40).prop_map(|(at, n)| Mutation::Repeat(at, n)),
        2 => (place(), proptest::collection::vec(any::<u8>(), 1..12))
            .prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
    ]
}

fn mutated(mut bytes: Vec<u8>, mutations: &[Mutation]) -> Vec<u8> {
    for mutation in mutations {
        if bytes.is_empty() {
            break;
        }
        let length = bytes.len();
        match mutation {
            Mutation::Flip(at, bits) => bytes[at % length] ^= bits,
            Mutation::Cut(at) => bytes.truncate(at % length),
            Mutation::Remove(at, n) => {
                let at = at % length;
                bytes.drain(at..(at + n).min(length));
            }
            Mutation::Repeat(at, n) => {
                let at = at % length;
                let piece = bytes[at..(at + n).min(length)].to_vec();
                bytes.splice(at..at, piece);
            }
            Mutation::Insert(at, piece) => {
                let at = at % length;
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
    bytes
}

fn detect() -> impl Strategy<Value = Detect> {
    proptest::sample::select(vec![Detect::Auto, Detect::Yes, Detect::No])
}

fn fuzz(name: &str, seeds: Vec<Vec<u8>>) {
    let cases = std::env::var("ALTBI_FUZZ_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(2000);
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let strategy = (
        proptest::sample::select(seeds),
        proptest::collection::vec(mutation(), 1..6),
        (detect(), detect()),
    );
    let mut read_at_all = 0usize;
    let count = std::cell::Cell::new(0usize);
    TestRunner::new(config)
        .run(&strategy, |(seed, mutations, (header, labels))| {
            let options = TableOptions {
                header,
                labels,
                missing_words: mutations.len() % 2 == 0,
                ..TableOptions::default()
            };
            let bytes = mutated(seed, &mutations);
            // Whatever comes of it, it is a value and not a panic.
            if let Ok(found) = contents(folder.path(), name, &bytes, options) {
                count.set(count.get() + 1);
                let entries = match found {
                    Contents::Table(table) => table.values.len(),
                    Contents::Sparse(matrix) => matrix.stored(),
                };
                prop_assert!(entries <= bytes.len().max(1) * 1100);
            }
            Ok(())
        })
        .unwrap();
    read_at_all += count.get();
    // The mutations are neither all fatal nor all harmless.
    assert!(
        read_at_all > 0 && read_at_all < cases as usize,
        "{read_at_all}"
    );
}

#[test]
fn mutated_npy_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seed.npy");
    write_npy(&path, &numbers()).unwrap();
    fuzz("m.npy", vec![std::fs::read(&path).unwrap()]);
}

#[test]
fn mutated_csv_files() {
    let seeds = [
        "1,2,3\n4,5,6\n",
        "gene,a,\"b, c\"\nx,1,2\ny,3,NA\n# end\n",
        "a,b\nx,1,2\ny,3,4\n",
        ",0,1\r\n5;1,2\r\n2;;4\r\n7;1,3\r\n",
        "country,2001,2002\nA,1,-\nB,?,4\n",
    ];
    fuzz("m.csv", seeds.map(|seed| seed.as_bytes().to_vec()).to_vec());
}

#[test]
fn mutated_tsv_files() {
    fuzz("m.tsv", vec![b"g\ta\tb\nx\t1e3\t2\ny\t\t4\n".to_vec()]);
}

#[test]
fn mutated_mat_files() {
    let x = mat_matrix("X", &numbers(), 6);
    let other = mat_matrix("Other", &array![[7.0]], 6);
    let seeds = vec![
        mat_file(std::slice::from_ref(&x)),
        mat_file(&[compressed(&x)]),
        mat_file(&[x, compressed(&other)]),
        mat_file(&[sparse_mat("X")]),
        mat_file(&[compressed(&sparse_mat("X"))]),
    ];
    fuzz("m.mat:X", seeds);
}

#[test]
fn mutated_packed_files() {
    fuzz(
        "m.csv.gz",
        vec![packed(b"1,2,3\n4,5,6\n"), packed(b"a;b\n1,5;2\n")],
    );
    fuzz("m.mtx.gz", vec![packed(market("real general").as_bytes())]);
}

#[test]
fn mutated_txt_files() {
    let seeds = [
        "# a b\n1 2\n3 4\n",
        "  x   \"y  z\"\n 1.5\t2 \n\n 30   nan\n",
    ];
    fuzz("m.txt", seeds.map(|seed| seed.as_bytes().to_vec()).to_vec());
}

#[test]
fn mutated_mtx_files() {
    let array = "%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n";
    let symmetric =
        "%%MatrixMarket matrix coordinate integer symmetric\n% x\n3 3 2\n1 1 4\n3 1 5\n";
    // Comments stand a mutation.
    let comment = "a comment that goes on ".repeat(20);
    let general = market("real general").replace("% x", &format!("% {comment}"));
    let seeds = [array, symmetric, general.as_str()];
    fuzz("m.mtx", seeds.map(|seed| seed.as_bytes().to_vec()).to_vec());
}

#[test]
fn mutated_npz_files() {
    let seeds = ["csr", "csc_compressed", "coo_compressed", "csr_wide"];
    let seeds = seeds.map(|name| std::fs::read(fixture(&format!("{name}.npz"))).unwrap());
    fuzz("m.npz", seeds.to_vec());
    let dense = std::fs::read(fixture("dense.npz")).unwrap();
    fuzz("m.npz:A", vec![dense]);
}

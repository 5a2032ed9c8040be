//! Files as they come: whole, torn, mutated, lying. No reader may panic, and none
//! may take memory for what is not there.
//!
//! `ALTBI_FUZZ_CASES` sets the number of mutations per format (2000 without it).

mod common;

use std::io::Write;
use std::path::Path;

use altbi::Error;
use altbi::data::{Detect, Source, TableOptions, write_npy};
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
    let (file, variable) = name.split_once(':').unwrap_or((name, ""));
    let path = folder.join(file);
    std::fs::write(&path, bytes).unwrap();
    let suffix = if variable.is_empty() {
        String::new()
    } else {
        format!(":{variable}")
    };
    let source = format!("{}{suffix}", path.display());
    Ok(Source::from(source.as_str()).read(options)?.values)
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

/// What a mutation does to a file.
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
            if let Ok(matrix) = read_with(folder.path(), name, &bytes, options) {
                count.set(count.get() + 1);
                prop_assert!(matrix.len() <= bytes.len().max(1) * 1100);
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
    ];
    fuzz("m.mat:X", seeds);
}

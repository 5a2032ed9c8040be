//! Work with a finished run: encode new data, complete a matrix, go on.

mod common;

use std::path::Path;

use altbi::data::{Source, Table, TableOptions, read_matrix};
use common::command::{Folder, altbi, complaint, stdout};
use common::{assert_close, matrix};
use ndarray::{Array2, Axis, s};

/// A matrix of rank 2 with names.
fn table(rows: usize) -> Table {
    let x = matrix(rows, 2, 0.3).dot(&matrix(2, 6, 0.8)) + 0.01;
    let mut table = Table::from(x);
    table.row_labels = Some((0..rows).map(|i| format!("sample {i}")).collect());
    let names = ["ala", "gly", "pro", "ser", "thr", "val"];
    table.column_labels = Some(names.map(String::from).into());
    table
}

fn csv(folder: &Folder, name: &str, table: &Table) -> String {
    folder.text(name, table.to_csv().as_bytes())
}

fn read(path: &str) -> Table {
    Source::from(path).read(TableOptions::default()).unwrap()
}

/// The relative error of codes in terms of a run's H.
fn error(folder: &Folder, codes: &Array2<f64>, x: &Array2<f64>) -> f64 {
    let h = read_matrix(Path::new(&folder.path("run/H.npy"))).unwrap();
    let residual = codes.dot(&h) - x;
    (residual.mapv(|e| e * e).sum() / x.mapv(|e| e * e).sum()).sqrt()
}

/// A run on a table of twelve rows, in the folder run.
fn run_on(folder: &Folder, flags: &[&str]) -> Table {
    let x = table(12);
    let data = csv(folder, "x.csv", &x);
    let out = folder.path("run");
    let fit = ["fit", &data, "--rank", "2", "--quiet", "--out", &out];
    stdout(&altbi(&[&fit[..], flags].concat()));
    x
}

#[test]
fn new_rows_are_encoded_and_keep_their_names() {
    let folder = Folder::new();
    let x = run_on(&folder, &["--max-iter", "300"]);
    let (run, out) = (folder.path("run"), folder.path("codes.csv"));
    let data = folder.path("x.csv");
    let done = altbi(&["encode", &run, &data, "--plain", "--out", &out]);
    stdout(&done);
    assert!(!complaint(&done).1.contains("median"), "{done:?}");
    let codes = read(&out);
    assert_eq!(codes.row_labels, x.row_labels);
    let names = codes.column_labels.clone().unwrap();
    assert_eq!(names, ["component 1", "component 2"]);
    assert!(error(&folder, &codes.values, &x.values) < 0.02);
    // Columns in another order are put in order by their names.
    let order = [3, 0, 5, 1, 4, 2];
    let mut turned = x.clone();
    turned.values = x.values.select(Axis(1), &order);
    let names = x.column_labels.as_ref();
    turned.column_labels = names.map(|names| order.map(|j| names[j].clone()).into());
    let turned = csv(&folder, "turned.csv", &turned);
    let printed = stdout(&altbi(&["encode", &run, &turned, "--plain"]));
    assert_eq!(printed, std::fs::read_to_string(&out).unwrap());
    // A file is not overwritten unless asked.
    let again = altbi(&["encode", &run, &data, "--plain", "--out", &out]);
    assert_eq!(complaint(&again).0, Some(2));
    stdout(&altbi(&[
        "encode", &run, &data, "--plain", "--out", &out, "--force",
    ]));
}

#[test]
fn features_that_differ_are_named() {
    let folder = Folder::new();
    let x = run_on(&folder, &["--max-iter", "20"]);
    let run = folder.path("run");
    let mut other = table(3);
    other.column_labels.as_mut().unwrap()[2] = "trp".into();
    let other = csv(&folder, "other.csv", &other);
    let out = folder.path("codes.csv");
    let (code, text) = complaint(&altbi(&["encode", &run, &other, "--out", &out]));
    assert_eq!(code, Some(2));
    assert!(
        text.contains("'pro' is missing") && text.contains("'trp' is unknown"),
        "{text}"
    );
    assert!(!Path::new(&out).exists());
    // Without names the count decides.
    let few = folder.npy("few.npy", &x.values.slice(s![..3, ..5]).to_owned());
    let (code, text) = complaint(&altbi(&["encode", &run, &few]));
    assert_eq!(code, Some(2));
    assert!(text.contains("NEW must be 3×6, not 3×5"), "{text}");
    let (code, text) = complaint(&altbi(&["encode", &run, &few, "--out", "codes.txt"]));
    assert_eq!(code, Some(2));
    assert!(text.contains(".csv, .npy"), "{text}");
    let nowhere = altbi(&["encode", &folder.path("nowhere"), &few]);
    assert_eq!(complaint(&nowhere).0, Some(2));
}

#[test]
fn new_rows_have_the_penalties_of_the_run() {
    let folder = Folder::new();
    run_on(
        &folder,
        &["--max-iter", "50", "--lambda", "0.2", "--method", "p-mu"],
    );
    let (run, x) = (folder.path("run"), folder.path("x.csv"));
    let (w, plain) = (folder.path("w.npy"), folder.path("plain.npy"));
    let done = altbi(&["encode", &run, &x, "--out", &w]);
    stdout(&done);
    let (_, text) = complaint(&done);
    assert!(
        text.contains("λ of l1 has the scope row") && text.contains("2.000e-1"),
        "{text}"
    );
    stdout(&altbi(&["encode", &run, &x, "--plain", "--out", &plain]));
    let [w, plain] = [w, plain].map(|path| read_matrix(Path::new(&path)).unwrap());
    assert!(w.sum() < 0.999 * plain.sum(), "{} {}", w.sum(), plain.sum());
}

#[test]
fn new_columns_and_penalties_that_need_neighbours() {
    let folder = Folder::new();
    let flags = [
        "--max-iter",
        "30",
        "--penalty",
        "smooth",
        "--lambda-scope",
        "shared",
    ];
    let x = run_on(&folder, &flags);
    let (run, data) = (folder.path("run"), folder.path("x.csv"));
    let (code, text) = complaint(&altbi(&["encode", &run, &data]));
    assert_eq!(code, Some(2));
    assert!(
        text.contains("smooth") && text.contains("--plain"),
        "{text}"
    );
    stdout(&altbi(&["encode", &run, &data, "--plain"]));
    // H carries no penalty: its columns need no flag.
    let out = folder.path("h.csv");
    let columns = altbi(&["encode", &run, &data, "--side", "columns", "--out", &out]);
    stdout(&columns);
    let h = read(&out);
    assert_eq!(h.column_labels, x.column_labels);
    let w = read_matrix(Path::new(&folder.path("run/W.npy"))).unwrap();
    let size = |m: Array2<f64>| m.mapv(|e| e * e).sum().sqrt();
    let residual = size(w.dot(&h.values) - &x.values) / size(x.values);
    assert!(residual < 0.02, "{residual}");
}

#[test]
fn missing_entries_of_new_rows_are_left_out() {
    let folder = Folder::new();
    let x = run_on(&folder, &["--max-iter", "300", "--method", "mu"]);
    let run = folder.path("run");
    let mut new = table(12);
    new.row_labels = None;
    new.values = x.values.slice(s![4..5, ..]).to_owned();
    new.values[[0, 1]] = f64::NAN;
    let new = csv(&folder, "new.csv", &new);
    assert_eq!(complaint(&altbi(&["encode", &run, &new])).0, Some(2));
    let out = folder.path("codes.npy");
    let missing = ["--missing", "mask", "--out", &out];
    stdout(&altbi(&[&["encode", &run, &new][..], &missing].concat()));
    let codes = read_matrix(Path::new(&out)).unwrap();
    assert!(error(&folder, &codes, &x.values.slice(s![4..5, ..]).to_owned()) < 0.05);
    // A sparse matrix with as many columns can be encoded, too.
    let sparse = "%%MatrixMarket matrix coordinate real general\n2 6 3\n1 1 1.5\n1 3 2\n2 6 1\n";
    let sparse = folder.text("new.mtx", sparse.as_bytes());
    let printed = stdout(&altbi(&["encode", &run, &sparse]));
    assert_eq!(printed.lines().count(), 3, "{printed}");
}

/// The library's own encodings, and units that follow the run.
#[test]
fn an_outcome_encodes_rows_as_scikit_learn_transforms() {
    use altbi::{AltBiConfig, Beta, L1, LambdaStep, PenaltyTerm, Scope, Side, SquaredL2, Units};
    let x = table(20).values;
    for units in [Units::Absolute, Units::Relative] {
        for scope in [Scope::Row, Scope::Component, Scope::Entry, Scope::Shared] {
            let terms = [
                (Side::W, PenaltyTerm::tuned(L1)),
                (Side::H, PenaltyTerm::tuned(SquaredL2)),
            ];
            let outcome = AltBiConfig::new(2)
                .with_bunch_over(altbi::BunchOver::Both)
                .with_scope(scope)
                .with_units(units)
                .with_lambda(0.001)
                .with_lambda_step(LambdaStep::Normalized(0.01))
                .with_max_iterations(200)
                .penalizing(Beta::KL, terms)
                .fit(&x)
                .unwrap();
            let rows = outcome.encode_rows(&x).unwrap();
            assert_eq!(rows.dim(), outcome.w.dim());
            let columns = outcome.encode_columns(&x).unwrap();
            let again = |w: &Array2<f64>, h: &Array2<f64>| w.dot(h);
            assert_close("rows", &again(&rows, &outcome.h), &x, 0.05);
            assert_close("columns", &again(&outcome.w, &columns), &x, 0.05);
            let plain = outcome.model().without_penalties();
            assert!(plain.encode_rows(&x).is_ok());
        }
    }
}

#[test]
fn a_run_completes_its_matrix() {
    let folder = Folder::new();
    let mut x = table(12);
    x.values[[2, 3]] = f64::NAN;
    x.values[[7, 0]] = f64::NAN;
    let data = csv(&folder, "x.csv", &x);
    let run = folder.path("run");
    stdout(&altbi(&[
        "fit",
        &data,
        "--rank",
        "2",
        "--quiet",
        "--missing",
        "mask",
        "--max-iter",
        "300",
        "--out",
        &run,
    ]));
    let [w, h] = ["run/W.npy", "run/H.npy"].map(|name| read_matrix(Path::new(&folder.path(name))));
    let product = w.unwrap().dot(&h.unwrap());
    let all = folder.path("wh.npy");
    stdout(&altbi(&["complete", &run, "--out", &all]));
    assert_eq!(read_matrix(Path::new(&all)).unwrap(), product);
    let full = folder.path("full.csv");
    stdout(&altbi(&[
        "complete", &run, "--only", "missing", "--out", &full,
    ]));
    let full = read(&full);
    assert_eq!(full.row_labels, x.row_labels);
    assert_eq!(full.column_labels, x.column_labels);
    let expected = Array2::from_shape_fn(product.dim(), |place| match x.values[place] {
        missing if missing.is_nan() => product[place],
        value => value,
    });
    assert_eq!(full.values, expected);
    // Other data than the run saw is refused.
    x.values[[0, 0]] += 1.0;
    csv(&folder, "x.csv", &x);
    let out = folder.path("other.csv");
    let (code, text) = complaint(&altbi(&[
        "complete", &run, "--only", "missing", "--out", &out,
    ]));
    assert_eq!(code, Some(2));
    assert!(text.contains("x.csv has changed"), "{text}");
    assert!(!Path::new(&out).exists());
}

#[test]
fn a_sparse_matrix_is_completed_only_where_entries_are_missing() {
    let folder = Folder::new();
    let mut text = String::from("%%MatrixMarket matrix coordinate real general\n8 5 30\n");
    for k in 0..30 {
        text += &format!("{} {} {}\n", k % 8 + 1, (k / 8 + k) % 5 + 1, 1 + k % 4);
    }
    let data = folder.text("x.mtx", text.as_bytes());
    for (zeros, code) in [("data", Some(2)), ("missing", Some(0))] {
        let run = folder.path(zeros);
        stdout(&altbi(&[
            "fit",
            &data,
            "--rank",
            "1",
            "--quiet",
            "--zeros",
            zeros,
            "--max-iter",
            "5",
            "--out",
            &run,
        ]));
        let done = altbi(&["complete", &run, "--only", "missing"]);
        let (found, text) = complaint(&done);
        assert_eq!(found, code, "{text}");
        assert!(
            text.contains("8×5") || text.contains("--zeros data"),
            "{text}"
        );
    }
}

#[test]
fn a_finished_run_goes_on() {
    let folder = Folder::new();
    let x = csv(&folder, "x.csv", &table(12));
    let [short, long, whole] = ["short", "long", "whole"].map(|name| folder.path(name));
    let flags = ["--rank", "2", "--tol", "0", "--penalize", "h"];
    let fit = |iterations: &str, out: &str| {
        let fit = ["fit", &x, "--quiet", "--max-iter", iterations, "--out", out];
        stdout(&altbi(&[&fit[..], &flags].concat()));
    };
    fit("20", &short);
    fit("50", &whole);
    let goes_on = ["fit", "--continue", &short, "--max-iter", "50"];
    // Nothing is written over the old run, nor anywhere else.
    let before = folder.entries();
    let (code, text) = complaint(&altbi(&goes_on));
    assert_eq!(code, Some(2));
    assert!(text.contains("--out"), "{text}");
    let onto = altbi(&[&goes_on[..], &["--out", &short, "--force"]].concat());
    assert_eq!(complaint(&onto).0, Some(2));
    let few = altbi(&["fit", "--continue", &short, "--out", &long]);
    assert!(
        complaint(&few).1.contains("more than the run has done"),
        "{few:?}"
    );
    assert_eq!(folder.entries(), before);
    // The step of λ has no memory: the bits are those of the longer run.
    let text = stdout(&altbi(&[&goes_on[..], &["--out", &long]].concat()));
    assert!(text.contains("which ended after 20 iterations"), "{text}");
    assert!(text.contains("after 50 iterations"), "{text}");
    for name in ["W.npy", "H.npy", "lambda_h.npy", "lambda_h_start.npy"] {
        let read = |run: &str| std::fs::read(Path::new(run).join(name)).unwrap();
        assert!(read(&long) == read(&whole), "{name}");
    }
    // It can be repeated from its own settings, and gone on with in turn.
    let (config, again) = (folder.path("long/config.toml"), folder.path("again"));
    stdout(&altbi(&[
        "fit", "--config", &config, "--quiet", "--out", &again,
    ]));
    let w = |run: &str| read_matrix(&Path::new(run).join("W.npy")).unwrap();
    assert_eq!(w(&again), w(&long));
    let third = folder.path("third");
    let text = stdout(&altbi(&[
        "fit",
        "--continue",
        &long,
        "--max-iter",
        "60",
        "--out",
        &third,
    ]));
    assert!(text.contains("which ended after 50 iterations"), "{text}");
    let history = std::fs::read_to_string(folder.path("third/history.csv")).unwrap();
    assert_eq!(history.lines().count(), 62);
    // Other data is another run.
    csv(&folder, "x.csv", &table(13));
    let other = altbi(&[&goes_on[..], &["--out", &folder.path("other")]].concat());
    assert!(complaint(&other).1.contains("has changed"), "{other:?}");
}

#[test]
fn a_run_that_converged_or_was_stopped_early_goes_on() {
    let folder = Folder::new();
    run_on(&folder, &["--tol", "1e-3", "--criterion", "held-out:0.1"]);
    let (run, out) = (folder.path("run"), folder.path("longer"));
    let text = stdout(&altbi(&[
        "fit",
        "--continue",
        &run,
        "--out",
        &out,
        "--json",
    ]));
    let [before, after]: [serde_json::Value; 2] = [
        std::fs::read_to_string(folder.path("run/summary.json")).unwrap(),
        text,
    ]
    .map(|text| serde_json::from_str(&text).unwrap());
    let of = |summary: &serde_json::Value, key: &str| summary[key].as_f64().unwrap();
    assert!(of(&after, "outer_error") <= of(&before, "outer_error"));
    assert!(of(&after, "iterations") >= of(&before, "selected_iteration"));
    assert_eq!(after["continued"]["iterations"], before["iterations"]);
    let practical = folder.path("practical");
    let x = folder.path("x.csv");
    let flags = ["--preset", "practical", "--max-iter", "3", "--quiet"];
    let fit = ["fit", &x, "--rank", "2", "--out", &practical];
    stdout(&altbi(&[&fit[..], &flags].concat()));
    let refused = altbi(&["fit", "--continue", &practical, "--out", &folder.path("no")]);
    assert!(
        complaint(&refused).1.contains("--preset practical"),
        "{refused:?}"
    );
}

/// A run on data of which one column has another unit.
#[test]
fn columns_of_other_units_are_scaled_and_scaled_back() {
    let folder = Folder::new();
    let mut x = table(12);
    x.values.column_mut(2).mapv_inplace(|x| 5000.0 * x);
    let data = csv(&folder, "x.csv", &x);
    let fit = |name: &str, flags: &[&str]| {
        let out = folder.path(name);
        let fit = [
            "fit",
            &data,
            "--rank",
            "2",
            "--max-iter",
            "300",
            "--out",
            &out,
        ];
        let done = altbi(&[&fit[..], flags].concat());
        (stdout(&done), complaint(&done).1)
    };
    let (_, notes) = fit("plain", &[]);
    assert!(
        notes.contains("column pro carries 99 % of X: see --scale"),
        "{notes}"
    );
    let (text, notes) = fit("run", &["--scale", "columns"]);
    assert!(
        !notes.contains("--scale") && text.contains("root mean square"),
        "{notes}{text}"
    );
    // In the units of X again.
    let read = |name: &str| read_matrix(Path::new(&folder.path(name))).unwrap();
    let relative = |found: &Array2<f64>, x: &Array2<f64>| {
        let each = found.iter().zip(x).map(|(y, x)| (y - x).abs() / x);
        each.fold(0.0, f64::max)
    };
    assert!(relative(&read("run/W.npy").dot(&read("run/H.npy")), &x.values) < 0.1);
    let run = folder.path("run");
    // New data are scaled in the same way, on either side.
    let codes = folder.path("codes.npy");
    stdout(&altbi(&["encode", &run, &data, "--plain", "--out", &codes]));
    assert!(relative(&read("codes.npy").dot(&read("run/H.npy")), &x.values) < 0.1);
    let columns = ["--side", "columns", "--out", &codes, "--force"];
    stdout(&altbi(&[&["encode", &run, &data][..], &columns].concat()));
    assert!(relative(&read("run/W.npy").dot(&read("codes.npy")), &x.values) < 0.1);
    // It goes on, and is repeated and replaced, like any other.
    let longer = folder.path("longer");
    stdout(&altbi(&[
        "fit",
        "--continue",
        &run,
        "--max-iter",
        "350",
        "--tol",
        "0",
        "--out",
        &longer,
    ]));
    assert!(relative(&read("longer/W.npy").dot(&read("longer/H.npy")), &x.values) < 0.1);
    let config = folder.path("run/config.toml");
    stdout(&altbi(&[
        "fit", "--config", &config, "--out", &longer, "--force", "--quiet",
    ]));
    assert_eq!(read("longer/H.npy"), read("run/H.npy"));
    // Rows likewise, where W gets the units back.
    fit("rows", &["--scale", "rows", "--quiet"]);
    assert!(relative(&read("rows/W.npy").dot(&read("rows/H.npy")), &x.values) < 0.5);
    assert_eq!(read("rows/scale.npy").dim(), (12, 1));
}

#[test]
fn a_sparse_matrix_is_scaled_as_the_dense_one() {
    let folder = Folder::new();
    let x = Array2::from_shape_fn((9, 6), |(i, j)| match (i + 2 * j) % 4 {
        0 => 0.0,
        k => (k + i % 3 + 1) as f64 * if j == 1 { 100.0 } else { 1.0 },
    });
    let mut text = String::from("%%MatrixMarket matrix coordinate real general\n");
    let stored: Vec<_> = x.indexed_iter().filter(|(_, x)| **x > 0.0).collect();
    text += &format!("9 6 {}\n", stored.len());
    for ((i, j), x) in stored {
        text += &format!("{} {} {x}\n", i + 1, j + 1);
    }
    let sparse = folder.text("x.mtx", text.as_bytes());
    let dense = folder.npy("x.npy", &x);
    let [w, v] = [(sparse, "sparse"), (dense, "dense")].map(|(data, name)| {
        let out = folder.path(name);
        let flags = [
            "--scale",
            "columns",
            "--max-iter",
            "40",
            "--tol",
            "0",
            "--quiet",
        ];
        let fit = ["fit", &data, "--rank", "2", "--out", &out];
        stdout(&altbi(&[&fit[..], &flags].concat()));
        let read = |name| read_matrix(&Path::new(&out).join(name)).unwrap();
        read("W.npy").dot(&read("H.npy"))
    });
    assert_close("WH", &w, &v, 1e-8);
}

#[test]
fn the_best_of_several_starts_is_kept() {
    let folder = Folder::new();
    let x = csv(&folder, "x.csv", &table(12));
    let fit = |flags: &[&str]| {
        let fit = ["fit", &x, "--rank", "3", "--max-iter", "30", "--tol", "0"];
        altbi(&[&fit[..], flags].concat())
    };
    let json = |text: String| serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let out = folder.path("run");
    let flags = ["--restarts", "4", "--seed", "7", "--json", "--out", &out];
    let best = json(stdout(&fit(&flags)));
    let starts = best["starts"].as_array().unwrap();
    let seeds: Vec<_> = starts
        .iter()
        .map(|start| start["seed"].as_u64().unwrap())
        .collect();
    assert_eq!(seeds, [7, 8, 9, 10]);
    // Each start is the run with its seed, and the best of them is kept.
    let mut least = f64::INFINITY;
    for start in starts {
        let seed = start["seed"].to_string();
        let alone = json(stdout(&fit(&["--seed", &seed, "--json"])));
        assert_eq!(alone["divergence"], start["divergence"]);
        least = least.min(alone["divergence"].as_f64().unwrap());
        let cosine = start["cosine_w"].as_f64().unwrap();
        assert!((0.0..1.0 + 1e-9).contains(&cosine), "{cosine}");
    }
    assert_eq!(best["divergence"].as_f64(), Some(least));
    assert_eq!(best["settings"]["seed"], 7);
    // One thread or many, fewer starts than threads: the same bits.
    let threads = json(stdout(&fit(&[
        "--restarts",
        "4",
        "--seed",
        "7",
        "--threads",
        "9",
        "--json",
    ])));
    assert_eq!(threads["starts"], best["starts"]);
    let text = stdout(&fit(&["--restarts", "2", "--criterion", "held-out:0.2"]));
    assert!(
        text.contains("mean cosine") && text.contains("is kept"),
        "{text}"
    );
    // The run can be repeated.
    let (config, again) = (folder.path("run/config.toml"), folder.path("again"));
    stdout(&altbi(&[
        "fit", "--config", &config, "--quiet", "--out", &again,
    ]));
    let w = |run: &str| read_matrix(&Path::new(run).join("W.npy")).unwrap();
    assert_eq!(w(&again), w(&out));
    // The one that was kept goes on.
    let longer = folder.path("longer");
    stdout(&altbi(&[
        "fit",
        "--continue",
        &out,
        "--max-iter",
        "40",
        "--quiet",
        "--out",
        &longer,
    ]));
    for flags in [
        ["--restarts", "0", "--seed", "1"],
        ["--restarts", "2", "--init", "nndsvd"],
        ["--restarts", "2", "--preset", "practical"],
    ] {
        assert_eq!(complaint(&fit(&flags)).0, Some(2), "{flags:?}");
    }
}

/// Several starts are interrupted; those that are done are not done again.
#[cfg(unix)]
#[test]
fn interrupted_starts_go_on() {
    let folder = Folder::new();
    let x = folder.npy("x.npy", &matrix(300, 60, 0.4));
    let [whole, run] = ["whole", "run"].map(|name| folder.path(name));
    let fit = |out: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_altbi"));
        let flags = [
            "--rank",
            "4",
            "--max-iter",
            "400",
            "--tol",
            "0",
            "--restarts",
            "6",
            "--quiet",
        ];
        command.args(["fit", &x, "--out", out]).args(flags);
        command
    };
    assert!(fit(&whole).status().unwrap().success());
    let mut child = fit(&run).spawn().unwrap();
    let first = Path::new(&run).join("start-0");
    while !first.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let id = child.id().to_string();
    let _ = std::process::Command::new("kill")
        .args(["-INT", &id])
        .status();
    let ended = child.wait().unwrap();
    if ended.code() == Some(130) {
        let unfinished = altbi(&["complete", &run]);
        assert!(
            complaint(&unfinished).1.contains("not finished"),
            "{unfinished:?}"
        );
        stdout(&altbi(&["resume", &run, "--quiet"]));
    }
    for name in ["W.npy", "H.npy", "lambda.npy"] {
        let read = |run: &str| std::fs::read(Path::new(run).join(name)).unwrap();
        assert!(read(&run) == read(&whole), "{name}");
    }
    assert!(!first.exists());
    assert_eq!(complaint(&altbi(&["resume", &run])).0, Some(2));
}

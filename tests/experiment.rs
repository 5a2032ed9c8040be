//! The paper's evaluation at reduced size: its numbers, its files, its interruptions.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use altbi::data::{benchmark_a, benchmark_c, read_matrix};
use altbi::experiment::{BenchmarkName, Campaign, Dataset, Protocol, Size};
use altbi::{Error, Initial};
use common::published::published_folder;
use ndarray::Axis;

fn altbi(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_altbi"))
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refused(arguments: &[&str], words: &str) {
    let output = altbi(arguments);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert!(text.contains(words), "{arguments:?}: {text}");
}

/// Every file of a fit below a folder, with its contents.
fn fits(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().contains("start-") {
                found.insert(path.clone(), std::fs::read(path).unwrap());
            }
        }
    }
    found
}

#[test]
fn statistics_are_those_of_the_fits() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("e");
    let folder = out.to_str().unwrap();
    let text = stdout(&altbi(&[
        "reproduce",
        "a",
        "--runs",
        "4",
        "--size",
        "small",
        "--out",
        folder,
    ]));
    for word in [
        "MU",
        "P-MU",
        "MU-T",
        "frozen λ",
        "AltBi",
        "stopping rule",
        "equal work",
    ] {
        assert!(text.contains(word), "no {word} in\n{text}");
    }
    // Recomputed from the table of fits, by another route.
    let mut reader = csv::Reader::from_path(out.join("tables/fits.csv")).unwrap();
    let head = reader.headers().unwrap().clone();
    let column = |name: &str| head.iter().position(|field| field == name).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 4 * (5 * 4 + 9));
    let values = |contender: &str, moment: &str, measure: &str| -> Vec<f64> {
        let wanted = |row: &&csv::StringRecord| &row[1] == contender && &row[3] == moment;
        let value = |row: &csv::StringRecord| row[column(measure)].parse().unwrap();
        rows.iter().filter(wanted).map(value).collect()
    };
    let mut checked = 0;
    let mut reader = csv::Reader::from_path(out.join("tables/summary.csv")).unwrap();
    for row in reader.records().map(Result::unwrap) {
        let values = values(&row[1], &row[2], &row[3]);
        let (mean, deviation): (f64, f64) = (row[5].parse().unwrap(), row[6].parse().unwrap());
        let plain = values.iter().sum::<f64>() / 4.0;
        let variance = values.iter().map(|v| (v - plain).powi(2)).sum::<f64>() / 3.0;
        assert!((mean - plain).abs() <= 1e-12 * plain.abs());
        assert!((deviation - variance.sqrt()).abs() <= 1e-9 * plain.abs());
        checked += 1;
    }
    assert_eq!(checked, 13 * (5 * 4 + 9));
    let mut reader = csv::Reader::from_path(out.join("tables/comparisons.csv")).unwrap();
    let all: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    // Four rivals, at equal work only the two whose iterations differ; three measures.
    assert_eq!(all.len(), (3 * 4 + 2) * 3);
    for row in &all {
        let (rival, moment) = (&row[1], &row[2]);
        let (measure, logarithm) = match row[3].strip_prefix("log10_") {
            Some(measure) => (measure, true),
            None => (&row[3], false),
        };
        let scale = |v: f64| if logarithm { v.log10() } else { v };
        let ours = values("altbi", moment, measure);
        let theirs = values(rival, moment, measure);
        let pairs = ours.iter().zip(&theirs);
        let differences: Vec<f64> = pairs.map(|(a, b)| scale(*a) - scale(*b)).collect();
        let number = |place: usize| row[place].parse::<f64>().unwrap();
        let (found, p, corrected) = (number(4), number(7), number(8));
        let mean = differences.iter().sum::<f64>() / 4.0;
        assert!((found - mean).abs() < 1e-9);
        // With four starts and no ties p is one of a few: twice a count of sixteenths.
        assert_eq!((8.0 * p).fract(), 0.0);
        assert!(p >= 0.125);
        let one_sided =
            differences.iter().all(|d| *d > 0.0) || differences.iter().all(|d| *d < 0.0);
        assert_eq!(one_sided, p == 0.125);
        // Four starts cannot convince anybody.
        assert_eq!(corrected, 1.0);
    }
}

#[test]
fn the_report_holds_every_table_and_figure() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("e");
    let folder = out.to_str().unwrap();
    let arguments = [
        "reproduce",
        "all",
        "--runs",
        "2",
        "--size",
        "small",
        "--out",
        folder,
        "--json",
    ];
    let json: serde_json::Value = serde_json::from_str(&stdout(&altbi(&arguments))).unwrap();
    assert!(json["d"]["altbi"]["work"]["sir_w"]["mean"].is_f64());
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    for name in ["a", "b", "c", "d"] {
        assert!(page.contains(&format!("<section id=\"{name}\">")), "{name}");
        let mut figures = vec![
            "error_iteration",
            "objective_iteration",
            "error_work",
            "error_time",
            "sir_w_stopped",
            "sir_h_stopped",
            "sir_w_work",
            "sir_h_work",
            "response_error",
            "response_sir_w",
            "lambda_rows",
            "lambda_density",
            "sparsity_w_stopped",
            "sparsity_h_stopped",
        ];
        if name != "a" {
            figures.extend(["w_truth", "w_altbi", "w_mu-t"]);
        }
        if name == "d" {
            figures.extend(["maps_truth", "maps_altbi", "maps_mu-t"]);
        }
        let place = out.join("figures").join(name);
        assert_eq!(
            std::fs::read_dir(&place).unwrap().count(),
            2 * figures.len()
        );
        for figure in figures {
            assert!(
                page.contains(&format!("<figure id=\"{name}-{figure}\"")),
                "{name} {figure}"
            );
            let svg = std::fs::read_to_string(place.join(format!("{figure}.svg"))).unwrap();
            assert!(
                svg.contains("</svg>") && !svg.contains("NaN"),
                "{name} {figure}"
            );
            let csv = std::fs::read_to_string(place.join(format!("{figure}.csv"))).unwrap();
            assert!(csv.lines().count() > 2, "{name} {figure}");
        }
    }
    // The paper's Table 1 stands beside ours.
    for number in ["16.73 / 19.21", "21.34 / 23.33"] {
        assert!(page.contains(number));
    }
    // All eight benchmarks in full size are to stay below two megabytes.
    assert!(page.len() < 900_000, "{}", page.len());
    // It needs nothing but itself.
    let elsewhere = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!elsewhere.contains("http") && !elsewhere.contains("<script"));
    assert!(!page.contains("NaN"));
    // And nothing but its folder.
    let moved = parent.path().join("moved");
    std::fs::rename(&out, &moved).unwrap();
    std::fs::remove_file(moved.join("report.html")).unwrap();
    stdout(&altbi(&["report", moved.to_str().unwrap()]));
    assert_eq!(
        std::fs::read_to_string(moved.join("report.html")).unwrap(),
        page
    );
}

#[test]
fn what_is_not_this_experiment_is_not_touched() {
    let parent = tempfile::tempdir().unwrap();
    let path = |name: &str| parent.path().join(name).to_str().unwrap().to_owned();
    let out = path("e");
    let run = |more: &[&str]| {
        let mut all = vec![
            "reproduce",
            "a",
            "--runs",
            "1",
            "--size",
            "small",
            "--quiet",
        ];
        all.extend(more);
        altbi(&all)
    };
    stdout(&run(&["--out", &out]));
    let before = fits(Path::new(&out));
    let base = ["reproduce", "a", "--runs", "1", "--size", "small"];
    let with = |more: &[&'static str]| [&base[..], more].concat();
    refused(
        &[&with(&["--seed", "1"])[..], &["--out", &out]].concat(),
        "another experiment",
    );
    refused(
        &["reproduce", "a", "--runs", "1", "--out", &out],
        "another experiment",
    );
    let datasets = Dataset::all_of(BenchmarkName::A, Size::Small, 0, None).unwrap();
    for other in [
        Protocol {
            bunch: 8,
            ..Protocol::default()
        },
        Protocol {
            initial: Initial::Random,
            ..Protocol::default()
        },
    ] {
        let campaign = Campaign::new(&datasets, other).unwrap();
        let found = campaign.run(Path::new(&out), 1);
        assert!(matches!(found, Err(Error::OtherExperiment { .. })));
    }
    // Fits whose dataset nothing vouches for are not taken over.
    let vouching = Path::new(&out).join("a/dataset.json");
    let record = std::fs::read(&vouching).unwrap();
    std::fs::remove_file(&vouching).unwrap();
    refused(&[&base[..], &["--out", &out]].concat(), "dataset.json");
    std::fs::write(&vouching, record).unwrap();
    assert_eq!(fits(Path::new(&out)), before);
    // While one writes here, another keeps out.
    let lock = std::fs::File::open(Path::new(&out).join("experiment.lock")).unwrap();
    lock.lock().unwrap();
    refused(&[&base[..], &["--out", &out]].concat(), "another run");
    drop(lock);
    stdout(&run(&["--out", &out]));

    std::fs::create_dir(path("thesis")).unwrap();
    std::fs::write(path("thesis/chapter"), "x").unwrap();
    refused(
        &[&base[..], &["--out", &path("thesis")]].concat(),
        "not the folder of an experiment",
    );
    refused(
        &[&base[..], &["--out", &path("thesis/chapter")]].concat(),
        "not a folder",
    );
    let new = path("new");
    refused(
        &["reproduce", "a", "--runs", "0", "--out", &new],
        "number of starts",
    );
    refused(
        &["reproduce", "a", "--runs", "2000", "--out", &new],
        "number of starts",
    );
    refused(
        &["reproduce", "a", "--threads", "2000", "--out", &new],
        "number of threads",
    );
    let nowhere = path("nowhere");
    refused(
        &["reproduce", "c", "--data", &nowhere, "--out", &new],
        "cannot read",
    );
    refused(
        &[
            "reproduce",
            "c",
            "--data",
            &nowhere,
            "--size",
            "small",
            "--out",
            &new,
        ],
        "exclude each other",
    );
    refused(&["reproduce", "e"], "invalid value");
    refused(
        &["generate", "a", "--data", &nowhere, "--out", &new],
        "exclude each other",
    );
    refused(
        &["generate", "d", "--data", &nowhere, "--out", &new],
        "cannot read",
    );
    assert!(!Path::new(&new).exists());
}

#[cfg(unix)]
#[test]
fn an_interrupt_keeps_what_is_finished() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("e");
    let arguments = ["reproduce", "d", "--runs", "3", "--size", "small", "--out"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_altbi"))
        .args(arguments)
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !out.join("d/start-01/altbi.json").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended too soon");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let signal = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(signal.unwrap().success());
    child.wait().unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("the same command goes on"), "{text}");
    assert!(!out.join("report.html").exists());
    refused(&["report", out.to_str().unwrap()], "fits are done");
    let before = fits(&out);
    let again = Command::new(env!("CARGO_BIN_EXE_altbi"))
        .args(arguments)
        .arg(&out)
        .output();
    stdout(&again.unwrap());
    let after = fits(&out);
    assert!(out.join("report.html").exists());
    assert!(before.len() < after.len());
    let records = before
        .iter()
        .filter(|(path, _)| path.extension().unwrap() == "json");
    let mut kept = 0;
    for (path, bytes) in records {
        assert_eq!(after[path], *bytes, "{path:?} was done again");
        kept += 1;
    }
    assert!(kept > 0);
}

#[test]
fn the_command_takes_published_data() {
    let folder = tempfile::tempdir().unwrap();
    let mut broken = benchmark_a(300, 12, 5, 9).x;
    broken[[3, 4]] = -1.0;
    published_folder(folder.path(), &broken, 3);
    let first = benchmark_c(60, 12, 10, 4)
        .w
        .select(Axis(1), &[0, 1, 2, 3, 4]);
    // Data that cannot be factorised is refused before anything is written.
    let out = folder.path().join("broken");
    let data = folder.path().to_str().unwrap();
    let words = "row 3, column 4";
    refused(
        &[
            "reproduce",
            "a",
            "--data",
            data,
            "--out",
            out.to_str().unwrap(),
        ],
        words,
    );
    assert!(!out.exists());
    let out = folder.path().join("made");
    let arguments = [
        "generate",
        "c",
        "--data",
        data,
        "--out",
        out.to_str().unwrap(),
    ];
    stdout(&altbi(&arguments));
    assert_eq!(read_matrix(&out.join("W.npy")).unwrap(), first);
}

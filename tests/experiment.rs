//! The paper's evaluation at reduced size: its numbers, its files, its interruptions.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use altbi::data::{
    benchmark_a, benchmark_c, benchmark_d, published, read_matrix, separable_factors,
};
use altbi::experiment::{
    Archive, BenchmarkName, Campaign, CampaignEnding, Contender, Dataset, Measure, Moment,
    Progress, Protocol, Results, Size, TrialRecord, Unwatched, Watcher, comparisons,
};
use altbi::metrics::recovery;
use altbi::{AltBiConfig, Error, Initial, Method};
use common::mat::{mat_file, mat_matrix};
use ndarray::{Array2, Axis};

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

fn small(names: &[BenchmarkName]) -> Vec<Dataset> {
    let all = names.iter();
    all.flat_map(|name| Dataset::all_of(*name, Size::Small, 0, None).unwrap())
        .collect()
}

fn protocol(runs: usize) -> Protocol {
    Protocol {
        runs,
        max_iterations: 40,
        ..Protocol::default()
    }
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

/// A record without what a clock decides.
fn timeless(record: &TrialRecord) -> TrialRecord {
    let mut record = record.clone();
    record.moments.remove(&Moment::Time);
    for measures in record.moments.values_mut() {
        measures.seconds = 0.0;
    }
    // Beyond the last moment, the clock also decides about the length.
    record.curve.retain(|point| point.iteration <= 40);
    for point in &mut record.curve {
        point.seconds = 0.0;
    }
    record
}

#[test]
fn fits_are_those_of_the_solver_at_each_moment() {
    let parent = tempfile::tempdir().unwrap();
    let protocol = protocol(2);
    let datasets = small(&[BenchmarkName::A]);
    let x = datasets[0].x.clone();
    let truth = datasets[0].truth.clone().unwrap();
    let campaign = Campaign::new(&datasets, protocol).unwrap();
    let archive = Archive::open(&parent.path().join("e"), &campaign).unwrap();
    let ending = campaign.run(&archive, 1, Arc::new(Unwatched)).unwrap();
    assert_eq!(ending, CampaignEnding::Complete);
    let results = Results::read(archive.path()).unwrap();
    let found = &results.datasets[0];
    for contender in Contender::all() {
        let single = matches!(contender.method, Method::Mu | Method::PenalizedMu);
        let work = if single { 160 } else { 40 };
        for (moment, tolerance, iterations) in [
            (Moment::Stopped, 1e-6, 40),
            (Moment::Iterations, 0.0, 40),
            (Moment::Work, 0.0, work),
        ] {
            if !contender.followed && moment != Moment::Stopped {
                continue;
            }
            let mut config = AltBiConfig::new(4)
                .with_method(contender.method)
                .with_initial(Initial::Uniform)
                .with_seed(2)
                .with_tolerance(tolerance)
                .with_max_iterations(iterations);
            if let Some(lambda) = contender.lambda {
                config = config.with_lambda(lambda);
            }
            let outcome = config.fit(&x).unwrap();
            let measures = &found.trials[&contender.name][1].moments[&moment];
            assert_eq!(measures.iterations, outcome.iterations);
            assert_eq!(measures.divergence, outcome.divergence);
            assert_eq!(measures.objective, outcome.objective);
            assert_eq!(measures.sparsity_w, outcome.sparsity_w);
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
            assert!(close(measures.relative_error, outcome.relative_error));
            assert!(close(
                measures.paper_relative_error,
                outcome.paper_relative_error
            ));
            let sir = recovery(&truth.w, &truth.h, &outcome.w, &outcome.h).unwrap();
            assert_eq!(measures.sir_w, Some(sir.mean_w()));
            assert_eq!(measures.sir_h, Some(sir.mean_h()));
            if contender.followed && moment == Moment::Stopped {
                assert_eq!(found.factors(&contender.name, 2).unwrap().w, outcome.w);
            }
            if contender.method == Method::AltBi && moment == Moment::Stopped {
                let lambda = [outcome.lambda_at_start.clone(), outcome.lambda.clone()];
                assert_eq!(found.lambda(2).unwrap(), lambda);
            }
        }
    }
    // Nobody takes less time than AltBi where time is to be equal.
    let seconds = |name: &str| found.values(name, Moment::Time, Measure::Seconds);
    for contender in Contender::compared() {
        let pairs = seconds(&contender.name).into_iter().zip(seconds("altbi"));
        assert!(pairs.into_iter().all(|(theirs, ours)| theirs >= ours));
    }
}

#[test]
fn threads_change_nothing_and_more_starts_join_those_that_are_there() {
    let parent = tempfile::tempdir().unwrap();
    let datasets = small(&[BenchmarkName::A, BenchmarkName::D]);
    let run = |name: &str, runs: usize, threads: usize| {
        let path = parent.path().join(name);
        let campaign = Campaign::new(&datasets, protocol(runs)).unwrap();
        let archive = Archive::open(&path, &campaign).unwrap();
        campaign
            .run(&archive, threads, Arc::new(Unwatched))
            .unwrap();
        Results::read(&path).unwrap()
    };
    let (one, three) = (run("one", 2, 1), run("three", 2, 3));
    for (one, three) in one.datasets.iter().zip(&three.datasets) {
        for contender in Contender::all() {
            let pairs = one.trials[&contender.name]
                .iter()
                .zip(&three.trials[&contender.name]);
            for (one, three) in pairs {
                assert_eq!(timeless(one), timeless(three));
            }
        }
    }
    let before = fits(&parent.path().join("one"));
    assert_eq!(run("one", 3, 2).datasets[0].trials["altbi"].len(), 3);
    let after = fits(&parent.path().join("one"));
    assert_eq!(after.len() * 2, before.len() * 3);
    // To the byte, seconds included: they were not done again.
    assert!(before.iter().all(|(path, bytes)| after[path] == *bytes));
    // Fewer are asked for: the report is about these.
    assert_eq!(run("one", 1, 1).datasets[0].trials["altbi"].len(), 1);
}

/// Ends an experiment after some fits.
struct Impatient {
    left: AtomicUsize,
}

impl Watcher for Impatient {
    fn progressed(&self, progress: &Progress<'_>) {
        assert!(progress.done <= progress.of && progress.share_done <= 1.0 + 1e-12);
        if !progress.found {
            self.left.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn interrupted(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }
}

#[test]
fn an_interrupted_experiment_goes_on_with_what_is_missing() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("e");
    let datasets = small(&[BenchmarkName::B]);
    let campaign = Campaign::new(&datasets, protocol(2)).unwrap();
    let (mut calls, mut done) = (0, 0);
    loop {
        let archive = Archive::open(&path, &campaign).unwrap();
        let watcher = Impatient {
            left: AtomicUsize::new(5),
        };
        calls += 1;
        if campaign.run(&archive, 1, Arc::new(watcher)).unwrap() == CampaignEnding::Complete {
            break;
        }
        done += 5;
        let unfinished = Results::read(&path);
        assert!(
            matches!(unfinished, Err(Error::UnfinishedExperiment { done: d, wanted: 28, .. }) if d == done)
        );
    }
    // 28 fits, 5 in each call.
    assert_eq!(calls, 6);
    // A torn record is as good as none, and so is one without its matrices, or one that
    // says less than it should: these are done again, and no others.
    let before = fits(&path);
    let at = |name: &str| path.join("b/start-02").join(name);
    let record = |name: &str| -> TrialRecord {
        serde_json::from_slice(&std::fs::read(at(name)).unwrap()).unwrap()
    };
    let whole = ["mu.json", "p-mu-0.3.json", "altbi.json", "frozen.json"].map(&record);
    std::fs::write(at("mu.json"), "{\"contender\":").unwrap();
    let mut less = record("p-mu-0.3.json");
    less.moments.clear();
    std::fs::write(at("p-mu-0.3.json"), serde_json::to_vec(&less).unwrap()).unwrap();
    assert!(matches!(
        Results::read(&path),
        Err(Error::ConfigFile { .. })
    ));
    std::fs::remove_file(at("altbi_lambda.npy")).unwrap();
    std::fs::copy(path.join("b/start-01/frozen.json"), at("frozen.json")).unwrap();
    let archive = Archive::open(&path, &campaign).unwrap();
    campaign.run(&archive, 2, Arc::new(Unwatched)).unwrap();
    let again = ["mu.json", "p-mu-0.3.json", "altbi.json", "frozen.json"].map(&record);
    for (whole, again) in whole.iter().zip(&again) {
        assert_eq!(timeless(whole), timeless(again));
    }
    let after = fits(&path);
    let same = before
        .iter()
        .filter(|(file, bytes)| after[*file] == **bytes);
    let records = same.filter(|(file, _)| file.extension().unwrap() == "json");
    assert!(records.count() >= 24);
    // Damage that a report finds is named, not a panic.
    let main = path.join("experiment.json");
    let text = std::fs::read_to_string(&main).unwrap();
    for runs in ["\"runs\":0", "\"runs\":18446744073709551615"] {
        std::fs::write(&main, text.replace("\"runs\":2", runs)).unwrap();
        assert!(matches!(
            Results::read(&path),
            Err(Error::ConfigFile { .. })
        ));
    }
    std::fs::write(&main, &text).unwrap();
    std::fs::copy(at("mu_W.npy"), path.join("b/truth_H.npy")).unwrap();
    let results = Results::read(&path).unwrap();
    let refused = altbi::report::ExperimentReport::new(&results);
    assert!(matches!(refused.err(), Some(Error::Shape { .. })));
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
    let results = Results::read(&out).unwrap();
    let all = comparisons(&results);
    // Four rivals, at equal work only the two whose iterations differ; three measures.
    assert_eq!(all.len(), (3 * 4 + 2) * 3);
    let mut p: Vec<f64> = all.iter().map(|one| one.difference.p).collect();
    for one in &all {
        let ours = values("altbi", one.moment.name(), one.measure.name());
        let theirs = values(&one.rival.name, one.moment.name(), one.measure.name());
        let scale = |v: f64| {
            if one.measure == Measure::RelativeError {
                v.log10()
            } else {
                v
            }
        };
        let differences: Vec<f64> = ours
            .iter()
            .zip(&theirs)
            .map(|(a, b)| scale(*a) - scale(*b))
            .collect();
        let mean = differences.iter().sum::<f64>() / 4.0;
        assert!((one.difference.mean - mean).abs() < 1e-9);
        // With four starts and no ties p is one of a few: twice a count of sixteenths.
        assert_eq!((8.0 * one.difference.p).fract(), 0.0);
        let one_sided =
            differences.iter().all(|d| *d > 0.0) || differences.iter().all(|d| *d < 0.0);
        assert_eq!(one_sided, one.difference.p == 0.125);
        // Four starts cannot convince anybody.
        assert_eq!(one.corrected_p, 1.0);
    }
    p.sort_by(f64::total_cmp);
    assert!(p[0] >= 0.125);
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
    let datasets = small(&[BenchmarkName::A]);
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
        let found = Archive::open(Path::new(&out), &campaign);
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
    let one_run = Protocol {
        runs: 1,
        ..Protocol::default()
    };
    let campaign = Campaign::new(&datasets, one_run).unwrap();
    let archive = Archive::open(Path::new(&out), &campaign).unwrap();
    refused(&[&base[..], &["--out", &out]].concat(), "another run");
    drop(archive);
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

/// Files with the names, variables and orientation of the published ones.
fn published_folder(folder: &Path, a: &Array2<f64>, spectra: usize) {
    let write = |file: &str, name: &str, matrix: &Array2<f64>| {
        let bytes = mat_file(&[mat_matrix(name, matrix, 6)]);
        std::fs::write(folder.join(file), bytes).unwrap();
    };
    write("Benchmark_A.mat", "X", a);
    write(
        "Benchmark_B.mat",
        "X",
        &altbi::data::benchmark_b(60, 12, 5, 1).x,
    );
    let signals = benchmark_c(60, 12, 10, 4).w;
    write("AC10_art_spectr_noi.mat", "X", &signals.t().to_owned());
    let reflectances = benchmark_d(40, 6, spectra, 5).w;
    write("USGS_pruned_10_deg.mat", "B", &reflectances);
}

#[test]
fn published_data_is_taken_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let a = benchmark_a(300, 12, 5, 9);
    published_folder(folder.path(), &a.x, 7);
    let all = |name| Dataset::all_of(name, Size::Full, 0, Some(folder.path())).unwrap();
    let of_a = all(BenchmarkName::A);
    let names: Vec<&str> = of_a.iter().map(|dataset| dataset.name.as_str()).collect();
    assert_eq!(names, ["a", "a-published-4", "a-published-5"]);
    assert_eq!((of_a[1].rank, of_a[2].rank), (4, 5));
    assert_eq!(of_a[1].x, a.x);
    // Its factors are found although the file does not hold them.
    let truth = of_a[2].truth.as_ref().unwrap();
    let sir = recovery(&a.w, &a.h, &truth.w, &truth.h).unwrap();
    assert!(sir.mean_w() > 200.0 && sir.mean_h() > 200.0);
    // For sinusoids that overlap everywhere they are not, and that is said.
    let of_b = all(BenchmarkName::B);
    let known = separable_factors(&of_b[1].x, 5).is_some();
    assert_eq!(of_b[1].truth.is_some(), known);
    assert!(known || of_b[1].origin.contains("no SIR"));

    let c = &all(BenchmarkName::C)[0];
    let signals = benchmark_c(60, 12, 10, 4).w;
    let first = signals.select(Axis(1), &[0, 1, 2, 3, 4]);
    assert_eq!(c.truth.as_ref().unwrap().w, first);
    assert_eq!(c.x.dim(), (60, 50));
    let d = &all(BenchmarkName::D)[0];
    assert_eq!(d.x.dim(), (40, 3025));
    assert!(d.origin.contains("USGS"));

    // Data that cannot be factorised is refused before anything is written.
    let mut broken = a.x.clone();
    broken[[3, 4]] = -1.0;
    published_folder(folder.path(), &broken, 3);
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
    let few = published::published_d(folder.path(), 6, 5, 0);
    assert!(matches!(
        few,
        Err(Error::TooFewSignals {
            found: 3,
            wanted: 5,
            ..
        })
    ));
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

#[test]
fn fewer_components_than_the_truth_are_compared_with_those_they_come_closest_to() {
    let folder = tempfile::tempdir().unwrap();
    let a = benchmark_a(300, 12, 5, 9);
    published_folder(folder.path(), &a.x, 5);
    let datasets = Dataset::all_of(BenchmarkName::A, Size::Full, 0, Some(folder.path())).unwrap();
    let datasets = vec![datasets[1].clone()];
    let out = folder.path().join("e");
    let campaign = Campaign::new(&datasets, protocol(1)).unwrap();
    let archive = Archive::open(&out, &campaign).unwrap();
    campaign.run(&archive, 0, Arc::new(Unwatched)).unwrap();
    let results = Results::read(&out).unwrap();
    let found = &results.datasets[0];
    let factors = found.factors("mu", 1).unwrap();
    let truth = found.truth().unwrap().unwrap();
    let sir = recovery(&factors.w, &factors.h, &truth.w, &truth.h).unwrap();
    assert_eq!(sir.w.len(), 4);
    let mean = found.values("mu", Moment::Stopped, Measure::SirW);
    assert_eq!(mean, [sir.mean_w()]);
    altbi::report::ExperimentReport::new(&results)
        .unwrap()
        .write()
        .unwrap();
    assert!(out.join("report.html").exists());
}

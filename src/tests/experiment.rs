//! The paper's evaluation at reduced size: its numbers, its files, its interruptions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::Axis;
use parking_lot::Mutex;

use super::published::published_folder;
use crate::data::{benchmark_a, benchmark_c, published::published_d, separable_factors};
use crate::experiment::{
    Archive, BenchmarkName, Campaign, CampaignEnding, Contender, Dataset, Measure, Moment,
    Progress, Protocol, Results, Size, TrialRecord, Watcher,
};
use crate::metrics::recovery;
use crate::report::write_experiment;
use crate::{AltBiConfig, Error, Initial, Method};

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
    let results = campaign.run(&parent.path().join("e"), 1).unwrap();
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
        campaign.run(&path, threads).unwrap()
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
    share_done: Mutex<f64>,
}

impl Watcher for Impatient {
    fn progressed(&self, progress: &Progress<'_>) {
        assert!(progress.done <= progress.of && progress.share_done <= 1.0 + 1e-12);
        // (A fit that was there before is not work that is done.)
        let mut before = self.share_done.lock();
        if progress.share_done > *before {
            *before = progress.share_done;
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
            share_done: Mutex::new(0.0),
        };
        calls += 1;
        if campaign.watched(&archive, 1, Arc::new(watcher)).unwrap() == CampaignEnding::Complete {
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
    campaign.run(&path, 2).unwrap();
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
    let refused = write_experiment(&results);
    assert!(matches!(refused, Err(Error::Shape { .. })));
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

    published_folder(folder.path(), &a.x, 3);
    let few = published_d(folder.path(), 6, 5, 0);
    assert!(matches!(
        few,
        Err(Error::TooFewSignals {
            found: 3,
            wanted: 5,
            ..
        })
    ));
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
    let results = campaign.run(&out, 0).unwrap();
    let found = &results.datasets[0];
    let factors = found.factors("mu", 1).unwrap();
    let truth = found.truth().unwrap().unwrap();
    let sir = recovery(&factors.w, &factors.h, &truth.w, &truth.h).unwrap();
    assert_eq!(sir.w.len(), 4);
    let mean = found.values("mu", Moment::Stopped, Measure::SirW);
    assert_eq!(mean, [sir.mean_w()]);
    write_experiment(&results).unwrap();
    assert!(out.join("report.html").exists());
}

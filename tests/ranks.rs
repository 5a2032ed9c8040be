//! How many components: the search in the library, and the command from outside.

use std::process::{Command, Output};

use altbi::data::{Noise, benchmark_b, write_npy};
use altbi::ranks::{RankBy, RankError, RankSearch};
use altbi::{Beta, L1, PenaltyTerm, Precision, Problem, Scope, Side};
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;

/// Counts of mean 3 of benchmark B.
fn counts(n: usize, m: usize, rank: usize, seed: u64) -> Problem {
    let noisy = Noise::Poisson(3.0).on(&benchmark_b(n, m, rank, seed), seed);
    Problem::new(&noisy.x, Precision::F64).unwrap()
}

fn pool(threads: usize) -> rayon::ThreadPool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap()
}

#[test]
fn the_true_rank_of_counts_is_found_on_any_number_of_threads() {
    let problem = counts(90, 30, 3, 1);
    let search = RankSearch::new(1..=6, Beta::KL).with_splits(3).with_seed(1);
    let one = pool(1).install(|| search.run(&problem)).unwrap();
    let two = pool(2).install(|| search.run(&problem)).unwrap();
    assert_eq!(one, two);
    assert_eq!(one.errors.len(), 18);
    let recommended = one.recommended(RankBy::Plain).unwrap();
    assert!((2..=4).contains(&recommended), "{recommended}");
    let summaries = one.summaries(RankBy::Plain);
    assert!(summaries[0].mean > summaries[2].mean);
}

#[test]
fn what_is_known_is_not_done_again() {
    let problem = counts(40, 20, 2, 3);
    let search = RankSearch::new(1..=3, Beta::KL).with_splits(2);
    let whole = search.run(&problem).unwrap();
    let seen = Mutex::new(Vec::new());
    let done = |error: &RankError| seen.lock().push(error.pair());
    let stop = Default::default();
    let again = search.watched(&problem, &whole.errors[..5], &done, &stop);
    assert_eq!(again.unwrap(), whole);
    assert_eq!(*seen.lock(), [(3, 1)]);
    // A search that is stopped has what it had.
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let stopped = search.watched(&problem, &whole.errors[..2], &done, &stop);
    assert_eq!(stopped.unwrap().errors, whole.errors[..2]);
}

/// The preset is never worse than plain updates by more than rounding: they are among its
/// candidates. And plain updates are the same with it and without.
#[test]
fn penalties_are_tuned_at_each_rank() {
    let problem = counts(40, 20, 2, 3);
    let search = RankSearch::new(2..=3, Beta::KL).with_splits(2);
    let plain = search.run(&problem).unwrap();
    let terms = |_: &Problem| Ok(vec![(Side::H, PenaltyTerm::tuned(L1))]);
    let tuned = search.with_penalties(terms, Scope::Hierarchical(1.0));
    let tuned = tuned.run(&problem).unwrap();
    assert!(tuned.is_tuned() && !plain.is_tuned());
    assert!(tuned.recommended(RankBy::Tuned).is_some());
    for (with, without) in tuned.errors.iter().zip(&plain.errors) {
        assert_eq!(with.plain, without.plain);
        assert!(with.tuned.unwrap() <= with.plain * (1.0 + 1e-9));
    }
}

fn altbi(folder: &TempDir, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_altbi"));
    command
        .current_dir(folder.path())
        .args(arguments.split_whitespace());
    command.output().unwrap()
}

fn succeed(folder: &TempDir, arguments: &str) -> String {
    let output = altbi(folder, arguments);
    assert!(output.status.success(), "{arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A folder with counts, x.npy.
fn folder_with_data() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let noisy = Noise::Poisson(3.0).on(&benchmark_b(40, 20, 2, 3), 3);
    write_npy(&folder.path().join("x.npy"), &noisy.x).unwrap();
    folder
}

#[test]
fn the_command_writes_its_folder_and_does_no_pair_again() {
    let folder = folder_with_data();
    let ranks = "ranks x.npy --to 3 --splits 2 --out r";
    let printed = succeed(&folder, ranks);
    assert!(printed.contains("← recommended"), "{printed}");
    assert!(!printed.contains("done before"), "{printed}");
    let text = |name: &str| std::fs::read_to_string(folder.path().join("r").join(name)).unwrap();
    let csv = text("ranks.csv");
    assert!(csv.starts_with("rank,split,plain,tuned\n1,0,"), "{csv}");
    assert_eq!(csv.lines().count(), 1 + 6);
    let page = text("report.html");
    assert!(page.contains("<h1>x.npy</h1>") && page.contains("How many components"));
    assert!(page.contains("x.npy, 40×20, ranks 1 to 3"));
    let kept: Value = serde_json::from_str(&text("ranks.json")).unwrap();
    let errors = kept["done"]["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 6);
    assert!(kept["recommended"].is_u64());
    // A number that no solve would give shows that the pair is taken as it is.
    let marked = text("ranks.json").replace(&errors[2]["plain"].to_string(), "0.123456789");
    std::fs::write(folder.path().join("r/ranks.json"), marked).unwrap();
    let again = succeed(&folder, &format!("{ranks} --threads 1"));
    assert!(again.contains("6 of 6 pairs were done before"), "{again}");
    assert!(text("ranks.csv").contains("2,0,0.123456789,"));
    // More ranks and splits: only these are done.
    let more = succeed(&folder, "ranks x.npy --to 4 --splits 3 --out r");
    assert!(more.contains("6 of 12 pairs were done before"), "{more}");
    assert!(text("ranks.csv").contains("2,0,0.123456789,"));
    // The page is made again from the folder.
    std::fs::remove_file(folder.path().join("r/report.html")).unwrap();
    succeed(&folder, "report r");
    assert!(text("report.html").contains("<figure id=\"ranks\""));
    // Other settings do not overwrite it.
    let other = altbi(&folder, &format!("{ranks} --seed 7"));
    assert_eq!(other.status.code(), Some(2));
    // The same as JSON, without a folder, on one thread.
    let json = succeed(&folder, "ranks x.npy --to 3 --splits 2 --threads 1 --json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["errors"][0], errors[0]);
    assert_eq!(json["plain"].as_array().unwrap().len(), 3);
    assert_eq!(json["settings"]["outer"], "thinned:0.1 by smoothed-kl:0.5");
}

#[test]
fn bad_input_exits_with_2_and_leaves_nothing() {
    let folder = folder_with_data();
    for (arguments, says) in [
        ("ranks x.npy --from 0", "rank"),
        ("ranks x.npy --from 3 --to 2", "last rank"),
        ("ranks x.npy --to 21", "rank"),
        ("ranks x.npy --from 21", "rank"),
        ("ranks x.npy --splits 0", "splits"),
        ("ranks x.npy --criterion train", "do not see"),
        ("ranks x.npy --criterion held-out:0", "fraction"),
        ("ranks x.npy --divergence is", "positive"),
        ("ranks x.npy --penalty smooth", "--tuned"),
        ("ranks x.npy --threads 5000", "threads"),
        ("ranks none.npy", "none.npy"),
    ] {
        let output = altbi(&folder, &format!("{arguments} --out new"));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
        assert!(message.contains(says), "{arguments}: {message}");
        assert!(!folder.path().join("new").exists(), "{arguments}");
    }
}

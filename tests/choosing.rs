//! Presets, penalties on either factor, scopes and `compare`, from outside.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use altbi::data::{Noise, benchmark_b, read_matrix, write_npy};
use serde_json::Value;
use tempfile::TempDir;

fn command(folder: &TempDir, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_altbi"));
    command
        .current_dir(folder.path())
        .args(arguments.split_whitespace());
    command
}

fn altbi(folder: &TempDir, arguments: &str) -> Output {
    command(folder, arguments).output().unwrap()
}

fn succeed(folder: &TempDir, arguments: &str) -> String {
    let output = altbi(folder, arguments);
    assert!(output.status.success(), "{arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A folder with counts of smooth signals, x.npy.
fn folder_with_data() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let noisy = Noise::Poisson(3.0).on(&benchmark_b(60, 20, 3, 4), 4);
    write_npy(&folder.path().join("x.npy"), &noisy.x).unwrap();
    folder
}

fn matrix(folder: &TempDir, name: &str) -> ndarray::Array2<f64> {
    read_matrix(&folder.path().join(name)).unwrap()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

const STRUCTURE: &str = "--penalize both --penalty smooth --penalty-h l1";

#[test]
fn practical_smooths_the_outer_error_of_data_with_many_zeros() {
    let folder = tempfile::tempdir().unwrap();
    // Few counts, in other units: not whole numbers, many zeros.
    let noisy = Noise::Poisson(1.0).on(&benchmark_b(60, 20, 3, 4), 4);
    let x = &noisy.x * 0.37;
    let zeros = 100.0 * x.iter().filter(|x| **x == 0.0).count() as f64 / x.len() as f64;
    assert!(zeros > 20.0, "{zeros}");
    write_npy(&folder.path().join("x.npy"), &x).unwrap();
    let fit = "fit x.npy --rank 3 --preset practical --penalize h --penalty-h l1 --json";
    let printed = json(&succeed(&folder, &format!("{fit} --out run")));
    let outer = printed["outer"].as_str().unwrap();
    let c = outer.strip_prefix("held-out:0.1 by smoothed-kl:").unwrap();
    let half = x.mean().unwrap() / 2.0;
    assert!(
        (c.parse::<f64>().unwrap() / half - 1.0).abs() < 0.005,
        "{outer}, {half}"
    );
    let reason = printed["outer_reason"].as_str().unwrap();
    assert!(reason.contains(&format!("{zeros:.0} % zeros")), "{reason}");
    // A user's choice of the divergence stays.
    let printed = json(&succeed(&folder, &format!("{fit} --outer-divergence kl")));
    assert_eq!(printed["outer"], "held-out:0.1 by kl");
    // The same run from its configuration.
    succeed(&folder, "fit --config run/config.toml --quiet --out again");
    assert_eq!(matrix(&folder, "run/W.npy"), matrix(&folder, "again/W.npy"));
    // A comparison has the same outer error.
    let compare = "compare x.npy --rank 3 --penalize h --penalty-h l1 --rivals plain --runs 1";
    assert!(succeed(&folder, compare).contains(&format!("outer error {outer}")));
}

#[test]
fn practical_keeps_its_candidates_and_repeats_from_its_configuration() {
    let folder = folder_with_data();
    let fit = format!("fit x.npy --rank 4 --preset practical {STRUCTURE} --json");
    let printed = json(&succeed(&folder, &format!("{fit} --out run")));
    let candidates = printed["choice"]["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 3);
    let chosen = printed["choice"]["chosen"].as_u64().unwrap() as usize;
    let error = |index: usize| candidates[index]["outer_error"].as_f64().unwrap();
    // The lowest, or plain updates where it is not clearly lower.
    assert!(chosen == 0 || (0..3).all(|index| error(chosen) <= error(index)));
    assert_eq!(printed["outer_error"].as_f64().unwrap(), error(chosen));
    assert_eq!(printed["settings"]["lambda-scope"], "hierarchical:1");
    assert_eq!(printed["settings"]["criterion"], "auto");
    assert_eq!(printed["outer"], "thinned:0.1 by smoothed-kl:0.5");
    assert!(printed["outer_reason"].as_str().unwrap().contains("counts"));
    assert_eq!(matrix(&folder, "run/lambda.npy").dim(), (1, 4));
    assert_eq!(matrix(&folder, "run/lambda_h.npy").dim(), (4, 1));
    let page = std::fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    assert!(page.contains("Candidates") && page.contains("smooth on W"));
    // Where plain updates won, the page names no penalty in its heading.
    let heading = match chosen {
        0 => "plain updates stopped early, kl divergence, no penalty",
        _ => "penalties smooth on W and l1 on H",
    };
    assert!(page.contains(heading));
    // The configuration says everything, preset included.
    succeed(&folder, "fit --config run/config.toml --quiet --out again");
    for name in ["W.npy", "H.npy", "lambda.npy", "lambda_h.npy"] {
        let (a, b) = (format!("run/{name}"), format!("again/{name}"));
        assert_eq!(matrix(&folder, &a), matrix(&folder, &b), "{name}");
    }
    // Without the refit the winner stays as it was.
    let bare = json(&succeed(&folder, &format!("{fit} --refit 0")));
    assert_eq!(bare["outer_error"], printed["outer_error"]);
    let divergence = |summary: &Value| summary["divergence"].as_f64().unwrap();
    assert!(
        divergence(&bare) >= divergence(&printed),
        "a refit descends"
    );
    let refused = altbi(&folder, "fit x.npy --rank 3 --refit 3");
    assert_eq!(refused.status.code(), Some(2));
    // Typed flags win over the preset.
    let other = json(&succeed(
        &folder,
        &format!("{fit} --max-iter 5 --lambda-scope shared"),
    ));
    assert_eq!(other["iterations"], 5);
    assert_eq!(other["settings"]["lambda-scope"], "shared");
}

/// Sends SIGINT.
fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn an_interrupted_practical_run_goes_on_to_the_same_bits() {
    let folder = folder_with_data();
    let fit = format!("fit x.npy --rank 4 --preset practical {STRUCTURE} --bunch 40 --quiet");
    succeed(&folder, &format!("{fit} --out whole"));
    let mut child = command(&folder, &format!("{fit} --checkpoint-every 1 --out broken"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let checkpoint = folder.path().join("broken/checkpoint");
    while !checkpoint.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    interrupt(&child);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130), "interrupted long before its end");
    succeed(&folder, "resume broken --quiet");
    for name in ["W.npy", "H.npy", "lambda.npy", "lambda_h.npy"] {
        let (a, b) = (format!("whole/{name}"), format!("broken/{name}"));
        assert_eq!(matrix(&folder, &a), matrix(&folder, &b), "{name}");
    }
    assert!(!checkpoint.exists());
}

#[test]
fn penalties_on_h_and_sums_leave_their_weights() {
    let folder = folder_with_data();
    let fit = "fit x.npy --rank 3 --max-iter 8 --quiet";
    succeed(&folder, &format!("{fit} --penalize h --out h"));
    assert!(
        matrix(&folder, "h/lambda.npy")
            .iter()
            .all(|weight| *weight == 0.0)
    );
    assert_eq!(matrix(&folder, "h/lambda.npy").dim(), (60, 1));
    assert_eq!(matrix(&folder, "h/lambda_h.npy").dim(), (1, 20));
    let sum = "--penalty smooth+l1 --lambda-scope component --lambda-step adam:0.1 --out sum";
    succeed(&folder, &format!("{fit} {sum}"));
    assert_eq!(matrix(&folder, "sum/lambda.npy").dim(), (1, 3));
    assert_eq!(matrix(&folder, "sum/lambda_2.npy").dim(), (1, 3));
    let entries = "--lambda-scope entry --lambda-units relative --lambda-step adam:0.1 --out entry";
    succeed(&folder, &format!("{fit} {entries}"));
    assert_eq!(matrix(&folder, "entry/lambda.npy").dim(), (60, 3));
    succeed(&folder, "report sum");
    // 32 bits, given starts and weights go the same way.
    let starts = "--init-w h/W.npy --init-h h/H.npy --lambda sum/lambda.npy --dtype f32";
    let scope = "--lambda-scope component --out given";
    succeed(&folder, &format!("{fit} {starts} {scope}"));
    assert_eq!(matrix(&folder, "given/lambda_start.npy").dim(), (1, 3));
}

#[test]
fn shinbo_tunes_a_weight_for_each_row_of_h() {
    let folder = tempfile::tempdir().unwrap();
    let noisy = Noise::Gamma(0.25).on(&benchmark_b(40, 25, 3, 4), 4);
    write_npy(&folder.path().join("x.npy"), &noisy.x).unwrap();
    let fit = "fit x.npy --rank 3 --preset shinbo --max-iter 30 --json --out run";
    let summary = json(&succeed(&folder, fit));
    assert_eq!(summary["settings"]["divergence"], "is");
    assert_eq!(summary["settings"]["exponent"], "monotone");
    assert_eq!(matrix(&folder, "run/lambda_h.npy").dim(), (3, 1));
}

#[test]
fn gradcheck_goes_through_both_factors() {
    let folder = folder_with_data();
    let check = format!("gradcheck x.npy --rank 3 {STRUCTURE} --lambda-scope component --json");
    let report = json(&succeed(
        &folder,
        &format!("{check} --criterion held-out:0.1 --out g.npy"),
    ));
    assert_eq!(report["consistent"], true);
    let fused = report["report"]["fused"].as_array().unwrap();
    assert_eq!(fused.len(), 3);
    assert!(fused.iter().all(|of| of["verdict"] == "pass"), "{fused:?}");
    assert_eq!(matrix(&folder, "g.npy").dim(), (6, 1));
    let refused = altbi(&folder, "gradcheck --penalize h");
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn what_contradicts_itself_exits_with_2_and_leaves_nothing() {
    let folder = folder_with_data();
    for (arguments, says) in [
        (
            "fit x.npy --rank 3 --preset practical --criterion train",
            "practical",
        ),
        (
            "fit x.npy --rank 3 --preset practical --method mu",
            "--method",
        ),
        (
            "fit x.npy --rank 3 --preset practical --select last",
            "--select last",
        ),
        (
            "fit x.npy --rank 3 --preset shinbo --divergence kl",
            "shinbo",
        ),
        (
            "fit x.npy --rank 3 --preset shinbo --penalize w",
            "rows of H",
        ),
        ("fit x.npy --rank 3 --preset both", "preset"),
        ("fit x.npy --rank 3 --penalty-h l1", "--penalty-h"),
        (
            "fit x.npy --rank 3 --penalize both --bunch-over one",
            "both",
        ),
        (
            "fit x.npy --rank 3 --penalty hoyer --lambda-scope component",
            "hoyer",
        ),
        (
            "fit x.npy --rank 3 --penalty group+l1 --lambda-scope entry",
            "group",
        ),
        ("fit x.npy --rank 3 --lambda-scope hierarchical", "log λ"),
        ("fit x.npy --rank 3 --lambda-scope hierarchical:0", "τ"),
        ("fit x.npy --rank 3 --lambda-scope rows", "scope"),
        (
            "fit x.npy --rank 3 --lambda-min 2 --lambda-max 1",
            "smallest λ",
        ),
        (
            "fit x.npy --rank 3 --penalize h --hypergradient finite-differences --engine fused",
            "finite-differences",
        ),
        (
            "fit x.npy --rank 3 --penalize both --hypergradient implicit",
            "implicit",
        ),
        (
            "fit x.npy --rank 3 --preset practical --criterion held-out:0.7",
            "0.5",
        ),
        ("fit x.npy --rank 30 --preset practical", "rank"),
        ("compare x.npy", "rank"),
        ("compare x.npy --rank 3 --runs 0", "runs"),
        ("compare x.npy --rank 3 --criterion held-out:0", "fraction"),
        ("compare x.npy --rank 3 --criterion train", "do not see"),
        (
            "compare --benchmark b --divergence frobenius --criterion thinned:0.1",
            "not a count",
        ),
        ("fit x.npy --rank 3 --penalty graph", "--shape-w"),
        ("fit x.npy --rank 3 --penalty graph --shape-w 2x3", "2×3"),
        (
            "fit x.npy --rank 3 --penalty graph --graph knn:0",
            "neighbours",
        ),
        (
            "fit x.npy --rank 3 --penalty graph --graph none.txt",
            "none.txt",
        ),
        ("fit x.npy --rank 3 --graph knn:2", "--penalty graph"),
        ("fit x.npy --rank 3 --image-shape 7x9", "need 63 columns"),
        (
            "fit x.npy --rank 3 --outer-divergence smoothed-kl:-1",
            "positive",
        ),
        ("compare x.npy --rank 3 --test 0.9", "test"),
        ("compare x.npy --rank 3 --rivals fox", "fox"),
        ("compare x.npy --rank 3 --rival-scope row", "scope"),
        (
            "compare x.npy --rank 3 --penalty hoyer --lambda-scope component",
            "hoyer",
        ),
        ("compare --benchmark b --rank 99", "rank"),
        ("compare --divergence is x.npy --rank 3", "positive"),
    ] {
        let output = altbi(&folder, &format!("{arguments} --out new"));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
        assert!(message.contains(says), "{arguments}: {message}");
        assert!(!folder.path().join("new").exists(), "{arguments}");
    }
}

#[test]
fn compare_writes_a_table_and_goes_on() {
    let folder = folder_with_data();
    let compare =
        format!("compare x.npy --rank 3 {STRUCTURE} --runs 2 --rivals path,tpe --budget 300");
    let printed = succeed(&folder, &format!("{compare} --out c"));
    for word in ["practical", "plain", "path", "tpe", "after refit"] {
        assert!(printed.contains(word), "{printed}");
    }
    for name in ["report.html", "compare.csv", "standings.json"] {
        assert!(folder.path().join("c").join(name).exists(), "{name}");
    }
    let csv = std::fs::read_to_string(folder.path().join("c/compare.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 2 * 4);
    // Half of it, as an interruption leaves it: the same command does the rest.
    let path = folder.path().join("c/standings.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut kept = json(&text);
    let standings = kept["contest"]["standings"].as_array_mut().unwrap();
    let whole = standings.clone();
    standings.truncate(4);
    std::fs::write(&path, kept.to_string()).unwrap();
    std::fs::remove_file(folder.path().join("c/report.html")).unwrap();
    succeed(&folder, &format!("{compare} --quiet --out c"));
    let again = json(&std::fs::read_to_string(&path).unwrap());
    let numbers = |standings: &[Value]| -> Vec<(String, f64)> {
        let number = |of: &Value| (of["rival"].to_string(), of["held_out"].as_f64().unwrap());
        standings.iter().map(number).collect()
    };
    let found = again["contest"]["standings"].as_array().unwrap();
    assert_eq!(numbers(found), numbers(&whole));
    assert!(folder.path().join("c/report.html").exists());
    std::fs::remove_file(folder.path().join("c/report.html")).unwrap();
    succeed(&folder, "report c");
    let page = std::fs::read_to_string(folder.path().join("c/report.html")).unwrap();
    assert!(page.contains("<h1>x.npy</h1>") && page.contains("x.npy, 60×20, r = 3"));
    // Another comparison does not overwrite it.
    let other = altbi(&folder, &format!("{compare} --seed 5 --out c"));
    assert_eq!(other.status.code(), Some(2));
    assert!(Path::new(&path).exists());
    // A benchmark knows its truth.
    let json_of = "compare --benchmark d --size small --divergence frobenius --penalty smooth";
    let all = json(&succeed(
        &folder,
        &format!("{json_of} --runs 1 --rivals plain --json"),
    ));
    assert!(all["standings"][0]["judged"].as_f64().unwrap() > 0.0);
}

#[test]
fn components_are_pictures_where_a_shape_is_known() {
    let folder = folder_with_data();
    let fit = "fit x.npy --rank 3 --penalty graph --shape-w 6x10 --shape-h 4x5 --max-iter 5";
    succeed(&folder, &format!("{fit} --out run --quiet"));
    let page = || std::fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    assert!(page().contains("as a picture of the rows of X"));
    assert!(page().contains("as a picture of the columns of X"));
    // Each component has both of its pictures in its card.
    assert_eq!(page().matches("<div class=\"picture\">").count(), 2 * 3);
    // Steps go along the picture too: each pixel has more neighbours than in a row.
    let objective = |flags: &str| {
        let fit =
            format!("fit x.npy --rank 3 --penalty steps --max-iter 1 --lambda 1 --json {flags}");
        json(&succeed(&folder, &fit))["objective"].as_f64().unwrap()
    };
    assert!(objective("--shape-w 6x10") > objective(""));
    // A summary that was edited: curves again, and no panic.
    let summary = folder.path().join("run/summary.json");
    let text = std::fs::read_to_string(&summary).unwrap();
    std::fs::write(&summary, text.replace("6x10", "6x11")).unwrap();
    succeed(&folder, "report run");
    assert!(!page().contains("as a picture of the rows of X"));
}

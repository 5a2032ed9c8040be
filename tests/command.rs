//! The command, from outside: its files, its words, its exit codes.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use altbi::data::{read_matrix, write_npy};
use common::{Numbers, assert_close, matrix, reference};
use ndarray::Array2;
use serde_json::Value;
use tempfile::TempDir;

fn altbi(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_altbi"))
        .args(arguments)
        .output()
        .unwrap()
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().into()
    }

    fn npy(&self, name: &str, matrix: &Array2<f64>) -> String {
        let path = self.path(name);
        write_npy(Path::new(&path), matrix).unwrap();
        path
    }

    fn text(&self, name: &str, text: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn entries(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
    }
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn fit_without_arguments_runs_the_demo() {
    let text = stdout(&altbi(&["fit"]));
    for word in [
        "AltBi",
        "iterations",
        "converged",
        "divergence",
        "relative error",
        "sparsity",
        "SIR",
        "time",
    ] {
        assert!(text.contains(word), "no {word} in\n{text}");
    }
}

#[test]
fn a_run_folder_holds_what_the_contract_says() {
    let folder = Folder::new();
    let x = matrix(15, 9, 0.3);
    let data = folder.npy("x.npy", &x);
    let out = folder.path("run");
    let arguments = [
        "fit",
        &data,
        "--rank",
        "3",
        "--max-iter",
        "12",
        "--tol",
        "0",
        "--seed",
        "5",
        "--out",
        &out,
    ];
    let text = stdout(&altbi(&arguments));
    assert!(text.contains("after 12 iterations"), "{text}");

    let config = altbi::AltBiConfig::new(3)
        .with_max_iterations(12)
        .with_tolerance(0.0)
        .with_seed(5);
    let outcome = config.fit(&x).unwrap();
    let read = |name: &str| read_matrix(&Path::new(&out).join(name)).unwrap();
    assert_eq!(read("W.npy"), outcome.w);
    assert_eq!(read("H.npy"), outcome.h);
    assert_eq!(read("lambda.npy"), outcome.lambda);

    let file = |name: &str| std::fs::read_to_string(Path::new(&out).join(name)).unwrap();
    let history = file("history.csv");
    assert_eq!(history.lines().count(), 14);
    let summary: Value = serde_json::from_str(&file("summary.json")).unwrap();
    for key in [
        "settings",
        "seed",
        "data_hash",
        "stop_reason",
        "iterations",
        "divergence",
        "objective",
        "relative_error",
        "sparsity_w",
        "sparsity_h",
        "seconds",
    ] {
        assert!(!summary[key].is_null(), "{key}");
    }
    assert_eq!(summary["stop_reason"], "max-iterations");
    assert_eq!(summary["seed"], 5);
    let config: toml::Table = file("config.toml").parse().unwrap();
    assert_eq!(config["divergence"].as_str(), Some("kl"));
    assert_eq!(config["rank"].as_integer(), Some(3));

    // An existing folder is refused before anything is read, and kept.
    let again = altbi(&arguments);
    assert_eq!(again.status.code(), Some(2));
    assert_eq!(file("history.csv"), history);
    let forced: Vec<&str> = arguments
        .into_iter()
        .chain(["--force", "--quiet"])
        .collect();
    assert_eq!(stdout(&altbi(&forced)), "");
}

#[test]
fn csv_and_npy_give_the_same_factors() {
    let folder = Folder::new();
    let x = matrix(8, 6, 0.3);
    let rows = x.rows().into_iter().map(|row| {
        let fields: Vec<String> = row.iter().map(f64::to_string).collect();
        fields.join(",")
    });
    let text = rows.collect::<Vec<_>>().join("\n");
    let csv = folder.text("x.csv", text.as_bytes());
    let npy = folder.npy("x.npy", &x);
    let summary = |data: &str| -> Value {
        let arguments = ["fit", data, "--rank", "2", "--max-iter", "5", "--json"];
        serde_json::from_str(&stdout(&altbi(&arguments))).unwrap()
    };
    let (a, b) = (summary(&csv), summary(&npy));
    assert_eq!(a["divergence"], b["divergence"]);
    assert_eq!(a["data_hash"], b["data_hash"]);
}

#[test]
fn starts_come_from_files() {
    let reference: Value = reference("baselines.json");
    let numbers = |key: &str| -> Array2<f64> {
        let numbers: Numbers = serde_json::from_value(reference[key].clone()).unwrap();
        numbers.array()
    };
    let folder = Folder::new();
    let [x, w, h] = ["X", "W0", "H0"].map(|key| folder.npy(&format!("{key}.npy"), &numbers(key)));
    let half = folder.text("half.csv", "0.5\n".repeat(12).as_bytes());
    let out = folder.path("run");
    let arguments = [
        "fit",
        &x,
        "--rank",
        "3",
        "--method",
        "p-mu",
        "--lambda",
        &half,
        "--init-w",
        &w,
        "--init-h",
        &h,
        "--max-iter",
        "20",
        "--tol",
        "0",
        "--out",
        &out,
        "--quiet",
    ];
    stdout(&altbi(&arguments));
    let got = read_matrix(&Path::new(&out).join("W.npy")).unwrap();
    assert_close("W", &got, &numbers("W_pmu"), 1e-10);
}

#[test]
fn bad_input_is_named_exits_with_2_and_leaves_nothing() {
    let folder = Folder::new();
    let good = matrix(9, 7, 0.1);
    let x = folder.npy("x.npy", &good);
    let with = |row, column, value| {
        let mut bad = good.clone();
        bad[[row, column]] = value;
        bad
    };
    let negative = folder.npy("negative.npy", &with(3, 2, -1.0));
    let nan = folder.npy("nan.npy", &with(4, 1, f64::NAN));
    let infinite = folder.npy("infinite.npy", &with(0, 6, f64::INFINITY));
    let zero = folder.npy("zero.npy", &with(5, 5, 0.0));
    let zeros = folder.npy("zeros.npy", &Array2::zeros((4, 4)));
    let ragged = folder.text("ragged.csv", b"1,2,3\n4,5\n");
    let words = folder.text("words.csv", b"1,2\n3,four\n");
    let empty = folder.text("empty.csv", b"");
    let broken = folder.text("broken.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr'");
    let other = folder.text("x.xyz", b"1");
    let short = folder.npy("short.npy", &matrix(8, 1, 0.2));
    let hole = folder.npy("hole.npy", &{
        let mut mask = Array2::ones((9, 7));
        mask.row_mut(6).fill(0.0);
        mask
    });
    let missing = folder.path("missing.npy");
    let directory = folder.0.path().to_str().unwrap().to_owned();
    let before = folder.entries();
    let out = folder.path("run");
    let cases: &[(&str, &[&str], &str)] = &[
        ("missing file", &[&missing], "missing.npy"),
        ("directory", &[&directory], "ending must be"),
        ("negative", &[&negative], "row 3, column 2 is -1"),
        (
            "NaN",
            &[&nan],
            "1 entries of X are missing, the first at row 4, column 1",
        ),
        ("infinite", &[&infinite], "row 0, column 6 is inf"),
        ("all zero", &[&zeros], "nothing to factorise"),
        ("ragged", &[&ragged], "line 2 has 2 fields where 3"),
        ("words", &[&words], "line 2, field 2: 'four'"),
        ("empty", &[&empty], "empty"),
        ("broken", &[&broken], "broken.npy"),
        ("ending", &[&other], "x.xyz"),
        (
            "zero under IS",
            &[&zero, "--divergence", "is"],
            "row 5, column 5 is 0",
        ),
        ("rank 0", &[&x, "--rank", "0"], "not 0"),
        ("rank 8", &[&x, "--rank", "8"], "min(n, m) = 7, not 8"),
        ("T = 0", &[&x, "--bunch", "0"], "T must be at least 1"),
        ("negative λ", &[&x, "--lambda", "-1"], "not -1"),
        (
            "short λ",
            &[&x, "--lambda", &short],
            "λ must be 9×1, not 8×1",
        ),
        (
            "W of wrong shape",
            &[&x, "--init-w", &short],
            "W must be 9×2, not 8×1",
        ),
        (
            "H of wrong shape",
            &[&x, "--init-h", &short],
            "H must be 2×7, not 8×1",
        ),
        (
            "mask of wrong shape",
            &[&x, "--mask", &short],
            "mask must be 9×7",
        ),
        ("mask with an empty row", &[&x, "--mask", &hole], "row 6"),
        (
            "λ for MU",
            &[&x, "--method", "mu", "--lambda", "1"],
            "exclude",
        ),
        (
            "divergence",
            &[&x, "--divergence", "kullback"],
            "kl, frobenius",
        ),
        ("penalty", &[&x, "--penalty", "l3"], "hoyer"),
        (
            "monotone Hoyer",
            &[&x, "--penalty", "hoyer", "--exponent", "monotone"],
            "hoyer",
        ),
        ("step", &[&x, "--lambda-step", "constant:0"], "positive"),
        ("tolerance", &[&x, "--tol", "-1"], "tolerance"),
        ("iterations", &[&x, "--max-iter", "0"], "iterations"),
        ("flag", &[&x, "--rnak", "2"], "--rank"),
    ];
    for (what, arguments, words) in cases {
        let mut all = vec!["fit"];
        all.extend(*arguments);
        if !arguments.contains(&"--rank") {
            all.extend(["--rank", "2"]);
        }
        all.extend(["--out", &out]);
        let output = altbi(&all);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{what}: {error}");
        assert!(error.contains(words), "{what}: {error}");
        assert!(!error.contains("panicked"), "{what}: {error}");
        assert!(output.stdout.is_empty(), "{what}");
        assert_eq!(folder.entries(), before, "{what} left something behind");
    }
    let no_rank = altbi(&["fit", &x]);
    assert_eq!(no_rank.status.code(), Some(2));
    assert!(
        String::from_utf8(no_rank.stderr)
            .unwrap()
            .contains("--rank")
    );
}

#[test]
fn gradcheck_prints_the_matrix_and_finds_the_planted_mistakes() {
    let text = stdout(&altbi(&["gradcheck"]));
    assert!(text.contains("980 cases, 0 inconsistent"), "{text}");
    assert!(text.contains("0 missed"), "{text}");
    assert!(!text.contains("MISMATCH"), "{text}");
}

#[test]
fn gradcheck_takes_a_bunch_of_ones_own() {
    let cases: Vec<Value> = reference("bunches.json");
    let case = cases
        .iter()
        .find(|case| case["name"] == "beta0.5-l2-T4-mask0")
        .unwrap();
    let folder = Folder::new();
    let file = |key: &str| {
        let numbers: Numbers = serde_json::from_value(case[key].clone()).unwrap();
        folder.npy(&format!("{key}.npy"), &numbers.array())
    };
    let (x, w, h, lambda) = (file("X"), file("W0"), file("H"), file("lambda"));
    let out = folder.path("g.npy");
    let want: Numbers = serde_json::from_value(case["hypergradient"].clone()).unwrap();
    for mode in ["reverse", "forward", "adjoint"] {
        let arguments = [
            "gradcheck",
            &x,
            "--w",
            &w,
            "--h",
            &h,
            "--lambda",
            &lambda,
            "--bunch",
            "4",
            "--divergence",
            "beta:0.5",
            "--penalty",
            "l2",
            "--mode",
            mode,
            "--out",
            &out,
            "--json",
        ];
        let json: Value = serde_json::from_str(&stdout(&altbi(&arguments))).unwrap();
        assert_eq!(json["mode"], mode);
        assert_eq!(json["report"]["comparisons"][0]["verdict"], "pass");
        assert_eq!(json["report"]["controls"][0]["verdict"], "mismatch");
        let got = read_matrix(Path::new(&out)).unwrap();
        assert_close(mode, &got, &want, 1e-10);
    }
    let no_rank = altbi(&["gradcheck", &x]);
    assert_eq!(no_rank.status.code(), Some(2));
    let drawn = stdout(&altbi(&[
        "gradcheck",
        &x,
        "--rank",
        "2",
        "--penalty",
        "smooth",
    ]));
    assert!(drawn.contains("pass"), "{drawn}");
    let orphan = altbi(&["gradcheck", "--out", &out]);
    assert_eq!(orphan.status.code(), Some(2));
}

#[test]
fn help_and_version() {
    let help = stdout(&altbi(&["fit", "--help"]));
    assert!(help.contains("Examples:"), "{help}");
    assert!(stdout(&altbi(&["--version"])).contains(env!("CARGO_PKG_VERSION")));
}

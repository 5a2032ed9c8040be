//! The command, from outside: its files, its words, its exit codes.

mod common;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use altbi::data::read_matrix;
use common::command::{Folder, altbi, stdout};
use common::{Numbers, assert_close, matrix, reference};
use ndarray::Array2;
use serde_json::Value;

/// Whatever `--help` lists is in config.toml, under its own name.
#[test]
fn the_configuration_lists_every_flag() {
    let folder = Folder::new();
    let x = folder.npy("x.npy", &matrix(9, 6, 0.3));
    let w = folder.npy("w.npy", &matrix(9, 2, 0.3));
    let h = folder.npy("h.npy", &matrix(2, 6, 0.3));
    let mask = folder.npy("mask.npy", &Array2::ones((9, 6)));
    let out = folder.path("run");
    let optional = [
        "--init-w",
        &w,
        "--init-h",
        &h,
        "--mask",
        &mask,
        "--refit",
        "2",
        "--splits",
        "2",
        "--penalty",
        "graph",
        "--graph",
        "knn:2",
        "--graph-h",
        "knn:2",
        "--shape-w",
        "3x3",
        "--shape-h",
        "2x3",
        "--outer-divergence",
        "frobenius",
        "--checkpoint-every",
        "9",
        "--penalty-h",
        "graph",
        "--penalize",
        "both",
        "--preset",
        "practical",
        "--max-iter",
        "2",
    ];
    let run = [&["fit", &x, "--quiet", "--out", &out][..], &optional].concat();
    stdout(&altbi(&run));
    let config = std::fs::read_to_string(folder.path("run/config.toml")).unwrap();
    let config: toml::Table = config.parse().unwrap();
    let help = stdout(&altbi(&["fit", "--help"]));
    let words = help.split_whitespace();
    let flags = words.filter_map(|word| word.strip_prefix("--"));
    let flags = flags.map(|flag| flag.trim_matches(|c: char| !c.is_ascii_alphanumeric()));
    // (--continue needs a finished run: tests/people.rs. --image-shape is --shape-h.)
    let about_the_call = [
        "config",
        "out",
        "force",
        "quiet",
        "json",
        "help",
        "version",
        "continue",
        "image-shape",
        "",
    ];
    let mut seen = 0;
    for flag in flags.filter(|flag| !about_the_call.contains(flag)) {
        assert!(config.contains_key(flag), "--{flag} is not in config.toml");
        seen += 1;
    }
    assert!(seen > 40, "{seen}");
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
fn a_summary_names_the_engine_and_threads_change_nothing() {
    let folder = Folder::new();
    let x = folder.npy("x.npy", &matrix(70, 90, 0.3));
    let base = ["fit", &x, "--rank", "3", "--max-iter", "8", "--tol", "0"];
    let run = |name: &str, more: &[&str]| -> (Value, Array2<f64>) {
        let out = folder.path(name);
        let arguments = [&base[..], &["--json", "--out", &out], more].concat();
        let summary = serde_json::from_str(&stdout(&altbi(&arguments))).unwrap();
        let w = read_matrix(&Path::new(&out).join("W.npy")).unwrap();
        (summary, w)
    };
    let (auto, w) = run("auto", &[]);
    assert_eq!(auto["engine"], "fused");
    assert!(auto["engine_difference"].as_f64().unwrap() < 1e-12);
    assert_eq!(auto["engine_compared_on"].as_array().unwrap().len(), 2);
    for threads in ["1", "2", "3"] {
        let (_, shared) = run(threads, &["--threads", threads]);
        assert_eq!(w, shared, "{threads} threads");
    }
    let (fused, _) = run("fused", &["--engine", "fused"]);
    assert_eq!(fused["engine"], "fused");
    assert!(fused["engine_difference"].is_null());
    let (autodiff, tensors) = run("autodiff", &["--engine", "autodiff"]);
    assert_eq!(autodiff["engine"], "autodiff");
    assert_close("W", &w, &tensors, 1e-9);
    let (smooth, _) = run("smooth", &["--penalty", "smooth"]);
    assert_eq!(smooth["engine"], "fused");

    let out = folder.path("refused");
    let more = [
        "--hypergradient",
        "finite-differences",
        "--engine",
        "fused",
        "--out",
        &out,
    ];
    let refused = altbi(&[&base[..], &more].concat());
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("finite-differences"));
    assert!(!Path::new(&out).exists());
    if cfg!(not(feature = "flex")) {
        let unbuilt = altbi(&[&base[..], &["--device", "flex"]].concat());
        assert_eq!(unbuilt.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&unbuilt.stderr).contains("--features flex"));
    }
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
    let single = folder.npy("single.npy", &Array2::ones((1, 1)));
    let nothing = folder.npy("nothing.npy", &Array2::zeros((9, 2)));
    let small = folder.npy("small.npy", &(&good * 1e-10));
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000, 10000000), }";
    let liar = [
        b"\x93NUMPY\x01\x00v\x00",
        format!("{header:<117}\n").as_bytes(),
    ]
    .concat();
    let liar = folder.text("liar.npy", &liar);
    let mut torn = vec![b' '; 124];
    torn.extend(b"\x00\x01IM\x0e\x00\x00\x00\x00\x01\x00\x00 ");
    let torn = folder.text("torn.mat", &torn);
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
            "1 entry of X is missing, the first at row 4, column 1",
        ),
        ("infinite", &[&infinite], "row 0, column 6 is inf"),
        ("all zero", &[&zeros], "nothing to factorise"),
        ("ragged", &[&ragged], "line 2 has 2 fields where 3"),
        ("words", &[&words], "line 2, field 2: 'four'"),
        ("empty", &[&empty], "empty"),
        ("broken", &[&broken], "broken.npy"),
        ("ending", &[&other], "x.xyz"),
        ("one number", &[&single], "1×1"),
        ("a header that lies", &[&liar], "promises"),
        ("torn .mat", &[&torn], "damaged"),
        ("preset", &[&x, "--preset", "papre"], "paper"),
        ("zero start", &[&x, "--init-w", &nothing], "positive entry"),
        (
            "small units in 32 bits",
            &[&small, "--dtype", "f32"],
            "scale X",
        ),
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

/// Everything that a run computed, without its seconds.
fn results(folder: &str) -> Vec<String> {
    let read = |name: &str| std::fs::read(Path::new(folder).join(name)).unwrap();
    let mut results: Vec<String> = ["W.npy", "H.npy", "lambda.npy", "lambda_start.npy"]
        .map(|name| format!("{:?}", read(name)))
        .to_vec();
    let history = String::from_utf8(read("history.csv")).unwrap();
    let rows = history
        .lines()
        .map(|line| line.rsplit_once(',').unwrap().0.to_owned());
    results.extend(rows);
    results
}

#[test]
fn a_killed_run_goes_on_to_the_same_bits() {
    let folder = Folder::new();
    let data = folder.npy("x.npy", &altbi::data::benchmark_a(300, 40, 4, 7).x);
    let arguments = |out: &str| {
        [
            "fit",
            &data,
            "--rank",
            "4",
            "--max-iter",
            "150",
            "--tol",
            "0",
            "--checkpoint-every",
            "1",
            "--quiet",
            "--out",
            out,
        ]
        .map(String::from)
    };
    let whole = folder.path("whole");
    let whole_arguments = arguments(&whole);
    let clock = std::time::Instant::now();
    stdout(&altbi(&whole_arguments.each_ref().map(String::as_str)));
    let length = clock.elapsed();
    let want = results(&whole);
    let mut resumed = 0;
    for kill in 0..12u32 {
        let out = folder.path(&format!("run{kill}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_altbi"));
        command.args(arguments(&out));
        // Moments spread over the run, each part of it killed again and again.
        for attempt in 0..20u32 {
            let mut child = command.stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(length.mul_f64(f64::from(kill * 7 % 12 + 1) / 14.0));
            child.kill().unwrap();
            child.wait().unwrap();
            let left = Path::new(&out).join("checkpoint").exists();
            if left {
                resumed += 1;
            } else if Path::new(&out).join("summary.json").exists() || attempt > 5 {
                break;
            }
            command = Command::new(env!("CARGO_BIN_EXE_altbi"));
            if left {
                command.args(["resume", &out, "--quiet"]);
            } else {
                // Killed before its first checkpoint: nothing to resume.
                command.args(arguments(&out)).arg("--force");
            }
        }
        let status = command.stderr(Stdio::null()).status().unwrap();
        let finished = altbi(&["resume", &out, "--quiet"]);
        let text = String::from_utf8(finished.stderr).unwrap();
        assert!(
            status.success() || text.contains("finished"),
            "{kill}: {text}"
        );
        assert_eq!(results(&out), want, "killed {kill}");
        let strays = std::fs::read_dir(&out).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name == "checkpoint"
        });
        assert_eq!(strays.count(), 0);
    }
    assert!(resumed >= 12, "only {resumed} runs were resumed");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_iteration_and_says_how_to_go_on() {
    let folder = Folder::new();
    let out = folder.path("run");
    let mut child = Command::new(env!("CARGO_BIN_EXE_altbi"))
        .args(["fit", "--tol", "0", "--max-iter", "100000", "--out", &out])
        .args(["--checkpoint-every", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !Path::new(&out).join("checkpoint").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let signal = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(signal.unwrap().success());
    let output = {
        child.wait().unwrap();
        child.wait_with_output().unwrap()
    };
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(&format!("altbi resume {out}")), "{text}");
    assert!(Path::new(&out).join("checkpoint").exists());
    assert!(!Path::new(&out).join("summary.json").exists());
}

#[test]
fn what_does_not_belong_together_is_not_resumed() {
    let folder = Folder::new();
    let x = altbi::data::benchmark_a(60, 20, 3, 7).x;
    let data = folder.npy("x.npy", &x);
    let out = folder.path("run");
    let run = || {
        let mut child = Command::new(env!("CARGO_BIN_EXE_altbi"))
            .args([
                "fit",
                &data,
                "--rank",
                "3",
                "--max-iter",
                "1000000",
                "--tol",
                "0",
                "--checkpoint-every",
                "1",
                "--quiet",
                "--out",
                &out,
                "--force",
            ])
            .spawn()
            .unwrap();
        while !Path::new(&out).join("checkpoint").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    };
    run();
    let checkpoint = Path::new(&out).join("checkpoint");
    let config = Path::new(&out).join("config.toml");
    let bytes = std::fs::read(&checkpoint).unwrap();
    let settings = std::fs::read_to_string(&config).unwrap();
    let refused = |words: &str| {
        let before = std::fs::read(&checkpoint).unwrap();
        let output = altbi(&["resume", &out]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}: {text}");
        assert!(text.contains(words), "{words}: {text}");
        assert_eq!(std::fs::read(&checkpoint).unwrap(), before);
        assert!(!Path::new(&out).join("summary.json").exists());
    };
    std::fs::write(&checkpoint, &bytes[..bytes.len() / 2]).unwrap();
    refused("damaged");
    std::fs::write(&checkpoint, b"something else").unwrap();
    refused("not an altbi checkpoint");
    std::fs::write(&checkpoint, &bytes).unwrap();
    std::fs::write(&config, settings.replace("bunch = 4", "bunch = 5")).unwrap();
    refused("settings");
    std::fs::write(&config, &settings).unwrap();
    folder.npy("x.npy", &(&x + 1.0));
    refused("data are not those");
    folder.npy("x.npy", &x);
    std::fs::write(
        &config,
        settings.replace("max-iter = 1000000", "max-iter = 7"),
    )
    .unwrap();
    refused("settings");
    let nothing = folder.path("nothing");
    let output = altbi(&["resume", &nothing]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_configuration_repeats_a_run_and_flags_override_it() {
    let folder = Folder::new();
    let data = folder.npy("x.npy", &matrix(15, 9, 0.3));
    let (first, second) = (folder.path("first"), folder.path("second"));
    let run = [
        "fit",
        &data,
        "--rank",
        "3",
        "--max-iter",
        "12",
        "--penalty",
        "l2",
        "--divergence",
        "beta:0.3",
        "--lambda",
        "0.25",
        "--lambda-step",
        "constant:0.01",
        "--lambda-max",
        "2",
        "--exponent",
        "monotone",
        "--normalize",
        "h-rows",
        "--seed",
        "18446744073709551615",
        "--quiet",
        "--out",
        &first,
    ];
    stdout(&altbi(&run));
    let config = format!("{first}/config.toml");
    stdout(&altbi(&[
        "fit", "--config", &config, "--quiet", "--out", &second,
    ]));
    assert_eq!(results(&first), results(&second));
    let text = |folder: &str| std::fs::read_to_string(format!("{folder}/config.toml")).unwrap();
    assert_eq!(text(&first), text(&second));

    let other = folder.path("other");
    stdout(&altbi(&[
        "fit", "--config", &config, "--bunch", "2", "--quiet", "--out", &other,
    ]));
    let merged: toml::Table = text(&other).parse().unwrap();
    assert_eq!(merged["bunch"].as_integer(), Some(2));
    assert_eq!(merged["penalty"].as_str(), Some("l2"));

    // Files are beside the configuration, wherever the program runs.
    folder.text("edges.txt", b"0 1\n1 2\n");
    let beside = "data = \"x.npy\"\nrank = 2\npenalty = \"graph\"\ngraph = \"edges.txt\"";
    let beside = folder.text("beside.toml", beside.as_bytes());
    let flags = ["--max-iter", "2", "--quiet"];
    stdout(&altbi(
        &[&["fit", "--config", &beside][..], &flags].concat(),
    ));

    for (contents, words) in [
        ("rnak = 3", "did you mean 'rank'?"),
        ("rank = \"three\"", "invalid value 'three'"),
        ("rank = [3]", "single value"),
        ("quiet = 1", "true or false"),
        ("rank =", "TOML parse error"),
        ("divergence = \"kullback\"", "kl, frobenius"),
    ] {
        let bad = folder.text("bad.toml", contents.as_bytes());
        let output = altbi(&["fit", "--config", &bad]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{contents}: {text}");
        assert!(text.contains(words), "{contents}: {text}");
    }
}

#[test]
fn tables_keep_their_names_and_missing_entries_are_left_out() {
    let folder = Folder::new();
    let table = folder.text(
        "t.tsv",
        b"# expression\ngene\ts 1\ts2\ts3\nalpha\t1\t2\t0.5\nbeta\t\t1\t4\ngamma\t2\t2.5\t1\n",
    );
    let refused = altbi(&["fit", &table, "--rank", "2"]);
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(
        text.contains("1 entry of X is missing, the first at row 1, column 0"),
        "{text}"
    );
    let out = folder.path("run");
    let run = [
        "fit",
        &table,
        "--rank",
        "2",
        "--missing",
        "mask",
        "--format",
        "csv",
        "--quiet",
        "--out",
        &out,
    ];
    stdout(&altbi(&run));
    let read = |name: &str| std::fs::read_to_string(format!("{out}/{name}")).unwrap();
    assert!(read("W.csv").contains("\n\"beta\","), "{}", read("W.csv"));
    assert!(
        read("H.csv").starts_with("\"\",\"s 1\",\"s2\",\"s3\"\n\"component 1\","),
        "{}",
        read("H.csv")
    );

    // The same through a pipe; the data stays with the run.
    let piped = folder.path("piped");
    let mut child = Command::new(env!("CARGO_BIN_EXE_altbi"))
        .args([
            "fit",
            "-",
            "--rank",
            "2",
            "--missing",
            "mask",
            "--quiet",
            "--out",
            &piped,
        ])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let text = std::fs::read_to_string(&table).unwrap().replace('\t', ",");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(results(&piped), results(&out));
    // Also when the folder has moved.
    let (again, moved) = (folder.path("again"), folder.path("moved"));
    std::fs::rename(&piped, &moved).unwrap();
    let config = format!("{moved}/config.toml");
    stdout(&altbi(&[
        "fit", "--config", &config, "--quiet", "--out", &again,
    ]));
    assert_eq!(results(&again), results(&out));
}

#[test]
fn benchmarks_are_made_and_not_overwritten() {
    let folder = Folder::new();
    for (name, shape, rank) in [
        ("a", (1000, 50), 4),
        ("b", (1000, 50), 4),
        ("c", (1000, 50), 5),
        ("d", (224, 3025), 5),
        ("poisson", (1000, 50), 4),
    ] {
        let out = folder.path(name);
        stdout(&altbi(&["generate", name, "--seed", "3", "--out", &out]));
        let read = |file: &str| read_matrix(&Path::new(&out).join(file)).unwrap();
        let (x, w, h) = (read("X.npy"), read("W.npy"), read("H.npy"));
        assert_eq!((x.dim(), w.ncols()), (shape, rank), "{name}");
        if name != "poisson" {
            assert_close(name, &x, &w.dot(&h), 1e-12);
        }
        let again = altbi(&["generate", name, "--out", &out]);
        assert_eq!(again.status.code(), Some(2));
    }
}

#[test]
fn a_report_is_made_from_the_folder_alone() {
    let folder = Folder::new();
    let (out, moved) = (folder.path("run"), folder.path("moved"));
    stdout(&altbi(&[
        "fit",
        "--max-iter",
        "20",
        "--quiet",
        "--out",
        &out,
    ]));
    let page = std::fs::read_to_string(format!("{out}/report.html")).unwrap();
    std::fs::rename(&out, &moved).unwrap();
    std::fs::remove_file(format!("{moved}/report.html")).unwrap();
    std::fs::remove_dir_all(format!("{moved}/figures")).unwrap();
    stdout(&altbi(&["report", &moved]));
    let again = std::fs::read_to_string(format!("{moved}/report.html")).unwrap();
    // Only the folder's own place differs.
    assert_eq!(again.replace(&moved, &out), page);
    for word in [
        "Convergence",
        "Distribution of λ",
        "Hypergradient",
        "Sparsity",
        "Settings",
    ] {
        assert!(page.contains(word), "{word}");
    }
    for word in ["What was found", "How well it fits", "What λ says"] {
        assert!(page.contains(word), "{word}");
    }
    assert_eq!(page.matches("<figure").count(), 6);
    assert!(page.matches("<title>").count() > 100, "numbers on hover");
    // Nothing is fetched: the only address is the name of SVG.
    let bare = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!bare.contains("http"), "the page needs nothing but itself");
    assert_eq!(
        std::fs::read_dir(format!("{moved}/figures"))
            .unwrap()
            .count(),
        6
    );
    // A method without a penalty has none on its page.
    let plain = folder.path("plain");
    stdout(&altbi(&[
        "fit",
        "--method",
        "mu",
        "--max-iter",
        "5",
        "--quiet",
        "--out",
        &plain,
    ]));
    let page = std::fs::read_to_string(format!("{plain}/report.html")).unwrap();
    assert!(page.contains("kl divergence, no penalty") && !page.contains("l1 penalty"));
    assert!(page.contains("every λ is 0") && page.contains("5, the limit"));
    std::fs::write(format!("{moved}/W.npy"), b"torn").unwrap();
    let torn = altbi(&["report", &moved]);
    assert_eq!(torn.status.code(), Some(2));
    assert_eq!(
        altbi(&["report", &folder.path("none")]).status.code(),
        Some(2)
    );
}

#[test]
fn a_browser_shows_the_report() {
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
    else {
        eprintln!("skipped: there is no Chromium here");
        return;
    };
    let folder = Folder::new();
    let out = folder.path("run");
    stdout(&altbi(&[
        "fit",
        "--max-iter",
        "20",
        "--quiet",
        "--out",
        &out,
    ]));
    let page = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.path("browser")))
        .arg(format!("file://{out}/report.html"))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&page.stdout);
    assert_eq!(
        dom.matches("<svg").count(),
        6,
        "{}",
        String::from_utf8_lossy(&page.stderr)
    );
    assert!(dom.contains("</polyline>"), "curves are drawn");
}

#[test]
fn force_replaces_runs_and_nothing_else() {
    let folder = Folder::new();
    let precious = folder.path("precious");
    std::fs::create_dir(&precious).unwrap();
    std::fs::write(format!("{precious}/thesis.txt"), "years").unwrap();
    for out in [&precious, &folder.text("file", b"x")] {
        let output = altbi(&["fit", "--max-iter", "2", "--out", out, "--force"]);
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("not a run folder"), "{text}");
    }
    assert!(Path::new(&precious).join("thesis.txt").exists());
    // A run does not replace its own input.
    let data = folder.npy("x.npy", &matrix(9, 7, 0.3));
    let run = folder.path("run");
    stdout(&altbi(&[
        "fit", &data, "--rank", "2", "--quiet", "--out", &run,
    ]));
    let (w, before) = (format!("{run}/W.npy"), results(&run));
    let output = altbi(&[
        "fit", &data, "--rank", "2", "--init-w", &w, "--out", &run, "--force",
    ]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("would write"), "{text}");
    assert_eq!(results(&run), before);

    let below = folder.text("other", b"x") + "/run";
    let output = altbi(&["fit", "--out", &below]);
    assert_eq!(output.status.code(), Some(2));
}

/// Small disks, if this machine lets us have some: too small for the results, and
/// large enough for them but not for the report.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_nothing_behind_or_everything_that_counts() {
    let folder = Folder::new();
    for (size, code) in [("40k", 2), ("100k", 1)] {
        let disk = folder.path(size);
        std::fs::create_dir(&disk).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", &disk])
            .output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: a small disk cannot be mounted here");
            return;
        }
        let out = format!("{disk}/run");
        let output = altbi(&["fit", "--max-iter", "3", "--quiet", "--out", &out]);
        let left = std::fs::read_dir(&disk).unwrap().count();
        let kept = ["W.npy", "H.npy", "lambda.npy", "summary.json"]
            .iter()
            .all(|name| Path::new(&out).join(name).exists());
        let unmounted = Command::new("umount").arg(&disk).status();
        assert!(unmounted.unwrap().success());
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains("cannot write"), "{text}");
        assert_eq!((left, kept), if code == 2 { (0, false) } else { (1, true) });
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_and_closed_outputs_are_not_panics() {
    for (command, code) in [
        ("fit --max-iter 3 --json > /dev/full", 2),
        ("fit --max-iter 3 > /dev/full", 2),
        ("fit none.npy --rank 2 2> /dev/full", 2),
        ("fit --max-iter 3 --quiet 2> /dev/full", 0),
    ] {
        let line = format!("{} {command}", env!("CARGO_BIN_EXE_altbi"));
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{command}: {output:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_hang_up_does_not_end_a_run_under_nohup() {
    let folder = Folder::new();
    let out = folder.path("run");
    let mut child = Command::new("nohup")
        .arg(env!("CARGO_BIN_EXE_altbi"))
        .args([
            "fit",
            "--tol",
            "0",
            "--max-iter",
            "300",
            "--checkpoint-every",
            "1",
        ])
        .args(["--quiet", "--out", &out])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !Path::new(&out).join("checkpoint").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let signal = Command::new("kill")
        .args(["-HUP", &child.id().to_string()])
        .status();
    assert!(signal.unwrap().success());
    assert!(child.wait().unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_not_a_panic() {
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!(
            "{} gradcheck --json | head -c 100",
            env!("CARGO_BIN_EXE_altbi")
        ))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn completions_and_manual() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&altbi(&["completions", shell]));
        assert!(script.contains("lambda-step"), "{shell}");
    }
    let manual = stdout(&altbi(&["man"]));
    assert!(
        manual.contains(".TH") && manual.contains("lambda\\-step"),
        "{manual}"
    );
}

#[test]
fn gradcheck_prints_the_matrix_and_finds_the_planted_mistakes() {
    let text = stdout(&altbi(&["gradcheck"]));
    assert!(text.contains("1120 cases, 0 inconsistent"), "{text}");
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
            "--force",
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
    for orphan in [["--out", &out], ["--rank", "3"], ["--mode", "forward"]] {
        let output = altbi(&["gradcheck", orphan[0], orphan[1]]);
        assert_eq!(output.status.code(), Some(2), "{orphan:?}");
    }
    let some = stdout(&altbi(&["gradcheck", "--penalty", "hoyer", "--bunch", "4"]));
    assert!(some.contains("35 cases, 0 inconsistent"), "{some}");
    let csv = altbi(&[
        "gradcheck",
        &x,
        "--rank",
        "2",
        "--out",
        &folder.path("g.csv"),
    ]);
    assert_eq!(csv.status.code(), Some(2));
    let huge = altbi(&["gradcheck", &x, "--rank", "99999999999"]);
    assert_eq!(huge.status.code(), Some(2));
}

#[test]
fn help_and_version() {
    let help = stdout(&altbi(&["fit", "--help"]));
    assert!(help.contains("Examples:"), "{help}");
    let version = stdout(&altbi(&["--version"]));
    assert!(version.contains(env!("CARGO_PKG_VERSION")) && version.contains("Burn"));
}

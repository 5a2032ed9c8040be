//! Nothing misread, nothing lost, no answer made worse.

mod common;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use altbi::check::{MODES, check_bunch};
use altbi::criterion::Unseen;
use altbi::data::{Noise, Source, TableOptions, benchmark_a, benchmark_b, read_matrix};
use altbi::device::Device;
use altbi::lambda::LambdaStep;
use altbi::penalty::Penalty;
use altbi::practical::Practical;
use altbi::tuner::{ContestSettings, RIVALS, Rival, Task, TaskSettings, contest};
use altbi::{
    AltBiConfig, Beta, Bunch, Criterion, Divergence, Error, GivenFactors, L1, Method, PenaltyTerm,
    Scope, Selection, Side, Smooth, Split, SquaredL2, Training, Verdict, check,
};
use burn::tensor::Tensor;
use common::command::{Folder, altbi, complaint, stdout};
use common::mat::{element, mat_file, mat_matrix};
use common::{matrix, problem};
use ndarray::{Array2, array};
use serde_json::Value;

// ---------------------------------------------------------------- tables

#[test]
fn the_command_says_how_it_read_a_table() {
    let folder = Folder::new();
    let rows = |first: &str| {
        let body: String = (0..6)
            .map(|i| format!("{}{i},{},{},{}\n", first, i + 1, 2 * i + 3, (i * i) % 5 + 1))
            .collect();
        body
    };
    let cases = [
        ("index", format!(",0,1,2\n{}", rows("g")), true, true, ""),
        (
            "years",
            format!("country,2001,2002,2003\n{}", rows("g")),
            true,
            true,
            "--header no",
        ),
        (
            "ids",
            format!("id,a,b,c\n{}", rows("")),
            true,
            false,
            "--labels yes",
        ),
        ("bare", rows(""), false, false, ""),
    ];
    for (name, text, header, labels, note) in cases {
        let file = folder.text(&format!("{name}.csv"), text.as_bytes());
        let out = folder.path(&format!("run-{name}"));
        let output = altbi(&[
            "fit",
            &file,
            "--rank",
            "2",
            "--max-iter",
            "3",
            "--json",
            "--out",
            &out,
        ]);
        let (_, said) = complaint(&output);
        assert_eq!(said.contains("note:"), !note.is_empty(), "{name}: {said}");
        assert!(said.contains(note), "{name}: {said}");
        let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let columns = if labels { 3 } else { 4 };
        assert_eq!(json["shape"], serde_json::json!([6, columns]), "{name}");
        assert_eq!(json["table"]["header"], header, "{name}");
        assert_eq!(json["table"]["labels"], labels, "{name}");
        let word = |yes| if yes { "yes" } else { "no" };
        let config = std::fs::read_to_string(format!("{out}/config.toml")).unwrap();
        assert!(
            config.contains(&format!("header = \"{}\"", word(header))),
            "{config}"
        );
        assert!(config.contains("separator = \"comma\""), "{config}");
        let page = std::fs::read_to_string(format!("{out}/report.html")).unwrap();
        assert!(page.contains(&format!(
            "header: {}, labels: {}",
            word(header),
            word(labels)
        )));
        // Told what it guessed, it is silent; and quiet is quiet.
        let again = altbi(&["fit", "--config", &format!("{out}/config.toml"), "--json"]);
        assert_eq!(complaint(&again).1, "", "{name}");
        let quiet = altbi(&["fit", &file, "--rank", "2", "--max-iter", "3", "--quiet"]);
        assert_eq!(complaint(&quiet), (Some(0), String::new()), "{name}");
        let words = stdout(&altbi(&["fit", &file, "--rank", "2", "--max-iter", "3"]));
        let line = format!(
            "read as         header: {}, labels: {}",
            word(header),
            word(labels)
        );
        assert!(words.contains(&line), "{words}");
    }
}

#[test]
fn tables_from_everywhere_give_the_same_factors() {
    let folder = Folder::new();
    let x = matrix(7, 5, 0.4);
    let text = |separator: &str, decimal: &str| {
        let lines = x.rows().into_iter().map(|row| {
            let fields: Vec<String> = row
                .iter()
                .map(|x| x.to_string().replace('.', decimal))
                .collect();
            fields.join(separator) + "\r\n"
        });
        lines.collect::<String>()
    };
    let utf16: Vec<u8> = format!("\u{feff}{}", text("\t", "."))
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let files = [
        folder.npy("x.npy", &x),
        folder.text("comma.csv", text(",", ".").as_bytes()),
        folder.text("semicolon.csv", text(";", ",").as_bytes()),
        folder.text("tab.csv", text("\t", ",").as_bytes()),
        folder.text("x.tsv", text("\t", ".").as_bytes()),
        folder.text("utf16.csv", &utf16),
    ];
    let fits = files.map(|file| {
        let output = altbi(&["fit", &file, "--rank", "2", "--max-iter", "5", "--json"]);
        let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
        (
            json["data_hash"].to_string(),
            json["divergence"].to_string(),
        )
    });
    assert!(fits.iter().all(|fit| *fit == fits[0]), "{fits:?}");
    // Another way to read it is another table: refused where it makes no sense.
    let wrong = altbi(&[
        "fit",
        &folder.path("semicolon.csv"),
        "--rank",
        "2",
        "--separator",
        "comma",
    ]);
    assert_eq!(complaint(&wrong).0, Some(2));
    let latin = folder.text("latin.csv", b"caf\xe9,1,2\nth\xe9,3,4\n");
    let (code, said) = complaint(&altbi(&["fit", &latin, "--rank", "1"]));
    assert!(
        code == Some(2) && said.contains("line 1 is not utf-8 text; use --encoding"),
        "{said}"
    );
    stdout(&altbi(&[
        "fit",
        &latin,
        "--rank",
        "1",
        "--encoding",
        "latin-1",
        "--max-iter",
        "2",
    ]));
}

#[test]
fn half_precision_is_read() {
    let folder = Folder::new();
    let halves = [0x3c00u16, 0x4000, 0x4200, 0x4400, 0x3800, 0x4500];
    let header = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }";
    let mut bytes = b"\x93NUMPY\x01\x00v\x00".to_vec();
    bytes.extend(format!("{header:<117}\n").as_bytes());
    bytes.extend(halves.iter().flat_map(|half| half.to_le_bytes()));
    let file = folder.text("half.npy", &bytes);
    let got = read_matrix(Path::new(&file)).unwrap();
    assert_eq!(got, array![[1.0, 2.0, 3.0], [4.0, 0.5, 5.0]]);
}

// ---------------------------------------------------------------- files

#[test]
fn no_command_writes_onto_what_it_reads_or_what_is_there() {
    let folder = Folder::new();
    let x = matrix(8, 6, 0.2);
    let file = folder.npy("x.npy", &x);
    for force in [&[][..], &["--force"]] {
        let call = [&["gradcheck", &file, "--rank", "2", "--out", &file], force].concat();
        let (code, said) = complaint(&altbi(&call));
        assert!(
            code == Some(2) && said.contains("this command reads"),
            "{said}"
        );
        assert_eq!(read_matrix(Path::new(&file)).unwrap(), x);
    }
    let other = folder.text("other.npy", b"precious");
    let call = ["gradcheck", &file, "--rank", "2", "--out", &other];
    let (code, said) = complaint(&altbi(&call));
    assert!(code == Some(2) && said.contains("exists already"), "{said}");
    assert_eq!(std::fs::read(&other).unwrap(), b"precious");
    stdout(&altbi(&[&call[..], &["--force"]].concat()));
    assert_eq!(read_matrix(Path::new(&other)).unwrap().dim(), (8, 1));
    // Nor does a comparison, into whose folder its data was put.
    let out = folder.path("compare");
    std::fs::create_dir(&out).unwrap();
    let inside = folder.npy("compare/compare.npy", &x);
    let call = [
        "compare", &inside, "--rank", "2", "--runs", "1", "--out", &out,
    ];
    let (code, said) = complaint(&altbi(&call));
    assert!(
        code == Some(2) && said.contains("this command reads"),
        "{said}"
    );
}

#[test]
fn force_deletes_no_foreign_file_wherever_it_lies() {
    let folder = Folder::new();
    let run = folder.path("run");
    let call = [
        "fit",
        "--max-iter",
        "2",
        "--quiet",
        "--penalize",
        "both",
        "--penalty",
        "smooth+l1",
        "--out",
        &run,
    ];
    stdout(&altbi(&call));
    // Its own files it may replace, those of H's penalties among them.
    let force = [&call[..], &["--force"]].concat();
    stdout(&altbi(&force));
    for stranger in [
        "figures/thesis.svg",
        "figures/deep/notes.txt",
        "lambda_mine.npy",
    ] {
        let path = format!("{run}/{stranger}");
        std::fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        std::fs::write(&path, "years").unwrap();
        let (code, said) = complaint(&altbi(&force));
        assert!(
            code == Some(2) && said.contains("not a run folder"),
            "{said}"
        );
        assert_eq!(std::fs::read(&path).unwrap(), b"years");
        std::fs::remove_file(&path).unwrap();
        let _ = std::fs::remove_dir(format!("{run}/figures/deep"));
    }
    stdout(&altbi(&force));
}

/// A run that waits for its data has its folder already.
#[test]
fn a_folder_is_taken_from_the_first_moment() {
    let folder = Folder::new();
    let run = folder.path("above/run");
    let call = [
        "fit",
        "-",
        "--rank",
        "2",
        "--max-iter",
        "3",
        "--quiet",
        "--out",
        &run,
    ];
    let start = || {
        let mut child = Command::new(env!("CARGO_BIN_EXE_altbi"))
            .args(call)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !Path::new(&run).join(".altbi-reserved").exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "never reserved");
            assert!(child.try_wait().unwrap().is_none(), "ended by itself");
            std::thread::sleep(Duration::from_millis(5));
        }
        // The file is created first and locked then; in between, another run could take it.
        std::thread::sleep(Duration::from_millis(200));
        child
    };
    let mut first = start();
    for force in [&[][..], &["--force"]] {
        let second = [&["fit", "--max-iter", "2", "--quiet", "--out", &run], force].concat();
        let (code, said) = complaint(&altbi(&second));
        assert!(code == Some(2) && said.contains("another run"), "{said}");
    }
    let mut input = first.stdin.take().unwrap();
    input.write_all(b"1,2,3\n4,5,6\n7,8,1\n").unwrap();
    drop(input);
    assert!(first.wait().unwrap().success());
    assert!(Path::new(&run).join("W.npy").exists());
    // The next run takes the folder that a killed run had reserved.
    std::fs::remove_dir_all(&run).unwrap();
    let mut killed = start();
    killed.kill().unwrap();
    killed.wait().unwrap();
    stdout(&altbi(&[
        "fit",
        "--max-iter",
        "2",
        "--quiet",
        "--out",
        &run,
    ]));
    // Bad input leaves nothing, not even the folders above.
    let bad = folder.text("bad.csv", b"1,x\n");
    let deep = folder.path("a/b/c");
    let before = folder.entries();
    let (code, _) = complaint(&altbi(&["fit", &bad, "--rank", "1", "--out", &deep]));
    assert_eq!(code, Some(2));
    assert_eq!(folder.entries(), before);
}

#[test]
fn a_comparison_has_one_writer() {
    let folder = Folder::new();
    let out = folder.path("compare");
    let call = [
        "compare",
        "--benchmark",
        "b",
        "--size",
        "small",
        "--runs",
        "1",
        "--rivals",
        "plain",
        "--out",
        &out,
    ];
    stdout(&altbi(&[&call[..], &["--quiet"]].concat()));
    let lock = std::fs::File::options()
        .append(true)
        .open(format!("{out}/compare.lock"))
        .unwrap();
    lock.lock().unwrap();
    let (code, said) = complaint(&altbi(&call));
    assert!(code == Some(2) && said.contains("another run"), "{said}");
    lock.unlock().unwrap();
    stdout(&altbi(&[&call[..], &["--quiet"]].concat()));
}

// ---------------------------------------------------------------- answers

fn structure() -> Vec<(Side, PenaltyTerm)> {
    vec![
        (Side::W, PenaltyTerm::tuned(Smooth)),
        (Side::H, PenaltyTerm::tuned(L1)),
    ]
}

/// D on all entries is never higher after a refit than before, whoever chose λ: on signals,
/// on noise without any structure, and where ½w² under KL is stiff.
#[test]
fn no_refit_raises_the_error_on_the_entries_it_is_given() {
    let stiff = vec![
        (Side::W, PenaltyTerm::tuned(SquaredL2)),
        (Side::H, PenaltyTerm::tuned(L1)),
    ];
    let mut refits = 0;
    for seed in 0..3 {
        let noisy = Noise::Poisson(3.0).on(&benchmark_b(40, 16, 3, seed), seed);
        let counts = Noise::Poisson(3.0).on(&benchmark_a(40, 16, 3, seed), seed);
        for (x, beta, terms) in [
            (&noisy.x, 1.0, structure()),
            (&counts.x, 2.0, stiff.clone()),
            (&matrix(20, 10, seed as f64), 1.0, structure()),
        ] {
            let settings = TaskSettings {
                rank: 2,
                divergence: Arc::new(Beta(beta)),
                terms,
                outer: Unseen::Entries(0.1).into(),
            };
            let task = Task::of_data(problem(x), 0.0, settings, seed).unwrap();
            let all = contest(
                &[task],
                &RIVALS.each_ref().map(|rival| rival as &dyn Rival),
                ContestSettings {
                    budget: Some(400.0),
                    ..ContestSettings::default()
                },
            );
            for standing in all.unwrap().standings {
                let (before, after) = standing.divergence;
                assert!(after <= before, "{}: {before} to {after}", standing.rival);
                assert!(before.is_finite());
                refits += 1;
            }
        }
    }
    assert_eq!(refits, 9 * RIVALS.len());
}

/// The case that gave it away: uniform noise, where a refit led to 3.5 times the error of a
/// constant.
#[test]
fn a_refit_on_noise_is_no_worse_than_a_constant() {
    for seed in 0..4 {
        let x = matrix(20, 10, 0.1 + seed as f64);
        let practical = Practical::new(2, Beta::KL, [(Side::W, PenaltyTerm::tuned(L1))]);
        let result = practical.run(&problem(&x), seed).unwrap();
        assert!(result.outcome.divergence <= result.divergence_before_refit);
        assert!(
            result.outcome.relative_error < 1.0,
            "{}",
            result.outcome.relative_error
        );
    }
}

#[test]
fn the_start_is_an_iterate_like_any_other() {
    // From the true factors every update with a strong penalty leads away.
    let truth = benchmark_a(30, 12, 3, 1);
    let given = GivenFactors {
        w: Some(truth.w.clone()),
        h: Some(truth.h.clone()),
    };
    let config = AltBiConfig::new(3)
        .with_method(Method::PenalizedMu)
        .with_lambda(5.0)
        .with_max_iterations(20);
    let outer_error = |select| {
        let mut solver = config.clone().with_select(select).solver(Beta::KL, L1);
        let outcome = solver.run(&problem(&truth.x)).map(|_| ());
        outcome.unwrap();
        let mut solver = config.clone().with_select(select).solver(Beta::KL, L1);
        solver = solver.with_factors(given.clone());
        let outcome = solver.run(&problem(&truth.x)).unwrap();
        (outcome.selected, outcome.outer_error, outcome.w)
    };
    let (selected, best, w) = outer_error(Selection::Best);
    let (_, last, _) = outer_error(Selection::Last);
    assert_eq!(selected, 0);
    assert!(best < 1e-9 && last > 0.1, "{best} {last}");
    assert_eq!(w, truth.w);
}

// ---------------------------------------------------------------- hostile input

#[test]
fn only_what_is_asked_for_is_expanded() {
    let folder = Folder::new();
    let numbers = array![[1.0, 2.5, 3.0], [4.0, 5.0, 6.25]];
    // A compressed matrix whose entries cannot be decompressed, beside one that can.
    let mut encoder = libflate::zlib::Encoder::new(Vec::new()).unwrap();
    encoder
        .write_all(&mat_matrix("Zeros", &Array2::zeros((300, 300)), 6))
        .unwrap();
    let mut contents = encoder.finish().into_result().unwrap();
    let half = contents.len() / 2;
    contents[half..].fill(0xff);
    let mut torn = 15u32.to_le_bytes().to_vec();
    torn.extend((contents.len() as u32).to_le_bytes());
    torn.extend(&contents);
    let x = mat_matrix("X", &numbers, 6);
    let path = folder.text("two.mat", &mat_file(&[torn, x]));
    let read = |name: &str| {
        let source = format!("{path}:{name}");
        Source::from(source.as_str()).read(TableOptions::default())
    };
    assert_eq!(read("X").unwrap().values, numbers);
    assert!(matches!(read("Zeros"), Err(Error::Mat { .. })));
    // A sparse matrix is called so.
    let sparse = mat_matrix("S", &numbers, 5);
    let path = folder.text("sparse.mat", &mat_file(&[sparse]));
    for name in [path.clone(), format!("{path}:S")] {
        let found = Source::from(name.as_str()).read(TableOptions::default());
        let said = found.unwrap_err().to_string();
        assert!(said.contains("sparse"), "{said}");
    }
    // A name without end.
    let flags = [6u32.to_le_bytes(), 0u32.to_le_bytes()].concat();
    let dimensions: Vec<u8> = [1i32, 2].iter().flat_map(|d| d.to_le_bytes()).collect();
    let parts = [
        element(6, &flags),
        element(5, &dimensions),
        element(1, &[b'x'; 1 << 14]),
    ];
    let path = folder.text("name.mat", &mat_file(&[element(14, &parts.concat())]));
    let found = Source::from(path.as_str()).read(TableOptions::default());
    assert!(matches!(found, Err(Error::Mat { .. })));
}

#[test]
fn what_cannot_be_is_refused_before_memory_is_taken_for_it() {
    let folder = Folder::new();
    let file = folder.npy("x.npy", &matrix(30, 12, 0.3));
    for call in [
        vec!["fit", &file, "--rank", "100000"],
        vec!["bias", &file, "--rank", "100000"],
        vec!["compare", &file, "--rank", "100000", "--runs", "1"],
        vec!["fit", &file, "--rank", "100000", "--preset", "practical"],
        vec!["fit", &file, "--rank", "10000000000000"],
    ] {
        let (code, said) = complaint(&altbi(&call));
        assert!(code == Some(2) && said.contains("min(n, m) = 12"), "{said}");
    }
    let (code, said) = complaint(&altbi(&[
        "compare",
        &file,
        "--rank",
        "2",
        "--runs",
        "1000000000",
    ]));
    assert!(
        code == Some(2) && said.contains("between 1 and 1000"),
        "{said}"
    );
    // A long bunch is compared with the tape over its first updates only.
    let long = [
        "fit",
        &file,
        "--rank",
        "2",
        "--bunch",
        "100000",
        "--max-iter",
        "1",
    ];
    let text = stdout(&altbi(&long));
    assert!(text.contains("fused (within"), "{text}");
}

// ---------------------------------------------------------------- words

#[test]
fn words_that_say_what_is_meant() {
    let folder = Folder::new();
    let file = folder.npy("x.npy", &matrix(9, 7, 0.3));
    let constant = folder.npy("constant.npy", &Array2::from_elem((6, 5), 2.0));
    let there = folder.path("there");
    std::fs::create_dir(&there).unwrap();
    let refused: [(&[&str], &str, &str); 5] = [
        (
            &["bias", &file, "--rank", "2", "--out", &there],
            "choose another folder",
            "--force",
        ),
        (
            &["generate", "a", "--out", &there],
            "choose another folder",
            "--force",
        ),
        (
            &["fit", &file, "--rank", "2", "--warm-up", "1000000000000"],
            "warm-up",
            "T must",
        ),
        (
            &["fit", &file, "--rank", "2", "--lambda", "1e300"],
            "not 1e300",
            "0000000000",
        ),
        (
            &["fit", &file, "--mask", "-", "-"],
            "unexpected",
            "panicked",
        ),
    ];
    for (call, says, says_not) in refused {
        let (code, said) = complaint(&altbi(call));
        assert!(
            code == Some(2) && said.contains(says) && !said.contains(says_not),
            "{said}"
        );
    }
    let both = altbi(&["fit", "-", "--mask", "-", "--rank", "2"]);
    assert!(complaint(&both).1.contains("read only once"));
    let text = stdout(&altbi(&[
        "fit",
        &constant,
        "--rank",
        "1",
        "--max-iter",
        "2",
    ]));
    assert!(
        text.contains("X is constant") && !text.contains("NaN"),
        "{text}"
    );
    let nndsvd = altbi(&[
        "fit",
        &file,
        "--rank",
        "2",
        "--max-iter",
        "2",
        "--init",
        "nndsvd",
    ]);
    assert!(complaint(&nndsvd).1.contains("--init nndsvda"));
    // A last iterate that is much worse than an earlier one.
    let w = folder.npy("w.npy", &benchmark_a(30, 12, 3, 1).w);
    let h = folder.npy("h.npy", &benchmark_a(30, 12, 3, 1).h);
    let x = folder.npy("true.npy", &benchmark_a(30, 12, 3, 1).x);
    let call = [
        "fit",
        &x,
        "--init-w",
        &w,
        "--init-h",
        &h,
        "--method",
        "p-mu",
        "--lambda",
        "5",
        "--max-iter",
        "9",
    ];
    let (code, said) = complaint(&altbi(&call));
    assert!(code == Some(0) && said.contains("--select best"), "{said}");
    let best = altbi(&[&call[..], &["--select", "best"]].concat());
    assert_eq!(complaint(&best).1, "");
    // Help is for people, not for rustdoc.
    for command in [
        "fit",
        "resume",
        "gradcheck",
        "bias",
        "compare",
        "generate",
        "reproduce",
        "report",
    ] {
        let help = stdout(&altbi(&[command, "--help"]));
        assert!(!help.contains("[`") && !help.contains("`]"), "{help}");
    }
}

#[test]
fn a_bias_report_is_made_again() {
    let folder = Folder::new();
    let file = folder.npy("x.npy", &matrix(9, 7, 0.3));
    let out = folder.path("bias");
    stdout(&altbi(&["bias", &file, "--rank", "2", "--out", &out]));
    let page = || std::fs::read_to_string(format!("{out}/report.html")).unwrap();
    let before = page();
    std::fs::remove_file(format!("{out}/report.html")).unwrap();
    std::fs::remove_dir_all(format!("{out}/figures")).unwrap();
    stdout(&altbi(&["report", &out]));
    assert_eq!(page(), before);
    assert!(Path::new(&out).join("figures/relative_error.svg").exists());
    std::fs::write(format!("{out}/bias.json"), "{}").unwrap();
    let (code, said) = complaint(&altbi(&["report", &out]));
    assert!(code == Some(2) && said.contains("bias.json"), "{said}");
}

#[test]
fn a_mask_comes_through_a_pipe() {
    let folder = Folder::new();
    let file = folder.npy("x.npy", &matrix(4, 3, 0.3));
    let out = folder.path("run");
    let fit = |mask: &str, input: &[u8], more: &[&str]| {
        let base = ["fit", &file, "--rank", "1", "--max-iter", "3", "--json"];
        let mut child = Command::new(env!("CARGO_BIN_EXE_altbi"))
            .args([&base[..], &["--mask", mask], more].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
        (json["data_hash"].clone(), json["divergence"].clone())
    };
    let mask = b"1,1,0\n1,1,1\n0,1,1\n1,1,1\n";
    let path = folder.text("mask.csv", mask);
    let piped = fit("-", mask, &["--out", &out]);
    assert_eq!(piped, fit(&path, b"", &[]));
    // A copy is kept, so that the run can be repeated.
    let config = folder.path("run/config.toml");
    let again = altbi(&["fit", "--config", &config, "--json"]);
    let again: Value = serde_json::from_str(&stdout(&again)).unwrap();
    assert_eq!(piped.0, again["data_hash"]);
}

/// A path that goes into a folder which does not exist and out again is the same place
/// before and after the folder is made.
#[test]
fn a_weight_is_not_negative_and_not_unknown() {
    let folder = Folder::new();
    let data = folder.text("x.csv", b"1,2,3\n4,5,6\n7,8,1\n");
    for (weight, said) in [("-1", "nonnegative"), ("nan", "finite"), ("inf", "finite")] {
        let mask = format!("1,1,0.5\n1,{weight},1\n1,1,1\n");
        let mask = folder.text(&format!("{weight}.csv"), mask.as_bytes());
        let output = altbi(&["fit", &data, "--rank", "2", "--mask", &mask]);
        let (code, found) = complaint(&output);
        assert_eq!(code, Some(2), "{found}");
        assert!(
            found.contains("the mask") && found.contains(said),
            "{found}"
        );
        assert!(found.contains("row 1, column 1"), "{found}");
    }
}

#[test]
fn a_bunch_for_held_out_entries_needs_some() {
    let problem = problem(&matrix(6, 5, 1.0));
    let rule = || altbi::update::Rule::new(Arc::new(Beta::KL), Vec::new());
    let criterion = Arc::new(altbi::HeldOut);
    let found = Bunch::fused(&problem, rule(), rule(), criterion, altbi::Span::Both, 2);
    assert!(matches!(found, Err(Error::Conflict { .. })), "{found:?}");
}

#[test]
fn a_way_around_is_still_onto_what_is_there() {
    let folder = Folder::new();
    let file = folder.npy("y.npy", &matrix(9, 6, 0.3));
    let before = std::fs::read(&file).unwrap();
    let around = folder.path("missing/../y.npy");
    let output = altbi(&["gradcheck", &file, "--rank", "2", "--out", &around]);
    assert_eq!(complaint(&output).0, Some(2));
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let kept = folder.path("kept");
    std::fs::create_dir(&kept).unwrap();
    let around = folder.path("missing/../kept");
    for arguments in [
        vec!["fit", &file, "--rank", "2", "--out", &around],
        vec!["bias", &file, "--rank", "2", "--out", &around],
        vec!["generate", "b", "--out", &around],
    ] {
        let output = altbi(&arguments);
        assert_eq!(complaint(&output).0, Some(2), "{arguments:?}");
    }
    assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 0);
    assert_eq!(folder.entries().len(), 2, "no folder was made on the way");
}

/// A perfect start that is left has not converged.
#[test]
fn a_start_without_error_is_not_the_unit_of_convergence() {
    let (w, h) = (matrix(8, 2, 0.4), matrix(2, 6, 0.7));
    let outcome = AltBiConfig::new(2)
        .with_lambda(10.0)
        .with_max_iterations(4)
        .solver(Beta::KL, L1)
        .with_factors(GivenFactors {
            w: Some(w.clone()),
            h: Some(h.clone()),
        })
        .fit(&w.dot(&h))
        .unwrap();
    assert_eq!(outcome.iterations, 4);
}

// ---------------------------------------------------------------- the code

#[test]
fn a_bunch_that_does_not_fit_is_an_error_of_shape() {
    let problem = problem(&matrix(5, 4, 0.2));
    let bunch = Bunch::new(&problem, Beta::KL, L1, 3).unwrap();
    let (w, h) = (Array2::<f64>::ones((5, 2)), Array2::<f64>::ones((2, 4)));
    let pair = altbi::Pair::new(&problem, &w, &h).unwrap();
    let short = problem
        .tensor("λ", &Array2::<f64>::ones((4, 1)), [4, 1])
        .unwrap();
    let found = check_bunch(&bunch, &pair, &[short], &MODES);
    assert!(
        matches!(found, Err(Error::Shape { what: "λ", .. })),
        "{found:?}"
    );
}

/// The paper's error under another name, with the built-in one's derivatives; a number that
/// is not one from some iteration on.
#[derive(Debug)]
struct Mine {
    breaks: bool,
}

impl Criterion for Mine {
    fn name(&self) -> String {
        "mine".into()
    }

    fn value(
        &self,
        divergence: &dyn Divergence,
        observed: &altbi::problem::Observed,
        y: &Tensor<2>,
    ) -> Tensor<2> {
        let value = Training.value(divergence, observed, y);
        if self.breaks { value * f64::NAN } else { value }
    }

    fn derivative(
        &self,
        divergence: &dyn Divergence,
        observed: &altbi::problem::Observed,
        y: &Tensor<2>,
    ) -> Option<Tensor<2>> {
        Training.derivative(divergence, observed, y)
    }
}

#[test]
fn an_outer_error_that_is_not_a_number_ends_the_run() {
    for select in [Selection::Best, Selection::Last] {
        let config = AltBiConfig::new(2)
            .with_select(select)
            .with_max_iterations(5);
        let mut solver = config
            .with_lambda_step(LambdaStep::Adam(0.1))
            .solver(Beta::KL, L1)
            .with_criterion(Mine { breaks: true });
        let found = solver.run(&problem(&matrix(9, 7, 0.1)));
        let said = found.map(|_| ()).unwrap_err();
        assert!(
            matches!(
                &said,
                Error::NotFinite {
                    quantity: "the outer error",
                    ..
                }
            ),
            "{said}"
        );
    }
}

/// Weights of a hierarchical scope are held together as much as the number of entries in E
/// says: those of the fit, not the held-out ones that this criterion never looks at.
#[test]
fn a_criterion_says_which_entries_it_counts() {
    let split = problem(&matrix(14, 9, 0.7)).speckled(0.2, 0).unwrap();
    let run = |criterion: Arc<dyn Criterion>| {
        let config = AltBiConfig::new(2)
            .with_scope(Scope::Hierarchical(0.3))
            .with_lambda_step(LambdaStep::Adam(0.2))
            .with_max_iterations(8)
            .with_tolerance(0.0);
        let mut solver = config.solver(Beta::KL, L1).with_shared_criterion(criterion);
        solver.run(&split).unwrap().lambda
    };
    let (built_in, plugged) = (
        run(Arc::new(Training)),
        run(Arc::new(Mine { breaks: false })),
    );
    common::assert_close("λ", &plugged, &built_in, 1e-12);
}

/// A penalty of value and split only.
#[derive(Debug)]
struct Bare {
    wrong: bool,
}

impl Penalty for Bare {
    fn name(&self) -> String {
        "bare".into()
    }

    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        (w.clone() * w.clone()).sum_dim(1)
    }

    fn split(&self, w: &Tensor<2>) -> Split {
        let factor = if self.wrong { 3.0 } else { 2.0 };
        Split {
            positive: w.clone() * factor,
            negative: w.zeros_like(),
        }
    }
}

#[test]
fn a_penalty_without_tangents_has_a_negative_control() {
    let problem = problem(&matrix(6, 5, 0.4));
    for wrong in [false, true] {
        // (The update need not be the gradient's: its derivative is checked, not its sense.)
        let report = check(&problem, Beta::KL, Bare { wrong }).unwrap();
        assert!(report.is_consistent(), "{report}");
        let found = |wanted| {
            let controls = report.controls();
            controls.filter(|(_, verdict)| *verdict == wanted).count()
        };
        assert_eq!(
            (found(Verdict::Mismatch), found(Verdict::Pass)),
            (1, 0),
            "{report}"
        );
    }
}

/// A caller's device may record a tape: it is taken without. (To Burn the two are equal, and a
/// build without the feature `flex` has no other device.)
#[test]
fn tensors_come_back_off_the_tape_whatever_the_device_of_the_problem() {
    let plain = problem(&matrix(12, 8, 0.3));
    let tape = plain
        .tensor("W", &Array2::<f64>::ones((1, 1)), [1, 1])
        .unwrap()
        .device()
        .autodiff();
    let moved = plain.clone().on(Device::from(tape.clone()));
    let config = AltBiConfig::new(2).with_max_iterations(3);
    let outcome = config.solver(Beta::KL, L1).run(&moved).unwrap();
    for tensor in [outcome.w_tensor(), outcome.lambda_tensor()] {
        assert!(tensor.device() == tape && !tensor.is_autodiff());
    }
    let at_home = config.solver(Beta::KL, L1).run(&plain).unwrap();
    assert_eq!(outcome.w, at_home.w);
    let settings = TaskSettings {
        rank: 2,
        divergence: Arc::new(Beta::KL),
        terms: structure(),
        outer: Unseen::Entries(0.1).into(),
    };
    let task = Task::of_data(moved, 0.1, settings, 0).unwrap();
    for problem in [&task.full, &task.split] {
        let x = &problem.rows().x;
        assert!(x.device() == tape && !x.is_autodiff());
    }
}

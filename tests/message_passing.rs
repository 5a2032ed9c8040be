//! The command under mpirun: `cargo test --release --features mpi --test message_passing`.
//!
//! `tests/processes.rs` tests the computations of several processes with threads. This file tests
//! MPI itself, the files, and the end of a job.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use altbi::data::{read_matrix, write_npy};
use ndarray::Array2;
use tempfile::TempDir;

/// Jobs on few cores, as root in a container too.
fn mpirun(processes: usize, arguments: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        // Shared memory between processes that may not look into each other.
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .args(["-n", &processes.to_string(), env!("CARGO_BIN_EXE_altbi")])
        .args(arguments);
    command
}

fn alone(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_altbi"));
    command.args(arguments).output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn counts(rows: usize, columns: usize) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| {
        let wave = 3.0 * (1.0 + (0.2 * i as f64).sin()) * (1.0 + (0.4 * j as f64).cos());
        (wave + ((i * 7 + j * 5 + i * j) % 4) as f64 - 1.5)
            .max(0.0)
            .floor()
    })
}

/// A folder with counts as .npy and .mtx.
fn folder(rows: usize, columns: usize) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let x = counts(rows, columns);
    write_npy(&folder.path().join("x.npy"), &x).unwrap();
    let stored = x.indexed_iter().filter(|(_, x)| **x > 0.0);
    let lines: Vec<String> = stored
        .map(|((i, j), x)| format!("{} {} {x}", i + 1, j + 1))
        .collect();
    let text = format!(
        "%%MatrixMarket matrix coordinate integer general\n{rows} {columns} {}\n{}\n",
        lines.len(),
        lines.join("\n")
    );
    std::fs::write(folder.path().join("x.mtx"), text).unwrap();
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The largest difference of a file in two run folders, relative to the largest entry.
fn difference(a: &Path, b: &Path, file: &str) -> f64 {
    let (a, b) = (
        read_matrix(&a.join(file)).unwrap(),
        read_matrix(&b.join(file)).unwrap(),
    );
    assert_eq!(a.dim(), b.dim(), "{file}");
    let largest = b
        .iter()
        .fold(f64::MIN_POSITIVE, |most, b| most.max(b.abs()));
    a.iter()
        .zip(&b)
        .fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()))
        / largest
}

#[test]
fn any_number_of_processes_gives_the_same_run() {
    let folder = folder(90, 40);
    let at = |name: &str| -> PathBuf { folder.path().join(name) };
    let settings: [&[&str]; 4] = [
        &["x.npy", "--max-iter", "15"],
        &[
            "x.npy",
            "--method",
            "mu",
            "--divergence",
            "frobenius",
            "--max-iter",
            "15",
        ],
        &[
            "x.npy",
            "--penalty",
            "smooth",
            "--penalize",
            "both",
            "--preset",
            "practical",
            "--max-iter",
            "12",
        ],
        &["x.mtx", "--criterion", "thinned:0.2", "--max-iter", "15"],
    ];
    for (number, settings) in settings.into_iter().enumerate() {
        let data = at(settings[0]);
        let run = |processes: usize, name: &str| {
            let out = at(name);
            let mut arguments = vec![
                "fit",
                text(&data),
                "--rank",
                "3",
                "--tol",
                "0",
                "--threads",
                "1",
            ];
            arguments.extend(&settings[1..]);
            arguments.extend(["--out", text(&out)]);
            let output = match processes {
                1 => alone(&arguments),
                _ => mpirun(processes, &arguments).output().unwrap(),
            };
            assert!(output.status.success(), "{settings:?}: {}", told(&output));
            // One summary, from one process.
            assert_eq!(
                told(&output).matches("relative error").count(),
                1,
                "{}",
                told(&output)
            );
            out
        };
        let one = run(1, &format!("one-{number}"));
        let mut hash = None;
        for processes in [2, 3, 4] {
            let many = run(processes, &format!("many-{number}-{processes}"));
            for file in ["W.npy", "H.npy", "lambda.npy"] {
                let far = difference(&many, &one, file);
                assert!(
                    far <= 1e-10,
                    "{settings:?}, {processes} processes: {file} {far:e}"
                );
            }
            let summary = std::fs::read_to_string(many.join("summary.json")).unwrap();
            let line = summary
                .lines()
                .find(|line| line.contains("data_hash"))
                .unwrap();
            let of_one = std::fs::read_to_string(one.join("summary.json")).unwrap();
            assert!(of_one.contains(line), "{line}");
            hash = Some(line.to_owned());
            assert!(many.join("report.html").is_file());
        }
        assert!(hash.is_some());
        let again = run(3, &format!("again-{number}"));
        let same = |file: &str| {
            let read = |folder: &Path| std::fs::read(folder.join(file)).unwrap();
            read(&again) == read(&at(&format!("many-{number}-3")))
        };
        assert!(same("W.npy") && same("H.npy") && same("lambda.npy"));
    }
}

fn wait(mut child: Child, longest: Duration) -> Output {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > longest {
            let _ = child.kill();
            panic!("the job hangs");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.wait_with_output().unwrap()
}

fn signal(name: &str, process: u32) {
    let status = Command::new("kill")
        .args([name, &process.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// The processes that mpirun has started.
fn children(of: u32) -> Vec<u32> {
    let output = Command::new("ps")
        .args(["-o", "pid=", "--ppid", &of.to_string()])
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    text.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

fn long_run(folder: &TempDir, processes: usize, out: &Path) -> Child {
    let data = folder.path().join("x.npy");
    let arguments = [
        "fit",
        text(&data),
        "--rank",
        "4",
        "--tol",
        "0",
        "--max-iter",
        "2000000",
        "--threads",
        "1",
        "--checkpoint-every",
        "50",
        "--out",
        text(out),
    ];
    let mut command = mpirun(processes, &arguments);
    // Time to write a checkpoint after Ctrl-C.
    command.env("OMPI_MCA_odls_base_sigkill_timeout", "10");
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It is at work when there is a checkpoint.
    let start = Instant::now();
    while !out.join("checkpoint").is_file() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "no checkpoint is written"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

#[test]
fn a_killed_process_ends_the_job() {
    let folder = folder(80, 30);
    let out = folder.path().join("run");
    let child = long_run(&folder, 4, &out);
    let processes = children(child.id());
    assert_eq!(processes.len(), 4, "{processes:?}");
    signal("-KILL", processes[2]);
    let output = wait(child, Duration::from_secs(60));
    assert!(!output.status.success());
    assert!(
        told(&output).contains("exited on signal 9"),
        "{}",
        told(&output)
    );
}

#[test]
fn an_interrupted_job_goes_on_with_another_number_of_processes() {
    let folder = folder(80, 30);
    let out = folder.path().join("run");
    let child = long_run(&folder, 3, &out);
    signal("-INT", child.id());
    let output = wait(child, Duration::from_secs(60));
    assert!(!output.status.success());
    assert!(told(&output).contains("go on with"), "{}", told(&output));
    // It would go on for long; the next interruption shows that it does.
    let mut resumed = mpirun(2, &["resume", text(&out)]);
    resumed.env("OMPI_MCA_odls_base_sigkill_timeout", "10");
    let child = resumed
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(3));
    signal("-INT", child.id());
    let again = wait(child, Duration::from_secs(60));
    let iterations = |output: &Output| -> usize {
        let text = told(output);
        let (_, rest) = text.split_once("interrupted after ").expect(&text);
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    assert!(iterations(&again) > iterations(&output));
}

#[test]
fn mistakes_are_told_once_and_nothing_is_written() {
    let folder = folder(40, 20);
    let (data, out) = (folder.path().join("x.npy"), folder.path().join("run"));
    let mut wrong = counts(40, 20);
    wrong[[33, 2]] = -1.0;
    let bad = folder.path().join("bad.npy");
    write_npy(&bad, &wrong).unwrap();
    let cases: [(&[&str], &str); 5] = [
        (
            &["compare", text(&data), "--rank", "2"],
            "altbi compare cannot be split",
        ),
        (
            &["fit", text(&bad), "--rank", "2", "--out", text(&out)],
            "row 33, column 2",
        ),
        (
            &[
                "fit",
                text(&data),
                "--rank",
                "2",
                "--init",
                "nndsvd",
                "--out",
                text(&out),
            ],
            "nndsvd",
        ),
        (
            &[
                "fit",
                text(&data),
                "--rank",
                "2",
                "--engine",
                "autodiff",
                "--out",
                text(&out),
            ],
            "autodiff",
        ),
        (
            &[
                "fit",
                text(&data),
                "--rank",
                "2",
                "--restarts",
                "3",
                "--out",
                text(&out),
            ],
            "--restarts",
        ),
    ];
    for (arguments, said) in cases {
        let child = mpirun(4, arguments);
        let child = { child }
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = wait(child, Duration::from_secs(60));
        let told = told(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert_eq!(told.matches("error: ").count(), 1, "{told}");
        assert!(told.contains(said), "{told}");
        assert!(!out.exists(), "{arguments:?}");
    }
}

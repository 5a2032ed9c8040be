//! Entries that the updates never see: tuning for them, stopping by them.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use altbi::data::{poisson, read_matrix, write_npy};
use altbi::{
    AltBiConfig, Beta, Checkpoint, CheckpointFault, Error, HeldOut, L1, LambdaStep, Method,
    Outcome, Precision, Problem, Record, Selection, Signal, State,
};
use common::matrix;
use ndarray::Array2;

fn altbi(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_altbi"))
        .args(arguments)
        .output()
        .unwrap()
}

#[track_caller]
fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn noisy() -> Problem {
    let data = poisson(80, 30, 3, 4.0, 1);
    let problem = Problem::new(&data.x, Precision::F64).unwrap();
    problem.speckled(0.15, 7).unwrap()
}

/// Twice the true rank: it will overfit.
fn config(method: Method) -> AltBiConfig {
    AltBiConfig::new(6)
        .with_method(method)
        .with_seed(3)
        .with_tolerance(0.0)
        .with_max_iterations(150)
}

#[test]
fn the_best_iterate_is_the_one_a_run_that_ends_there_gives() {
    let problem = noisy();
    for method in [Method::AltBi, Method::Mu, Method::Frozen] {
        let run = |config: AltBiConfig| config.solver(Beta::KL, L1).with_criterion(HeldOut);
        let best = run(config(method).with_select(Selection::Best))
            .run(&problem)
            .unwrap();
        let last = run(config(method)).run(&problem).unwrap();
        assert_eq!(best.iterations, 150);
        assert_eq!(last.selected, 150);
        let seconds_aside = |record: &Record| Record {
            seconds: 0.0,
            ..record.clone()
        };
        for (a, b) in best.history.iter().zip(&last.history).skip(1) {
            assert_eq!(
                seconds_aside(a),
                seconds_aside(b),
                "watching changes nothing"
            );
        }
        let lowest = last.history.iter().skip(1).map(|record| record.outer_error);
        let lowest = lowest.fold(f64::INFINITY, f64::min);
        assert_eq!(best.outer_error, lowest);
        assert_eq!(best.history[best.selected].outer_error, lowest);
        assert!(best.selected < 150, "{method:?} does not overfit here");
        let shorter = config(method).with_max_iterations(best.selected);
        let ended_there = run(shorter).run(&problem).unwrap();
        assert_eq!(best.w, ended_there.w);
        assert_eq!(best.h, ended_there.h);
        assert_eq!(best.lambda, ended_there.lambda);
        assert_eq!(best.divergence, ended_there.divergence);
        assert_eq!(best.relative_error, ended_there.relative_error);
    }
}

#[test]
fn held_out_values_do_not_reach_the_updates() {
    let problem = noisy();
    let held = problem.held_out_weights().unwrap().to_array();
    // The same mask, other values behind it.
    let mut x = problem.x().to_dense();
    for (value, weight) in x.iter_mut().zip(&held) {
        if *weight > 0.0 {
            *value += 17.0;
        }
    }
    let other = Problem::held_out(&x, problem.mask().unwrap(), &held, Precision::F64).unwrap();
    let run = |problem: &Problem| {
        let solver = config(Method::MuT).solver(Beta::KL, L1);
        solver.with_criterion(HeldOut).run(problem).unwrap()
    };
    let (a, b) = (run(&problem), run(&other));
    assert_eq!((&a.w, &a.h), (&b.w, &b.h));
    assert!(a.outer_error < b.outer_error);
}

#[test]
fn stopping_early_comes_closer_to_the_truth() {
    for seed in 1..=5 {
        // Few counts, three times the true rank: much noise to fit.
        let data = poisson(120, 40, 3, 2.0, seed);
        let means = data.w.dot(&data.h);
        let problem = Problem::new(&data.x, Precision::F64).unwrap();
        let problem = problem.speckled(0.1, seed).unwrap();
        let error = |select| {
            let config = AltBiConfig::new(9)
                .with_method(Method::Mu)
                .with_tolerance(0.0)
                .with_max_iterations(800)
                .with_seed(seed)
                .with_select(select);
            let mut solver = config.solver(Beta::KL, L1).with_criterion(HeldOut);
            let outcome = solver.run(&problem).unwrap();
            let product = outcome.w.dot(&outcome.h);
            (&product - &means)
                .mapv(|difference| difference * difference)
                .sum()
        };
        let (best, last) = (error(Selection::Best), error(Selection::Last));
        assert!(best < last, "seed {seed}: {best} against {last}");
    }
}

#[test]
fn a_checkpoint_remembers_the_best_iterate() {
    let problem = noisy();
    // Adam has something to remember as well.
    let solver = || {
        let config = config(Method::AltBi).with_select(Selection::Best);
        let config = config.with_lambda_step(LambdaStep::Adam(0.1));
        config.solver(Beta::KL, L1).with_criterion(HeldOut)
    };
    let whole = solver().run(&problem).unwrap();
    assert!(whole.selected < 120);
    let end_of = |outcome: &Outcome| {
        let last = outcome.history.last().unwrap();
        (last.divergence, last.lambda_median, last.outer_error)
    };
    // Interrupted after the best iterate has gone by.
    let bytes = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (kept, mut history, mut first) = (bytes.clone(), Vec::new(), None);
    let interrupted = solver()
        .observe(move |record: &Record, state: &State| {
            history.push(record.clone());
            let first = first.get_or_insert_with(|| state.lambda.clone());
            if record.iteration < 120 {
                return Signal::Continue;
            }
            let checkpoint = Checkpoint::new("data", "settings", state, first, &history);
            *kept.lock().unwrap() = checkpoint.encode();
            Signal::Stop
        })
        .run(&problem)
        .unwrap();
    assert_eq!(interrupted.selected, whole.selected);
    let checkpoint = Checkpoint::decode(&bytes.lock().unwrap()).unwrap();
    // A run that would go on differently does not go on.
    let mut forgetful = config(Method::AltBi).solver(Beta::KL, L1);
    let refused = forgetful.resume(&problem, &checkpoint);
    assert!(matches!(
        refused,
        Err(Error::Checkpoint(CheckpointFault::OtherSettings))
    ));
    let resumed = solver().resume(&problem, &checkpoint).unwrap();
    assert_eq!(resumed.iterations, 150);
    assert_eq!(resumed.selected, whole.selected);
    assert_eq!(end_of(&resumed), end_of(&whole));
    assert_eq!(
        (resumed.w, resumed.h, resumed.lambda),
        (whole.w, whole.h, whole.lambda)
    );
}

#[test]
fn the_command_holds_out_keeps_the_best_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let x = poisson(80, 30, 3, 4.0, 1).x;
    write_npy(Path::new(&path("x.npy")), &x).unwrap();
    let run = |out: &str, more: &[&str]| {
        let (data, out) = (path("x.npy"), path(out));
        let mut all = vec![
            "fit",
            &data,
            "--rank",
            "6",
            "--tol",
            "0",
            "--max-iter",
            "150",
        ];
        all.extend(["--criterion", "held-out:0.15", "--out", &out]);
        all.extend(more);
        altbi(&all)
    };
    let text = stdout(&run("best", &[]));
    assert!(
        text.contains("kept") && text.contains("errors          outer"),
        "{text}"
    );
    let summary = |name: &str| -> serde_json::Value {
        let text = std::fs::read_to_string(path(&format!("{name}/summary.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let best = summary("best");
    assert_eq!(best["iterations"], 150);
    let selected = best["selected_iteration"].as_u64().unwrap();
    assert!(selected < 150);
    // The mask is kept with the run: what the library would draw.
    let held = read_matrix(Path::new(&path("best/held_out.npy"))).unwrap();
    let problem = Problem::new(&x, Precision::F64)
        .unwrap()
        .speckled(0.15, 0)
        .unwrap();
    assert_eq!(held, problem.held_out_weights().unwrap().to_array());
    assert_eq!(best["held_out"]["held_out_weight"], held.sum());
    let page = std::fs::read_to_string(path("best/report.html")).unwrap();
    assert!(page.contains("Divergence and outer error"));
    assert!(page.contains(&format!("those of iteration {selected}")));
    // history.csv has both curves, under the names of the contract.
    let history = std::fs::read_to_string(path("best/history.csv")).unwrap();
    assert!(history.starts_with("iteration,divergence,objective,outer_error,"));

    stdout(&run("last", &["--select", "last"]));
    assert_eq!(summary("last")["selected_iteration"], 150);
    stdout(&run("other", &["--held-out-seed", "1"]));
    assert_ne!(
        read_matrix(Path::new(&path("other/held_out.npy"))).unwrap(),
        held
    );
    // A run's own settings repeat it.
    let config = path("best/config.toml");
    stdout(&altbi(&[
        "fit",
        "--config",
        &config,
        "--quiet",
        "--out",
        &path("again"),
    ]));
    let factor = |name: &str| read_matrix(Path::new(&path(name))).unwrap();
    assert_eq!(factor("best/W.npy"), factor("again/W.npy"));
    assert_eq!(factor("best/held_out.npy"), factor("again/held_out.npy"));
    // Without a hold-out there is no such file, and --force knows it as its own.
    let data = path("x.npy");
    let again = path("again");
    stdout(&altbi(&[
        "fit",
        &data,
        "--rank",
        "3",
        "--max-iter",
        "5",
        "--force",
        "--quiet",
        "--out",
        &again,
    ]));
    assert!(!Path::new(&path("again/held_out.npy")).exists());
}

#[test]
fn gradients_of_a_held_out_error_agree_in_all_modes() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("x.npy");
    write_npy(&data, &matrix(14, 9, 0.4)).unwrap();
    let check = |criterion: &str, penalty: &str| -> serde_json::Value {
        let text = stdout(&altbi(&[
            "gradcheck",
            data.to_str().unwrap(),
            "--rank",
            "3",
            "--criterion",
            criterion,
            "--penalty",
            penalty,
            "--json",
        ]));
        serde_json::from_str(&text).unwrap()
    };
    for penalty in ["l1", "l2", "group", "l21", "hoyer", "smooth"] {
        let held_out = check("held-out:0.2", penalty);
        assert_eq!(held_out["consistent"], true, "{penalty}");
        let training = check("train", penalty);
        assert_ne!(held_out["hypergradient"], training["hypergradient"]);
    }
}

#[test]
fn what_cannot_be_held_out_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (data, row) = (path("x.npy"), path("row.npy"));
    write_npy(Path::new(&data), &matrix(8, 6, 0.1)).unwrap();
    write_npy(Path::new(&row), &matrix(1, 6, 0.1)).unwrap();
    let out = path("run");
    for (arguments, words) in [
        (
            vec![&data[..], "--criterion", "held-out:0.6"],
            "held-out fraction must be above 0",
        ),
        (
            vec![&data[..], "--criterion", "held-out:0"],
            "held-out fraction",
        ),
        (
            vec![&data[..], "--criterion", "held-out:nan"],
            "held-out fraction",
        ),
        (
            vec![&data[..], "--criterion", "held-out"],
            "there is no criterion 'held-out'",
        ),
        (
            vec![&row[..], "--rank", "1", "--criterion", "held-out:0.2"],
            "cannot hold out 1 entries",
        ),
    ] {
        let all = [&["fit", "--rank", "2", "--out", &out][..], &arguments].concat();
        let all: Vec<&str> = if arguments.contains(&"--rank") {
            [&["fit", "--out", &out][..], &arguments].concat()
        } else {
            all
        };
        let output = altbi(&all);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{all:?}: {text}");
        assert!(text.contains(words), "{all:?}: {text}");
        assert!(!Path::new(&out).exists());
    }
    let cases = altbi(&["gradcheck", "--criterion", "held-out:0.1"]);
    assert_eq!(cases.status.code(), Some(2));
    // A criterion that asks for what the problem lacks.
    let plain = Problem::new(&Array2::<f64>::ones((4, 3)), Precision::F64).unwrap();
    let found = config(Method::AltBi)
        .solver(Beta::KL, L1)
        .with_criterion(HeldOut)
        .run(&plain);
    assert!(matches!(found, Err(Error::Conflict { .. })));
}

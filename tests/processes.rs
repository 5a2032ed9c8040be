//! A run that several processes share gives the factors, λ and history of one process. Threads
//! stand for the processes here; `tests/message_passing.sh` does the same under mpirun.

use std::sync::Arc;

use altbi::criterion::{OuterError, Unseen};
use altbi::penalty::Graph;
use altbi::practical::Practical;
use altbi::problem::Weights;
use altbi::processes::{Processes, Share, Threads};
use altbi::{
    AltBiConfig, Beta, BunchOver, Checkpoint, EngineChoice, Error, GivenFactors, Group, L1,
    LambdaStep, Matrix, Method, Mode, Normalization, Observer, Outcome, PenaltyTerm, Precision,
    Problem, Record, Result, Scope, Selection, Side, Signal, Smooth, Solver, SparseMatrix,
    SquaredL2, State, StopReason, Units, Zeros,
};
use ndarray::{Array2, Axis, Slice};

const ROWS: usize = 37;
const COLUMNS: usize = 22;
const RANK: usize = 3;

/// Counts with structure, zeros among them, none of the rows and columns empty.
fn counts() -> Array2<f64> {
    Array2::from_shape_fn((ROWS, COLUMNS), |(i, j)| {
        let wave = 4.0 * (1.0 + (0.3 * i as f64).sin()) * (1.0 + (0.5 * j as f64).cos());
        let least = f64::from(u8::from(i % COLUMNS == j));
        (wave + ((i * 7 + j * 5 + i * j) % 4) as f64 - 1.0)
            .floor()
            .max(least)
    })
}

fn sparse(x: &Array2<f64>) -> SparseMatrix {
    let entries = x.indexed_iter().filter(|(_, x)| **x > 0.0);
    let entries = entries
        .map(|((i, j), x)| (i as u32, j as u32, *x))
        .collect();
    SparseMatrix::from_triplets([x.nrows(), x.ncols()], entries).unwrap()
}

/// The rows of one process.
fn part(x: &Matrix, mask: Option<&Array2<f64>>, zeros: Zeros, processes: &Processes) -> Problem {
    let share = Share::of(processes, x.dim().0).unwrap();
    let own = Slice::from(share.rows());
    let cut = |of: &Array2<f64>| of.slice_axis(Axis(0), own).to_owned();
    let mine = match x {
        Matrix::Dense(x) => Matrix::from(cut(x)),
        Matrix::Sparse(x) => sparse(&cut(&x.to_dense())).into(),
    };
    // A process whose rows are complete brings no weights.
    let weights = mask
        .map(cut)
        .filter(|mask| mask.iter().any(|weight| *weight != 1.0));
    let weights = weights.map(Weights::from);
    Problem::of_share(mine, zeros, weights, Precision::F64, share).unwrap()
}

/// The largest difference of two matrices, relative to the largest entry.
fn difference(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    assert_eq!(a.dim(), b.dim());
    let largest = b
        .iter()
        .fold(f64::MIN_POSITIVE, |most, b| most.max(b.abs()));
    a.iter()
        .zip(b)
        .fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()))
        / largest
}

fn compare(what: &str, found: &Outcome, expected: &Outcome) {
    for (name, a, b) in [
        ("W", &found.w, &expected.w),
        ("H", &found.h, &expected.h),
        ("λ", &found.lambda, &expected.lambda),
        (
            "λ at the start",
            &found.lambda_at_start,
            &expected.lambda_at_start,
        ),
    ] {
        let far = difference(a, b);
        assert!(far <= 1e-10, "{what}: {name} differs by {far:e}");
    }
    assert_eq!(found.history.len(), expected.history.len(), "{what}");
    let numbers = |record: &Record| {
        [
            record.divergence,
            record.objective,
            record.outer_error,
            record.lambda_min,
            record.lambda_median,
            record.lambda_max,
            record.hypergradient_norm,
        ]
    };
    for (a, b) in found.history.iter().zip(&expected.history) {
        for (a, b) in numbers(a).into_iter().zip(numbers(b)) {
            let same = a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-9 * b.abs().max(1e-12);
            assert!(same, "{what}: {a} {b}");
        }
    }
    for (a, b) in [
        (found.relative_error, expected.relative_error),
        (found.paper_relative_error, expected.paper_relative_error),
        (found.sparsity_w, expected.sparsity_w),
        (found.outer_error, expected.outer_error),
    ] {
        assert!((a - b).abs() <= 1e-9 * b.abs(), "{what}: {a} {b}");
    }
}

/// Runs the same with one to four processes and compares.
fn same_on_all(what: &str, run: impl Fn(Processes) -> Result<Outcome> + Sync) {
    let alone = run(Processes::default()).unwrap();
    for size in [2, 3, 4] {
        let found = Threads::run(size, |processes| {
            let processes = processes.checked(true);
            run(processes).map(Outcome::gathered)
        });
        let mut found = found.into_iter();
        let first = found.next().unwrap().unwrap().expect("process 0 has all");
        compare(&format!("{what}, {size} processes"), &first, &alone);
        assert!(found.all(|rest| rest.unwrap().is_none()));
    }
}

fn config() -> AltBiConfig {
    let mut config = AltBiConfig::new(RANK).with_max_iterations(12).with_seed(3);
    config.tolerance = 0.0;
    config.threads = 1;
    config
}

#[test]
fn the_papers_run_and_its_baselines() {
    let x = Matrix::from(counts());
    for method in [
        Method::AltBi,
        Method::Mu,
        Method::MuT,
        Method::Frozen,
        Method::PenalizedMu,
    ] {
        for beta in [Beta::KL, Beta::FROBENIUS, Beta(0.5)] {
            same_on_all(&format!("{method} {beta:?}"), |processes| {
                let x = x.as_dense().unwrap().mapv(|x| x + 0.5);
                let problem = part(&x.into(), None, Zeros::Data, &processes);
                let mut config = config();
                config.method = method;
                config
                    .penalizing(beta, [(Side::W, PenaltyTerm::tuned(L1))])
                    .run(&problem)
            });
        }
    }
}

#[test]
fn both_factors_every_scope_and_mode() {
    let x = Matrix::from(counts());
    let mask = Array2::from_shape_fn((ROWS, COLUMNS), |(i, j)| {
        f64::from(u8::from(i > 10 || (i * 5 + j * 3) % 11 != 0))
    });
    for scope in [
        Scope::Row,
        Scope::Shared,
        Scope::Component,
        Scope::Entry,
        Scope::Hierarchical(0.5),
    ] {
        for mode in [Mode::Reverse, Mode::Adjoint, Mode::Forward] {
            let by_row = matches!(scope, Scope::Row | Scope::Entry);
            if mode == Mode::Forward && by_row {
                continue;
            }
            for (beta, masked) in [
                (Beta::KL, true),
                (Beta::FROBENIUS, false),
                (Beta(1.5), true),
            ] {
                same_on_all(&format!("{scope} {mode} {beta:?} {masked}"), |processes| {
                    let mask = masked.then_some(&mask);
                    let problem = part(&x, mask, Zeros::Data, &processes);
                    let mut config = config().with_max_iterations(4);
                    (config.scope, config.hypergradient) = (scope, mode);
                    (config.bunch_over, config.bunch) = (BunchOver::Both, 3);
                    config.lambda_step = LambdaStep::Adam(0.3);
                    config.units = Units::Relative;
                    config.normalize = Normalization::HRms;
                    config.warm_up = 5;
                    let terms = [
                        (Side::W, PenaltyTerm::tuned(Smooth)),
                        (Side::W, PenaltyTerm::tuned(SquaredL2)),
                        (Side::H, PenaltyTerm::tuned(L1)),
                    ];
                    config.penalizing(beta, terms).run(&problem)
                });
            }
        }
    }
}

#[test]
fn weights_of_rows_along_a_border() {
    let x = Matrix::from(counts());
    for mode in [Mode::Reverse, Mode::Adjoint] {
        same_on_all(&format!("smooth rows, {mode}"), |processes| {
            let problem = part(&x, None, Zeros::Data, &processes);
            let mut config = config().with_max_iterations(5);
            config.hypergradient = mode;
            // A step that looks at all weights at once.
            config.lambda_step = LambdaStep::Normalized(0.2);
            let terms = [(Side::W, PenaltyTerm::tuned(Smooth))];
            config.penalizing(Beta::KL, terms).run(&problem)
        });
    }
    same_on_all("a penalty on H alone", |processes| {
        let problem = part(&x, None, Zeros::Data, &processes);
        let edges = Graph::grid(2, COLUMNS / 2);
        let terms = [(Side::H, PenaltyTerm::tuned(edges))];
        config().penalizing(Beta::KL, terms).run(&problem)
    });
}

/// All make the same passes back, also if the rows of one are zeros and its W with them.
#[test]
fn rows_of_zeros_in_one_process() {
    let mut x = counts();
    x.slice_axis_mut(Axis(0), Slice::from(ROWS / 2..)).fill(0.0);
    let x = Matrix::from(x);
    same_on_all("rows of zeros", |processes| {
        let problem = part(&x, None, Zeros::Data, &processes);
        let mut config = config().with_max_iterations(5);
        config.engine = EngineChoice::Fused;
        (config.bunch_over, config.bunch) = (BunchOver::Both, 3);
        (config.hypergradient, config.scope) = (Mode::Reverse, Scope::Shared);
        config.lambda_step = LambdaStep::Normalized(0.2);
        let terms = [(Side::W, PenaltyTerm::tuned(SquaredL2))];
        config.penalizing(Beta::KL, terms).run(&problem)
    });
}

#[test]
fn held_out_and_thinned_entries_are_those_of_one_process() {
    let x = counts();
    for (matrix, zeros) in [
        (Matrix::from(x.clone()), Zeros::Data),
        (sparse(&x).into(), Zeros::Data),
        (sparse(&x).into(), Zeros::Missing),
    ] {
        for unseen in [Unseen::Entries(0.2), Unseen::Counts(0.2), Unseen::ByData] {
            let split = |processes: &Processes| {
                let problem = part(&matrix, None, zeros, processes);
                let outer = OuterError::from(unseen).for_data(&problem, &Beta::KL);
                (outer.split(&problem, 5).unwrap(), outer)
            };
            let (whole, _) = split(&Processes::default());
            for size in [2, 4] {
                Threads::run(size, |processes| {
                    let (own, _) = split(&processes);
                    let rows = own.share().rows();
                    let cut = |of: &Weights| {
                        of.to_array()
                            .slice_axis(Axis(0), Slice::from(rows.clone()))
                            .to_owned()
                    };
                    let held = own.held_out_weights().unwrap();
                    assert_eq!(held.to_array(), cut(whole.held_out_weights().unwrap()));
                    let dense = |problem: &Problem| problem.x().to_dense();
                    let expected = dense(&whole);
                    let expected = expected.slice_axis(Axis(0), Slice::from(rows.clone()));
                    assert_eq!(dense(&own), expected);
                    if let (Some(own), Some(whole)) = (own.mask(), whole.mask()) {
                        assert!(difference(&own.to_array(), &cut(whole)) < 1e-14);
                    }
                });
            }
            same_on_all(
                &format!("{unseen} sparse {}", matrix.as_sparse().is_some()),
                |processes| {
                    let (problem, outer) = split(&processes);
                    let mut config = config();
                    config.select = Selection::Best;
                    config
                        .penalizing(Beta::KL, [(Side::W, PenaltyTerm::tuned(L1))])
                        .with_shared_criterion(outer.criterion())
                        .run(&problem)
                },
            );
        }
    }
}

#[test]
fn practical_takes_the_same_candidate() {
    for matrix in [Matrix::from(counts()), sparse(&counts()).into()] {
        let outcome = |processes: Processes| {
            let problem = part(&matrix, None, Zeros::Data, &processes);
            let terms = [
                (Side::W, PenaltyTerm::tuned(Smooth)),
                (Side::H, PenaltyTerm::tuned(L1)),
            ];
            let mut practical = Practical::new(RANK, Beta::KL, terms);
            (practical.config.max_iterations, practical.config.threads) = (15, 1);
            practical
                .run(&problem, 1)
                .map(|result| (result.chosen, result.outcome))
        };
        let (chosen, _) = outcome(Processes::default()).unwrap();
        same_on_all("practical", |processes| {
            let (found, outcome) = outcome(processes)?;
            assert_eq!(found, chosen);
            Ok(outcome)
        });
    }
}

/// A state, what came before it, and λ at the start.
type Story = (State, Vec<Record>, Array2<f64>);

/// Keeps the state of an iteration, gathered.
struct Keeps {
    at: usize,
    kept: Arc<parking_lot::Mutex<Option<Story>>>,
    history: Vec<Record>,
    first: Option<Array2<f64>>,
}

impl Observer for Keeps {
    fn iterated(&mut self, record: &Record, state: &State) -> Signal {
        self.history.push(record.clone());
        let gathered = state.gathered();
        if record.iteration == 0 {
            self.first = gathered.as_ref().map(|state| state.lambda.clone());
        }
        if record.iteration == self.at {
            if let (Some(state), Some(first)) = (gathered, self.first.clone()) {
                *self.kept.lock() = Some((state, self.history.clone(), first));
            }
            return Signal::Stop;
        }
        Signal::Continue
    }
}

#[test]
fn a_checkpoint_of_three_processes_goes_on_with_any_number() {
    let x = Matrix::from(counts());
    let solver = |mut config: AltBiConfig| {
        config.select = Selection::Best;
        config.lambda_step = LambdaStep::Adam(0.1);
        config.penalizing(Beta::KL, [(Side::W, PenaltyTerm::tuned(Group))])
    };
    let kept = Arc::new(parking_lot::Mutex::new(None));
    Threads::run(3, |processes| {
        let problem = part(&x, None, Zeros::Data, &processes);
        let keeps = Keeps {
            at: 5,
            kept: kept.clone(),
            history: Vec::new(),
            first: None,
        };
        solver(config()).observe(keeps).run(&problem).unwrap();
    });
    let (state, history, first) = kept.lock().take().expect("process 0 kept it");
    let checkpoint = Checkpoint::new("data", "settings", &state, &first, &history);
    let unbroken = solver(config())
        .run(&part(&x, None, Zeros::Data, &Processes::default()))
        .unwrap();
    for size in [1, 2, 4] {
        let found = Threads::run(size, |processes| {
            let problem = part(&x, None, Zeros::Data, &processes);
            let outcome = solver(config()).resume(&problem, &checkpoint).unwrap();
            outcome.gathered()
        });
        compare("resumed", found[0].as_ref().unwrap(), &unbroken);
    }
}

#[test]
fn the_same_number_of_processes_gives_the_same_bits_and_any_number_of_threads() {
    let x = Matrix::from(counts());
    let run = |threads: usize| {
        let found = Threads::run(3, |processes| {
            let problem = part(&x, None, Zeros::Data, &processes);
            let mut config = config();
            config.threads = threads;
            let outcome = config.solver(Beta::KL, L1).run(&problem).unwrap();
            outcome.gathered()
        });
        let first = found.into_iter().next().flatten().unwrap();
        (first.w, first.h, first.lambda)
    };
    let expected = run(1);
    assert_eq!(run(1), expected);
    assert_eq!(run(2), expected);
}

#[test]
fn what_cannot_be_split_is_refused_by_name() {
    let x = Matrix::from(counts());
    let refused = |change: &(dyn Fn(&mut AltBiConfig) -> PenaltyTerm + Sync)| {
        let found = Threads::run(2, |processes| {
            let problem = part(&x, None, Zeros::Data, &processes);
            let mut config = config();
            let term = change(&mut config);
            let outcome = config.penalizing(Beta::KL, [(Side::W, term)]).run(&problem);
            outcome.map(drop).unwrap_err()
        });
        for error in &found {
            let other = matches!(error, Error::OtherProcess { .. });
            assert!(
                other || matches!(error, Error::NotSplit { processes: 2, .. }),
                "{error}"
            );
        }
        found[0].to_string()
    };
    let graph = refused(&|_| PenaltyTerm::tuned(Graph::grid(1, ROWS)));
    assert!(graph.contains("graph"), "{graph}");
    let start = refused(&|config| {
        config.initial = altbi::Initial::Nndsvd;
        PenaltyTerm::tuned(L1)
    });
    assert!(start.contains("nndsvd"), "{start}");
    let engine = refused(&|config| {
        config.engine = EngineChoice::Autodiff;
        PenaltyTerm::tuned(L1)
    });
    assert!(engine.contains("autodiff"), "{engine}");
    let mode = refused(&|config| {
        config.hypergradient = Mode::Implicit;
        PenaltyTerm::tuned(L1)
    });
    assert!(mode.contains("implicit"), "{mode}");
    let mode = refused(&|config| {
        config.hypergradient = Mode::Forward;
        PenaltyTerm::tuned(Smooth)
    });
    assert!(mode.contains("forward"), "{mode}");
}

/// λ of the rows of one process blows up: all of them end in the state before.
#[test]
fn a_run_that_breaks_down_on_one_process_ends_on_all() {
    #[derive(Debug)]
    struct BlowsUp(usize);
    impl altbi::lambda::StepRule for BlowsUp {
        fn step(
            &self,
            lambda: &mut Array2<f64>,
            _: &Array2<f64>,
            at: altbi::lambda::StepAt,
            _: &mut Array2<f64>,
        ) {
            if at.iteration == 3 && self.0 == 1 {
                lambda[[0, 0]] = f64::NAN;
            }
        }
        fn is_entrywise(&self) -> bool {
            true
        }
    }
    let x = Matrix::from(counts());
    let found = Threads::run(3, |processes| {
        let problem = part(&x, None, Zeros::Data, &processes);
        let step = BlowsUp(processes.rank());
        let mut solver = config().solver(Beta::KL, L1).with_lambda_step(step);
        let outcome = solver.run(&problem).unwrap();
        (outcome.stop_reason, outcome.iterations)
    });
    assert!(
        found.iter().all(|end| *end == (StopReason::NotFinite, 2)),
        "{found:?}"
    );
}

#[test]
fn a_wrong_entry_is_named_by_its_row_of_all() {
    let mut x = counts();
    x[[30, 4]] = -1.0;
    let found = Threads::run(4, |processes| {
        let share = Share::of(&processes, ROWS).unwrap();
        let own = x.slice_axis(Axis(0), Slice::from(share.rows())).to_owned();
        Problem::of_share(own.into(), Zeros::Data, None, Precision::F64, share).map(drop)
    });
    let short = Problem::of_share(
        x.clone().into(),
        Zeros::Data,
        None,
        Precision::F64,
        Share::whole(ROWS - 1),
    );
    assert!(matches!(short, Err(Error::Shape { what: "X", .. })));
    for (rank, result) in found.iter().enumerate() {
        match rank {
            3 => assert!(matches!(
                result,
                Err(Error::NegativeEntry {
                    row: 30,
                    column: 4,
                    ..
                })
            )),
            _ => assert!(matches!(result, Err(Error::OtherProcess { process: 3 }))),
        }
    }
}

#[test]
fn a_given_start_is_that_of_the_process() {
    let x = Matrix::from(counts());
    let w = Array2::from_shape_fn((ROWS, RANK), |(i, k)| 0.5 + ((i + 2 * k) % 5) as f64);
    same_on_all("given", |processes| {
        let problem = part(&x, None, Zeros::Data, &processes);
        let given = GivenFactors {
            w: Some(problem.share().cut(&w)),
            h: None,
        };
        config()
            .solver(Beta::KL, L1)
            .with_factors(given)
            .run(&problem)
    });
}

/// Bytes that an iteration brings to sums on one process, from runs of two lengths.
fn bytes_per_iteration(
    size: usize,
    m: usize,
    solver: &(dyn Fn(AltBiConfig) -> Solver + Sync),
) -> u64 {
    let bytes = |iterations: usize| {
        let found = Threads::run(size, |processes| {
            let processes = processes.checked(false);
            let x = Array2::from_shape_fn((64, m), |(i, j)| 1.0 + ((i * 3 + j * 7) % 5) as f64);
            let problem = part(&x.into(), None, Zeros::Data, &processes);
            let config = config().with_max_iterations(iterations);
            solver(config).run(&problem).unwrap();
            processes.traffic().1
        });
        assert!(found.iter().all(|bytes| *bytes == found[0]));
        found[0]
    };
    (bytes(9) - bytes(4)) / 5
}

/// Those of the formula, and a few flags and totals that do not grow with the data.
#[test]
fn bytes_are_those_of_the_formula() {
    for size in [2, 4, 8] {
        for (beta, more) in [(Beta::KL, RANK), (Beta::FROBENIUS, RANK * RANK)] {
            let solver = |mut config: AltBiConfig| {
                config.method = Method::MuT;
                config.solver(beta, L1)
            };
            let each = |m| bytes_per_iteration(size, m, &solver);
            // E and D, the penalty, three flags (W before and after the bunch, an observer's
            // wish to stop), and the ends of λ.
            let rest = 2 + 1 + 3 + 2;
            for m in [20, 50] {
                let expected = 8 * (m * RANK + more + rest) as u64;
                assert_eq!(each(m), expected, "{size} {beta:?} {m}");
            }
        }
        // A bunch over both factors: an update of H in each step, and on the way back the
        // cotangent of H through E and through every update but the first. With a penalty
        // on W alone the first updates of H do not depend on λ, and Burn's tape knows.
        for (mode, length, back) in [(Mode::Reverse, 3, 4), (Mode::Adjoint, 5, 10)] {
            let solver = |mut config: AltBiConfig| {
                (config.bunch_over, config.bunch) = (BunchOver::Both, length);
                (config.hypergradient, config.scope) = (mode, Scope::Shared);
                config.solver(Beta::KL, L1)
            };
            let each = |m| bytes_per_iteration(size, m, &solver);
            let numbers = (each(50) - each(20)) / 8 / 30;
            let expected = (length + back) * RANK;
            assert_eq!(numbers, expected as u64, "{size} {mode}");
        }
    }
}

/// Files of every order give each process its rows: C and Fortran order, coordinates and arrays,
/// symmetric ones too, and tables.
#[test]
fn each_process_reads_its_rows_of_any_file() {
    use altbi::data::{Contents, Source, TableOptions};
    let folder = tempfile::tempdir().unwrap();
    let x = Array2::from_shape_fn((9, 9), |(i, j)| ((i * j + i + j) % 7) as f64);
    let numbers = |fortran: bool| {
        let order = if fortran { "True" } else { "False" };
        let header = format!("{{'descr': '<f8', 'fortran_order': {order}, 'shape': (9, 9), }}");
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{header:<117}\n").bytes());
        let turned = if fortran { x.t().to_owned() } else { x.clone() };
        bytes.extend(turned.iter().flat_map(|x| x.to_le_bytes()));
        bytes
    };
    let market = |kind: &str, sizes: &str, lines: Vec<String>| {
        format!(
            "%%MatrixMarket matrix {kind}\n{sizes}\n{}\n",
            lines.join("\n")
        )
        .into_bytes()
    };
    let places = |below: bool| {
        let all = (0..9).flat_map(|j| (0..9).map(move |i| (i, j)));
        all.filter(move |(i, j)| !below || i >= j)
    };
    let entry = |(i, j): (usize, usize)| format!("{} {} {}", i + 1, j + 1, x[[i, j]]);
    let value = |(i, j): (usize, usize)| x[[i, j]].to_string();
    let table: Vec<String> = x
        .rows()
        .into_iter()
        .map(|row| row.iter().map(f64::to_string).collect::<Vec<_>>().join(","))
        .collect();
    let files = [
        ("c.npy", numbers(false)),
        ("f.npy", numbers(true)),
        (
            "g.mtx",
            market(
                "coordinate real general",
                "9 9 81",
                places(false).map(entry).collect(),
            ),
        ),
        (
            "s.mtx",
            market(
                "coordinate real symmetric",
                "9 9 45",
                places(true).map(entry).collect(),
            ),
        ),
        (
            "a.mtx",
            market(
                "array real general",
                "9 9",
                places(false).map(value).collect(),
            ),
        ),
        (
            "t.mtx",
            market(
                "array real symmetric",
                "9 9",
                places(true).map(value).collect(),
            ),
        ),
        ("x.csv", table.join("\n").into_bytes()),
    ];
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let source = Source::from(path.to_str().unwrap());
        for size in [1, 2, 4] {
            Threads::run(size, |processes| {
                let read = source.read_share(TableOptions::default(), &processes);
                let (contents, share) = read.unwrap();
                let found = match contents {
                    Contents::Table(table) => table.values,
                    Contents::Sparse(matrix) => matrix.to_dense(),
                };
                assert_eq!(
                    found,
                    share.cut(&x),
                    "{name}, process {} of {size}",
                    processes.rank()
                );
            });
        }
    }
}

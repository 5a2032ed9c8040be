//! `cargo bench`: bunch, H update and whole iteration, on three shapes.
//!
//! Every claim of speed elsewhere is a ratio measured in one run: see
//! `benches/peers`.

use std::sync::Arc;

use altbi::engine::FusedBunch;
use altbi::update::Rule;
use altbi::{
    AltBiConfig, Beta, Bunch, EngineChoice, Factors, L1, Method, Mode, Pair, PenaltyTerm,
    Precision, Problem, Training,
};
use divan::Bencher;
use ndarray::Array2;

/// As in the command: Burn allocates an array per operation.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// n, m, r: the demo, a hyperspectral image, something larger.
const SIZES: [(usize, usize, usize); 3] = [(1000, 50, 4), (224, 3025, 5), (5000, 500, 10)];
const BUNCH: usize = 4;

fn main() {
    divan::main();
}

struct Case {
    problem: Problem,
    factors: Factors,
    lambda: Array2<f64>,
}

fn case((n, m, rank): (usize, usize, usize)) -> Case {
    let spread = |rows, columns, step: usize| {
        Array2::from_shape_fn((rows, columns), |(i, j)| {
            0.1 + ((i * columns + j) * step % 1009) as f64 / 1009.0
        })
    };
    let x = spread(n, m, 7919);
    Case {
        problem: Problem::new(&x, Precision::F64).unwrap(),
        factors: Factors {
            w: spread(n, rank, 37),
            h: spread(rank, m, 53),
        },
        lambda: Array2::from_elem((n, 1), 0.1),
    }
}

fn rule() -> Rule {
    Rule::new(Arc::new(Beta::KL), vec![PenaltyTerm::tuned(L1)])
}

/// Value and hypergradient of a bunch, fused.
#[divan::bench(args = SIZES)]
fn bunch_fused(bencher: Bencher, (n, m, rank): (usize, usize, usize)) {
    let case = case((n, m, rank));
    let mut bunch = FusedBunch::new(&case.problem, &rule(), &Training, rank, BUNCH).unwrap();
    let mut factors = case.factors.clone();
    let mut gradient = Array2::zeros((n, 1));
    bencher.bench_local(|| {
        factors.w.assign(&case.factors.w);
        bunch.run(&mut factors, &case.lambda, &mut gradient)
    });
}

/// The same by Burn's tape.
#[divan::bench(args = SIZES)]
fn bunch_reverse(bencher: Bencher, size: (usize, usize, usize)) {
    bunch_by(bencher, size, Mode::Reverse);
}

/// The same by hand-written tangents on tensors.
#[divan::bench(args = SIZES)]
fn bunch_forward(bencher: Bencher, size: (usize, usize, usize)) {
    bunch_by(bencher, size, Mode::Forward);
}

fn bunch_by(bencher: Bencher, (n, m, rank): (usize, usize, usize), mode: Mode) {
    let case = case((n, m, rank));
    let pair = Pair::new(&case.problem, &case.factors.w, &case.factors.h).unwrap();
    let lambda = [case.problem.tensor("λ", &case.lambda, [n, 1]).unwrap()];
    let bunch = Bunch::new(&case.problem, Beta::KL, L1, BUNCH).unwrap();
    bencher.bench_local(|| bunch.hypergradient(&pair, &lambda, mode).unwrap());
}

/// One update of H, fused.
#[divan::bench(args = SIZES)]
fn update_of_h(bencher: Bencher, (n, m, rank): (usize, usize, usize)) {
    let case = case((n, m, rank));
    let mut bunch = FusedBunch::new(&case.problem, &rule(), &Training, rank, BUNCH).unwrap();
    let mut factors = case.factors.clone();
    bencher.bench_local(|| {
        factors.h.assign(&case.factors.h);
        bunch.update_h(&mut factors);
    });
}

/// Twenty iterations of a method, start and end included.
#[divan::bench(args = [Method::Mu, Method::MuT, Method::AltBi], consts = [0, 1, 2])]
fn twenty_iterations<const SIZE: usize>(bencher: Bencher, method: Method) {
    let case = case(SIZES[SIZE]);
    let config = AltBiConfig::new(SIZES[SIZE].2)
        .with_method(method)
        .with_engine(EngineChoice::Fused)
        .with_tolerance(0.0)
        .with_max_iterations(20);
    bencher.bench_local(|| config.solver(Beta::KL, L1).run(&case.problem).unwrap());
}

//! altbi's side of `benches/peers/run`: does what a line on standard input asks for
//! and answers with the seconds it took.
//!
//! | request | work |
//! |---|---|
//! | `load FOLDER` | reads x.npy, w.npy, h.npy, lambda.npy, held_out.npy |
//! | `fused T` | bunch of T updates with hypergradient, fused; `g.npy` |
//! | `reverse T DEVICE` | the same by Burn's tape |
//! | `both T MODE smooth` | bunch of T updates of both factors with hypergradient of the held-out error, on the data term; smooth W, ℓ1 on H; `g.npy` |
//! | `both T MODE built-in` | the same with squares on W |
//! | `both T MODE own` | the same as that, with penalties that state their value and split alone |
//! | `iteration METHOD T` | one iteration of the solver, over fifty |
//! | `updates` | one update of H and one of W, fused |
//! | `products`, `divisions` | a thousand million of them, in 64 bits, by all threads |

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use altbi::data::{read_matrix, write_npy};
use altbi::device::Device;
use altbi::engine::FusedBunch;
use altbi::threads::in_own_pool;
use altbi::update::Rule;
use altbi::{
    AltBiConfig, Beta, Bunch, EngineChoice, Error, Factors, GivenFactors, HeldOut, L1, Method,
    Mode, Pair, Penalty, PenaltyTerm, Precision, Problem, Smooth, Span, Split, SquaredL2, ToMatrix,
    Training,
};
use burn::tensor::Tensor;
use ndarray::Array2;
use pulp::{Arch, Simd, WithSimd};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Case {
    problem: Problem,
    /// The same with entries that are held out.
    split: Problem,
    factors: Factors,
    lambda: Array2<f64>,
    folder: String,
}

fn main() -> Result<(), Error> {
    if std::env::args().any(|argument| argument == "--bench") {
        println!("peers: run benches/peers/run");
        return Ok(());
    }
    let mut case = None;
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("standard input is text");
        let words: Vec<&str> = line.split_whitespace().collect();
        let seconds = match (words.as_slice(), &case) {
            (["load", folder], _) => {
                case = Some(load(folder)?);
                0.0
            }
            (["fused", length], Some(case)) => fused(case, number(length))?,
            (["reverse", length, device], Some(case)) => reverse(case, number(length), device)?,
            (["both", length, mode, penalties], Some(case)) => {
                both(case, number(length), mode.parse()?, penalties)?
            }
            (["iteration", method, length], Some(case)) => iteration(case, method, number(length))?,
            (["updates"], Some(case)) => updates(case)?,
            (["products"], _) => machine::<true>(),
            (["divisions"], _) => machine::<false>(),
            _ => panic!("no such request: {line}"),
        };
        println!("{seconds:e}");
        std::io::stdout().flush().expect("the script reads");
    }
    Ok(())
}

fn number(word: &str) -> usize {
    word.parse().expect("a number")
}

fn load(folder: &str) -> Result<Case, Error> {
    let read = |name: &str| read_matrix(&Path::new(folder).join(name));
    let (x, held_out) = (read("x.npy")?, read("held_out.npy")?);
    let mask = held_out.mapv(|held_out| 1.0 - held_out);
    Ok(Case {
        problem: Problem::new(&x, Precision::F64)?,
        split: Problem::held_out(&x, &mask, &held_out, Precision::F64)?,
        factors: Factors {
            w: read("w.npy")?,
            h: read("h.npy")?,
        },
        lambda: read("lambda.npy")?,
        folder: folder.into(),
    })
}

fn rule() -> Rule {
    Rule::new(Arc::new(Beta::KL), vec![PenaltyTerm::tuned(L1)])
}

/// The fastest of at least five, and of as many as fit in a twentieth of a second,
/// after one that does not count. The peers are timed the same way.
fn fastest(mut work: impl FnMut()) -> f64 {
    work();
    let (mut least, mut total, mut repeats) = (f64::INFINITY, 0.0, 0);
    while repeats < 5 || total < 0.05 {
        let clock = Instant::now();
        work();
        let seconds = clock.elapsed().as_secs_f64();
        least = f64::min(least, seconds);
        total += seconds;
        repeats += 1;
    }
    least
}

/// In a pool of threads, as the solver works.
fn in_pool<R: Send>(work: impl FnOnce() -> Result<R, Error> + Send) -> Result<R, Error> {
    in_own_pool(rayon::current_num_threads(), work)?
}

fn fused(case: &Case, length: usize) -> Result<f64, Error> {
    in_pool(|| {
        let rank = case.factors.w.ncols();
        let mut bunch = FusedBunch::new(&case.problem, &rule(), &Training, rank, length)?;
        let mut factors = case.factors.clone();
        let mut gradient = Array2::zeros(case.lambda.raw_dim());
        let seconds = fastest(|| {
            factors.w.assign(&case.factors.w);
            bunch.run(&mut factors, &case.lambda, &mut gradient);
        });
        write_npy(&Path::new(&case.folder).join("g.npy"), &gradient)?;
        Ok(seconds)
    })
}

/// ℓ1 as a user would write it: value and split, and nothing else.
#[derive(Debug, Clone, Copy)]
struct OwnL1;

impl Penalty for OwnL1 {
    fn name(&self) -> String {
        "own l1".into()
    }

    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        w.clone().sum_dim(1)
    }

    fn split(&self, w: &Tensor<2>) -> Split {
        Split {
            positive: w.ones_like(),
            negative: w.zeros_like(),
        }
    }

    fn is_sum_over_entries(&self) -> bool {
        true
    }
}

/// ½‖w‖² likewise.
#[derive(Debug, Clone, Copy)]
struct OwnSquares;

impl Penalty for OwnSquares {
    fn name(&self) -> String {
        "own squares".into()
    }

    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        (w.clone() * w.clone()).sum_dim(1) * 0.5
    }

    fn split(&self, w: &Tensor<2>) -> Split {
        Split {
            positive: w.clone(),
            negative: w.zeros_like(),
        }
    }

    fn is_sum_over_entries(&self) -> bool {
        true
    }
}

/// Both factors, a weight for each component.
fn both(case: &Case, length: usize, mode: Mode, penalties: &str) -> Result<f64, Error> {
    in_pool(|| {
        let rank = case.factors.w.ncols();
        let [of_w, of_h] = match penalties {
            "smooth" => [PenaltyTerm::tuned(Smooth), PenaltyTerm::tuned(L1)],
            "own" => [PenaltyTerm::tuned(OwnSquares), PenaltyTerm::tuned(OwnL1)],
            _ => [PenaltyTerm::tuned(SquaredL2), PenaltyTerm::tuned(L1)],
        };
        let rule = |term| Rule::new(Arc::new(Beta::KL), vec![term]);
        let criterion = Arc::new(HeldOut);
        let problem = &case.split;
        let bunch = Bunch::fused(
            problem,
            rule(of_w),
            rule(of_h),
            criterion,
            Span::Both,
            length,
        )?;
        let pair = Pair::new(problem, &case.factors.w, &case.factors.h)?;
        let lambda = problem.tensor("λ", &Array2::from_elem((1, rank), 0.1), [1, rank])?;
        let weights = [lambda.clone(), lambda];
        let found = bunch.hypergradient(&pair, &weights, mode)?;
        let seconds = fastest(|| {
            bunch
                .hypergradient(&pair, &weights, mode)
                .expect("it was computed before");
        });
        let gradient = found.gradients[0].to_matrix()?;
        write_npy(&Path::new(&case.folder).join("g.npy"), &gradient)?;
        Ok(seconds)
    })
}

fn updates(case: &Case) -> Result<f64, Error> {
    in_pool(|| {
        let rank = case.factors.w.ncols();
        let mut bunch = FusedBunch::new(&case.problem, &rule(), &Training, rank, 1)?;
        let mut factors = case.factors.clone();
        let none = Array2::zeros(case.lambda.raw_dim());
        Ok(fastest(|| {
            bunch.update_h(&mut factors);
            bunch.update_w(&mut factors, &none);
        }))
    })
}

/// Multiplies and adds, or divides, in registers: the machine's limit.
struct Arithmetic<const PRODUCTS: bool> {
    rounds: usize,
}

impl<const PRODUCTS: bool> WithSimd for Arithmetic<PRODUCTS> {
    /// How many numbers were computed, and their sum so that they must be.
    type Output = (usize, f64);

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> (usize, f64) {
        const INDEPENDENT: usize = 10;
        let factor = simd.splat_f64s(std::hint::black_box(0.999_999_9));
        let mut values = [simd.splat_f64s(std::hint::black_box(1.0)); INDEPENDENT];
        for _ in 0..self.rounds {
            for value in &mut values {
                *value = if PRODUCTS {
                    simd.mul_add_e_f64s(*value, factor, factor)
                } else {
                    simd.div_f64s(*value, factor)
                };
            }
        }
        let mut sum = 0.0;
        for value in values {
            sum += simd.reduce_sum_f64s(value);
        }
        (self.rounds * INDEPENDENT * S::F64_LANES, sum)
    }
}

fn machine<const PRODUCTS: bool>() -> f64 {
    rayon::scope(|_| {
        let mut done = 0;
        let seconds = fastest(|| {
            let counts = rayon::broadcast(|_| {
                Arch::new().dispatch(Arithmetic::<PRODUCTS> { rounds: 100_000 })
            });
            done = counts.iter().map(|(count, _)| count).sum();
        });
        seconds / done as f64 * 1e9
    })
}

fn reverse(case: &Case, length: usize, device: &str) -> Result<f64, Error> {
    let problem = case.problem.clone().on(device.parse::<Device>()?);
    let pair = Pair::new(&problem, &case.factors.w, &case.factors.h)?;
    let lambda = [problem.tensor("λ", &case.lambda, case.lambda.dim().into())?];
    let bunch = Bunch::new(&problem, Beta::KL, L1, length)?;
    in_pool(|| {
        bunch.hypergradient(&pair, &lambda, Mode::Reverse)?;
        Ok(fastest(|| {
            let result = bunch.hypergradient(&pair, &lambda, Mode::Reverse);
            drop(result);
        }))
    })
}

fn iteration(case: &Case, method: &str, length: usize) -> Result<f64, Error> {
    let method = match method {
        "mu" => Method::Mu,
        "mu-t" => Method::MuT,
        _ => Method::AltBi,
    };
    let given = GivenFactors {
        w: Some(case.factors.w.clone()),
        h: Some(case.factors.h.clone()),
    };
    let config = AltBiConfig::new(case.factors.w.ncols())
        .with_method(method)
        .with_bunch(length)
        .with_engine(EngineChoice::Fused)
        .with_tolerance(0.0)
        .with_max_iterations(50);
    let mut solver = config.solver(Beta::KL, L1).with_factors(given);
    let history = solver.run(&case.problem)?.history;
    // The fastest of five times ten iterations.
    let tens = history.chunks(10).map(|ten| {
        let (first, last) = (&ten[0], &ten[ten.len() - 1]);
        (last.seconds - first.seconds) / (last.iteration - first.iteration).max(1) as f64
    });
    let full = history.len() / 10;
    Ok(tens.take(full).fold(f64::INFINITY, f64::min))
}

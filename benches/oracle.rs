//! How far could hypergradients go with an outer error without noise?
//!
//! The preset practical is run as it is, and as an *oracle* that measures its outer error on the
//! true matrix, at the entries that the updates see. Both are divided by TPE, which has the ordinary
//! outer error and as many updates as practical. `cargo bench --bench oracle -- SEED RUNS` prints
//! the table of docs/choosing-lambda.md. It takes minutes.

use std::sync::Arc;

use altbi::criterion::OuterError;
use altbi::data::{Benchmark, Noise, benchmark_b, benchmark_c, benchmark_d};
use altbi::practical::Practical;
use altbi::tuner::{BuiltIn, ContestSettings, Judge, Rival, Task, TaskSettings, contest};
use altbi::{Beta, Factors, L1, PenaltyTerm, Result, Side, Smooth};
use rayon::prelude::*;

/// Those of the table in docs/choosing-lambda.md.
const FIRST_SEED: u64 = 1000;
const RUNS: u64 = 10;

type Make = fn(u64) -> Benchmark;

fn main() -> Result<()> {
    let numbers: Vec<u64> = std::env::args()
        .filter_map(|word| word.parse().ok())
        .collect();
    let first = numbers.first().copied().unwrap_or(FIRST_SEED);
    let runs = numbers.get(1).copied().unwrap_or(RUNS);
    let benchmarks: [(&str, Make, usize); 3] = [
        ("B", |seed| benchmark_b(400, 40, 4, seed), 4),
        ("C", |seed| benchmark_c(400, 40, 5, seed), 5),
        ("D", |seed| benchmark_d(48, 12, 5, seed), 5),
    ];
    println!("errors after the refit relative to TPE's, geometric means of {runs} seeds");
    println!("{:<20} {:>9} {:>9}", "", "practical", "oracle");
    let mut all = Vec::new();
    for (name, make, rank) in benchmarks {
        for (of, beta) in [
            ("KL", Beta::KL),
            ("Frobenius", Beta::FROBENIUS),
            ("IS", Beta::ITAKURA_SAITO),
        ] {
            for rank in [rank, 2 * rank] {
                let seeds = (first..first + runs).into_par_iter();
                let logs = seeds.map(|seed| compared(&make(seed), beta, rank, seed));
                let logs: Vec<[f64; 2]> = logs.collect::<Result<_>>()?;
                let means = mean(&logs);
                print_line(&format!("{name}, {of}, r = {rank}"), means);
                all.push(means);
            }
        }
    }
    print_line("all", mean(&all));
    let [of_practical, of_oracle] = deviation(&all);
    println!("standard errors over the tasks: {of_practical:.3}, {of_oracle:.3}");
    Ok(())
}

/// The logarithms of practical's and the oracle's errors, divided by TPE's.
fn compared(clean: &Benchmark, beta: Beta, rank: usize, seed: u64) -> Result<[f64; 2]> {
    let settings = TaskSettings {
        rank,
        divergence: Arc::new(beta),
        terms: vec![
            (Side::W, PenaltyTerm::tuned(Smooth)),
            (Side::H, PenaltyTerm::tuned(L1)),
        ],
        outer: OuterError::default(),
    };
    let task = Task::of_benchmark(clean, Noise::of_beta(beta.0), settings, seed)?;
    let rivals: [&dyn Rival; 1] = [&BuiltIn::Tpe];
    let one = std::slice::from_ref(&task);
    let standings = contest(one, &rivals, ContestSettings::default())?;
    let error = |rival: &str| standings.of(rival).next().expect("it took part").refit;
    let tpe = error("tpe").ln();
    let oracle = task.judged(&oracle(&task)?);
    Ok([error("practical").ln() - tpe, oracle.ln() - tpe])
}

/// The answer of practical if its outer error is measured on the true matrix.
fn oracle(task: &Task) -> Result<Factors> {
    let Judge::Truth(truth) = &task.judge else {
        unreachable!("benchmarks have a truth")
    };
    let mut practical = Practical::new(task.rank, task.divergence.clone(), task.terms.clone())
        .with_outer_error(task.outer);
    practical.config = practical.config.with_seed(task.seed).with_threads(1);
    let mut splits = vec![task.split.clone()];
    splits.extend(practical.further_splits(&task.full, task.seed)?);
    let splits = splits
        .iter()
        .map(|split| split.with_second(&truth.to_owned()));
    let splits: Vec<_> = splits.collect::<Result<_>>()?;
    let result = practical.watched(&splits, &task.full, None, &mut |_| Vec::new())?;
    Ok(result.expect("nobody interrupts").outcome.factors())
}

fn mean(logs: &[[f64; 2]]) -> [f64; 2] {
    [0, 1].map(|of| logs.iter().map(|pair| pair[of]).sum::<f64>() / logs.len() as f64)
}

/// The standard errors of the means.
fn deviation(logs: &[[f64; 2]]) -> [f64; 2] {
    let (means, count) = (mean(logs), logs.len() as f64);
    [0, 1].map(|of| {
        let squares = logs.iter().map(|pair| (pair[of] - means[of]).powi(2));
        (squares.sum::<f64>() / (count - 1.0) / count).sqrt()
    })
}

fn print_line(name: &str, means: [f64; 2]) {
    let [of_practical, of_oracle] = means.map(f64::exp);
    println!("{name:<20} {of_practical:>9.3} {of_oracle:>9.3}");
}

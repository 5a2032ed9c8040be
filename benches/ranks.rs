//! How often is the true rank found? `altbi ranks` beside automatic relevance determination and
//! the stability of components, on counts of known rank.
//!
//! `cargo bench --bench ranks` prints the table of docs/command.md. It takes minutes.

use std::sync::Arc;

use altbi::criterion::OuterError;
use altbi::data::{Noise, benchmark_b};
use altbi::metrics::recovery;
use altbi::ranks::{RankBy, RankSearch};
use altbi::tuner::{BuiltIn, ContestSettings, Rival, Task, TaskSettings, contest};
use altbi::{
    AltBiConfig, Beta, Factors, L1, Method, NoPenalty, PenaltyTerm, Precision, Problem, Side,
};
use ndarray::{Array2, ArrayView1};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Gamma, LogNormal, Poisson};
use rayon::prelude::*;

const SEEDS: u64 = 20;
const LAST: usize = 8;
/// Updates of relevance determination: its scales rest long before.
const UPDATES: f64 = 5000.0;
/// Fits for the stability of a rank, and the iterations of each.
const FITS: u64 = 8;
const ITERATIONS: usize = 500;
/// A rank is stable if the mean silhouette of its components is at least the first, and that of
/// each component at least the second: the usual limits for mutational signatures.
const STABLE: [f64; 2] = [0.8, 0.2];

type Make = fn([usize; 3], u64) -> Array2<f64>;

fn main() {
    let cases: [(&str, Make, [usize; 3]); 4] = [
        ("benchmark B, mean 3, 120×24", counts, [120, 24, 4]),
        ("benchmark B, mean 3, 400×40", counts, [400, 40, 4]),
        ("like mutations, 96×60", mutations, [96, 60, 5]),
        ("like mutations, 96×200", mutations, [96, 200, 5]),
    ];
    for (name, make, shape) in cases {
        let found: Vec<[usize; 5]> = (0..SEEDS)
            .into_par_iter()
            .map(|seed| by_all_rules(&make(shape, seed), seed))
            .collect();
        println!("{name}, true rank {}", shape[2]);
        let rules = [
            "one standard error",
            "lowest mean",
            "ard-l1",
            "ard-l2",
            "stability",
        ];
        for (rule, name) in rules.iter().enumerate() {
            let ranks: Vec<usize> = found.iter().map(|ranks| ranks[rule]).collect();
            let within = |most| {
                let near = ranks.iter().filter(|rank| rank.abs_diff(shape[2]) <= most);
                near.count()
            };
            println!(
                "  {name:<20} exact {:>2}, within one {:>2} of {SEEDS}: {ranks:?}",
                within(0),
                within(1)
            );
        }
    }
}

/// The ranks that the rules find.
fn by_all_rules(x: &Array2<f64>, seed: u64) -> [usize; 5] {
    let problem = Problem::new(x, Precision::F64).expect("counts");
    let search = RankSearch::new(1..=LAST, Beta::KL).with_seed(100 * seed);
    let outcome = search.run(&problem).expect("a search");
    let summaries = outcome.summaries(RankBy::Plain);
    let lowest = summaries.iter().min_by(|a, b| a.mean.total_cmp(&b.mean));
    let [ard_l1, ard_l2] = relevant(&problem, seed);
    [
        outcome.recommended(RankBy::Plain).expect("a rank"),
        lowest.expect("ranks").rank,
        ard_l1,
        ard_l2,
        stable(x, seed),
    ]
}

/// The components that relevance determination leaves of [`LAST`].
fn relevant(problem: &Problem, seed: u64) -> [usize; 2] {
    let settings = TaskSettings {
        rank: LAST,
        divergence: Arc::new(Beta::KL),
        terms: vec![(Side::W, PenaltyTerm::tuned(L1))],
        outer: OuterError::default(),
    };
    let task = Task::of_data(problem.clone(), 0.0, settings, seed);
    let rivals: [&dyn Rival; 2] = [&BuiltIn::ArdL1, &BuiltIn::ArdL2];
    let settings = ContestSettings {
        budget: Some(UPDATES),
        ..ContestSettings::default()
    };
    let all = contest(&[task.expect("a task")], &rivals, settings);
    let all = all.expect("a contest");
    ["ard-l1", "ard-l2"].map(|rival| {
        let standing = all.of(rival).next();
        standing.expect("an answer").components
    })
}

/// The largest rank whose components come back when counts are drawn again around X.
fn stable(x: &Array2<f64>, seed: u64) -> usize {
    let is_stable = |rank: &usize| {
        let fits: Vec<Factors> = (0..FITS).map(|fit| refit(x, *rank, seed, fit)).collect();
        let silhouettes = silhouettes(&fits);
        let mean = silhouettes.iter().sum::<f64>() / silhouettes.len() as f64;
        let least = silhouettes.iter().copied().fold(f64::INFINITY, f64::min);
        mean >= STABLE[0] && least >= STABLE[1]
    };
    (2..=LAST).rev().find(is_stable).unwrap_or(1)
}

/// Plain updates on counts that are drawn again, from a start of their own.
fn refit(x: &Array2<f64>, rank: usize, seed: u64, fit: u64) -> Factors {
    let mut generator = ChaCha8Rng::seed_from_u64(1000 * seed + fit);
    let again = x.mapv(|mean| poisson(mean, &mut generator));
    let config = AltBiConfig::new(rank)
        .with_method(Method::Mu)
        .with_max_iterations(ITERATIONS)
        .with_seed(fit)
        .with_threads(1);
    let outcome = config.solver(Beta::KL, NoPenalty).fit(&again);
    outcome.expect("plain updates").factors()
}

/// The mean silhouette of each component: its fits are a cluster, by the cosine of W's columns.
fn silhouettes(fits: &[Factors]) -> Vec<f64> {
    let rank = fits[0].w.ncols();
    let matched: Vec<Vec<usize>> = fits
        .iter()
        .map(|fit| {
            let matched = recovery(&fits[0].w, &fits[0].h, &fit.w, &fit.h);
            matched.expect("the same shape").assignment
        })
        .collect();
    let column = |fit: usize, k: usize| fits[fit].w.column(matched[fit][k]);
    let all = || 0..fits.len();
    let distance = |(fit, k): (usize, usize), to: usize| {
        let others = all().filter(|other| to != k || *other != fit);
        let distances: Vec<f64> = others
            .map(|other| 1.0 - cosine(column(fit, k), column(other, to)))
            .collect();
        distances.iter().sum::<f64>() / distances.len() as f64
    };
    (0..rank)
        .map(|k| {
            let one = |fit: usize| {
                let own = distance((fit, k), k);
                let others = (0..rank).filter(|other| *other != k);
                let nearest = others.map(|other| distance((fit, k), other));
                let nearest = nearest.fold(f64::INFINITY, f64::min);
                (nearest - own) / nearest.max(own)
            };
            all().map(one).sum::<f64>() / fits.len() as f64
        })
        .collect()
}

fn cosine(a: ArrayView1<'_, f64>, b: ArrayView1<'_, f64>) -> f64 {
    let norms = (a.dot(&a) * b.dot(&b)).sqrt();
    if norms > 0.0 { a.dot(&b) / norms } else { 0.0 }
}

/// Counts of mean 3 of benchmark B.
fn counts([n, m, rank]: [usize; 3], seed: u64) -> Array2<f64> {
    Noise::Poisson(3.0)
        .on(&benchmark_b(n, m, rank, seed), seed)
        .x
}

/// Counts as those of mutations: few channels carry a signature, few samples a process, and
/// samples differ in their number of mutations by orders.
fn mutations([channels, samples, rank]: [usize; 3], seed: u64) -> Array2<f64> {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let peaked = Gamma::new(0.2, 1.0).expect("a shape");
    let mut w = Array2::from_shape_fn((channels, rank), |_| peaked.sample(&mut generator));
    for mut signature in w.columns_mut() {
        let sum = signature.sum();
        signature /= sum;
    }
    let burden = LogNormal::new(6.0, 1.0).expect("a deviation");
    let h = Array2::from_shape_fn((rank, samples), |_| {
        let active = generator.random_bool(0.5);
        burden.sample(&mut generator) * f64::from(u8::from(active))
    });
    w.dot(&h).mapv(|mean| poisson(mean, &mut generator))
}

fn poisson(mean: f64, generator: &mut ChaCha8Rng) -> f64 {
    Poisson::new(mean).map_or(0.0, |counts| counts.sample(generator))
}

//! Outer errors by a divergence of their own, on thinned counts and on held-out entries: every
//! mode on tensors and on the fused data term, and against a plain loop.

mod common;

use std::sync::Arc;

use altbi::check::{MODES, check_bunch};
use altbi::divergence::{EntryParts, Fused, Outer, PerEntry};
use altbi::update::Rule;
use altbi::{
    AltBiConfig, Beta, Bunch, BunchOver, Criterion, Divergence, EngineChoice, Error, HeldOut, L1,
    Measured, Mode, Pair, PenaltyTerm, Precision, Problem, Scope, Selection, Slope, Smooth,
    SmoothedKl, Span, Split, ToMatrix, Training, Units, Verdict, check,
};
use burn::tensor::Tensor;
use common::{assert_close, matrix};
use ndarray::Array2;

const RANK: usize = 3;

/// Small counts, many of them zero.
fn counts(n: usize, m: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, m), |(i, j)| ((i * 13 + j * 7 + i * j) % 6) as f64)
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Unseen {
    Nothing,
    Speckled,
    Thinned,
}

fn problem(unseen: Unseen, masked: bool, precision: Precision) -> Problem {
    let (n, m) = (19, 14);
    let x = counts(n, m);
    let mask = Array2::from_shape_fn((n, m), |(i, j)| f64::from(u8::from((i + 2 * j) % 5 > 0)));
    let problem = if masked {
        Problem::masked(&x, &mask, precision).unwrap()
    } else {
        Problem::new(&x, precision).unwrap()
    };
    match unseen {
        Unseen::Nothing => problem,
        Unseen::Speckled => problem.speckled(0.2, 1).unwrap(),
        Unseen::Thinned => problem.thinned(0.3, 1).unwrap(),
    }
}

fn criterion(unseen: Unseen, outer: Outer) -> Arc<dyn Criterion> {
    match unseen {
        Unseen::Nothing => Arc::new(Measured::new(Training, outer.divergence())),
        _ => Arc::new(Measured::new(HeldOut, outer.divergence())),
    }
}

fn rules() -> [Rule; 2] {
    let rule = |term| Rule::new(Arc::new(Beta::KL), vec![term]);
    [
        rule(PenaltyTerm::tuned(Smooth)),
        rule(PenaltyTerm::tuned(L1)),
    ]
}

fn start(problem: &Problem) -> Pair {
    let [n, m] = problem.shape();
    Pair::new(
        problem,
        &(matrix(n, RANK, 1.1) + 0.1),
        &(matrix(RANK, m, 2.3) + 0.1),
    )
    .unwrap()
}

fn weights(problem: &Problem) -> Vec<Tensor<2>> {
    let weight = |salt| problem.tensor("λ", &(matrix(1, RANK, salt) * 0.3), [1, RANK]);
    vec![weight(0.4).unwrap(), weight(0.7).unwrap()]
}

/// E by the definition, entry by entry.
fn plain_loop(problem: &Problem, pair: &Pair, outer: Outer, unseen: Unseen) -> f64 {
    let numbers = |tensor: &Tensor<2>| {
        tensor
            .to_matrix()
            .unwrap()
            .into_iter()
            .collect::<Vec<f64>>()
    };
    let (w, h) = (numbers(&pair.w), numbers(&pair.h));
    let [n, m] = problem.shape();
    let weights = match unseen {
        Unseen::Nothing => problem.mask(),
        _ => problem.held_out_weights(),
    };
    let z = problem.second().unwrap_or(problem.x());
    let mut sum = 0.0;
    for i in 0..n {
        for j in 0..m {
            let weight = weights.map_or(1.0, |weights| weights[(i, j)]);
            let y: f64 = (0..RANK).map(|k| w[i * RANK + k] * h[j * RANK + k]).sum();
            let x = z.entry(i, j);
            let kl = |x: f64, y: f64| {
                let log = if x > 0.0 { x * (x / y).ln() } else { 0.0 };
                log - x + y
            };
            sum += weight
                * match outer {
                    Outer::Beta(Beta(2.0)) => 0.5 * (x - y).powi(2),
                    Outer::Beta(_) => kl(x, y),
                    Outer::SmoothedKl(SmoothedKl(c)) => kl(x + c, y + c),
                };
        }
    }
    sum
}

#[test]
fn every_outer_error_is_the_plain_sum_and_has_the_same_hypergradient_in_every_mode() {
    let outers = [
        Outer::Beta(Beta::KL),
        Outer::Beta(Beta::FROBENIUS),
        Outer::SmoothedKl(SmoothedKl::HALF),
        Outer::SmoothedKl(SmoothedKl(3.0)),
    ];
    for unseen in [Unseen::Nothing, Unseen::Speckled, Unseen::Thinned] {
        for masked in [false, true] {
            let problem = problem(unseen, masked, Precision::F64);
            let (pair, lambda) = (start(&problem), weights(&problem));
            for outer in outers {
                let what = format!("{unseen:?} {outer} masked {masked}");
                let bunch = |fused: bool, length| {
                    let [of_w, of_h] = rules();
                    let criterion = criterion(unseen, outer);
                    if fused {
                        Bunch::fused(&problem, of_w, of_h, criterion, Span::Both, length)
                    } else {
                        Bunch::with_rules(&problem, of_w, of_h, criterion, Span::Both, length)
                    }
                    .unwrap()
                };
                for fused in [false, true] {
                    let found = bunch(fused, 1).outer_error(&pair);
                    let expected = plain_loop(&problem, &pair, outer, unseen);
                    assert!(
                        (found - expected).abs() < 1e-11 * expected,
                        "{what} fused {fused}: {found} {expected}"
                    );
                    let report = check_bunch(&bunch(fused, 4), &pair, &lambda, &MODES).unwrap();
                    report.assert_consistent();
                    assert!(
                        report.modes().all(|(_, verdict)| verdict == Verdict::Pass),
                        "{what} fused {fused}\n{report}"
                    );
                    let mut controls = report.controls();
                    assert!(controls.all(|(_, verdict)| verdict == Verdict::Mismatch));
                }
                let [found, expected] = [true, false].map(|fused| {
                    let bunch = bunch(fused, 4);
                    bunch.hypergradient(&pair, &lambda, Mode::Reverse).unwrap()
                });
                for (a, b) in found.gradients.iter().zip(&expected.gradients) {
                    assert_close(&what, a, b, 1e-10);
                }
            }
        }
    }
}

#[test]
fn in_32_bits_the_engines_agree_as_well() {
    let problem = problem(Unseen::Thinned, false, Precision::F32);
    let (pair, lambda) = (start(&problem), weights(&problem));
    let [found, expected] = [true, false].map(|fused| {
        let [of_w, of_h] = rules();
        let criterion = criterion(Unseen::Thinned, Outer::SmoothedKl(SmoothedKl::HALF));
        let bunch = if fused {
            Bunch::fused(&problem, of_w, of_h, criterion, Span::Both, 4)
        } else {
            Bunch::with_rules(&problem, of_w, of_h, criterion, Span::Both, 4)
        };
        let bunch = bunch.unwrap();
        bunch.hypergradient(&pair, &lambda, Mode::Reverse).unwrap()
    });
    for (a, b) in found.gradients.iter().zip(&expected.gradients) {
        assert_close("dE/dλ", a, b, 1e-3);
    }
}

#[test]
fn runs_on_thinned_counts_take_the_fused_data_term_and_agree_with_tensors() {
    let problem = problem(Unseen::Thinned, true, Precision::F64);
    let run = |engine| {
        AltBiConfig::new(RANK)
            .with_bunch_over(BunchOver::Both)
            .with_scope(Scope::Component)
            .with_units(Units::Relative)
            .with_hypergradient(Mode::Adjoint)
            .with_max_iterations(6)
            .with_select(Selection::Best)
            .with_engine(engine)
            .solver(Beta::KL, Smooth)
            .with_criterion(Measured::new(HeldOut, SmoothedKl::HALF))
            .run(&problem)
            .unwrap()
    };
    let (auto, autodiff) = (run(EngineChoice::Auto), run(EngineChoice::Autodiff));
    assert_eq!(auto.engine.name(), "fused");
    assert!(auto.engine.difference().unwrap() < 1e-10);
    let difference = (auto.outer_error - autodiff.outer_error).abs();
    assert!(difference < 1e-9 * autodiff.outer_error);
    // The paper's loops do not know such an error, and are passed over.
    let paper = AltBiConfig::new(RANK)
        .with_max_iterations(3)
        .solver(Beta::KL, L1)
        .with_criterion(HeldOut)
        .run(&problem)
        .unwrap();
    assert!(paper.engine.difference().unwrap() < 1e-10);
}

#[test]
fn the_outer_divergence_has_a_domain_too() {
    let problem = problem(Unseen::Speckled, false, Precision::F64);
    let found = AltBiConfig::new(RANK)
        .solver(Beta::KL, L1)
        .with_criterion(Measured::new(HeldOut, Beta::ITAKURA_SAITO))
        .run(&problem);
    assert!(matches!(found, Err(Error::OutsideDomain { .. })));
}

/// KL as somebody else would write it; with a mistake of some size in one of its functions.
#[derive(Debug, Clone, Copy)]
struct Own(Option<(&'static str, f64)>);

impl Own {
    /// The mistake in one of the functions.
    fn wrong(&self, function: &str) -> f64 {
        let mistake = self.0.filter(|(of, _)| *of == function);
        mistake.map_or(0.0, |(_, size)| size)
    }
}

impl Divergence for Own {
    fn name(&self) -> String {
        "own".into()
    }
    fn value(&self, x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2> {
        Beta::KL.value(x, y)
    }
    fn split(&self, x: &Tensor<2>, y: &Tensor<2>) -> Split {
        Beta::KL.split(x, y)
    }
    fn slope(&self, x: &Tensor<2>, y: &Tensor<2>) -> Option<Slope> {
        Beta::KL.slope(x, y)
    }
    fn fused(&self) -> Option<Fused> {
        Some(Fused::PerEntry(Arc::new(*self)))
    }
}

impl PerEntry for Own {
    fn value(&self, x: f64, y: f64) -> f64 {
        let log = if x > 0.0 { x * (x / y).ln() } else { 0.0 };
        log - x + y + self.wrong("value")
    }
    fn split(&self, x: f64, y: f64) -> EntryParts {
        EntryParts {
            positive: 1.0 + self.wrong("split"),
            negative: x / y,
        }
    }
    fn slope(&self, x: f64, y: f64) -> EntryParts {
        EntryParts {
            positive: 0.0,
            negative: -x / (y * y) * (1.0 + self.wrong("slope")),
        }
    }
}

#[test]
fn functions_of_numbers_are_checked_against_the_tensors() {
    // In 32 bits a hypergradient may be off by a hundredth: a smaller mistake could hide there.
    for (precision, size) in [(Precision::F64, 0.01), (Precision::F32, 0.1)] {
        for unseen in [Unseen::Nothing, Unseen::Speckled] {
            let problem = problem(unseen, true, precision);
            let report = check(&problem, Own(None), L1).unwrap();
            report.assert_consistent();
            assert_eq!(report.fused().count(), 3);
            for (mistake, quantity) in [
                ("value", "outer error"),
                ("split", "updates"),
                ("slope", "hypergradient"),
            ] {
                let report = check(&problem, Own(Some((mistake, size))), L1).unwrap();
                assert!(
                    report.is_inconsistent(),
                    "{mistake} {precision:?} {unseen:?}"
                );
                let found = report.fused().find(|(what, _)| *what == quantity).unwrap();
                assert_eq!(found.1, Verdict::Mismatch, "{mistake}\n{report}");
            }
        }
    }
}

#[test]
fn a_run_with_functions_of_numbers_is_the_run_of_the_built_in_divergence() {
    let problem = problem(Unseen::Speckled, true, Precision::F64);
    let run = |divergence: Arc<dyn Divergence>| {
        AltBiConfig::new(RANK)
            .with_bunch_over(BunchOver::Both)
            .with_scope(Scope::Component)
            .with_max_iterations(5)
            .solver(divergence, Smooth)
            .with_criterion(HeldOut)
            .run(&problem)
    };
    let own = run(Arc::new(Own(None))).unwrap();
    let built_in = run(Arc::new(Beta::KL)).unwrap();
    assert_eq!(own.engine.name(), "fused");
    let difference = (&own.w - &built_in.w)
        .iter()
        .fold(0.0, |a, b| f64::max(a, b.abs()));
    assert!(difference < 1e-10, "{difference}");
    // A mistake does not get past the first bunch of an `auto` run.
    let wrong = run(Arc::new(Own(Some(("slope", 0.01)))));
    assert!(matches!(wrong, Err(Error::EnginesDisagree { .. })));
}

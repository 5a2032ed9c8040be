//! The fused engine against autodiff, and what a run says about it.

use std::sync::Arc;

use super::common::{assert_close, matrix, problem};
use crate::check::{cases, relative_difference};
use crate::device::Device;
use crate::engine::{FusedBunch, tolerance};
use crate::penalty::FusedPenalty;
use crate::update::Rule;
use crate::{
    AltBiConfig, Beta, Bunch, BunchOver, Criterion, Divergence, EngineChoice, EngineUsed, Error,
    Exponent, Factors, GivenFactors, Group, HeldOut, Hoyer, L1, Method, Mode, Normalization, Pair,
    Penalty, PenaltyTerm, Precision, Problem, Side, Span, Split, SquaredL2, ToMatrix, Training,
    penalty,
};
use burn::tensor::Tensor;
use ndarray::{Array2, Axis};
use proptest::prelude::*;

/// Penalties that compare rows. The paper's fused bunch goes row by row.
const COUPLED: [&str; 2] = ["smooth", "steps"];

/// The results of both engines for a bunch.
struct Both {
    fused: Factors,
    gradient: Array2<f64>,
    outer_error: f64,
    expected: crate::Hypergradient,
}

fn both(
    problem: &Problem,
    rule: &Rule,
    criterion: &(impl Criterion + Copy + 'static),
    factors: &Factors,
    lambda: &Array2<f64>,
    length: usize,
) -> Both {
    let (n, rank) = factors.w.dim();
    let tensor = |matrix: &Array2<f64>| {
        let shape = [matrix.nrows(), matrix.ncols()];
        problem.tensor("a matrix", matrix, shape).unwrap()
    };
    let [of_w, of_h] = [rule.clone(), rule.without_terms()];
    let (span, on_tape) = (Span::One(Side::W), Arc::new(*criterion));
    let pair = Pair::new(problem, &factors.w, &factors.h).unwrap();
    let mut fused = factors.clone();
    let (gradient, outer_error) = match FusedBunch::new(problem, rule, criterion, rank, length) {
        Ok(mut bunch) => {
            let mut gradient = Array2::zeros((n, 1));
            let outer_error = bunch.run(&mut fused, lambda, &mut gradient);
            (gradient, outer_error)
        }
        // Weights of entries: a run takes the data term.
        Err(Error::EngineUnsupported { .. }) => {
            let (of_w, of_h) = (of_w.clone(), of_h.clone());
            let bunch = Bunch::fused(problem, of_w, of_h, on_tape.clone(), span, length).unwrap();
            let found = bunch.hypergradient(&pair, &[tensor(lambda)], Mode::Reverse);
            let found = found.unwrap();
            fused.w = found.pair.w.to_matrix().unwrap();
            (found.gradients[0].to_matrix().unwrap(), found.outer_error)
        }
        Err(error) => panic!("{error}"),
    };
    let reference = Bunch::with_rules(problem, of_w, of_h, on_tape, span, length).unwrap();
    let expected = reference.hypergradient(&pair, &[tensor(lambda)], Mode::Reverse);
    Both {
        fused,
        gradient,
        outer_error,
        expected: expected.unwrap(),
    }
}

impl Both {
    #[track_caller]
    fn agree(&self, what: &str, tolerance: f64) {
        assert_close(
            &format!("{what}: w"),
            &self.fused.w,
            &self.expected.pair.w,
            tolerance,
        );
        let gradient = &self.expected.gradients[0];
        assert_close(
            &format!("{what}: dE/dλ"),
            &self.gradient,
            gradient,
            tolerance,
        );
        let (found, expected) = (self.outer_error, self.expected.outer_error);
        let difference = (found - expected).abs();
        assert!(
            difference <= tolerance * expected.abs(),
            "{what}: E {found} {expected}"
        );
    }
}

#[test]
fn the_engines_agree_on_every_case() {
    let mut tried = 0;
    for case in cases() {
        if COUPLED.contains(&case.penalty) {
            continue;
        }
        for (precision, tolerance) in [(Precision::F64, 1e-10), (Precision::F32, 1e-3)] {
            let (bunch, draw) = case.bunch(Precision::F64, &Device::default()).unwrap();
            let problem = Problem::new(&case.x(), precision).unwrap();
            let host = |tensor: &Tensor<2>| tensor.to_matrix().unwrap();
            let mut factors = Factors {
                w: host(&draw.pair.w),
                h: host(&draw.pair.h.clone().transpose()),
            };
            let rank = factors.w.ncols();
            let fused = FusedBunch::new(&problem, &bunch.of_w, &Training, rank, case.bunch);
            let mut gradient = Array2::zeros((factors.w.nrows(), 1));
            let error = fused
                .unwrap()
                .run(&mut factors, &host(&draw.lambda[0]), &mut gradient);
            let expected = bunch
                .hypergradient(&draw.pair, &draw.lambda, Mode::Reverse)
                .unwrap();
            let expected = Both {
                fused: factors,
                gradient,
                outer_error: error,
                expected,
            };
            expected.agree(&format!("{case:?} {precision:?}"), tolerance);
            tried += 1;
        }
    }
    assert_eq!(tried, 2 * 7 * 6 * 4 * 5);
}

#[test]
fn weights_held_out_errors_sums_of_terms_and_exponents() {
    let mut x = matrix(21, 37, 0.3);
    x[[2, 3]] = 0.0;
    x.row_mut(5).fill(0.0);
    x.column_mut(30).fill(0.0);
    let mask = matrix(21, 37, 1.1).mapv(|u| if u > 0.9 { 0.0 } else { 2.0 * u });
    let held_out = matrix(21, 37, 2.2).mapv(|u| if u > 0.6 { 1.5 } else { 0.0 });
    let problem = Problem::held_out(&x, &mask, &held_out, Precision::F64).unwrap();
    let weights = problem
        .tensor("weights", &matrix(21, 1, 0.6), [21, 1])
        .unwrap();
    let factors = Factors {
        w: matrix(21, 3, 0.9),
        h: matrix(3, 37, 0.7),
    };
    let lambda = matrix(21, 1, 0.2);
    for beta in [0.4, 1.0, 1.3, 2.0] {
        for exponent in [1.0, 0.5] {
            let terms = vec![
                PenaltyTerm::fixed_rows(SquaredL2, weights.clone()),
                PenaltyTerm::fixed(Group, 0.3).unwrap(),
                PenaltyTerm::tuned(Hoyer),
            ];
            let mut rule = Rule::new(Arc::new(Beta(beta)), terms);
            rule.exponent = exponent;
            let what = format!("β={beta} γ={exponent}");
            both(&problem, &rule, &HeldOut, &factors, &lambda, 5).agree(&what, 1e-10);
            both(&problem, &rule, &Training, &factors, &lambda, 5).agree(&what, 1e-10);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Around the sizes of vectors, tiles, chunks and groups.
    #[test]
    fn shapes_around_every_boundary(
        n in prop_oneof![1..20usize, 60..70usize],
        m in prop_oneof![1..40usize, 125..135usize],
        rank in 1..14usize,
        beta in prop::sample::select(vec![2.0, 1.0, 0.0, 0.7]),
        masked: bool,
    ) {
        let x = matrix(n, m, 0.4) + 0.01;
        let mask = matrix(n, m, 0.8).mapv(|u| if u > 0.5 { u } else { 0.0 });
        let full = mask.sum_axis(Axis(0)).iter().chain(&mask.sum_axis(Axis(1))).all(|s| *s > 0.0);
        let problem = if masked && full {
            Problem::masked(&x, &mask, Precision::F64).unwrap()
        } else {
            problem(&x)
        };
        let rule = Rule::new(Arc::new(Beta(beta)), vec![PenaltyTerm::tuned(L1)]);
        let factors = Factors { w: matrix(n, rank, 0.5), h: matrix(rank, m, 0.6) };
        let result = both(&problem, &rule, &Training, &factors, &matrix(n, 1, 0.1), 3);
        result.agree(&format!("{n}×{m} r={rank} β={beta} {masked}"), 1e-10);

        if masked && full {
            return Ok(());
        }
        // H, by the rule on the transposed problem.
        let mut fused = factors.clone();
        FusedBunch::new(&problem, &rule, &Training, rank, 1).unwrap().update_h(&mut fused);
        let plain = Rule { terms: Vec::new(), ..rule };
        let tensor = |matrix: Array2<f64>| {
            let shape = [matrix.nrows(), matrix.ncols()];
            problem.tensor("a matrix", &matrix, shape).unwrap()
        };
        let expected = plain.update(
            problem.columns(),
            &tensor(factors.h.t().to_owned()),
            &tensor(factors.w.t().to_owned()),
        );
        assert_close("H", &fused.h, &expected.transpose(), 1e-12);
    }
}

#[test]
fn weights_of_one_are_no_weights() {
    // With β = 2 two different algorithms: products with HHᵀ, and entry by entry.
    let x = matrix(30, 40, 0.2);
    let weighted = Problem::masked(&x, &Array2::<f64>::ones((30, 40)), Precision::F64).unwrap();
    let factors = Factors {
        w: matrix(30, 6, 0.5),
        h: matrix(6, 40, 0.6),
    };
    let lambda = matrix(30, 1, 0.1);
    for beta in [2.0, 1.0, 0.0] {
        let rule = Rule::new(Arc::new(Beta(beta)), vec![PenaltyTerm::tuned(SquaredL2)]);
        let run = |problem: &Problem| both(problem, &rule, &Training, &factors, &lambda, 4);
        let (with, without) = (run(&weighted), run(&problem(&x)));
        assert_close("w", &with.fused.w, &without.fused.w, 1e-12);
        assert_close("dE/dλ", &with.gradient, &without.gradient, 1e-11);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    // Large enough to be shared out.
    let x = matrix(230, 310, 0.35);
    for (beta, precision) in [
        (1.0, Precision::F64),
        (2.0, Precision::F64),
        (1.0, Precision::F32),
    ] {
        let run = |threads, engine| {
            AltBiConfig::new(5)
                .with_threads(threads)
                .with_engine(engine)
                .with_precision(precision)
                .with_max_iterations(6)
                .with_tolerance(0.0)
                .solver(Beta(beta), L1)
                .fit(&x)
                .unwrap()
        };
        for engine in [EngineChoice::Fused, EngineChoice::Autodiff] {
            let alone = run(1, engine);
            for threads in [2, 3, 5] {
                let shared = run(threads, engine);
                assert_eq!(alone.w, shared.w, "{threads} threads, {engine:?}");
                assert_eq!(alone.h, shared.h, "{threads} threads, {engine:?}");
                assert_eq!(alone.lambda, shared.lambda, "{threads} threads, {engine:?}");
                assert_eq!(alone.divergence, shared.divergence);
            }
        }
    }
}

#[test]
fn whole_runs_agree() {
    let x = matrix(24, 18, 0.25);
    let fit = |config: &AltBiConfig, engine, beta, name: &str| {
        let penalty = penalty::by_name(name).unwrap();
        let config = config.clone().with_engine(engine);
        config.solver(Beta(beta), penalty).fit(&x).unwrap()
    };
    for beta in [2.0, 1.0, 0.0, 0.5] {
        for name in ["l1", "l2", "group", "l21", "none"] {
            for method in [
                Method::AltBi,
                Method::PenalizedMu,
                Method::MuT,
                Method::Frozen,
            ] {
                let config = AltBiConfig::new(3)
                    .with_method(method)
                    .with_exponent(Exponent::Monotone)
                    .with_normalize(Normalization::HRows)
                    .with_max_iterations(12)
                    .with_tolerance(0.0);
                let what = format!("β={beta} {name} {method:?}");
                let fused = fit(&config, EngineChoice::Fused, beta, name);
                let tensors = fit(&config, EngineChoice::Autodiff, beta, name);
                assert_close(&format!("{what}: W"), &fused.w, &tensors.w, 1e-9);
                assert_close(&format!("{what}: H"), &fused.h, &tensors.h, 1e-9);
                let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs();
                for (a, b) in fused.history.iter().zip(&tensors.history) {
                    assert!(close(a.divergence, b.divergence), "{what}: {a:?} {b:?}");
                    assert!(close(a.objective, b.objective), "{what}: {a:?} {b:?}");
                }
            }
        }
    }
}

/// Entries that an update makes tiny are zero afterwards, by either engine.
#[test]
fn tiny_entries_become_zero_in_both_engines() {
    let x = matrix(12, 10, 0.3);
    for method in [Method::AltBi, Method::Frozen, Method::Mu] {
        for over in [BunchOver::One, BunchOver::Both] {
            let [fused, tensors] = [EngineChoice::Fused, EngineChoice::Autodiff].map(|engine| {
                let mut w = matrix(12, 2, 0.6);
                for i in (0..12).step_by(3) {
                    w[[i, 1]] = 1e-160;
                }
                let given = GivenFactors {
                    w: Some(w),
                    h: Some(matrix(2, 10, 0.4)),
                };
                let config = AltBiConfig::new(2)
                    .with_method(method)
                    .with_bunch_over(over)
                    .with_engine(engine)
                    .with_max_iterations(2);
                let problem = Problem::new(&x, Precision::F64).unwrap();
                let mut solver = config.solver(Beta::KL, L1).with_factors(given);
                solver.run(&problem).unwrap()
            });
            let zeros = |w: &Array2<f64>| w.mapv(|entry| entry == 0.0);
            assert_eq!(zeros(&fused.w), zeros(&tensors.w), "{method:?} {over:?}");
            assert!(fused.w.iter().any(|entry| *entry == 0.0));
            assert!(fused.w.iter().all(|entry| *entry == 0.0 || *entry > 1e-150));
        }
    }
}

#[test]
fn auto_takes_the_fused_engine_where_it_can_and_says_how_far_it_is_from_autodiff() {
    let x = matrix(12, 10, 0.3);
    let used = |config: AltBiConfig, penalty: &str| {
        let penalty = penalty::by_name(penalty).unwrap();
        config.solver(Beta::KL, penalty).fit(&x).unwrap().engine
    };
    let config = AltBiConfig::new(2).with_max_iterations(3);
    for method in [Method::AltBi, Method::Mu, Method::Frozen] {
        let checked = used(config.clone().with_method(method), "l1");
        let difference = checked.difference().unwrap();
        assert!((0.0..1e-12).contains(&difference), "{checked:?}");
    }
    let narrow = used(config.clone().with_precision(Precision::F32), "l1");
    let difference = narrow.difference().unwrap();
    assert!(difference > 1e-9 && difference < 1e-3, "{narrow:?}");
    // A coupled penalty runs on the data term; a mode that was asked for by name may need
    // tensors.
    let coupled = used(config.clone(), "smooth").difference().unwrap();
    assert!(coupled < 1e-12, "{coupled}");
    let adjoint = config.clone().with_hypergradient(Mode::Adjoint);
    assert!(used(adjoint, "l1").difference().unwrap() < 1e-12);
    let forward = config.clone().with_hypergradient(Mode::Forward);
    assert!(used(forward.clone(), "l1").difference().unwrap() < 1e-12);
    // A baseline differentiates nothing, whatever the mode.
    let baseline = forward.clone().with_method(Method::MuT);
    assert_eq!(used(baseline, "l1").name(), "fused");
    let autodiff = config.clone().with_engine(EngineChoice::Autodiff);
    assert_eq!(used(autodiff, "l1"), EngineUsed::Autodiff);
    let fused = config.clone().with_engine(EngineChoice::Fused);
    assert_eq!(used(fused.clone(), "l1"), EngineUsed::Fused);
    assert_eq!(used(fused, "smooth"), EngineUsed::Fused);
    let differences = config.with_hypergradient(Mode::FiniteDifferences);
    assert_eq!(used(differences.clone(), "l1"), EngineUsed::Autodiff);
    let refused = differences.with_engine(EngineChoice::Fused).fit(&x);
    assert!(
        matches!(refused, Err(Error::EngineUnsupported { reason }) if reason.contains("differences"))
    );
}

/// A penalty that calls itself ℓ1 but pulls twice as hard: the negative control.
#[derive(Debug)]
struct Impostor;

impl Penalty for Impostor {
    fn name(&self) -> String {
        "impostor".into()
    }
    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        w.clone().sum_dim(1) * 2.0
    }
    fn split(&self, w: &Tensor<2>) -> Split {
        Split {
            positive: w.ones_like() * 2.0,
            negative: w.zeros_like(),
        }
    }
    fn tangent(&self, w: &Tensor<2>, _direction: &Tensor<2>) -> Option<Split> {
        Some(Split {
            positive: w.zeros_like(),
            negative: w.zeros_like(),
        })
    }
    fn fused(&self) -> Option<FusedPenalty> {
        Some(FusedPenalty::L1)
    }
}

#[test]
fn engines_that_disagree_end_the_run() {
    let x = matrix(12, 10, 0.3);
    let config = AltBiConfig::new(2).with_max_iterations(3);
    for (precision, allowed) in [(Precision::F64, 1e-8), (Precision::F32, 1e-2)] {
        let config = config.clone().with_precision(precision);
        let found = config.solver(Beta::KL, Impostor).fit(&x);
        let Err(Error::EnginesDisagree {
            quantity,
            difference,
            tolerance: limit,
        }) = found
        else {
            panic!("{found:?}");
        };
        assert_eq!((quantity, limit), ("W", tolerance(precision)));
        assert_eq!(limit, allowed);
        assert!(difference > allowed);
        // Without the check nobody notices; on tensors there is nothing to notice.
        for engine in [EngineChoice::Fused, EngineChoice::Autodiff] {
            let config = config.clone().with_engine(engine);
            assert!(config.solver(Beta::KL, Impostor).fit(&x).is_ok());
        }
    }
}

#[test]
fn a_perfect_start_is_no_disagreement() {
    // dE/dλ is then nothing but rounding, in which no two programs agree.
    let (w, h) = (matrix(15, 3, 0.5), matrix(3, 20, 0.6));
    let x = w.dot(&h);
    for lambda in [0.0, 1e-12] {
        let given = GivenFactors {
            w: Some(w.clone()),
            h: Some(h.clone()),
        };
        let config = AltBiConfig::new(3)
            .with_lambda(lambda)
            .with_max_iterations(2);
        let outcome = config.solver(Beta::KL, L1).with_factors(given).fit(&x);
        assert_eq!(outcome.unwrap().engine.name(), "fused");
    }
}

#[test]
fn zeros_and_extremes_stay_finite_in_both() {
    let mut x = matrix(17, 19, 0.4);
    x.row_mut(3).fill(0.0);
    x.column_mut(4).fill(0.0);
    for scale in [1e-60, 1e-8, 1.0, 1e90] {
        for beta in [2.0, 1.0, 0.5] {
            let config = AltBiConfig::new(3)
                .with_max_iterations(5)
                .with_tolerance(0.0);
            let outcome = config.solver(Beta(beta), L1).fit(&(&x * scale)).unwrap();
            assert!(
                outcome.engine.difference().unwrap() < 1e-10,
                "β={beta} {scale:e}"
            );
            assert!(outcome.w.row(3).iter().all(|w| *w == 0.0));
        }
    }
    let x = matrix(17, 19, 0.4) + 1e-3;
    for beta in [0.0, -0.5] {
        let config = AltBiConfig::new(3).with_max_iterations(5);
        let outcome = config.solver(Beta(beta), L1).fit(&x).unwrap();
        assert!(outcome.engine.difference().unwrap() < 1e-10, "β={beta}");
    }
}

#[test]
fn an_iteration_allocates_nothing() {
    let x = matrix(40, 30, 0.3);
    for beta in [2.0, 1.0, 0.5] {
        let problem = problem(&x);
        let rule = Rule::new(Arc::new(Beta(beta)), vec![PenaltyTerm::tuned(Hoyer)]);
        let mut bunch = FusedBunch::new(&problem, &rule, &Training, 4, 3).unwrap();
        let mut factors = Factors {
            w: matrix(40, 4, 0.5),
            h: matrix(4, 30, 0.6),
        };
        let lambda = matrix(40, 1, 0.1);
        let mut gradient = Array2::zeros((40, 1));
        let counted = allocation_counter::measure(|| {
            bunch.update_h(&mut factors);
            bunch.run(&mut factors, &lambda, &mut gradient);
        });
        assert_eq!(counted.count_total, 0, "β={beta}");

        // The whole loop: iterations beyond the first hundred cost no allocation.
        let allocations = |iterations| {
            let config = AltBiConfig::new(4)
                .with_threads(1)
                .with_engine(EngineChoice::Fused)
                .with_tolerance(0.0)
                .with_max_iterations(iterations);
            let mut solver = config.solver(Beta(beta), L1);
            allocation_counter::measure(|| {
                solver.run(&problem).unwrap();
            })
            .count_total
        };
        // The first run in a process also sets up what all of them share. A run also starts a
        // thread; rarely, if other tests run at the same time, that allocates once more.
        allocations(1);
        let fewest = |iterations| (0..3).map(|_| allocations(iterations)).min();
        assert_eq!(fewest(100), fewest(400), "β={beta}");
    }
}

#[test]
fn names_tell_what_is_fused() {
    for name in penalty::NAMES.split(", ") {
        let fused = penalty::by_name(name).unwrap().fused();
        assert_eq!(fused.is_none(), COUPLED.contains(&name), "{name}");
    }
    let beta = Beta(0.3).fused().and_then(|of| of.plain_beta());
    assert_eq!(beta, Some(0.3));
    // Relative differences are what the summary speaks of.
    assert_eq!(relative_difference(&[1.0, 2.0], &[1.0, 2.0]), 0.0);
}

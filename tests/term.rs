//! The fused data term against tensor operations: updates, errors, and hypergradients through
//! both factors, on every divergence, mask, span and scope.

mod common;

use std::sync::Arc;

use altbi::penalty::{Graph, Steps};
use altbi::threads::in_own_pool;
use altbi::update::Rule;
use altbi::{
    AltBiConfig, Beta, Bunch, BunchOver, Criterion, Divergence, EngineChoice, EngineUsed, Error,
    HeldOut, Hoyer, Hypergradient, L1, Mode, Normalization, Pair, Penalty, PenaltyTerm, Precision,
    Problem, Scope, Side, Smooth, Span, Split, SquaredL2, Training, Units,
};
use burn::tensor::Tensor;
use common::{assert_close, matrix};
use ndarray::Array2;

/// The smallest shapes, whole vectors and one more, more than a tile, more than a task.
const SHAPES: [[usize; 3]; 6] = [
    [4, 7, 2],
    [7, 9, 3],
    [16, 16, 5],
    [17, 33, 4],
    [70, 40, 6],
    [150, 23, 11],
];
const BETAS: [f64; 8] = [2.0, 1.0, 0.0, 0.5, 1.5, 3.0, -0.5, 0.3];

fn masks(n: usize, m: usize) -> [Option<Array2<f64>>; 3] {
    // No row and no column without an entry.
    let kept = |i: usize, j: usize| !(i + j).is_multiple_of(3) || (i * m + j).is_multiple_of(7);
    let speckled = Array2::from_shape_fn((n, m), |(i, j)| f64::from(u8::from(kept(i, j))));
    let weights = Array2::from_shape_fn((n, m), |(i, j)| {
        if kept(i, j) {
            0.5 + ((i + 2 * j) % 4) as f64
        } else {
            0.0
        }
    });
    [None, Some(speckled), Some(weights)]
}

fn problem(n: usize, m: usize, mask: Option<&Array2<f64>>, precision: Precision) -> Problem {
    let x = matrix(n, m, 0.3) * 3.0;
    let ones = Array2::ones((n, m));
    let mask = mask.unwrap_or(&ones);
    let held = mask.mapv(|weight| if weight == 0.0 { 1.0 } else { 0.0 });
    if held.sum() == 0.0 {
        return Problem::new(&x, precision).unwrap();
    }
    Problem::held_out(&x, mask, &held, precision).unwrap()
}

struct Setting {
    shape: [usize; 3],
    beta: f64,
    exponent: f64,
    span: Span,
    length: usize,
}

fn rules(setting: &Setting) -> [Rule; 2] {
    let rule = |side: Side, term: PenaltyTerm| {
        let terms = if setting.span.covers(side) {
            vec![term]
        } else {
            Vec::new()
        };
        let mut rule = Rule::new(Arc::new(Beta(setting.beta)), terms);
        rule.exponent = setting.exponent;
        rule
    };
    [
        rule(Side::W, PenaltyTerm::tuned(Smooth)),
        rule(Side::H, PenaltyTerm::tuned(L1)),
    ]
}

fn start(problem: &Problem, [n, m, r]: [usize; 3]) -> Pair {
    Pair {
        w: problem
            .tensor("W", &(matrix(n, r, 1.1) + 0.1), [n, r])
            .unwrap(),
        h: problem
            .tensor("H", &(matrix(m, r, 2.3) + 0.1), [m, r])
            .unwrap(),
    }
}

fn weights(problem: &Problem, setting: &Setting, scope: Scope) -> Vec<Tensor<2>> {
    let [n, m, r] = setting.shape;
    let sides = [(Side::W, n), (Side::H, m)];
    let covered = sides.iter().filter(|(side, _)| setting.span.covers(*side));
    let weights = covered.map(|(_, rows)| {
        let [a, b] = scope.shape(*rows, r);
        problem
            .tensor("λ", &(matrix(a, b, 0.9) * 0.3), [a, b])
            .unwrap()
    });
    weights.collect()
}

fn compare(what: &str, a: &Hypergradient, b: &Hypergradient, tolerance: f64) {
    assert_close(&format!("{what}: W"), &a.pair.w, &b.pair.w, tolerance);
    assert_close(&format!("{what}: H"), &a.pair.h, &b.pair.h, tolerance);
    let error = (a.outer_error - b.outer_error).abs() / b.outer_error.abs().max(1e-3);
    assert!(
        error <= tolerance,
        "{what}: E {} {}",
        a.outer_error,
        b.outer_error
    );
    assert_eq!(a.gradients.len(), b.gradients.len());
    for (a, b) in a.gradients.iter().zip(&b.gradients) {
        assert_close(&format!("{what}: dE/dλ"), a, b, tolerance);
    }
}

fn both(problem: &Problem, setting: &Setting, criterion: &Arc<dyn Criterion>) -> (Bunch, Bunch) {
    let [of_w, of_h] = rules(setting);
    let (span, length) = (setting.span, setting.length);
    let fused = Bunch::fused(
        problem,
        of_w.clone(),
        of_h.clone(),
        criterion.clone(),
        span,
        length,
    );
    let reference = Bunch::with_rules(problem, of_w, of_h, criterion.clone(), span, length);
    (fused.unwrap(), reference.unwrap())
}

#[test]
fn hypergradients_are_those_of_tensor_operations() {
    let mut compared = 0;
    for shape in SHAPES {
        let [n, m, _] = shape;
        for beta in BETAS {
            for mask in masks(n, m) {
                let problem = problem(n, m, mask.as_ref(), Precision::F64);
                let held_out = problem.held_out_weights().is_some();
                let criteria: [Arc<dyn Criterion>; 2] = [Arc::new(Training), Arc::new(HeldOut)];
                for criterion in criteria.iter().take(1 + usize::from(held_out)) {
                    for span in [Span::Both, Span::One(Side::W), Span::One(Side::H)] {
                        let exponent = if beta == 0.0 { 0.5 } else { 1.0 };
                        let setting = Setting {
                            shape,
                            beta,
                            exponent,
                            span,
                            length: 3,
                        };
                        let (fused, reference) = both(&problem, &setting, criterion);
                        let pair = start(&problem, shape);
                        let lambda = weights(&problem, &setting, Scope::Component);
                        let want = reference
                            .hypergradient(&pair, &lambda, Mode::Reverse)
                            .unwrap();
                        for mode in [Mode::Reverse, Mode::Adjoint, Mode::Forward] {
                            let got = fused.hypergradient(&pair, &lambda, mode).unwrap();
                            let what = format!("{shape:?} β = {beta} {span:?} {mode}");
                            compare(&what, &got, &want, 1e-10);
                            compared += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn every_scope_and_length_and_both_precisions() {
    let shape = [33, 21, 4];
    let mask = &masks(33, 21)[1];
    let criterion: Arc<dyn Criterion> = Arc::new(HeldOut);
    for (precision, tolerance) in [(Precision::F64, 1e-10), (Precision::F32, 2e-3)] {
        let problem = problem(33, 21, mask.as_ref(), precision);
        for scope in [Scope::Row, Scope::Shared, Scope::Component, Scope::Entry] {
            for (beta, length) in [(1.0, 1), (1.0, 10), (0.5, 4), (2.0, 4)] {
                let span = Span::Both;
                let setting = Setting {
                    shape,
                    beta,
                    exponent: 1.0,
                    span,
                    length,
                };
                let (fused, reference) = both(&problem, &setting, &criterion);
                let pair = start(&problem, shape);
                let lambda = weights(&problem, &setting, scope);
                let want = reference
                    .hypergradient(&pair, &lambda, Mode::Adjoint)
                    .unwrap();
                for mode in [Mode::Reverse, Mode::Adjoint] {
                    let got = fused.hypergradient(&pair, &lambda, mode).unwrap();
                    compare(
                        &format!("{scope:?} β = {beta} T = {length}"),
                        &got,
                        &want,
                        tolerance,
                    );
                }
            }
        }
    }
}

/// More rows than a task has, penalties of every kind on one factor (coupled ones, of which only
/// some are part of the update's own loops), all scopes, and one, two and three threads.
#[test]
fn many_tasks_and_many_penalties_are_those_of_tensor_operations() {
    let criterion: Arc<dyn Criterion> = Arc::new(HeldOut);
    for shape in [[2100, 70, 5], [70, 2100, 5]] {
        let [n, m, r] = shape;
        let problem = problem(n, m, masks(n, m)[1].as_ref(), Precision::F64);
        let ring = Graph::from_edges(n, (0..n).map(|i| (i, (i + 7) % n, 0.5))).unwrap();
        let divergence: Arc<dyn Divergence> = Arc::new(Beta(1.0));
        let of_w = Rule::new(
            divergence.clone(),
            vec![
                PenaltyTerm::tuned(Smooth),
                PenaltyTerm::tuned(SquaredL2),
                PenaltyTerm::fixed(Smooth, 0.2).unwrap(),
                PenaltyTerm::tuned(Steps::along_rows()),
                PenaltyTerm::tuned(ring),
            ],
        );
        let of_h = Rule::new(divergence, vec![PenaltyTerm::tuned(L1)]);
        let bunch = |fused: bool| {
            let [of_w, of_h] = [of_w.clone(), of_h.clone()];
            match fused {
                true => Bunch::fused(&problem, of_w, of_h, criterion.clone(), Span::Both, 3),
                false => Bunch::with_rules(&problem, of_w, of_h, criterion.clone(), Span::Both, 3),
            }
        };
        let [fused, reference] = [true, false].map(|fused| bunch(fused).unwrap());
        let pair = start(&problem, shape);
        for scope in [Scope::Row, Scope::Shared, Scope::Component, Scope::Entry] {
            let lambda = [n, n, n, n, m].map(|rows| {
                let [a, b] = scope.shape(rows, r);
                let lambda = matrix(a, b, 0.9) * 0.3;
                problem.tensor("λ", &lambda, [a, b]).unwrap()
            });
            let want = reference
                .hypergradient(&pair, &lambda, Mode::Reverse)
                .unwrap();
            for mode in [Mode::Reverse, Mode::Adjoint] {
                let what = format!("{shape:?} {scope:?} {mode}");
                let [one, two, three] = [1, 2, 3].map(|threads| {
                    let run = || fused.hypergradient(&pair, &lambda, mode);
                    in_own_pool(threads, run).unwrap().unwrap()
                });
                compare(&what, &one, &want, 1e-10);
                compare(&format!("{what}, two threads"), &two, &one, 0.0);
                compare(&format!("{what}, three threads"), &three, &one, 0.0);
            }
        }
    }
}

/// Rows and columns of zeros, and entries that go below every floor.
#[test]
fn zeros_and_floors_are_those_of_tensor_operations() {
    let (n, m, r) = (19, 18, 3);
    let mut x = matrix(n, m, 0.4);
    x.row_mut(3).fill(0.0);
    x.column_mut(5).fill(0.0);
    let problem = Problem::new(&x, Precision::F64).unwrap();
    let criterion: Arc<dyn Criterion> = Arc::new(Training);
    for beta in [2.0, 1.0, 0.5, 1.5] {
        let span = Span::Both;
        let setting = Setting {
            shape: [n, m, r],
            beta,
            exponent: 1.0,
            span,
            length: 4,
        };
        let (fused, reference) = both(&problem, &setting, &criterion);
        let mut w = matrix(n, r, 0.1);
        // (A whole row of zeros above data would be infinitely far from it.)
        w[[7, 1]] = 0.0;
        let mut pair = start(&problem, [n, m, r]);
        pair.w = problem.tensor("W", &w, [n, r]).unwrap();
        let lambda = weights(&problem, &setting, Scope::Component);
        let want = reference
            .hypergradient(&pair, &lambda, Mode::Reverse)
            .unwrap();
        for mode in [Mode::Reverse, Mode::Adjoint] {
            let got = fused.hypergradient(&pair, &lambda, mode).unwrap();
            compare(&format!("β = {beta}, {mode}"), &got, &want, 1e-10);
        }
    }
}

fn practical_like(rank: usize) -> AltBiConfig {
    AltBiConfig::new(rank)
        .with_bunch_over(BunchOver::Both)
        .with_bunch(5)
        .with_scope(Scope::Component)
        .with_units(Units::Relative)
        .with_normalize(Normalization::HRms)
        .with_warm_up(7)
        .with_lambda_step(altbi::LambdaStep::Adam(0.2))
        .with_max_iterations(12)
        .with_tolerance(0.0)
}

#[test]
fn runs_are_those_of_tensor_operations_for_any_number_of_threads() {
    // One task, and several.
    runs_are_those_of_tensor_operations(90, 60);
    runs_are_those_of_tensor_operations(1300, 70);
}

fn runs_are_those_of_tensor_operations(n: usize, m: usize) {
    let x = matrix(n, m, 0.8) * 4.0;
    let split = Problem::new(&x, Precision::F64)
        .unwrap()
        .speckled(0.1, 3)
        .unwrap();
    let run = |engine: EngineChoice, threads: usize, mode: Mode| {
        let terms = [
            (Side::W, PenaltyTerm::tuned(Smooth)),
            (Side::W, PenaltyTerm::tuned(SquaredL2)),
            (Side::H, PenaltyTerm::tuned(L1)),
        ];
        let config = practical_like(4).with_engine(engine).with_threads(threads);
        let mut solver = config
            .with_hypergradient(mode)
            .penalizing(Beta::KL, terms)
            .with_criterion(HeldOut);
        solver.run(&split).unwrap()
    };
    let tensors = run(EngineChoice::Autodiff, 1, Mode::Adjoint);
    assert_eq!(tensors.engine, EngineUsed::Autodiff);
    let fused = run(EngineChoice::Auto, 1, Mode::Adjoint);
    assert!(
        matches!(fused.engine, EngineUsed::Checked(agreement) if agreement.difference < 1e-11),
        "{:?}",
        fused.engine
    );
    assert_close("λ", &fused.lambda, &tensors.lambda, 1e-8);
    assert_close("W", &fused.w, &tensors.w, 1e-8);
    let reverse = run(EngineChoice::Fused, 2, Mode::Reverse);
    assert_close("λ", &reverse.lambda, &fused.lambda, 1e-9);
    for threads in [2, 3, 5] {
        let again = run(EngineChoice::Auto, threads, Mode::Adjoint);
        assert_eq!(again.w, fused.w, "{threads} threads");
        assert_eq!(again.lambda, fused.lambda, "{threads} threads");
    }
}

#[test]
fn what_cannot_be_fused_is_refused_by_name_or_runs_on_tensors() {
    let problem = Problem::new(&matrix(12, 9, 0.2), Precision::F64).unwrap();
    let run = |engine: EngineChoice| {
        let config = practical_like(2)
            .with_engine(engine)
            .with_hypergradient(Mode::FiniteDifferences);
        let terms = [(Side::H, PenaltyTerm::tuned(L1))];
        config.penalizing(Beta::KL, terms).run(&problem)
    };
    assert_eq!(
        run(EngineChoice::Auto).unwrap().engine,
        EngineUsed::Autodiff
    );
    let refused = run(EngineChoice::Fused)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(refused.contains("finite-differences"), "{refused}");
    // A penalty that knows nothing of any engine runs fused all the same.
    let config = practical_like(2).with_scope(Scope::Row);
    let terms = [(Side::W, PenaltyTerm::tuned(Hoyer))];
    let outcome = config.penalizing(Beta::KL, terms).run(&problem).unwrap();
    assert!(matches!(outcome.engine, EngineUsed::Checked(_)));
}

#[test]
fn a_joint_bunch_refuses_what_does_not_fit_it() {
    let shape = [9, 8, 3];
    let wide = problem(9, 8, None, Precision::F64);
    let narrow = problem(9, 8, None, Precision::F32);
    let criterion: Arc<dyn Criterion> = Arc::new(Training);
    let setting = Setting {
        shape,
        beta: 1.0,
        exponent: 1.0,
        span: Span::Both,
        length: 2,
    };
    let (fused, reference) = both(&wide, &setting, &criterion);
    let lambda = weights(&wide, &setting, Scope::Component);
    for bunch in [&fused, &reference] {
        let found = bunch.hypergradient(&start(&narrow, shape), &lambda, Mode::Reverse);
        assert!(matches!(found, Err(Error::Precision { what: "W", .. })));
        let narrow_lambda = weights(&narrow, &setting, Scope::Component);
        let found = bunch.hypergradient(&start(&wide, shape), &narrow_lambda, Mode::Reverse);
        assert!(matches!(found, Err(Error::Precision { what: "λ", .. })));
    }
    // Weighted by component, a penalty that mixes components is the gradient of nothing.
    let hoyer = Rule::new(Arc::new(Beta::KL), vec![PenaltyTerm::tuned(Hoyer)]);
    let plain = Rule::new(Arc::new(Beta::KL), Vec::new());
    let bunch = Bunch::with_rules(
        &wide,
        hoyer,
        plain.clone(),
        criterion.clone(),
        Span::Both,
        2,
    );
    let found = bunch
        .unwrap()
        .hypergradient(&start(&wide, shape), &lambda[..1], Mode::Reverse);
    assert!(matches!(found, Err(Error::ScopeUnsupported { .. })));
    // The divergence of H's rule has a domain, too.
    let mut x = matrix(9, 8, 0.2);
    x[[4, 5]] = 0.0;
    let zero = Problem::new(&x, Precision::F64).unwrap();
    let of_h = Rule::new(Arc::new(Beta::ITAKURA_SAITO), Vec::new());
    let (one, other) = (plain.clone(), of_h.clone());
    let found = Bunch::with_rules(&zero, plain, of_h, criterion.clone(), Span::Both, 2);
    assert!(matches!(
        found,
        Err(Error::OutsideDomain {
            row: 4,
            column: 5,
            ..
        })
    ));
    // A data term has one divergence.
    let found = Bunch::fused(&wide, one, other, criterion, Span::Both, 2);
    assert!(matches!(found, Err(Error::EngineUnsupported { .. })));
}

/// A penalty for maps of 4×3 pixels: it knows no other shape.
#[derive(Debug)]
struct Map;

impl Penalty for Map {
    fn name(&self) -> String {
        "map".into()
    }
    fn is_sum_over_entries(&self) -> bool {
        true
    }
    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        self.entries(w).unwrap().sum_dim(1)
    }
    fn entries(&self, w: &Tensor<2>) -> Option<Tensor<2>> {
        assert_eq!(w.dims()[0], 12, "only maps of 4×3 pixels");
        Some(w.clone() * w.clone() * 0.5)
    }
    fn split(&self, w: &Tensor<2>) -> Split {
        assert_eq!(w.dims()[0], 12, "only maps of 4×3 pixels");
        Split {
            positive: w.clone(),
            negative: w.zeros_like().slice([0..1, 0..1]),
        }
    }
}

#[test]
fn a_penalty_tied_to_a_shape_is_weighted_by_component() {
    // More entries than the engines are compared on: all rows are taken all the same.
    let problem = Problem::new(&matrix(12, 8000, 0.2), Precision::F64).unwrap();
    let terms = [(Side::W, PenaltyTerm::tuned(Map))];
    let outcome = practical_like(2)
        .penalizing(Beta::KL, terms)
        .run(&problem)
        .unwrap();
    let terms = [(Side::W, PenaltyTerm::tuned(SquaredL2))];
    let built_in = practical_like(2)
        .penalizing(Beta::KL, terms)
        .run(&problem)
        .unwrap();
    assert_close("λ", &outcome.lambda, &built_in.lambda, 1e-9);
}

/// Beside X, a hypergradient keeps 16 bytes for each entry of an updated factor.
#[test]
fn the_memory_of_a_hypergradient_is_that_of_its_states() {
    let [n, m, r] = [700, 300, 20];
    let problem = problem(n, m, None, Precision::F64);
    let criterion: Arc<dyn Criterion> = Arc::new(Training);
    for (mode, penalty, beta) in [
        (Mode::Adjoint, PenaltyTerm::tuned(Smooth), 1.0),
        (Mode::Reverse, PenaltyTerm::tuned(Smooth), 1.0),
        (Mode::Reverse, PenaltyTerm::tuned(L1), 1.0),
        (Mode::Adjoint, PenaltyTerm::tuned(Smooth), 2.0),
        (Mode::Reverse, PenaltyTerm::tuned(L1), 2.0),
        (Mode::Reverse, PenaltyTerm::tuned(L1), 0.0),
        (Mode::Adjoint, PenaltyTerm::tuned(L1), 0.0),
    ] {
        let peak = |length: usize| {
            let rule = |term: &PenaltyTerm| Rule::new(Arc::new(Beta(beta)), vec![term.clone()]);
            let [of_w, of_h] = [rule(&penalty), rule(&PenaltyTerm::tuned(L1))];
            let bunch = Bunch::fused(&problem, of_w, of_h, criterion.clone(), Span::Both, length);
            let bunch = bunch.unwrap();
            let setting = Setting {
                shape: [n, m, r],
                beta,
                exponent: 1.0,
                span: Span::Both,
                length,
            };
            let pair = start(&problem, setting.shape);
            let lambda = weights(&problem, &setting, Scope::Component);
            // (Memory is counted by threads. What the first pass leaves behind counts too.)
            let measured = in_own_pool(1, || {
                allocation_counter::measure(|| {
                    for _ in 0..2 {
                        bunch.hypergradient(&pair, &lambda, mode).unwrap();
                    }
                })
            });
            measured.unwrap().bytes_max as f64
        };
        let each = (peak(24) - peak(4)) / 20.0;
        let allowed = (16 * (n + m) * r) as f64;
        assert!(
            each <= 1.05 * allowed,
            "{mode} β = {beta}: {each} of {allowed} bytes"
        );
    }
}

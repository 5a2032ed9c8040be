//! Bunches over one factor or both, several tuned penalties, weights of every scope:
//! hypergradients by four modes with negative controls, and runs against the paper's.

mod common;

use std::sync::Arc;

use altbi::check::{MODES, check_bunch};
use altbi::data::benchmark_a;
use altbi::lambda::LambdaStep;
use altbi::penalty::{Graph, Steps};
use altbi::update::Rule;
use altbi::{
    AltBiConfig, Beta, Bunch, BunchOver, Checkpoint, Criterion, Error, GivenFactors, Group,
    HeldOut, L1, Method, Mode, Normalization, Observer, Outcome, Pair, Penalty, PenaltyTerm,
    Precision, Problem, Record, Scope, Side, Signal, Smooth, Span, SquaredL2, State, Training,
    Units, Verdict,
};
use burn::tensor::Tensor;
use common::distance;
use ndarray::Array2;

const N: usize = 7;
const M: usize = 5;
const RANK: usize = 3;

/// Numbers between 0.1 and 1.1 without pattern.
fn numbers(rows: usize, columns: usize, salt: usize) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| {
        let phase = (i * 31 + j * 17 + salt * 101) as f64;
        0.1 + (phase * 12.9898)
            .sin()
            .mul_add(43758.5453, 0.0)
            .rem_euclid(1.0)
    })
}

fn problem(held_out: bool) -> Problem {
    let x = numbers(N, M, 1) * 3.0;
    let problem = Problem::new(&x, Precision::F64).unwrap();
    if held_out {
        problem.speckled(0.2, 3).unwrap()
    } else {
        problem
    }
}

fn tensor(problem: &Problem, matrix: &Array2<f64>) -> Tensor<2> {
    let shape = [matrix.nrows(), matrix.ncols()];
    problem.tensor("a matrix", matrix, shape).unwrap()
}

fn pair(problem: &Problem) -> Pair {
    Pair {
        w: tensor(problem, &numbers(N, RANK, 2)),
        h: tensor(problem, &numbers(M, RANK, 3)),
    }
}

fn rule(beta: f64, penalties: Vec<Arc<dyn Penalty>>) -> Rule {
    let terms = penalties.into_iter().map(PenaltyTerm::tuned);
    Rule::new(Arc::new(Beta(beta)), terms.collect())
}

fn criterion(held_out: bool) -> Arc<dyn Criterion> {
    if held_out {
        Arc::new(HeldOut)
    } else {
        Arc::new(Training)
    }
}

/// Weights of a scope for each tuned term, of sensible size.
fn weights(problem: &Problem, bunch: &Bunch, scope: Scope) -> Vec<Tensor<2>> {
    let of = |rule: &Rule, rows: usize, salt: usize| {
        let tuned = rule.terms.iter().filter(|term| term.is_tuned()).enumerate();
        let [a, b] = scope.shape(rows, RANK);
        let weights = tuned.map(|(index, _)| tensor(problem, &numbers(a, b, salt + index)));
        weights.collect::<Vec<_>>()
    };
    let mut all = of(&bunch.of_w, N, 10);
    all.extend(of(&bunch.of_h, M, 20));
    all
}

#[test]
fn every_mode_agrees_on_every_span_and_scope() {
    let mut checked = 0;
    for beta in [2.0, 1.0, 0.0, 0.5] {
        for held_out in [false, true] {
            for scope in SCOPES {
                for span in [Span::Both, Span::One(Side::H), Span::One(Side::W)] {
                    let penalties: [Arc<dyn Penalty>; 4] = [
                        Arc::new(Smooth),
                        Arc::new(graph()),
                        Arc::new(Steps::along(graph())),
                        Arc::new(SquaredL2),
                    ];
                    for penalty in penalties {
                        let what = format!("{beta} {span:?} {}", penalty.name());
                        let of_w: Vec<Arc<dyn Penalty>> = vec![penalty, Arc::new(L1)];
                        let bunch = bunch(&problem(held_out), beta, span, of_w, held_out);
                        check_all(&bunch, held_out, scope, &what);
                        checked += 1;
                    }
                }
            }
        }
    }
    assert_eq!(checked, 4 * 2 * 4 * 3 * 4);
}

/// A ring with chords, of several strengths; one row has no neighbour.
fn graph() -> Graph {
    let edges = [
        (0, 1, 1.0),
        (1, 2, 0.5),
        (2, 3, 2.0),
        (3, 4, 1.0),
        (4, 0, 1.0),
        (0, 2, 0.3),
        (4, 6, 1.0),
    ];
    Graph::from_edges(N, edges).unwrap()
}

#[test]
fn a_chain_is_smoothness() {
    let chain = Graph::from_edges(N, (1..N).map(|i| (i - 1, i, 1.0))).unwrap();
    let (problem, lambda) = (problem(true), numbers(N, RANK, 5));
    let lambda = [
        tensor(&problem, &lambda),
        tensor(&problem, &numbers(M, RANK, 6)),
    ];
    let by = |penalty: Arc<dyn Penalty>| {
        let bunch = bunch(&problem, 1.0, Span::Both, vec![penalty], true);
        bunch
            .hypergradient(&pair(&problem), &lambda, Mode::Adjoint)
            .unwrap()
    };
    let (found, expected) = (by(Arc::new(chain)), by(Arc::new(Smooth)));
    for (a, b) in found.gradients.iter().zip(&expected.gradients) {
        common::assert_close("dE/dλ", a, b, 1e-12);
    }
}

#[test]
fn graphs_run_on_the_fused_data_term_and_go_downhill() {
    let x = numbers(30, 20, 4) * 3.0;
    let problem = Problem::new(&x, Precision::F64).unwrap();
    let terms = || {
        [
            (Side::W, PenaltyTerm::tuned(Graph::grid(5, 6))),
            (
                Side::H,
                PenaltyTerm::tuned(Graph::nearest(&problem, Side::H, 3).unwrap()),
            ),
        ]
    };
    let config = AltBiConfig::new(RANK)
        .with_bunch_over(BunchOver::Both)
        .with_scope(Scope::Component)
        .with_hypergradient(Mode::Adjoint)
        .with_max_iterations(8);
    let outcome = config
        .clone()
        .penalizing(Beta::KL, terms())
        .run(&problem)
        .unwrap();
    assert_eq!(outcome.engine.name(), "fused");
    assert!(outcome.engine.difference().unwrap() < 1e-10);
    let frozen = config
        .with_method(Method::Frozen)
        .with_exponent(altbi::Exponent::Monotone)
        .with_lambda(0.7)
        .with_max_iterations(40)
        .with_tolerance(0.0)
        .penalizing(Beta::KL, terms())
        .run(&problem)
        .unwrap();
    for pair in frozen.history.windows(2) {
        assert!(pair[1].objective <= pair[0].objective * (1.0 + 1e-12));
    }
    // A graph of another size is refused by name.
    let found = AltBiConfig::new(RANK)
        .solver(Beta::KL, Graph::grid(5, 5))
        .run(&problem);
    assert!(matches!(
        found,
        Err(Error::PenaltyRows {
            expected: 25,
            found: 30,
            ..
        })
    ));
}

const SCOPES: [Scope; 4] = [Scope::Row, Scope::Shared, Scope::Component, Scope::Entry];

/// Penalties on the factors that the span covers.
fn bunch(
    problem: &Problem,
    beta: f64,
    span: Span,
    of_w: Vec<Arc<dyn Penalty>>,
    held_out: bool,
) -> Bunch {
    let on = |side: Side, penalties: Vec<Arc<dyn Penalty>>| {
        let kept = if span.covers(side) {
            penalties
        } else {
            Vec::new()
        };
        rule(beta, kept)
    };
    let of_h: Vec<Arc<dyn Penalty>> = vec![Arc::new(SquaredL2)];
    let (of_w, of_h) = (on(Side::W, of_w), on(Side::H, of_h));
    Bunch::with_rules(problem, of_w, of_h, criterion(held_out), span, 3).unwrap()
}

/// Every comparison passes, and every planted mistake is found.
fn check_all(bunch: &Bunch, held_out: bool, scope: Scope, what: &str) {
    let problem = problem(held_out);
    let lambda = weights(&problem, bunch, scope);
    let report = check_bunch(bunch, &pair(&problem), &lambda, &MODES).unwrap();
    report.assert_consistent();
    for (_, verdict) in report.modes() {
        assert_eq!(verdict, Verdict::Pass, "{what} {scope:?} {report}");
    }
    for (_, verdict) in report.controls() {
        assert_eq!(verdict, Verdict::Mismatch, "{what} {scope:?} {report}");
    }
}

/// Weights of every scope, by the implicit mode and by long bunches.
#[test]
fn the_implicit_mode_knows_every_scope_of_one_factor() {
    let problem = problem(false);
    for (span, scope) in [Span::One(Side::W), Span::One(Side::H)]
        .into_iter()
        .flat_map(|span| SCOPES.map(|scope| (span, scope)))
    {
        let bunch = bunch(&problem, 1.0, span, vec![Arc::new(SquaredL2)], false);
        // Strong weights: their updates come to rest soon.
        let weak = weights(&problem, &bunch, scope);
        let lambda: Vec<Tensor<2>> = weak.into_iter().map(|weight| weight * 10.0).collect();
        let pair = pair(&problem);
        let implicit = bunch.hypergradient(&pair, &lambda, Mode::Implicit).unwrap();
        let long = bunch.with_length(4000).unwrap();
        let unrolled = long.hypergradient(&pair, &lambda, Mode::Adjoint).unwrap();
        let (found, expected) = (&implicit.gradients[0], &unrolled.gradients[0]);
        common::assert_close(&format!("{span:?} {scope:?}"), found, expected, 1e-8);
    }
    let bunch = bunch(&problem, 1.0, Span::Both, vec![Arc::new(SquaredL2)], false);
    let lambda = weights(&problem, &bunch, Scope::Shared);
    let refused = bunch.hypergradient(&pair(&problem), &lambda, Mode::Implicit);
    assert!(matches!(
        refused,
        Err(Error::ModeUnsupported {
            mode: "implicit",
            ..
        })
    ));
}

/// Penalising H is the transposed problem: the same run by two paths of the code, the
/// paper's solver with the fused engine and the joint one.
#[test]
fn penalising_h_is_the_papers_run_on_the_transposed_matrix() {
    let x = benchmark_a(30, 12, 3, 5).x;
    let transposed = x.t().to_owned();
    let config = AltBiConfig::new(3)
        .with_max_iterations(40)
        .with_tolerance(0.0);
    for (scope_step, method) in [
        (LambdaStep::InverseIteration, Method::AltBi),
        (LambdaStep::Adam(0.1), Method::AltBi),
        (LambdaStep::InverseIteration, Method::Frozen),
        (LambdaStep::InverseIteration, Method::PenalizedMu),
    ] {
        let config = config
            .clone()
            .with_lambda_step(scope_step)
            .with_method(method);
        let paper = config.solver(Beta::KL, L1).fit(&x).unwrap();
        let start = config.clone().solver(Beta::KL, L1);
        let problem = Problem::new(&x, Precision::F64).unwrap();
        let start = start.init(&problem).unwrap().factors;
        let mut turned = config
            .penalizing(Beta::KL, [(Side::H, PenaltyTerm::tuned(L1))])
            .with_factors(GivenFactors {
                w: Some(start.h.t().to_owned()),
                h: Some(start.w.t().to_owned()),
            });
        let turned = turned.fit(&transposed).unwrap();
        let close = |a: &Array2<f64>, b: &Array2<f64>| {
            let difference = distance(a, b);
            assert!(difference < 1e-7, "{method:?} {scope_step:?} {difference}");
        };
        close(&turned.w.t().as_standard_layout().to_owned(), &paper.h);
        close(&turned.h.t().as_standard_layout().to_owned(), &paper.w);
        close(&turned.lambda, &paper.lambda);
        assert_eq!(turned.weights()[0].lambda.dim(), (1, 30));
        assert_eq!(turned.weights()[0].side, Side::H);
    }
}

fn tuned(side: Side, penalty: impl Penalty + 'static) -> (Side, PenaltyTerm) {
    (side, PenaltyTerm::tuned(penalty))
}

fn both() -> AltBiConfig {
    AltBiConfig::new(3)
        .with_bunch_over(BunchOver::Both)
        .with_normalize(Normalization::HRms)
        .with_units(Units::Relative)
        .with_scope(Scope::Hierarchical(0.5))
        .with_lambda_step(LambdaStep::Adam(0.3))
        .with_warm_up(5)
        .with_max_iterations(12)
        .with_tolerance(0.0)
}

fn fitted(config: &AltBiConfig, problem: &Problem) -> Outcome {
    config
        .penalizing(Beta::KL, [tuned(Side::W, Smooth), tuned(Side::H, L1)])
        .with_criterion(HeldOut)
        .run(problem)
        .unwrap()
}

#[test]
fn relative_units_know_no_units() {
    let x = benchmark_a(40, 15, 3, 9).x;
    let run = |scale: f64| {
        let problem = Problem::new(&(&x * scale), Precision::F64).unwrap();
        fitted(&both(), &problem.speckled(0.1, 1).unwrap())
    };
    let (plain, scaled) = (run(1.0), run(1e4));
    let difference = distance(&scaled.lambda, &plain.lambda);
    assert!(difference < 1e-6, "{difference}");
    assert!(
        plain
            .lambda
            .iter()
            .any(|weight| (weight.ln() + 5.0).abs() > 0.5),
        "λ moved"
    );
    assert_eq!(plain.weights().len(), 2);
    assert_eq!(plain.weights()[0].lambda.dim(), (1, 3));
    assert_eq!(plain.weights()[1].lambda.dim(), (3, 1));
}

#[test]
fn normalised_rows_of_h_have_unit_size_at_the_start_of_a_bunch() {
    let problem = Problem::new(&benchmark_a(20, 9, 2, 9).x, Precision::F64).unwrap();
    let config = AltBiConfig::new(2).with_normalize(Normalization::HRms);
    let start = config.solver(Beta::KL, L1).init(&problem).unwrap();
    for row in start.factors.h.rows() {
        let mean = row.iter().map(|h| h * h).sum::<f64>() / row.len() as f64;
        assert!((mean - 1.0).abs() < 1e-12);
    }
}

/// Where a run stood, and how it had got there.
type Story = Arc<std::sync::Mutex<Option<(State, Vec<Record>)>>>;

struct StopAt(usize, Story, Vec<Record>);

impl Observer for StopAt {
    fn iterated(&mut self, record: &Record, state: &State) -> Signal {
        self.2.push(record.clone());
        if record.iteration == self.0 {
            *self.1.lock().unwrap() = Some((state.clone(), self.2.clone()));
            return Signal::Stop;
        }
        Signal::Continue
    }
}

#[test]
fn a_joint_run_goes_on_from_a_checkpoint_to_the_bit() {
    let problem = Problem::new(&benchmark_a(30, 12, 3, 2).x, Precision::F64).unwrap();
    let problem = problem.speckled(0.1, 4).unwrap();
    let solver = || {
        both()
            .penalizing(Beta::KL, [tuned(Side::W, Smooth), tuned(Side::H, L1)])
            .with_criterion(HeldOut)
    };
    let whole = solver().run(&problem).unwrap();
    let kept = Arc::new(std::sync::Mutex::new(None));
    let stopped = solver()
        .observe(StopAt(5, kept.clone(), Vec::new()))
        .run(&problem);
    let stopped = stopped.unwrap();
    let (state, history) = kept.lock().unwrap().take().unwrap();
    let checkpoint = Checkpoint::new("", "", &state, &stopped.lambda_at_start, &history);
    let checkpoint = Checkpoint::decode(&checkpoint.encode()).unwrap();
    let resumed = solver().resume(&problem, &checkpoint).unwrap();
    assert_eq!(
        (resumed.w, resumed.h, resumed.lambda),
        (whole.w, whole.h, whole.lambda)
    );
    // Of another number of weights.
    let mut other = both()
        .with_scope(Scope::Shared)
        .penalizing(Beta::KL, [tuned(Side::W, Smooth), tuned(Side::H, L1)])
        .with_criterion(HeldOut);
    assert!(other.resume(&problem, &checkpoint).is_err());
}

#[test]
fn what_cannot_be_is_refused_by_type() {
    let problem = Problem::new(&benchmark_a(12, 9, 2, 2).x, Precision::F64).unwrap();
    let refusal = |config: AltBiConfig, terms: Vec<(Side, PenaltyTerm)>| {
        config
            .penalizing(Beta::KL, terms)
            .run(&problem)
            .unwrap_err()
    };
    let config = || AltBiConfig::new(2).with_max_iterations(2);
    for scope in [Scope::Component, Scope::Entry] {
        let found = refusal(config().with_scope(scope), vec![tuned(Side::W, Group)]);
        assert!(matches!(found, Error::ScopeUnsupported { .. }), "{found}");
    }
    let found = refusal(config(), vec![tuned(Side::W, L1), tuned(Side::H, L1)]);
    assert!(matches!(found, Error::Conflict { .. }), "{found}");
    let hierarchical = config().with_scope(Scope::Hierarchical(0.5));
    let found = refusal(hierarchical, vec![tuned(Side::W, L1)]);
    assert!(matches!(found, Error::Conflict { .. }), "{found}");
    let implicit = config()
        .with_bunch_over(BunchOver::Both)
        .with_hypergradient(Mode::Implicit);
    let found = refusal(implicit, vec![tuned(Side::W, L1)]);
    assert!(matches!(found, Error::ModeUnsupported { .. }), "{found}");
    let given = config().with_scope(Scope::Component);
    let found = given
        .penalizing(Beta::KL, [tuned(Side::W, L1)])
        .with_lambda(Array2::ones((3, 1)))
        .run(&problem);
    assert!(matches!(found, Err(Error::Shape { .. })));
}

/// Every scope and method runs, and the weights have the shapes they promise.
#[test]
fn every_scope_runs() {
    let problem = Problem::new(&benchmark_a(25, 11, 3, 8).x, Precision::F64).unwrap();
    let problem = problem.speckled(0.1, 0).unwrap();
    for scope in [
        Scope::Row,
        Scope::Shared,
        Scope::Component,
        Scope::Entry,
        Scope::Hierarchical(0.5),
    ] {
        for method in [
            Method::AltBi,
            Method::Frozen,
            Method::Mu,
            Method::PenalizedMu,
        ] {
            let config = both().with_scope(scope).with_method(method);
            let outcome = fitted(&config, &problem);
            assert!(outcome.divergence.is_finite());
            let [rows, columns] = scope.shape(25, 3);
            assert_eq!(outcome.weights()[0].lambda.dim(), (rows, columns));
            let [rows, columns] = scope.shape(11, 3);
            assert_eq!(outcome.weights()[1].lambda.dim(), (columns, rows));
            let moved = outcome.lambda != outcome.lambda_at_start;
            assert_eq!(moved, method == Method::AltBi, "{scope:?} {method:?}");
            if method == Method::Mu {
                assert!(outcome.lambda.iter().all(|weight| *weight == 0.0));
            }
        }
    }
}

//! A sparse X is the same X: factors, errors and hypergradients against the same matrix with
//! every entry stored, with empty rows and columns, masks, held-out entries and thinned counts.

mod common;

use std::sync::Arc;

use altbi::criterion::{Entries, OuterError, Unseen};
use altbi::divergence::Outer;
use altbi::penalty::Graph;
use altbi::problem::Weights;
use altbi::update::Rule;
use altbi::{
    AltBiConfig, Beta, Bunch, BunchOver, Criterion, EngineChoice, EngineUsed, Error, HeldOut,
    Initial, L1, Measured, Mode, Pair, PenaltyTerm, Precision, Problem, Scope, Side, Smooth,
    SmoothedKl, Span, SparseMatrix, SquaredL2, Training, Zeros,
};
use burn::tensor::Tensor;
use common::{assert_close, matrix};
use ndarray::Array2;
use proptest::prelude::*;

const RANK: usize = 3;

/// Counts at about a fifth of the places; row 2 and column 1 are empty unless all are filled.
fn counts(n: usize, m: usize, salt: usize, filled: bool) -> SparseMatrix {
    let mut triplets = Vec::new();
    for i in 0..n {
        for j in 0..m {
            let hash = (i * 31 + j * 17 + i * j * 7 + salt * 13) % 97;
            let diagonal = filled && (i % m == j || j % n == i);
            let empty = !filled && (i == 2 || j == 1);
            if (hash < 20 || diagonal) && !empty {
                triplets.push((i as u32, j as u32, 1.0 + (hash % 5) as f64));
            }
        }
    }
    // In an order that no reader would choose.
    triplets.reverse();
    SparseMatrix::from_triplets([n, m], triplets).unwrap()
}

fn sparse(x: SparseMatrix, zeros: Zeros) -> Problem {
    Problem::sparse(x, zeros, None, Precision::F64).unwrap()
}

fn rules(beta: f64, span: Span) -> [Rule; 2] {
    let rule = |side: Side, term: PenaltyTerm| {
        let terms = if span.covers(side) {
            vec![term]
        } else {
            Vec::new()
        };
        Rule::new(Arc::new(Beta(beta)), terms)
    };
    [
        rule(Side::W, PenaltyTerm::tuned(Smooth)),
        rule(Side::H, PenaltyTerm::tuned(L1)),
    ]
}

fn start(problem: &Problem) -> Pair {
    let [n, m] = problem.shape();
    let (w, h) = (matrix(n, RANK, 1.1) + 0.1, matrix(RANK, m, 2.3) + 0.1);
    Pair::new(problem, &w, &h).unwrap()
}

fn weights(problem: &Problem, span: Span) -> Vec<Tensor<2>> {
    let sides = [Side::W, Side::H].into_iter();
    let sides = sides.filter(|side| span.covers(*side));
    let weight = |side: Side| {
        let values = matrix(1, RANK, if side == Side::W { 0.4 } else { 0.7 }) * 0.3;
        problem.tensor("λ", &values, [1, RANK]).unwrap()
    };
    sides.map(weight).collect()
}

/// Every mode on the sparse data term against reverse mode on tensors as large as X.
fn compare(what: &str, problem: &Problem, beta: f64, criterion: &Arc<dyn Criterion>) {
    let dense = problem.dense();
    for span in [Span::Both, Span::One(Side::W), Span::One(Side::H)] {
        let [of_w, of_h] = rules(beta, span);
        let pair = start(problem);
        let lambda = weights(problem, span);
        let of_sparse = Bunch::fused(
            problem,
            of_w.clone(),
            of_h.clone(),
            criterion.clone(),
            span,
            3,
        )
        .unwrap();
        let reference = Bunch::with_rules(&dense, of_w, of_h, criterion.clone(), span, 3).unwrap();
        let want = reference
            .hypergradient(&pair, &lambda, Mode::Reverse)
            .unwrap();
        for mode in [Mode::Reverse, Mode::Adjoint, Mode::Forward] {
            let got = of_sparse.hypergradient(&pair, &lambda, mode).unwrap();
            let what = format!("{what} β = {beta} {span:?} {mode}");
            assert_close(&format!("{what}: W"), &got.pair.w, &want.pair.w, 1e-10);
            assert_close(&format!("{what}: H"), &got.pair.h, &want.pair.h, 1e-10);
            let error = (got.outer_error - want.outer_error).abs() / want.outer_error.abs();
            assert!(
                error <= 1e-10,
                "{what}: E {} {}",
                got.outer_error,
                want.outer_error
            );
            for (got, want) in got.gradients.iter().zip(&want.gradients) {
                assert_close(&format!("{what}: dE/dλ"), got, want, 1e-10);
            }
        }
    }
}

fn criterion(over: Entries, outer: Option<Outer>) -> Arc<dyn Criterion> {
    match (over, outer) {
        (Entries::Training, None) => Arc::new(Training),
        (Entries::HeldOut, None) => Arc::new(HeldOut),
        (Entries::Training, Some(outer)) => Arc::new(Measured::new(Training, outer.divergence())),
        (Entries::HeldOut, Some(outer)) => Arc::new(Measured::new(HeldOut, outer.divergence())),
    }
}

#[test]
fn zeros_as_data_give_what_the_dense_matrix_gives() {
    let training = criterion(Entries::Training, None);
    for [n, m] in [[9, 7], [23, 41], [130, 20]] {
        let problem = sparse(counts(n, m, 0, false), Zeros::Data);
        // Closed forms, and what is streamed.
        for beta in [1.0, 2.0, 1.5, 3.0, 0.5] {
            compare(&format!("{n}×{m}"), &problem, beta, &training);
        }
        // Itakura-Saito cannot measure a zero, and says which one.
        let refused = problem.check_domain(&Beta(0.0)).unwrap_err();
        assert!(matches!(refused, Error::OutsideDomain { value, .. } if value == 0.0));
    }
}

#[test]
fn missing_zeros_are_left_out_under_every_divergence() {
    let training = criterion(Entries::Training, None);
    let problem = sparse(counts(23, 31, 1, true), Zeros::Missing);
    assert_eq!(problem.mask().unwrap().sum(), problem.x().stored() as f64);
    for beta in [1.0, 2.0, 0.0, 0.5, 1.5, -0.5, 3.0, 0.3] {
        compare("missing", &problem, beta, &training);
    }
    // A row of which nothing is stored is known from nothing.
    let empty = Problem::sparse(counts(9, 7, 0, false), Zeros::Missing, None, Precision::F64);
    assert!(matches!(empty, Err(Error::UnobservedRow { row: 2 })));
}

#[test]
fn masks_of_either_kind_weigh_what_they_say() {
    let x = counts(19, 23, 2, true);
    let some = Array2::from_shape_fn((19, 23), |(i, j)| [1.0, 0.0, 0.5, 1.0][(i + 2 * j) % 4]);
    let binary = some.mapv(|weight| f64::from(u8::from(weight > 0.0)));
    let of_stored = SparseMatrix::from_triplets(
        [19, 23],
        x.triplets()
            .map(|(i, j, x)| (i as u32, j as u32, 1.0 + x % 2.0))
            .collect(),
    )
    .unwrap();
    for mask in [
        Weights::from(some),
        Weights::from(binary),
        Weights::from(of_stored),
    ] {
        for zeros in [Zeros::Data, Zeros::Missing] {
            let problem =
                Problem::sparse(x.clone(), zeros, Some(mask.clone()), Precision::F64).unwrap();
            for beta in [1.0, 2.0, 1.5] {
                let training = criterion(Entries::Training, None);
                compare(&format!("masked, zeros {zeros}"), &problem, beta, &training);
            }
        }
    }
    let wrong = Weights::from(Array2::ones((2, 2)));
    let found = Problem::sparse(x, Zeros::Data, Some(wrong), Precision::F64);
    assert!(matches!(found, Err(Error::Shape { .. })));
}

#[test]
fn held_out_entries_and_thinned_counts_give_what_the_dense_matrix_gives() {
    let outers = [
        None,
        Some(Outer::Beta(Beta::FROBENIUS)),
        Some(Outer::SmoothedKl(SmoothedKl::HALF)),
    ];
    for zeros in [Zeros::Data, Zeros::Missing] {
        let whole = sparse(counts(29, 37, 3, true), zeros);
        for problem in [
            whole.speckled(0.1, 4).unwrap(),
            whole.thinned(0.2, 4).unwrap(),
        ] {
            for outer in outers {
                for over in [Entries::Training, Entries::HeldOut] {
                    for beta in [1.0, 2.0] {
                        let what = format!("zeros {zeros}, {over:?}, {outer:?}");
                        compare(&what, &problem, beta, &criterion(over, outer));
                    }
                }
            }
        }
    }
}

#[test]
fn held_out_zeros_have_the_weight_of_all_zeros() {
    // 3 % are stored: zeros in proportion would be thirty for each stored entry.
    let (n, m) = (200, 150);
    let triplets = (0..900).map(|k| {
        (
            (k * 7 % n) as u32,
            (k * 11 % m) as u32,
            1.0 + (k % 3) as f64,
        )
    });
    let mut triplets: Vec<(u32, u32, f64)> = triplets.collect();
    triplets.sort_by_key(|(i, j, _)| (*i, *j));
    triplets.dedup_by_key(|(i, j, _)| (*i, *j));
    let x = SparseMatrix::from_triplets([n, m], triplets).unwrap();
    let stored = x.stored();
    let whole = sparse(x.clone(), Zeros::Data);
    let problem = whole.speckled(0.2, 1).unwrap();
    let (mask, held_out) = (problem.mask().unwrap(), problem.held_out_weights().unwrap());
    let held: Vec<(usize, usize)> = held_out.places(|weight| weight > 0.0).collect();
    let of_stored = held.iter().filter(|(i, j)| x.get(*i, *j).is_some()).count();
    assert_eq!(of_stored, (0.2 * stored as f64).round() as usize);
    assert!(held.len() <= 5 * of_stored, "{} {of_stored}", held.len());
    // All zeros together weigh what they did: a fifth held out, the rest fitted.
    let zeros = (n * m - stored) as f64;
    let of_zeros: f64 = held
        .iter()
        .filter(|(i, j)| x.get(*i, *j).is_none())
        .map(|at| held_out[*at])
        .sum();
    assert!((of_zeros / (0.2 * zeros) - 1.0).abs() < 1e-12, "{of_zeros}");
    let fitted = mask.sum() - (stored - of_stored) as f64;
    assert!((fitted / (0.8 * zeros) - 1.0).abs() < 1e-12, "{fitted}");
    // Held-out entries are not fitted, and the seed decides which they are.
    assert!(held.iter().all(|at| mask[*at] == 0.0));
    let again = whole.speckled(0.2, 1).unwrap();
    assert_eq!(again.held_out_weights(), problem.held_out_weights());
    let other = whole.speckled(0.2, 2).unwrap();
    assert_ne!(other.held_out_weights(), problem.held_out_weights());
    // A denser matrix needs no weights: as many zeros as their share.
    let dense = sparse(counts(29, 37, 3, true), Zeros::Data)
        .speckled(0.1, 4)
        .unwrap();
    let weights = dense.held_out_weights().unwrap();
    assert!(
        weights
            .places(|weight| weight > 0.0)
            .all(|at| weights[at] == 1.0)
    );
}

#[test]
fn whole_runs_agree_and_are_compared_with_the_tape() {
    let x = counts(60, 45, 5, true);
    let problem = sparse(x, Zeros::Data);
    let dense = problem.dense();
    for (beta, bunch_over, scope) in [
        (1.0, BunchOver::One, Scope::Row),
        (2.0, BunchOver::One, Scope::Component),
        (1.0, BunchOver::Both, Scope::Component),
        (1.5, BunchOver::Both, Scope::Shared),
    ] {
        let mut config = AltBiConfig::new(RANK)
            .with_max_iterations(12)
            .with_tolerance(0.0);
        config.bunch_over = bunch_over;
        config.scope = scope;
        let run = |problem: &Problem| {
            let terms = [(Side::W, PenaltyTerm::tuned(SquaredL2))];
            config.penalizing(Beta(beta), terms).run(problem).unwrap()
        };
        let (found, expected) = (run(&problem), run(&dense));
        let far = |a: &Array2<f64>, b: &Array2<f64>| {
            let largest = b.iter().fold(0.0f64, |a, b| a.max(b.abs()));
            let apart = (a - b).iter().fold(0.0f64, |a, b| a.max(b.abs()));
            apart / largest
        };
        assert!(far(&found.w, &expected.w) < 1e-9, "β = {beta}");
        assert!(far(&found.h, &expected.h) < 1e-9, "β = {beta}");
        assert!(far(&found.lambda, &expected.lambda) < 1e-9, "β = {beta}");
        let apart = (found.relative_error / expected.relative_error - 1.0).abs();
        assert!(apart < 1e-9, "β = {beta}: {apart}");
        let apart = (found.paper_relative_error / expected.paper_relative_error - 1.0).abs();
        assert!(apart < 1e-9, "β = {beta}: {apart}");
        assert!(matches!(found.engine, EngineUsed::Checked(_)));
    }
}

/// Three iterations on the sparse data and by Burn's tape on tensors as large as X.
fn compare_with_the_tape(
    what: &str,
    problem: &Problem,
    config: &AltBiConfig,
    penalty: &PenaltyTerm,
    (beta, criterion): (f64, &Arc<dyn Criterion>),
) {
    let run = |engine: EngineChoice| {
        let terms = [(Side::W, penalty.clone())];
        let config = config.clone().with_max_iterations(3).with_engine(engine);
        let solver = config.penalizing(Beta(beta), terms).to_the_last_iteration();
        let mut solver = solver.with_shared_criterion(criterion.clone());
        solver.run(problem).unwrap()
    };
    let (found, expected) = (run(EngineChoice::Fused), run(EngineChoice::Autodiff));
    assert_eq!(found.engine, EngineUsed::Fused, "{what}");
    let far = |a: &Array2<f64>, b: &Array2<f64>| {
        let largest = b.iter().fold(1e-300f64, |a, b| a.max(b.abs()));
        (a - b).iter().fold(0.0f64, |a, b| a.max(b.abs())) / largest
    };
    // (Methods that do not tune have no steps.)
    let moved = |of: &altbi::Outcome| match config.method {
        altbi::Method::AltBi => &of.lambda - &of.lambda_at_start,
        _ => Array2::zeros((1, 1)),
    };
    let tuned = config.method == altbi::Method::AltBi;
    assert_eq!(moved(&found).iter().any(|by| *by != 0.0), tuned, "{what}");
    for (name, found, expected) in [
        ("W", &found.w, &expected.w),
        ("H", &found.h, &expected.h),
        ("steps of λ", &moved(&found), &moved(&expected)),
    ] {
        let apart = far(found, expected);
        assert!(apart < 1e-9, "{what}: {name} {apart:e}");
    }
    let numbers = |of: &altbi::Outcome, number: fn(&altbi::Record) -> f64| -> Array2<f64> {
        let column = of.history.iter().skip(1).map(number);
        column.map(|number| [number]).collect::<Vec<_>>().into()
    };
    // (At λ = 0 the terms of a hypergradient may cancel, so all iterations have one unit.)
    type Number = fn(&altbi::Record) -> f64;
    let records: [(&str, Number); 4] = [
        ("E", |of| of.outer_error),
        ("D", |of| of.divergence),
        ("objective", |of| of.objective),
        ("norm of dE/dλ", |of| of.hypergradient_norm),
    ];
    for (name, number) in records {
        let apart = far(&numbers(&found, number), &numbers(&expected, number));
        assert!(apart < 1e-9, "{what}: {name} {apart:e}");
    }
}

#[test]
fn rows_that_go_through_a_bunch_one_by_one_give_what_the_tape_gives() {
    let penalties = || -> Vec<PenaltyTerm> {
        vec![
            PenaltyTerm::tuned(L1),
            PenaltyTerm::tuned(SquaredL2),
            PenaltyTerm::tuned(altbi::Group),
            PenaltyTerm::tuned(altbi::SquaredL1),
            PenaltyTerm::tuned(altbi::Hoyer),
        ]
    };
    let x = || counts(26, 40, 3, true);
    let thinned = sparse(x(), Zeros::Data).thinned(0.3, 4).unwrap();
    let held_out = sparse(x(), Zeros::Data).speckled(0.2, 4).unwrap();
    let [training, unseen] =
        [Entries::Training, Entries::HeldOut].map(|over| criterion(over, None));
    let smoothed = criterion(Entries::HeldOut, Some(Outer::SmoothedKl(SmoothedKl(0.15))));
    for (rank, length) in [(1, 1), (3, 2), (5, 4), (9, 3), (20, 4)] {
        let config = AltBiConfig::new(rank).with_bunch(length).with_lambda(0.3);
        for penalty in penalties() {
            let name = penalty.penalty.name();
            // (With one component its value is 1 for every row, and all derivatives are rounding.)
            if (rank, name.as_str()) == (1, "hoyer") {
                continue;
            }
            for (problem, beta, criterion) in [
                (&sparse(x(), Zeros::Data), 1.0, &training),
                (&sparse(x(), Zeros::Data), 2.0, &training),
                (&sparse(x(), Zeros::Missing), 1.0, &training),
                (&sparse(x(), Zeros::Missing), 2.0, &training),
                (&sparse(x(), Zeros::Missing), 0.0, &training),
                (&sparse(x(), Zeros::Missing), 0.5, &training),
                (&sparse(x(), Zeros::Missing), 3.0, &training),
                (&held_out, 1.0, &unseen),
                (&held_out, 2.0, &unseen),
                (&thinned, 1.0, &unseen),
                (&thinned, 1.0, &smoothed),
                (&thinned, 2.0, &unseen),
                // (With an empty row and an empty column.)
                (
                    &sparse(counts(26, 40, 3, false), Zeros::Data),
                    1.0,
                    &training,
                ),
                (
                    &sparse(counts(26, 40, 3, false), Zeros::Data),
                    2.0,
                    &training,
                ),
            ] {
                let what = format!("r = {rank}, T = {length}, {name}, β = {beta}");
                compare_with_the_tape(&what, problem, &config, &penalty, (beta, criterion));
            }
        }
        for method in [
            altbi::Method::Mu,
            altbi::Method::MuT,
            altbi::Method::PenalizedMu,
            altbi::Method::Frozen,
        ] {
            let config = AltBiConfig::new(rank)
                .with_bunch(length)
                .with_method(method);
            let problem = sparse(x(), Zeros::Data);
            let l1 = PenaltyTerm::tuned(L1);
            compare_with_the_tape(
                &method.to_string(),
                &problem,
                &config,
                &l1,
                (1.0, &training),
            );
        }
    }
    let forward = AltBiConfig::new(5)
        .with_lambda(0.3)
        .with_hypergradient(Mode::Forward);
    let l1 = PenaltyTerm::tuned(L1);
    let problem = sparse(x(), Zeros::Data);
    compare_with_the_tape("forward", &problem, &forward, &l1, (1.0, &training));
    // A row with more entries than the loops gather.
    let triplets =
        (0..1500u32).flat_map(|j| [(0, j, 1.0 + f64::from(j % 4)), (1 + j % 11, j, 2.0)]);
    let long = SparseMatrix::from_triplets([12, 1500], triplets.collect()).unwrap();
    let config = AltBiConfig::new(9).with_lambda(0.3);
    for (zeros, beta) in [
        (Zeros::Data, 1.0),
        (Zeros::Data, 2.0),
        (Zeros::Missing, 0.0),
    ] {
        let problem = sparse(long.clone(), zeros);
        compare_with_the_tape("long rows", &problem, &config, &l1, (beta, &training));
    }
}

#[test]
fn starts_graphs_and_the_reference_take_a_sparse_matrix() {
    for zeros in [Zeros::Data, Zeros::Missing] {
        let problem = sparse(counts(30, 25, 6, true), zeros);
        let dense = problem.dense();
        let mut config = AltBiConfig::new(RANK).with_max_iterations(3);
        config.initial = Initial::Nndsvda;
        let run = |problem: &Problem, engine| {
            let mut config = config.clone();
            config.engine = engine;
            config.solver(Beta::KL, L1).run(problem).unwrap()
        };
        let found = run(&problem, EngineChoice::Fused);
        let expected = run(&dense, EngineChoice::Fused);
        let apart = (&found.w - &expected.w)
            .iter()
            .fold(0.0f64, |a, b| a.max(b.abs()));
        assert!(apart < 1e-8, "zeros {zeros}: {apart}");
        let by_tensors = run(&problem, EngineChoice::Autodiff);
        let apart = (&by_tensors.w - &found.w)
            .iter()
            .fold(0.0f64, |a, b| a.max(b.abs()));
        assert!(apart < 1e-8, "zeros {zeros}: {apart}");
        for side in [Side::W, Side::H] {
            for problem in [problem.clone(), problem.speckled(0.2, 3).unwrap()] {
                let found = Graph::nearest(&problem, side, 2).unwrap();
                let expected = Graph::nearest(&problem.dense(), side, 2).unwrap();
                assert_eq!(found.vertices(), expected.vertices());
                let edges = |graph: &Graph| graph.edges().collect::<Vec<_>>();
                assert_eq!(edges(&found), edges(&expected), "{side:?} {zeros}");
            }
        }
    }
}

#[test]
fn a_row_that_is_fitted_all_but_perfectly_keeps_its_digits() {
    // X = WH on all but one entry, with disjoint supports: D is what that entry makes it.
    let (n, m) = (40, 30);
    let mut triplets = Vec::new();
    for i in 0..n {
        for j in (i % 3..m).step_by(3) {
            triplets.push((i as u32, j as u32, 1000.0));
        }
    }
    triplets[0].2 += 1e-2;
    let x = SparseMatrix::from_triplets([n, m], triplets).unwrap();
    let problem = sparse(x, Zeros::Data);
    let on = |k: usize, i: usize, value: f64| if i % 3 == k { value } else { 0.0 };
    let w = Array2::from_shape_fn((n, 3), |(i, k)| on(k, i, 1000.0));
    let h = Array2::from_shape_fn((3, m), |(k, j)| on(k, j, 1.0));
    let pair = Pair::new(&problem, &w, &h).unwrap();
    for (beta, expected) in [(2.0, 0.5e-4), (1.0, 1e-4 / 2000.0)] {
        let [of_w, of_h] = rules(beta, Span::Both);
        let bunch = Bunch::fused(&problem, of_w, of_h, Arc::new(Training), Span::Both, 1).unwrap();
        let found = bunch.outer_error(&pair);
        assert!((found / expected - 1.0).abs() < 1e-4, "β = {beta}: {found}");
    }
}

/// Two groups of rows, each with columns of its own. In some rows the columns of the other group are
/// missing, so nearly all that its component has is in gaps: the sum over all entries minus that over
/// the gaps has no digits.
#[test]
fn denominators_that_cancel_are_those_of_the_dense_matrix() {
    let (n, m) = (60, 12);
    let entry = |i: usize, j: usize| match (i % 2, j < 6) {
        (0, true) => (i * 7 % 29 + 1) * (1 + j % 3) + (i + j) % 3,
        (1, false) => (i * 5 % 9 + 1) * (1 + j % 4) + (i * j) % 3,
        _ => 0,
    };
    let is_gap = |i: usize, j: usize| match i {
        4 | 18 => j >= 6,
        3 | 17 => j < 6,
        _ => false,
    };
    let mask = Array2::from_shape_fn((n, m), |(i, j)| f64::from(u8::from(!is_gap(i, j))));
    let x = Array2::from_shape_fn((n, m), |(i, j)| entry(i, j) as f64);
    let stored = x.indexed_iter().filter(|(_, x)| **x > 0.0);
    let stored = stored.map(|((i, j), x)| (i as u32, j as u32, *x)).collect();
    let stored = SparseMatrix::from_triplets([n, m], stored).unwrap();
    let weights = Some(Weights::from(mask.clone()));
    let sparse = Problem::sparse(stored, Zeros::Data, weights, Precision::F64).unwrap();
    let dense = Problem::masked(&x, &mask, Precision::F64).unwrap();
    let methods = [
        (altbi::Method::Mu, BunchOver::One),
        (altbi::Method::AltBi, BunchOver::One),
        (altbi::Method::AltBi, BunchOver::Both),
    ];
    for (method, over) in methods {
        for (beta, seed) in [(1.0, 0), (1.0, 1), (1.0, 2), (1.0, 3), (2.0, 0)] {
            let fit = |problem: &Problem, engine: EngineChoice| {
                let config = AltBiConfig::new(2)
                    .with_method(method)
                    .with_bunch_over(over);
                let config = config.with_max_iterations(20).with_tolerance(0.0);
                let config = config.with_seed(seed).with_engine(engine);
                let mut solver = config.solver(Beta(beta), L1);
                solver.run(problem).unwrap().divergence
            };
            let expected = fit(&dense, EngineChoice::Autodiff);
            for (kind, problem) in [("dense", &dense), ("sparse", &sparse)] {
                let found = fit(problem, EngineChoice::Fused);
                let what = format!("{method} {over:?} β = {beta} seed {seed}, {kind}");
                let apart = (found / expected - 1.0).abs();
                assert!(apart < 1e-6, "{what}: {found} {expected}");
            }
        }
    }
}

/// The same for hypergradients, with a component that is all but missing in every fourth row.
#[test]
fn hypergradients_through_what_cancels_are_those_of_the_dense_matrix() {
    let (n, m) = (12, 10);
    let mask = Array2::from_shape_fn((n, m), |(i, j)| f64::from(u8::from(j > 0 || i % 4 > 0)));
    let x = counts(n, m, 2, true);
    let problem = Problem::sparse(x, Zeros::Data, Some(Weights::from(mask)), Precision::F64);
    let problem = problem.unwrap();
    let dense = problem.dense();
    // (With these scales w h is of usual size in rows where h is tiny.)
    for (beta, span, tiny, large, weight) in [
        (1.0, Span::Both, 1e-9, 1e8, 0.1),
        (1.0, Span::Both, 1e-20, 1e19, 0.1),
        (1.0, Span::One(Side::W), 1e-20, 0.5, 1e-22),
        (2.0, Span::One(Side::W), 1e-9, 0.5, 1e-22),
        (2.0, Span::One(Side::W), 1e-20, 0.5, 1e-22),
    ] {
        let mut h = matrix(RANK, m, 2.3) + 0.1;
        h.row_mut(0).fill(tiny);
        h[[0, 0]] = 2.8;
        let mut w = matrix(n, RANK, 1.1) + 0.1;
        (0..n).step_by(4).for_each(|i| w[[i, 0]] = large);
        let pair = Pair::new(&problem, &w, &h).unwrap();
        let rule = |terms| Rule::new(Arc::new(Beta(beta)), terms);
        let (tuned, plain) = (rule(vec![PenaltyTerm::tuned(L1)]), rule(Vec::new()));
        let (of_w, of_h, rows) = match span {
            Span::Both => (plain, tuned, m),
            _ => (tuned, plain, n),
        };
        let lambda = Array2::from_elem((rows, 1), weight);
        let lambda = [problem.tensor("λ", &lambda, [rows, 1]).unwrap()];
        let (training, parts) = (Arc::new(Training), (of_w.clone(), of_h.clone()));
        let fused = Bunch::fused(&problem, of_w, of_h, training.clone(), span, 3).unwrap();
        let tensors = Bunch::with_rules(&dense, parts.0, parts.1, training, span, 3).unwrap();
        let want = tensors
            .hypergradient(&pair, &lambda, Mode::Reverse)
            .unwrap();
        for mode in [Mode::Reverse, Mode::Adjoint, Mode::Forward] {
            let got = fused.hypergradient(&pair, &lambda, mode).unwrap();
            let what = format!("β = {beta} {span:?} {tiny:e} {mode}");
            assert_close(&what, &got.gradients[0], &want.gradients[0], 1e-10);
        }
    }
}

#[test]
fn what_would_need_every_entry_of_a_large_matrix_is_refused() {
    let triplets = (0..500u32).map(|k| (k * 79, k * 61, 1.0 + f64::from(k % 3)));
    let x = SparseMatrix::from_triplets([40_000, 31_000], triplets.collect()).unwrap();
    let problem = sparse(x, Zeros::Data);
    let mut config = AltBiConfig::new(2).with_max_iterations(2);
    config.engine = EngineChoice::Autodiff;
    let refused = config.solver(Beta::KL, L1).run(&problem);
    assert!(matches!(refused, Err(Error::SparseUnsupported { .. })));
    config.engine = EngineChoice::Auto;
    config.solver(Beta::KL, L1).run(&problem).unwrap();
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let problem = sparse(counts(300, 200, 8, true), Zeros::Data)
        .speckled(0.1, 0)
        .unwrap();
    let run = |threads: usize| {
        let mut config = AltBiConfig::new(5).with_max_iterations(5);
        config.threads = threads;
        let mut solver = config.solver(Beta::KL, L1).with_criterion(HeldOut);
        solver.run(&problem).unwrap()
    };
    let (one, four) = (run(1), run(4));
    assert_eq!((one.w, one.h, one.lambda), (four.w, four.h, four.lambda));
}

#[test]
fn the_data_decide_on_counts_of_a_sparse_matrix_too() {
    let problem = sparse(counts(30, 25, 6, true), Zeros::Data);
    let outer = OuterError::default().for_data(&problem, &Beta::KL);
    assert_eq!(outer.unseen, Unseen::Counts(0.1));
    let split = outer.split(&problem, 0).unwrap();
    assert!(split.is_sparse() && split.second().unwrap().as_sparse().is_some());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Random sparse problems, empty rows and columns among them.
    #[test]
    fn random_problems_agree_with_the_dense_ones(
        n in 2usize..24,
        m in 2usize..24,
        places in prop::collection::vec((0usize..24, 0usize..24, 1u32..9), 1..60),
        beta in prop::sample::select(vec![1.0, 2.0, 1.5]),
        hold_out in any::<bool>(),
    ) {
        let mut triplets: Vec<(u32, u32, f64)> = places
            .into_iter()
            .map(|(i, j, x)| ((i % n) as u32, (j % m) as u32, f64::from(x)))
            .collect();
        triplets.sort_by_key(|(i, j, _)| (*i, *j));
        triplets.dedup_by_key(|(i, j, _)| (*i, *j));
        let whole = sparse(SparseMatrix::from_triplets([n, m], triplets).unwrap(), Zeros::Data);
        let (problem, over) = match whole.speckled(0.2, 7) {
            Ok(problem) if hold_out => (problem, Entries::HeldOut),
            _ => (whole, Entries::Training),
        };
        compare("random", &problem, beta, &criterion(over, None));
    }
}

/// The command, from a file to a report.
mod command {
    use super::common::command::{Folder, altbi, complaint, stdout};
    use super::counts;
    use altbi::data::matrix_market;
    use serde_json::Value;

    fn data(folder: &Folder, name: &str) -> String {
        folder.text(name, matrix_market(&counts(40, 30, 9, true)).as_bytes())
    }

    fn summary(folder: &Folder, run: &str) -> Value {
        let text = std::fs::read_to_string(folder.path(&format!("{run}/summary.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_sparse_file_is_fitted_reported_and_repeated() {
        let folder = Folder::new();
        let (x, run) = (data(&folder, "x.mtx"), folder.path("run"));
        let flags = ["--rank", "3", "--max-iter", "6", "--tol", "0"];
        let fit = |more: &[&str]| altbi(&[&["fit", &x], &flags[..], more].concat());
        let text = stdout(&fit(&["--out", &run, "--criterion", "thinned:0.2"]));
        assert!(
            text.contains("the others are zeros (--zeros data)"),
            "{text}"
        );
        let found = summary(&folder, "run");
        assert_eq!(found["sparse"]["zeros"], "data");
        assert_eq!(found["sparse"]["stored"], counts(40, 30, 9, true).stored());
        for name in ["thinned.mtx", "report.html", "W.npy"] {
            assert!(folder.0.path().join("run").join(name).exists(), "{name}");
        }
        let again = folder.path("again");
        let config = folder.path("run/config.toml");
        stdout(&altbi(&["fit", "--config", &config, "--out", &again]));
        let bytes = |run: &str| std::fs::read(folder.path(&format!("{run}/W.npy"))).unwrap();
        assert_eq!(bytes("run"), bytes("again"));
        let text = stdout(&fit(&["--zeros", "missing", "--divergence", "is"]));
        assert!(text.contains("missing (--zeros missing)"), "{text}");
    }

    /// A run that ends in its middle with a checkpoint: an interrupt after some iterations.
    #[cfg(unix)]
    #[test]
    fn an_interrupted_run_on_thinned_counts_goes_on_to_the_same_bits() {
        use std::process::{Command, Stdio};
        use std::time::Duration;

        let folder = Folder::new();
        let x = data(&folder, "x.mtx");
        let iterations = "4000";
        let flags = |out: &str| {
            let flags = [
                "fit",
                &x,
                "--rank",
                "3",
                "--criterion",
                "thinned:0.2",
                "--max-iter",
                iterations,
                "--tol",
                "0",
                "--checkpoint-every",
                "1",
                "--quiet",
                "--out",
                out,
            ];
            flags.map(String::from)
        };
        let [whole, broken] = ["whole", "broken"].map(|name| folder.path(name));
        stdout(&altbi(&flags(&whole).each_ref().map(String::as_str)));
        let mut child = Command::new(env!("CARGO_BIN_EXE_altbi"))
            .args(flags(&broken))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let checkpoint = folder.0.path().join("broken/checkpoint");
        while !checkpoint.exists() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let id = child.id().to_string();
        let signal = Command::new("kill").args(["-INT", &id]).status();
        assert!(signal.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert!(checkpoint.exists());
        stdout(&altbi(&["resume", &broken, "--quiet"]));
        assert!(!checkpoint.exists());
        for name in ["W.npy", "H.npy", "lambda.npy", "thinned.mtx"] {
            let bytes = |run: &str| std::fs::read(folder.path(&format!("{run}/{name}"))).unwrap();
            assert!(bytes("whole") == bytes("broken"), "{name}");
        }
        let history = |run: &str| {
            let path = folder.path(&format!("{run}/history.csv"));
            let text = std::fs::read_to_string(path).unwrap();
            // (All but the seconds.)
            let row = |line: &str| line.rsplit_once(',').unwrap().0.to_owned();
            text.lines().map(row).collect::<Vec<_>>()
        };
        assert_eq!(history("whole"), history("broken"));
        assert_eq!(history("whole").len(), 4002);
    }

    #[test]
    fn the_preset_compare_gradcheck_and_bias_take_it() {
        let folder = Folder::new();
        let x = data(&folder, "x.mtx");
        let text = stdout(&altbi(&["fit", &x, "--rank", "2", "--preset", "practical"]));
        assert!(text.contains("thinned:0.1"), "{text}");
        let text = stdout(&altbi(&[
            "compare",
            &x,
            "--rank",
            "2",
            "--penalize",
            "h",
            "--runs",
            "1",
            "--rivals",
            "practical,plain,path",
        ]));
        assert!(text.contains("practical"), "{text}");
        stdout(&altbi(&["gradcheck", &x, "--rank", "2"]));
        stdout(&altbi(&["bias", &x, "--rank", "2", "--warm-up", "3"]));
    }

    #[test]
    fn what_is_wrong_with_sparse_data_is_said() {
        let folder = Folder::new();
        let x = data(&folder, "x.mtx");
        let (code, text) = complaint(&altbi(&["fit", &x, "--rank", "2", "--divergence", "is"]));
        assert_eq!(code, Some(2));
        assert!(text.contains("column") && text.contains("is 0"), "{text}");
        let dense = folder.npy("x.npy", &counts(40, 30, 9, true).to_dense());
        let (code, text) = complaint(&altbi(&[
            "fit", &dense, "--rank", "2", "--zeros", "missing",
        ]));
        assert_eq!(code, Some(2));
        assert!(text.contains("--mask"), "{text}");
        let twice = folder.text(
            "twice.mtx",
            b"%%MatrixMarket matrix coordinate integer general\n2 2 3\n1 1 1\n2 2 1\n1 1 2\n",
        );
        let (code, text) = complaint(&altbi(&["fit", &twice, "--rank", "1"]));
        assert_eq!(code, Some(2));
        assert!(text.contains("row 0, column 0"), "{text}");
    }
}

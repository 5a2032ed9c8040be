//! Properties that hold for all numbers: monotonicity, symmetries, zeros, reproducibility,
//! recovery.

mod common;

use std::sync::{Arc, Mutex};

use altbi::metrics::recovery;
use altbi::update::Rule;
use altbi::{
    AltBiConfig, Beta, Bunch, Checkpoint, CheckpointFault, Divergence, EngineChoice, Error,
    Exponent, GivenFactors, Hoyer, L1, LambdaStep, Method, Mode, Normalization, Pair, Penalty,
    PenaltyTerm, Precision, Problem, Record, Side, Signal, Span, Split, SquaredL2, State,
    StopReason, ToMatrix, Training, penalty,
};
use burn::tensor::Tensor;
use common::{assert_close, matrix, problem};
use ndarray::{Array2, Axis, array, s};

/// Both sides of every special case, and the cases themselves.
const BETAS: [f64; 7] = [3.0, 2.0, 1.5, 1.0, 0.5, 0.0, -0.5];

/// The objective of a run never rises by more than rounding.
#[track_caller]
fn assert_monotone(what: &str, history: &[Record]) {
    for pair in history.windows(2) {
        let rise = pair[1].objective - pair[0].objective;
        let scale = history[0].objective.abs();
        assert!(
            rise <= 1e-13 * scale,
            "{what}: rises by {rise:e} in iteration {}",
            pair[1].iteration
        );
    }
}

#[test]
fn with_the_monotone_exponent_the_objective_never_rises() {
    let x = matrix(14, 11, 0.21) * 3.0;
    for beta in BETAS {
        let base = AltBiConfig::new(3)
            .with_exponent(Exponent::Monotone)
            .with_max_iterations(60)
            .with_tolerance(0.0);
        for seed in 0..2 {
            let config = base.clone().with_seed(seed);
            let plain = config
                .clone()
                .with_method(Method::MuT)
                .solver(Beta(beta), L1)
                .fit(&x)
                .unwrap();
            assert_monotone(&format!("β={beta}"), &plain.history);
            for name in ["l1", "l2", "group", "l21", "smooth"] {
                for lambda in [0.1, 3.0, 100.0] {
                    let penalised = config
                        .clone()
                        .with_method(Method::PenalizedMu)
                        .with_lambda(lambda)
                        .solver(Beta(beta), penalty::by_name(name).unwrap())
                        .fit(&x)
                        .unwrap();
                    let what = format!("β={beta} {name} λ={lambda}");
                    assert_monotone(&what, &penalised.history);
                }
            }
        }
    }
}

/// The exponent must know the penalty: with the divergence's own exponent alone
/// (γ = 1 for KL) a strong ½‖w‖² makes the updates overshoot.
#[test]
fn the_divergences_own_exponent_is_not_enough_under_squared_l2() {
    let problem = problem(&(matrix(14, 11, 0.21) * 3.0));
    let start = Pair::new(&problem, &matrix(14, 3, 0.5), &matrix(3, 11, 0.8)).unwrap();
    let lambda = problem
        .tensor("λ", &Array2::from_elem((14, 1), 1e4), [14, 1])
        .unwrap();
    let term = PenaltyTerm::tuned(SquaredL2);
    let literal = Rule::new(Arc::new(Beta::KL), vec![term]);
    assert_eq!(literal.exponent, 1.0);
    let monotone = literal.clone().monotone().unwrap();
    assert_eq!(monotone.exponent, 0.5);
    let rises = |rule: Rule| {
        let of_h = Rule::new(Arc::new(Beta::KL), Vec::new());
        let (training, span) = (Arc::new(Training), Span::One(Side::W));
        let bunch = Bunch::with_rules(&problem, rule, of_h, training, span, 1).unwrap();
        let lambda = [lambda.clone()];
        let mut pair = start.clone();
        let mut objectives = Vec::new();
        for _ in 0..=20 {
            objectives.push(bunch.outer_error(&pair) + bunch.penalty(&pair, &lambda));
            pair = bunch.run(&pair, &lambda);
        }
        let rises = |pair: &&[f64]| pair[1] > pair[0] * (1.0 + 1e-12);
        objectives.windows(2).filter(rises).count()
    };
    assert!(rises(literal) >= 5);
    assert_eq!(rises(monotone), 0);
    let refused = AltBiConfig::new(2)
        .with_exponent(Exponent::Monotone)
        .solver(Beta::KL, Hoyer)
        .fit(&matrix(5, 5, 0.1));
    assert!(matches!(refused, Err(Error::NoMonotoneExponent { part }) if part == "hoyer"));
}

#[test]
fn lambda_zero_is_mu_t_to_the_bit() {
    let x = matrix(10, 8, 0.33);
    let engines = [EngineChoice::Autodiff, EngineChoice::Fused];
    for (beta, engine) in [2.0, 1.0, 0.5]
        .into_iter()
        .flat_map(|beta| engines.map(|e| (beta, e)))
    {
        for name in ["l1", "l2", "group", "l21", "hoyer", "smooth"] {
            if name == "smooth" && engine == EngineChoice::Fused {
                continue;
            }
            let config = AltBiConfig::new(3)
                .with_engine(engine)
                .with_max_iterations(30)
                .with_tolerance(0.0);
            let penalty = penalty::by_name(name).unwrap();
            let fit =
                |config: AltBiConfig| config.solver(Beta(beta), penalty.clone()).fit(&x).unwrap();
            for exponent in [Exponent::One, Exponent::Monotone] {
                if name == "hoyer" && exponent == Exponent::Monotone {
                    continue;
                }
                let config = config.clone().with_exponent(exponent);
                let plain = fit(config.clone().with_method(Method::MuT));
                let zero = fit(config.with_method(Method::Frozen).with_lambda(0.0));
                assert_eq!(plain.w, zero.w, "β={beta} {name} {exponent:?}");
                assert_eq!(plain.h, zero.h, "β={beta} {name} {exponent:?}");
            }
        }
    }
}

struct Setting {
    x: Array2<f64>,
    w: Array2<f64>,
    h: Array2<f64>,
    lambda: Array2<f64>,
}

impl Setting {
    fn new() -> Self {
        Self {
            x: matrix(6, 7, 0.12),
            w: matrix(6, 3, 0.34),
            h: matrix(3, 7, 0.56),
            lambda: matrix(6, 1, 0.78),
        }
    }

    /// (w_T, hypergradient)
    fn run(&self, beta: f64, name: &str) -> (Array2<f64>, Array2<f64>) {
        let problem = problem(&self.x);
        let penalty = penalty::by_name(name).unwrap();
        let tensor = |array: &Array2<f64>| {
            let shape = [array.nrows(), array.ncols()];
            problem.tensor("test", array, shape).unwrap()
        };
        let bunch = Bunch::new(&problem, Beta(beta), penalty, 4).unwrap();
        let pair = Pair::new(&problem, &self.w, &self.h).unwrap();
        let result = bunch
            .hypergradient(&pair, &[tensor(&self.lambda)], Mode::Reverse)
            .unwrap();
        (
            result.pair.w.to_matrix().unwrap(),
            result.gradients[0].to_matrix().unwrap(),
        )
    }
}

const SEPARABLE: [&str; 5] = ["l1", "l2", "group", "l21", "hoyer"];

#[test]
fn permuting_rows_permutes_the_answer() {
    let setting = Setting::new();
    let order = [4, 0, 5, 2, 1, 3];
    let permuted = Setting {
        x: setting.x.select(Axis(0), &order),
        w: setting.w.select(Axis(0), &order),
        lambda: setting.lambda.select(Axis(0), &order),
        h: setting.h.clone(),
    };
    for name in SEPARABLE {
        let (w, g) = setting.run(1.0, name);
        let (w_permuted, g_permuted) = permuted.run(1.0, name);
        assert_close(name, &w_permuted, &w.select(Axis(0), &order), 1e-14);
        assert_close(name, &g_permuted, &g.select(Axis(0), &order), 1e-12);
    }
    // Smoothness knows its neighbours: only turning the rows round is harmless.
    let reversed = [5, 4, 3, 2, 1, 0];
    let turned = Setting {
        x: setting.x.select(Axis(0), &reversed),
        w: setting.w.select(Axis(0), &reversed),
        lambda: setting.lambda.select(Axis(0), &reversed),
        h: setting.h.clone(),
    };
    let (w, g) = setting.run(1.0, "smooth");
    let (w_turned, g_turned) = turned.run(1.0, "smooth");
    assert_close("smooth", &w_turned, &w.select(Axis(0), &reversed), 1e-14);
    assert_close("smooth", &g_turned, &g.select(Axis(0), &reversed), 1e-12);
    assert!(common::distance(&permuted.run(1.0, "smooth").1, &g.select(Axis(0), &order)) > 1e-3);
}

#[test]
fn permuting_components_permutes_the_columns() {
    let setting = Setting::new();
    let order = [2, 0, 1];
    let permuted = Setting {
        x: setting.x.clone(),
        w: setting.w.select(Axis(1), &order),
        h: setting.h.select(Axis(0), &order),
        lambda: setting.lambda.clone(),
    };
    for name in SEPARABLE.into_iter().chain(["smooth"]) {
        let (w, g) = setting.run(0.5, name);
        let (w_permuted, g_permuted) = permuted.run(0.5, name);
        assert_close(name, &w_permuted, &w.select(Axis(1), &order), 1e-13);
        assert_close(name, &g_permuted, &g, 1e-11);
    }
}

/// X → cX with W → cW: d_β is homogeneous of degree β and each penalty of its
/// own degree d, so λ → c^(β−d) λ, and the hypergradient scales with c^d.
#[test]
fn scaling_the_data_scales_the_answer() {
    let setting = Setting::new();
    let c = 37.5f64;
    let degrees = [
        ("l1", 1.0),
        ("l2", 2.0),
        ("group", 1.0),
        ("l21", 2.0),
        ("hoyer", 0.0),
        ("smooth", 2.0),
    ];
    for beta in BETAS {
        for (name, degree) in degrees {
            let scaled = Setting {
                x: &setting.x * c,
                w: &setting.w * c,
                h: setting.h.clone(),
                lambda: &setting.lambda * c.powf(beta - degree),
            };
            let (w, g) = setting.run(beta, name);
            let (w_scaled, g_scaled) = scaled.run(beta, name);
            let what = format!("β={beta} {name}");
            assert_close(&what, &w_scaled, &(w * c), 1e-11);
            assert_close(&what, &g_scaled, &(g * c.powf(degree)), 1e-9);
        }
    }
}

#[test]
fn zero_rows_and_isolated_zeros_are_harmless() {
    let mut x = matrix(12, 9, 0.9);
    x.row_mut(3).fill(0.0);
    x.column_mut(5).fill(0.0);
    x[[0, 0]] = 0.0;
    x[[7, 2]] = 0.0;
    for beta in [3.0, 2.0, 1.5, 1.0, 0.5] {
        for name in penalty::NAMES.split(", ") {
            for exponent in [Exponent::One, Exponent::Monotone] {
                if name == "hoyer" && exponent == Exponent::Monotone {
                    continue;
                }
                for mode in [Mode::Reverse, Mode::Forward, Mode::Adjoint] {
                    // β = 3 with γ = 1 need not converge; a short run will do.
                    let outcome = AltBiConfig::new(3)
                        .with_exponent(exponent)
                        .with_hypergradient(mode)
                        .with_max_iterations(25)
                        .with_lambda_max(10.0)
                        .solver(Beta(beta), penalty::by_name(name).unwrap())
                        .fit(&x)
                        .unwrap();
                    let what = format!("β={beta} {name} {exponent:?} {mode}");
                    let all = outcome.w.iter().chain(&outcome.h).chain(&outcome.lambda);
                    assert!(all.clone().all(|v| v.is_finite() && *v >= 0.0), "{what}");
                    // Neighbours and the Hoyer ratio pull a zero row up again.
                    if !["smooth", "steps", "hoyer"].contains(&name) && beta <= 2.0 {
                        assert!(outcome.w.row(3).sum() < 1e-6, "{what}: zero row");
                        assert!(outcome.h.column(5).sum() < 1e-6, "{what}: zero column");
                    }
                }
            }
        }
    }
}

#[test]
fn a_zero_row_reaches_zero_and_its_lambda_rests() {
    let mut x = matrix(8, 6, 0.4);
    x.row_mut(2).fill(0.0);
    let solver = AltBiConfig::new(2).solver(Beta::KL, L1);
    let problem = problem(&x);
    let start = solver.init(&problem).unwrap();
    let first = solver.step(&problem, &start).unwrap();
    let second = solver.step(&problem, &first).unwrap();
    let row = |state: &State| state.factors.w.to_matrix().unwrap().row(2).to_vec();
    assert_eq!(row(&first), [0.0, 0.0]);
    let lambda = |state: &State| state.lambda.to_matrix().unwrap()[[2, 0]];
    assert_eq!(lambda(&first), lambda(&second));
}

#[test]
fn the_smallest_number_behaves_as_zero() {
    let mut zeros = matrix(9, 7, 0.6);
    let mut tiny = zeros.clone();
    for index in [[0, 0], [4, 3], [8, 6]] {
        zeros[index] = 0.0;
        tiny[index] = 1e-323;
    }
    let fit = |x: &Array2<f64>| AltBiConfig::new(3).with_max_iterations(40).fit(x).unwrap();
    let (a, b) = (fit(&zeros), fit(&tiny));
    assert_eq!((a.w, a.h, a.lambda), (b.w, b.h, b.lambda));
    let refused = AltBiConfig::new(3).solver(Beta(0.0), L1).fit(&tiny);
    assert!(matches!(
        refused,
        Err(Error::OutsideDomain {
            row: 0,
            column: 0,
            ..
        })
    ));
}

#[test]
fn same_seed_same_bits_however_many_threads() {
    let x = altbi::data::benchmark_a(40, 12, 3, 5).x;
    let fit = || {
        let outcome = AltBiConfig::new(3)
            .with_seed(11)
            .with_max_iterations(40)
            .fit(&x)
            .unwrap();
        (outcome.w, outcome.h, outcome.lambda)
    };
    let alone = fit();
    for threads in [1, 2, 4, 7] {
        let together = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads).map(|_| scope.spawn(fit)).collect();
            handles
                .into_iter()
                .map(|handle| handle.join().unwrap())
                .collect::<Vec<_>>()
        });
        assert!(together.iter().all(|outcome| *outcome == alone));
    }
    let other = AltBiConfig::new(3)
        .with_seed(12)
        .with_max_iterations(40)
        .fit(&x);
    assert_ne!(other.unwrap().w, alone.0);
}

/// Laurberg's example: its factorisation is provably unique.
#[test]
fn a_unique_factorisation_is_recovered() {
    let a = 0.3;
    let w = array![
        [a, 1.0, 0.0],
        [1.0, a, 0.0],
        [1.0, 0.0, a],
        [a, 0.0, 1.0],
        [0.0, a, 1.0],
        [0.0, 1.0, a]
    ];
    let h = w.t().to_owned();
    let x = w.dot(&h);
    for (method, beta) in [(Method::MuT, 1.0), (Method::MuT, 2.0), (Method::AltBi, 1.0)] {
        let best = (0..4)
            .map(|seed| {
                AltBiConfig::new(3)
                    .with_method(method)
                    .with_seed(seed)
                    .with_max_iterations(5000)
                    .with_tolerance(1e-14)
                    .solver(Beta(beta), L1)
                    .fit(&x)
                    .unwrap()
            })
            .min_by(|a, b| a.divergence.total_cmp(&b.divergence))
            .unwrap();
        let recovery = recovery(&w, &h, &best.w, &best.h).unwrap();
        let worst = recovery
            .w
            .iter()
            .chain(&recovery.h)
            .copied()
            .fold(f64::INFINITY, f64::min);
        assert!(worst > 30.0, "{method:?} β={beta}: {worst} dB");
    }
}

#[test]
fn entry_points_lead_to_the_same_result() {
    let x = matrix(9, 7, 0.2);
    let config = AltBiConfig::new(2).with_max_iterations(15);
    let from_array = config.fit(&x).unwrap();
    let tensor = problem(&x).rows().x.clone();
    let from_tensor = config.fit(&tensor).unwrap();
    let from_slice = config.fit(&(x.as_slice().unwrap(), [9, 7])).unwrap();
    assert_eq!(from_array.w, from_tensor.w);
    assert_eq!(from_array.w, from_slice.w);
    assert_eq!(from_array.w_tensor().to_matrix().unwrap(), from_array.w);
    assert_eq!(from_array.h_tensor().to_matrix().unwrap(), from_array.h);
    assert_eq!(from_array.lambda_tensor().dims(), [9, 1]);
    let entries: Vec<f64> = from_array.h.iter().copied().collect();
    assert_eq!(from_array.h.as_slice().unwrap(), entries);
}

#[test]
fn thirty_two_bits_run_too() {
    let x = altbi::data::benchmark_a(30, 12, 3, 5).x;
    let config = AltBiConfig::new(3).with_max_iterations(10);
    let wide = config.fit(&x).unwrap();
    let narrow = config.with_precision(Precision::F32).fit(&x).unwrap();
    assert_close("W", &narrow.w, &wide.w, 1e-3);
    assert!(narrow.w != wide.w);
}

#[test]
fn normalised_rows_of_h_sum_to_one_and_change_no_product() {
    let x = matrix(9, 7, 0.2);
    let config = AltBiConfig::new(3)
        .with_method(Method::Mu)
        .with_max_iterations(25);
    let free = config.fit(&x).unwrap();
    let normalized = config.with_normalize(Normalization::HRows).fit(&x).unwrap();
    for row in normalized.h.rows() {
        assert!((row.sum() - 1.0).abs() < 1e-12);
    }
    // Unpenalised updates do not care for the scale.
    let (a, b) = (free.w.dot(&free.h), normalized.w.dot(&normalized.h));
    assert_close("WH", &a, &b, 1e-12);
}

#[test]
fn a_penalty_on_w_alone_is_evaded_by_scale_unless_h_is_normalised() {
    let x = altbi::data::benchmark_a(60, 20, 3, 1).x;
    let run = |normalize| {
        AltBiConfig::new(3)
            .with_method(Method::PenalizedMu)
            .with_normalize(normalize)
            .with_max_iterations(1000)
            .with_tolerance(0.0)
            .fit(&x)
            .unwrap()
    };
    let free = run(Normalization::None);
    assert!(free.h.sum_axis(Axis(1)).mean().unwrap() > 100.0);
    let tied = run(Normalization::HRows);
    assert!(tied.w.sum() > 20.0 * free.w.sum());
}

#[test]
fn new_columns_are_encoded_one_by_one() {
    let data = altbi::data::benchmark_a(50, 30, 3, 2);
    let (known, new) = (
        data.x.slice(s![.., ..20]).to_owned(),
        data.x.slice(s![.., 20..]).to_owned(),
    );
    let outcome = AltBiConfig::new(3)
        .with_max_iterations(3000)
        .with_tolerance(1e-9)
        .fit(&known)
        .unwrap();
    let encoded = outcome.encode_columns(&new).unwrap();
    assert_eq!(encoded.dim(), (3, 10));
    // encode_columns returns the encoding of the run itself.
    let error = |h: &Array2<f64>, x: &Array2<f64>| {
        let residual = outcome.w.dot(h) - x;
        residual.mapv(|e| e * e).sum() / x.mapv(|e| e * e).sum()
    };
    let again = outcome.encode_columns(&known).unwrap();
    assert!(error(&again, &known) < 1.01 * error(&outcome.h, &known));
    assert!(error(&encoded, &new) < 0.01);
    // A column made of W gives its code back.
    let code = matrix(3, 4, 0.6);
    let decoded = outcome.encode_columns(&outcome.w.dot(&code)).unwrap();
    assert_close("code", &decoded, &code, 1e-5);
    // A column's code does not depend on its neighbours' number or order.
    let last = new.slice(s![.., 9..]).to_owned();
    let alone = outcome.encode_columns(&last).unwrap();
    assert_close("last", &alone, &encoded.slice(s![.., 9..]).to_owned(), 1e-3);
    let wrong = outcome.encode_columns(&Array2::<f64>::ones((49, 2)));
    assert!(matches!(
        wrong,
        Err(Error::Shape {
            expected: [50, 2],
            ..
        })
    ));
}

/// KL with a nonsensical gradient, as a stand-in for a blow-up.
#[derive(Debug)]
struct Explosive;

impl Divergence for Explosive {
    fn name(&self) -> String {
        "explosive".into()
    }
    fn value(&self, x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2> {
        Beta::KL.value(x, y)
    }
    fn split(&self, x: &Tensor<2>, y: &Tensor<2>) -> Split {
        // Says at every point that W and H are 1e20 times too small.
        Split {
            positive: y.ones_like(),
            negative: x.ones_like() * 1e20,
        }
    }
}

#[test]
fn a_blow_up_is_named_and_the_last_finite_state_returned() {
    let x = matrix(6, 5, 0.2);
    let mut solver = AltBiConfig::new(2)
        .with_bunch(1)
        .with_method(Method::MuT)
        .solver(Explosive, L1);
    let last = solver.run(&problem(&x)).unwrap();
    let Some(Error::NotFinite {
        iteration,
        quantity,
    }) = last.breakdown.as_deref()
    else {
        panic!("{last:?}");
    };
    let iteration = *iteration;
    assert!(iteration > 2, "{iteration}");
    assert!(["W", "H", "divergence"].contains(quantity), "{quantity}");
    assert_eq!(last.iterations, iteration - 1);
    assert_eq!(last.history.len(), iteration);
    assert_eq!(last.stop_reason, StopReason::NotFinite);
    assert!(last.w.iter().chain(&last.h).all(|v| v.is_finite()));
    // Whoever only fits hears of it, too.
    let told = solver.fit(&x);
    assert!(matches!(told, Err(Error::NotFinite { iteration: found, .. }) if found == iteration));
}

/// A penalty whose tangent is not a number.
#[derive(Debug)]
struct Nonsense;

impl Penalty for Nonsense {
    fn name(&self) -> String {
        "nonsense".into()
    }
    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        L1.value(w)
    }
    fn split(&self, w: &Tensor<2>) -> Split {
        L1.split(w)
    }
    fn tangent(&self, w: &Tensor<2>, direction: &Tensor<2>) -> Option<Split> {
        L1.tangent(w, direction).map(|split| Split {
            positive: split.positive.full_like(f64::NAN),
            ..split
        })
    }
}

#[test]
fn a_hypergradient_that_is_not_a_number_is_named() {
    let result = AltBiConfig::new(2)
        .with_hypergradient(Mode::Forward)
        .with_engine(EngineChoice::Autodiff)
        .solver(Beta::KL, Nonsense)
        .run(&problem(&matrix(6, 5, 0.2)))
        .unwrap();
    assert!(matches!(
        result.breakdown.as_deref(),
        Some(Error::NotFinite {
            iteration: 1,
            quantity: "hypergradient"
        })
    ));
    assert_eq!(result.iterations, 0);
}

#[test]
fn a_mode_that_refuses_on_the_way_leaves_the_state_before() {
    // Equal rows of H: at the first bunch's fixed point I − A is singular.
    let given = GivenFactors {
        w: None,
        h: Some(Array2::ones((2, 5))),
    };
    let result = AltBiConfig::new(2)
        .with_hypergradient(Mode::Implicit)
        .solver(Beta::KL, L1)
        .with_factors(given)
        .run(&problem(&Array2::from_shape_fn((6, 5), |(i, _)| {
            1.0 + i as f64
        })))
        .unwrap();
    assert_eq!(
        (result.stop_reason, result.iterations),
        (StopReason::Refused, 0)
    );
    assert!(matches!(
        result.breakdown.as_deref(),
        Some(Error::SingularFixedPoint { .. } | Error::NoFixedPoint { .. })
    ));
}

#[test]
fn units_do_not_decide_when_a_run_has_converged() {
    let x = altbi::data::benchmark_a(60, 20, 3, 1).x;
    let fit = |scale: f64| {
        let config = AltBiConfig::new(3).with_method(Method::MuT);
        config.fit(&(&x * scale)).unwrap()
    };
    let unit = fit(1.0);
    for scale in [1e-9, 1e-3, 1e6] {
        let other = fit(scale);
        assert_eq!(other.iterations, unit.iterations, "{scale}");
        assert!((other.relative_error / unit.relative_error - 1.0).abs() < 1e-6);
    }
    for (scale, precision) in [
        (1e-80, Precision::F64),
        (1e-10, Precision::F32),
        (1e39, Precision::F32),
    ] {
        let refused = Problem::new(&(&x * scale), precision);
        assert!(
            matches!(
                refused,
                Err(Error::Scale { .. } | Error::NotFiniteEntry { .. })
            ),
            "{scale}"
        );
    }
}

#[test]
fn a_start_that_cannot_move_is_refused() {
    let given = GivenFactors {
        w: Some(Array2::zeros((6, 2))),
        h: None,
    };
    let solver = AltBiConfig::new(2).solver(Beta::KL, L1).with_factors(given);
    let refused = solver.init(&problem(&matrix(6, 5, 0.2)));
    assert!(matches!(refused, Err(Error::ZeroFactor { what: "W" })));
}

#[test]
fn the_first_lambda_is_balanced_for_the_factors_that_the_loop_sees() {
    let x = altbi::data::benchmark_a(60, 20, 3, 1).x;
    let shares = |normalize| {
        let start = AltBiConfig::new(3)
            .with_normalize(normalize)
            .with_max_iterations(1)
            .fit(&x)
            .unwrap();
        let share = |record: &Record| record.objective / record.divergence - 1.0;
        [share(&start.history[0]), share(&start.history[1])]
    };
    let (free, tied) = (shares(Normalization::None), shares(Normalization::HRows));
    assert!((free[0] - 0.1).abs() < 1e-12 && (tied[0] - 0.1).abs() < 1e-12);
    // Rescaling does not throw the balance over in the first iteration.
    assert!(tied[1] < 2.0 * free[1], "{tied:?} {free:?}");
}

#[test]
fn a_constant_matrix_has_no_relative_error() {
    let outcome = AltBiConfig::new(1)
        .fit(&Array2::from_elem((7, 9), 0.1))
        .unwrap();
    assert!(outcome.relative_error.is_nan());
}

#[test]
fn a_run_goes_on_from_a_checkpoint_to_the_same_bits() {
    let x = altbi::data::benchmark_a(40, 12, 3, 5).x;
    for (precision, normalize) in [
        (Precision::F64, Normalization::None),
        (Precision::F64, Normalization::HRows),
        (Precision::F32, Normalization::None),
    ] {
        let problem = Problem::new(&x, precision).unwrap();
        let solver = || {
            AltBiConfig::new(3)
                .with_precision(precision)
                .with_normalize(normalize)
                .with_max_iterations(25)
                .with_tolerance(0.0)
                .solver(Beta(0.5), SquaredL2)
        };
        let unbroken = solver().run(&problem).unwrap();
        for stop_at in [0, 1, 7, 24] {
            let kept = Arc::new(Mutex::new((Vec::new(), None)));
            let writer = kept.clone();
            let mut history = Vec::new();
            let mut first = None;
            let broken = solver()
                .observe(move |record: &Record, state: &State| {
                    history.push(record.clone());
                    let lambda = state.lambda.to_matrix().unwrap();
                    let start = first.get_or_insert(lambda).clone();
                    if record.iteration == stop_at {
                        let point = Checkpoint::new("d", "s", state, &start, &history);
                        *writer.lock().unwrap() = (point.encode(), Some(point));
                        return Signal::Stop;
                    }
                    Signal::Continue
                })
                .run(&problem)
                .unwrap();
            assert_eq!(broken.iterations, stop_at);
            let (bytes, point) = std::mem::take(&mut *kept.lock().unwrap());
            // A NaN is not equal to itself, but its bytes are.
            let decoded = Checkpoint::decode(&bytes).unwrap();
            assert_eq!(decoded.encode(), point.unwrap().encode());
            let resumed = solver().resume(&problem, &decoded).unwrap();
            assert_eq!(resumed.w, unbroken.w, "{precision:?} {stop_at}");
            assert_eq!(resumed.h, unbroken.h);
            assert_eq!(resumed.lambda, unbroken.lambda);
            assert_eq!(resumed.lambda_at_start, unbroken.lambda_at_start);
            assert_eq!(resumed.history.len(), unbroken.history.len());
            for (a, b) in resumed.history.iter().zip(&unbroken.history) {
                assert_eq!((a.divergence, a.objective), (b.divergence, b.objective));
            }
            // Any torn byte is noticed.
            for cut in [10, 40, bytes.len() - 1] {
                let torn = Checkpoint::decode(&bytes[..cut]);
                assert!(matches!(
                    torn,
                    Err(CheckpointFault::Torn | CheckpointFault::Foreign)
                ));
            }
            let mut flipped = bytes.clone();
            flipped[60] ^= 1;
            assert_eq!(Checkpoint::decode(&flipped), Err(CheckpointFault::Torn));
        }
    }
}

#[test]
fn why_it_stopped() {
    let x = matrix(6, 5, 0.2);
    let config = AltBiConfig::new(2)
        .with_max_iterations(5)
        .with_tolerance(0.0);
    assert_eq!(
        config.fit(&x).unwrap().stop_reason,
        StopReason::MaxIterations
    );
    let loose = config.clone().with_tolerance(10.0).fit(&x).unwrap();
    assert_eq!(loose.stop_reason, StopReason::Converged);
    assert_eq!(loose.iterations, 1);
    let stopped = config
        .solver(Beta::KL, L1)
        .observe(|record: &Record, _: &State| {
            if record.iteration == 2 {
                Signal::Stop
            } else {
                Signal::Continue
            }
        })
        .fit(&x)
        .unwrap();
    assert_eq!(stopped.stop_reason, StopReason::Interrupted);
    assert_eq!(stopped.history.len(), 3);
}

#[test]
fn methods_do_what_they_say() {
    let x = matrix(9, 7, 0.2);
    let config = AltBiConfig::new(2)
        .with_max_iterations(6)
        .with_tolerance(0.0);
    let fit = |method| config.clone().with_method(method).fit(&x).unwrap();
    let altbi = fit(Method::AltBi);
    assert_ne!(altbi.lambda, altbi.lambda_at_start);
    let frozen = fit(Method::Frozen);
    assert_eq!(frozen.lambda, altbi.lambda_at_start);
    assert!(fit(Method::PenalizedMu).lambda.iter().all(|l| *l == 0.5));
    assert!(fit(Method::Mu).lambda.iter().all(|l| *l == 0.0));
    assert_eq!(fit(Method::Mu).history[3].hypergradient_norm, 0.0);
    for method in [Method::Mu, Method::MuT] {
        let conflict = config.clone().with_method(method).with_lambda(0.5).fit(&x);
        assert!(matches!(conflict, Err(Error::Conflict { .. })));
    }
    let capped = config
        .clone()
        .with_lambda_max(0.01)
        .with_lambda_step(LambdaStep::Constant(1.0))
        .fit(&x)
        .unwrap();
    assert!(capped.lambda.iter().all(|l| (0.0..=0.01).contains(l)));
}

#[test]
fn implicit_mode_runs_in_the_loop() {
    let x = matrix(7, 9, 0.2);
    let outcome = AltBiConfig::new(2)
        .with_hypergradient(Mode::Implicit)
        .with_max_iterations(3)
        .with_tolerance(0.0)
        .with_lambda(0.3)
        .fit(&x)
        .unwrap();
    assert_eq!(outcome.iterations, 3);
    // At the exact inner solution the training error rises with λ on every row,
    // so λ falls: the optimum is λ = 0.
    let fell = outcome.lambda.iter().zip(&outcome.lambda_at_start);
    assert!(fell.into_iter().all(|(end, start)| end < start));
}

#[test]
fn masked_entries_play_no_part() {
    let x = matrix(10, 8, 0.2);
    let mask = matrix(10, 8, 0.7).mapv(|u| if u > 0.7 { 0.0 } else { 1.0 });
    let mut other = x.clone();
    for (value, weight) in other.iter_mut().zip(&mask) {
        if *weight == 0.0 {
            *value = 1e6;
        }
    }
    let run = |x: &Array2<f64>| {
        let problem = Problem::masked(x, &mask, Precision::F64).unwrap();
        let config = AltBiConfig::new(2).with_max_iterations(20);
        config.solver(Beta::KL, L1).run(&problem).unwrap()
    };
    let (a, b) = (run(&x), run(&other));
    assert_eq!((a.w, a.h, a.lambda), (b.w, b.h, b.lambda));
    // Weights of one are no weights.
    let ones = Problem::masked(&x, &Array2::<f64>::ones((10, 8)), Precision::F64).unwrap();
    let config = AltBiConfig::new(2).with_max_iterations(20);
    let weighted = config.solver(Beta::KL, L1).run(&ones).unwrap();
    assert_close("W", &weighted.w, &config.fit(&x).unwrap().w, 1e-11);
}

#[test]
fn a_fixed_term_counts_in_the_objective_and_pulls() {
    let x = matrix(10, 8, 0.2);
    let config = AltBiConfig::new(2)
        .with_method(Method::MuT)
        .with_max_iterations(20);
    let plain = config.fit(&x).unwrap();
    let fixed = config
        .solver(Beta::KL, L1)
        .with_term(PenaltyTerm::fixed(SquaredL2, 2.0).unwrap())
        .fit(&x)
        .unwrap();
    let penalty = fixed.w.mapv(|w| w * w).sum();
    assert!((fixed.objective - fixed.divergence - penalty).abs() < 1e-12);
    assert!(fixed.w.sum() < plain.w.sum());
    assert!(PenaltyTerm::fixed(SquaredL2, -1.0).is_err());
    // A weight for each row, all of them equal, is that weight.
    let rows = problem(&x).tensor("weights", &Array2::from_elem((10, 1), 2.0), [10, 1]);
    let by_rows = config
        .solver(Beta::KL, L1)
        .with_term(PenaltyTerm::fixed_rows(SquaredL2, rows.unwrap()))
        .fit(&x)
        .unwrap();
    assert_eq!(by_rows.w, fixed.w);
    // A second tuned term has weights of its own.
    let twice = AltBiConfig::new(2)
        .with_max_iterations(20)
        .solver(Beta::KL, L1)
        .with_term(PenaltyTerm::tuned(SquaredL2))
        .fit(&x)
        .unwrap();
    assert_eq!(twice.weights().len(), 2);
    assert_eq!(twice.lambda.len(), 20);
}

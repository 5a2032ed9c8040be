//! altbi against numbers from an independent program (tests/data/README.md).

use std::sync::Arc;

use super::common::{Numbers, assert_close, reference};
use crate::hypergradient::Forward;
use crate::update::Rule;
use crate::{
    AltBiConfig, Beta, Bunch, Criterion, GivenFactors, HeldOut, Method, Mode, Pair, PenaltyTerm,
    Precision, Problem, Side, Span, State, Training, penalty,
};
use ndarray::Array2;
use serde::Deserialize;

#[derive(Deserialize)]
#[allow(non_snake_case, reason = "the names of the reference files")]
struct BunchCase {
    name: String,
    beta: f64,
    penalty: String,
    T: usize,
    X: Numbers,
    W0: Numbers,
    H: Numbers,
    lambda: Numbers,
    mask_inner: Numbers,
    mask_outer: Numbers,
    W_T: Numbers,
    tangent_T: Numbers,
    outer_error: f64,
    hypergradient: Numbers,
    H_updated_from_W0: Numbers,
}

impl BunchCase {
    fn bunch(&self) -> (Problem, Bunch) {
        let masked = self.mask_inner.array().iter().any(|m| *m != 1.0)
            || self.mask_outer.array().iter().any(|m| *m != 1.0);
        // Unmasked cases go the unmasked way, which has its own shortcuts.
        let (problem, criterion): (_, Arc<dyn Criterion>) = if masked {
            let (inner, outer) = (&self.mask_inner, &self.mask_outer);
            let problem = Problem::held_out(&self.X, inner, outer, Precision::F64);
            (problem.unwrap(), Arc::new(HeldOut))
        } else {
            let problem = Problem::new(&self.X, Precision::F64);
            (problem.unwrap(), Arc::new(Training))
        };
        let term = PenaltyTerm::tuned(penalty::by_name(&self.penalty).unwrap());
        let rule = Rule::new(Arc::new(Beta(self.beta)), vec![term]);
        let of_h = Rule::new(rule.divergence.clone(), Vec::new());
        let span = Span::One(Side::W);
        let bunch = Bunch::with_rules(&problem, rule, of_h, criterion, span, self.T);
        (problem, bunch.unwrap())
    }
}

#[test]
fn bunches_tangents_and_hypergradients() {
    let cases: Vec<BunchCase> = reference("bunches.json");
    assert_eq!(cases.len(), 30);
    let masked = cases.iter().filter(|case| case.name.ends_with("mask1"));
    assert_eq!(masked.count(), 10);
    for case in &cases {
        let (problem, bunch) = case.bunch();
        let pair = Pair::new(&problem, &case.W0.array(), &case.H.array()).unwrap();
        let lambda = [case.lambda.tensor(&problem)];
        let ones = lambda.each_ref().map(|weight| weight.ones_like());
        let (end, tangent) = Forward::default()
            .tangent(&bunch, &pair, &lambda, &ones)
            .unwrap();
        assert_close(&case.name, &bunch.run(&pair, &lambda).w, &case.W_T, 1e-12);
        assert_close(&case.name, &end.w, &case.W_T, 1e-12);
        assert_close(&case.name, &tangent.w, &case.tangent_T, 1e-10);
        for mode in [Mode::Reverse, Mode::Forward, Mode::Adjoint] {
            let what = format!("{} {mode}", case.name);
            let result = bunch.hypergradient(&pair, &lambda, mode).unwrap();
            assert_close(&what, &result.gradients[0], &case.hypergradient, 1e-10);
            assert_close(&what, &result.pair.w, &case.W_T, 1e-12);
            let error = (result.outer_error / case.outer_error - 1.0).abs();
            assert!(error < 1e-12, "{what}: outer error off by {error:e}");
        }
        let differences = bunch
            .hypergradient(&pair, &lambda, Mode::FiniteDifferences)
            .unwrap();
        assert_close(
            &case.name,
            &differences.gradients[0],
            &case.hypergradient,
            1e-6,
        );
    }
}

#[test]
fn updates_of_h_are_the_same_rule_on_the_transposed_problem() {
    let cases: Vec<BunchCase> = reference("bunches.json");
    for case in &cases {
        let (problem, bunch) = case.bunch();
        let (h, w) = (
            case.H.tensor(&problem).transpose(),
            case.W0.tensor(&problem),
        );
        let updated = bunch
            .of_h
            .update(problem.columns(), &h, &w.transpose())
            .transpose();
        assert_close(&case.name, &updated, &case.H_updated_from_W0, 1e-12);
    }
}

#[derive(Deserialize)]
#[allow(non_snake_case, reason = "the names of the reference files")]
struct Trajectory {
    name: String,
    X: Numbers,
    W0: Numbers,
    H0: Numbers,
    mask: Numbers,
    lambda0: Numbers,
    divergence: Vec<f64>,
    objective: Vec<f64>,
    lambda: Vec<Vec<f64>>,
    hypergradient: Vec<Vec<f64>>,
    W_final: Numbers,
    H_final: Numbers,
    T: usize,
    beta: f64,
    penalty: String,
}

fn start(w: &Numbers, h: &Numbers) -> GivenFactors {
    GivenFactors {
        w: Some(w.array()),
        h: Some(h.array()),
    }
}

fn column(values: &[f64]) -> Array2<f64> {
    Array2::from_shape_vec((values.len(), 1), values.to_vec()).unwrap()
}

#[test]
fn trajectories_of_altbi() {
    let trajectories: Vec<Trajectory> = reference("trajectories.json");
    assert_eq!(trajectories.len(), 4);
    for t in &trajectories {
        let held_out = t.name == "altbi_heldout";
        for mode in [Mode::Reverse, Mode::Forward, Mode::Adjoint] {
            let name = format!("{} {mode}", t.name);
            let config = AltBiConfig::new(3)
                .with_bunch(t.T)
                .with_max_iterations(20)
                .with_tolerance(0.0)
                .with_hypergradient(mode);
            let penalty = penalty::by_name(&t.penalty).unwrap();
            let mut solver = config
                .solver(Beta(t.beta), penalty)
                .with_factors(start(&t.W0, &t.H0));
            let problem = if held_out {
                solver = solver.with_criterion(HeldOut);
                let unseen = t.mask.array().mapv(|m| 1.0 - m);
                Problem::held_out(&t.X, &t.mask, &unseen, Precision::F64).unwrap()
            } else {
                Problem::new(&t.X, Precision::F64).unwrap()
            };
            if held_out {
                // Its λ uses all of X, ours the observed entries.
                solver = solver.with_lambda(t.lambda0.array());
            }
            let mut state: State = solver.init(&problem).unwrap();
            assert_close(&name, &state.lambda, &t.lambda0, 1e-12);
            for k in 0..20 {
                assert!((state.record.divergence / t.divergence[k] - 1.0).abs() < 1e-9);
                assert!((state.record.objective / t.objective[k] - 1.0).abs() < 1e-9);
                state = solver.step(&problem, &state).unwrap();
                assert_close(&name, &state.lambda, &column(&t.lambda[k + 1]), 1e-9);
                let square: f64 = t.hypergradient[k].iter().map(|g| g * g).sum();
                let norm = state.record.hypergradient_norm;
                assert!((norm / square.sqrt() - 1.0).abs() < 1e-9, "{name} {k}");
            }
            assert!((state.record.divergence / t.divergence[20] - 1.0).abs() < 1e-9);
            assert_close(&name, &state.factors.w, &t.W_final, 1e-9);
            assert_close(&name, &state.factors.h, &t.H_final, 1e-9);

            // run() is init() and step().
            let outcome = solver.run(&problem).unwrap();
            assert_eq!(outcome.iterations, 20);
            assert_close(&name, &outcome.w, &state.factors.w, 0.0);
        }
    }
}

#[derive(Deserialize)]
#[allow(non_snake_case, reason = "the names of the reference files")]
struct Baselines {
    X: Numbers,
    W0: Numbers,
    H0: Numbers,
    D_mu: Vec<f64>,
    W_mu: Numbers,
    H_mu: Numbers,
    D_pmu: Vec<f64>,
    obj_pmu: Vec<f64>,
    W_pmu: Numbers,
    H_pmu: Numbers,
    D_mu4: Vec<f64>,
    W_mu4: Numbers,
    H_mu4: Numbers,
}

#[test]
fn baselines() {
    let b: Baselines = reference("baselines.json");
    for (method, divergences, w, h) in [
        (Method::Mu, &b.D_mu, &b.W_mu, &b.H_mu),
        (Method::PenalizedMu, &b.D_pmu, &b.W_pmu, &b.H_pmu),
        (Method::MuT, &b.D_mu4, &b.W_mu4, &b.H_mu4),
    ] {
        let outcome = AltBiConfig::new(3)
            .with_method(method)
            .with_max_iterations(20)
            .with_tolerance(0.0)
            .solver(Beta::KL, crate::L1)
            .with_factors(start(&b.W0, &b.H0))
            .fit(&b.X)
            .unwrap();
        assert_close(&format!("{method:?} W"), &outcome.w, w, 1e-10);
        assert_close(&format!("{method:?} H"), &outcome.h, h, 1e-10);
        for (record, want) in outcome.history.iter().zip(divergences) {
            assert!((record.divergence / want - 1.0).abs() < 1e-9, "{method:?}");
        }
        if method == Method::PenalizedMu {
            for (record, want) in outcome.history.iter().zip(&b.obj_pmu) {
                assert!((record.objective / want - 1.0).abs() < 1e-9);
            }
        }
    }
}

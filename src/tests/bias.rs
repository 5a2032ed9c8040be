//! The bias of short bunches: hypergradients at growing T.

use std::sync::Arc;

use ndarray::Array2;

use super::common::{assert_close, matrix, problem};
use crate::check::{LENGTHS, bias};
use crate::update::Rule;
use crate::{
    AltBiConfig, Beta, Bunch, Error, Factors, HeldOut, L1, Method, Mode, Pair, PenaltyTerm, Smooth,
    SquaredL2, ToMatrix, Training,
};

/// A state on the way: factors and λ after some iterations.
fn state(x: &Array2<f64>) -> (Factors, Array2<f64>) {
    let config = AltBiConfig::new(3).with_method(Method::Frozen);
    let config = config.with_max_iterations(20).with_lambda(0.3);
    let outcome = config.fit(x).unwrap();
    (outcome.factors(), outcome.lambda)
}

#[test]
fn hypergradients_are_those_of_reverse_mode_and_lead_to_the_implicit_one() {
    let x = matrix(12, 9, 0.2);
    let problem = problem(&x);
    let (factors, lambda) = state(&x);
    let rule = Rule::new(Arc::new(Beta::KL), vec![PenaltyTerm::tuned(L1)]);
    let found = bias(&problem, &rule, Arc::new(Training), &factors, &lambda).unwrap();
    assert!(found.refusal.is_none(), "{:?}", found.refusal);
    assert_eq!(found.rows.len(), LENGTHS.len() + 1);
    assert_eq!(found.gradients.dim(), (12, LENGTHS.len() + 1));
    let pair = Pair::new(&problem, &factors.w, &factors.h).unwrap();
    let lambda = [problem.tensor("λ", &lambda, [12, 1]).unwrap()];
    for (place, length) in LENGTHS.into_iter().enumerate().take(5) {
        let bunch = Bunch::new(&problem, Beta::KL, L1, length).unwrap();
        let reverse = bunch.hypergradient(&pair, &lambda, Mode::Reverse).unwrap();
        let column = found
            .gradients
            .column(place)
            .to_owned()
            .insert_axis(ndarray::Axis(1));
        assert_close("hypergradient", &column, &reverse.gradients[0], 1e-10);
        let row = &found.rows[place];
        assert!((row.outer_error - reverse.outer_error).abs() < 1e-10 * row.outer_error);
        let g = reverse.gradients[0].to_matrix().unwrap();
        let norm = g.iter().map(|g| g * g).sum::<f64>().sqrt();
        assert!((row.norm - norm).abs() < 1e-10 * norm);
    }
    // It gets there, and not before.
    let errors: Vec<f64> = found.rows.iter().map(|row| row.relative_error).collect();
    assert!(errors[0] > 1e-3, "{errors:?}");
    assert!(errors[LENGTHS.len() - 1] < 1e-9, "{errors:?}");
    assert_eq!(errors[LENGTHS.len()], 0.0);
    let last = found.rows.last().unwrap();
    assert!(last.length.is_none() && (last.cosine - 1.0).abs() < 1e-12);
    assert_eq!(found.shortest(0.0), None);
    assert_eq!(found.shortest(f64::INFINITY), Some(1));
    let enough = found.shortest(1e-3).unwrap();
    let place = LENGTHS.iter().position(|length| *length == enough).unwrap();
    assert!(errors[place..].iter().all(|error| *error <= 1e-3) && errors[place - 1] > 1e-3);
}

#[test]
fn parts_that_cannot_be_fused_and_coupled_rows_are_compared_too() {
    let x = matrix(10, 8, 0.7);
    let (factors, lambda) = state(&x);
    let plain = problem(&x);
    let smooth = Rule::new(Arc::new(Beta::KL), vec![PenaltyTerm::tuned(Smooth)]);
    let found = bias(&plain, &smooth, Arc::new(Training), &factors, &lambda).unwrap();
    assert!(found.refusal.unwrap().contains("couple its rows"));
    let last = found.rows.last().unwrap();
    assert_eq!((last.length, last.relative_error), (Some(1024), 0.0));
    // Held-out errors have their own hypergradients.
    let rule = Rule::new(Arc::new(Beta(2.0)), vec![PenaltyTerm::tuned(SquaredL2)]);
    let speckled = plain.clone().speckled(0.2, 1).unwrap();
    let held_out = bias(&speckled, &rule, Arc::new(HeldOut), &factors, &lambda).unwrap();
    let training = bias(&plain, &rule, Arc::new(Training), &factors, &lambda).unwrap();
    assert_ne!(held_out.gradients, training.gradients);
    let lacking = bias(&plain, &rule, Arc::new(HeldOut), &factors, &lambda);
    assert!(matches!(lacking, Err(Error::Conflict { .. })));
    let short = Array2::zeros((9, 1));
    let wrong = bias(&plain, &rule, Arc::new(Training), &factors, &short);
    assert!(matches!(wrong, Err(Error::Shape { .. })));
}

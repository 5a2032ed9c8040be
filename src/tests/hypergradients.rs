//! The modes against each other, over the whole matrix of built-in cases.

use std::sync::Arc;

use super::common::{assert_close, matrix, problem};
use crate::check::{MODES, cases, check_bunch, relative_difference};
use crate::device::Device;
use crate::hypergradient::{Differentiate, Implicit, Reverse};
use crate::update::Rule;
use crate::{
    Beta, Bunch, Divergence, Error, HeldOut, Hoyer, L1, Mode, Pair, Penalty, PenaltyTerm,
    Precision, Problem, Side, Smooth, Span, Split, SquaredL2, ToMatrix, Verdict, check,
};
use burn::tensor::Tensor;
use ndarray::{Array2, array};

#[test]
fn all_modes_agree_on_every_case() {
    let cases = cases();
    assert_eq!(cases.len(), 7 * 8 * 4 * 5);
    let (mut controls_tried, mut chains_tried) = (0, 0);
    for case in &cases {
        let report = case.run(Precision::F64, &Device::default()).unwrap();
        assert!(report.is_consistent(), "{case:?}\n{report}");
        for comparison in &report.comparisons {
            assert_eq!(comparison.verdict, Verdict::Pass, "{case:?}");
        }
        // Every known mistake that can show was found.
        let (tangents, chain) = report.controls.split_at(2);
        // (Where a bunch has come to rest, an update less makes no difference.)
        for control in chain {
            assert_ne!(control.verdict, Verdict::Pass, "{case:?} {control:?}");
            chains_tried += usize::from(control.verdict == Verdict::Mismatch);
        }
        for control in tangents {
            let alone = case.shape[0] == 1 && ["smooth", "steps"].contains(&case.penalty);
            let expected = if case.penalty == "none" || alone {
                Verdict::Unchecked
            } else {
                controls_tried += 1;
                Verdict::Mismatch
            };
            assert_eq!(control.verdict, expected, "{case:?} {control:?}");
        }
    }
    assert!(controls_tried > 1600, "{controls_tried}");
    assert!(chains_tried > 700, "{chains_tried}");
}

#[test]
fn thirty_two_bits_agree_with_sixty_four() {
    for case in cases() {
        let (wide, draw) = case.bunch(Precision::F64, &Device::default()).unwrap();
        let wide = wide
            .hypergradient(&draw.pair, &draw.lambda, Mode::Reverse)
            .unwrap();
        let (narrow, draw) = case.bunch(Precision::F32, &Device::default()).unwrap();
        for mode in [Mode::Reverse, Mode::Forward, Mode::Adjoint] {
            let narrow = narrow
                .hypergradient(&draw.pair, &draw.lambda, mode)
                .unwrap();
            assert_close(
                &format!("{case:?} {mode}"),
                &narrow.gradients[0],
                &wide.gradients[0],
                1e-3,
            );
        }
    }
}

/// A bunch with everything at once: mask with weights, held-out error, two
/// terms of which one is fixed, exponent ½, zeros in X.
fn elaborate(separable: bool) -> (Bunch, Pair, [Tensor<2>; 1]) {
    let mut x = matrix(9, 7, 0.3);
    x[[2, 3]] = 0.0;
    x.row_mut(5).fill(0.0);
    let mask = matrix(9, 7, 1.1).mapv(|u| if u > 0.9 { 0.0 } else { 2.0 * u });
    let held_out = matrix(9, 7, 2.2).mapv(|u| if u > 0.6 { 1.5 } else { 0.0 });
    let problem = Problem::held_out(&x, &mask, &held_out, Precision::F64).unwrap();
    let fixed = if separable {
        let weights = problem.tensor("weights", &matrix(9, 1, 0.6), [9, 1]);
        PenaltyTerm::fixed_rows(SquaredL2, weights.unwrap())
    } else {
        PenaltyTerm::fixed(Smooth, 0.7).unwrap()
    };
    let mut rule = Rule::new(Arc::new(Beta(0.4)), vec![fixed, PenaltyTerm::tuned(Hoyer)]);
    rule.exponent = 0.5;
    let of_h = Rule::new(Arc::new(Beta(0.4)), Vec::new());
    let span = Span::One(Side::W);
    let bunch = Bunch::with_rules(&problem, rule, of_h, Arc::new(HeldOut), span, 5).unwrap();
    let pair = Pair::new(&problem, &matrix(9, 3, 0.9), &matrix(3, 7, 0.7)).unwrap();
    let lambda = problem.tensor("λ", &matrix(9, 1, 0.2), [9, 1]).unwrap();
    (bunch, pair, [lambda])
}

#[test]
fn masks_held_out_errors_sums_of_terms_and_exponents() {
    for separable in [true, false] {
        let (bunch, pair, lambda) = elaborate(separable);
        let report = check_bunch(&bunch, &pair, &lambda, &MODES).unwrap();
        assert!(report.hypergradient.iter().any(|g| g.abs() > 1e-3));
        report.assert_consistent();
        let all = report
            .comparisons
            .iter()
            .all(|c| c.verdict == Verdict::Pass);
        assert!(all, "{report}");
    }
}

#[test]
fn a_block_of_rows_at_a_time_is_the_same_hypergradient() {
    let (bunch, pair, lambda) = elaborate(true);
    let whole = Reverse::default().compute(&bunch, &pair, &lambda).unwrap();
    for block_rows in [1, 2, 4, 8, 9, 100] {
        let blocked = Reverse {
            block_rows: Some(block_rows),
        };
        let blocked = blocked.compute(&bunch, &pair, &lambda).unwrap();
        assert_close(
            "gradient",
            &blocked.gradients[0],
            &whole.gradients[0],
            1e-13,
        );
        assert_close("w", &blocked.pair.w, &whole.pair.w, 1e-14);
        assert!((blocked.outer_error / whole.outer_error - 1.0).abs() < 1e-14);
    }
    // Coupled rows share one tape, whatever is asked.
    let (bunch, pair, lambda) = elaborate(false);
    let whole = Reverse::default().compute(&bunch, &pair, &lambda).unwrap();
    let blocked = Reverse {
        block_rows: Some(2),
    };
    let blocked = blocked.compute(&bunch, &pair, &lambda).unwrap();
    assert_close("gradient", &blocked.gradients[0], &whole.gradients[0], 0.0);
}

#[test]
fn the_implicit_mode_is_the_limit_of_long_bunches() {
    let x = matrix(6, 8, 0.4);
    let problem = problem(&x);
    let pair = Pair::new(&problem, &matrix(6, 2, 0.1), &matrix(2, 8, 0.8)).unwrap();
    let lambda = [problem.tensor("λ", &matrix(6, 1, 0.6), [6, 1]).unwrap()];
    for (beta, penalty) in [(1.0, "l1"), (2.0, "l2"), (0.5, "l21"), (1.5, "group")] {
        let penalty = crate::penalty::by_name(penalty).unwrap();
        let bunch = |length| Bunch::new(&problem, Beta(beta), penalty.clone(), length).unwrap();
        let implicit = bunch(1)
            .hypergradient(&pair, &lambda, Mode::Implicit)
            .unwrap();
        let distance = |length| {
            let unrolled = bunch(length).hypergradient(&pair, &lambda, Mode::Adjoint);
            super::common::distance(&unrolled.unwrap().gradients[0], &implicit.gradients[0])
        };
        let (short, long) = (distance(4), distance(4000));
        assert!(long < 1e-8, "β={beta}: {long:e}");
        assert!(short > 1e-3, "β={beta}: {short:e}");
    }
}

#[test]
fn the_implicit_mode_refuses_where_it_is_not_exact() {
    let problem = problem(&matrix(6, 8, 0.4));
    let pair = Pair::new(&problem, &matrix(6, 2, 0.1), &matrix(2, 8, 0.8)).unwrap();
    let lambda = [problem.tensor("λ", &matrix(6, 1, 0.6), [6, 1]).unwrap()];
    let bunch = Bunch::new(&problem, Beta::KL, L1, 4).unwrap();
    let hasty = Implicit {
        max_updates: 20,
        ..Implicit::default()
    };
    assert!(matches!(
        hasty.compute(&bunch, &pair, &lambda),
        Err(Error::NoFixedPoint { updates: 20, residual, .. }) if residual > 1e-12
    ));

    // Two equal rows of H: any split between the components is a fixed point.
    let equal = array![[1.0, 2.0, 0.5, 1.0, 0.3, 0.7, 1.2, 0.4]];
    let equal = ndarray::concatenate![ndarray::Axis(0), equal, equal];
    let pair = Pair::new(&problem, &matrix(6, 2, 0.1), &equal).unwrap();
    let bunch = Bunch::new(&problem, Beta::KL, L1, 4).unwrap();
    assert!(matches!(
        bunch.hypergradient(&pair, &lambda, Mode::Implicit),
        Err(Error::SingularFixedPoint { row: 0, .. })
    ));

    let bunch = Bunch::new(&problem, Beta::KL, Smooth, 4).unwrap();
    assert!(matches!(
        bunch.hypergradient(&pair, &lambda, Mode::Implicit),
        Err(Error::ModeUnsupported {
            mode: "implicit",
            ..
        })
    ));
}

/// With KL, ℓ1 and rows of H that all sum to h, the penalty only rescales:
/// w(λ) = w(0) / (1 + λ/h) at the fixed point.
#[test]
fn equal_row_sums_of_h_make_l1_a_rescaling() {
    let x = matrix(5, 9, 0.15);
    let problem = problem(&x);
    let mut h = matrix(3, 9, 0.45);
    for mut row in h.rows_mut() {
        let sum = row.sum();
        row.mapv_inplace(|entry| entry * 2.5 / sum);
    }
    let pair = Pair::new(&problem, &matrix(5, 3, 0.75), &h).unwrap();
    let lambda = matrix(5, 1, 0.35);
    let fixed_point = |lambda: &Array2<f64>| {
        let lambda = problem.tensor("λ", lambda, [5, 1]).unwrap();
        let bunch = Bunch::new(&problem, Beta::KL, L1, 20_000).unwrap();
        bunch.run(&pair, &[lambda]).w.to_matrix().unwrap()
    };
    let unpenalised = fixed_point(&Array2::zeros((5, 1)));
    let penalised = fixed_point(&lambda);
    let rescaled = &unpenalised / &(lambda / 2.5 + 1.0);
    assert_close("w(λ)", &penalised, &rescaled, 1e-8);
}

/// d = (√x − √y)², without a slope.
#[derive(Debug)]
struct Hellinger;

impl Divergence for Hellinger {
    fn name(&self) -> String {
        "hellinger".into()
    }
    fn value(&self, x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2> {
        (x.clone().sqrt() - y.clone().sqrt()).square()
    }
    fn split(&self, x: &Tensor<2>, y: &Tensor<2>) -> Split {
        Split {
            positive: y.ones_like(),
            negative: (x.clone() / y.clone()).sqrt(),
        }
    }
}

/// ½‖w‖² under a wrong split gradient or a wrong tangent.
#[derive(Debug)]
struct Wrong {
    tangent: f64,
}

impl Penalty for Wrong {
    fn name(&self) -> String {
        "wrong".into()
    }
    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        SquaredL2.value(w)
    }
    fn split(&self, w: &Tensor<2>) -> Split {
        SquaredL2.split(w)
    }
    fn tangent(&self, w: &Tensor<2>, direction: &Tensor<2>) -> Option<Split> {
        SquaredL2.tangent(w, &(direction.clone() * self.tangent))
    }
}

#[test]
fn a_plug_in_without_tangent_works_in_reverse_and_is_refused_elsewhere() {
    let problem = problem(&matrix(4, 6, 0.5));
    let report = check(&problem, Hellinger, L1).unwrap();
    report.assert_consistent();
    let verdicts: Vec<Verdict> = report.comparisons.iter().map(|c| c.verdict).collect();
    let (pass, unchecked) = (Verdict::Pass, Verdict::Unchecked);
    assert_eq!(verdicts, [unchecked, unchecked, pass]);

    let pair = Pair::new(&problem, &matrix(4, 2, 0.1), &matrix(2, 6, 0.8)).unwrap();
    let lambda = [problem.tensor("λ", &matrix(4, 1, 0.6), [4, 1]).unwrap()];
    let bunch = Bunch::new(&problem, Hellinger, L1, 3).unwrap();
    for (mode, name) in [
        (Mode::Forward, "forward"),
        (Mode::Adjoint, "adjoint"),
        (Mode::Implicit, "implicit"),
    ] {
        let refusal = bunch.hypergradient(&pair, &lambda, mode);
        assert!(
            matches!(&refusal, Err(Error::ModeUnsupported { mode, reason })
                if *mode == name && reason.contains("hellinger")),
            "{refusal:?}"
        );
    }
}

#[test]
fn a_hypergradient_lost_in_rounding_is_unchecked_not_a_mismatch() {
    // X is W H to the last digit, and λ = 0: nothing wants to move.
    let (w, h) = (matrix(6, 2, 0.3), matrix(2, 5, 0.7));
    let exact = problem(&w.dot(&h));
    let tensor = |m: &Array2<f64>| exact.tensor("test", m, [m.nrows(), m.ncols()]).unwrap();
    let bunch = Bunch::new(&exact, Beta::KL, L1, 4).unwrap();
    let lambda = [tensor(&Array2::zeros((6, 1)))];
    let pair = Pair::new(&exact, &w, &h).unwrap();
    let report = check_bunch(&bunch, &pair, &lambda, &MODES).unwrap();
    assert!(!report.is_inconsistent(), "{report}");

    // Strong powers drive rows to zero, where E is flat to the last digit.
    let x = matrix(30, 12, 0.2);
    for beta in [5.0, 6.0] {
        let report = check(&problem(&x), Beta(beta), L1).unwrap();
        assert!(!report.is_inconsistent(), "β={beta}\n{report}");
    }

    // One λ of zero among large ones, and H in small units.
    let mut lambda = Array2::from_elem((30, 1), 1e6);
    lambda[[4, 0]] = 0.0;
    for (scale, lambda) in [(1.0, lambda), (1e-6, Array2::zeros((30, 1)))] {
        let problem = problem(&x);
        let tensor = |m: &Array2<f64>| problem.tensor("test", m, [m.nrows(), m.ncols()]).unwrap();
        let (h, w) = (matrix(3, 12, 0.4) * scale, matrix(30, 3, 0.1) / scale);
        let pair = Pair::new(&problem, &w, &h).unwrap();
        let bunch = Bunch::new(&problem, Beta::KL, L1, 4).unwrap();
        let report = check_bunch(&bunch, &pair, &[tensor(&lambda)], &MODES).unwrap();
        assert!(!report.is_inconsistent(), "{scale}\n{report}");
    }
}

#[test]
fn tensors_of_another_type_are_refused() {
    let wide = problem(&matrix(4, 6, 0.5));
    let narrow = Problem::new(&matrix(4, 6, 0.5), Precision::F32).unwrap();
    let bunch = Bunch::new(&narrow, Beta::KL, L1, 3).unwrap();
    let pair = |problem| Pair::new(problem, &matrix(4, 2, 0.1), &matrix(2, 6, 0.1)).unwrap();
    let lambda = [narrow.tensor("λ", &matrix(4, 1, 0.1), [4, 1]).unwrap()];
    let refused = bunch.hypergradient(&pair(&wide), &lambda, Mode::Reverse);
    assert!(matches!(refused, Err(Error::Precision { what: "W", .. })));
    let mixed = Pair {
        h: pair(&wide).h,
        ..pair(&narrow)
    };
    let refused = bunch.hypergradient(&mixed, &lambda, Mode::Reverse);
    assert!(matches!(refused, Err(Error::Precision { what: "Hᵀ", .. })));
}

#[test]
fn the_implicit_mode_works_in_32_bits() {
    let problem = Problem::new(&matrix(6, 8, 0.4), Precision::F32).unwrap();
    let pair = Pair::new(&problem, &matrix(6, 2, 0.1), &matrix(2, 8, 0.8)).unwrap();
    let lambda = [problem.tensor("λ", &matrix(6, 1, 0.6), [6, 1]).unwrap()];
    let bunch = Bunch::new(&problem, Beta::KL, L1, 4).unwrap();
    let implicit = bunch.hypergradient(&pair, &lambda, Mode::Implicit).unwrap();
    let long = Bunch::new(&problem, Beta::KL, L1, 4000).unwrap();
    let unrolled = long.hypergradient(&pair, &lambda, Mode::Adjoint).unwrap();
    assert_close(
        "implicit",
        &implicit.gradients[0],
        &unrolled.gradients[0],
        1e-2,
    );
}

#[test]
fn the_checker_finds_a_wrong_tangent() {
    let problem = problem(&matrix(4, 6, 0.5));
    check(&problem, Beta::KL, Wrong { tangent: 1.0 })
        .unwrap()
        .assert_consistent();
    // Wrong by a part in a million is wrong.
    let report = check(&problem, Beta::KL, Wrong { tangent: 1.000_001 }).unwrap();
    assert_eq!(report.comparisons[0].verdict, Verdict::Mismatch);
    assert!(!report.is_consistent());
}

#[test]
fn dividing_by_a_number_on_the_tape_costs_half_the_digits() {
    /// KL with its value divided by 3 and multiplied by 3.
    #[derive(Debug)]
    struct Divided;
    impl Divergence for Divided {
        fn name(&self) -> String {
            "divided".into()
        }
        fn value(&self, x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2> {
            Beta::KL.value(x, y) / 3.0 * 3.0
        }
        fn split(&self, x: &Tensor<2>, y: &Tensor<2>) -> Split {
            Beta::KL.split(x, y)
        }
        fn slope(&self, x: &Tensor<2>, y: &Tensor<2>) -> Option<crate::Slope> {
            Beta::KL.slope(x, y)
        }
    }
    // The trap that `numerics` warns of: the checker sees it. If this test ever
    // fails because Burn got better, the warning can go.
    let report = check(&problem(&matrix(4, 6, 0.5)), Divided, L1).unwrap();
    let difference = report.difference(Mode::Forward).unwrap();
    assert!((1e-9..1e-6).contains(&difference), "{difference:e}");
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let problem = problem(&matrix(4, 6, 0.5));
    let tensor = |rows, columns| {
        let values = matrix(rows, columns, 0.1);
        problem.tensor("test", &values, [rows, columns]).unwrap()
    };
    let zero_length = Bunch::new(&problem, Beta::KL, L1, 0);
    assert!(matches!(zero_length, Err(Error::Setting { .. })));
    let bunch = Bunch::new(&problem, Beta::KL, L1, 3).unwrap();
    let refused = |w, h, lambda: Vec<Tensor<2>>| {
        let result = bunch.hypergradient(&Pair { w, h }, &lambda, Mode::Reverse);
        result.unwrap_err()
    };
    let wrong_h = refused(tensor(4, 2), tensor(5, 2), vec![tensor(4, 1)]);
    assert!(matches!(wrong_h, Error::Shape { what: "Hᵀ", .. }));
    let wrong_w = refused(tensor(3, 2), tensor(6, 2), vec![tensor(4, 1)]);
    assert!(matches!(wrong_w, Error::Shape { what: "W", .. }));
    let wrong_lambda = refused(tensor(4, 2), tensor(6, 2), vec![tensor(3, 1)]);
    assert!(matches!(wrong_lambda, Error::Shape { what: "λ", .. }));
    let two = refused(tensor(4, 2), tensor(6, 2), vec![tensor(4, 1); 2]);
    assert!(matches!(two, Error::Shape { .. }));
    let (of_w, of_h) = (bunch.of_w.clone(), bunch.of_h.clone());
    let no_weights = Bunch::with_rules(&problem, of_w, of_h, Arc::new(HeldOut), bunch.span, 3);
    assert!(matches!(no_weights, Err(Error::Conflict { .. })));
    assert!(relative_difference(&[f64::NAN], &[1.0]).is_infinite());
}

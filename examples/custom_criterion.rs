//! Your own outer error: λ is tuned for it, while the updates minimise the divergence.
//!
//! Here it is `E = Σ log(1 + (x − y)²)` over held-out entries. A gross error counts little more
//! than a large one, so a few broken entries do not dominate the choice of λ.
//!
//! ```text
//! cargo run --release --example custom_criterion
//! ```

use std::sync::Arc;

use altbi::check::check_bunch;
use altbi::criterion::Entries;
use altbi::data::{Noise, benchmark_b};
use altbi::problem::Observed;
use altbi::update::Rule;
use altbi::{
    AltBiConfig, Beta, Bunch, Criterion, Divergence, HeldOut, LambdaStep, Mode, Outcome, Pair,
    PenaltyTerm, Precision, Problem, Result, Selection, Side, Smooth, Span, Units,
};
use burn::tensor::Tensor;

#[derive(Debug, Clone, Copy)]
struct Robust;

impl Robust {
    /// Residuals and their weights: 1 for a held-out entry, 0 elsewhere.
    fn residuals(observed: &Observed, y: &Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let weights = observed.held_out.clone().expect("entries are held out");
        (observed.x.clone() - y.clone(), weights)
    }
}

impl Criterion for Robust {
    fn name(&self) -> String {
        "robust".into()
    }

    fn entries(&self) -> Entries {
        Entries::HeldOut
    }

    fn value(&self, _: &dyn Divergence, observed: &Observed, y: &Tensor<2>) -> Tensor<2> {
        let (residuals, weights) = Self::residuals(observed, y);
        (residuals.square().log1p() * weights).sum_dim(1)
    }

    // Reverse mode does not need it; forward and adjoint mode do.
    fn derivative(
        &self,
        _: &dyn Divergence,
        observed: &Observed,
        y: &Tensor<2>,
    ) -> Option<Tensor<2>> {
        let (residuals, weights) = Self::residuals(observed, y);
        Some(residuals.clone() * -2.0 / (residuals.square() + 1.0) * weights)
    }
}

fn main() -> Result<()> {
    // Smooth signals in counts, and a few entries that are far off.
    let mut x = Noise::Poisson(3.0).on(&benchmark_b(200, 30, 4, 50), 50).x;
    for broken in 0..60 {
        x[[3 * broken, 7 * broken % 30]] = 60.0;
    }
    let problem = Problem::new(&x, Precision::F64)?.speckled(0.1, 1)?;

    // Checks the derivative: every mode on one bunch, and finite differences.
    let of_w = Rule::new(Arc::new(Beta::KL), vec![PenaltyTerm::tuned(Smooth)]);
    let of_h = Rule::new(Arc::new(Beta::KL), Vec::new());
    let span = Span::One(Side::W);
    let bunch = Bunch::with_rules(&problem, of_w, of_h, Arc::new(Robust), span, 4)?;
    let positive = |rows, columns| {
        ndarray::Array2::from_shape_fn((rows, columns), |(i, j)| {
            0.2 + ((3 * i + 5 * j) % 7) as f64 / 7.0
        })
    };
    let pair = Pair::new(&problem, &positive(200, 6), &positive(6, 30))?;
    let lambda = [problem.tensor("λ", &positive(200, 1), [200, 1])?];
    let modes = [Mode::Forward, Mode::Adjoint, Mode::FiniteDifferences];
    let report = check_bunch(&bunch, &pair, &lambda, &modes)?;
    println!("{report}");
    report.assert_consistent();

    // Compares two runs by the robust error. One is tuned and stopped by it, the other by the
    // divergence of the held-out entries, which the broken ones dominate.
    let config = AltBiConfig::new(6)
        .with_units(Units::Relative)
        .with_lambda_step(LambdaStep::Adam(0.3))
        .with_max_iterations(80)
        .with_select(Selection::Best);
    let robust = config
        .solver(Beta::KL, Smooth)
        .with_criterion(Robust)
        .run(&problem)?;
    let usual = config
        .solver(Beta::KL, Smooth)
        .with_criterion(HeldOut)
        .run(&problem)?;
    let error = |found: &Outcome| {
        Pair::new(&problem, &found.w, &found.h).map(|pair| bunch.outer_error(&pair))
    };
    let (of_robust, of_usual) = (error(&robust)?, error(&usual)?);
    println!("robust error: {of_robust:.2} tuned for it, {of_usual:.2} tuned for KL");
    assert!(of_robust < of_usual);
    Ok(())
}

#[test]
fn verifies_itself() {
    main().unwrap();
}

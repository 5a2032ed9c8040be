//! A divergence of your own: the squared Hellinger distance
//! `d(x, y) = (√x − √y)²`, first without and then with a hand-written slope.
//!
//! ```text
//! cargo run --release --example custom_divergence
//! ```

use altbi::{
    AltBiConfig, Divergence, Error, L1, Mode, Precision, Problem, Result, Slope, Split, Verdict,
    check,
};
use burn::tensor::Tensor;

/// d' = 1 − √(x/y), which splits into 1 and √(x/y).
#[derive(Debug, Clone, Copy)]
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

/// The same, with the derivative of its split: it joins every mode.
#[derive(Debug, Clone, Copy)]
struct HellingerWithSlope;

impl Divergence for HellingerWithSlope {
    fn name(&self) -> String {
        "hellinger with slope".into()
    }

    fn value(&self, x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2> {
        Hellinger.value(x, y)
    }

    fn split(&self, x: &Tensor<2>, y: &Tensor<2>) -> Split {
        Hellinger.split(x, y)
    }

    // ∂√(x/y)/∂y = −½ √(x/y) / y; the other part does not depend on y.
    fn slope(&self, x: &Tensor<2>, y: &Tensor<2>) -> Option<Slope> {
        let negative = (x.clone() / y.clone()).sqrt() / y.clone() * -0.5;
        Some(Slope {
            positive: None,
            negative: Some(negative),
        })
    }
}

fn main() -> Result<()> {
    // Positive data: √ has no derivative at 0, on the tape as elsewhere.
    let x = altbi::data::benchmark_a(120, 25, 3, 4).x + 0.01;
    let problem = Problem::new(&x, Precision::F64)?;

    // Without slope: reverse mode works, and finite differences vouch for it.
    let report = check(&problem, Hellinger, L1)?;
    println!("{report}");
    report.assert_consistent();
    let refused = AltBiConfig::new(3)
        .with_hypergradient(Mode::Forward)
        .solver(Hellinger, L1)
        .fit(&x);
    match refused {
        Err(error @ Error::ModeUnsupported { .. }) => println!("as it should be: {error}\n"),
        other => panic!("forward mode should have refused: {other:?}"),
    }

    // With slope: every mode agrees.
    let report = check(&problem, HellingerWithSlope, L1)?;
    println!("{report}");
    report.assert_consistent();
    assert!(
        report
            .comparisons
            .iter()
            .all(|c| c.verdict == Verdict::Pass)
    );

    let outcome = AltBiConfig::new(3)
        .with_hypergradient(Mode::Forward)
        .with_max_iterations(50)
        .solver(HellingerWithSlope, L1)
        .fit(&x)?;
    println!("divergence {:.6}", outcome.divergence);
    Ok(())
}

#[test]
fn verifies_itself() {
    main().unwrap();
}

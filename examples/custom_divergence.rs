//! Your own divergence: the squared Hellinger distance `d(x, y) = (√x − √y)²`. It is written first
//! on tensors only, then with a hand-written slope, and last in plain numbers too, which makes it
//! as fast as the built-in ones.
//!
//! ```text
//! cargo run --release --example custom_divergence
//! ```

use std::sync::Arc;

use altbi::divergence::{EntryParts, Fused, PerEntry};
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

/// The same with the derivative of its split, for all modes, and in plain numbers, for fused loops.
#[derive(Debug, Clone, Copy)]
struct HellingerWithSlope;

/// The same formulas, on numbers instead of tensors.
#[derive(Debug)]
struct HellingerOfNumbers;

impl PerEntry for HellingerOfNumbers {
    fn value(&self, x: f64, y: f64) -> f64 {
        (x.sqrt() - y.sqrt()).powi(2)
    }

    fn split(&self, x: f64, y: f64) -> EntryParts {
        EntryParts {
            positive: 1.0,
            negative: (x / y).sqrt(),
        }
    }

    fn slope(&self, x: f64, y: f64) -> EntryParts {
        EntryParts {
            positive: 0.0,
            negative: -0.5 * (x / y).sqrt() / y,
        }
    }
}

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

    fn fused(&self) -> Option<Fused> {
        Some(Fused::PerEntry(Arc::new(HellingerOfNumbers)))
    }
}

fn main() -> Result<()> {
    // The data are positive, because √ has no derivative at 0.
    let x = altbi::data::benchmark_a(120, 25, 3, 4).x + 0.01;
    let problem = Problem::new(&x, Precision::F64)?;

    // Without slope: reverse mode works, and finite differences confirm it.
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

    // With slope: every mode agrees. With numbers: fused loops agree with tensors.
    let report = check(&problem, HellingerWithSlope, L1)?;
    println!("{report}");
    report.assert_consistent();
    assert!(report.modes().all(|(_, verdict)| verdict == Verdict::Pass));
    assert_eq!(report.fused().count(), 3);

    let outcome = AltBiConfig::new(3)
        .with_hypergradient(Mode::Forward)
        .with_max_iterations(50)
        .solver(HellingerWithSlope, L1)
        .fit(&x)?;
    println!(
        "divergence {:.6}, engine {}",
        outcome.divergence, outcome.engine
    );
    assert_eq!(outcome.engine.name(), "fused");
    Ok(())
}

#[test]
fn verifies_itself() {
    main().unwrap();
}

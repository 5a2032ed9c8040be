//! Your own penalty: `r(w) = Σ_k log(1 + w_k / ε)`.
//!
//! It gives sparser factors than ℓ1, because its gradient grows as an entry shrinks. Reverse mode
//! needs only the value and the split gradient. With tangent and cotangent the penalty also works
//! in forward, adjoint and implicit mode. The gradient checker then compares them all.
//!
//! ```text
//! cargo run --release --example custom_penalty
//! ```

use altbi::{AltBiConfig, Beta, Mode, Penalty, Precision, Problem, Result, Split, Verdict, check};
use burn::tensor::Tensor;

#[derive(Debug, Clone, Copy)]
struct Logarithm {
    epsilon: f64,
}

impl Penalty for Logarithm {
    fn name(&self) -> String {
        format!("logarithm({})", self.epsilon)
    }

    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        (w.clone() * self.epsilon.recip()).log1p().sum_dim(1)
    }

    // The gradient 1 / (w + ε) is positive, so all of it is p⁺.
    fn split(&self, w: &Tensor<2>) -> Split {
        Split {
            positive: (w.clone() + self.epsilon).recip(),
            negative: w.zeros_like(),
        }
    }

    // d/dw of 1 / (w + ε), times the direction.
    fn tangent(&self, w: &Tensor<2>, direction: &Tensor<2>) -> Option<Split> {
        Some(Split {
            positive: -(w.clone() + self.epsilon).square().recip() * direction.clone(),
            negative: w.zeros_like(),
        })
    }

    // The derivative is diagonal, so it equals its transpose.
    fn cotangent(&self, w: &Tensor<2>, parts: &Split) -> Option<Tensor<2>> {
        self.tangent(w, &parts.positive).map(|split| split.positive)
    }
}

fn main() -> Result<()> {
    let penalty = Logarithm { epsilon: 0.1 };
    let x = altbi::data::benchmark_a(120, 25, 3, 4).x;

    let problem = Problem::new(&x, Precision::F64)?;
    let report = check(&problem, Beta::KL, penalty)?;
    println!("{report}");
    report.assert_consistent();
    assert!(report.modes().all(|(_, verdict)| verdict == Verdict::Pass));

    for mode in [Mode::Reverse, Mode::Forward] {
        let outcome = AltBiConfig::new(3)
            .with_hypergradient(mode)
            .with_max_iterations(50)
            .solver(Beta::KL, penalty)
            .fit(&x)?;
        println!(
            "{mode} mode: divergence {:.6}, W {:.1} % sparse",
            outcome.divergence, outcome.sparsity_w
        );
    }
    Ok(())
}

#[test]
fn verifies_itself() {
    main().unwrap();
}

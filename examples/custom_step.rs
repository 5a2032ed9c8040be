//! Your own λ step: resilient propagation (Rprop), along log λ.
//!
//! Every weight has its own step length. It grows while the slope keeps its sign, and shrinks when
//! the sign changes. The size of the slope does not matter. The solver stores the memory of the
//! step, also in checkpoints.
//!
//! ```text
//! cargo run --release --example custom_step
//! ```

use altbi::data::{Noise, benchmark_b};
use altbi::lambda::{StepAt, StepRule};
use altbi::{
    AltBiConfig, Beta, HeldOut, LambdaStep, Method, Outcome, Precision, Problem, Result, Selection,
    Smooth, Units,
};
use ndarray::Array2;

#[derive(Debug, Clone, Copy)]
struct Resilient;

impl StepRule for Resilient {
    /// The last sign, and the step length.
    fn memories(&self) -> usize {
        2
    }

    fn is_along_logarithm(&self) -> bool {
        true
    }

    fn step(
        &self,
        lambda: &mut Array2<f64>,
        slope: &Array2<f64>,
        at: StepAt,
        memory: &mut Array2<f64>,
    ) {
        for ((weight, slope), mut memory) in lambda.iter_mut().zip(slope).zip(memory.rows_mut()) {
            let sign = slope.signum();
            memory[1] = match memory[0] * sign {
                _ if at.iteration == 1 => 0.1,
                kept if kept > 0.0 => (memory[1] * 1.2).min(1.0),
                _ => (memory[1] * 0.5).max(1e-3),
            };
            memory[0] = sign;
            *weight *= (-sign * memory[1]).exp();
        }
    }
}

fn main() -> Result<()> {
    let x = Noise::Poisson(3.0).on(&benchmark_b(200, 30, 4, 50), 50).x;
    let problem = Problem::new(&x, Precision::F64)?.speckled(0.1, 1)?;
    let config = AltBiConfig::new(6)
        .with_units(Units::Relative)
        .with_max_iterations(80)
        .with_select(Selection::Best);
    let run = |config: AltBiConfig, step: Option<Resilient>| -> Result<Outcome> {
        let mut solver = config.solver(Beta::KL, Smooth).with_criterion(HeldOut);
        if let Some(step) = step {
            solver = solver.with_lambda_step(step);
        }
        solver.run(&problem)
    };
    let frozen = run(config.clone().with_method(Method::Frozen), None)?;
    let adam = run(config.clone().with_lambda_step(LambdaStep::Adam(0.3)), None)?;
    let resilient = run(config, Some(Resilient))?;
    for (name, outcome) in [
        ("first λ kept", &frozen),
        ("Adam", &adam),
        ("Rprop", &resilient),
    ] {
        println!("{name:<13} held-out error {:.2}", outcome.outer_error);
    }
    assert!(resilient.outer_error < frozen.outer_error);
    assert!(resilient.outer_error < 1.05 * adam.outer_error);
    Ok(())
}

#[test]
fn verifies_itself() {
    main().unwrap();
}

//! dE/dλ alone, for your own loop: one bunch of T updates, differentiated in four independent ways.
//!
//! ```text
//! cargo run --release --example hypergradients
//! ```

use altbi::check::check_bunch;
use altbi::{Beta, Bunch, Mode, Pair, Precision, Problem, Result, SquaredL2, ToMatrix};
use ndarray::Array2;

fn main() -> Result<()> {
    let positive = |rows, columns, shift: usize| {
        Array2::from_shape_fn((rows, columns), |(i, j)| {
            0.2 + ((3 * i + 5 * j + shift) % 7) as f64 / 7.0
        })
    };
    let problem = Problem::new(&positive(12, 8, 0), Precision::F64)?;
    let pair = Pair::new(&problem, &positive(12, 2, 1), &positive(2, 8, 2))?;
    // One λ for each row of W.
    let lambda = [problem.tensor("λ", &positive(12, 1, 3), [12, 1])?];

    let bunch = Bunch::new(&problem, Beta::KL, SquaredL2, 4)?;
    for mode in [
        Mode::Reverse,
        Mode::Forward,
        Mode::Adjoint,
        Mode::FiniteDifferences,
    ] {
        let through = bunch.hypergradient(&pair, &lambda, mode)?;
        let gradient = through.gradients[0].to_matrix()?;
        println!(
            "{:<19} E = {:.6}, dE/dλ of row 0 = {:.10}",
            mode.to_string(),
            through.outer_error,
            gradient[[0, 0]]
        );
    }

    // A step of λ against the gradient lowers E.
    let through = bunch.hypergradient(&pair, &lambda, Mode::Reverse)?;
    let slope = through.gradients[0].clone();
    let length = 0.01 / slope.clone().abs().max().into_scalar::<f64>();
    let after = bunch.outer_error(&bunch.run(&pair, &[lambda[0].clone() - slope * length]));
    println!("E after a step: {after:.6}");
    assert!(after < through.outer_error);

    let modes = [Mode::Forward, Mode::Adjoint, Mode::FiniteDifferences];
    check_bunch(&bunch, &pair, &lambda, &modes)?.assert_consistent();
    Ok(())
}

#[test]
fn verifies_itself() {
    main().unwrap();
}

//! Factorise a matrix with the paper's settings and look at the result.
//!
//! ```text
//! cargo run --release --example quickstart
//! ```

use altbi::{AltBiConfig, Result};

fn main() -> Result<()> {
    // Any matrix works: an ndarray, a Burn tensor, or a slice with its shape.
    let x = altbi::data::benchmark_a(200, 30, 3, 1).x;

    let outcome = AltBiConfig::new(3).with_seed(7).fit(&x)?;

    println!(
        "{} after {} iterations: relative error {:.2e}",
        outcome.stop_reason, outcome.iterations, outcome.relative_error
    );
    println!(
        "W is {:.0} % sparse; λ of the first rows: {:.3}",
        outcome.sparsity_w,
        outcome.lambda.slice(ndarray::s![..5, 0])
    );
    let new_columns = altbi::data::benchmark_a(200, 4, 3, 2).x;
    let encoded = outcome.encode_columns(&new_columns)?;
    println!("four new columns, encoded:\n{encoded:.3}");
    assert!(outcome.relative_error < 0.05);
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}

//! Does a penalty help on my data, and how strong should it be? The preset `practical` holds
//! entries out, tunes λ on them, and says whether plain updates are as good.
//!
//! ```text
//! cargo run --release --example held_out_tuning -- held_out_tuning.svg
//! ```

use altbi::data::{Noise, benchmark_b};
use altbi::plot::lines;
use altbi::practical::Practical;
use altbi::{Beta, Factors, L1, NoPenalty, PenaltyTerm, Precision, Problem, Result, Side, Smooth};
use ndarray::Array2;

/// The figure: one column of X, true and estimated, with and without penalty.
fn picture() -> Result<String> {
    let noisy = Noise::Poisson(3.0).on(&benchmark_b(200, 30, 4, 50), 50);
    let truth = noisy.w.dot(&noisy.h);
    let problem = Problem::new(&noisy.x, Precision::F64)?;

    // Smooth columns of W and few entries in H, with twice the true number of components.
    let penalties = [
        (Side::W, PenaltyTerm::tuned(Smooth)),
        (Side::H, PenaltyTerm::tuned(L1)),
    ];
    let tuned = Practical::new(8, Beta::KL, penalties).run(&problem, 50)?;
    let none = [(Side::W, PenaltyTerm::tuned(NoPenalty))];
    let plain = Practical::new(8, Beta::KL, none).run(&problem, 50)?;

    for candidate in &tuned.candidates {
        println!(
            "{:<31} held-out error {:.1}",
            candidate.stage.to_string(),
            candidate.outer_error
        );
    }
    let squares = |matrix: Array2<f64>| matrix.iter().map(|x| x * x).sum::<f64>();
    let error = |found: &Factors| squares(&truth - &found.w.dot(&found.h)) / squares(truth.clone());
    let (with, without) = (
        error(&tuned.outcome.factors()),
        error(&plain.outcome.factors()),
    );
    println!("error against the truth: {with:.4} with tuned penalties, {without:.4} without");
    assert!(with < 0.7 * without);

    // One column of the true matrix, of the data and of both reconstructions.
    let line = |matrix: Array2<f64>| -> Vec<(f64, f64)> {
        (0..120).map(|row| (row as f64, matrix[[row, 3]])).collect()
    };
    let of = |found: Factors| line(found.w.dot(&found.h));
    let named = [
        ("plain", of(plain.outcome.factors())),
        ("tuned", of(tuned.outcome.factors())),
        ("truth", line(truth)),
    ];
    Ok(lines("row", "column 3 of X", false, &named))
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let svg = picture()?;
    if let Some(path) = std::env::args().nth(1) {
        std::fs::write(path, svg)?;
    }
    Ok(())
}

#[test]
fn verifies_itself() {
    picture().unwrap();
}

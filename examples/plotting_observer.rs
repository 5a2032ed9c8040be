//! An observer that plots: it sees every iteration and draws curves.
//!
//! ```text
//! cargo run --release --example plotting_observer -- plotting_observer.svg
//! ```

use std::sync::{Arc, Mutex};

use altbi::plot::lines;
use altbi::{AltBiConfig, Beta, L1, Observer, Record, Result, Signal, State};

type Line = Vec<(f64, f64)>;

/// The lines so far. A clone shares them.
#[derive(Debug, Clone, Default)]
struct Plotter(Arc<Mutex<[Line; 3]>>);

impl Observer for Plotter {
    fn iterated(&mut self, record: &Record, _: &State) -> Signal {
        let mut lines = self.0.lock().unwrap();
        let at = record.iteration as f64;
        lines[0].push((at, record.divergence));
        lines[1].push((at, record.objective));
        lines[2].push((at, record.lambda_median));
        // `Signal::Stop` would end the run here.
        Signal::Continue
    }
}

impl Plotter {
    fn svg(&self) -> String {
        let [divergence, objective, lambda] = self.0.lock().unwrap().clone();
        let named = [
            ("divergence", divergence),
            ("with the penalty", objective),
            ("median of λ", lambda),
        ];
        lines("iteration", "", true, &named)
    }
}

fn picture() -> Result<String> {
    let x = altbi::data::benchmark_a(200, 30, 3, 1).x;
    let plotter = Plotter::default();
    let outcome = AltBiConfig::new(3)
        .with_max_iterations(150)
        .solver(Beta::KL, L1)
        .observe(plotter.clone())
        .fit(&x)?;
    let seen = plotter.0.lock().unwrap()[0].len();
    println!(
        "{seen} points; the divergence ended at {:.4}",
        outcome.divergence
    );
    // The start, and every iteration.
    assert_eq!(seen, outcome.iterations + 1);
    Ok(plotter.svg())
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
    assert!(picture().unwrap().contains("median of λ"));
}

//! Materials in a hyperspectral scene: W holds their spectra, H their maps.
//!
//! The scene is generated: smooth spectra over 60 bands, smooth maps of 24×24 pixels, and noise.
//! Neighbouring bands are alike, and so are neighbouring pixels. The penalties encode this.
//!
//! ```text
//! cargo run --release --example hyperspectral -- hyperspectral.svg
//! ```

use altbi::data::{Noise, benchmark_d};
use altbi::metrics::recovery;
use altbi::penalty::Graph;
use altbi::plot::pictures;
use altbi::practical::Practical;
use altbi::{Beta, PenaltyTerm, Precision, Problem, Result, Side, Smooth};
use ndarray::Axis;

const SIDE: usize = 24;
const MATERIALS: usize = 3;

/// The figure: the true maps beside the estimated ones.
fn picture() -> Result<String> {
    let scene = Noise::Gaussian(0.2).on(&benchmark_d(60, SIDE, MATERIALS, 2), 2);
    let problem = Problem::new(&scene.x, Precision::F64)?;

    let penalties = [
        (Side::W, PenaltyTerm::tuned(Smooth)),
        (Side::H, PenaltyTerm::tuned(Graph::grid(SIDE, SIDE))),
    ];
    let found = Practical::new(MATERIALS, Beta::FROBENIUS, penalties).run(&problem, 1)?;
    let (w, h) = (&found.outcome.w, &found.outcome.h);

    let recovered = recovery(&scene.w, &scene.h, w, h)?;
    println!("taken: {}", found.candidates[found.chosen].stage);
    println!(
        "signal over interference: spectra {:.1} dB, maps {:.1} dB",
        recovered.mean_w(),
        recovered.mean_h()
    );
    assert!(recovered.mean_w() > 8.0 && recovered.mean_h() > 5.0);

    // In the order of the true materials, each map scaled to maximum 1.
    let mut maps = h.select(Axis(0), &recovered.assignment);
    for mut map in maps.rows_mut() {
        let most = map.fold(0.0, |most: f64, value| most.max(*value));
        map /= most;
    }
    let mut both = Vec::new();
    for (kind, maps) in [("true", &scene.h), ("found", &maps)] {
        for (k, map) in maps.rows().into_iter().enumerate() {
            let map = map.to_owned().into_shape_with_order((SIDE, SIDE));
            both.push((format!("{kind} {}", k + 1), map.expect("a pixel each")));
        }
    }
    Ok(pictures(both))
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

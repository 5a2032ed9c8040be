//! altbi in a linfa pipeline: a dataset is split, fitted, transformed and classified.
//!
//! There are two kinds of spectra. A spectrum is assigned to the kind with the nearest mean code.
//!
//! ```text
//! cargo run --release --features linfa --example linfa_pipeline
//! ```

use altbi::AltBiConfig;
use altbi::adapters::linfa::FitError;
use linfa::Dataset;
use linfa::prelude::*;
use ndarray_of_linfa::{Array1, Array2, Axis};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Each kind has its own peak, with noise. The two kinds alternate.
fn spectra(count: usize) -> Dataset<f64, bool, ndarray_of_linfa::Ix1> {
    let mut generator = ChaCha8Rng::seed_from_u64(3);
    let kinds = Array1::from_shape_fn(count, |sample| sample % 2 == 0);
    let records = Array2::from_shape_fn((count, 40), |(sample, channel)| {
        let peak = if kinds[sample] { 12.0 } else { 26.0 };
        let height = (-((channel as f64 - peak) / 6.0).powi(2)).exp();
        height + generator.random_range(0.0..0.8)
    });
    Dataset::new(records, kinds)
}

fn main() -> Result<(), FitError> {
    let (training, validation) = spectra(120).split_with_ratio(0.75);

    let components = Fit::fit(&AltBiConfig::new(2), &training)?;
    let training = components.transform(training)?;
    let validation = components.transform(validation)?;

    let mean_of = |kind: bool| {
        let is = |(sample, of): (usize, &bool)| (*of == kind).then_some(sample);
        let samples: Vec<usize> = training.targets.iter().enumerate().filter_map(is).collect();
        training
            .records
            .select(Axis(0), &samples)
            .mean_axis(Axis(0))
    };
    let (one, other) = (mean_of(true).unwrap(), mean_of(false).unwrap());
    let found = validation.records.map_axis(Axis(1), |code| {
        let distance = |mean: &Array1<f64>| (&code - mean).mapv(|d| d * d).sum();
        distance(&one) < distance(&other)
    });
    let accuracy = found.confusion_matrix(&validation)?.accuracy();
    println!("{:.0} % of new spectra recognised", 100.0 * accuracy);
    assert!(accuracy > 0.9);
    Ok(())
}

#[test]
fn verifies_itself() {
    main().unwrap();
}

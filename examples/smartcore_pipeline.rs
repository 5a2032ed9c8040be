//! altbi in a smartcore pipeline: components are the features of a nearest-neighbour classifier.
//!
//! Documents are counts of 60 words on two subjects. The subject of a new document is that of the
//! nearest old ones, by two components instead of 60 words.
//!
//! ```text
//! cargo run --release --features smartcore --example smartcore_pipeline
//! ```

use altbi::{AltBiConfig, Outcome};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use smartcore::api::{Transformer, UnsupervisedEstimator};
use smartcore::error::Failed;
use smartcore::linalg::basic::matrix::DenseMatrix;
use smartcore::neighbors::knn_classifier::KNNClassifier;

const WORDS: usize = 60;

/// Documents with their subjects. Each subject uses its own half of the words twice as often.
fn documents(count: usize, seed: u64) -> (DenseMatrix<f64>, Vec<u32>) {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let subjects: Vec<u32> = (0..count).map(|document| document as u32 % 2).collect();
    let rows: Vec<Vec<f64>> = subjects
        .iter()
        .map(|subject| {
            let word = |word: usize| {
                let own = (word < WORDS / 2) == (*subject == 0);
                let most: f64 = if own { 4.0 } else { 2.0 };
                generator.random_range(0.0..most).floor()
            };
            (0..WORDS).map(word).collect()
        })
        .collect();
    (
        DenseMatrix::from_2d_vec(&rows).expect("rows of one length"),
        subjects,
    )
}

fn main() -> Result<(), Failed> {
    let (old, subjects) = documents(80, 1);
    let (new, truth) = documents(40, 2);

    let components = <Outcome as UnsupervisedEstimator<_, _>>::fit(&old, AltBiConfig::new(2))?;
    let codes: DenseMatrix<f64> = components.transform(&old)?;
    let neighbours = KNNClassifier::fit(&codes, &subjects, Default::default())?;
    let found = neighbours.predict(&components.transform(&new)?)?;

    let right = found.iter().zip(&truth).filter(|(a, b)| a == b).count();
    println!("{right} of {} new documents recognised", truth.len());
    assert!(right >= 36);
    // Errors of altbi become errors of smartcore.
    let refused = <Outcome as UnsupervisedEstimator<_, _>>::fit(&old, AltBiConfig::new(0));
    println!("a rank of 0: {}", refused.unwrap_err());
    Ok(())
}

#[test]
fn verifies_itself() {
    main().unwrap();
}

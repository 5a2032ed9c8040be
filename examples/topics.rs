//! Topics in word counts, with a matrix that stays sparse.
//!
//! The texts are generated: 400 of them over 3000 words, each of 120 words mostly from one of five
//! topics. In a topic the k-th most frequent word is used 1/k as often as the first (Zipf's law). 3
//! % of the matrix is stored.
//!
//! ```text
//! cargo run --release --example topics
//! ```

use std::collections::BTreeMap;

use altbi::{AltBiConfig, Beta, L1, Precision, Problem, Result, SparseMatrix, Zeros};
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

const TEXTS: usize = 400;
const WORDS: usize = 3000;
const TOPICS: usize = 5;
const LENGTH: usize = 120;

/// Counts, and the words of each topic, the most frequent first.
fn texts() -> Result<(SparseMatrix, Vec<Vec<usize>>)> {
    let mut generator = ChaCha8Rng::seed_from_u64(5);
    let topics: Vec<Vec<usize>> = (0..TOPICS)
        .map(|_| {
            let mut words: Vec<usize> = (0..WORDS).collect();
            words.shuffle(&mut generator);
            words
        })
        .collect();
    let mut counts = BTreeMap::new();
    for text in 0..TEXTS {
        for _ in 0..LENGTH {
            let stray = generator.random_range(0.0..1.0) < 0.2;
            let topic = if stray {
                generator.random_range(0..TOPICS)
            } else {
                text % TOPICS
            };
            // Approximately Zipf's law: the logarithm of the rank is uniform.
            let place = (WORDS as f64).powf(generator.random_range(0.0..1.0)) as usize - 1;
            *counts
                .entry((text as u32, topics[topic][place] as u32))
                .or_insert(0.0) += 1.0;
        }
    }
    let triplets = counts
        .into_iter()
        .map(|((text, word), count)| (text, word, count));
    let matrix = SparseMatrix::from_triplets([TEXTS, WORDS], triplets.collect())?;
    Ok((matrix, topics))
}

fn main() -> Result<()> {
    let (counts, topics) = texts()?;
    println!(
        "{} of {} entries are stored",
        counts.stored(),
        TEXTS * WORDS
    );
    let problem = Problem::sparse(counts, Zeros::Data, None, Precision::F64)?;
    let outcome = AltBiConfig::new(TOPICS)
        .with_max_iterations(100)
        .solver(Beta::KL, L1)
        .run(&problem)?;

    let mut found = Vec::new();
    for (component, row) in outcome.h.rows().into_iter().enumerate() {
        let mut words: Vec<usize> = (0..WORDS).collect();
        words.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
        // The topic with most of these words among its ten most frequent ones.
        let shared = |topic: &Vec<usize>| {
            topic[..10]
                .iter()
                .filter(|word| words[..10].contains(word))
                .count()
        };
        let (topic, shares) = topics
            .iter()
            .map(shared)
            .enumerate()
            .max_by_key(|(_, shares)| *shares)
            .unwrap();
        println!(
            "component {component}: words {:?}; {shares} of 10 are those of topic {topic}",
            &words[..5]
        );
        assert!(shares >= 7);
        found.push(topic);
    }
    found.sort_unstable();
    assert_eq!(
        found,
        [0, 1, 2, 3, 4],
        "each topic has a component of its own"
    );
    Ok(())
}

#[test]
fn verifies_itself() {
    main().unwrap();
}

//! Synthetic data whose true factors are known.
//!
//! | name | X | W | H |
//! |---|---|---|---|
//! | [`benchmark_a`] | 1000×50, r = 4 | clipped normal deviates, half of them zero | uniform |
//! | [`benchmark_b`] | 1000×50, r = 4 | clipped sinusoids | uniform, a tenth of it zero |
//! | [`benchmark_c`] | 1000×50, r = 5 | spectra of Gaussian and Lorentzian peaks | uniform, a tenth of it zero |
//! | [`benchmark_d`] | 224×3025, r = 5 | reflectances, more than 15° apart | smooth abundance maps that sum to 1 |
//! | [`poisson`] | counts of A | as A | as A |
//!
//! [`published`] reads the data that the paper's authors published. [`separable_factors`] finds the
//! factors of a matrix that was published without them.

mod hyperspectral;
mod noise;
pub(crate) mod published;
mod separable;
mod signals;

use ndarray::Array2;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Poisson, StandardNormal};

pub(crate) use hyperspectral::MAP_SIDE;
pub use hyperspectral::benchmark_d;
pub use noise::Noise;
pub(crate) use separable::separable_factors;
pub use signals::{benchmark_b, benchmark_c};

use crate::factors::uniform;

/// A matrix with its true factors.
///
/// # Shapes
/// `x` n×m, `w` n×r, `h` r×m.
#[derive(Debug, Clone)]
pub struct Benchmark {
    /// X: W H, or counts with mean W H.
    pub x: Array2<f64>,
    /// The true W.
    pub w: Array2<f64>,
    /// The true H.
    pub h: Array2<f64>,
}

impl Benchmark {
    fn of(w: Array2<f64>, h: Array2<f64>) -> Self {
        Self { x: w.dot(&h), w, h }
    }
}

/// The random numbers of a dataset. Their stream differs from that of a fit's start, so that data
/// and start with the same seed are independent.
fn generator(seed: u64) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(2);
    generator
}

/// Share of H that is zero in benchmarks B and C: the paper's α_H.
const SPARSENESS_OF_H: f64 = 0.1;

/// Benchmark A of the paper: `W = max(normal, 0)`, about half of it zeros, and
/// `H` uniform on (0, 1). With r = 4 about one row of X in sixteen is all zero.
pub fn benchmark_a(n: usize, m: usize, rank: usize, seed: u64) -> Benchmark {
    let mut generator = generator(seed);
    let w = Array2::from_shape_simple_fn((n, rank), || {
        let normal: f64 = StandardNormal.sample(&mut generator);
        normal.max(0.0)
    });
    let h = uniform(&mut generator, rank, m);
    Benchmark::of(w, h)
}

/// Counts whose means are `scale` times benchmark A: noise that grows with the
/// signal, as in photons or words.
pub fn poisson(n: usize, m: usize, rank: usize, scale: f64, seed: u64) -> Benchmark {
    let clean = benchmark_a(n, m, rank, seed);
    // This stream differs from that of the factors.
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(1);
    let w = clean.w * scale;
    let means = w.dot(&clean.h);
    let x = means.mapv(|mean| match Poisson::new(mean) {
        Ok(counts) => counts.sample(&mut generator),
        // A mean of zero gives a count of zero.
        Err(_) => 0.0,
    });
    Benchmark { x, w, h: clean.h }
}

/// Uniform on (0, 1) with a share of zeros. No row or column is all zero.
fn sparse_uniform(generator: &mut ChaCha8Rng, rank: usize, m: usize) -> Array2<f64> {
    let mut h = uniform(generator, rank, m);
    let dense = h.clone();
    for entry in &mut h {
        if generator.random_bool(SPARSENESS_OF_H) {
            *entry = 0.0;
        }
    }
    for (k, mut row) in h.rows_mut().into_iter().enumerate() {
        if row.sum() == 0.0 {
            row[k % m] = dense[[k, k % m]];
        }
    }
    for (j, mut column) in h.columns_mut().into_iter().enumerate() {
        if column.sum() == 0.0 {
            column[j % rank] = dense[[j % rank, j]];
        }
    }
    h
}

/// The default data of `altbi fit`: benchmark A in the paper's size (1000×50, r = 4), seed 0.
pub(crate) fn demo() -> Benchmark {
    benchmark_a(1000, 50, 4, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmark_a_is_what_it_says() {
        let demo = demo();
        assert_eq!(demo.x.dim(), (1000, 50));
        let zeros = demo.w.iter().filter(|w| **w == 0.0).count();
        assert!((1850..2150).contains(&zeros), "{zeros} of 4000");
        let zero_rows = demo.x.rows().into_iter().filter(|row| row.sum() == 0.0);
        assert!((35..95).contains(&zero_rows.count()));
        assert!(demo.h.iter().all(|h| *h > 0.0 && *h < 1.0));
        assert_eq!(demo.x, benchmark_a(1000, 50, 4, 0).x);
        assert_ne!(demo.x, benchmark_a(1000, 50, 4, 1).x);
    }

    #[test]
    fn data_and_start_share_no_numbers() {
        use rand::Rng;
        let (mut data, mut start) = (generator(5), ChaCha8Rng::seed_from_u64(5));
        let words: Vec<u64> = (0..1000).map(|_| start.next_u64()).collect();
        assert!((0..1000).all(|_| !words.contains(&data.next_u64())));
    }

    #[test]
    fn counts_are_whole_and_about_right() {
        let noisy = poisson(200, 30, 3, 20.0, 1);
        assert!(noisy.x.iter().all(|x| x.fract() == 0.0 && *x >= 0.0));
        let means = noisy.w.dot(&noisy.h);
        let ratio = noisy.x.sum() / means.sum();
        assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
        assert_ne!(noisy.x, means);
    }

    #[test]
    fn sparse_weights_are_about_as_sparse_as_asked() {
        let mut generator = generator(3);
        let h = sparse_uniform(&mut generator, 5, 2000);
        let zeros = h.iter().filter(|h| **h == 0.0).count() as f64 / h.len() as f64;
        assert!((zeros - SPARSENESS_OF_H).abs() < 0.02, "{zeros}");
        assert!(h.columns().into_iter().all(|column| column.sum() > 0.0));
    }
}

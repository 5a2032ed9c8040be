//! Noise on a benchmark, for each divergence the kind that it is made for.

use ndarray::Array2;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, Poisson, StandardNormal};
use serde::{Deserialize, Serialize};

use super::Benchmark;

/// A kind of noise and its size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// Counts with this mean over all entries, for KL.
    Poisson(f64),
    /// Normal deviates whose size is this share of the root mean square of X, cut off at zero, for
    /// Frobenius.
    Gaussian(f64),
    /// Each entry times a random number with mean 1 and this variance, for Itakura-Saito. Zeros
    /// would stay zeros, so a fiftieth of their means is added to W and H.
    Gamma(f64),
}

impl Noise {
    /// The noise for a β-divergence: counts of mean 3, Gaussian noise of a third of X's size, or a
    /// variance of a quarter.
    pub fn of_beta(beta: f64) -> Self {
        if beta < 0.5 {
            Self::Gamma(0.25)
        } else if beta < 1.5 {
            Self::Poisson(3.0)
        } else {
            Self::Gaussian(1.0 / 3.0)
        }
    }

    /// The benchmark with a noisy X. Its factors are those of the clean one, raised or scaled for
    /// the kind of noise, so that W H is the true matrix.
    pub fn on(self, clean: &Benchmark, seed: u64) -> Benchmark {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        // The stream of noise.
        generator.set_stream(1);
        let raised = |factor: &Array2<f64>| factor + factor.mean().unwrap_or(0.0) / 50.0;
        let (w, h) = match self {
            Self::Poisson(mean) => {
                let scale = mean / clean.w.dot(&clean.h).mean().unwrap_or(1.0);
                (&clean.w * scale, clean.h.clone())
            }
            Self::Gaussian(_) => (clean.w.clone(), clean.h.clone()),
            Self::Gamma(_) => (raised(&clean.w), raised(&clean.h)),
        };
        let truth = w.dot(&h);
        let x = match self {
            Self::Poisson(_) => truth.mapv(|mean| match Poisson::new(mean) {
                Ok(counts) => counts.sample(&mut generator),
                // A mean of zero gives a count of zero.
                Err(_) => 0.0,
            }),
            Self::Gaussian(share) => {
                let squares = truth.iter().map(|y| y * y).sum::<f64>() / truth.len() as f64;
                let size = share * squares.sqrt();
                truth.mapv(|y| {
                    let normal: f64 = StandardNormal.sample(&mut generator);
                    (y + size * normal).max(0.0)
                })
            }
            Self::Gamma(variance) => {
                let shape = 1.0 / variance;
                let gamma = Gamma::new(shape, 1.0 / shape).expect("a positive shape");
                truth.mapv(|y| y * gamma.sample(&mut generator).max(f64::MIN_POSITIVE))
            }
        };
        Benchmark { x, w, h }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::benchmark_b;

    #[test]
    fn noise_has_the_size_it_says() {
        let clean = benchmark_b(200, 40, 3, 1);
        for (noise, beta) in [
            (Noise::Poisson(3.0), 1.0),
            (Noise::Gaussian(1.0 / 3.0), 2.0),
            (Noise::Gamma(0.25), 0.0),
        ] {
            assert_eq!(Noise::of_beta(beta), noise);
            let noisy = noise.on(&clean, 5);
            let truth = noisy.w.dot(&noisy.h);
            assert_eq!(noisy.x, noise.on(&clean, 5).x);
            assert_ne!(noisy.x, noise.on(&clean, 6).x);
            assert!(noisy.x.iter().all(|x| *x >= 0.0 && x.is_finite()));
            let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
            let pairs = || noisy.x.iter().zip(&truth);
            let (size, expected) = match noise {
                Noise::Poisson(count) => {
                    assert!((truth.mean().unwrap() - count).abs() < 1e-9);
                    (mean(pairs().map(|(x, y)| (x - y).powi(2)).collect()), count)
                }
                // Large true values are not cut off.
                Noise::Gaussian(share) => {
                    let squares = mean(truth.iter().map(|y| y * y).collect());
                    let far = pairs().filter(|(_, y)| **y > 1.5 * squares.sqrt());
                    let sizes = far.map(|(x, y)| (x - y).powi(2)).collect();
                    (mean(sizes), share * share * squares)
                }
                Noise::Gamma(variance) => {
                    assert!(noisy.x.iter().all(|x| *x > 0.0));
                    (
                        mean(pairs().map(|(x, y)| (x / y - 1.0).powi(2)).collect()),
                        variance,
                    )
                }
            };
            assert!(
                (size / expected - 1.0).abs() < 0.15,
                "{noise:?} {size} {expected}"
            );
        }
    }
}

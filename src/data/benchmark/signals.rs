//! Benchmarks B and C: signals as columns of W.

use std::f64::consts::TAU;

use ndarray::Array2;
use rand::RngExt;

use super::{Benchmark, generator, sparse_uniform};

/// Benchmark B: each column of W is a sinusoid with its own frequency and phase, and zeros instead
/// of its negative half.
pub fn benchmark_b(n: usize, m: usize, rank: usize, seed: u64) -> Benchmark {
    let mut generator = generator(seed);
    let waves: Vec<(f64, f64)> = (0..rank)
        .map(|k| {
            // Neighbouring frequencies differ by at least half a period.
            let periods = 2.0 + 2.0 * k as f64 + generator.random_range(0.0..1.5);
            (periods, generator.random_range(0.0..TAU))
        })
        .collect();
    let w = Array2::from_shape_fn((n, rank), |(i, k)| {
        let (periods, phase) = waves[k];
        (TAU * periods * i as f64 / n as f64 + phase).sin().max(0.0)
    });
    let h = sparse_uniform(&mut generator, rank, m);
    Benchmark::of(w, h)
}

/// Peaks per spectrum.
const PEAKS: std::ops::Range<usize> = 3..8;

/// Benchmark C: each column of W is a spectrum of Gaussian and Lorentzian peaks,
/// scaled to maximum 1.
pub fn benchmark_c(n: usize, m: usize, rank: usize, seed: u64) -> Benchmark {
    let mut generator = generator(seed);
    let mut w = Array2::zeros((n, rank));
    for mut spectrum in w.columns_mut() {
        for _ in 0..generator.random_range(PEAKS) {
            let centre = generator.random_range(0.0..1.0);
            let width: f64 = generator.random_range(0.005..0.03);
            let height = generator.random_range(0.2..1.0);
            let gaussian = generator.random_bool(0.5);
            for (i, value) in spectrum.iter_mut().enumerate() {
                let distance = (i as f64 / n as f64 - centre) / width;
                *value += height
                    * if gaussian {
                        (-0.5 * distance * distance).exp()
                    } else {
                        1.0 / (1.0 + distance * distance)
                    };
            }
        }
        let largest = spectrum.iter().copied().fold(0.0, f64::max);
        spectrum /= largest;
    }
    let h = sparse_uniform(&mut generator, rank, m);
    Benchmark::of(w, h)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sinusoids_are_half_zero_and_spectra_reach_one() {
        let b = benchmark_b(1000, 50, 4, 0);
        for wave in b.w.columns() {
            let zeros = wave.iter().filter(|w| **w == 0.0).count();
            assert!((400..600).contains(&zeros), "{zeros}");
        }
        let c = benchmark_c(1000, 50, 5, 0);
        for spectrum in c.w.columns() {
            let largest = spectrum.iter().copied().fold(0.0, f64::max);
            assert!((largest - 1.0).abs() < 1e-12);
            assert!(spectrum.iter().all(|w| *w >= 0.0));
        }
        assert_eq!((b.x.dim(), c.x.dim()), ((1000, 50), (1000, 50)));
        assert_ne!(b.x, benchmark_b(1000, 50, 4, 1).x);
    }
}

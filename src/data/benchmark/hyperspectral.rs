//! Benchmark D: a hyperspectral image with known materials and abundances.

use ndarray::{Array2, ArrayView1};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{Benchmark, generator};

/// Pixels along a side of the paper's abundance maps.
pub(crate) const MAP_SIDE: usize = 55;
/// Smallest angle between two endmembers.
const SMALLEST_ANGLE: f64 = 15.0;
/// Blobs per map.
const BLOBS: usize = 6;

/// Benchmark D: columns of W are smooth reflectances over `bands` bands, pairwise
/// more than 15° apart; rows of H are abundance maps of `side`×`side` pixels
/// (55 in the paper), smooth, nonnegative, and summing to 1 in every pixel.
pub fn benchmark_d(bands: usize, side: usize, rank: usize, seed: u64) -> Benchmark {
    let mut generator = generator(seed);
    let mut w = Array2::zeros((bands, rank));
    for k in 0..rank {
        loop {
            let candidate = reflectance(&mut generator, bands);
            let far = |other: usize| angle(w.column(other), ArrayView1::from(&candidate));
            if (0..k).all(|other| far(other) > SMALLEST_ANGLE) {
                w.column_mut(k).assign(&ArrayView1::from(&candidate));
                break;
            }
        }
    }
    let h = abundance_maps(&mut generator, side, rank);
    Benchmark::of(w, h)
}

/// Maps that are smooth, positive, and sum to 1 in every pixel, one per row.
pub(super) fn abundance_maps(generator: &mut ChaCha8Rng, side: usize, rank: usize) -> Array2<f64> {
    let mut h = Array2::zeros((rank, side * side));
    for mut map in h.rows_mut() {
        map.assign(&ArrayView1::from(&smooth_map(generator, side)));
    }
    for mut pixel in h.columns_mut() {
        let sum = pixel.sum();
        pixel /= sum;
    }
    h
}

/// The first columns, in their order, that are pairwise more than 15° apart.
pub(super) fn apart(spectra: &Array2<f64>, count: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    for k in 0..spectra.ncols() {
        let far = |other: &usize| angle(spectra.column(*other), spectra.column(k));
        if chosen.len() < count && chosen.iter().all(|other| far(other) > SMALLEST_ANGLE) {
            chosen.push(k);
        }
    }
    chosen
}

/// A slope with broad bumps and absorption bands, between 0.02 and 0.98.
fn reflectance(generator: &mut ChaCha8Rng, bands: usize) -> Vec<f64> {
    let base = generator.random_range(0.1..0.6);
    let slope = generator.random_range(-0.5..0.5);
    let features: Vec<(f64, f64, f64)> = (0..6)
        .map(|_| {
            let centre = generator.random_range(0.0..1.0);
            let width = generator.random_range(0.03..0.2);
            (centre, width, generator.random_range(-0.5..0.5))
        })
        .collect();
    let value = |band: usize| {
        let place = band as f64 / bands as f64;
        let bumps: f64 = features
            .iter()
            .map(|(centre, width, depth)| {
                let distance = (place - centre) / width;
                depth * (-0.5 * distance * distance).exp()
            })
            .sum();
        (base + slope * place + bumps).clamp(0.02, 0.98)
    };
    (0..bands).map(value).collect()
}

/// A sum of round blobs, pixel by pixel.
fn smooth_map(generator: &mut ChaCha8Rng, side: usize) -> Vec<f64> {
    let blobs: Vec<(f64, f64, f64, f64)> = (0..BLOBS)
        .map(|_| {
            let (x, y) = (
                generator.random_range(0.0..1.0),
                generator.random_range(0.0..1.0),
            );
            let width = generator.random_range(0.06..0.2);
            let strength: f64 = StandardNormal.sample(generator);
            (x, y, width, 2.0 * strength)
        })
        .collect();
    let value = |pixel: usize| {
        let (row, column) = (pixel / side, pixel % side);
        let (x, y) = (column as f64 / side as f64, row as f64 / side as f64);
        let sum: f64 = blobs
            .iter()
            .map(|(centre_x, centre_y, width, strength)| {
                let square = (x - centre_x).powi(2) + (y - centre_y).powi(2);
                strength * (-0.5 * square / (width * width)).exp()
            })
            .sum();
        // The map is positive everywhere, and dominant at its blobs.
        (2.0 * sum).exp()
    };
    (0..side * side).map(value).collect()
}

/// The angle in degrees.
fn angle(a: ArrayView1<f64>, b: ArrayView1<f64>) -> f64 {
    let cosine = a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt();
    cosine.clamp(-1.0, 1.0).acos().to_degrees()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endmembers_are_apart_and_abundances_sum_to_one() {
        for seed in 0..3 {
            let d = benchmark_d(224, MAP_SIDE, 5, seed);
            assert_eq!(d.x.dim(), (224, 3025));
            for k in 0..5 {
                for other in 0..k {
                    assert!(angle(d.w.column(k), d.w.column(other)) > SMALLEST_ANGLE);
                }
            }
            for pixel in d.h.columns() {
                assert!((pixel.sum() - 1.0).abs() < 1e-12);
            }
            // Neighbouring pixels are alike.
            let map = d.h.row(0);
            let jumps = (1..MAP_SIDE).map(|j| (map[j] - map[j - 1]).abs());
            assert!(jumps.fold(0.0, f64::max) < 0.3);
        }
    }
}

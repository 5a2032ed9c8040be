//! Synthetic data whose true factors are known.

use ndarray::Array2;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::factors::uniform;

/// A matrix with the factors it was made of.
///
/// # Shapes
/// `x` n×m, `w` n×r, `h` r×m.
#[derive(Debug, Clone)]
pub struct Benchmark {
    /// X = W H.
    pub x: Array2<f64>,
    /// The true W.
    pub w: Array2<f64>,
    /// The true H.
    pub h: Array2<f64>,
}

/// Benchmark A of the paper: `W = max(normal, 0)`, about half of it zeros, and
/// `H` uniform on (0, 1). With r = 4 about one row of X in sixteen is all zero.
pub fn benchmark_a(n: usize, m: usize, rank: usize, seed: u64) -> Benchmark {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    let w = Array2::from_shape_simple_fn((n, rank), || {
        let normal: f64 = StandardNormal.sample(&mut generator);
        normal.max(0.0)
    });
    let h = uniform(&mut generator, rank, m);
    Benchmark { x: w.dot(&h), w, h }
}

/// The data that `altbi fit` uses when given none: benchmark A in the paper's
/// size (1000×50, r = 4), seed 0.
pub fn demo() -> Benchmark {
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
}

//! W and H at the start.
//!
//! All random numbers are drawn on the host by a seeded generator (ChaCha8), so that a seed gives
//! the same start on every device and machine.

mod nndsvd;

use ndarray::Array2;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use rand_distr::{Distribution, Open01};
use serde::{Deserialize, Serialize};

use self::nndsvd::{Zeros, nndsvd};

use crate::error::{Error, Result};
use crate::numerics::Precision;
use crate::problem::Problem;
use crate::words::words;

/// The method that makes W and H at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Initial {
    /// Uniform random on (0, 1), W then scaled so that W H has the mean of X.
    #[default]
    Random,
    /// Uniform random on (0, 1), not scaled, as in the paper.
    Uniform,
    /// From the singular vectors of X, with zeros. The start is sparse, but multiplicative updates
    /// never leave a zero.
    Nndsvd,
    /// The same with the mean of X instead of the zeros.
    Nndsvda,
}

/// One of the two factors. H is the W of the transposed problem Xᵀ ≈ Hᵀ Wᵀ, so statements about W's
/// rows also hold for H's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// W: rows are X's rows.
    W,
    /// Hᵀ: rows are X's columns.
    H,
}

words!(Initial, "start" {
    Random = "random", Uniform = "uniform", Nndsvd = "nndsvd", Nndsvda = "nndsvda",
});

impl Side {
    /// The other factor.
    pub fn other(self) -> Self {
        match self {
            Self::W => Self::H,
            Self::H => Self::W,
        }
    }
}

/// The two factors of X ≈ W H, laid out row by row, with entries that the run's
/// precision can represent.
///
/// # Shapes
/// W is n×r, H is r×m.
#[derive(Debug, Clone)]
pub struct Factors {
    /// The basis.
    pub w: Array2<f64>,
    /// The encoding.
    pub h: Array2<f64>,
}

impl Factors {
    /// Sets entries below the floor to zero. Otherwise they would become subnormal numbers, which
    /// are slow.
    pub(crate) fn flush(&mut self, precision: Precision) {
        let floor = precision.floor();
        for factor in [&mut self.w, &mut self.h] {
            factor.mapv_inplace(|entry| if entry < floor { 0.0 } else { entry });
        }
    }
}

/// Factors given by the caller. `None` is drawn by the seed.
#[derive(Debug, Clone, Default)]
pub struct GivenFactors {
    /// W at the start, n×r: the rows of all processes, or those of this one.
    pub w: Option<Array2<f64>>,
    /// H at the start, r×m.
    pub h: Option<Array2<f64>>,
}

impl From<Factors> for GivenFactors {
    fn from(factors: Factors) -> Self {
        Self {
            w: Some(factors.w),
            h: Some(factors.h),
        }
    }
}

impl Factors {
    /// The start of a run: given, drawn or computed.
    ///
    /// A random W is scaled so that W H has the mean of X. From the paper's start
    /// ([`Initial::Uniform`]), runs on data in small units would stop at once, because the stopping
    /// rule is relative to the divergence at the start. (The paper's benchmarks have about that
    /// scale.)
    ///
    /// # Errors
    /// [`Error::Rank`] for a rank outside 1 … min(n, m); [`Error::TooSmall`] for a
    /// single number; [`Error::Shape`], [`Error::NegativeEntry`],
    /// [`Error::NotFiniteEntry`] and [`Error::ZeroFactor`] for given factors.
    pub fn start(
        problem: &Problem,
        rank: usize,
        initial: Initial,
        seed: u64,
        given: &GivenFactors,
    ) -> Result<Self> {
        let [n, m] = problem.shape();
        check_rank(problem, rank)?;
        for (what, factor) in [("W", &given.w), ("H", &given.h)] {
            let zero = |factor: &Array2<f64>| factor.iter().all(|entry| *entry == 0.0);
            if factor.as_ref().is_some_and(zero) {
                return Err(Error::ZeroFactor { what });
            }
        }
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        // Both are drawn even if one is given, so that a random H does not depend on whether W is
        // given.
        let (w, h) = match initial {
            Initial::Random | Initial::Uniform => {
                let share = problem.share();
                skip_to(&mut generator, share.rows().start * rank);
                let w = uniform(&mut generator, n, rank);
                skip_to(&mut generator, share.all() * rank);
                (w, uniform(&mut generator, rank, m))
            }
            Initial::Nndsvd | Initial::Nndsvda if problem.share().is_split() => {
                return Err(Error::NotSplit {
                    what: format!("the start {initial}"),
                    processes: problem.processes().size(),
                    reason: "it needs all rows; use a random start",
                });
            }
            Initial::Nndsvd => nndsvd(problem, rank, &mut generator, Zeros::Kept)?,
            Initial::Nndsvda => nndsvd(problem, rank, &mut generator, Zeros::Filled)?,
        };
        let h = given.h.as_ref().unwrap_or(&h);
        let w = match (&given.w, initial) {
            // A given W has the rows of all processes, or of this one.
            (Some(w), _) if w.nrows() == problem.share().all() => problem.share().cut(w),
            (Some(w), _) => w.clone(),
            (None, Initial::Random) => scaled_to_mean(w, h, problem),
            (None, Initial::Uniform | Initial::Nndsvd | Initial::Nndsvda) => w,
        };
        Ok(Self {
            h: problem.matrix("H", h, [rank, m])?,
            w: problem.matrix("W", &w, [n, rank])?,
        })
    }
}

/// Refuses a rank outside 1 … min(n, m), and a matrix without structure.
pub(crate) fn check_rank(problem: &Problem, rank: usize) -> Result<()> {
    let [rows, columns] = problem.whole_shape();
    if rows * columns == 1 {
        return Err(Error::TooSmall);
    }
    if rank == 0 || rank > rows.min(columns) {
        return Err(Error::Rank {
            rank,
            rows,
            columns,
        });
    }
    Ok(())
}

/// W, scaled so that W H has the mean of X.
pub(crate) fn scaled_to_mean(w: Array2<f64>, h: &Array2<f64>, problem: &Problem) -> Array2<f64> {
    // The mean of a product needs only the sums of W's columns and H's rows.
    let sum: f64 = (0..w.ncols())
        .map(|k| w.column(k).sum() * h.row(k).sum())
        .sum();
    let sum = problem.processes().total(sum);
    let [rows, columns] = problem.whole_shape();
    w * (problem.mean() * (rows * columns) as f64 / sum)
}

/// Moves the generator to the position after `drawn` uniform numbers. Each takes two words.
fn skip_to(generator: &mut ChaCha8Rng, drawn: usize) {
    generator.set_word_pos(2 * drawn as u128);
}

/// A matrix of uniform numbers on the open interval (0, 1).
pub(crate) fn uniform(generator: &mut ChaCha8Rng, rows: usize, columns: usize) -> Array2<f64> {
    Array2::from_shape_simple_fn((rows, columns), || Open01.sample(generator))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::Precision;

    #[test]
    fn a_seed_is_a_start() {
        let problem = Problem::new(&Array2::<f64>::ones((5, 4)), Precision::F64).unwrap();
        let start =
            |seed, given| Factors::start(&problem, 2, Initial::Random, seed, &given).unwrap();
        let a = start(7, GivenFactors::default());
        let b = start(7, GivenFactors::default());
        assert_eq!(a.w, b.w);
        assert_ne!(a.w, start(8, GivenFactors::default()).w);
        let given = GivenFactors {
            w: Some(Array2::ones((5, 2))),
            h: None,
        };
        let c = start(7, given);
        assert_eq!(c.w, Array2::<f64>::ones((5, 2)));
        assert_eq!(c.h, a.h);
        let paper =
            Factors::start(&problem, 2, Initial::Uniform, 7, &GivenFactors::default()).unwrap();
        // The same numbers up to the scale of W.
        let scale = a.w[[0, 0]] / paper.w[[0, 0]];
        assert!(scale != 1.0 && paper.w.iter().all(|w| *w > 0.0 && *w < 1.0));
        let close = |(a, b): (&f64, &f64)| (a - scale * b).abs() < 1e-12;
        assert!(a.w.iter().zip(&paper.w).all(close) && a.h == paper.h);
    }

    #[test]
    fn ranks_and_shapes_are_checked() {
        let problem = Problem::new(&Array2::<f64>::ones((5, 4)), Precision::F64).unwrap();
        for rank in [0, 5] {
            let found =
                Factors::start(&problem, rank, Initial::Random, 0, &GivenFactors::default());
            assert!(matches!(found, Err(Error::Rank { rank: r, .. }) if r == rank));
        }
        let given = GivenFactors {
            w: None,
            h: Some(Array2::ones((3, 4))),
        };
        let found = Factors::start(&problem, 2, Initial::Random, 0, &given);
        assert!(matches!(
            found,
            Err(Error::Shape {
                what: "H",
                expected: [2, 4],
                found: [3, 4]
            })
        ));
    }
}

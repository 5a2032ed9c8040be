//! Random factors and weights for the check of a bunch.

use burn::tensor::Tensor;
use ndarray::Array2;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::bunch::{Bunch, Pair};
use crate::error::{Error, Result};
use crate::factors::{GivenFactors, Side, scaled_to_mean, uniform};
use crate::lambda::{Layout, Scope, WeightGroup};
use crate::problem::Problem;

/// Factors and weights of sensible size for a bunch: given, or drawn by a seed.
#[derive(Debug, Clone)]
pub(crate) struct Draw {
    /// W and Hᵀ; a drawn W is scaled so that WH has the mean of X.
    pub pair: Pair,
    /// λ of each tuned penalty. A drawn λ lies between 0.1 and 0.6 times the weight at which
    /// penalty and fit pull equally hard. This is large enough that the hypergradient is not lost
    /// in rounding, and small enough that no row becomes zero.
    pub lambda: Vec<Tensor<2>>,
    /// The layout of the weights.
    pub layout: Layout,
}

/// Given quantities, which are not drawn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    /// W and H.
    pub factors: GivenFactors,
    /// All weights in one column, p×1.
    pub lambda: Option<Array2<f64>>,
}

impl Draw {
    /// Draws everything. All weights have the same scope. A single bunch allows any rank ≥ 1.
    pub fn new(
        problem: &Problem,
        bunch: &Bunch,
        scope: Scope,
        rank: usize,
        seed: u64,
    ) -> Result<Self> {
        Self::complete(problem, bunch, scope, rank, seed, &Given::default())
    }

    /// Draws the quantities that are not given.
    ///
    /// # Errors
    /// [`Error::Setting`] for a rank that is 0 or more than sixteen times the larger side of X;
    /// those of the scope; [`Error::Shape`] and other errors of the checks for given quantities.
    pub fn complete(
        problem: &Problem,
        bunch: &Bunch,
        scope: Scope,
        rank: usize,
        seed: u64,
        given: &Given,
    ) -> Result<Self> {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        let pair = factors(problem, rank, &mut generator, &given.factors)?;
        let layout = layout(problem, bunch, scope, rank)?;
        let lambda = match &given.lambda {
            Some(column) => {
                let column = problem.matrix("λ", column, [layout.len(), 1])?;
                let parts = layout.split(&column);
                parts.iter().map(|part| problem.state(part)).collect()
            }
            None => {
                let shapes: Vec<[usize; 2]> =
                    layout.groups.iter().map(|group| group.shape).collect();
                let scales = bunch.checking_scales(&pair, &shapes);
                let weights = scales.into_iter().zip(shapes).map(|(scale, [a, b])| {
                    problem.state(&(uniform(&mut generator, a, b) * 0.5 + 0.1)) * scale
                });
                weights.collect()
            }
        };
        Ok(Self {
            pair,
            lambda,
            layout,
        })
    }
}

fn factors(
    problem: &Problem,
    rank: usize,
    generator: &mut ChaCha8Rng,
    given: &GivenFactors,
) -> Result<Pair> {
    let [n, m] = problem.shape();
    Error::require(
        (1..=16 * n.max(m)).contains(&rank),
        "the rank",
        rank as f64,
        "at least 1 and at most sixteen times the larger side of X",
    )?;
    let w = uniform(generator, n, rank) + 0.1;
    let h = uniform(generator, rank, m) + 0.1;
    let h = given.h.as_ref().unwrap_or(&h);
    let h_tensor = problem.tensor("H", h, [rank, m])?;
    let w = match &given.w {
        Some(w) => w.clone(),
        None => scaled_to_mean(w, h, problem),
    };
    Ok(Pair {
        w: problem.tensor("W", &w, [n, rank])?,
        h: h_tensor.transpose(),
    })
}

/// The weights of all tuned penalties of a bunch.
fn layout(problem: &Problem, bunch: &Bunch, scope: Scope, rank: usize) -> Result<Layout> {
    let [n, m] = problem.shape();
    let mut groups = Vec::new();
    for (side, rule, rows) in [(Side::W, &bunch.of_w, n), (Side::H, &bunch.of_h, m)] {
        for term in rule.tuned() {
            scope.check_penalty(term.penalty.as_ref())?;
            groups.push(WeightGroup {
                side,
                penalty: term.penalty.name(),
                scope,
                shape: scope.shape(rows, rank),
            });
        }
    }
    Ok(Layout { groups })
}

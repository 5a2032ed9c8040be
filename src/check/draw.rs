//! Something to check a bunch at.

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
    /// λ of each tuned penalty; a drawn one lies between 0.1 and 0.6 times the weight at
    /// which the penalty pulls as hard as the fit: so much that the hypergradient is not
    /// lost in rounding, and not so much that a row collapses to zero.
    pub lambda: Vec<Tensor<2>>,
    /// Which weights are whose.
    pub layout: Layout,
}

/// Quantities that are given and not drawn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    /// W and H.
    pub factors: GivenFactors,
    /// All weights in one column, p×1.
    pub lambda: Option<Array2<f64>>,
}

impl Draw {
    /// Draws everything; any rank ≥ 1 will do for a single bunch. All weights have the same
    /// scope.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub fn new(
        problem: &Problem,
        bunch: &Bunch,
        scope: Scope,
        rank: usize,
        seed: u64,
    ) -> Result<Self> {
        Self::complete(problem, bunch, scope, rank, seed, &Given::default())
    }

    /// Draws what is not given, to fit what is.
    ///
    /// # Errors
    /// [`Error::Setting`] for a rank that is 0 or more than sixteen times the larger side
    /// of X; what the scope refuses; [`Error::Shape`] and its kind for what is given.
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
    if rank == 0 || rank > 16 * n.max(m) {
        return Err(Error::Setting {
            setting: "the rank",
            value: rank as f64,
            range: "at least 1 and at most sixteen times the larger side of X",
        });
    }
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

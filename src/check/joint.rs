//! Something to check a joint bunch at.

use burn::tensor::Tensor;
use ndarray::Array2;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::Draw;
use crate::error::Result;
use crate::factors::{GivenFactors, Side, uniform};
use crate::joint::{JointBunch, Pair};
use crate::lambda::{Layout, Scope, WeightGroup};
use crate::problem::Problem;

/// Factors and weights of sensible size for a joint bunch: given, or drawn by a seed.
#[derive(Debug, Clone)]
pub struct JointDraw {
    /// W and Hᵀ.
    pub pair: Pair,
    /// λ of each tuned penalty; a drawn one lies between 0.1 and 0.6 times the weight at
    /// which the penalty pulls as hard as the fit.
    pub lambda: Vec<Tensor<2>>,
    /// Which weights are whose.
    pub layout: Layout,
}

impl JointDraw {
    /// Draws what is not given; all weights have the same scope.
    ///
    /// # Errors
    /// As [`Draw::complete`]; what the scope refuses; [`Error::Shape`](crate::Error::Shape)
    /// for a column of another length than there are weights.
    ///
    /// # Shapes
    /// `given_lambda` p×1, p the number of all weights.
    pub fn complete(
        problem: &Problem,
        bunch: &JointBunch,
        scope: Scope,
        rank: usize,
        seed: u64,
        given: &GivenFactors,
        given_lambda: Option<&Array2<f64>>,
    ) -> Result<Self> {
        let draw = Draw::complete(problem, &bunch.of_w, rank, seed, given, None)?;
        let pair = Pair {
            w: draw.w,
            h: draw.h.transpose(),
        };
        let [n, m] = problem.shape();
        let mut groups = Vec::new();
        for (side, rule, rows) in [(Side::W, &bunch.of_w, n), (Side::H, &bunch.of_h, m)] {
            for term in rule.terms.iter().filter(|term| term.is_tuned()) {
                scope.check_penalty(term.penalty.as_ref())?;
                groups.push(WeightGroup {
                    side,
                    penalty: term.penalty.name(),
                    scope,
                    shape: scope.shape(rows, rank),
                });
            }
        }
        let layout = Layout { groups };
        let lambda = match given_lambda {
            Some(column) => {
                let column = problem.matrix("λ", column, [layout.len(), 1])?;
                let parts = layout.split(&column);
                parts.iter().map(|part| problem.state(part)).collect()
            }
            None => {
                let mut generator = ChaCha8Rng::seed_from_u64(seed);
                // Other numbers than those of the factors.
                generator.set_stream(5);
                let shapes: Vec<[usize; 2]> =
                    layout.groups.iter().map(|group| group.shape).collect();
                let scales = bunch.natural_scales(&pair, &shapes);
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

//! The engine of bunches over one factor or both, with weights of any scope.

use burn::tensor::Tensor;
use ndarray::Array2;

use super::autodiff::host;
use super::{Engine, Errors, FusedCriterion};
use crate::criterion::weighted_divergence;
use crate::error::Result;
use crate::factors::{Factors, Side};
use crate::hypergradient::Mode;
use crate::joint::{JointBunch, Pair, Span};
use crate::lambda::{Layout, Units};
use crate::numerics::to_host;
use crate::problem::Problem;

/// A bunch, and how the one column of weights is to be read.
#[derive(Debug)]
pub(crate) struct Joint {
    pub(crate) bunch: JointBunch,
    pub(crate) layout: Layout,
    pub(crate) units: Units,
    pub(crate) mode: Mode,
    /// The natural scales of the last bunch, where units are relative.
    scales: Option<Vec<Array2<f64>>>,
}

impl Joint {
    pub(crate) fn new(bunch: JointBunch, layout: Layout, units: Units, mode: Mode) -> Self {
        Self {
            bunch,
            layout,
            units,
            mode,
            scales: None,
        }
    }

    fn pair(problem: &Problem, factors: &Factors) -> Pair {
        Pair {
            w: problem.state(&factors.w),
            h: problem.state(&factors.h).transpose(),
        }
    }

    /// What one unit of each weight is, here and now.
    fn scales_at(&self, pair: &Pair) -> Option<Vec<Array2<f64>>> {
        match self.units {
            Units::Absolute => None,
            Units::Relative => {
                let shapes: Vec<[usize; 2]> =
                    self.layout.groups.iter().map(|group| group.shape).collect();
                let scales = self.bunch.natural_scales(pair, &shapes);
                Some(scales.iter().map(host).collect())
            }
        }
    }

    /// The weights of each group in absolute units.
    fn weights(
        &self,
        problem: &Problem,
        lambda: &Array2<f64>,
        scales: Option<&Vec<Array2<f64>>>,
    ) -> Vec<Tensor<2>> {
        let mut parts = self.layout.split(lambda);
        for (part, scale) in parts.iter_mut().zip(scales.into_iter().flatten()) {
            *part *= scale;
        }
        parts.iter().map(|part| problem.state(part)).collect()
    }

    fn divergences(&self, pair: &Pair) -> Vec<f64> {
        let rule = &self.bunch.of_w;
        let y = rule.reconstruct(&pair.w, &pair.h.clone().transpose());
        let observed = &self.bunch.rows;
        let mask = observed.mask.as_ref();
        let divergence = rule.divergence.as_ref();
        to_host(&weighted_divergence(divergence, &observed.x, mask, &y))
    }

    fn errors_at(&self, pair: &Pair, outer_error: f64) -> Errors {
        let divergence = match self.bunch.criterion.fused() {
            Some(FusedCriterion::Training) => outer_error,
            _ => self.divergences(pair).iter().sum(),
        };
        Errors {
            outer_error,
            divergence,
        }
    }
}

impl Engine for Joint {
    fn update_other(&mut self, problem: &Problem, factors: &mut Factors) {
        let Span::One(side) = self.bunch.span else {
            return;
        };
        // Its penalties, if it has any, have fixed weights.
        let other = match side {
            Side::W => Side::H,
            Side::H => Side::W,
        };
        let step = JointBunch {
            span: Span::One(other),
            length: 1,
            ..self.bunch.clone()
        };
        let none = self.weights(problem, &Array2::zeros((self.layout.len(), 1)), None);
        let end = step.run(&Self::pair(problem, factors), &none);
        match other {
            Side::W => factors.w = host(&end.w),
            Side::H => factors.h = host(&end.h.transpose()),
        }
    }

    fn bunch(
        &mut self,
        problem: &Problem,
        factors: &mut Factors,
        lambda: &Array2<f64>,
        gradient: Option<&mut Array2<f64>>,
    ) -> Result<Errors> {
        let pair = Self::pair(problem, factors);
        self.scales = self.scales_at(&pair);
        let weights = self.weights(problem, lambda, self.scales.as_ref());
        let (pair, outer_error) = match gradient {
            Some(slot) => {
                let end = self.bunch.hypergradient(&pair, &weights, self.mode)?;
                let mut gradients: Vec<Array2<f64>> = end.gradients.iter().map(host).collect();
                // dE/du = c dE/dλ for λ = c u; c does not move during a bunch.
                for (part, scale) in gradients.iter_mut().zip(self.scales.iter().flatten()) {
                    *part *= scale;
                }
                *slot = self.layout.join(&gradients);
                (end.pair, end.outer_error)
            }
            None => {
                let end = self.bunch.run(&pair, &weights);
                let outer_error = self.bunch.outer_error(&end);
                (end, outer_error)
            }
        };
        let errors = self.errors_at(&pair, outer_error);
        factors.w = host(&pair.w);
        factors.h = host(&pair.h.transpose());
        // On its way to zero an entry passes through numbers that processors are slow at.
        let floor = problem.precision().floor();
        for factor in [&mut factors.w, &mut factors.h] {
            factor.mapv_inplace(|entry| if entry < floor { 0.0 } else { entry });
        }
        Ok(errors)
    }

    fn errors(&mut self, problem: &Problem, factors: &Factors) -> (Errors, Vec<f64>) {
        let pair = Self::pair(problem, factors);
        self.scales = self.scales_at(&pair);
        let divergences = self.divergences(&pair);
        let errors = Errors {
            outer_error: self.bunch.outer_error(&pair),
            divergence: divergences.iter().sum(),
        };
        (errors, divergences)
    }

    fn penalty(&self, problem: &Problem, factors: &Factors, lambda: &Array2<f64>) -> f64 {
        let pair = Self::pair(problem, factors);
        let weights = self.weights(problem, lambda, self.scales.as_ref());
        to_host(&self.bunch.penalty(&pair, &weights)).iter().sum()
    }
}

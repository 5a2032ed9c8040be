//! The engine of bunches over one factor or both, with weights of any scope.

use burn::tensor::Tensor;
use ndarray::Array2;

use super::autodiff::{counts_training, host};
use super::{Engine, Errors};
use crate::error::Result;
use crate::factors::{Factors, Side};
use crate::hypergradient::Mode;
use crate::joint::{Data, JointBunch, Pair, Span};
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
    /// Whether D is computed after a bunch.
    divergence: bool,
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
            divergence: true,
            scales: None,
        }
    }

    pub(super) fn pair(problem: &Problem, factors: &Factors) -> Pair {
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

    /// The same of another bunch, in the shapes of its weights.
    pub(super) fn scales_of(
        &self,
        bunch: &JointBunch,
        pair: &Pair,
        weights: &[Array2<f64>],
    ) -> Vec<Array2<f64>> {
        let shapes: Vec<[usize; 2]> = weights.iter().map(|of| of.dim().into()).collect();
        match self.units {
            Units::Absolute => shapes.into_iter().map(Array2::ones).collect(),
            Units::Relative => {
                let scales = bunch.natural_scales(pair, &shapes);
                scales.iter().map(host).collect()
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

    /// E, D, and D of each row.
    fn errors_at(&self, pair: &Pair) -> (Errors, Vec<f64>) {
        let bunch = &self.bunch;
        let divergences = to_host(&bunch.data.divergences(&bunch.of_w, pair));
        let divergence = divergences.iter().sum();
        let outer_error = if counts_training(bunch.criterion.as_ref()) {
            divergence
        } else {
            bunch.outer_error(pair)
        };
        let errors = Errors {
            outer_error,
            divergence,
        };
        (errors, divergences)
    }
}

impl Engine for Joint {
    fn leave_divergence_out(&mut self) {
        self.divergence = counts_training(self.bunch.criterion.as_ref());
    }

    fn data(&self) -> Option<&Data> {
        Some(&self.bunch.data)
    }

    fn sampled_agreement(
        &self,
        problem: &Problem,
        factors: &Factors,
        lambda: &Array2<f64>,
        tuned: bool,
    ) -> Option<Result<Option<f64>>> {
        Some(self.agreement(problem, factors, lambda, tuned))
    }

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
        let pair = match gradient {
            Some(slot) => {
                let end = self.bunch.hypergradient(&pair, &weights, self.mode)?;
                let mut gradients: Vec<Array2<f64>> = end.gradients.iter().map(host).collect();
                // dE/du = c dE/dλ for λ = c u; c does not move during a bunch.
                for (part, scale) in gradients.iter_mut().zip(self.scales.iter().flatten()) {
                    *part *= scale;
                }
                *slot = self.layout.join(&gradients);
                end.pair
            }
            None => self.bunch.run(&pair, &weights),
        };
        let errors = if self.divergence {
            self.errors_at(&pair).0
        } else {
            Errors {
                outer_error: self.bunch.outer_error(&pair),
                divergence: f64::NAN,
            }
        };
        factors.w = host(&pair.w);
        factors.h = host(&pair.h.transpose());
        // On its way to zero an entry passes through numbers that processors are slow at.
        let floor = problem.precision().floor();
        for factor in [&mut factors.w, &mut factors.h] {
            factor.mapv_inplace(|entry| if entry < floor { 0.0 } else { entry });
        }
        Ok(errors)
    }

    fn set_length(&mut self, length: usize) {
        self.bunch.length = length;
    }

    fn errors(&mut self, problem: &Problem, factors: &Factors) -> (Errors, Vec<f64>) {
        let pair = Self::pair(problem, factors);
        self.scales = self.scales_at(&pair);
        self.errors_at(&pair)
    }

    fn penalty(&self, problem: &Problem, factors: &Factors, lambda: &Array2<f64>) -> f64 {
        let pair = Self::pair(problem, factors);
        let weights = self.weights(problem, lambda, self.scales.as_ref());
        to_host(&self.bunch.penalty(&pair, &weights)).iter().sum()
    }
}

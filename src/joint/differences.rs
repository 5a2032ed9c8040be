//! Finite differences, for checks only.

use burn::tensor::{Tensor, TensorData};

use super::{JointBunch, JointHypergradient, Pair};
use crate::hypergradient::FiniteDifferences;
use crate::numerics::{Precision, to_host};

/// The first steps, in the shape of each weight.
fn first_steps(bunch: &JointBunch, pair: &Pair, lambda: &[Tensor<2>]) -> Vec<Tensor<2>> {
    let shapes: Vec<[usize; 2]> = lambda.iter().map(Tensor::dims).collect();
    let natural = bunch.natural_scales(pair, &shapes).into_iter();
    let relative = FiniteDifferences::default().relative_step;
    let steps = lambda
        .iter()
        .zip(natural)
        .map(|(weight, natural)| weight.clone().max_pair(natural * 0.01) * relative);
    steps.collect()
}

pub(super) fn gradients(
    bunch: &JointBunch,
    pair: &Pair,
    lambda: &[Tensor<2>],
) -> JointHypergradient {
    let steps = first_steps(bunch, pair, lambda);
    let error_at = |index: usize, place: usize, shift: f64| {
        let mut moved = lambda.to_vec();
        let mut values = to_host(&lambda[index]);
        values[place] += shift;
        let data = TensorData::new(values, lambda[index].dims());
        let like = (&lambda[index].device(), lambda[index].dtype());
        moved[index] = Tensor::from_data(data, like);
        bunch.outer_error(&bunch.run(pair, &moved))
    };
    let gradients = lambda.iter().enumerate().map(|(index, weight)| {
        let first = to_host(&steps[index]);
        FiniteDifferences::default().extrapolated(|scale| {
            let quotients = first.iter().enumerate().map(|(place, step)| {
                let step = step * scale;
                (error_at(index, place, step) - error_at(index, place, -step)) / (2.0 * step)
            });
            let data = TensorData::new(quotients.collect::<Vec<f64>>(), weight.dims());
            Tensor::from_data(data, (&weight.device(), weight.dtype()))
        })
    });
    let gradients = gradients.collect();
    let end = bunch.run(pair, lambda);
    JointHypergradient {
        outer_error: bunch.outer_error(&end),
        pair: end,
        gradients,
    }
}

impl JointBunch {
    /// How finely dE/dλ can be told from rounded values of E.
    pub(crate) fn resolution(&self, pair: &Pair, lambda: &[Tensor<2>]) -> f64 {
        let steps = first_steps(self, pair, lambda);
        let smallest = steps.iter().flat_map(to_host).fold(f64::INFINITY, f64::min);
        let end = self.run(pair, lambda);
        Precision::of(&pair.w).epsilon() * self.terms(&end) / smallest
    }
}

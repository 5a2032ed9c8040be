//! Steps of the weights of a hierarchical scope.
//!
//! In a hierarchical group `log λ_k = μ + δ_k`, and the minimised quantity is not E itself but
//!
//! $$ \tfrac N2 \log E + \sum_k \frac{\delta_k^2}{2\tau^2} $$
//!
//! where N is the total weight of the entries that E counts. It is the negative log-likelihood of
//! Gaussian errors of unknown size and of `δ_k ~ N(0, τ²)`. It does not depend on units, and with
//! few held-out entries the deviations stay small. The level μ (the mean of the log λ_k) and the
//! deviations step separately.

use ndarray::Array2;

use super::{Layout, Scope, StepAt, StepRule};

/// The step of a whole column whose groups may be hierarchical.
#[derive(Debug, Clone)]
pub(crate) struct Hierarchy {
    /// The range of each group in the column, and its τ if it is hierarchical.
    groups: Vec<(std::ops::Range<usize>, Option<f64>)>,
}

/// The part of a run's state that a step needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepContext {
    pub(crate) at: StepAt,
    /// N / (2E).
    pub(crate) evidence: f64,
    /// The interval of λ.
    pub(crate) interval: (f64, f64),
}

impl Hierarchy {
    pub(crate) fn new(layout: &Layout) -> Self {
        let groups = layout.groups.iter().zip(layout.ranges());
        let groups = groups.map(|(group, range)| match group.scope {
            Scope::Hierarchical(spread) => (range, Some(spread)),
            _ => (range, None),
        });
        Self {
            groups: groups.collect(),
        }
    }

    fn levels(&self) -> usize {
        let of_group = |(_, spread): &&(_, Option<f64>)| spread.is_some();
        self.groups.iter().filter(of_group).count()
    }

    /// The memory of the step for the weights and the levels, filled with zeros.
    pub(crate) fn memory(&self, step: &dyn StepRule, weights: usize) -> Array2<f64> {
        Array2::zeros((weights + self.levels(), step.memories()))
    }

    /// One step, in place, and the projection to the interval.
    ///
    /// # Shapes
    /// `lambda` and `hypergradient` p×1.
    pub(crate) fn apply(
        &self,
        step: &dyn StepRule,
        lambda: &mut Array2<f64>,
        hypergradient: &Array2<f64>,
        context: StepContext,
        memory: &mut Array2<f64>,
    ) {
        let (least, most) = context.interval;
        // A given weight of zero stays zero. (Without a lower end no copy is needed for that, so an
        // iteration of the paper's algorithm allocates nothing.)
        let before = (least > 0.0).then(|| lambda.clone());
        if self.levels() == 0 {
            step.step(lambda, hypergradient, context.at, memory);
        } else {
            self.step_in_parts(step, lambda, hypergradient, context, memory);
        }
        // Not `clamp`, because NaN must stay NaN, so that it is noticed.
        lambda.mapv_inplace(|weight| {
            if weight < 0.0 {
                0.0
            } else if weight > most {
                most
            } else {
                weight
            }
        });
        if let Some(before) = before {
            lambda.zip_mut_with(&before, |weight, before| {
                if *weight < least && *before > 0.0 {
                    *weight = least;
                }
            });
        }
    }

    /// Splits each λ_k into e^δ_k and its group's e^μ, steps these like weights, and joins them
    /// again.
    fn step_in_parts(
        &self,
        step: &dyn StepRule,
        lambda: &mut Array2<f64>,
        hypergradient: &Array2<f64>,
        context: StepContext,
        memory: &mut Array2<f64>,
    ) {
        let weights = lambda.len();
        let mut parts = Array2::zeros((weights + self.levels(), 1));
        let mut slopes = parts.clone();
        let mut next_level = weights..;
        for (range, spread) in &self.groups {
            let Some(spread) = spread else {
                for index in range.clone() {
                    parts[[index, 0]] = lambda[[index, 0]];
                    slopes[[index, 0]] = hypergradient[[index, 0]];
                }
                continue;
            };
            let level = next_level.next().expect("it has no end");
            // A weight of zero stays zero and does not affect the others.
            let positive = || range.clone().filter(|index| lambda[[*index, 0]] > 0.0);
            let logarithms: Vec<f64> = positive().map(|index| lambda[[index, 0]].ln()).collect();
            if logarithms.is_empty() {
                continue;
            }
            let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
            parts[[level, 0]] = mean.exp();
            for (index, logarithm) in positive().zip(logarithms) {
                let deviation = logarithm - mean;
                let slope = context.evidence * lambda[[index, 0]] * hypergradient[[index, 0]];
                let part = deviation.exp();
                parts[[index, 0]] = part;
                slopes[[index, 0]] = (slope + deviation / (spread * spread)) / part;
                slopes[[level, 0]] += slope / mean.exp();
            }
        }
        step.step(&mut parts, &slopes, context.at, memory);
        let mut next_level = weights..;
        for (range, spread) in &self.groups {
            let level = match spread {
                Some(_) => parts[[next_level.next().expect("it has no end"), 0]],
                None => 1.0,
            };
            for index in range.clone() {
                lambda[[index, 0]] = level * parts[[index, 0]];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factors::Side;
    use crate::lambda::{LambdaStep, WeightGroup};

    fn layout(scopes: &[Scope]) -> Layout {
        let groups = scopes.iter().map(|scope| WeightGroup {
            side: Side::W,
            penalty: "l1".into(),
            scope: *scope,
            shape: scope.shape(1, 3),
        });
        Layout {
            groups: groups.collect(),
        }
    }

    /// Steps towards the minimum of `(N/2) log E` with `E = 1 + ½ Σ (log λ_k − target_k)²`.
    fn settled(spread: f64, entries: f64) -> Vec<f64> {
        let layout = layout(&[Scope::Hierarchical(spread)]);
        let hierarchy = Hierarchy::new(&layout);
        let targets = [0.0, 1.0, 2.0];
        let step = LambdaStep::Adam(0.1);
        let mut lambda = Array2::from_elem((3, 1), (-1.0f64).exp());
        let mut memory = hierarchy.memory(&step, 3);
        for iteration in 1..=2000 {
            let distance = |k: usize| lambda[[k, 0]].ln() - targets[k];
            let error = 1.0 + 0.5 * (0..3).map(|k| distance(k).powi(2)).sum::<f64>();
            let gradient = Array2::from_shape_fn((3, 1), |(k, _)| distance(k) / lambda[[k, 0]]);
            let context = StepContext {
                at: StepAt {
                    iteration,
                    iterations: 2000,
                },
                evidence: entries / (2.0 * error),
                interval: (0.0, f64::INFINITY),
            };
            hierarchy.apply(&step, &mut lambda, &gradient, context, &mut memory);
        }
        lambda.iter().map(|weight| weight.ln()).collect()
    }

    #[test]
    fn deviations_shrink_with_tau_and_grow_with_the_evidence() {
        let spread = |theta: &[f64]| theta[2] - theta[0];
        let free = settled(100.0, 50.0);
        for (theta, target) in free.iter().zip([0.0, 1.0, 2.0]) {
            assert!((theta - target).abs() < 1e-2, "{free:?}");
        }
        let tied = settled(0.01, 50.0);
        assert!(
            spread(&tied) < 0.02 && (tied[1] - 1.0).abs() < 1e-2,
            "{tied:?}"
        );
        // Between the extremes the two slopes cancel: (N/2E)(θ − target) = −δ/τ².
        for (tau, entries) in [(0.5, 10.0), (0.5, 40.0)] {
            let theta = settled(tau, entries);
            let deviation = theta[2] - 1.0;
            let error = 1.0 + (1.0 - deviation).powi(2);
            let pull = entries / (2.0 * error) * (deviation - 1.0);
            assert!((pull + deviation / (tau * tau)).abs() < 0.05, "{theta:?}");
        }
        assert!(spread(&settled(0.5, 40.0)) > spread(&settled(0.5, 10.0)));
    }

    #[test]
    fn zero_stays_zero_and_the_interval_holds() {
        let layout = layout(&[Scope::Hierarchical(0.5), Scope::Shared]);
        let hierarchy = Hierarchy::new(&layout);
        let step = LambdaStep::Normalized(5.0);
        let mut lambda = ndarray::array![[0.0], [1.0], [2.0], [1.0]];
        let gradient = ndarray::array![[7.0], [-1.0], [-1.0], [1.0]];
        let context = StepContext {
            at: StepAt {
                iteration: 1,
                iterations: 2,
            },
            evidence: 1.0,
            interval: (0.1, 3.0),
        };
        let mut memory = hierarchy.memory(&step, 4);
        hierarchy.apply(&step, &mut lambda, &gradient, context, &mut memory);
        assert_eq!(lambda[[0, 0]], 0.0);
        assert_eq!((lambda[[1, 0]], lambda[[2, 0]]), (3.0, 3.0));
        assert!(lambda[[3, 0]] >= 0.1 && lambda[[3, 0]] < 1.0);
    }
}

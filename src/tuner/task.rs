//! The common task of all rivals.

use std::sync::Arc;

use ndarray::{ArcArray2, Array2};

use crate::criterion::{OuterError, Unseen};
use crate::data::{Benchmark, Noise};
use crate::divergence::{Divergence, Outer};
use crate::error::Result;
use crate::factors::{Factors, Side};
use crate::numerics::{Precision, to_host};
use crate::penalty::PenaltyTerm;
use crate::problem::{Problem, Weights};

/// The final measure of a pair of factors.
#[derive(Debug, Clone)]
pub enum Judge {
    /// None: only the held-out error is known.
    Nobody,
    /// The matrix without noise.
    Truth(ArcArray2<f64>),
    /// Test entries that no rival sees: their matrix, and their weights.
    Test(Box<Problem>, Weights),
}

/// A matrix, its held-out part, and the penalties of its factors.
#[derive(Clone)]
pub struct Task {
    /// The problem with its held-out part.
    pub split: Problem,
    /// The problem with nothing held out.
    pub full: Problem,
    /// The outer error, by which the rivals choose.
    pub outer: OuterError,
    /// The judge.
    pub judge: Judge,
    /// r.
    pub rank: usize,
    /// D.
    pub divergence: Arc<dyn Divergence>,
    /// The penalties, all tuned.
    pub terms: Vec<(Side, PenaltyTerm)>,
    /// The seed of the start, and of rivals with random numbers.
    pub seed: u64,
}

/// The settings that all rivals of a task share.
#[derive(Clone)]
pub struct TaskSettings {
    /// r.
    pub rank: usize,
    /// D.
    pub divergence: Arc<dyn Divergence>,
    /// The penalties, all tuned.
    pub terms: Vec<(Side, PenaltyTerm)>,
    /// The outer error.
    pub outer: OuterError,
}

impl Task {
    /// A task for a matrix. If `test` is not 0, this share of its entries is kept for the judge.
    ///
    /// # Errors
    /// Those of [`OuterError::split`].
    pub fn of_data(problem: Problem, test: f64, settings: TaskSettings, seed: u64) -> Result<Self> {
        let TaskSettings {
            rank,
            divergence,
            terms,
            outer,
        } = settings;
        // (For all data, so that every run of a comparison has the same outer error.)
        let outer = outer.for_data(&problem, divergence.as_ref());
        let (full, judge) = if test > 0.0 {
            // This seed differs from that of the held-out entries.
            let tested = problem.speckled(test, seed ^ 0x7465_7374)?;
            let unseen = tested.held_out_weights().expect("they were taken").clone();
            let seen = problem.with_weights(tested.mask().cloned(), None)?;
            (seen, Judge::Test(Box::new(problem), unseen))
        } else {
            (problem, Judge::Nobody)
        };
        Ok(Self {
            split: outer.split(&full, seed)?,
            outer,
            full,
            judge,
            rank,
            divergence,
            terms,
            seed,
        })
    }

    /// A task for a benchmark with noise. The judge is the true matrix.
    ///
    /// # Errors
    /// Those of [`OuterError::split`].
    pub fn of_benchmark(
        clean: &Benchmark,
        noise: Noise,
        settings: TaskSettings,
        seed: u64,
    ) -> Result<Self> {
        let noisy = noise.on(clean, seed);
        let problem = Problem::new(&noisy.x, Precision::F64)?;
        problem.check_domain(settings.divergence.as_ref())?;
        let mut task = Self::of_data(problem, 0.0, settings, seed)?;
        task.judge = Judge::Truth(noisy.w.dot(&noisy.h).into_shared());
        Ok(task)
    }

    /// The judge's error of factors. Against the true matrix Y it is `‖Y − WH‖² / ‖Y‖²` for every
    /// divergence, because entries with WH near zero would dominate D(Y, WH). On test entries,
    /// which have noise, it is the divergence per entry; under KL it is smoothed KL for counts and
    /// for data with many zeros. NaN without a judge.
    pub fn judged(&self, factors: &Factors) -> f64 {
        match &self.judge {
            Judge::Nobody => f64::NAN,
            Judge::Truth(truth) => {
                let y = factors.w.dot(&factors.h);
                let differences = truth.iter().zip(&y).map(|(truth, y)| (truth - y).powi(2));
                differences.sum::<f64>() / truth.iter().map(|truth| truth * truth).sum::<f64>()
            }
            Judge::Test(problem, weights) => {
                // A few entries with WH near 0 would dominate KL.
                let by_data = OuterError::default().for_data(problem, self.divergence.as_ref());
                let own = || self.divergence.clone();
                let judge = by_data.divergence.map_or_else(own, Outer::divergence);
                let floor = self.divergence.floor(self.full.precision());
                let places: Vec<(usize, usize)> = weights.places(|weight| weight > 0.0).collect();
                let row = |values: Vec<f64>| {
                    let shape = (1, places.len());
                    let row = Array2::from_shape_vec(shape, values);
                    self.full.state(&row.expect("a number for each place"))
                };
                let x = places.iter().map(|(i, j)| problem.x().entry(*i, *j));
                let y = places.iter().map(|(i, j)| {
                    let product = factors.w.row(*i).dot(&factors.h.column(*j));
                    product.max(floor)
                });
                let values = to_host(&judge.value(&row(x.collect()), &row(y.collect())));
                let weighted = values.iter().zip(&places);
                weighted
                    .map(|(value, at)| value * weights[*at])
                    .sum::<f64>()
                    / weights.sum()
            }
        }
    }

    /// D(X, truth) over the fitted entries, if the true matrix is known.
    pub(crate) fn noise(&self) -> Option<f64> {
        let Judge::Truth(truth) = &self.judge else {
            return None;
        };
        let floor = self.divergence.floor(self.full.precision());
        let truth = truth.mapv(|y| y.max(floor));
        let x = match self.split.dense_numbers() {
            Some(numbers) => numbers.to_array().into_owned(),
            None => self.split.x().to_dense(),
        };
        let (x, y) = (self.split.state(&x), self.split.state(&truth));
        let values = to_host(&self.divergence.value(&x, &y));
        Some(match self.split.mask() {
            Some(mask) => {
                let fitted = values.iter().zip(mask.iter());
                let fitted = fitted.filter(|(_, weight)| *weight > 0.0);
                fitted.map(|(value, weight)| value * weight).sum()
            }
            None => values.iter().sum(),
        })
    }

    /// The weight of the held-out entries.
    pub(crate) fn held_out_weight(&self) -> f64 {
        self.split
            .held_out_weights()
            .map_or(0.0, |weights| weights.sum())
    }

    /// The training error that noise causes, per unit of held-out error. (The noise of thinned
    /// counts depends on their share.)
    pub(crate) fn training_per_held_out(&self) -> f64 {
        match self.outer.unseen {
            Unseen::Counts(share) => share / (1.0 - share),
            _ => self.training_weight() / self.held_out_weight(),
        }
    }

    /// The weight of the fitted entries.
    pub(crate) fn training_weight(&self) -> f64 {
        let [n, m] = self.split.shape();
        self.split
            .mask()
            .map_or((n * m) as f64, |weights| weights.sum())
    }
}

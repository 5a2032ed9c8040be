//! One iteration, step by step as in the paper.

use burn::tensor::Tensor;

use super::history::median;
use super::stopping::relative_change;
use super::{Record, Solver, State};
use crate::bunch::Bunch;
use crate::config::{Exponent, Method, Normalization};
use crate::criterion::weighted_divergence;
use crate::error::{Error, Result};
use crate::factors::Factors;
use crate::numerics::to_host;
use crate::problem::Problem;
use crate::update::Rule;

impl Solver {
    /// One outer iteration.
    ///
    /// # Errors
    /// [`Error::NotFinite`] (without a last state: the caller has it), and what
    /// the hypergradient's mode refuses.
    pub fn step(&self, problem: &Problem, state: &State) -> Result<State> {
        let iteration = state.iteration + 1;
        let (rule, rule_of_h) = self.rules()?;

        // 1. H, by the same rule on the transposed problem.
        let transposed = rule_of_h.update(
            problem.columns(),
            &state.factors.h.clone().transpose(),
            &state.factors.w.clone().transpose(),
            &state.lambda,
        );
        // 2. The scale of the factors.
        let factors = self.normalized(Factors {
            w: state.factors.w.clone(),
            h: transposed.transpose(),
        });
        let factors = Factors {
            w: settled(problem, "W", iteration, &factors.w)?,
            h: settled(problem, "H", iteration, &factors.h)?,
        };

        // 3. The bunch and 4. its hypergradient.
        let bunch = self.bunch(problem, &rule, &factors.h);
        let (w, outer_error, gradient) = if self.config.method == Method::AltBi {
            let mode = self.config.hypergradient;
            let end = bunch.hypergradient(&factors.w, &state.lambda, mode)?;
            (end.w, end.outer_error, Some(end.gradient))
        } else {
            let w = bunch.run(&factors.w, &state.lambda);
            let outer_error = sum(&bunch.outer_errors(&w));
            (w, outer_error, None)
        };
        let w = settled(problem, "W", iteration, &w)?;

        // 5. The projected λ step.
        let (lambda, norm) = match gradient {
            Some(gradient) => {
                let values = to_host(&gradient);
                finite("hypergradient", iteration, &values)?;
                let (step, max) = (self.config.lambda_step, self.config.lambda_max);
                let lambda = step.apply(&state.lambda, &gradient, iteration, max);
                (lambda, values.iter().map(|g| g * g).sum::<f64>().sqrt())
            }
            None => (state.lambda.clone(), 0.0),
        };
        let lambda = settled(problem, "λ", iteration, &lambda)?;

        // 6. The record.
        let mut next = State {
            iteration,
            factors: Factors { w, h: factors.h },
            lambda,
            record: state.record.clone(),
            divergence_at_start: state.divergence_at_start,
        };
        self.measure(problem, &rule, &mut next, outer_error, norm);
        finite("divergence", iteration, &[next.record.divergence])?;
        Ok(next)
    }

    /// The rules for W and for H, which carries no penalty.
    pub(super) fn rules(&self) -> Result<(Rule, Rule)> {
        let mut of_w = Rule::new(self.divergence.clone(), self.terms.clone());
        let mut of_h = Rule::new(self.divergence.clone(), Vec::new());
        of_w.check()?;
        if self.config.exponent == Exponent::Monotone {
            // Before the tuned term goes: a baseline without it must differ from
            // AltBi in λ alone, not in γ as well.
            of_w = of_w.monotone()?;
            of_h = of_h.monotone()?;
        }
        if matches!(self.config.method, Method::Mu | Method::MuT) {
            of_w.terms.retain(|term| !term.is_tuned());
        }
        Ok((of_w, of_h))
    }

    /// The bunch of one iteration; `init` has checked its parts.
    pub(super) fn bunch(&self, problem: &Problem, rule: &Rule, h: &Tensor<2>) -> Bunch {
        Bunch {
            rule: rule.clone(),
            observed: problem.rows().clone(),
            other: h.clone(),
            criterion: self.criterion.clone(),
            length: self.config.updates_of_w(),
        }
    }

    /// Rows of H to sum 1, columns of W scaled in return, so that WH stays.
    pub(super) fn normalized(&self, factors: Factors) -> Factors {
        match self.config.normalize {
            Normalization::None => factors,
            Normalization::HRows => {
                let sums = factors.h.clone().sum_dim(1);
                // A row that died stays as it is.
                let dead = sums.clone().equal_elem(0.0);
                let sums = sums.mask_fill(dead, 1.0);
                Factors {
                    w: factors.w * sums.clone().transpose(),
                    h: factors.h / sums,
                }
            }
        }
    }

    pub(super) fn measure(
        &self,
        problem: &Problem,
        rule: &Rule,
        state: &mut State,
        outer_error: f64,
        hypergradient_norm: f64,
    ) {
        let observed = problem.rows();
        let y = rule.reconstruct(&state.factors.w, &state.factors.h);
        let divergence = self.divergence.as_ref();
        let distances = weighted_divergence(divergence, &observed.x, observed.mask.as_ref(), &y);
        let divergence = sum(&distances);
        let penalty = sum(&rule.penalty(&state.factors.w, &state.lambda));
        let lambda = to_host(&state.lambda);
        let before = &state.record;
        let change = if state.iteration == 0 {
            f64::NAN
        } else {
            relative_change(divergence, before.divergence, state.divergence_at_start)
        };
        state.record = Record {
            iteration: state.iteration,
            divergence,
            objective: divergence + penalty,
            outer_error,
            relative_change: change,
            lambda_min: lambda.iter().copied().fold(f64::INFINITY, f64::min),
            lambda_median: median(&lambda),
            lambda_max: lambda.iter().copied().fold(0.0, f64::max),
            hypergradient_norm,
            seconds: before.seconds,
        };
    }
}

pub(super) fn sum(column: &Tensor<2>) -> f64 {
    to_host(column).iter().sum()
}

/// A new state's tensor: checked to be finite, and laid out row by row whatever
/// the operations before it left behind, so that a state read back from a
/// checkpoint is the same in every bit and in every sum over it.
pub(super) fn settled(
    problem: &Problem,
    quantity: &'static str,
    iteration: usize,
    tensor: &Tensor<2>,
) -> Result<Tensor<2>> {
    let values = to_host(tensor);
    finite(quantity, iteration, &values)?;
    Ok(problem.tensor_of(values, tensor.dims()))
}

pub(super) fn finite(quantity: &'static str, iteration: usize, values: &[f64]) -> Result<()> {
    if values.iter().all(|value| value.is_finite()) {
        Ok(())
    } else {
        Err(Error::NotFinite {
            iteration,
            quantity,
            last: None,
        })
    }
}

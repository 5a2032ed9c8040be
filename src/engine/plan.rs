//! The plan of a fused update in plain numbers, and the check that a rule can be fused.

use super::lanes::Real;
use crate::criterion::Criterion;
use crate::divergence::{Beta, Divergence};
use crate::numerics::to_host;
use crate::penalty::FusedPenalty;
use crate::penalty::Weight;
use crate::problem::Problem;
use crate::update::Rule;

/// A term's weight.
#[derive(Debug, Clone)]
pub(super) enum TermScale {
    Tuned,
    Fixed(f64),
    FixedRows(Vec<f64>),
}

/// A penalty and its weight.
#[derive(Debug, Clone)]
pub(super) struct Term {
    pub(super) penalty: FusedPenalty,
    pub(super) scale: TermScale,
}

/// A [`Rule`] with parts that the engine supports.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(super) divergence: Beta,
    pub(super) terms: Vec<Term>,
    /// γ.
    pub(super) exponent: f64,
}

impl Plan {
    /// The plan of a rule, or the part that cannot be fused.
    pub(crate) fn of(rule: &Rule) -> Result<Self, String> {
        let beta = rule.divergence.fused().and_then(|of| of.plain_beta());
        let beta = beta.ok_or_else(|| format!("divergence '{}'", rule.divergence.name()))?;
        if rule.tuned().count() > 1 {
            return Err("several tuned penalties".into());
        }
        let terms = rule.terms.iter().map(|term| {
            let penalty = term.penalty.fused();
            Ok(Term {
                penalty: penalty.ok_or_else(|| format!("penalty '{}'", term.penalty.name()))?,
                scale: match &term.weight {
                    Weight::Tuned => TermScale::Tuned,
                    Weight::Fixed(value) => TermScale::Fixed(*value),
                    Weight::FixedRows(values) => TermScale::FixedRows(to_host(values)),
                    Weight::Bound(_) => return Err("weights of several scopes".into()),
                },
            })
        });
        Ok(Self {
            divergence: Beta(beta),
            terms: terms.collect::<Result<_, String>>()?,
            exponent: rule.exponent,
        })
    }

    /// Names what the loops do not support. (With weights, the data term is as fast, and a mask takes
    /// no memory of its own there.)
    pub(super) fn check(problem: &Problem, criterion: &dyn Criterion) -> Result<(), String> {
        if !criterion.is_training_divergence() {
            return Err(format!("criterion '{}'", criterion.name()));
        }
        let has_weights = problem.mask().is_some() || problem.has_second();
        match (problem.is_sparse(), has_weights) {
            (true, _) => Err("a sparse X".into()),
            (_, true) => Err("weights of entries".into()),
            _ => Ok(()),
        }
    }

    /// The smallest y.
    pub(super) fn floor<T: Real>(&self) -> f64 {
        self.divergence.floor(T::PRECISION)
    }

    /// `Σ_terms λ_i r(w_i)` over all rows.
    pub(super) fn penalty<T: Real>(&self, w: &[f64], rank: usize, lambda: &[f64]) -> f64 {
        let floor = T::PRECISION.floor();
        let mut total = 0.0;
        for term in &self.terms {
            for (row, w) in w.chunks_exact(rank).enumerate() {
                let weight = match &term.scale {
                    TermScale::Tuned => lambda[row],
                    TermScale::Fixed(value) => *value,
                    TermScale::FixedRows(values) => values[row],
                };
                total += weight * term.penalty.value(w, floor);
            }
        }
        total
    }
}

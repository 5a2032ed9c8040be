//! One multiplicative update of one factor: the rule that all other code uses.
//!
//! With `y = WH`, the divergence's split `(∇⁺, ∇⁻)`, weights M and penalty terms
//! with parts `(p⁺, p⁻)`,
//!
//! $$ N = (M \odot \nabla^-) H^\top + \lambda p^-, \qquad P = (M \odot \nabla^+) H^\top + \lambda p^+ $$
//!
//! $$ \Phi(w, \lambda) = w \odot (N / P)^\gamma $$
//!
//! `γ = 1` is the paper's choice. The rule is written for "the factor" and "the other factor": H is
//! updated by the same code on the transposed problem `Xᵀ ≈ Hᵀ Wᵀ`. Baselines, reverse mode and the
//! finite differences call [`Rule::update`], on or off the tape. Its hand-written derivatives are
//! in `tangent.rs` (forward) and `cotangent.rs` (transposed). They start from the same ratio N/P.

mod cotangent;
mod tangent;

use std::sync::Arc;

use burn::tensor::Tensor;

pub(crate) use cotangent::Multiplier;
pub(crate) use tangent::Direction;

use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::numerics::{Floored, Precision, power_of_ratio};
use crate::penalty::{PenaltyTerm, Weight};
use crate::problem::{Observed, Problem, ToMatrix};
use crate::split::Split;

/// An update rule: divergence, penalty terms and exponent.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The divergence of WH from X.
    pub divergence: Arc<dyn Divergence>,
    /// The penalties of the updated factor.
    pub terms: Vec<PenaltyTerm>,
    /// γ.
    pub exponent: f64,
}

impl Rule {
    /// A rule with exponent 1, as in the paper.
    pub fn new(divergence: Arc<dyn Divergence>, terms: Vec<PenaltyTerm>) -> Self {
        Self {
            divergence,
            terms,
            exponent: 1.0,
        }
    }

    /// The same rule with the exponent with which the penalised objective provably never rises.
    ///
    /// It follows from the [majorisers](crate::split::MajoriserPowers) of all parts: `1/(2−β)` for
    /// β < 1, 1 for 1 ≤ β ≤ 2, `1/(β−1)` for β > 2, and smaller if a penalty grows faster than the
    /// divergence (with ½‖w‖² and β < 2 it is `1/(3−β)`: with γ = 1 the objective can rise).
    ///
    /// # Errors
    /// [`Error::NoMonotoneExponent`] if a part has no known majoriser.
    pub fn monotone(mut self) -> Result<Self> {
        let missing = |part: String| Error::NoMonotoneExponent { part };
        let mut powers = self
            .divergence
            .majoriser_powers()
            .ok_or_else(|| missing(self.divergence.name()))?;
        for term in &self.terms {
            let of_term = term
                .penalty
                .majoriser_powers()
                .ok_or_else(|| missing(term.penalty.name()))?;
            powers = powers.combined(of_term);
        }
        self.exponent = powers.exponent();
        Ok(self)
    }

    /// The same rule with the exponent with which the divergence without penalties provably never
    /// rises.
    ///
    /// # Errors
    /// [`Error::NoMonotoneExponent`] if the divergence has no known majoriser.
    pub fn monotone_fit(mut self) -> Result<Self> {
        self.exponent = self.without_terms().monotone()?.exponent;
        Ok(self)
    }

    /// The terms whose weights are tuned.
    pub fn tuned(&self) -> impl Iterator<Item = &PenaltyTerm> {
        self.terms.iter().filter(|term| term.is_tuned())
    }

    /// The same rule with present values for the tuned weights, one tensor for each tuned term,
    /// broadcasting to n×r. A rule can be applied only after its weights are bound.
    ///
    /// # Panics
    /// If the number of weights differs from that of tuned terms.
    pub fn bind(&self, lambda: &[Tensor<2>]) -> Self {
        assert_eq!(
            lambda.len(),
            self.tuned().count(),
            "a λ for each tuned term"
        );
        let mut weights = lambda.iter();
        let mut rule = self.clone();
        for term in rule.terms.iter_mut().filter(|term| term.is_tuned()) {
            let weight = weights.next().expect("as many as tuned terms");
            term.weight = Weight::Bound(weight.clone());
        }
        rule
    }

    /// The same rule without penalties.
    pub(crate) fn without_terms(&self) -> Self {
        Self {
            terms: Vec::new(),
            ..self.clone()
        }
    }

    /// The same rule without the penalties whose weights are tuned.
    pub(crate) fn without_tuned(mut self) -> Self {
        self.terms.retain(|term| !term.is_tuned());
        self
    }

    /// The same rule with `f` applied to weights of rows.
    pub(crate) fn map_weights(&self, f: impl Fn(&Tensor<2>) -> Tensor<2>) -> Self {
        Self {
            terms: self.terms.iter().map(|term| term.map_weights(&f)).collect(),
            ..self.clone()
        }
    }

    /// The same rule on some rows of the factor.
    pub(crate) fn selected(&self, problem: &Problem, rows: &[usize]) -> Self {
        self.map_weights(|weights| {
            let weights = weights.to_matrix().expect("a tensor fills its shape");
            if weights.nrows() == 1 {
                return problem.state(&weights);
            }
            problem.state(&weights.select(ndarray::Axis(0), rows))
        })
    }

    /// Returns true if the update of a row does not depend on other rows.
    pub(crate) fn is_separable(&self) -> bool {
        self.terms
            .iter()
            .all(|term| term.penalty.coupling().is_none())
    }

    /// The floored reconstruction, at which divergences are evaluated.
    ///
    /// # Shapes
    /// `factor` n×r, `other` r×m, result n×m.
    pub(crate) fn reconstruct(&self, factor: &Tensor<2>, other: &Tensor<2>) -> Tensor<2> {
        factor
            .clone()
            .matmul(other.clone())
            .clamp_min(self.floor(factor))
    }

    fn floor(&self, factor: &Tensor<2>) -> f64 {
        self.divergence.floor(Precision::of(factor))
    }

    /// `Φ(factor)`, with the bound weights.
    ///
    /// # Panics
    /// If a tuned weight is not [bound](Self::bind).
    ///
    /// # Shapes
    /// `observed.x` n×m, `factor` n×r, `other` r×m.
    pub fn update(&self, observed: &Observed, factor: &Tensor<2>, other: &Tensor<2>) -> Tensor<2> {
        let fit = self.fit(observed, factor, other).parts;
        let ratio = self.ratio(fit, factor).value;
        factor.clone() * power_of_ratio(ratio, self.exponent)
    }

    /// y, and the parts of the unpenalised update.
    fn fit(&self, observed: &Observed, factor: &Tensor<2>, other: &Tensor<2>) -> Fit {
        let product = factor.clone().matmul(other.clone());
        let y = Floored::new(product, self.floor(factor));
        let split = self.divergence.split(&observed.x, &y.value);
        Fit {
            parts: Split {
                positive: contract(split.positive, observed.mask.as_ref(), other),
                negative: contract(split.negative, observed.mask.as_ref(), other),
            },
            y,
        }
    }

    /// q = N / P from the parts of the fit and the penalties.
    fn ratio(&self, fit: Split, factor: &Tensor<2>) -> Ratio {
        let parts = self
            .terms
            .iter()
            .fold(fit, |sum, term| sum.plus(term.weighted_split(factor)));
        let floor = Precision::of(factor).floor();
        let denominator = Floored::new(parts.positive, floor);
        Ratio {
            value: parts.negative / denominator.value.clone(),
            denominator,
        }
    }

    /// P of the unpenalised update, broadcasting to n×r.
    pub(crate) fn fit_denominator(
        &self,
        observed: &Observed,
        factor: &Tensor<2>,
        other: &Tensor<2>,
    ) -> Tensor<2> {
        let y = self.reconstruct(factor, other);
        let split = self.divergence.split(&observed.x, &y);
        contract(split.positive, observed.mask.as_ref(), other)
    }

    /// `Σ_terms λ_i r(w_i)`, n×1.
    ///
    /// # Panics
    /// If a tuned weight is not [bound](Self::bind).
    pub fn penalty(&self, factor: &Tensor<2>) -> Tensor<2> {
        let [n, _] = factor.dims();
        let zero = factor.clone().slice([0..n, 0..1]).zeros_like();
        self.terms
            .iter()
            .fold(zero, |sum, term| sum + term.weighted_value(factor))
    }
}

/// The parts of an update that come from the data.
struct Fit {
    /// N and P without penalties.
    parts: Split,
    /// y = WH.
    y: Floored,
}

/// q and its denominator.
struct Ratio {
    /// q = N / P.
    value: Tensor<2>,
    /// P. It has a single row if neither mask nor penalty depends on the row.
    denominator: Floored,
}

/// `(M ⊙ part) otherᵀ`, n×r (or 1×r: a constant part without mask needs only the row sums of the
/// other factor).
fn contract(part: Tensor<2>, mask: Option<&Tensor<2>>, other: &Tensor<2>) -> Tensor<2> {
    match mask {
        Some(mask) => (mask.clone() * part).matmul(other.clone().transpose()),
        None if part.dims() == [1, 1] => part * other.clone().sum_dim(1).transpose(),
        None => part.matmul(other.clone().transpose()),
    }
}

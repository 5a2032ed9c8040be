//! A penalty with its weight, and lists of them.

use std::fmt;
use std::sync::Arc;

use burn::tensor::{DType, Tensor, TensorData};

use super::{HostPenalty, Penalty, Rows, Spread, constant_like, host};
use crate::error::{Error, Result};
use crate::numerics::to_host;
use crate::split::Split;

/// The source of a term's weight.
#[derive(Debug, Clone)]
pub(crate) enum Weight {
    /// λ, which AltBi tunes.
    Tuned,
    /// The same number for every row, never tuned.
    Fixed(f64),
    /// A number for each row, n×1, never tuned.
    FixedRows(Tensor<2>),
    /// A tuned weight with its present value, which broadcasts to n×r
    /// ([`Rule::bind`](crate::update::Rule::bind)).
    Bound(Tensor<2>),
}

/// One summand `Σ_i λ_i r(w_i)` of the penalised objective.
///
/// Penalties add up: a [`Rule`](crate::update::Rule) holds a list of terms, each
/// with a weight of its own, and any number of them may be tuned.
#[derive(Clone)]
pub struct PenaltyTerm {
    /// The penalty.
    pub penalty: Arc<dyn Penalty>,
    /// Its weight.
    pub(crate) weight: Weight,
}

impl fmt::Debug for PenaltyTerm {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = match &self.weight {
            Weight::Tuned => "tuned".into(),
            Weight::Fixed(value) => value.to_string(),
            Weight::FixedRows(_) => "one per row".into(),
            Weight::Bound(_) => "tuned, bound".into(),
        };
        write!(formatter, "{} ({weight})", self.penalty.name())
    }
}

impl PenaltyTerm {
    /// A term whose weight is tuned.
    pub fn tuned(penalty: impl Penalty + 'static) -> Self {
        Self {
            penalty: Arc::new(penalty),
            weight: Weight::Tuned,
        }
    }

    /// A term whose weight is fixed.
    ///
    /// # Errors
    /// [`Error::Setting`] for a weight that is negative or not finite.
    pub fn fixed(penalty: impl Penalty + 'static, weight: f64) -> Result<Self> {
        let ok = weight.is_finite() && weight >= 0.0;
        Error::require(ok, "the weight of a penalty", weight, "a finite number ≥ 0")?;
        Ok(Self {
            penalty: Arc::new(penalty),
            weight: Weight::Fixed(weight),
        })
    }

    /// A term with a fixed weight for each row. [`Problem::tensor`](crate::Problem::tensor) makes
    /// and checks tensors.
    ///
    /// # Shapes
    /// `weights` n×1.
    pub fn fixed_rows(penalty: impl Penalty + 'static, weights: Tensor<2>) -> Self {
        Self {
            penalty: Arc::new(penalty),
            weight: Weight::FixedRows(weights),
        }
    }

    /// Returns true if its weight is tuned.
    pub fn is_tuned(&self) -> bool {
        matches!(self.weight, Weight::Tuned | Weight::Bound(_))
    }

    /// The present weight, broadcasting to n×r.
    pub(crate) fn weight(&self, w: &Tensor<2>) -> Tensor<2> {
        match &self.weight {
            Weight::Tuned => panic!("a tuned weight is bound before its rule is applied"),
            Weight::Fixed(value) => constant_like(w, *value),
            Weight::FixedRows(weights) | Weight::Bound(weights) => weights.clone(),
        }
    }

    /// The same term with `f` applied to its weights, if it has one per row.
    pub(crate) fn map_weights(&self, f: impl Fn(&Tensor<2>) -> Tensor<2>) -> Self {
        let weight = match &self.weight {
            Weight::FixedRows(weights) => Weight::FixedRows(f(weights)),
            other => other.clone(),
        };
        Self {
            penalty: self.penalty.clone(),
            weight,
        }
    }

    /// `λ_i r(w_i)`: n×1.
    ///
    /// # Panics
    /// Those of [`weighted_split`](Self::weighted_split).
    pub(crate) fn weighted_value(&self, w: &Tensor<2>) -> Tensor<2> {
        let weight = self.weight(w);
        if weight.dims()[1] == 1 {
            return self.penalty.value(w) * weight;
        }
        let entries = self.penalty.entries(w);
        let entries = entries.expect("scopes are checked before a run");
        (entries * weight).sum_dim(1)
    }

    /// The weighted split gradient, broadcasting to n×r.
    ///
    /// # Panics
    /// If its weight is tuned and not [bound](crate::update::Rule::bind).
    pub(crate) fn weighted_split(&self, w: &Tensor<2>) -> Split {
        self.split_with(w, &self.weight(w))
    }

    /// Its penalty's loops on plain numbers, if they serve beside tensors: in 64 bits, if it couples
    /// rows. (In 32 bits the tensor form has the floors and the rounding of that type.)
    pub(crate) fn loops_for(&self, w: &Tensor<2>) -> Option<&dyn HostPenalty> {
        let loops = self.penalty.on_host();
        loops.filter(|_| w.dtype() == DType::F64 && self.penalty.coupling().is_some())
    }

    /// [`split_with`](Self::split_with) off the tape, by its penalty's loops if there are some.
    pub(crate) fn split_by_loops(&self, w: &Tensor<2>, weight: &Tensor<2>) -> Split {
        let Some(loops) = self.loops_for(w) else {
            return self.split_with(w, weight);
        };
        let (values, weight) = (to_host(w), Spread::new(to_host(weight), weight.dims()));
        let rows = Rows {
            values: &values,
            rank: w.dims()[1],
        };
        let parts = host::split(loops, rows, &weight);
        let [positive, negative] = parts.map(|part| {
            let data = TensorData::new(part, w.dims());
            Tensor::from_data(data, (&w.device(), DType::F64))
        });
        Split { positive, negative }
    }

    /// [`weighted_split`](Self::weighted_split) with another weight.
    pub(crate) fn split_with(&self, w: &Tensor<2>, weight: &Tensor<2>) -> Split {
        match self.penalty.coupling() {
            Some(coupling) => coupling.weighted_split(w, weight),
            None => self.penalty.split(w).scaled(weight),
        }
    }

    /// The derivative of [`weighted_split`](Self::weighted_split) when w moves along `direction`
    /// and its weight along `weight_direction` (`None`: it is fixed). Returns `None` if the penalty
    /// has no tangent.
    pub(crate) fn tangent(
        &self,
        w: &Tensor<2>,
        direction: &Tensor<2>,
        weight_direction: Option<&Tensor<2>>,
    ) -> Option<Split> {
        let weight = self.weight(w);
        let through_w = match self.penalty.coupling() {
            Some(coupling) => coupling.weighted_tangent(w, &weight, direction)?,
            None => self.penalty.tangent(w, direction)?.scaled(&weight),
        };
        Some(match weight_direction {
            Some(direction) if self.is_tuned() => through_w.plus(self.split_with(w, direction)),
            _ => through_w,
        })
    }

    /// The cotangents of w (n×r) and of its weight (n×r, to be summed to its shape) for cotangents
    /// of the weighted parts. Returns `None` if the penalty has no cotangent.
    pub(crate) fn cotangent(
        &self,
        w: &Tensor<2>,
        parts: &Split,
    ) -> Option<(Tensor<2>, Option<Tensor<2>>)> {
        let weight = self.weight(w);
        match self.penalty.coupling() {
            Some(coupling) => {
                let of_w = coupling.weighted_cotangent(w, &weight, parts)?;
                let of_weight = if self.is_tuned() {
                    Some(coupling.weight_cotangent(w, parts)?)
                } else {
                    None
                };
                Some((of_w, of_weight))
            }
            None => {
                let of_w = self.penalty.cotangent(w, &parts.clone().scaled(&weight))?;
                let of_weight = self.is_tuned().then(|| {
                    let split = self.penalty.split(w);
                    split.positive * parts.positive.clone()
                        + split.negative * parts.negative.clone()
                });
                Some((of_w, of_weight))
            }
        }
    }
}

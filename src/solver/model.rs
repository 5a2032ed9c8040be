//! A model: the result of a run, which encodes new data.

use std::sync::Arc;

use ndarray::Array2;

use super::encode::{Patience, encode};
use super::natural::absolute;
use crate::config::AltBiConfig;
use crate::device::Device;
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::factors::Side;
use crate::lambda::{Scope, Units};
use crate::metrics::Spread;
use crate::penalty::{Penalty, PenaltyTerm, Weight};
use crate::problem::{Scale, Scaling, ToMatrix};
use crate::update::Rule;

/// A code that has not converged gets at least this many updates. (An iteration of a run has
/// several updates.)
const UPDATES: usize = 1000;
/// Movement at which a code has converged, if the run has no tolerance.
const TOLERANCE: f64 = 1e-6;

/// A penalty of a run with its final weights.
#[derive(Debug, Clone)]
pub(crate) struct WeightedPenalty {
    /// The penalised factor.
    pub side: Side,
    /// The penalty.
    pub penalty: Arc<dyn Penalty>,
    /// Scope of the weights.
    pub scope: Scope,
    /// λ, in a shape that broadcasts to W (n×r) or to H (r×m).
    pub lambda: Array2<f64>,
    /// Units of λ.
    pub units: Units,
}

/// The factors of a run with its divergence, exponent, penalties and λ. New rows are encoded by H,
/// new columns by W.
///
/// Made by [`Outcome::model`](super::Outcome::model), or from the folder of a run.
///
/// # Shapes
/// W n×r, H r×m.
#[derive(Debug, Clone)]
pub struct Model {
    /// W.
    pub w: Array2<f64>,
    /// H.
    pub h: Array2<f64>,
    pub(super) divergence: Arc<dyn Divergence>,
    pub(super) config: AltBiConfig,
    pub(super) penalties: Vec<WeightedPenalty>,
    pub(super) device: Device,
    pub(super) scaling: Option<Scaling>,
}

/// The weight of new rows (or columns), which have no λ of their own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Borrowed {
    /// The penalty.
    pub penalty: String,
    /// Scope of the run's λ.
    pub scope: Scope,
    /// The median of the run's λ, in absolute units.
    pub lambda: f64,
}

impl Model {
    /// A model from its parts. It uses these settings: exponent, tolerance, number of iterations
    /// and precision.
    ///
    /// # Errors
    /// [`Error::Shape`] for factors that do not fit together, or a λ that does not broadcast
    /// to its factor.
    pub(crate) fn new(
        (w, h): (Array2<f64>, Array2<f64>),
        divergence: impl Divergence + 'static,
        config: AltBiConfig,
        penalties: Vec<WeightedPenalty>,
        device: Device,
    ) -> Result<Self> {
        let (n, rank) = w.dim();
        Error::require_shape("H", h.dim(), [rank, h.ncols()])?;
        for one in &penalties {
            let expected = match one.side {
                Side::W => [n, rank],
                Side::H => [rank, h.ncols()],
            };
            let found: [usize; 2] = one.lambda.dim().into();
            let fits = |axis: usize| found[axis] == 1 || found[axis] == expected[axis];
            if !fits(0) || !fits(1) {
                return Err(Error::Shape {
                    what: "λ",
                    expected,
                    found,
                });
            }
        }
        Ok(Self {
            w,
            h,
            divergence: Arc::new(divergence),
            config,
            penalties,
            device,
            scaling: None,
        })
    }

    /// Sets the scaling of the run's data. W and H have the units of the data.
    ///
    /// New data are scaled in the same way: features by the divisors of the run, and new lines of
    /// the scaled kind by their own.
    #[must_use]
    pub(crate) fn with_scaling(mut self, scaling: Option<Scaling>) -> Self {
        self.scaling = scaling;
        self
    }

    /// W and H in the units of the scaled problem.
    fn scaled(&self) -> (Array2<f64>, Array2<f64>) {
        match &self.scaling {
            Some(scaling) => (scaling.w_scaled(&self.w), scaling.h_scaled(&self.h)),
            None => (self.w.clone(), self.h.clone()),
        }
    }

    /// The same model without penalties.
    #[must_use]
    pub fn without_penalties(mut self) -> Self {
        self.penalties.clear();
        self
    }

    /// Encodes new rows with H fixed: the W ≥ 0 that fits `x ≈ W H`, with the run's penalties on W.
    /// (scikit-learn: `transform`.)
    ///
    /// Each row is fitted on its own, from a start that depends only on it. Updates end when no
    /// entry moves by more than the run's tolerance (1e-6 if that is 0), or after the run's number
    /// of iterations, at least 1000. Shared weights and weights of components apply. A new row has
    /// no λ of its own and gets the median of the run's λ.
    ///
    /// # Errors
    /// [`Error::Shape`] if `x` does not have m columns; [`Error::CoupledPenalty`] for a penalty
    /// that couples rows; those of [`Problem::new`](crate::Problem::new) and of the divergence's
    /// domain.
    ///
    /// # Shapes
    /// `x` p×m, result p×r.
    pub fn encode_rows(&self, x: &(impl ToMatrix + ?Sized)) -> Result<Array2<f64>> {
        self.encode(Side::W, x.to_matrix()?, None)
    }

    /// Encodes new columns with W fixed: the H ≥ 0 that fits `x ≈ W H`, with the run's
    /// penalties on H; otherwise as [`encode_rows`](Self::encode_rows).
    ///
    /// # Errors
    /// Those of [`encode_rows`](Self::encode_rows); [`Error::Shape`] if `x` does not have n rows.
    ///
    /// # Shapes
    /// `x` n×p, result r×p.
    pub fn encode_columns(&self, x: &(impl ToMatrix + ?Sized)) -> Result<Array2<f64>> {
        self.encode(Side::H, x.to_matrix()?, None)
    }

    /// Encodes rows ([`Side::W`]) or columns ([`Side::H`]), with an optional weight for each entry
    /// of `x`.
    ///
    /// # Errors
    /// Those of [`encode_rows`](Self::encode_rows), and as
    /// [`Problem::masked`](crate::Problem::masked) for the weights. Features that are missing in
    /// all new rows are allowed.
    ///
    /// # Shapes
    /// `x` and `mask` p×m, result p×r; for columns n×p and r×p.
    pub fn encode(
        &self,
        side: Side,
        x: Array2<f64>,
        mask: Option<Array2<f64>>,
    ) -> Result<Array2<f64>> {
        let patience = Patience {
            tolerance: match self.config.tolerance {
                0.0 => TOLERANCE,
                tolerance => tolerance,
            },
            most: self.config.max_iterations.max(UPDATES),
            precision: self.config.precision,
            device: self.device.clone(),
        };
        let rule = self.rule(side)?;
        let turned = |matrix: Array2<f64>| matrix.reversed_axes().as_standard_layout().into_owned();
        let (w, h) = self.scaled();
        let (mut x, mask, other) = match side {
            Side::W => (x, mask, h),
            Side::H => (turned(x), mask.map(turned), turned(w)),
        };
        let own_sizes = self.scale_new(side, &mut x, mask.as_ref());
        let codes = encode(x, mask, &other, &rule, &patience);
        let codes = codes.map(|mut codes| {
            for (mut code, size) in codes.rows_mut().into_iter().zip(own_sizes) {
                code *= size;
            }
            codes
        });
        match side {
            Side::W => codes,
            Side::H => codes.map(turned).map_err(Error::transposed),
        }
    }

    /// Scales new rows as in the run, and returns the factors of their codes.
    fn scale_new(&self, side: Side, x: &mut Array2<f64>, mask: Option<&Array2<f64>>) -> Vec<f64> {
        let mut own = vec![1.0; x.nrows()];
        let Some(scaling) = &self.scaling else {
            return own;
        };
        let features = match side {
            Side::W => Scale::Columns,
            Side::H => Scale::Rows,
        };
        if scaling.scale == features {
            for (mut column, size) in x.columns_mut().into_iter().zip(&scaling.sizes) {
                column /= *size;
            }
            return own;
        }
        for (i, mut row) in x.rows_mut().into_iter().enumerate() {
            let weight = |j: usize| match mask.and_then(|mask| mask.get((i, j))) {
                Some(weight) => *weight,
                None => 1.0,
            };
            let (mut squares, mut weights) = (0.0, 0.0);
            for (j, x) in row.iter().enumerate().filter(|(j, _)| weight(*j) > 0.0) {
                squares += weight(j) * x * x;
                weights += weight(j);
            }
            let size = (squares / weights).sqrt();
            if size.is_finite() && size > 0.0 {
                row /= size;
                own[i] = size;
            }
        }
        own
    }

    /// The penalties of a side whose λ belong to its rows (or columns), with the median that new
    /// lines get.
    pub(crate) fn borrowed(&self, side: Side) -> Result<Vec<Borrowed>> {
        let mut all = Vec::new();
        for one in self.acting(side) {
            let weight = self.weight_of_new(one)?;
            if of_rows(one).nrows() > 1 {
                all.push(Borrowed {
                    penalty: one.penalty.name(),
                    scope: one.scope,
                    lambda: weight[[0, 0]],
                });
            }
        }
        Ok(all)
    }

    /// The penalties of a side that have an effect.
    fn acting(&self, side: Side) -> impl Iterator<Item = &WeightedPenalty> {
        let of_side = self.penalties.iter().filter(move |one| one.side == side);
        of_side.filter(|one| one.lambda.iter().any(|weight| *weight > 0.0))
    }

    /// The update rule for new rows of a factor, with bound weights.
    fn rule(&self, side: Side) -> Result<Rule> {
        let mut terms = Vec::new();
        for one in self.acting(side) {
            let weight = self.weight_of_new(one)?;
            let shape = [weight.nrows(), weight.ncols()];
            let values = weight.iter().copied().collect();
            let weight = self.device.tensor(values, shape, self.config.precision);
            terms.push(PenaltyTerm {
                penalty: one.penalty.clone(),
                weight: Weight::Bound(weight),
            });
        }
        let rule = Rule::new(self.divergence.clone(), terms);
        self.config.exponent.of(rule)
    }

    /// λ of a new row, in absolute units: 1×1, or 1×r.
    fn weight_of_new(&self, one: &WeightedPenalty) -> Result<Array2<f64>> {
        if one.penalty.coupling().is_some() {
            return Err(Error::CoupledPenalty {
                penalty: one.penalty.name(),
                what: match one.side {
                    Side::W => "rows",
                    Side::H => "columns",
                },
            });
        }
        let (w, h) = self.scaled();
        let (factor, other) = match one.side {
            Side::W => (w, h),
            Side::H => (h.t().to_owned(), w.t().to_owned()),
        };
        let lambda = match one.units {
            Units::Absolute => of_rows(one),
            Units::Relative => {
                let rule = Rule::new(self.divergence.clone(), Vec::new());
                let tensor = |matrix: &Array2<f64>| {
                    let shape = [matrix.nrows(), matrix.ncols()];
                    let values = matrix.iter().copied().collect();
                    self.device.tensor(values, shape, self.config.precision)
                };
                absolute(
                    &of_rows(one),
                    (&factor, &other),
                    &rule,
                    &one.penalty,
                    tensor,
                )?
            }
        };
        if lambda.nrows() == 1 {
            return Ok(lambda);
        }
        let values: Vec<f64> = lambda.iter().copied().collect();
        let median = Spread::of(&values).map_or(0.0, |of| of.median);
        Ok(Array2::from_elem((1, 1), median))
    }
}

/// λ in a shape that broadcasts to W or Hᵀ.
fn of_rows(one: &WeightedPenalty) -> Array2<f64> {
    match one.side {
        Side::W => one.lambda.clone(),
        Side::H => one.lambda.t().as_standard_layout().into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divergence::Beta;
    use crate::penalty::L1;

    #[test]
    fn new_rows_borrow_the_weights_that_belong_to_old_ones() {
        let entry = |(i, j)| 0.1 + ((i * 7 + j) as f64 * 4.513).fract();
        let x = Array2::from_shape_fn((12, 7), entry);
        for (scope, count) in [
            (Scope::Row, 1),
            (Scope::Entry, 1),
            (Scope::Shared, 0),
            (Scope::Component, 0),
        ] {
            let config = AltBiConfig::new(2).with_scope(scope).with_max_iterations(5);
            let model = config.solver(Beta::KL, L1).fit(&x).unwrap().model();
            assert_eq!(model.borrowed(Side::W).unwrap().len(), count, "{scope}");
        }
    }
}

//! The bias of hypergradients through short bunches.
//!
//! The hypergradient through T updates differs from that of the fully solved problem (T = ∞). The
//! difference depends on the data, the penalty and the state of the run, so it has to be measured.

use std::sync::Arc;

use burn::tensor::Tensor;
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use crate::bunch::{Bunch, Pair, Span};
use crate::criterion::Criterion;
use crate::error::{Error, Result};
use crate::factors::{Factors, Side};
use crate::hypergradient::{Differentiate, Implicit, Mode};
use crate::numerics::movement;
use crate::problem::{Problem, ToMatrix};
use crate::update::Rule;

/// The lengths that are compared.
pub(crate) const LENGTHS: [usize; 8] = [1, 2, 4, 8, 16, 64, 256, 1024];

/// The hypergradient at one length of the bunch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct BiasRow {
    /// T; `None` is ∞, the implicit mode.
    pub length: Option<usize>,
    /// E at the end of the bunch.
    pub outer_error: f64,
    /// ‖g_T‖₂.
    pub norm: f64,
    /// The cosine of the angle between g_T and the reference.
    pub cosine: f64,
    /// ‖g_T − g‖ / ‖g‖, where g is the reference.
    pub relative_error: f64,
    /// The share of the rows with g_i ≠ 0 on which g_T has the same sign.
    pub same_sign: f64,
}

/// Hypergradients at growing T, and their limit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Bias {
    /// One entry for each length, the last one the reference.
    pub rows: Vec<BiasRow>,
    /// The refusal of the implicit mode, if it refused. The reference is then the longest bunch.
    pub refusal: Option<String>,
    /// The hypergradients themselves, one column for each entry of `rows`: n×k.
    #[serde(skip)]
    pub gradients: Array2<f64>,
}

impl Bias {
    /// The shortest T such that it and every longer one are this close to the reference.
    pub fn shortest(&self, relative_error: f64) -> Option<usize> {
        let close = |row: &&BiasRow| row.relative_error <= relative_error;
        let lengths = self.rows.iter().rev().skip(1).take_while(close);
        lengths.last().and_then(|row| row.length)
    }
}

/// Compares the hypergradients of bunches of the [`LENGTHS`] and of an infinite one (implicit
/// mode), all from the same factors and λ. Bunches are computed by the forward mode, which keeps no
/// states, or by the adjoint mode if a penalty couples rows.
///
/// The implicit mode may refuse: no fixed point is reached within some seconds, it is degenerate,
/// or a penalty couples rows. Then the longest bunch is the reference, and
/// [`refusal`](Bias::refusal) says why.
///
/// # Errors
/// Those of [`Bunch::with_rules`] and of these modes; [`Error::Shape`] for factors or a λ of
/// another shape; [`Error::Conflict`] if the hypergradient is zero.
///
/// # Shapes
/// `lambda` n×1.
pub(crate) fn bias(
    problem: &Problem,
    rule: &Rule,
    criterion: Arc<dyn Criterion>,
    factors: &Factors,
    lambda: &Array2<f64>,
) -> Result<Bias> {
    let [n, _] = problem.shape();
    let pair = Pair::new(problem, &factors.w, &factors.h)?;
    let weights = [problem.tensor("λ", lambda, [n, 1])?];
    let (of_w, of_h, span) = (rule.clone(), rule.without_terms(), Span::One(Side::W));
    criterion.check(problem)?;
    // Fused if possible, because tensors as large as a wide X take minutes.
    let on_term = Bunch::fused(
        problem,
        of_w.clone(),
        of_h.clone(),
        criterion.clone(),
        span,
        1,
    );
    let (bunch, is_fused) = match on_term {
        Err(Error::EngineUnsupported { .. }) if !problem.is_sparse() => {
            let on_tensors = Bunch::with_rules(problem, of_w, of_h, criterion.clone(), span, 1);
            (on_tensors?, false)
        }
        other => (other?, true),
    };
    let mode = match bunch.independent_rows() {
        Some(_) => Mode::Forward,
        None => Mode::Adjoint,
    };
    let mut found: Vec<(Option<usize>, f64, Vec<f64>)> = Vec::new();
    for length in LENGTHS {
        let bunch = bunch.with_length(length)?;
        let end = bunch.hypergradient(&pair, &weights, mode)?;
        let gradient = end.gradients[0].to_matrix()?.into_iter().collect();
        found.push((Some(length), end.outer_error, gradient));
    }
    // (Tensors would take too long, and the implicit mode refuses penalties that couple rows.)
    let near = if is_fused && mode == Mode::Forward {
        settled(problem, &bunch.with_length(STRIDE)?, pair, &weights)?
    } else {
        pair
    };
    let cost = factors.w.len() as f64 * factors.h.ncols() as f64;
    let implicit = Implicit {
        max_updates: ((PATIENCE / cost) as usize).clamp(FEWEST, Implicit::default().max_updates),
        ..Implicit::default()
    };
    let refusal = match implicit.compute(&bunch, &near, &weights) {
        Ok(end) => {
            let gradient = end.gradients[0].to_matrix()?.into_iter().collect();
            found.push((None, end.outer_error, gradient));
            None
        }
        Err(
            refusal @ (Error::NoFixedPoint { .. }
            | Error::SingularFixedPoint { .. }
            | Error::ModeUnsupported { .. }),
        ) => Some(refusal.to_string()),
        Err(error) => return Err(error),
    };
    let reference = found.last().expect("there are lengths").2.clone();
    if norm(&reference) == 0.0 {
        return Err(Error::Conflict {
            first: "the bias of short bunches",
            second: "a hypergradient that is zero in every row",
            reason: "there is nothing to compare; is there a penalty?",
        });
    }
    let row = |(length, outer_error, gradient): &(Option<usize>, f64, Vec<f64>)| BiasRow {
        length: *length,
        outer_error: *outer_error,
        norm: norm(gradient),
        cosine: product(gradient, &reference) / (norm(gradient) * norm(&reference)),
        relative_error: distance(gradient, &reference) / norm(&reference),
        same_sign: same_sign(gradient, &reference),
    };
    let columns: Vec<f64> = found.iter().flat_map(|one| one.2.clone()).collect();
    let gradients = Array2::from_shape_vec((found.len(), n), columns);
    let gradients = gradients.expect("every hypergradient has n entries");
    Ok(Bias {
        rows: found.iter().map(row).collect(),
        refusal,
        // In row order, for files and callers.
        gradients: gradients.t().as_standard_layout().into_owned(),
    })
}

/// Updates between two checks of the movement of W.
const STRIDE: usize = 500;
/// Limit of updates times entries times components on the way to the fixed point. It takes some
/// seconds.
const PATIENCE: f64 = 3e10;
/// Smallest number of updates that the implicit mode may add.
const FEWEST: usize = 100;

/// The factors after many bunches, or fewer if W has converged.
fn settled(problem: &Problem, bunch: &Bunch, pair: Pair, weights: &[Tensor<2>]) -> Result<Pair> {
    let floor = problem.precision().floor();
    let h = pair.h.clone();
    let mut w = pair.w.to_matrix()?;
    let cost = w.len() as f64 * h.dims()[0] as f64 * STRIDE as f64;
    for _ in 0..(PATIENCE / cost).ceil() as usize {
        let here = Pair {
            w: problem.tensor("W", &w, w.dim().into())?,
            h: h.clone(),
        };
        let before = w;
        w = bunch.run(&here, weights).w.to_matrix()?;
        // An entry that tends to zero needs very many updates, and tiny numbers are slow to compute
        // with.
        w.mapv_inplace(|entry| if entry < floor { 0.0 } else { entry });
        let rows = before.rows().into_iter().zip(w.rows());
        let moved = rows.map(|(before, after)| movement(before, after));
        if moved.fold(0.0, f64::max) <= f64::EPSILON {
            break;
        }
    }
    let w = problem.tensor("W", &w, w.dim().into())?;
    Ok(Pair { w, h })
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    product(a, a).sqrt()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let squares = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b));
    squares.sum::<f64>().sqrt()
}

fn same_sign(a: &[f64], reference: &[f64]) -> f64 {
    let rows = || a.iter().zip(reference).filter(|(_, g)| **g != 0.0);
    let same = rows().filter(|(a, g)| *a * *g > 0.0).count();
    same as f64 / rows().count() as f64
}

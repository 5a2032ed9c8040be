//! Automatic relevance determination (Tan and Févotte, 2013): each component has a scale, in W
//! and H alike, and the scales follow from the factors.
//!
//! f is ‖·‖₁ or ½‖·‖² of a component, n + m is the number of its entries, and φ is the noise. The
//! weight of component k on both factors is `φ / s_k`,
//!
//! $$ s_k = \frac{f(w_k) + f(h_k) + b}{c}, \qquad c = n + m + a + 1 \text{ (half of } n + m \text{ for ½‖·‖²)} $$
//!
//! b is set by the method of moments, so that the prior has the mean of X. Components that are not
//! needed shrink to zero. No held-out error is used: a run ends when its scales no longer change.

use ndarray::Array2;

use super::books::{Answer, Books, Solved};
use crate::config::{BunchOver, Exponent, Normalization};
use crate::criterion::Unseen;
use crate::error::{Error, Result};
use crate::factors::{Factors, Side};
use crate::lambda::{Scope, Units};
use crate::penalty::{L1, PenaltyTerm, SquaredL2};

/// The shape of the prior of the scales.
const SHAPE: f64 = 10.0;
/// Relative change of the scales at which a run ends.
const AT_REST: f64 = 1e-5;

/// The prior: ½‖·‖² or ‖·‖₁.
#[derive(Clone, Copy)]
struct Prior {
    squares: bool,
    b: f64,
    c: f64,
    noise: f64,
}

impl Prior {
    fn new(books: &Books<'_>, squares: bool) -> Self {
        let task = books.task;
        let ([n, m], rank, mean) = (task.split.shape(), task.rank as f64, task.split.mean());
        let entries = (n + m) as f64;
        Self {
            squares,
            b: if squares {
                std::f64::consts::PI * (SHAPE - 1.0) * mean / (2.0 * rank)
            } else {
                ((SHAPE - 1.0) * (SHAPE - 2.0) * mean / rank).sqrt()
            },
            c: if squares { entries / 2.0 } else { entries } + SHAPE + 1.0,
            noise: noise(books),
        }
    }

    /// The weights of all components, for W and then for H.
    fn weights(self, factors: &Factors) -> Array2<f64> {
        let rank = factors.w.ncols();
        let size = |values: ndarray::ArrayView1<'_, f64>| {
            let of = |value: &f64| {
                if self.squares {
                    0.5 * value * value
                } else {
                    *value
                }
            };
            values.iter().map(of).sum::<f64>()
        };
        Array2::from_shape_fn((2 * rank, 1), |(place, _)| {
            let k = place % rank;
            let f = size(factors.w.column(k)) + size(factors.h.row(k));
            self.noise * self.c / (f + self.b)
        })
    }
}

/// φ, the noise: twice the divergence of an entry. For counts under KL it is 1, and for thinned
/// counts it is divided by the share that the updates see.
fn noise(books: &Books<'_>) -> f64 {
    let task = books.task;
    match (task.outer.unseen, task.noise()) {
        (Unseen::Counts(share), _) => 1.0 / (1.0 - share),
        (_, None) if task.full.has_counts() => 1.0,
        (_, Some(noise)) => 2.0 * noise / task.training_weight(),
        // The held-out error of a plain solve is an estimate that is a little too large.
        (_, None) => 2.0 * books.plain_error() / task.held_out_weight(),
    }
}

/// Runs with ½‖·‖² if `squares`, otherwise with ‖·‖₁.
pub(super) fn run(squares: bool, mut books: Books<'_>) -> Result<Answer> {
    let prior = Prior::new(&books, squares);
    let term = || {
        if squares {
            PenaltyTerm::tuned(SquaredL2)
        } else {
            PenaltyTerm::tuned(L1)
        }
    };
    let terms = vec![(Side::W, term()), (Side::H, term())];
    let config = books
        .config()
        .with_bunch_over(BunchOver::Both)
        .with_bunch(1)
        .with_scope(Scope::Component)
        .with_units(Units::Absolute)
        .with_exponent(Exponent::Monotone)
        .with_normalize(Normalization::None);
    let solver = books
        .solver_of(config.clone(), terms.clone())
        .with_factors(books.start());
    let (mut state, mut stepper) = solver.begin(&books.task.split)?;
    while !books.ledger.is_spent() {
        let weights = prior.weights(&state.factors);
        let change = weights
            .iter()
            .zip(&state.lambda)
            .fold(0.0, |most, (new, old)| {
                f64::max(most, (new / old - 1.0).abs())
            });
        let rests = state.iteration > 0 && change < AT_REST;
        state.lambda = weights;
        if rests {
            break;
        }
        state = match books.advance(&mut stepper, &state, 1) {
            Err(Error::NotFinite { .. }) => break,
            other => other?,
        };
    }
    let solved = Solved {
        dials: Vec::new(),
        lambda: state.lambda.clone(),
        outer_error: state.record.outer_error,
        divergence: state.record.divergence,
        penalty: f64::NAN,
        factors: state.factors,
    };
    books.answer_with(solved, config, terms)
}

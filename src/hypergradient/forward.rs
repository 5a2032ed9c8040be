//! Forward mode: hand-written tangents, the mode that the paper's algorithm uses.

use burn::tensor::Tensor;

use super::{Differentiate, Directions, Hypergradient};
use crate::bunch::{Bunch, ORDER, Pair, Span, summed_to};
use crate::error::Result;
use crate::factors::Side;
use crate::update::Direction;

/// Carries the tangent `s_t = dw⁽ᵗ⁾/dλ` along with the updates,
///
/// $$ s_t = A_t s_{t-1} + b_t, \quad s_0 = 0, \qquad dE/d\lambda_i = g_T^\top s_T $$
///
/// as Jacobian-vector products. A step costs O(nmr), and A_t is never formed. If rows are
/// independent (one factor, no coupled penalty), one tangent is enough for weights of rows or a
/// shared one, and r tangents for weights of components or entries. A coupled penalty, or a bunch
/// over both factors, needs a tangent for each weight. Use reverse or adjoint mode there, except
/// for checks.
///
/// # Memory
/// w and s (n×r), and the temporaries of one step.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Forward {
    pub(crate) fault: Fault,
}

/// A deliberate mistake, for the negative controls of the gradient checker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Fault {
    /// None: the correct formulas.
    #[default]
    None,
    /// The outer gradient as the paper prints it, `−(∇⁺ + ∇⁻) Hᵀ`.
    PrintedOuterGradient,
    /// `s_T = A_T s_{T−1} − b_T`: one sign of the last step is flipped. (The sign of A_T would not
    /// be noticed if one update reaches the fixed point, as with β = 2 and r = 1, because A_T is
    /// then zero.)
    FlippedSign,
}

impl Fault {
    /// Description of the mistake.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::None => "no mistake",
            Self::PrintedOuterGradient => "outer gradient as printed",
            Self::FlippedSign => "one sign flipped in the tangent",
        }
    }
}

impl Forward {
    /// The state at the end, and its tangent when each λ moves in a direction of the same shape.
    ///
    /// # Errors
    /// [`Error::ModeUnsupported`](crate::Error::ModeUnsupported) if a part has no tangent.
    pub fn tangent(
        &self,
        bunch: &Bunch,
        pair: &Pair,
        lambda: &[Tensor<2>],
        directions: &[Tensor<2>],
    ) -> Result<(Pair, Pair)> {
        let bound = bunch.bind(lambda);
        let (on_w, _) = bunch.tuned();
        let both = bunch.span == Span::Both;
        let mut here = pair.clone();
        let mut dot = pair.map(Tensor::zeros_like);
        for t in 1..=bunch.length {
            let flipped = self.fault == Fault::FlippedSign && t == bunch.length;
            let sign = if flipped { -1.0 } else { 1.0 };
            for side in ORDER.into_iter().filter(|side| bunch.span.covers(*side)) {
                let rule = bound.rule(side);
                let mut moved = match side {
                    Side::W => directions[..on_w].iter(),
                    Side::H => directions[on_w..].iter(),
                };
                let weights = rule.terms.iter().map(|term| {
                    let direction = term.is_tuned().then(|| moved.next());
                    direction.flatten().map(|along| along.clone() * sign)
                });
                let (factor_dot, other_dot) = dot.seen_from(side);
                let direction = Direction {
                    factor: factor_dot.clone(),
                    other: both.then(|| other_dot.clone()),
                    weights: weights.collect(),
                };
                let (factor, other) = here.seen_from(side);
                let (updated, tangent) = bunch.data.update_with_tangent(
                    self.name(),
                    rule,
                    side,
                    [factor, other],
                    &direction,
                )?;
                *here.factor_mut(side) = updated;
                *dot.factor_mut(side) = tangent;
            }
        }
        Ok((here, dot))
    }

    fn outer_gradient(&self, bunch: &Bunch, pair: &Pair) -> Result<Pair> {
        match self.fault {
            Fault::PrintedOuterGradient => {
                let printed = -bunch.data.slope_terms(&bunch.of_w, pair);
                Ok(Pair {
                    w: printed.clone().matmul(pair.h.clone()),
                    h: printed.transpose().matmul(pair.w.clone()),
                })
            }
            _ => {
                let (rule, criterion) = (&bunch.of_w, bunch.criterion.as_ref());
                bunch
                    .data
                    .outer_gradient(self.name(), rule, criterion, pair)
            }
        }
    }
}

impl Differentiate for Forward {
    fn name(&self) -> &'static str {
        "forward"
    }

    fn compute(&self, bunch: &Bunch, pair: &Pair, lambda: &[Tensor<2>]) -> Result<Hypergradient> {
        let end = bunch.run(pair, lambda);
        let slope = self.outer_gradient(bunch, &end)?;
        let still: Vec<Tensor<2>> = lambda.iter().map(Tensor::zeros_like).collect();
        let mut gradients = Vec::with_capacity(lambda.len());
        for (index, weight) in lambda.iter().enumerate() {
            let side = bunch.side_of(index);
            let needed = Directions::new(weight, bunch.independent_rows().is_some());
            let mut told = Vec::with_capacity(needed.all.len());
            for direction in &needed.all {
                let mut directions = still.clone();
                directions[index] = direction.clone();
                let (_, moved) = self.tangent(bunch, pair, lambda, &directions)?;
                let change = |of: Side| {
                    let product = slope.seen_from(of).0.clone() * moved.seen_from(of).0.clone();
                    let told = if of == side { needed.told } else { [1, 1] };
                    bunch.over_processes(of, summed_to(product, told))
                };
                told.push(if bunch.span == Span::Both {
                    change(side) + change(side.other())
                } else {
                    change(side)
                });
            }
            gradients.push(needed.gather(told));
        }
        Ok(bunch.outcome(end, gradients))
    }
}

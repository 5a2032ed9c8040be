//! The general engine: any bunch, on Burn's tensors or on a fused data term.

use std::sync::Arc;

use burn::tensor::Tensor;
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

use super::{Engine, Errors, Plan};
use crate::bunch::{Bunch, Data, HostPair, Pair, Passage, Span};
use crate::error::Result;
use crate::factors::{Factors, Side};
use crate::hypergradient::Mode;
use crate::lambda::{Layout, Units};
use crate::numerics::to_host;
use crate::penalty::Spread;
use crate::problem::{Problem, ToMatrix};
use crate::term::{At, RowBunch};

/// A bunch, and the layout of the column of weights.
#[derive(Debug)]
pub(crate) struct Taped {
    pub(super) bunch: Bunch,
    layout: Layout,
    units: Units,
    mode: Mode,
    /// True if D is computed after a bunch.
    divergence: bool,
    /// The natural scales of the last bunch, if units are relative.
    scales: Option<Vec<Array2<f64>>>,
    /// The rule of W, if its rows go through a bunch one by one.
    by_rows: Option<Plan>,
}

impl Taped {
    pub(super) fn new(bunch: Bunch, layout: Layout, units: Units, mode: Mode) -> Self {
        Self {
            bunch,
            layout,
            units,
            mode,
            divergence: true,
            scales: None,
            by_rows: None,
        }
    }

    /// The same with rows of W that go through a bunch one by one, if the data term supports it.
    pub(super) fn by_rows(mut self, plan: Option<Plan>) -> Self {
        self.by_rows = plan.filter(|_| self.bunch.by_rows().is_some());
        self
    }

    /// The present natural scale of each weight.
    fn scales_at(&self, pair: &Pair) -> Option<Vec<Array2<f64>>> {
        let (_, tuned) = self.bunch.tuned();
        (self.units == Units::Relative && tuned > 0).then(|| {
            let shapes = self.layout.groups.iter().map(|group| group.shape);
            let shapes: Vec<[usize; 2]> = shapes.collect();
            let scales = self.bunch.natural_scales(pair, &shapes);
            scales.iter().map(host).collect()
        })
    }

    /// The weights of each tuned penalty in absolute units. (Methods with λ = 0 have no weights,
    /// although their column has entries for them.)
    fn weights(&self, problem: &Problem, lambda: &Array2<f64>) -> Vec<Tensor<2>> {
        let parts = self.parts(lambda);
        parts.iter().map(|part| problem.state(part)).collect()
    }

    /// The same on the host.
    fn parts(&self, lambda: &Array2<f64>) -> Vec<Array2<f64>> {
        let (_, tuned) = self.bunch.tuned();
        let mut parts = self.layout.split(lambda);
        parts.truncate(tuned);
        for (part, scale) in parts.iter_mut().zip(self.scales.iter().flatten()) {
            *part *= scale;
        }
        parts
    }

    /// The same weights as plain numbers, with their shapes.
    fn spreads(&self, lambda: &Array2<f64>) -> (Vec<Spread>, Vec<[usize; 2]>) {
        let parts = self.parts(lambda).into_iter();
        let spreads = parts.map(|part| {
            let shape = part.dim().into();
            (Spread::new(part.into_iter().collect(), shape), shape)
        });
        spreads.unzip()
    }

    /// D of each row, and their sum.
    fn divergences_at(&self, pair: &Pair) -> (Vec<f64>, f64) {
        let bunch = &self.bunch;
        let divergences = to_host(&bunch.data.divergences(&bunch.of_w, Side::W, pair));
        let divergence = bunch.processes.total(divergences.iter().sum());
        (divergences, divergence)
    }

    /// A bunch on plain numbers, without tensors in between.
    fn bunch_on_host(
        &mut self,
        problem: &Problem,
        factors: &mut Factors,
        lambda: &Array2<f64>,
        gradient: Option<&mut Array2<f64>>,
    ) -> Errors {
        if self.units == Units::Relative {
            self.scales = self.scales_at(&Pair::of(problem, factors));
        }
        let host = match &self.by_rows {
            Some(_) => self.bunch.by_rows(),
            None => self.bunch.on_host(),
        };
        let host = host.expect("it was asked for");
        let (weights, shapes) = self.spreads(lambda);
        let rank = factors.w.ncols();
        let covers_h = self.bunch.span.covers(Side::H);
        let h = if covers_h {
            let mut h = host.room(factors.h.len());
            transpose(factors.h.view(), &mut h);
            h
        } else {
            taken_by_columns(&mut factors.h, |length| host.room(length))
        };
        // W is moved, not copied. If the bunch does not update it, it is moved back below.
        let start = HostPair {
            w: Arc::new(numbers(std::mem::take(&mut factors.w))),
            h: Arc::new(h),
            rank,
        };
        let (end, outer_error) = match (gradient, &self.by_rows) {
            (gradient, Some(plan)) => {
                let lambda = lambda.as_standard_layout();
                let HostPair { w, h, rank } = start;
                let mut w = Arc::unwrap_or_clone(w);
                let bunch = RowBunch {
                    plan,
                    length: self.bunch.length,
                    lambda: lambda.as_slice().expect("in row order"),
                    with_gradient: gradient.is_some(),
                };
                let (outer_error, gradients) = host.through_rows(bunch, &mut w, &h);
                if let Some(slot) = gradient {
                    let column = Array2::from_shape_vec(lambda.raw_dim(), gradients);
                    *slot = column.expect("a derivative for each row");
                }
                let w = Arc::new(w);
                (HostPair { w, h, rank }, outer_error)
            }
            (None, None) => {
                let end = host.run(start, &weights);
                let outer_error = host.outer_error(&end);
                (end, outer_error)
            }
            (Some(slot), None) => {
                let Passage {
                    end,
                    outer_error,
                    gradients,
                } = host.adjoint(start, &weights, &shapes);
                let gradients = gradients.into_iter().zip(&shapes).map(|(values, shape)| {
                    Array2::from_shape_vec(*shape, values).expect("in the shape of its weight")
                });
                let mut gradients: Vec<Array2<f64>> = gradients.collect();
                // dE/du = c dE/dλ for λ = c u; c is constant during a bunch.
                for (part, scale) in gradients.iter_mut().zip(self.scales.iter().flatten()) {
                    *part *= scale;
                }
                *slot = self.layout.join(&gradients);
                (end, outer_error)
            }
        };
        let divergence = if !self.divergence {
            f64::NAN
        } else if self.bunch.criterion.is_training_divergence() {
            outer_error
        } else {
            host.divergence(&end)
        };
        let [n, _] = problem.shape();
        let w = Array2::from_shape_vec((n, rank), Arc::unwrap_or_clone(end.w));
        factors.w = w.expect("a factor fills its shape");
        problem.round(&mut factors.w);
        if covers_h {
            set_transposed(&mut factors.h, &end.h);
            problem.round(&mut factors.h);
            host.keep(Arc::try_unwrap(end.h).unwrap_or_default());
        } else {
            factors.h = by_columns(Arc::unwrap_or_clone(end.h), rank);
        }
        Errors {
            outer_error,
            divergence,
        }
    }

    /// The size of the terms of a bunch's hypergradient.
    pub(super) fn sensitivity(
        &mut self,
        problem: &Problem,
        factors: &Factors,
        lambda: &Array2<f64>,
    ) -> f64 {
        let pair = Pair::of(problem, factors);
        self.scales = self.scales_at(&pair);
        let size = self
            .bunch
            .sensitivity(&pair, &self.weights(problem, lambda));
        let scales = self.scales.iter().flatten().flatten();
        size * scales.copied().reduce(f64::max).unwrap_or(1.0)
    }
}

impl Engine for Taped {
    fn leave_divergence_out(&mut self) {
        self.divergence = self.bunch.criterion.is_training_divergence();
    }

    fn data(&self) -> Option<&Data> {
        Some(&self.bunch.data)
    }

    fn update_other(&mut self, problem: &Problem, factors: &mut Factors) {
        let Span::One(side) = self.bunch.span else {
            return;
        };
        let other = side.other();
        if let Some(host) = self.bunch.on_host_for(&[other]) {
            let rank = factors.w.ncols();
            let room = |length| host.room(length);
            match other {
                Side::W => {
                    let mut h = room(factors.h.len());
                    transpose(factors.h.view(), &mut h);
                    let w = numbers(std::mem::take(&mut factors.w));
                    let at = At {
                        factor: &w,
                        other: &h,
                        rank,
                    };
                    let updated = host.update_one(other, at);
                    let updated = Array2::from_shape_vec((w.len() / rank, rank), updated);
                    factors.w = updated.expect("a factor fills its shape");
                    problem.round(&mut factors.w);
                    host.keep(w);
                    host.keep(h);
                }
                Side::H => {
                    let h = taken_by_columns(&mut factors.h, room);
                    let w = factors.w.as_standard_layout();
                    let at = At {
                        factor: &h,
                        other: w.as_slice().expect("in row order"),
                        rank,
                    };
                    factors.h = by_columns(host.update_one(other, at), rank);
                    problem.round(&mut factors.h);
                    host.keep(h);
                }
            }
            return;
        }
        let pair = Pair::of(problem, factors);
        // Its penalties, if it has any, have fixed weights.
        let rule = match other {
            Side::W => &self.bunch.of_w,
            Side::H => &self.bunch.of_h,
        };
        let (factor, fixed) = pair.seen_from(other);
        let updated = self.bunch.data.update(rule, other, factor, fixed);
        match other {
            Side::W => factors.w = host(&updated),
            Side::H => factors.h = host(&updated.transpose()),
        }
    }

    fn bunch(
        &mut self,
        problem: &Problem,
        factors: &mut Factors,
        lambda: &Array2<f64>,
        gradient: Option<&mut Array2<f64>>,
    ) -> Result<Errors> {
        let by_hand = gradient.is_none() || self.mode == Mode::Adjoint;
        if self.by_rows.is_some() || by_hand && self.bunch.on_host().is_some() {
            return Ok(self.bunch_on_host(problem, factors, lambda, gradient));
        }
        let pair = Pair::of(problem, factors);
        self.scales = self.scales_at(&pair);
        let weights = self.weights(problem, lambda);
        let (pair, outer_error) = match gradient {
            Some(slot) => {
                let end = self.bunch.hypergradient(&pair, &weights, self.mode)?;
                let mut gradients: Vec<Array2<f64>> = end.gradients.iter().map(host).collect();
                // dE/du = c dE/dλ for λ = c u; c is constant during a bunch.
                for (part, scale) in gradients.iter_mut().zip(self.scales.iter().flatten()) {
                    *part *= scale;
                }
                *slot = self.layout.join(&gradients);
                (end.pair, end.outer_error)
            }
            None => {
                let end = self.bunch.run(&pair, &weights);
                let outer_error = self.bunch.outer_error(&end);
                (end, outer_error)
            }
        };
        let divergence = if !self.divergence {
            f64::NAN
        } else if self.bunch.criterion.is_training_divergence() {
            outer_error
        } else {
            self.divergences_at(&pair).1
        };
        // (A factor that the bunch does not update is not read back.)
        if self.bunch.span.covers(Side::W) {
            factors.w = host(&pair.w);
        }
        if self.bunch.span.covers(Side::H) {
            factors.h = host(&pair.h.transpose());
        }
        Ok(Errors {
            outer_error,
            divergence,
        })
    }

    fn errors(&mut self, problem: &Problem, factors: &Factors) -> (Errors, Vec<f64>) {
        let pair = Pair::of(problem, factors);
        self.scales = self.scales_at(&pair);
        let (divergences, divergence) = self.divergences_at(&pair);
        let outer_error = if self.bunch.criterion.is_training_divergence() {
            divergence
        } else {
            self.bunch.outer_error(&pair)
        };
        let errors = Errors {
            outer_error,
            divergence,
        };
        (errors, divergences)
    }

    fn penalty(&self, problem: &Problem, factors: &Factors, lambda: &Array2<f64>) -> f64 {
        if self.bunch.of_w.terms.is_empty() && self.bunch.of_h.terms.is_empty() {
            return 0.0;
        }
        if let (Some(plan), Some(w), true) = (
            &self.by_rows,
            factors.w.as_slice(),
            self.bunch.of_h.terms.is_empty(),
        ) {
            let lambda = lambda.as_standard_layout();
            let lambda = lambda.as_slice().expect("in row order");
            let own = plan.penalty::<f64>(w, factors.w.ncols(), lambda);
            return self.bunch.processes.total(own);
        }
        let Some(host) = self.bunch.on_host() else {
            let pair = Pair::of(problem, factors);
            return self.bunch.penalty(&pair, &self.weights(problem, lambda));
        };
        let ((weights, _), rank) = (self.spreads(lambda), factors.w.ncols());
        let mut sum = 0.0;
        if !self.bunch.of_w.terms.is_empty() {
            let w = factors.w.as_standard_layout();
            let w = w.as_slice().expect("in row order");
            sum += host.penalty(Side::W, w, rank, &weights);
        }
        if !self.bunch.of_h.terms.is_empty() {
            let mut h = host.room(factors.h.len());
            transpose(factors.h.view(), &mut h);
            sum += host.penalty(Side::H, &h, rank, &weights);
            host.keep(h);
        }
        sum
    }
}

/// The entries row by row, without a copy if they are in that order.
fn numbers(matrix: Array2<f64>) -> Vec<f64> {
    if matrix.is_standard_layout() {
        let (entries, first) = matrix.into_raw_vec_and_offset();
        if first.unwrap_or(0) == 0 {
            return entries;
        }
        unreachable!("a whole matrix begins with its first entry");
    }
    matrix.iter().copied().collect()
}

/// The columns of H, one after the other. An H that is stored in that order is not copied.
fn taken_by_columns(h: &mut Array2<f64>, room: impl Fn(usize) -> Vec<f64>) -> Vec<f64> {
    let turned = std::mem::take(h).reversed_axes();
    if turned.is_standard_layout() {
        return numbers(turned);
    }
    let mut columns = room(turned.len());
    transpose(turned.t(), &mut columns);
    columns
}

/// H from its columns, stored in that order.
fn by_columns(columns: Vec<f64>, rank: usize) -> Array2<f64> {
    let turned = Array2::from_shape_vec((columns.len() / rank, rank), columns);
    turned.expect("a factor fills its shape").reversed_axes()
}

/// Sets H from Hᵀ, row by row, in the memory that H has.
fn set_transposed(h: &mut Array2<f64>, transposed: &[f64]) {
    let (rank, columns) = h.dim();
    let transposed = ArrayView2::from_shape((columns, rank), transposed);
    let transposed = transposed.expect("a factor fills its shape");
    match h.as_slice_mut() {
        Some(h) => transpose(transposed, h),
        None => h.assign(&transposed.t()),
    }
}

/// Writes the transpose, laid out row by row.
fn transpose(matrix: ArrayView2<'_, f64>, turned: &mut [f64]) {
    let (rows, _) = matrix.dim();
    let count = (TASK / rows).max(STRIP);
    let tasks = turned.par_chunks_mut(count * rows).enumerate();
    tasks.for_each(|(task, turned)| {
        // It takes a few rows at a time, so that reading and writing stay in the cache.
        for first in (0..rows).step_by(STRIP) {
            let strip = first..rows.min(first + STRIP);
            for (column, turned) in turned.chunks_exact_mut(rows).enumerate() {
                for row in strip.clone() {
                    turned[row] = matrix[[row, task * count + column]];
                }
            }
        }
    });
}

/// Rows that are transposed together.
const STRIP: usize = 16;
/// Entries in one task.
const TASK: usize = 1 << 14;

fn host(tensor: &Tensor<2>) -> Array2<f64> {
    tensor.to_matrix().expect("a tensor fills its shape")
}

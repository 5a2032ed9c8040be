//! The fused engine for the solver.

use ndarray::{Array2, ArrayViewMut2};

use super::block::{RowOutcome, Wanted};
use super::fused::{Fused, Request};
use super::lanes::Real;
use super::plan::Plan;
use super::{Engine, Errors};
use crate::error::Result;
use crate::factors::{Factors, Side};
use crate::problem::Problem;

/// Plans for both factors, and memory for the computation.
#[derive(Debug)]
pub(crate) struct FusedEngine<T> {
    fused: Fused<T>,
    of_w: Plan,
    of_h: Plan,
    /// T.
    length: usize,
    /// Hᵀ, m×r.
    transposed: Array2<f64>,
}

impl<T: Real> FusedEngine<T> {
    /// An engine for a problem and `threads` threads.
    pub(crate) fn new(
        problem: &Problem,
        [of_w, of_h]: [Plan; 2],
        rank: usize,
        length: usize,
        threads: usize,
    ) -> Self {
        Self {
            fused: Fused::new(problem, rank, threads),
            of_w,
            of_h,
            length,
            transposed: Array2::zeros((problem.shape()[1], rank)),
        }
    }

    /// The bunch with the requested results.
    pub(super) fn bunch_of(
        &mut self,
        problem: &Problem,
        factors: &mut Factors,
        lambda: &Array2<f64>,
        wanted: Wanted,
    ) -> &[RowOutcome] {
        let Factors { w, h } = factors;
        self.update_w(problem, w, h, slice(lambda), self.length, wanted)
    }

    fn update_w(
        &mut self,
        problem: &Problem,
        w: &mut Array2<f64>,
        h: &Array2<f64>,
        lambda: &[f64],
        length: usize,
        wanted: Wanted,
    ) -> &[RowOutcome] {
        transpose(h, &mut self.transposed.view_mut());
        let request = Request {
            plan: &self.of_w,
            problem,
            side: Side::W,
            lambda,
            length,
            wanted,
        };
        self.fused
            .update(&request, slice_mut(w), slice(&self.transposed))
    }
}

impl<T: Real> Engine for FusedEngine<T> {
    fn update_other(&mut self, problem: &Problem, factors: &mut Factors) {
        transpose(&factors.h, &mut self.transposed.view_mut());
        let request = Request {
            plan: &self.of_h,
            problem,
            side: Side::H,
            lambda: &[],
            length: 1,
            wanted: Wanted::Factor,
        };
        let factor = slice_mut(&mut self.transposed);
        self.fused.update(&request, factor, slice(&factors.w));
        transpose(&self.transposed, &mut factors.h.view_mut());
    }

    fn bunch(
        &mut self,
        problem: &Problem,
        factors: &mut Factors,
        lambda: &Array2<f64>,
        gradient: Option<&mut Array2<f64>>,
    ) -> Result<Errors> {
        let wanted = match gradient {
            Some(_) => Wanted::Gradient,
            None => Wanted::Errors,
        };
        let rows = self.bunch_of(problem, factors, lambda, wanted);
        if let Some(gradient) = gradient {
            for (slot, row) in gradient.iter_mut().zip(rows) {
                *slot = row.gradient;
            }
        }
        Ok(total(rows))
    }

    fn errors(&mut self, problem: &Problem, factors: &Factors) -> (Errors, Vec<f64>) {
        // Errors without an update. W does not change.
        let mut w = factors.w.clone();
        let rows = self.update_w(problem, &mut w, &factors.h, &[], 0, Wanted::Errors);
        let divergences = rows.iter().map(|row| row.error).collect();
        (total(rows), divergences)
    }

    fn penalty(&self, _problem: &Problem, factors: &Factors, lambda: &Array2<f64>) -> f64 {
        let w = &factors.w;
        self.of_w.penalty::<T>(slice(w), w.ncols(), slice(lambda))
    }
}

fn total(rows: &[RowOutcome]) -> Errors {
    let error = rows.iter().map(|row| row.error).sum();
    Errors {
        outer_error: error,
        divergence: error,
    }
}

fn transpose(from: &Array2<f64>, to: &mut ArrayViewMut2<f64>) {
    to.assign(&from.t());
}

fn slice(matrix: &Array2<f64>) -> &[f64] {
    matrix.as_slice().expect("states are in row order")
}

fn slice_mut(matrix: &mut Array2<f64>) -> &mut [f64] {
    matrix.as_slice_mut().expect("states are in row order")
}

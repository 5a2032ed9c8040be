//! The data term of a sparse X.
//!
//! | entries that are not stored | divergence | time of an update |
//! |---|---|---|
//! | missing | any | O(stored · r) |
//! | zeros | KL, Frobenius | O(stored · r + (n + m) r²) |
//! | zeros | any other | O(n m r), a few rows at a time |
//!
//! Held-out entries and the second part of thinned counts are separate sparse matrices, and may
//! have another divergence. Numbers have 64 bits for every precision of the run, because most of
//! the time is spent on loading lines of the factors.

use rayon::prelude::*;

use super::dense::Asked;
use super::lines::Entries as ListedEntries;
use super::listed::Listed;
use super::streamed::Streamed;
use super::{At, Bars, DataTerm, Denominator, Moves, Needs, PartsOf, RowBunch, RowResults};
use crate::criterion::Entries;
use crate::divergence::Fused;
use crate::factors::Side;
use crate::problem::{Problem, Weights};
use crate::sparse::Matrix;

#[derive(Debug)]
pub(super) struct Sparse {
    shape: [usize; 2],
    training: Sum,
    /// E, if it is not D.
    outer: Option<Sum>,
}

/// A divergence over the entries of one matrix.
#[derive(Debug)]
enum Sum {
    Listed(Listed),
    Streamed(Streamed),
}

impl Sum {
    fn new(matrix: &Matrix, weights: Option<&Weights>, divergence: &Fused, floor: f64) -> Self {
        let entries = ListedEntries::new(matrix, weights);
        match Listed::new(entries.clone(), divergence.clone(), floor) {
            Some(listed) => Self::Listed(listed),
            None => Self::Streamed(Streamed::new(entries, divergence.clone(), floor)),
        }
    }

    fn errors(&self, side: Side, at: At<'_>) -> Vec<f64> {
        match self {
            Self::Listed(sum) => sum.errors(side, at),
            Self::Streamed(sum) => sum.errors(side, at),
        }
    }

    fn errors_and_slopes(&self, at: At<'_>) -> (Vec<f64>, Vec<f64>) {
        match self {
            Self::Listed(sum) => sum.errors_and_slopes(at),
            Self::Streamed(sum) => {
                let errors = sum.errors(Side::W, at);
                let needs = Needs {
                    factor: true,
                    other: false,
                };
                let bars = sum.errors_cotangent(at, &vec![1.0; errors.len()], needs);
                (errors, bars.factor.expect("it was asked for"))
            }
        }
    }

    fn errors_cotangent(&self, at: At<'_>, of: &[f64], needs: Needs) -> Bars {
        match self {
            Self::Listed(sum) => sum.errors_cotangent(at, of, needs),
            Self::Streamed(sum) => sum.errors_cotangent(at, of, needs),
        }
    }
}

impl Sparse {
    pub(super) fn new(problem: &Problem, asked: Asked) -> Self {
        let Asked {
            divergence,
            outer,
            over,
            floor,
        } = asked;
        let held_out = over == Entries::HeldOut;
        let outer = (held_out || outer.is_some()).then(|| {
            let divergence = outer.as_ref().unwrap_or(&divergence);
            let (matrix, weights) = if held_out {
                let matrix = problem.second().unwrap_or(problem.x());
                (matrix, problem.held_out_weights())
            } else {
                (problem.x(), problem.mask())
            };
            Sum::new(matrix, weights, divergence, floor)
        });
        Self {
            shape: problem.shape(),
            training: Sum::new(problem.x(), problem.mask(), &divergence, floor),
            outer,
        }
    }
}

impl DataTerm for Sparse {
    fn shape(&self, side: Side) -> [usize; 2] {
        let [n, m] = self.shape;
        match side {
            Side::W => [n, m],
            Side::H => [m, n],
        }
    }

    fn parts(&self, side: Side, at: At<'_>, room: PartsOf) -> PartsOf {
        match &self.training {
            Sum::Listed(sum) => sum.parts(side, at, room),
            Sum::Streamed(sum) => sum.parts(side, at, room),
        }
    }

    fn numerators(
        &self,
        side: Side,
        at: At<'_>,
        room: &dyn Fn() -> Vec<f64>,
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        match &self.training {
            Sum::Listed(sum) => sum.numerators(side, at, room),
            Sum::Streamed(_) => None,
        }
    }

    fn takes_rows(&self) -> bool {
        matches!(self.training, Sum::Listed(_))
    }

    fn rows_through(&self, bunch: RowBunch<'_>, w: &mut [f64], h: &[f64]) -> RowResults {
        let Sum::Listed(training) = &self.training else {
            unreachable!("these rows do not go one by one");
        };
        let Some(outer) = &self.outer else {
            return training.rows_through(bunch, w, h);
        };
        let mut tangents = vec![0.0; if bunch.with_gradient { w.len() } else { 0 }];
        training.tangents_through(bunch, w, h, &mut tangents);
        let rank = w.len() / self.shape[0];
        let at = At {
            factor: w,
            other: h,
            rank,
        };
        if !bunch.with_gradient {
            let errors = outer.errors(Side::W, at);
            return RowResults {
                errors,
                ..RowResults::default()
            };
        }
        let (errors, slopes) = outer.errors_and_slopes(at);
        let rows = tangents
            .par_chunks_exact(rank)
            .zip(slopes.par_chunks_exact(rank));
        let gradient = rows.map(|(dot, slope)| dot.iter().zip(slope).map(|(a, b)| a * b).sum());
        RowResults {
            errors,
            gradient: gradient.collect(),
        }
    }

    fn denominator(&self) -> Denominator {
        match &self.training {
            Sum::Listed(sum) => sum.denominator(),
            Sum::Streamed(_) => Denominator::Other,
        }
    }

    fn denominators(&self, side: Side, at: At<'_>) -> Vec<f64> {
        match &self.training {
            Sum::Listed(sum) => sum.denominators(side, at),
            Sum::Streamed(sum) => sum.parts(side, at, PartsOf::default()).positive,
        }
    }

    fn parts_tangent(&self, side: Side, at: At<'_>, moves: Moves<'_>) -> PartsOf {
        match &self.training {
            Sum::Listed(sum) => sum.parts_tangent(side, at, moves),
            Sum::Streamed(sum) => sum.parts_tangent(side, at, moves),
        }
    }

    fn parts_cotangent(&self, side: Side, at: At<'_>, of: &PartsOf, needs: Needs) -> Bars {
        match &self.training {
            Sum::Listed(sum) => sum.parts_cotangent(side, at, of, needs),
            Sum::Streamed(sum) => sum.parts_cotangent(side, at, of, needs),
        }
    }

    fn divergences(&self, side: Side, at: At<'_>) -> Vec<f64> {
        self.training.errors(side, at)
    }

    fn outer_errors(&self, at: At<'_>) -> Vec<f64> {
        let sum = self.outer.as_ref().unwrap_or(&self.training);
        sum.errors(Side::W, at)
    }

    fn outer_slopes(&self, at: At<'_>) -> (Vec<f64>, Vec<f64>) {
        let sum = self.outer.as_ref().unwrap_or(&self.training);
        sum.errors_and_slopes(at)
    }

    fn outer_cotangent(&self, at: At<'_>, of: &[f64], needs: Needs) -> Bars {
        let sum = self.outer.as_ref().unwrap_or(&self.training);
        sum.errors_cotangent(at, of, needs)
    }
}

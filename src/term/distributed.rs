//! The data term of one process's rows, with sums over all processes.
//!
//! Every process has some rows of X and W, and all of H. A matrix of the shape of W belongs to the
//! process. A matrix of the shape of H is a sum over the rows of X: each process computes the part
//! of its rows, and the parts are added up. An update of H adds up these numbers:
//!
//! | P is | numbers |
//! |---|---|
//! | the same in every row (KL without weights) | m r + r |
//! | H times the Gram matrix of W (Frobenius without weights) | m r + r² |
//! | anything else | 2 m r |
//!
//! The backward pass through any update adds up m r numbers for the cotangent of H. An update of W
//! adds up none.

use super::background::{add_product, gram};
use super::{
    At, Bars, DataTerm, Denominator, Moves, Needs, PartsOf, RowBunch, RowResults, SharedTerm,
};
use crate::factors::Side;
use crate::processes::Processes;

#[derive(Debug)]
pub(super) struct Distributed {
    /// The data term of this process's rows.
    own: SharedTerm,
    processes: Processes,
    denominator: Denominator,
}

impl Distributed {
    pub(super) fn new(own: SharedTerm, processes: Processes) -> Self {
        let of_own = own.denominator();
        // Some processes may have weights in their rows, and others may not.
        let kind = f64::from(of_own as u8);
        let mut ends = [kind, -kind];
        processes.largest(&mut ends);
        let denominator = match ends[0] == -ends[1] {
            true => of_own,
            false => Denominator::Other,
        };
        Self {
            own,
            processes,
            denominator,
        }
    }

    /// Adds up N, if there is one, and P, with as few numbers as possible.
    fn add_up(&self, at: At<'_>, mut negative: Option<&mut [f64]>, positive: &mut [f64]) {
        let rank = at.rank;
        let mut message = negative.as_deref().unwrap_or(&[]).to_vec();
        let length = message.len();
        match self.denominator {
            Denominator::Sums => message.extend_from_slice(&positive[..rank]),
            Denominator::Gram => message.extend(gram(at.other, at.other, rank)),
            Denominator::Other => message.extend_from_slice(positive),
        }
        self.processes.sum(&mut message);
        let rest = message.split_off(length);
        if let Some(negative) = negative.as_mut() {
            negative.copy_from_slice(&message);
        }
        match self.denominator {
            Denominator::Sums => {
                let rows = positive.chunks_exact_mut(rank);
                rows.for_each(|row| row.copy_from_slice(&rest));
            }
            Denominator::Gram => {
                positive.fill(0.0);
                add_product(at.factor, &rest, rank, 1.0, positive);
            }
            Denominator::Other => positive.copy_from_slice(&rest),
        }
    }

    /// Adds up the cotangent of H.
    fn add_up_bars(&self, mut bars: Bars, side: Side) -> Bars {
        let of_h = match side {
            Side::W => &mut bars.other,
            Side::H => &mut bars.factor,
        };
        if let Some(of_h) = of_h {
            self.processes.sum(of_h);
        }
        bars
    }
}

impl DataTerm for Distributed {
    fn shape(&self, side: Side) -> [usize; 2] {
        self.own.shape(side)
    }

    fn parts(&self, side: Side, at: At<'_>, room: PartsOf) -> PartsOf {
        let mut parts = self.own.parts(side, at, room);
        if side == Side::H {
            self.add_up(at, Some(&mut parts.negative), &mut parts.positive);
        }
        parts
    }

    fn takes_rows(&self) -> bool {
        self.own.takes_rows()
    }

    fn rows_through(&self, bunch: RowBunch<'_>, w: &mut [f64], h: &[f64]) -> RowResults {
        self.own.rows_through(bunch, w, h)
    }

    fn denominator(&self) -> Denominator {
        self.denominator
    }

    fn denominators(&self, side: Side, at: At<'_>) -> Vec<f64> {
        let mut positive = self.own.denominators(side, at);
        if side == Side::H {
            self.add_up(at, None, &mut positive);
        }
        positive
    }

    fn parts_tangent(&self, side: Side, at: At<'_>, moves: Moves<'_>) -> PartsOf {
        let mut dot = self.own.parts_tangent(side, at, moves);
        if side == Side::H {
            self.processes.sum(&mut dot.negative);
            self.processes.sum(&mut dot.positive);
        }
        dot
    }

    fn parts_cotangent(&self, side: Side, at: At<'_>, of: &PartsOf, needs: Needs) -> Bars {
        let bars = self.own.parts_cotangent(side, at, of, needs);
        self.add_up_bars(bars, side)
    }

    fn divergences(&self, side: Side, at: At<'_>) -> Vec<f64> {
        let mut errors = self.own.divergences(side, at);
        if side == Side::H {
            self.processes.sum(&mut errors);
        }
        errors
    }

    fn outer_errors(&self, at: At<'_>) -> Vec<f64> {
        self.own.outer_errors(at)
    }

    fn outer_slopes(&self, at: At<'_>) -> (Vec<f64>, Vec<f64>) {
        self.own.outer_slopes(at)
    }

    fn outer_cotangent(&self, at: At<'_>, of: &[f64], needs: Needs) -> Bars {
        let bars = self.own.outer_cotangent(at, of, needs);
        self.add_up_bars(bars, Side::W)
    }
}

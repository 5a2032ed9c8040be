//! A divergence over all entries of a sparse matrix, if zeros have no closed form. A few rows at a
//! time are made dense.
//!
//! It takes the time of a dense matrix, and the memory of a few rows.

use super::cotangent::Of;
use super::dense::add_to_rows;
use super::lines::{Entries, Lines};
use super::packed::{OneSide, rows_per_block};
use super::pass::What;
use super::tile::{Blocks, Weighting};
use super::walk::{Job, RowSource, Walk};
use super::{At, Bars, Moves, Needs, PartsOf};
use crate::divergence::Fused;
use crate::factors::Side;

/// Rows that are dense at the same time in each thread, rounded up to whole blocks.
const ROWS: usize = 16;

#[derive(Debug)]
pub(super) struct Streamed {
    entries: Entries,
    divergence: Fused,
    floor: f64,
}

/// The lines of one side, and the weight of entries that are not stored.
struct Stream<'a> {
    lines: &'a Lines,
    columns: usize,
    elsewhere: f64,
}

impl RowSource<f64> for Stream<'_> {
    fn shape(&self) -> [usize; 2] {
        [self.lines.count(), self.columns]
    }

    fn most_rows(&self) -> Option<usize> {
        Some(ROWS.next_multiple_of(rows_per_block::<f64>()))
    }

    fn with_rows(
        &self,
        first: usize,
        count: usize,
        weighting: Weighting,
        run: &mut dyn FnMut(Blocks<'_, f64>, usize),
    ) {
        let dense = |value: &dyn Fn(usize, usize) -> f64, elsewhere: f64| {
            let mut dense = ndarray::Array2::from_elem((count, self.columns), elsewhere);
            for row in 0..count {
                let (places, ..) = self.lines.of(first + row);
                for (slot, place) in places.iter().enumerate() {
                    dense[[row, *place as usize]] = value(row, slot);
                }
            }
            dense
        };
        let x = dense(&|row, slot| self.lines.of(first + row).1.at(slot), 0.0);
        let weights = (weighting == Weighting::Array).then(|| {
            let weight = |row: usize, slot: usize| {
                let (.., weights) = self.lines.of(first + row);
                weights.map_or(1.0, |weights| weights[slot])
            };
            dense(&weight, self.elsewhere)
        });
        let side = OneSide::<f64>::new(
            [count, self.columns],
            &|i, j| x[[i, j]],
            weights.as_ref().map(|weights| weights.view()),
            None,
        );
        run(side.blocks(weighting), 0);
    }
}

impl Streamed {
    pub(super) fn new(entries: Entries, divergence: Fused, floor: f64) -> Self {
        Self {
            entries,
            divergence,
            floor,
        }
    }

    fn is_plain(&self) -> bool {
        self.entries.elsewhere == 1.0 && !self.entries.is_weighted()
    }

    fn walk(&self) -> Walk<'_> {
        Walk {
            divergence: &self.divergence,
            weighting: if self.is_plain() {
                Weighting::None
            } else {
                Weighting::Array
            },
            floor: self.floor,
            gaps: None,
        }
    }

    fn rows(&self, side: Side) -> Stream<'_> {
        Stream {
            lines: self.entries.side(side),
            columns: self.entries.side(side.other()).count(),
            elsewhere: self.entries.elsewhere,
        }
    }

    /// Column sums for P, if ∇⁺ is 1 everywhere.
    fn sums(&self, rows: &[f64], rank: usize) -> Vec<f64> {
        if self.divergence.positive_is_one() && self.is_plain() {
            super::dense::sums(rows, rank)
        } else {
            Vec::new()
        }
    }

    pub(super) fn parts(&self, side: Side, at: At<'_>, room: PartsOf) -> PartsOf {
        let mut parts = room.resized(at.factor.len());
        let sums = self.sums(at.other, at.rank);
        let job = Job {
            sums: &sums,
            ..Job::new(at)
        };
        let PartsOf { negative, positive } = &mut parts;
        self.walk()
            .over(What::Parts, &self.rows(side), &job, negative, positive);
        parts
    }

    pub(super) fn parts_tangent(&self, side: Side, at: At<'_>, moves: Moves<'_>) -> PartsOf {
        let mut dot = PartsOf {
            negative: vec![0.0; at.factor.len()],
            positive: vec![0.0; at.factor.len()],
        };
        let other = moves.other.unwrap_or(&[]);
        let sums = self.sums(other, at.rank);
        let job = Job {
            moves: [moves.factor, other],
            sums: &sums,
            ..Job::new(at)
        };
        let PartsOf { negative, positive } = &mut dot;
        let rows = self.rows(side);
        self.walk()
            .over(What::PartsTangent, &rows, &job, negative, positive);
        dot
    }

    pub(super) fn parts_cotangent(
        &self,
        side: Side,
        at: At<'_>,
        of: &PartsOf,
        needs: Needs,
    ) -> Bars {
        let given = Of::Parts(&of.negative, &of.positive);
        let mut bars = self.walk().cotangent(&self.rows(side), at, given, needs);
        if let Some(other) = &mut bars.other {
            add_to_rows(other, &self.sums(&of.positive, at.rank));
        }
        bars
    }

    pub(super) fn errors(&self, side: Side, at: At<'_>) -> Vec<f64> {
        let rows = self.rows(side);
        let mut errors = vec![0.0; rows.shape()[0]];
        self.walk()
            .over(What::Errors, &rows, &Job::new(at), &mut errors, &mut []);
        errors
    }

    pub(super) fn errors_cotangent(&self, at: At<'_>, of: &[f64], needs: Needs) -> Bars {
        let rows = self.rows(Side::W);
        self.walk().cotangent(&rows, at, Of::Errors(of), needs)
    }
}

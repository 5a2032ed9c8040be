//! A divergence over all entries of a sparse matrix, if zeros have no closed form. A few rows at a
//! time are made dense.
//!
//! It takes the time of a dense matrix, and the memory of a few rows.

use super::dense::{Job, OneSide, Source, Walk, rows_per_block};
use super::listed::{Entries, Lines};
use super::pass::{Blocks, Weighting, What};
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

impl Source<f64> for Stream<'_> {
    fn shape(&self) -> [usize; 2] {
        [self.lines.count(), self.columns]
    }

    fn rows_per_task(&self, _rank: usize) -> usize {
        ROWS.next_multiple_of(rows_per_block::<f64>())
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
        let x = dense(&|row, slot| self.lines.of(first + row).1[slot], 0.0);
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

    fn walk(&self, what: What, side: Side, job: &Job<'_>, out: &mut [f64], second: &mut [f64]) {
        let lines = self.entries.side(side);
        let plain = self.entries.elsewhere == 1.0 && !lines.is_weighted();
        let walk = Walk {
            what,
            divergence: &self.divergence,
            weighting: if plain {
                Weighting::None
            } else {
                Weighting::Array
            },
            floor: self.floor,
        };
        let stream = Stream {
            lines,
            columns: self.entries.side(side.other()).count(),
            elsewhere: self.entries.elsewhere,
        };
        walk.over(&stream, job, out, second);
    }

    /// Column sums for P, if ∇⁺ is 1 everywhere.
    fn sums(&self, rows: &[f64], rank: usize) -> Vec<f64> {
        let plain = self.entries.elsewhere == 1.0 && !self.entries.sides[0].is_weighted();
        if self.divergence.positive_is_one() && plain {
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
            ..Job::new(at.factor, at.other, at.rank)
        };
        let PartsOf { negative, positive } = &mut parts;
        self.walk(What::Parts, side, &job, negative, positive);
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
            own_bars: [moves.factor, &[]],
            other_bars: [other, &[]],
            sums: &sums,
            ..Job::new(at.factor, at.other, at.rank)
        };
        let PartsOf { negative, positive } = &mut dot;
        self.walk(What::PartsTangent, side, &job, negative, positive);
        dot
    }

    pub(super) fn parts_cotangent(
        &self,
        side: Side,
        at: At<'_>,
        of: &PartsOf,
        needs: Needs,
    ) -> Bars {
        let bars = [of.negative.as_slice(), of.positive.as_slice()];
        let factor = || {
            let mut out = vec![0.0; at.factor.len()];
            let job = Job {
                own_bars: bars,
                ..Job::new(at.factor, at.other, at.rank)
            };
            self.walk(What::PartsOfFactor, side, &job, &mut out, &mut []);
            out
        };
        let other = || {
            let mut out = vec![0.0; at.other.len()];
            let sums = self.sums(&of.positive, at.rank);
            let job = Job {
                other_bars: bars,
                sums: &sums,
                ..Job::new(at.other, at.factor, at.rank)
            };
            self.walk(What::PartsOfOther, side.other(), &job, &mut out, &mut []);
            out
        };
        Bars {
            factor: needs.factor.then(factor),
            other: needs.other.then(other),
        }
    }

    pub(super) fn errors(&self, side: Side, at: At<'_>) -> Vec<f64> {
        let mut errors = vec![0.0; self.entries.side(side).count()];
        let job = Job::new(at.factor, at.other, at.rank);
        self.walk(What::Errors, side, &job, &mut errors, &mut []);
        errors
    }

    pub(super) fn errors_cotangent(&self, at: At<'_>, of: &[f64], needs: Needs) -> Bars {
        let factor = || {
            let mut out = vec![0.0; at.factor.len()];
            let job = Job {
                own_bars: [of, &[]],
                ..Job::new(at.factor, at.other, at.rank)
            };
            self.walk(What::ErrorsOfFactor, Side::W, &job, &mut out, &mut []);
            out
        };
        let other = || {
            let mut out = vec![0.0; at.other.len()];
            let job = Job {
                other_bars: [of, &[]],
                ..Job::new(at.other, at.factor, at.rank)
            };
            self.walk(What::ErrorsOfOther, Side::H, &job, &mut out, &mut []);
            out
        };
        Bars {
            factor: needs.factor.then(factor),
            other: needs.other.then(other),
        }
    }
}

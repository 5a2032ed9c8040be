//! The errors of all ranks, and the recommended rank.

use serde::{Deserialize, Serialize};

use crate::metrics::Spread;

/// The outer errors of one rank on one split, per unit of held-out weight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankError {
    /// r.
    pub rank: usize,
    /// The split, counted from 0.
    pub split: usize,
    /// Error of plain updates, stopped early.
    pub plain: f64,
    /// Error of the preset practical, if it was requested.
    pub tuned: Option<f64>,
}

impl RankError {
    /// Rank and split.
    pub fn pair(&self) -> (usize, usize) {
        (self.rank, self.split)
    }
}

/// The kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankBy {
    /// Error of plain updates.
    Plain,
    /// Error of the preset practical.
    Tuned,
}

impl RankBy {
    /// The error. NaN if it was not requested.
    fn of(self, error: &RankError) -> f64 {
        match self {
            Self::Plain => error.plain,
            Self::Tuned => error.tuned.unwrap_or(f64::NAN),
        }
    }
}

/// One rank over all splits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankSummary {
    /// r.
    pub rank: usize,
    /// Mean of the errors over the splits.
    pub mean: f64,
    /// Standard error of that mean; `None` for a single split.
    pub standard_error: Option<f64>,
    /// Mean of the paired differences to the rank with the lowest mean.
    pub excess: f64,
    /// Standard error of that difference; `None` for a single split.
    pub excess_error: Option<f64>,
}

/// The errors of all (rank, split) pairs, by rank and split.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RankOutcome {
    /// One for each pair.
    pub errors: Vec<RankError>,
}

impl RankOutcome {
    /// The outcome of these errors, which may be in any order.
    pub fn new(errors: impl IntoIterator<Item = RankError>) -> Self {
        let mut errors: Vec<RankError> = errors.into_iter().collect();
        errors.sort_by_key(RankError::pair);
        Self { errors }
    }

    /// The pairs of some ranks and of the first splits.
    #[must_use]
    pub fn within(&self, ranks: std::ops::RangeInclusive<usize>, splits: usize) -> Self {
        let inside = |error: &&RankError| ranks.contains(&error.rank) && error.split < splits;
        Self::new(self.errors.iter().filter(inside).cloned())
    }

    /// Returns true if the preset practical was requested.
    pub fn is_tuned(&self) -> bool {
        !self.errors.is_empty() && self.errors.iter().all(|error| error.tuned.is_some())
    }

    /// The ranks, in ascending order.
    pub fn ranks(&self) -> Vec<usize> {
        let mut ranks: Vec<usize> = self.errors.iter().map(|error| error.rank).collect();
        ranks.dedup();
        ranks
    }

    /// The errors of a rank, by split.
    fn of_rank(&self, rank: usize, measure: RankBy) -> Vec<f64> {
        let errors = self.errors.iter().filter(|error| error.rank == rank);
        errors.map(|error| measure.of(error)).collect()
    }

    /// Means and standard errors, rank by rank. Empty if an error is unknown. (Every rank must have
    /// the same splits, as in a finished search.)
    pub fn summaries(&self, measure: RankBy) -> Vec<RankSummary> {
        let columns: Vec<(usize, Vec<f64>)> = self
            .ranks()
            .into_iter()
            .map(|rank| (rank, self.of_rank(rank, measure)))
            .collect();
        let spreads: Option<Vec<Spread>> = columns
            .iter()
            .map(|(_, errors)| Spread::of(errors))
            .collect();
        let Some(spreads) = spreads else {
            return Vec::new();
        };
        let lowest =
            (0..spreads.len()).min_by(|a, b| spreads[*a].mean.total_cmp(&spreads[*b].mean));
        let Some(lowest) = lowest else {
            return Vec::new();
        };
        let known = |number: f64| Some(number).filter(|number| !number.is_nan());
        let summary = |((rank, errors), spread): (&(usize, Vec<f64>), &Spread)| {
            let pairs = errors.iter().zip(&columns[lowest].1);
            let differences: Vec<f64> = pairs.map(|(error, of_lowest)| error - of_lowest).collect();
            let excess = Spread::of(&differences)?;
            Some(RankSummary {
                rank: *rank,
                mean: spread.mean,
                standard_error: known(spread.standard_error()),
                excess: excess.mean,
                excess_error: known(excess.standard_error()),
            })
        };
        columns.iter().zip(&spreads).filter_map(summary).collect()
    }

    /// The smallest rank whose mean error exceeds the lowest by at most one standard error of the
    /// paired differences between the two; with a single split, the rank with the lowest error.
    /// `None` if an error is unknown.
    pub fn recommended(&self, measure: RankBy) -> Option<usize> {
        let summaries = self.summaries(measure);
        let close = |of: &&RankSummary| of.excess <= of.excess_error.unwrap_or(0.0);
        summaries.iter().find(close).map(|summary| summary.rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(rows: &[(usize, &[f64])]) -> RankOutcome {
        let errors = rows.iter().flat_map(|(rank, errors)| {
            let of_rank = errors.iter().enumerate();
            of_rank.map(|(split, plain)| RankError {
                rank: *rank,
                split,
                plain: *plain,
                tuned: None,
            })
        });
        RankOutcome::new(errors)
    }

    /// The standard error is that of the differences, so that effects that all ranks of a split
    /// share cancel.
    #[test]
    fn the_smallest_rank_within_a_standard_error_is_taken() {
        let far_but_steady = outcome(&[
            (3, &[1.0, 5.0, 9.0]),
            (1, &[1.2, 5.2, 9.2]),
            (2, &[1.1, 4.9, 9.06]),
        ]);
        let summaries = far_but_steady.summaries(RankBy::Plain);
        assert!((summaries[0].excess - 0.2).abs() < 1e-12);
        assert!(summaries[0].excess_error.unwrap() < 1e-9);
        assert!(summaries[0].standard_error.unwrap() > 2.0);
        // Differences of rank 2: 0.1, −0.1, 0.06; mean 0.02, standard error 0.061.
        assert!((summaries[1].excess_error.unwrap() - 0.0611).abs() < 1e-4);
        assert_eq!(far_but_steady.recommended(RankBy::Plain), Some(2));
        assert_eq!(far_but_steady.recommended(RankBy::Tuned), None);
        assert_eq!(far_but_steady.within(3..=4, 2).errors.len(), 2);
    }

    #[test]
    fn a_single_split_has_no_standard_error() {
        let single = outcome(&[(1, &[2.0]), (2, &[1.0]), (3, &[1.5])]);
        assert_eq!(single.summaries(RankBy::Plain)[0].standard_error, None);
        assert_eq!(single.recommended(RankBy::Plain), Some(2));
        assert_eq!(RankOutcome::default().recommended(RankBy::Plain), None);
    }
}

//! Tests of paired differences.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::metrics::Spread;

/// Statistics of the differences between paired numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct PairedDifference {
    /// Mean of first − second.
    pub mean: f64,
    /// Its standard error; NaN for fewer than two pairs.
    pub standard_error: f64,
    /// Median of first − second.
    pub median: f64,
    /// Sign of the rank statistic: 1 if positive differences have the larger sum of ranks, −1 if
    /// negative ones have, 0 for a tie. It may differ from the sign of the mean.
    pub direction: f64,
    /// p of the two-sided Wilcoxon signed-rank test.
    pub p: f64,
    /// Number of pairs.
    pub count: usize,
}

impl PairedDifference {
    /// The statistics of these differences. `None` if there are none or one is NaN.
    pub fn of(differences: &[f64]) -> Option<Self> {
        let spread = Spread::of(differences)?;
        let (direction, p) = signed_rank(differences);
        Some(Self {
            mean: spread.mean,
            standard_error: spread.standard_error(),
            median: spread.median,
            direction,
            p,
            count: spread.count,
        })
    }
}

/// The two-sided p of the Wilcoxon signed-rank test: the probability that random signs give a sum
/// of ranks at least as far from its mean as that of these differences.
///
/// Zeros are left out (Wilcoxon's own rule). Equal sizes share their mean rank. The distribution is
/// exact, also with ties. If all differences are zero, p is 1.
///
/// Before it stands the direction.
fn signed_rank(differences: &[f64]) -> (f64, f64) {
    let mut sizes: Vec<(f64, bool)> = differences
        .iter()
        .filter(|difference| **difference != 0.0)
        .map(|difference| (difference.abs(), *difference > 0.0))
        .collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Twice the rank is a whole number, even for shared ranks.
    let mut doubled = vec![0usize; sizes.len()];
    let mut first = 0;
    while first < sizes.len() {
        let ties = sizes[first..].iter().take_while(|s| s.0 == sizes[first].0);
        let last = first + ties.count() - 1;
        doubled[first..=last].fill(first + last + 2);
        first = last + 1;
    }
    let total: usize = doubled.iter().sum();
    let positive = sizes.iter().zip(&doubled).filter(|(size, _)| size.1);
    let positive: usize = positive.map(|(_, rank)| rank).sum();
    // Share of the sign patterns that lead to each sum.
    let mut shares = vec![0.0; total + 1];
    shares[0] = 1.0;
    let mut reached = 0;
    for &rank in &doubled {
        reached += rank;
        for sum in (0..=reached).rev() {
            let with = if sum >= rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = 0.5 * (shares[sum] + with);
        }
    }
    let tail = positive.min(total - positive);
    let below: f64 = shares[..=tail].iter().sum();
    let direction = match (2 * positive).cmp(&total) {
        Ordering::Less => -1.0,
        Ordering::Equal => 0.0,
        Ordering::Greater => 1.0,
    };
    (direction, (2.0 * below).min(1.0))
}

/// Holm's correction of the p of several tests. It controls the probability of any false positive.
pub(crate) fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![0.0; p.len()];
    let mut largest = 0.0f64;
    for (place, index) in order.into_iter().enumerate() {
        largest = largest.max(((p.len() - place) as f64 * p[index]).min(1.0));
        corrected[index] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_is_that_of_scipy() {
        // scipy.stats.wilcoxon(d, method="exact").pvalue, SciPy 1.17.1.
        let cases: [(&[f64], f64); 4] = [
            (&[1.0, 2.0, 3.0], 0.25),
            (
                &[0.3, -1.1, 2.4, 0.7, -0.2, 1.9, 3.3, -0.9, 1.4, 2.2],
                0.083984375,
            ),
            (
                &[
                    -0.5, 1.5, -2.5, 3.5, -4.5, 5.5, -6.5, 7.5, -8.5, 9.5, -10.5, 11.5,
                ],
                0.85009765625,
            ),
            (&[-1.0, -2.0, -3.0, -4.0, -5.0, 0.5], 0.0625),
        ];
        for (differences, p) in cases {
            let found = signed_rank(differences).1;
            assert!((found - p).abs() < 1e-12, "{differences:?}: {found}");
        }
        // Thirty of one sign: 2 / 2^30.
        let all: Vec<f64> = (1..=30).map(f64::from).collect();
        assert!((signed_rank(&all).1 * 2f64.powi(29) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn ties_and_zeros_agree_with_counting_every_pattern_of_signs() {
        let differences: [f64; 9] = [1.0, -1.0, 2.0, 2.0, 0.0, -3.0, 2.0, 5.0, 1.0];
        // Mean ranks of the sizes without the zero: 1 1 1 → 2, 2 2 2 → 5, 3 → 7, 5 → 8.
        let ranks = [2.0, 2.0, 5.0, 5.0, 7.0, 5.0, 8.0, 2.0];
        let positive = 2.0 + 5.0 + 5.0 + 5.0 + 8.0 + 2.0;
        let middle = ranks.iter().sum::<f64>() / 2.0;
        let far = |pattern: u32| {
            let chosen = ranks
                .iter()
                .enumerate()
                .filter(|(k, _)| pattern >> k & 1 == 1);
            let sum: f64 = chosen.map(|(_, rank)| rank).sum();
            (sum - middle).abs() >= f64::abs(positive - middle)
        };
        let count = (0..256).filter(|pattern| far(*pattern)).count();
        assert!((signed_rank(&differences).1 - count as f64 / 256.0).abs() < 1e-12);
        assert_eq!(signed_rank(&[0.0, 0.0]).1, 1.0);
        assert_eq!(signed_rank(&[]).1, 1.0);
    }

    #[test]
    fn the_direction_is_that_of_the_ranks_not_of_the_mean() {
        // Slightly worse in 27 of 30, much better in three.
        let mut differences: Vec<f64> = (0..27).map(|k| -0.1 - 0.001 * f64::from(k)).collect();
        differences.extend([5.0, 5.1, 5.2]);
        let found = PairedDifference::of(&differences).unwrap();
        assert!(found.mean > 0.4 && found.p < 0.003);
        assert!(found.direction < 0.0 && found.median < 0.0);
    }

    #[test]
    fn holm_is_that_of_statsmodels_by_hand() {
        // 0.01·4, 0.02·3, 0.03·2, 0.04·1, each at least the one before.
        let corrected = holm(&[0.04, 0.01, 0.03, 0.02]);
        for (found, expected) in corrected.iter().zip([0.06, 0.04, 0.06, 0.06]) {
            assert!((found - expected).abs() < 1e-15);
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}

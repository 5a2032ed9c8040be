//! Comparisons of AltBi with each rival, from the same starts.

use std::fmt;

use super::signed_rank::holm;
use super::{Contender, DatasetResults, Measure, Moment, PairedDifference, Results};
use crate::config::Method;

/// A corrected p below this is significant.
const SIGNIFICANT: f64 = 0.05;

/// AltBi minus a rival, over all starts.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    /// The dataset's name.
    pub dataset: String,
    /// The rival.
    pub rival: Contender,
    /// The moment.
    pub moment: Moment,
    /// The measure. Relative errors are compared by their logarithms (base 10), because they spread
    /// over decades.
    pub measure: Measure,
    /// The differences.
    pub difference: PairedDifference,
    /// p after Holm's correction for all comparisons of the report. Those at equal time, which are
    /// not reproducible, are corrected among themselves.
    pub corrected_p: f64,
}

/// The conclusion of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conclusion {
    /// AltBi is better.
    Better,
    /// AltBi is worse.
    Worse,
    /// The starts do not decide.
    Undecided,
}

impl fmt::Display for Conclusion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Undecided => "undecided",
        })
    }
}

impl Comparison {
    /// The measures that are compared.
    pub const MEASURES: [Measure; 3] = [Measure::SirW, Measure::SirH, Measure::RelativeError];

    /// Its conclusion at the level of 5 %. The ranks decide the direction, as they do p.
    pub fn conclusion(&self) -> Conclusion {
        let higher_is_better = self.measure != Measure::RelativeError;
        let higher = self.difference.direction > 0.0;
        match (self.corrected_p < SIGNIFICANT, higher) {
            (false, _) => Conclusion::Undecided,
            (true, higher) if higher == higher_is_better => Conclusion::Better,
            (true, _) => Conclusion::Worse,
        }
    }
}

/// Every comparison of an experiment, corrected together.
pub(crate) fn comparisons(results: &Results) -> Vec<Comparison> {
    let mut all: Vec<Comparison> = results.datasets.iter().flat_map(of_dataset).collect();
    for timed in [false, true] {
        let family = || |one: &&mut Comparison| (one.moment == Moment::Time) == timed;
        let p: Vec<f64> = all
            .iter_mut()
            .filter(family())
            .map(|one| one.difference.p)
            .collect();
        for (comparison, corrected) in all.iter_mut().filter(family()).zip(holm(&p)) {
            comparison.corrected_p = corrected;
        }
    }
    all
}

/// Returns true if this moment differs from the others for a rival. For methods with as many
/// updates of W per iteration as AltBi, equal work is the same as equal iterations.
fn is_new(moment: Moment, rival: &Contender) -> bool {
    let single = matches!(rival.method, Method::Mu | Method::PenalizedMu);
    rival.method != Method::AltBi && (moment != Moment::Work || single)
}

fn of_dataset(results: &DatasetResults) -> Vec<Comparison> {
    let mut all = Vec::new();
    for moment in Moment::ALL {
        for rival in Contender::compared() {
            for measure in Comparison::MEASURES {
                if !is_new(moment, &rival) {
                    continue;
                }
                let scale = |value: f64| match measure {
                    Measure::RelativeError => value.log10(),
                    _ => value,
                };
                let ours = results.values("altbi", moment, measure);
                let theirs = results.values(&rival.name, moment, measure);
                let pairs = ours.iter().zip(&theirs);
                let differences: Vec<f64> = pairs.map(|(a, b)| scale(*a) - scale(*b)).collect();
                if let Some(difference) = PairedDifference::of(&differences) {
                    all.push(Comparison {
                        dataset: results.dataset.name.clone(),
                        rival: rival.clone(),
                        moment,
                        measure,
                        difference,
                        corrected_p: difference.p,
                    });
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_follows_the_ranks_and_knows_which_way_is_better() {
        let compared = |measure, sign: f64, corrected_p| Comparison {
            dataset: "a".into(),
            rival: Contender::compared().remove(0),
            moment: Moment::Stopped,
            measure,
            // Worse in most starts, much better in a few: the mean has the other sign.
            difference: PairedDifference {
                mean: -sign,
                standard_error: 0.1,
                median: sign,
                direction: sign,
                p: 1e-6,
                count: 50,
            },
            corrected_p,
        };
        for (measure, sign, expected) in [
            (Measure::SirW, 1.0, Conclusion::Better),
            (Measure::SirH, -1.0, Conclusion::Worse),
            (Measure::RelativeError, 1.0, Conclusion::Worse),
            (Measure::RelativeError, -1.0, Conclusion::Better),
        ] {
            assert_eq!(compared(measure, sign, 0.01).conclusion(), expected);
            let undecided = compared(measure, sign, 0.05).conclusion();
            assert_eq!(undecided, Conclusion::Undecided);
        }
    }
}

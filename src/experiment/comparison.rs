//! AltBi against each of the others, from the same starts.

use std::fmt;

use super::{Contender, DatasetResults, Measure, Moment, Results};
use crate::metrics::{PairedDifference, holm};

/// Below this, a corrected p is called a difference.
pub const SIGNIFICANT: f64 = 0.05;

/// AltBi minus a rival, over all starts.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The dataset's name.
    pub dataset: String,
    /// Who AltBi is compared with.
    pub rival: Contender,
    /// When.
    pub moment: Moment,
    /// In what. Relative errors are compared by their logarithms (base 10), because
    /// they spread over decades.
    pub measure: Measure,
    /// The differences.
    pub difference: PairedDifference,
    /// p after Holm's correction for all comparisons of the report.
    pub corrected_p: f64,
}

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// AltBi is better.
    Better,
    /// AltBi is worse.
    Worse,
    /// These starts do not tell.
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

    /// What it says at the level [`SIGNIFICANT`].
    pub fn conclusion(&self) -> Conclusion {
        let higher_is_better = self.measure != Measure::RelativeError;
        match (self.corrected_p < SIGNIFICANT, self.difference.mean > 0.0) {
            (false, _) => Conclusion::Undecided,
            (true, higher) if higher == higher_is_better => Conclusion::Better,
            (true, _) => Conclusion::Worse,
        }
    }
}

/// Every comparison of an experiment, corrected together.
pub fn comparisons(results: &Results) -> Vec<Comparison> {
    let mut all: Vec<Comparison> = results.datasets.iter().flat_map(of_dataset).collect();
    let p: Vec<f64> = all.iter().map(|one| one.difference.p).collect();
    for (comparison, corrected) in all.iter_mut().zip(holm(&p)) {
        comparison.corrected_p = corrected;
    }
    all
}

fn of_dataset(results: &DatasetResults) -> Vec<Comparison> {
    let mut all = Vec::new();
    for moment in Moment::ALL {
        for rival in Contender::compared() {
            for measure in Comparison::MEASURES {
                if rival.name == "altbi" {
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

//! The outer error of a run: the data that the updates never see, and the divergence.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::{Criterion, HeldOut, Measured, Training};
use crate::divergence::{Divergence, Outer, SmoothedKl};
use crate::error::{Error, Result};
use crate::problem::Problem;

/// The default share of the data that the updates never see.
pub(super) const SHARE: f64 = 0.1;
/// From this share of zeros on, KL on held-out entries is smoothed. (With 21 % of zeros or more, the
/// error was 0.70 to 1.01 of that without it; with 5 and 7 %, it was 0.98 and 1.04.)
const MANY_ZEROS: f64 = 0.1;

/// The part of the data that the updates never see.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unseen {
    /// Nothing: E is over the fitted entries.
    Nothing,
    /// This share of the entries ([`Problem::speckled`]).
    Entries(f64),
    /// This share of the counts of every entry ([`Problem::thinned`]).
    Counts(f64),
    /// Counts if X [has counts](Problem::has_counts) and the divergence is KL, entries otherwise.
    ByData,
}

/// The words of an [`Unseen`].
const UNSEEN: &str = "train, held-out:<fraction>, thinned:<share>, auto";

impl fmt::Display for Unseen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => formatter.pad("train"),
            Self::Entries(fraction) => formatter.pad(&format!("held-out:{fraction}")),
            Self::Counts(share) => formatter.pad(&format!("thinned:{share}")),
            Self::ByData => formatter.pad("auto"),
        }
    }
}

impl FromStr for Unseen {
    type Err = Error;

    /// # Errors
    /// [`Error::UnknownName`] for any other word. (Shares are checked with the
    /// data.)
    fn from_str(text: &str) -> Result<Self> {
        let unseen = match text.split_once(':') {
            None if text == "train" => Some(Self::Nothing),
            None if text == "auto" => Some(Self::ByData),
            Some(("held-out", number)) => number.parse().ok().map(Self::Entries),
            Some(("thinned", number)) => number.parse().ok().map(Self::Counts),
            _ => None,
        };
        unseen.ok_or_else(|| Error::UnknownName {
            kind: "criterion",
            name: text.into(),
            known: UNSEEN,
        })
    }
}

/// The outer error E of a run.
///
/// ```
/// use altbi::criterion::{OuterError, Unseen};
/// use altbi::{Beta, Precision, Problem};
/// let counts = ndarray::Array2::from_shape_fn((20, 15), |(i, j)| ((i * j) % 5) as f64);
/// let problem = Problem::new(&counts, Precision::F64)?;
/// let outer = OuterError::default().for_data(&problem, &Beta::KL);
/// assert_eq!(outer.unseen, Unseen::Counts(0.1));
/// let split = outer.split(&problem, 0)?;
/// assert!(split.second().is_some());
/// # Ok::<(), altbi::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OuterError {
    /// The part of the data that the updates never see.
    pub unseen: Unseen,
    /// The divergence. `None` means the problem's. Under KL there are two exceptions:
    /// [`SmoothedKl::HALF`] for thinned counts, and, if the data decide, [`SmoothedKl`] with half
    /// the mean of X for held-out entries of data with many zeros.
    pub divergence: Option<Outer>,
}

impl Default for OuterError {
    /// The choice by the data.
    fn default() -> Self {
        Self::from(Unseen::ByData)
    }
}

impl From<Unseen> for OuterError {
    fn from(unseen: Unseen) -> Self {
        Self {
            unseen,
            divergence: None,
        }
    }
}

impl OuterError {
    /// The same with [`Unseen::ByData`] replaced by the choice for these data.
    #[must_use]
    pub fn for_data(self, problem: &Problem, divergence: &dyn Divergence) -> Self {
        let is_kl = divergence.is_of_counts();
        let (unseen, smoothed) = match self.unseen {
            Unseen::ByData if is_kl && problem.has_counts() => {
                (Unseen::Counts(SHARE), Some(SmoothedKl::HALF))
            }
            Unseen::ByData if is_kl && problem.share_of_zeros() >= MANY_ZEROS => {
                (Unseen::Entries(SHARE), half_the_mean(problem))
            }
            Unseen::ByData => (Unseen::Entries(SHARE), None),
            Unseen::Counts(share) if is_kl => (Unseen::Counts(share), Some(SmoothedKl::HALF)),
            decided => (decided, None),
        };
        Self {
            unseen,
            divergence: self.divergence.or(smoothed.map(Outer::SmoothedKl)),
        }
    }

    /// The decision of [`for_data`](Self::for_data) and its reason, in a sentence. `None` if the
    /// data do not decide.
    pub fn reason(self, problem: &Problem, divergence: &dyn Divergence) -> Option<String> {
        if self.unseen != Unseen::ByData {
            return None;
        }
        let Self {
            unseen,
            divergence: by,
        } = self.for_data(problem, divergence);
        let reason = match unseen {
            Unseen::Counts(_) => format!(
                "X has whole numbers, which are taken for counts (if they are not counts: \
                 --criterion held-out:{SHARE})"
            ),
            _ if !divergence.is_of_counts() => "counts are thinned under KL only".into(),
            _ => {
                let reason = problem.reason_against_counts().unwrap_or_default();
                format!("{reason}, which are not taken for counts")
            }
        };
        let smoothed = match (self.divergence, by) {
            (None, Some(by)) => {
                let zeros = match unseen {
                    Unseen::Entries(_) => format!(
                        ", in data with {:.0} % zeros,",
                        100.0 * problem.share_of_zeros()
                    ),
                    _ => String::new(),
                };
                format!(
                    "; measured by {by}, because under KL{zeros} a few entries where WH is almost \
                     zero would decide"
                )
            }
            _ => String::new(),
        };
        Some(format!("{unseen}, because {reason}{smoothed}"))
    }

    /// The problem without the data that the updates must not see.
    ///
    /// # Errors
    /// Those of [`Problem::speckled`] and [`Problem::thinned`].
    ///
    /// # Panics
    /// If [`for_data`](Self::for_data) was not called before.
    pub fn split(self, problem: &Problem, seed: u64) -> Result<Problem> {
        match self.unseen {
            Unseen::Nothing => Ok(problem.clone()),
            Unseen::Entries(fraction) => problem.speckled(fraction, seed),
            Unseen::Counts(share) => problem.thinned(share, seed),
            Unseen::ByData => panic!("for_data() comes before split()"),
        }
    }

    /// E.
    pub fn criterion(self) -> Arc<dyn Criterion> {
        match (self.unseen, self.divergence) {
            (Unseen::Nothing, None) => Arc::new(Training),
            (Unseen::Nothing, Some(by)) => Arc::new(Measured::new(Training, by.divergence())),
            (_, None) => Arc::new(HeldOut),
            (_, Some(by)) => Arc::new(Measured::new(HeldOut, by.divergence())),
        }
    }
}

/// Smoothed KL with half the mean of X, rounded to three digits. `None` if X is zero.
fn half_the_mean(problem: &Problem) -> Option<SmoothedKl> {
    let rounded: f64 = format!("{:.2e}", problem.mean() / 2.0).parse().ok()?;
    (rounded > 0.0).then_some(SmoothedKl(rounded))
}

impl fmt::Display for OuterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.divergence {
            None => write!(formatter, "{}", self.unseen),
            Some(divergence) => write!(formatter, "{} by {divergence}", self.unseen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Beta;
    use crate::numerics::Precision;
    use ndarray::array;

    #[test]
    fn criteria_have_names() {
        for (text, unseen) in [
            ("train", Unseen::Nothing),
            ("auto", Unseen::ByData),
            ("held-out:0.1", Unseen::Entries(0.1)),
            ("thinned:0.2", Unseen::Counts(0.2)),
        ] {
            assert_eq!(text.parse::<Unseen>().unwrap(), unseen);
            assert_eq!(unseen.to_string(), text);
        }
        for wrong in ["held-out", "held-out:", "thinned:x", "test", "train:0.1"] {
            assert!(wrong.parse::<Unseen>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn many_zeros_are_measured_by_smoothed_kl() {
        // Half of these entries are zero.
        let x = ndarray::Array2::from_shape_fn((10, 12), |(i, j)| match (i + j) % 2 {
            0 => 0.0,
            _ => 1.0 + 0.1 * ((i * j) % 11) as f64,
        });
        let mean = x.sum() / 120.0;
        let problem = Problem::new(&x, Precision::F64).unwrap();
        let found = OuterError::default().for_data(&problem, &Beta::KL);
        assert_eq!(found.unseen, Unseen::Entries(SHARE));
        let Some(Outer::SmoothedKl(SmoothedKl(c))) = found.divergence else {
            panic!("{found}")
        };
        assert!((c - mean / 2.0).abs() < 0.005 * c, "{c}, {mean}");
        let reason = OuterError::default().reason(&problem, &Beta::KL).unwrap();
        assert!(reason.contains("50 % zeros"), "{reason}");
        // The same data in other units: c has the unit of X.
        let scaled = Problem::new(&(&x * 1e-6), Precision::F64).unwrap();
        let of_scaled = OuterError::default().for_data(&scaled, &Beta::KL);
        let Some(Outer::SmoothedKl(SmoothedKl(of_scaled))) = of_scaled.divergence else {
            panic!("{of_scaled}")
        };
        assert!((of_scaled * 1e6 - c).abs() < 1e-12 * c, "{of_scaled}, {c}");
        // If these zeros are missing, X has none.
        let observed = x.mapv(|x| f64::from(x > 0.0));
        let masked = Problem::masked(&x, &observed, Precision::F64).unwrap();
        let found = OuterError::default().for_data(&masked, &Beta::KL);
        assert_eq!(found, OuterError::from(Unseen::Entries(SHARE)));
        // A choice by the user stays, and other divergences do not need it.
        let asked = OuterError::from(Unseen::Entries(0.2));
        assert_eq!(asked.for_data(&problem, &Beta::KL), asked);
        let found = OuterError::default().for_data(&problem, &Beta::FROBENIUS);
        assert_eq!(found.divergence, None);
    }

    #[test]
    fn the_data_decide() {
        let problem = |x| Problem::new(&x, Precision::F64).unwrap();
        let counts = problem(array![[0.0, 2.0], [3.0, 1.0]]);
        let other = problem(array![[0.5, 2.0], [3.0, 1.0]]);
        let decided = |problem, beta| OuterError::default().for_data(problem, &beta);
        let of_counts = decided(&counts, Beta::KL);
        assert_eq!(of_counts.unseen, Unseen::Counts(SHARE));
        assert_eq!(of_counts.criterion().name(), "held-out by smoothed-kl:0.5");
        for (problem, beta) in [(&counts, Beta::FROBENIUS), (&other, Beta::KL)] {
            let found = decided(problem, beta);
            assert_eq!(found, OuterError::from(Unseen::Entries(SHARE)));
            let reason = OuterError::default().reason(problem, &beta).unwrap();
            let said = match beta == Beta::KL {
                true => "X has fractions",
                false => "under KL only",
            };
            assert!(reason.starts_with("held-out:0.1, because") && reason.contains(said));
        }
        let grades = problem(ndarray::Array2::from_shape_fn((40, 12), |(i, j)| {
            (2 + (i * 7 + j * 3) % 4) as f64
        }));
        let reason = OuterError::default().reason(&grades, &Beta::KL).unwrap();
        assert!(reason.contains("a scale with an end"), "{reason}");
        // An explicit choice stays.
        let asked = OuterError {
            unseen: Unseen::Counts(0.3),
            divergence: Some(Outer::Beta(Beta::KL)),
        };
        assert_eq!(asked.for_data(&counts, &Beta::KL), asked);
        assert_eq!(asked.reason(&counts, &Beta::KL), None);
    }
}

//! The report of the checker.

use std::fmt;

use serde::Serialize;

use crate::hypergradient::Mode;

/// The verdict on a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within the tolerance.
    Pass,
    /// Outside it.
    Mismatch,
    /// Not compared: the mode refused, or the difference is within rounding.
    Unchecked,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Pass => "pass",
            Self::Mismatch => "MISMATCH",
            Self::Unchecked => "unchecked",
        })
    }
}

/// One mode against reverse mode.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ModeComparison {
    /// The mode.
    pub mode: Mode,
    /// Relative difference. `None` if unchecked.
    pub difference: Option<f64>,
    /// The difference allowed.
    pub tolerance: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
    /// The reason, if it is unchecked.
    pub reason: Option<String>,
}

impl ModeComparison {
    pub(super) fn measured(mode: Mode, difference: f64, tolerance: f64) -> Self {
        Self {
            mode,
            difference: Some(difference),
            tolerance: Some(tolerance),
            verdict: verdict(difference, tolerance),
            reason: None,
        }
    }

    pub(super) fn unchecked(mode: Mode, reason: String) -> Self {
        Self {
            mode,
            difference: None,
            tolerance: None,
            verdict: Verdict::Unchecked,
            reason: Some(reason),
        }
    }
}

fn verdict(difference: f64, tolerance: f64) -> Verdict {
    if difference <= tolerance {
        Verdict::Pass
    } else {
        Verdict::Mismatch
    }
}

/// One result of the fused data term against the same on tensors.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FusedComparison {
    /// The quantity that is compared.
    pub quantity: &'static str,
    /// Relative difference.
    pub difference: f64,
    /// The difference allowed.
    pub tolerance: f64,
    /// The verdict.
    pub verdict: Verdict,
}

impl FusedComparison {
    pub(super) fn new(quantity: &'static str, difference: f64, tolerance: f64) -> Self {
        Self {
            quantity,
            difference,
            tolerance,
            verdict: verdict(difference, tolerance),
        }
    }

    /// A mismatch within rounding proves nothing.
    pub(super) fn within_rounding(mut self, within: bool) -> Self {
        if within && self.verdict == Verdict::Mismatch {
            self.verdict = Verdict::Unchecked;
        }
        self
    }
}

/// A known mistake, which must be found.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Control {
    /// The mistake.
    pub mistake: &'static str,
    /// Its relative difference. `None` if it could not be tried.
    pub difference: Option<f64>,
    /// The verdict, which should be `Mismatch`.
    pub verdict: Verdict,
}

impl Control {
    pub(super) fn new(mistake: &'static str, difference: Option<f64>, tolerance: f64) -> Self {
        let verdict = difference.map_or(Verdict::Unchecked, |d| verdict(d, tolerance));
        Self {
            mistake,
            difference,
            verdict,
        }
    }
}

/// All comparisons of one bunch.
#[derive(Debug, Clone, Serialize)]
pub struct CheckReport {
    /// Reverse mode's `dE/dλ`.
    pub hypergradient: Vec<f64>,
    /// The other modes against it.
    pub(crate) comparisons: Vec<ModeComparison>,
    /// The negative controls.
    pub(crate) controls: Vec<Control>,
    /// The comparisons of the fused data term, if there is one.
    pub(crate) fused: Vec<FusedComparison>,
}

impl CheckReport {
    /// Returns true if something was compared, nothing differs, and every known mistake was found.
    pub fn is_consistent(&self) -> bool {
        let any = |verdict| self.comparisons.iter().any(|c| c.verdict == verdict);
        any(Verdict::Pass) && !self.is_inconsistent()
    }

    /// Returns true if something differs, or a known mistake was not found. A report is neither
    /// consistent nor inconsistent if nothing could be checked.
    pub fn is_inconsistent(&self) -> bool {
        let modes = self.comparisons.iter().map(|c| c.verdict);
        let mut all = modes.chain(self.fused.iter().map(|c| c.verdict));
        all.any(|verdict| verdict == Verdict::Mismatch) || !self.controls_hold()
    }

    /// Returns true if every known mistake that has an effect was found.
    pub(crate) fn controls_hold(&self) -> bool {
        self.controls.iter().all(|c| c.verdict != Verdict::Pass)
    }

    /// Each mode that was asked for, and what came of it.
    pub fn modes(&self) -> impl Iterator<Item = (Mode, Verdict)> + '_ {
        self.comparisons.iter().map(|c| (c.mode, c.verdict))
    }

    /// Each planted mistake, and what came of it: [`Verdict::Mismatch`] where it was found,
    /// as it must be.
    pub fn controls(&self) -> impl Iterator<Item = (&'static str, Verdict)> + '_ {
        self.controls.iter().map(|c| (c.mistake, c.verdict))
    }

    /// The verdicts on the fused data term against tensors: updates, outer error, hypergradient.
    /// Empty if there is no fused data term, or only the modes were compared.
    pub fn fused(&self) -> impl Iterator<Item = (&'static str, Verdict)> + '_ {
        self.fused.iter().map(|c| (c.quantity, c.verdict))
    }

    /// The relative difference of one mode.
    pub fn difference(&self, mode: Mode) -> Option<f64> {
        self.comparisons
            .iter()
            .find(|comparison| comparison.mode == mode)
            .and_then(|comparison| comparison.difference)
    }

    /// # Panics
    /// With the whole report, if it is not consistent. It is for tests of plug-ins.
    pub fn assert_consistent(&self) {
        assert!(self.is_consistent(), "hypergradients disagree:\n{self}");
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "against reverse mode   difference  tolerance  verdict"
        )?;
        for c in &self.comparisons {
            let number = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.1e}"));
            writeln!(
                formatter,
                "{:<22} {:>10}  {:>9}  {}{}",
                c.mode,
                number(c.difference),
                number(c.tolerance),
                c.verdict,
                c.reason
                    .as_ref()
                    .map_or(String::new(), |reason| format!(" ({reason})")),
            )?;
        }
        for c in &self.fused {
            let name = format!("fused {}", c.quantity);
            let (difference, tolerance) = (c.difference, c.tolerance);
            writeln!(
                formatter,
                "{name:<22} {difference:>10.1e}  {tolerance:>9.1e}  {}",
                c.verdict
            )?;
        }
        for control in &self.controls {
            let found = match control.verdict {
                Verdict::Mismatch => "found, as it must be",
                Verdict::Pass => "NOT FOUND: the checker is unreliable",
                Verdict::Unchecked => "could not be tried",
            };
            writeln!(formatter, "control: {} ({})", control.mistake, found)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(difference: f64, control: Option<f64>) -> CheckReport {
        CheckReport {
            hypergradient: vec![1.0],
            comparisons: vec![ModeComparison::measured(Mode::Forward, difference, 1e-10)],
            controls: vec![Control::new("a mistake", control, 1e-10)],
            fused: Vec::new(),
        }
    }

    #[test]
    fn consistency_needs_agreement_and_open_eyes() {
        assert!(report(1e-12, Some(2.0)).is_consistent());
        assert!(!report(1e-9, Some(2.0)).is_consistent());
        assert!(!report(1e-12, Some(0.0)).is_consistent());
        assert!(report(1e-12, None).is_consistent());
        assert!(!report(f64::INFINITY, Some(2.0)).is_consistent());
        let mut nothing = report(0.0, Some(2.0));
        nothing.comparisons = vec![ModeComparison::unchecked(Mode::Forward, "why".into())];
        assert!(!nothing.is_consistent());
        let mut fused = report(1e-12, Some(2.0));
        fused.fused = vec![FusedComparison::new("updates", 1e-3, 1e-10)];
        assert!(!fused.is_consistent());
    }
}

//! The settings of each stage.

use super::{LONGEST, Practical, STRIDE, Stage};
use crate::config::{AltBiConfig, BunchOver, Exponent, Method, Normalization, Selection};
use crate::divergence::Divergence;
use crate::factors::Side;
use crate::hypergradient::Mode;
use crate::lambda::{LambdaStart, LambdaStep, Scope, Units};
use crate::penalty::PenaltyTerm;
use crate::split::MajoriserPowers;

/// The scope of λ.
pub(crate) const SCOPE: Scope = Scope::Hierarchical(1.0);

/// The settings of the tuned run for a rank, a divergence and its penalties.
pub fn settings(
    rank: usize,
    divergence: &dyn Divergence,
    terms: &[(Side, PenaltyTerm)],
) -> AltBiConfig {
    // With γ = 1 updates overshoot if β < 1 (errors were 2 to 24 times as large). They also
    // overshoot if a penalty that does not couple rows grows faster than the divergence, as ½w²
    // does under KL: w then oscillates. (With smoothness the objective fell in every test.)
    let powers = divergence.majoriser_powers();
    let jumps = |of_fit: MajoriserPowers| {
        terms.iter().any(|(_, term)| {
            let of_penalty = term.penalty.majoriser_powers();
            term.penalty.coupling().is_none()
                && of_penalty.is_some_and(|of_penalty| of_penalty.growing > of_fit.growing)
        })
    };
    let exponent = match powers {
        Some(of_fit) if jumps(of_fit) => Exponent::Monotone,
        Some(of_fit) if of_fit.exponent() < 1.0 => Exponent::Fit,
        _ => Exponent::One,
    };
    AltBiConfig::new(rank)
        .with_bunch_over(BunchOver::Both)
        .with_bunch(10)
        .with_warm_up(20)
        .with_exponent(exponent)
        .with_scope(SCOPE)
        .with_units(Units::Relative)
        .with_lambda_step(LambdaStep::Adam(0.3))
        .with_lambda_min((-9.0f64).exp())
        .with_lambda_max(4.0f64.exp())
        .with_normalize(Normalization::HRms)
        .with_hypergradient(Mode::Adjoint)
        .with_max_iterations(70)
        .with_tolerance(0.0)
        .with_select(Selection::Best)
}

impl Practical {
    /// Settings of solves without tuning; the best iterate is kept.
    fn updates(&self, method: Method) -> AltBiConfig {
        let mut config = self.config.clone();
        config.lambda = LambdaStart::Auto;
        config
            .with_method(method)
            .with_bunch_over(BunchOver::Both)
            .with_bunch(STRIDE)
            .with_max_iterations(LONGEST / STRIDE)
            .with_tolerance(0.0)
            .with_select(Selection::Best)
    }

    pub(crate) fn plain(&self) -> AltBiConfig {
        self.updates(Method::MuT)
            .with_warm_up(0)
            .with_scope(Scope::Row)
            .with_units(Units::Absolute)
            .with_normalize(Normalization::None)
    }

    pub(super) fn again(&self) -> AltBiConfig {
        self.updates(Method::Frozen).with_warm_up(0)
    }

    /// Settings of the refit of a stage. It minimises the training error, and the start counts as
    /// an iterate, so that the divergence cannot rise. Its bunches are as long as those of the
    /// stage. (Factors are normalised before each bunch. Within a bunch they may change their scale
    /// to lower the penalty, so that λ has less effect in a long bunch.)
    pub(super) fn all_entries(&self, winner: Stage) -> AltBiConfig {
        let config = self.updates(Method::Frozen);
        let (config, longest) = match winner {
            Stage::Tuned => (
                config.with_bunch_over(self.config.bunch_over),
                self.config.bunch,
            ),
            Stage::Plain | Stage::SolvedAgain | Stage::Refit => (config, STRIDE),
        };
        let length = self.refit_bunch(longest);
        config
            .with_bunch(length)
            .with_warm_up(0)
            .with_max_iterations((self.refit / length).max(1))
    }

    /// The longest bunch, up to this one, of which whole ones make the refit.
    pub(super) fn refit_bunch(&self, longest: usize) -> usize {
        let lengths = (1..=longest.min(self.refit.max(1))).rev();
        let mut whole = lengths.filter(|length| self.refit.is_multiple_of(*length));
        whole.next().unwrap_or(1)
    }
}

//! `--preset`: named sets of settings.
//!
//! A preset lies between the library's defaults and the typed flags. Each of its settings can be
//! overridden, except for those that define it.

use crate::criterion::Unseen;
use crate::{AltBiConfig, Beta, Error, Exponent, Method, Result, Scope, Selection};
use clap::ValueEnum;

use super::fit::FitArguments;
use super::penalties::Penalize;

/// `--preset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// The defaults.
    Paper,
    /// λ tuned on held-out data, compared with plain updates stopped early.
    Practical,
    /// Itakura-Saito, one λ per row of H.
    Shinbo,
}

impl Preset {
    /// Sets criterion, divergence and penalised factor of the preset, where they were not typed.
    pub fn overlay(self, arguments: &mut FitArguments, typed: &dyn Fn(&str) -> bool) {
        if self == Self::Practical && !typed("criterion") {
            arguments.criterion.criterion = Unseen::ByData;
        }
        if self == Self::Shinbo && !typed("divergence") {
            arguments.divergence = Beta::ITAKURA_SAITO;
        }
        if self == Self::Shinbo && !typed("penalize") {
            arguments.penalties.penalize = Penalize::H;
        }
    }

    /// The settings of the solver, of any rank.
    pub fn config(self, arguments: &FitArguments) -> AltBiConfig {
        let of_criterion = match arguments.criterion.criterion {
            Unseen::Nothing => Selection::Last,
            _ => Selection::Best,
        };
        let paper = AltBiConfig::new(1)
            .with_bunch_over(arguments.penalties.penalize.over())
            .with_select(of_criterion);
        match self {
            Self::Paper => paper,
            Self::Practical => {
                // (Penalties that contradict each other are refused later.)
                let terms = arguments.penalties.terms().unwrap_or_default();
                crate::practical::settings(1, &arguments.divergence, &terms)
            }
            Self::Shinbo => paper
                .with_scope(Scope::Component)
                .with_exponent(Exponent::Monotone),
        }
    }

    /// Refuses settings that contradict the preset.
    pub fn check(self, arguments: &FitArguments) -> Result<()> {
        let conflict = |first, second, reason| {
            Err(Error::Conflict {
                first,
                second,
                reason,
            })
        };
        let solver = arguments.settings_of_solver();
        match self {
            Self::Paper => Ok(()),
            Self::Practical if arguments.criterion.criterion == Unseen::Nothing => conflict(
                "--preset practical",
                "--criterion train",
                "it tunes λ on data that the updates do not see; on the training error the best penalty is none",
            ),
            Self::Practical if solver.method != Method::AltBi => conflict(
                "--preset practical",
                "--method",
                "it runs plain updates itself, beside the run that tunes λ",
            ),
            Self::Practical if solver.select == Selection::Last => conflict(
                "--preset practical",
                "--select last",
                "its candidates are the iterates with the lowest held-out error",
            ),
            Self::Shinbo if arguments.divergence != Beta::ITAKURA_SAITO => conflict(
                "--preset shinbo",
                "another divergence than is",
                "it is defined by the Itakura-Saito divergence",
            ),
            Self::Shinbo if arguments.penalties.penalize != Penalize::H => conflict(
                "--preset shinbo",
                "--penalize w or both",
                "it is defined by weights on the rows of H",
            ),
            Self::Practical | Self::Shinbo => Ok(()),
        }
    }
}

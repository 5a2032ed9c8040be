//! `--preset`: named sets of settings.
//!
//! A preset changes the defaults of flags. Each of its settings can be overridden, except for those
//! that define it.

use crate::criterion::Unseen;
use crate::{AltBiConfig, Beta, Error, Exponent, Method, Result, Scope, Selection};
use clap::ValueEnum;

use super::fit::FitArguments;
use super::penalties::Penalize;

/// The settings of a run that differ from the library's defaults.
fn differences(config: &AltBiConfig) -> Vec<(&'static str, String)> {
    let settings = |config: &AltBiConfig| {
        [
            ("method", config.method.to_string()),
            ("bunch", config.bunch.to_string()),
            ("bunch-over", config.bunch_over.to_string()),
            ("warm-up", config.warm_up.to_string()),
            ("exponent", config.exponent.to_string()),
            ("lambda-step", config.lambda_step.to_string()),
            ("lambda-min", config.lambda_min.to_string()),
            ("lambda-max", config.lambda_max.to_string()),
            ("lambda-scope", config.scope.to_string()),
            ("lambda-units", config.units.to_string()),
            ("hypergradient", config.hypergradient.to_string()),
            ("normalize", config.normalize.to_string()),
            ("max-iter", config.max_iterations.to_string()),
            ("tol", config.tolerance.to_string()),
            ("select", config.select.to_string()),
            ("init", config.initial.to_string()),
        ]
    };
    let pairs = settings(config)
        .into_iter()
        .zip(settings(&AltBiConfig::new(1)));
    let pairs = pairs.filter(|(own, default)| own != default);
    pairs.map(|(own, _)| own).collect()
}

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
    /// The settings that differ from the defaults, under the names of their flags.
    pub fn overlay(self, arguments: &FitArguments) -> Vec<(&'static str, String)> {
        match self {
            Self::Paper => Vec::new(),
            Self::Practical => {
                // (Penalties that contradict each other are refused later.)
                let terms = arguments.tuning.penalties.terms().unwrap_or_default();
                let config = crate::practical::settings(1, &arguments.divergence, &terms);
                let mut overlay = differences(&config);
                overlay.push(("criterion", Unseen::ByData.to_string()));
                overlay
            }
            Self::Shinbo => {
                let config = AltBiConfig::new(1)
                    .with_scope(Scope::Component)
                    .with_exponent(Exponent::Monotone);
                let mut overlay = differences(&config);
                overlay.push(("divergence", Beta::ITAKURA_SAITO.to_string()));
                overlay.push(("penalize", "h".into()));
                overlay
            }
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
        match self {
            Self::Paper => Ok(()),
            Self::Practical if arguments.criterion.criterion == Unseen::Nothing => conflict(
                "--preset practical",
                "--criterion train",
                "it tunes λ on data that the updates do not see; on the training error the best penalty is none",
            ),
            Self::Practical if arguments.method != Method::AltBi => conflict(
                "--preset practical",
                "--method",
                "it runs plain updates itself, beside the run that tunes λ",
            ),
            Self::Practical if arguments.selection() == Selection::Last => conflict(
                "--preset practical",
                "--select last",
                "its candidates are the iterates with the lowest held-out error",
            ),
            Self::Shinbo if arguments.divergence != Beta::ITAKURA_SAITO => conflict(
                "--preset shinbo",
                "another divergence than is",
                "it is defined by the Itakura-Saito divergence",
            ),
            Self::Shinbo if arguments.tuning.penalties.penalize != Penalize::H => conflict(
                "--preset shinbo",
                "--penalize w or both",
                "it is defined by weights on the rows of H",
            ),
            Self::Practical | Self::Shinbo => Ok(()),
        }
    }
}

//! `--preset`: named sets of settings.
//!
//! A preset is a list of flags that lies under the flags that are typed, so that each of
//! its settings can be changed; but for those that it is defined by.

use altbi::{Beta, Error, Exponent, Method, Result, Selection};
use clap::ValueEnum;

use super::arguments::{CriterionArgument, lambda_step_text};
use super::fit::FitArguments;
use super::penalties::Penalize;

/// `--preset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// The defaults.
    Paper,
    /// λ that holds on held-out entries.
    Practical,
    /// Itakura-Saito, a weight for each row of H.
    Shinbo,
}

impl Preset {
    /// Its flags.
    pub fn flags(self, arguments: &FitArguments) -> Vec<String> {
        match self {
            Self::Paper => Vec::new(),
            Self::Practical => {
                // (Penalties that contradict each other are refused later.)
                let terms = arguments.tuning.penalties.terms().unwrap_or_default();
                let config = altbi::practical::settings(1, &arguments.divergence, &terms);
                let exponent = match config.exponent {
                    Exponent::One => "one",
                    Exponent::Monotone => "monotone",
                };
                let mut flags: Vec<String> = [
                    "--bunch-over=both",
                    "--criterion=held-out:0.1",
                    "--lambda-units=relative",
                    "--normalize=h-rms",
                    "--hypergradient=adjoint",
                    "--tol=0",
                    "--select=best",
                ]
                .map(String::from)
                .to_vec();
                flags.extend([
                    format!("--lambda-step={}", lambda_step_text(config.lambda_step)),
                    format!("--bunch={}", config.bunch),
                    format!("--warm-up={}", config.warm_up),
                    format!("--exponent={exponent}"),
                    format!("--lambda-scope={}", config.scope.name()),
                    format!("--lambda-min={}", config.lambda_min),
                    format!("--lambda-max={}", config.lambda_max),
                    format!("--max-iter={}", config.max_iterations),
                ]);
                flags
            }
            Self::Shinbo => [
                "--divergence=is",
                "--penalize=h",
                "--lambda-scope=component",
                "--exponent=monotone",
            ]
            .map(String::from)
            .to_vec(),
        }
    }

    /// Refuses settings that contradict what the preset is.
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
            Self::Practical if arguments.criterion.criterion == CriterionArgument::Train => {
                conflict(
                    "--preset practical",
                    "--criterion train",
                    "it tunes λ on held-out entries; on the training error the best penalty is none",
                )
            }
            Self::Practical if Method::from(arguments.method) != Method::AltBi => conflict(
                "--preset practical",
                "--method",
                "it runs plain updates itself, beside the run that tunes λ",
            ),
            Self::Practical if Selection::from(arguments.selection()) == Selection::Last => {
                conflict(
                    "--preset practical",
                    "--select last",
                    "its candidates are the iterates with the lowest held-out error",
                )
            }
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

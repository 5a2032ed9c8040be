//! The flags that set the fields of [`AltBiConfig`].
//!
//! One entry of the list below is all that a setting of the solver needs here. Flag, help, parser,
//! the line in `config.toml` and the order of precedence follow from it: typed flags over the preset,
//! and the preset over the library's defaults.

use clap::builder::{StyledStr, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};

use crate::cli::arguments::words;
use crate::cli::headings::{ENGINE, MODEL, PENALTIES, STOPPING};
use crate::lambda::LambdaStep;
use crate::{
    AltBiConfig, BunchOver, EngineChoice, Exponent, Initial, Method, Mode, Normalization, Scope,
    Selection, Units,
};

/// The rank of the configuration that defaults are taken from. (The rank has no default.)
const ANY_RANK: usize = 1;

macro_rules! solver_flags {
    ($($(#[doc = $help:literal])+ $flag:literal <$value:literal> $field:ident: $type:ty = $parser:expr, $heading:ident, $often:literal;)+) => {
        /// The typed settings of the solver.
        #[derive(Debug, Clone, Default)]
        pub(in crate::cli) struct SolverFlags {
            $($field: Option<$type>,)+
        }

        impl SolverFlags {
            /// A configuration with the typed settings in place of its own.
            pub(in crate::cli) fn over(&self, mut config: AltBiConfig) -> AltBiConfig {
                $(if let Some(typed) = self.$field {
                    config.$field = typed;
                })+
                config
            }

            /// The settings of a configuration, under the names of their flags.
            pub(in crate::cli) fn settings(config: &AltBiConfig) -> Vec<(&'static str, String)> {
                vec![$(($flag, config.$field.to_string()),)+]
            }
        }

        impl FromArgMatches for SolverFlags {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
                Ok(Self {
                    $($field: matches.get_one::<$type>($flag).copied(),)+
                })
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }

        impl Args for SolverFlags {
            fn augment_args(command: Command) -> Command {
                let defaults = AltBiConfig::new(ANY_RANK);
                command$(.arg(
                    argument($flag, concat!($($help),+), defaults.$field.to_string())
                        .value_name($value)
                        .value_parser(ValueParser::from($parser))
                        .help_heading($heading)
                        .hide_short_help(!$often)
                ))+
            }

            fn augment_args_for_update(command: Command) -> Command {
                Self::augment_args(command)
            }
        }
    };
}

/// A flag with a value. Its help ends with the default, unless it names one itself.
fn argument(flag: &'static str, help: &'static str, default: String) -> Arg {
    let help = help.trim();
    let help = match help.contains("[default") {
        true => help.into(),
        false => format!("{help} [default: {default}]"),
    };
    Arg::new(flag)
        .long(flag)
        .help(StyledStr::from(help))
        .allow_negative_numbers(true)
}

// (The last word of an entry: whether the short help, -h, lists the flag.)
solver_flags! {
    /// AltBi or a baseline; mu is plain multiplicative updates (scikit-learn: solver='mu')
    "method" <"METHOD"> method: Method = words::<Method>(), MODEL, true;
    /// Exponent of the updates; one: 1; monotone: the objective never rises; fit: the same, but
    /// computed without the penalties
    "exponent" <"EXPONENT"> exponent: Exponent = words::<Exponent>(), MODEL, false;
    /// Rescale W and H before each bunch, so that W cannot evade its penalty by shrinking; h-rows:
    /// rows of H sum to 1; h-rms: their root mean square is 1
    "normalize" <"NORMALIZE"> normalize: Normalization = words::<Normalization>(), MODEL, false;
    /// W and H at the start; random: uniform, W scaled so that WH has the mean of X; uniform: the
    /// paper's start, not scaled; nndsvd, nndsvda: from singular vectors (scikit-learn: init)
    "init" <"INIT"> initial: Initial = words::<Initial>(), MODEL, true;
    /// Seed of the random start (scikit-learn: random_state)
    "seed" <"SEED"> seed: u64 = value_parser!(u64), MODEL, true;
    /// Scope of λ; row: one λ per row of W (column of H); shared: one for all; component: one per
    /// component; entry: one per entry; hierarchical:<τ>: one per component, pulled towards a
    /// common mean
    "lambda-scope" <"SCOPE"> scope: Scope = value_parser!(Scope), PENALTIES, true;
    /// T, the number of updates of W per update of H; of both factors with --bunch-over both
    "bunch" <"T"> bunch: usize = value_parser!(usize), PENALTIES, true;
    /// Factors that a bunch updates: the penalised one only, or both in turn [default: one; both
    /// with --penalize both]
    "bunch-over" <"BUNCH_OVER"> bunch_over: BunchOver = words::<BunchOver>(), PENALTIES, true;
    /// Plain updates of both factors before the first iteration
    "warm-up" <"N"> warm_up: usize = value_parser!(usize), PENALTIES, false;
    /// Steps of λ; inv-iter: dE/dλ / iteration (the paper); constant:<number>: number × dE/dλ;
    /// normalized:<rate> and adam:<rate>: steps in log λ, which do not depend on the units of X
    "lambda-step" <"LAMBDA_STEP"> lambda_step: LambdaStep = value_parser!(LambdaStep), PENALTIES, false;
    /// Units of λ; relative: multiples of the weight at which penalty and fit pull equally hard
    "lambda-units" <"UNITS"> units: Units = words::<Units>(), PENALTIES, false;
    /// Smallest λ, except for λ = 0
    "lambda-min" <"X"> lambda_min: f64 = value_parser!(f64), PENALTIES, false;
    /// Largest λ
    "lambda-max" <"X"> lambda_max: f64 = value_parser!(f64), PENALTIES, false;
    /// Method to compute the hypergradient
    "hypergradient" <"HYPERGRADIENT"> hypergradient: Mode = words::<Mode>(), ENGINE, false;
    /// Engine of the iterations; fused: fused loops; autodiff: tensors; auto: fused if possible,
    /// checked against autodiff in the first iteration
    "engine" <"ENGINE"> engine: EngineChoice = words::<EngineChoice>(), ENGINE, false;
    /// Number of threads; 0: one per core
    "threads" <"N"> threads: usize = value_parser!(usize), ENGINE, false;
    /// Largest number of iterations (scikit-learn: max_iter)
    "max-iter" <"N"> max_iterations: usize = value_parser!(usize), STOPPING, true;
    /// Stop when the divergence changes by less than this, relative to the start (scikit-learn:
    /// tol)
    "tol" <"TOL"> tolerance: f64 = value_parser!(f64), STOPPING, true;
    /// The iterate to keep; best: the one with the lowest outer error (early stopping, if data are
    /// held out) [default: last with --criterion train, best otherwise]
    "select" <"SELECT"> select: Selection = words::<Selection>(), STOPPING, false;
}

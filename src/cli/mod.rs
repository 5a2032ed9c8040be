//! The command: it turns flags into settings and calls the library. Only this module uses clap,
//! prints, and sets exit codes.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | a check failed (`gradcheck`), a run broke down, or its report could not be written (`fit`, `resume`) |
//! | 2 | bad input or usage; nothing was written |
//! | 130 | interrupted; a checkpoint was written if there is a run folder |

mod arguments;
mod bias;
mod checkpoints;
mod compare;
mod complete;
mod config_file;
mod data;
mod encode;
mod fit;
mod generate;
mod gradcheck;
mod graphs;
mod headings;
mod job;
mod output;
mod penalties;
mod preset;
mod progress;
mod ranks;
mod report;
mod reproduce;
mod search;
mod shell;
mod store;
mod tables;

use std::process::ExitCode;

use crate::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// The version of altbi with that of Burn.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (Burn 0.22.1, ndarray device)");

/// Nonnegative matrix factorisation whose penalty weights tune themselves.
#[derive(Debug, Parser)]
#[command(name = "altbi", version = VERSION, about, propagate_version = true)]
#[command(after_help = "Examples:
  altbi fit                            factorise the embedded demo
  altbi fit x.npy --rank 5 --out run   factorise a file, write results to the folder run
  altbi ranks x.npy                    find the number of components
  altbi resume run                     go on with an interrupted run
  altbi encode run new.csv             describe new rows by the run's components
  altbi gradcheck                      check the hypergradients
  altbi compare --benchmark b --runs 3 compare ways to choose λ, at equal budget
  altbi reproduce a --runs 3           the paper's benchmark A, every method, three starts")]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Factorise a matrix: X ≈ W H with a penalty on W whose weights are tuned
    Fit(Box<fit::FitArguments>),
    /// Go on with an interrupted run
    Resume(fit::ResumeArguments),
    /// Describe new rows or columns by the factors of a run
    Encode(encode::EncodeArguments),
    /// Print the reconstruction WH of a run, or its data with missing entries filled
    Complete(complete::CompleteArguments),
    /// Compare hypergradients of all modes, on built-in cases or on your own data
    Gradcheck(gradcheck::GradcheckArguments),
    /// Measure the bias of short bunches: hypergradients at T = 1, 2, 4, … and ∞
    Bias(bias::BiasArguments),
    /// Compare hypergradients with other ways to choose λ, at equal budget
    Compare(compare::CompareArguments),
    /// Find the number of components: the outer error of each rank over a few splits of the data
    Ranks(ranks::RanksArguments),
    /// Make benchmark data whose true factors are known
    Generate(generate::GenerateArguments),
    /// Repeat the paper's evaluation: every method, many starts, one report
    Reproduce(reproduce::ReproduceArguments),
    /// Make the report of a run or an experiment again, from its folder
    Report(report::ReportArguments),
    /// Print a completion script for a shell
    Completions(shell::CompletionsArguments),
    /// Print the manual page
    Man,
}

/// Ending of a command without an error.
enum Ending {
    Done,
    CheckFailed,
    Interrupted,
}

impl Command {
    fn run(self, name: &str) -> Result<Ending> {
        if !matches!(self, Self::Fit(_) | Self::Resume(_)) {
            job::processes().agree(job::only_alone(&format!("altbi {name}")))?;
        }
        match self {
            Self::Fit(arguments) => fit::fit(&arguments),
            Self::Resume(arguments) => fit::resume(&arguments),
            Self::Encode(arguments) => encode::encode(&arguments),
            Self::Complete(arguments) => complete::complete(&arguments),
            Self::Gradcheck(arguments) => gradcheck::gradcheck(&arguments),
            Self::Bias(arguments) => bias::bias(&arguments),
            Self::Compare(arguments) => compare::compare(&arguments),
            Self::Ranks(arguments) => ranks::ranks(&arguments),
            Self::Generate(arguments) => generate::generate(&arguments),
            Self::Reproduce(arguments) => reproduce::reproduce(&arguments),
            Self::Report(arguments) => report::report(&arguments),
            Self::Completions(arguments) => shell::completions(&arguments),
            Self::Man => shell::man(),
        }
    }
}

/// Parses the command line and runs it.
pub fn run() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches)
        .unwrap_or_else(|error| error.format(&mut Cli::command()).exit());
    job::run(|| {
        cli.command
            .run(matches.subcommand_name().unwrap_or_default())
    })
}

//! Flags → settings → library: the only place with clap, printing and exit
//! codes.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | a check failed (`gradcheck`), or a run became non-finite (`fit`) |
//! | 2 | bad input or usage; nothing was written |

mod arguments;
mod fit;
mod gradcheck;
mod progress;
mod settings;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Nonnegative matrix factorisation whose penalty weights tune themselves.
#[derive(Debug, Parser)]
#[command(name = "altbi", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Factorise a matrix: X ≈ W H with a penalty on W whose weights are tuned
    Fit(fit::FitArguments),
    /// Compare hypergradients of all modes, on built-in cases or on your own data
    Gradcheck(gradcheck::GradcheckArguments),
}

/// How a command ended, short of an error.
enum Ending {
    Done,
    CheckFailed,
}

/// Parses the command line and runs it.
pub fn run() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Fit(arguments) => fit::fit(&arguments),
        Command::Gradcheck(arguments) => gradcheck::gradcheck(&arguments),
    };
    match result {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::CheckFailed) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

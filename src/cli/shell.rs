//! Completions and the manual page, from the same definitions as the flags.

use crate::{Error, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, Ending};

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  altbi completions bash > ~/.local/share/bash-completion/completions/altbi")]
pub struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

/// Prints a completion script.
pub fn completions(arguments: &CompletionsArguments) -> Result<Ending> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "altbi", &mut script);
    super::output::say(String::from_utf8_lossy(&script));
    Ok(Ending::Done)
}

/// Prints the manual page: the command and, below it, each of its commands.
pub fn man() -> Result<Ending> {
    let mut page = Vec::new();
    let mut command = Cli::command();
    command.build();
    let render = |command: &clap::Command, page: &mut Vec<u8>| {
        clap_mangen::Man::new(command.clone())
            .render(page)
            .map_err(Error::writing("standard output".as_ref()))
    };
    render(&command, &mut page)?;
    for part in command.get_subcommands() {
        render(part, &mut page)?;
    }
    super::output::say(String::from_utf8_lossy(&page));
    Ok(Ending::Done)
}

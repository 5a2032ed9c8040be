//! `altbi report`: the page about a run, from its folder alone.

use std::path::PathBuf;

use altbi::Result;
use altbi::report::{RunFolder, RunRecords};
use clap::Args;

use super::Ending;
use super::output::say;

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  altbi report run      writes run/report.html and run/figures/*.svg")]
pub struct ReportArguments {
    /// The run folder
    folder: PathBuf,
}

/// Writes the report.
pub fn report(arguments: &ReportArguments) -> Result<Ending> {
    let folder = RunFolder::open(&arguments.folder)?;
    let page = RunRecords::read(folder.path())?.write_report(&folder)?;
    say(format!("written to {}", page.display()));
    Ok(Ending::Done)
}

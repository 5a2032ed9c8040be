//! `altbi report`: the page about a run or an experiment, from its folder alone.

use std::path::PathBuf;

use altbi::Result;
use altbi::experiment::{Archive, Results};
use altbi::report::{BiasRecords, ExperimentReport, RankRecords, RunFolder, RunRecords};
use clap::Args;

use super::Ending;
use super::compare::report_again;
use super::output::say;

/// Arguments of `report`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  altbi report run      writes run/report.html and run/figures/*.svg")]
pub struct ReportArguments {
    /// The folder of a run, of an experiment (altbi reproduce), of a comparison (altbi
    /// compare), of ranks (altbi ranks) or of hypergradients (altbi bias)
    folder: PathBuf,
}

/// Writes the report.
pub fn report(arguments: &ReportArguments) -> Result<Ending> {
    let page = if Archive::is_one(&arguments.folder) {
        let results = Results::read(&arguments.folder)?;
        ExperimentReport::new(&results)?.write()?
    } else if BiasRecords::are_in(&arguments.folder) {
        BiasRecords::read(&arguments.folder)?.write_report(&arguments.folder)?
    } else if RankRecords::are_in(&arguments.folder) {
        RankRecords::read(&arguments.folder)?.write_report(&arguments.folder)?
    } else if let Some(page) = report_again(&arguments.folder) {
        page?
    } else {
        let folder = RunFolder::open(&arguments.folder)?;
        RunRecords::read(folder.path())?.write_report(&folder)?
    };
    say(format!("written to {}", page.display()));
    Ok(Ending::Done)
}

//! `altbi report`: the report of a run or an experiment, from its folder alone.

use std::path::PathBuf;

use crate::Result;
use crate::experiment::{Archive, Results};
use crate::report::{
    BiasRecords, ContestRecords, ExperimentReport, KeptRecords, RankRecords, RunFolder, RunRecords,
};
use clap::Args;

use super::Ending;
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
    let folder = arguments.folder.as_path();
    let page = if Archive::is_one(folder) {
        let results = Results::read(folder)?;
        ExperimentReport::new(&results)?.write()?
    } else if BiasRecords::are_in(folder) {
        BiasRecords::read_all(folder)?.write_report(folder)?
    } else if RankRecords::are_in(folder) {
        RankRecords::read(folder)?.write_report(folder)?
    } else if ContestRecords::are_in(folder) {
        ContestRecords::read(folder)?.write_report(folder)?
    } else {
        let folder = RunFolder::open(folder)?;
        RunRecords::read(folder.path())?.write_report(&folder)?
    };
    say(format!("written to {}", page.display()));
    Ok(Ending::Done)
}

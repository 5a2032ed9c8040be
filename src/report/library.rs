//! Run folders and reports for programs, in one call each.

use std::path::{Path, PathBuf};

use super::{ExperimentReport, HeldOutShare, Labels, RunFolder, RunRecords, Summary};
use crate::criterion::Entries;
use crate::data::fingerprint;
use crate::device::Device;
use crate::error::Result;
use crate::experiment::Results;
use crate::numerics::Precision;
use crate::problem::Problem;
use crate::solver::{Model, Outcome};

/// The setting that tells a folder of a program from one of the command, which can be repeated.
pub(super) const LIBRARY: &str = "library";

/// Writes an outcome into a new run folder, with a report; returns the page. `name` is its title.
///
/// [`read_model`], `altbi encode` and `altbi report` take such a folder like one of the command's.
///
/// ```
/// use altbi::report::{Labels, read_model, write_run};
/// use altbi::{AltBiConfig, Beta, L1, Precision, Problem};
///
/// let parent = tempfile::tempdir().unwrap();
/// let x = altbi::data::benchmark_a(30, 12, 3, 1).x;
/// let problem = Problem::new(&x, Precision::F64)?;
/// let config = AltBiConfig::new(3).with_max_iterations(50);
/// let outcome = config.solver(Beta::KL, L1).run(&problem)?;
/// let run = parent.path().join("run");
/// let page = write_run(&run, "menus", &problem, &outcome, &Labels::default())?;
/// assert!(std::fs::read_to_string(page).unwrap().contains("<h1>menus</h1>"));
/// assert_eq!(read_model(&run)?.encode_rows(&x)?, outcome.encode_rows(&x)?);
/// # Ok::<(), altbi::Error>(())
/// ```
///
/// # Errors
/// [`Error::RunFolderExists`](crate::Error::RunFolderExists) and its kind for a folder that is
/// there; [`Error::Write`](crate::Error::Write).
pub fn write_run(
    folder: &Path,
    name: &str,
    problem: &Problem,
    outcome: &Outcome,
    labels: &Labels,
) -> Result<PathBuf> {
    let settings = settings(name, outcome);
    let run = RunFolder::new(folder, false)?;
    run.create(&settings.to_string(), &[])?;
    let summary = Summary::new(
        settings,
        outcome.seed(),
        fingerprint(problem.x()),
        outcome,
        None,
        HeldOutShare::of(problem),
    )
    .with_entries(Entries::Training.weight(problem));
    run.write_results(outcome, &summary, labels, false, None)?;
    run.finish()?;
    RunRecords::read(folder)?.write_report(&run)
}

/// The settings, under the names of the command's flags.
fn settings(name: &str, outcome: &Outcome) -> toml::Table {
    let (config, divergence) = outcome.settings();
    let all = [
        ("data", name.to_owned()),
        ("rank", config.rank.to_string()),
        ("method", config.method.to_string()),
        ("divergence", divergence),
        ("bunch", config.bunch.to_string()),
        ("exponent", config.exponent.to_string()),
        ("lambda-units", config.units.to_string()),
        ("max-iter", config.max_iterations.to_string()),
        ("tol", config.tolerance.to_string()),
        ("seed", config.seed.to_string()),
        (LIBRARY, env!("CARGO_PKG_VERSION").to_owned()),
    ];
    let all = all.map(|(key, value)| (key.to_owned(), value.into()));
    all.into_iter().collect()
}

/// The model of a run folder: its factors with their divergence, penalties and λ, to encode new
/// data.
///
/// # Errors
/// [`Error::NoRun`](crate::Error::NoRun), [`Error::Read`](crate::Error::Read) and
/// [`Error::ConfigFile`](crate::Error::ConfigFile) for what is missing or damaged;
/// [`Error::UnknownName`](crate::Error::UnknownName) for a divergence or penalty of your own.
pub fn read_model(folder: &Path) -> Result<Model> {
    RunRecords::read(folder)?.model(Precision::F64, Device::default())
}

/// Writes tables, figures and a page about an experiment into its folder; returns the page.
///
/// # Errors
/// Those of reading factors and λ from the folder; [`Error::Write`](crate::Error::Write).
pub fn write_experiment(results: &Results) -> Result<PathBuf> {
    ExperimentReport::new(results)?.write()
}

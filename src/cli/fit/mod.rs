//! `altbi fit` and `altbi resume`: factorise a matrix.

mod arguments;
mod continued;
mod keeper;
mod notes;
mod practical;
mod restarts;
mod solver_flags;
mod summary;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::config::MOST_THREADS;
use crate::criterion::{Entries, OuterError, Unseen};
use crate::data::{Benchmark, Reading, Source, Table, demo, text_fingerprint};
use crate::metrics::recovery;
use crate::practical::RowErrors;
use crate::problem::{Scale, Scaling};
use crate::report::{
    Choice, HeldOutShare, Labels, RunFolder, RunRecords, SparseRecord, Summary, UnseenData,
    shell_quoted,
};
use crate::solver::StartRecord;
use crate::threads::in_own_pool;
use crate::{
    AltBiConfig, Checkpoint, CheckpointFault, Error, Outcome, PenaltyTerm, Problem, Result, Side,
    Solver, StopReason,
};
use clap::Args;

pub(super) use self::arguments::FitArguments;
use self::arguments::Format;
use self::continued::Before;
use super::arguments::{LambdaArgument, read_lambda};
use super::checkpoints::Checkpoints;
use super::output::{check_inputs_safe, complain, json, say};
use super::preset::Preset;
use super::progress::{Progress, Watch};
use super::{Ending, config_file, job};

/// Arguments of `resume`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  altbi resume run

The result has the same bits as that of an uninterrupted run.")]
pub struct ResumeArguments {
    /// The folder of an interrupted run
    folder: PathBuf,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
    /// Print only the summary, as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `fit`.
pub fn fit(arguments: &FitArguments) -> Result<Ending> {
    // The arguments after `altbi fit`, as typed.
    let typed = || std::env::args_os().skip(2).collect::<Vec<OsString>>();
    let arguments = match (&arguments.config, continued::settings_of(&typed())?) {
        (Some(_), Some(_)) => {
            return Err(Error::Conflict {
                first: "--continue",
                second: "--config",
                reason: "the settings are those of the run that goes on",
            });
        }
        (Some(path), None) => config_file::arguments_from(path, &typed())?,
        (None, Some(arguments)) => arguments,
        (None, None) => config_file::typed_arguments(&typed())?,
    };
    continued::check(&arguments)?;
    restarts::check(&arguments)?;
    let processes = job::processes();
    processes.agree(check_split(&arguments))?;
    let arguments = silent(arguments);
    let folder = arguments.out.as_deref().filter(|_| processes.is_first());
    let folder = folder.map(|path| {
        check_inputs_safe(path, arguments.inputs())?;
        RunFolder::new(path, arguments.force)
    });
    let folder = processes.agree(folder.transpose())?;
    on_threads(&arguments, || {
        let progress = progress(&arguments);
        let run = processes.agree(Run::new(&arguments, folder, progress))?;
        run.execute(None)
    })
}

/// Runs all of a run on the same threads, from reading to writing: memory that a thread has freed is
/// used again by the same thread first.
fn on_threads(
    arguments: &FitArguments,
    work: impl FnOnce() -> Result<Ending> + Send,
) -> Result<Ending> {
    let threads = match arguments.settings_of_solver().threads {
        0 => job::threads(),
        threads => threads,
    };
    // Several starts have threads of their own. (The settings are checked later.)
    if arguments.restarts > 1 || threads > MOST_THREADS {
        return work();
    }
    in_own_pool(threads, work)?
}

/// Refuses flags that several processes do not support.
fn check_split(arguments: &FitArguments) -> Result<()> {
    let processes = job::processes().size();
    let refused = [
        (
            arguments.data.as_deref() == Some("-") || arguments.table.mask.as_deref() == Some("-"),
            "data from standard input",
            "only one process can read it; give a file",
        ),
        (
            arguments.restarts > 1,
            "--restarts",
            "each start takes all processes; run them one after another with --seed",
        ),
        (
            arguments.scale == Scale::Rows,
            "--scale rows",
            "the divisors belong to all rows; use --scale columns, or scale the data beforehand",
        ),
    ];
    let refused = refused
        .into_iter()
        .find(|(asked, ..)| *asked && processes > 1);
    refused.map_or(Ok(()), |(_, what, reason)| {
        Err(Error::NotSplit {
            what: what.into(),
            processes,
            reason,
        })
    })
}

/// The same arguments with output only from process 0.
fn silent(mut arguments: FitArguments) -> FitArguments {
    if !job::processes().is_first() {
        (arguments.quiet, arguments.json) = (true, false);
    }
    arguments
}

fn progress(arguments: &FitArguments) -> Progress {
    let progress = Progress::new(arguments.quiet || arguments.json);
    let data = arguments.data.as_deref().unwrap_or("the demo");
    progress.begin(&format!("reading {data}"));
    progress
}

/// Runs `resume`.
pub fn resume(arguments: &ResumeArguments) -> Result<Ending> {
    let processes = job::processes();
    let opened = RunFolder::open(&arguments.folder).and_then(|folder| {
        if processes.is_first() {
            folder.lock()?;
        }
        Ok(folder)
    });
    let folder = processes.agree(opened)?;
    let starts = folder.check_starts().is_ok();
    let bytes = match starts {
        true => Vec::new(),
        false => folder.read_checkpoint()?,
    };
    let config = folder.read_config()?;
    let path = folder.path().join("config.toml");
    let mut settings = config_file::parse(&config, &path, &[])?;
    settings.quiet = arguments.quiet;
    settings.json = arguments.json;
    let settings = silent(settings);
    processes.agree(check_split(&settings))?;
    if starts {
        let mut run = Run::new(&settings, Some(folder), progress(&settings))?;
        run.config = config;
        return run.best_of_starts(true);
    }
    let checkpoint = Checkpoint::decode(&bytes)?;
    if checkpoint.settings_hash != text_fingerprint(&config) {
        return Err(CheckpointFault::OtherSettings.into());
    }
    let folder = processes.is_first().then_some(folder);
    on_threads(&settings, || {
        let run = Run::new(&settings, folder, progress(&settings));
        let mut run = processes.agree(run)?;
        run.config = config;
        if checkpoint.data_hash != run.data_hash {
            return Err(CheckpointFault::OtherData.into());
        }
        run.execute(Some(checkpoint))
    })
}

/// Facts about a run that are reported beside its outcome.
struct Facts {
    choice: Option<Choice>,
    starts: Vec<StartRecord>,
    held_out: Option<HeldOutShare>,
    /// Total weight of the entries that are fitted in the end.
    entries: f64,
    sparse: Option<SparseRecord>,
    /// E of a constant, if data were held out.
    outer_error_of_constant: Option<f64>,
}

/// A run that is ready to begin: its data are read, its settings fixed.
struct Run<'a> {
    arguments: &'a FitArguments,
    folder: Option<RunFolder>,
    problem: Problem,
    /// The problem with nothing held out, for the refit and the final numbers.
    full: Option<Problem>,
    /// E, for these data.
    outer: OuterError,
    /// The reason for this choice, if the data decided.
    outer_reason: Option<String>,
    /// The penalties, for these data.
    terms: Vec<(Side, PenaltyTerm)>,
    /// Copies of data from standard input, by the names of their files.
    inputs_to_keep: Vec<(&'static str, String)>,
    labels: Labels,
    /// Reading of the table, if the data are one.
    reading: Option<Reading>,
    truth: Option<Benchmark>,
    /// The run that this one goes on from.
    before: Option<Before>,
    /// The divisors of the rows or columns of the data.
    scaling: Option<Scaling>,
    /// The row and the column that carry most of X, and their shares.
    largest: [(usize, f64); 2],
    data_hash: String,
    solver: AltBiConfig,
    /// The text of `config.toml`.
    config: String,
    progress: Progress,
}

impl<'a> Run<'a> {
    fn new(
        arguments: &'a FitArguments,
        folder: Option<RunFolder>,
        progress: Progress,
    ) -> Result<Self> {
        let source = arguments.data.as_deref().map(Source::from);
        let (mut data, truth) = match &source {
            Some(source) => (arguments.table.read(source, arguments.quiet)?, None),
            None => {
                let demo = demo();
                let table = Table::from(demo.x.clone());
                (arguments.table.weighted(table)?, Some(demo))
            }
        };
        let mut solver = arguments.solver_config(truth.as_ref())?;
        if solver.threads == 0 {
            solver.threads = job::threads();
        }
        // Data from standard input are stored with the run, so that it can be resumed.
        let source = match (source, &folder) {
            // The path is relative to config.toml.
            (Some(Source::StandardInput), Some(_)) => Some(Source::from("data.csv")),
            (source, _) => source.map(|source| source.absolute()),
        };
        let piped = arguments.data.as_deref() == Some("-");
        let reading = data.reading.clone();
        let kept = reading.clone().map(|reading| match (piped, &folder) {
            (true, Some(_)) => reading.written(),
            _ => reading,
        });
        let config = arguments.config_text(source.as_ref(), solver.rank, kept.as_ref());
        if arguments.preset != Preset::Practical {
            let refused = [
                ("--refit", arguments.refit, "only practical has a refit"),
                (
                    "--splits",
                    arguments.splits,
                    "only practical has several splits",
                ),
            ];
            if let Some((first, _, reason)) = refused.iter().find(|(_, given, _)| given.is_some()) {
                return Err(Error::Conflict {
                    first,
                    second: "another preset than practical",
                    reason,
                });
            }
        }
        if let Some(splits @ (0 | 101..)) = arguments.splits {
            return Err(Error::Setting {
                setting: "the number of splits",
                value: splits as f64,
                range: "from 1 to 100",
            });
        }
        // Contradicting penalties are refused before anything else is done.
        arguments.penalties.terms()?;
        let data_hash = data.fingerprint();
        let before = arguments.continue_.as_deref();
        let before = before.map(Before::read).transpose()?;
        if let Some(before) = &before {
            before.check_data(arguments.data.as_deref().unwrap_or("the demo"), &data_hash)?;
        }
        let mut inputs_to_keep = Vec::new();
        if piped {
            inputs_to_keep.push(("data.csv", data.to_csv()));
        }
        if arguments.table.mask.as_deref() == Some("-") {
            inputs_to_keep.extend(data.weights_to_csv().map(|text| ("mask.csv", text)));
        }
        let full = data.problem(&arguments.table)?;
        let largest = full.largest_lines();
        let scaling = Scaling::of(&full, arguments.scale);
        let full = match &scaling {
            Some(scaling) => full.scaled(scaling)?,
            None => full,
        };
        let before = before.map(|before| before.scaled(scaling.as_ref()));
        let (problem, outer) = arguments.criterion.hold_out(&full, arguments.divergence)?;
        let asked = arguments.criterion.asked();
        let outer_reason = asked.reason(&full, &arguments.divergence);
        let labels = data.labels;
        let penalties = &arguments.penalties;
        let terms = penalties.terms_for(&problem, Some(&labels))?;
        Ok(Self {
            terms,
            before,
            scaling,
            largest,
            data_hash,
            inputs_to_keep,
            full: (arguments.preset == Preset::Practical).then_some(full),
            problem,
            outer,
            outer_reason,
            labels,
            reading,
            arguments,
            folder,
            truth,
            solver,
            config,
            progress,
        })
    }

    fn execute(&self, checkpoint: Option<Checkpoint>) -> Result<Ending> {
        let arguments = self.arguments;
        if arguments.restarts > 1 {
            return self.best_of_starts(false);
        }
        let problem = &self.problem;
        let mut checkpoints = Checkpoints::new(
            self.folder.clone(),
            &self.config,
            &self.data_hash,
            &text_fingerprint(&self.config),
            arguments.checkpoint_every,
        )
        .with_inputs(self.inputs_to_keep.clone());
        if let Some(checkpoint) = &checkpoint {
            let story = checkpoint.restore(problem)?;
            checkpoints = checkpoints.resumed(story.history, story.lambda_at_start);
        } else if let Some(before) = &self.before {
            let ended = before.ended.clone();
            checkpoints = checkpoints.after(ended.history, ended.lambda_at_start);
        }
        let aftermath = checkpoints.aftermath();
        let (outcome, choice) = match &self.full {
            Some(full) => self.practical(full, checkpoints, checkpoint.as_ref())?,
            None => (self.once(checkpoints, checkpoint.as_ref())?, None),
        };
        let mut aftermath = std::mem::take(&mut *aftermath.lock());
        let written = aftermath.error.take().map_or(Ok(()), Err);
        job::processes().agree(written)?;
        if outcome.stop_reason == StopReason::Interrupted {
            return Ok(self.interrupted(&outcome));
        }
        self.conclude(outcome, choice, Vec::new(), aftermath.folder_made)
    }

    /// Writes and prints the results, and returns how the run ended.
    fn conclude(
        &self,
        outcome: Outcome,
        choice: Option<Choice>,
        starts: Vec<StartRecord>,
        folder_made: bool,
    ) -> Result<Ending> {
        // This needs all processes, because it is over all rows.
        let full = self.full.as_ref().unwrap_or(&self.problem);
        let facts = Facts {
            choice,
            starts,
            held_out: HeldOutShare::of(&self.problem),
            entries: Entries::Training.weight(full),
            sparse: SparseRecord::of(&self.problem, self.arguments.table.zeros),
            outer_error_of_constant: (self.outer.unseen != Unseen::Nothing).then(|| {
                let (divergence, criterion) = (self.arguments.divergence, self.outer.criterion());
                RowErrors::new(&self.problem, &divergence, criterion.as_ref()).of_mean()
            }),
        };
        let broke_down = outcome.breakdown.is_some();
        let result = match outcome.gathered() {
            Some(outcome) => self.told(outcome, facts, folder_made),
            None if broke_down => Ok(Ending::CheckFailed),
            None => Ok(Ending::Done),
        };
        job::processes().agree(result)
    }

    /// The same, on process 0 only.
    fn told(&self, outcome: Outcome, facts: Facts, folder_made: bool) -> Result<Ending> {
        let outcome = match &self.scaling {
            Some(scaling) => outcome.in_units_of_data(scaling),
            None => outcome,
        };
        let complete = self.finish(&outcome, facts, folder_made)?;
        // After a breakdown the state before it is kept.
        match &outcome.breakdown {
            Some(breakdown) => {
                complain(format!("error: {breakdown}"));
                Ok(Ending::CheckFailed)
            }
            None if complete => Ok(Ending::Done),
            None => Ok(Ending::CheckFailed),
        }
    }

    /// One run of the solver.
    fn once(&self, checkpoints: Checkpoints, checkpoint: Option<&Checkpoint>) -> Result<Outcome> {
        let before = self.before.as_ref();
        let done = before.map_or(0, |before| before.ended.iteration());
        let done = checkpoint.map_or(done, Checkpoint::iteration);
        let of = self.solver.max_iterations;
        let mut solver = self
            .solver(checkpoint.is_none() && before.is_none())?
            .observe(checkpoints)
            .observe(Watch::new(&self.progress, "iterating", of, done));
        match (checkpoint, before) {
            (Some(checkpoint), _) => solver.resume(&self.problem, checkpoint),
            (None, Some(before)) => solver.go_on_from(&self.problem, before.ended.clone()),
            (None, None) => solver.run(&self.problem),
        }
    }

    /// The solver. Only a fresh run reads the files of the start.
    fn solver(&self, fresh: bool) -> Result<Solver> {
        self.solver_with(&self.solver, fresh)
    }

    /// The same with other settings.
    fn solver_with(&self, config: &AltBiConfig, fresh: bool) -> Result<Solver> {
        let arguments = self.arguments;
        let solver = config
            .penalizing(arguments.divergence, self.terms.clone())
            .with_shared_criterion(self.outer.criterion());
        if !fresh {
            return Ok(solver);
        }
        let given = arguments.given_factors(self.scaling.as_ref())?;
        let solver = solver.with_factors(given);
        Ok(match &arguments.lambda {
            LambdaArgument::File(path) => solver.with_lambda(read_lambda(path)?),
            LambdaArgument::Auto | LambdaArgument::Value(_) => solver,
        })
    }

    fn interrupted(&self, outcome: &Outcome) -> Ending {
        self.progress.clear();
        let done = outcome.iterations;
        match &self.folder {
            Some(folder) => complain(format!(
                "interrupted after {done} iterations; go on with\n  altbi resume {}",
                shell_quoted(folder.path())
            )),
            None => complain(format!(
                "interrupted after {done} iterations; nothing is kept, because no --out was given"
            )),
        }
        Ending::Interrupted
    }

    /// Writes and prints the results. Returns false if the report could not be written.
    fn finish(&self, outcome: &Outcome, facts: Facts, folder_made: bool) -> Result<bool> {
        let mut complete = true;
        self.progress.begin("writing the results");
        let recovery = self.truth.as_ref().and_then(|truth| {
            let enough = self.solver.rank >= truth.w.ncols();
            enough.then(|| recovery(&truth.w, &truth.h, &outcome.w, &outcome.h))
        });
        let recovery = recovery.transpose()?;
        let settings: toml::Table = self.config.parse().expect("altbi wrote it");
        let summary = Summary::new(
            settings,
            outcome.seed(),
            self.data_hash.clone(),
            outcome,
            recovery.as_ref(),
            facts.held_out,
        )
        .with_choice(facts.choice)
        .with_starts(facts.starts)
        .with_continued(self.before.as_ref().map(|before| before.told.clone()))
        .with_entries(facts.entries)
        .with_outer(
            self.outer,
            self.outer_reason.clone(),
            facts.outer_error_of_constant,
        )
        .with_reading(self.reading.clone())
        .with_sparse(facts.sparse);
        if let Some(folder) = &self.folder {
            if !folder_made {
                folder.create(&self.config, &self.inputs_to_keep)?;
            }
            // Without a checkpoint an incomplete folder is useless, so it is removed.
            let written = folder.write_results(
                outcome,
                &summary,
                &self.labels,
                self.arguments.format == Format::Csv,
                self.held_out(),
            );
            written.inspect_err(|_| {
                if !folder_made {
                    folder.discard();
                }
            })?;
            // From here on the results are safe, even if the report fails.
            let tidied = folder.finish();
            let report =
                RunRecords::read(folder.path()).and_then(|records| records.write_report(folder));
            if let Err(error) = tidied.and(report) {
                complete = false;
                self.progress.clear();
                let folder = shell_quoted(folder.path());
                complain(format!(
                    "the results are written, but not the report ({error}); altbi report {folder} makes it again"
                ));
            }
        }
        self.progress.clear();
        if !self.arguments.quiet {
            self.warn(outcome);
        }
        if self.arguments.json {
            say(json(&summary));
        } else if !self.arguments.quiet {
            self.print(&summary, outcome, recovery.as_ref());
        }
        Ok(complete)
    }

    /// The data that the updates did not see, and the name of their file without its ending.
    ///
    /// (Several processes do not write them, because they may be as large as X. The seed repeats
    /// them.)
    fn held_out(&self) -> Option<(&'static str, UnseenData<'_>)> {
        if self.problem.share().is_split() {
            return None;
        }
        let problem = &self.problem;
        if let Unseen::Counts(share) = self.outer.unseen
            && problem.has_second()
        {
            let counts = match problem.second_numbers() {
                Some(counts) => UnseenData::Dense {
                    shape: counts.dim(),
                    values: Box::new(counts.values().map(move |count| count * share)),
                },
                None => {
                    let stored = problem.second()?.as_sparse()?;
                    UnseenData::Sparse(Cow::Owned(stored.map(|count| count * share)))
                }
            };
            return Some(("thinned", counts));
        }
        let weights = problem.held_out_weights()?;
        let entries = match weights.as_stored() {
            Some(stored) => UnseenData::Sparse(Cow::Borrowed(stored)),
            None => UnseenData::Dense {
                shape: weights.dim(),
                values: weights.iter(),
            },
        };
        Some(("held_out", entries))
    }
}

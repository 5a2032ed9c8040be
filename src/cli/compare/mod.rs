//! `altbi compare`: other ways to choose λ, at equal budget.

mod table;
mod tasks;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::criterion::Unseen;
use crate::data::{Noise, fingerprint, text_fingerprint};
use crate::experiment::{BenchmarkName, Size};
use crate::problem::Weights;
use crate::report::{ContestRecords, KeptRecords, data_name};
use crate::tuner::{
    BuiltIn, Contest, ContestSettings, Judge, RIVALS, Rival, Standing, Task, contest,
};
use crate::{Divergence, Error, Result, Scope};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use parking_lot::Mutex;

use super::Ending;
use super::arguments::words;
use super::checkpoints::interruption;
use super::output::{json, say};
use super::progress::Progress;
use super::search::{PROCEDURE, SearchArguments};
use super::store::Store;

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi compare --penalize both --penalty smooth --penalty-h l1 --out compare
                                      noisy benchmark B, all rivals, ten runs
  altbi compare --benchmark d --divergence frobenius --penalty smooth --runs 3
  altbi compare x.npy --rank 6 --penalty smooth --out compare
                                      your data; the error is on a tenth that no rival sees
  altbi compare x.npy --rank 6 --rivals plain,path,tpe

With --out the same command goes on after an interruption.")]
pub struct CompareArguments {
    /// The matrix X, as for fit [default: a benchmark with noise]
    data: Option<String>,
    /// Benchmark without DATA, with the noise that the divergence is made for
    #[arg(long, default_value = "b", value_parser = clean_benchmark(), conflicts_with = "data")]
    benchmark: BenchmarkName,
    /// Size of the benchmark; small: 120×24, and 48×144 for d; medium: 400×40, 100×400;
    /// full: 1000×50, 224×3025
    #[arg(long, default_value = "medium", value_parser = words::<Size>(), conflicts_with = "data")]
    size: Size,
    /// Number of components r (scikit-learn: n_components) [default: the benchmark's own]
    #[arg(long)]
    rank: Option<usize>,
    /// Scope of the numbers that rivals choose; shared: one number per penalty; component: one per
    /// penalty and component
    #[arg(long, value_name = "SCOPE", default_value = "shared")]
    rival_scope: Scope,
    /// Share of the entries of DATA that no rival sees, to measure the error on; 0: none [default:
    /// 0.1]
    #[arg(
        long,
        value_name = "FRACTION",
        allow_negative_numbers = true,
        conflicts_with = "truth",
        requires = "data"
    )]
    test: Option<f64>,
    /// The matrix without noise, a file like DATA, to measure the error against
    #[arg(long, value_name = "FILE", requires = "data")]
    truth: Option<String>,
    /// Rivals, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_parser = words::<BuiltIn>())]
    rivals: Vec<BuiltIn>,
    /// Number of updates of each rival before its last two solves [default: that of practical]
    #[arg(long, value_name = "N")]
    budget: Option<usize>,
    /// Number of runs, each with its own seed for noise, start and held-out entries
    #[arg(long, value_name = "N", default_value_t = 10)]
    runs: usize,
    #[command(flatten)]
    search: SearchArguments,
}

/// Largest number of updates of a rival.
const MOST_UPDATES: f64 = 1e7;
/// Largest number of runs of a comparison.
const MOST_RUNS: usize = 1000;

/// The benchmarks that can get noise. (Those of `poisson` have it.)
fn clean_benchmark() -> impl TypedValueParser<Value = BenchmarkName> {
    PossibleValuesParser::new(["a", "b", "c", "d"]).try_map(|word| word.parse())
}

impl CompareArguments {
    fn rivals(&self) -> Vec<BuiltIn> {
        if self.rivals.is_empty() {
            return RIVALS.to_vec();
        }
        // Errors are reported relative to plain updates.
        let mut rivals = vec![BuiltIn::Practical, BuiltIn::Plain];
        for rival in &self.rivals {
            if !rivals.contains(rival) {
                rivals.push(*rival);
            }
        }
        rivals
    }

    /// The path of the data, or what stands for it.
    fn source(&self) -> String {
        match &self.data {
            Some(data) => data.clone(),
            None => format!(
                "Benchmark {:?} with noise ({:?})",
                self.benchmark,
                Noise::of_beta(self.search.divergence.0)
            ),
        }
    }

    /// Data and settings, in a sentence.
    fn about(&self, tasks: &[Task], data: &str) -> String {
        let [n, m] = tasks.first().map_or([0, 0], |task| task.full.shape());
        let rank = tasks.first().map_or(0, |task| task.rank);
        let outer = tasks.first().map_or(self.search.outer(), |task| task.outer);
        format!(
            "{data}, {n}×{m}, r = {rank}, {} divergence, {}; {}{} from seed {}; outer error \
             {outer}; λ of practical: {}, dials of the rivals: {}.",
            self.search.divergence.name(),
            self.search.penalties.describe(),
            self.runs,
            if self.runs == 1 { " run" } else { " runs" },
            self.search.seed,
            self.search.lambda_scope,
            self.rival_scope,
        )
    }

    fn check(&self) -> Result<()> {
        if self.search.criterion == Unseen::Nothing {
            return Err(Error::Conflict {
                first: "--criterion train",
                second: "a comparison",
                reason: "the rivals choose by data that the updates do not see",
            });
        }
        let runs = (1..=MOST_RUNS).contains(&self.runs);
        let count = self.runs as f64;
        Error::require(runs, "the number of runs", count, "between 1 and 1000")?;
        let test = self.test.unwrap_or(0.0);
        let ok = (0.0..=0.5).contains(&test);
        Error::require(ok, "the test fraction", test, "from 0 to 0.5")?;
        let budget = self.budget.unwrap_or(1) as f64;
        let ok = (1.0..=MOST_UPDATES).contains(&budget);
        Error::require(ok, "the budget", budget, "between 1 and 10000000")
    }
}

/// Runs `compare`.
pub fn compare(arguments: &CompareArguments) -> Result<Ending> {
    arguments.check()?;
    let common = &arguments.search;
    let truth = arguments.truth.iter().map(PathBuf::from);
    common.check(arguments.data.as_deref(), truth)?;
    let progress = Progress::new(common.quiet || common.json);
    let interrupted = interruption();
    progress.begin("making the tasks");
    let tasks = arguments.tasks()?;
    let rivals = arguments.rivals();
    let source = arguments.source();
    let (data, about) = match &arguments.data {
        Some(path) => {
            let name = data_name(Some(path));
            (name.clone(), arguments.about(&tasks, &name))
        }
        None => (
            format!("Benchmark {:?} with noise", arguments.benchmark),
            arguments.about(&tasks, &source),
        ),
    };
    let records = ContestRecords {
        fingerprint: arguments.fingerprint(&tasks, &arguments.about(&tasks, &source)),
        data,
        about,
        contest: Contest::default(),
    };
    let out = common.out.as_deref();
    let foreign = "it has no standings.json that altbi compare wrote";
    let store = Store::open(out, records, ("compare.lock", foreign), |records, kept| {
        records.contest = kept.contest;
        records.fingerprint == kept.fingerprint
    })?;
    let known = store.records()?.contest.standings;
    let is_missing = |task: &&Task| !known.iter().any(|of| of.seed == task.seed);
    let missing: Vec<Task> = tasks.iter().filter(is_missing).cloned().collect();
    let found = (tasks.len() - missing.len()) * rivals.len();
    progress.steps("comparing", tasks.len() * rivals.len(), found);
    let pool = common.pool()?;
    let answers = AtomicUsize::new(found);
    let seen = Mutex::new(Vec::new());
    let done = |standing: &Standing| {
        let answers = answers.fetch_add(1, Ordering::Relaxed) + 1;
        progress.at(answers, || {
            format!("{}, seed {}", standing.rival, standing.seed)
        });
        let mut seen = seen.lock();
        seen.push(standing.clone());
        let run = seen.iter().filter(|of| of.seed == standing.seed);
        let run: Vec<Standing> = run.cloned().collect();
        drop(seen);
        // Only whole runs are kept.
        if run.len() == rivals.len() {
            store.keep(|records| {
                let standings = &mut records.contest.standings;
                standings.extend(run);
                // (Stable: the rivals of a run keep their order.)
                standings.sort_by_key(|standing| standing.seed);
            });
        }
    };
    let going = || !interrupted.load(Ordering::Relaxed);
    let budget = arguments.budget.map(|updates| updates as f64);
    let settings = ContestSettings {
        scope: common.lambda_scope,
        dials: arguments.rival_scope,
        budget,
        done: &done,
        going: &going,
    };
    let taking_part: Vec<&dyn Rival> = rivals.iter().map(|rival| rival as &dyn Rival).collect();
    let compared = pool.install(|| contest(&missing, &taking_part, settings));
    progress.clear();
    compared?;
    let records = store.records()?;
    if interrupted.load(Ordering::Relaxed) {
        return Ok(common.interrupted("finished runs are"));
    }
    let page = out.map(|out| records.write_report(out)).transpose()?;
    if common.json {
        say(json(&records.contest));
    } else if !common.quiet {
        say(&records.about);
        say(records.answer());
        table::print(&records.contest);
        if let Some(page) = page {
            say(format!("written to {}", page.display()));
        }
    }
    Ok(Ending::Done)
}

impl CompareArguments {
    /// A fingerprint of the procedure, the settings and the data.
    fn fingerprint(&self, tasks: &[Task], about: &str) -> String {
        let mut text = format!(
            "{PROCEDURE} {about} {:?} {:?} {:?}",
            self.rivals, self.budget, self.search.table.dtype
        );
        for task in tasks {
            text += &fingerprint(task.full.x());
            let weights = |weights: &Weights| fingerprint(&weights.to_stored());
            text += &task.split.mask().map(weights).unwrap_or_default();
            match &task.judge {
                Judge::Nobody => {}
                Judge::Truth(truth) => text += &fingerprint(&truth.to_owned().into()),
                Judge::Test(_, of_test) => text += &weights(of_test),
            }
        }
        text_fingerprint(&text)
    }
}

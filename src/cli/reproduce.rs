//! `altbi reproduce`: the paper's evaluation.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::experiment::{
    Archive, BenchmarkName, Campaign, CampaignEnding, Contender, Dataset, DatasetResults, Measure,
    Moment, Progress as FitProgress, Protocol, Results, Size, Watcher,
};
use crate::report::{ExperimentReport, shell_quoted};
use crate::{Error, Result};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::Ending;
use super::arguments::{check_threads, words};
use super::checkpoints::interruption;
use super::output::{complain, json, output_path, say};
use super::progress::Progress;

/// `None`: all of the paper's. (An alias, because clap would take an `Option` for an optional
/// argument.)
type OneOrAll = Option<BenchmarkName>;

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi reproduce a --runs 3             one benchmark, a few starts: about ten seconds
  altbi reproduce all --data published   everything, with the authors' files in that folder

The folder holds report.html, tables, figures, and one small file per fit. The same
command goes on after an interruption. With more starts or benchmarks, finished
fits are not repeated. The report covers the starts and benchmarks of the last command.")]
pub struct ReproduceArguments {
    /// a, b, c, d: the paper's benchmarks; poisson: counts of a; all (the default): a to d
    #[arg(default_value = "all", hide_default_value = true, value_parser = one_or_all())]
    benchmark: OneOrAll,
    /// Number of random starts, the same for every method
    #[arg(long, default_value_t = 30)]
    runs: usize,
    /// A folder with the data that the paper's authors published (.mat): their A and B are run too,
    /// and C and D use their signals
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder of the experiment, new or of an unfinished one
    #[arg(long, value_name = "DIR", default_value = "reproduction", value_parser = output_path)]
    out: PathBuf,
    /// Seed of the data (starts have the seeds 1, 2, …)
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// full: 1000×50, and 224×3025 for d; medium: 400×40 and 100×400; small: 120×24 and 48×144, for
    /// a quick test
    #[arg(long, default_value = "full", value_parser = words::<Size>())]
    size: Size,
    /// Number of parallel fits, each on one thread; 0: one per core
    #[arg(long, default_value_t = 0)]
    threads: usize,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
    /// Print only the table, as JSON
    #[arg(long)]
    json: bool,
}

/// One benchmark, or all.
fn one_or_all() -> impl TypedValueParser<Value = OneOrAll> {
    let words = PossibleValuesParser::new(["a", "b", "c", "d", "poisson", "all"]);
    words.try_map(|word| match word.as_str() {
        "all" => Ok(None),
        word => word.parse().map(Some),
    })
}

/// Runs the missing fits, and writes the report.
pub fn reproduce(arguments: &ReproduceArguments) -> Result<Ending> {
    check(arguments)?;
    let all = [
        BenchmarkName::A,
        BenchmarkName::B,
        BenchmarkName::C,
        BenchmarkName::D,
    ];
    let names = arguments.benchmark.map_or(all.to_vec(), |one| vec![one]);
    let size = arguments.size;
    let mut datasets = Vec::new();
    for name in names {
        let published = arguments.data.as_deref();
        datasets.extend(Dataset::all_of(name, size, arguments.seed, published)?);
    }
    let protocol = Protocol {
        runs: arguments.runs,
        ..Protocol::default()
    };
    let silent = arguments.quiet || arguments.json;
    let campaign = Campaign::new(&datasets, protocol)?;
    let show = Arc::new(Show::new(silent));
    let archive = Archive::open(&arguments.out, &campaign)?;
    let ending = campaign.watched(&archive, arguments.threads, show.clone());
    show.progress.clear();
    if ending? == CampaignEnding::Interrupted {
        complain(format!(
            "interrupted; finished fits are kept in {}, and the same command goes on with the rest",
            shell_quoted(archive.path())
        ));
        return Ok(Ending::Interrupted);
    }
    let results = Results::read(archive.path())?;
    let page = ExperimentReport::new(&results)?.write()?;
    if arguments.json {
        say(json(&table(&results)));
    } else if !arguments.quiet {
        print(&results);
        say(format!("written to {}", page.display()));
    }
    Ok(Ending::Done)
}

fn check(arguments: &ReproduceArguments) -> Result<()> {
    check_threads(arguments.threads)?;
    if arguments.size != Size::Full && arguments.data.is_some() {
        return Err(Error::Conflict {
            first: "--size",
            second: "--data",
            reason: "the published data has one size",
        });
    }
    Ok(())
}

/// Mean ± deviation of the SIR, method by method.
fn print(results: &Results) {
    let protocol = &results.protocol;
    for moment in [Moment::Stopped, Moment::Work] {
        say(format!(
            "Mean SIR of W / H in dB over {} starts, {}",
            protocol.runs,
            moment.describe(protocol)
        ));
        let heads = Contender::compared().into_iter().map(|c| c.label);
        let heads: String = heads.map(|label| format!("{label:>16}")).collect();
        say(format!("{:<34}{heads}", ""));
        for dataset in &results.datasets {
            let cell = |contender: Contender| match sir(dataset, &contender.name, moment) {
                [Some(w), Some(h)] => format!("{:>16}", format!("{w:.2} / {h:.2}")),
                _ => format!("{:>16}", "–"),
            };
            let cells: String = Contender::compared().into_iter().map(cell).collect();
            say(format!("{:<34}{cells}", dataset.dataset.title));
        }
        say("");
    }
}

fn sir(dataset: &DatasetResults, contender: &str, moment: Moment) -> [Option<f64>; 2] {
    [Measure::SirW, Measure::SirH].map(|measure| {
        let spread = dataset.spread(contender, moment, measure);
        spread.map(|spread| spread.mean)
    })
}

/// Every measure of every contender at every moment.
fn table(results: &Results) -> serde_json::Value {
    let mut all = serde_json::Map::new();
    for dataset in &results.datasets {
        let mut contenders = serde_json::Map::new();
        for contender in Contender::all() {
            let mut moments = serde_json::Map::new();
            for moment in Moment::ALL {
                let mut measures = serde_json::Map::new();
                for measure in Measure::ALL {
                    if let Some(spread) = dataset.spread(&contender.name, moment, measure) {
                        measures.insert(measure.name().into(), serde_json::json!(spread));
                    }
                }
                if !measures.is_empty() {
                    moments.insert(moment.name().into(), measures.into());
                }
            }
            contenders.insert(contender.name, moments.into());
        }
        all.insert(dataset.dataset.name.clone(), contenders.into());
    }
    all.into()
}

/// Progress is counted in thousandths of the work.
const STEPS: usize = 1000;

/// Shows the progress of all fits in one line.
struct Show {
    progress: Progress,
    found: AtomicUsize,
    interrupted: Arc<AtomicBool>,
}

impl Show {
    fn new(silent: bool) -> Self {
        let progress = Progress::new(silent);
        progress.steps("fitting", STEPS, 0);
        Self {
            progress,
            found: AtomicUsize::new(0),
            interrupted: interruption(),
        }
    }
}

impl Watcher for Show {
    fn progressed(&self, progress: &FitProgress<'_>) {
        let FitProgress {
            dataset,
            start,
            done,
            of,
            ..
        } = progress;
        let steps = |share: f64| (share * STEPS as f64) as usize;
        let found = steps(progress.share_found);
        if self.found.swap(found, Ordering::Relaxed) != found {
            self.progress.steps("fitting", STEPS, found);
        }
        let position = steps(progress.share_done + progress.share_found);
        self.progress.at(position, || {
            format!("fit {done} of {of}, {dataset}, start {start}")
        });
    }

    fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

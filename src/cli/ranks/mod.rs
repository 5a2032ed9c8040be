//! `altbi ranks`: how many components?

mod store;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use altbi::criterion::{OuterError, Unseen};
use altbi::data::{Source, text_fingerprint};
use altbi::divergence::Outer;
use altbi::ranks::{Measure, RankError, RankOutcome, RankSearch, RankSummary};
use altbi::report::{Labels, RankRecords, RankSettings, shell_quoted};
use altbi::{Beta, Divergence, Error, Problem, Result, Scope};
use clap::Args;
use serde::Serialize;

use self::store::Store;
use super::Ending;
use super::checkpoints::interruption;
use super::data::DataArguments;
use super::output::{check_inputs_safe, complain, json, output_path, say};
use super::penalties::{Penalize, PenaltyArguments};
use super::progress::Progress;

/// Arguments of `ranks`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi ranks counts.csv                       ranks 1 to 12 on five splits
  altbi ranks x.npy --from 2 --to 8 --out ranks
  altbi ranks x.npy --tuned --penalize both --penalty smooth --penalty-h l1

The recommendation is the smallest rank whose mean outer error exceeds the lowest by at most
one standard error of the paired differences between the two, over the splits. An interrupted
search with --out goes on when the same command is given again; with other ranks or more
splits, only what is missing is done.")]
pub struct RanksArguments {
    /// The matrix X, as for fit
    data: String,
    /// The first rank
    #[arg(long, value_name = "R", default_value_t = 1)]
    from: usize,
    /// The last rank [default: 12, or min(n, m) where that is less]
    #[arg(long, value_name = "R")]
    to: Option<usize>,
    /// Splits of the data, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 5)]
    splits: usize,
    /// kl, frobenius, is, or beta:<number>
    #[arg(long, default_value = "kl")]
    divergence: Beta,
    /// What the updates do not see: held-out:<fraction> of the entries, thinned:<share> of the
    /// counts, or auto: thinned:0.1 for counts under kl, held-out:0.1 otherwise
    #[arg(long, default_value = "auto")]
    criterion: Unseen,
    /// How the outer error is measured [default: as --divergence; smoothed-kl:0.5 for thinned
    /// counts under kl]
    #[arg(long, value_name = "DIVERGENCE")]
    outer_divergence: Option<Outer>,
    /// Run the preset practical too, with the penalties below
    #[arg(long)]
    tuned: bool,
    #[command(flatten)]
    penalties: PenaltyArguments,
    /// What each λ of --tuned belongs to
    #[arg(long, value_name = "SCOPE", default_value = "hierarchical:1")]
    lambda_scope: Scope,
    /// The first seed, of splits and starts
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Solves at a time; 0 is one for each core
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    #[command(flatten)]
    table: DataArguments,
    /// Keep the report and what it is made of in this folder
    #[arg(long, value_name = "DIR", value_parser = output_path)]
    out: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
    /// Print everything as JSON, and nothing else
    #[arg(long)]
    json: bool,
}

/// The last rank, unless another is asked for.
const LAST: usize = 12;

#[derive(Serialize)]
struct Printed<'a> {
    about: &'a str,
    settings: &'a RankSettings,
    recommended: Option<usize>,
    recommended_tuned: Option<usize>,
    plain: Vec<RankSummary>,
    tuned: Vec<RankSummary>,
    errors: &'a [RankError],
}

/// Runs `ranks`.
pub fn ranks(arguments: &RanksArguments) -> Result<Ending> {
    arguments.check()?;
    let progress = Progress::new(arguments.quiet || arguments.json);
    let interrupted = interruption();
    progress.begin("reading the data");
    let source = Source::from(arguments.data.as_str());
    let quiet = arguments.quiet || arguments.json;
    let mut data = arguments.table.read(&source, quiet)?;
    let of_data = data.fingerprint();
    let problem = data.problem(&arguments.table)?;
    let search = arguments.search(&problem, &data.labels);
    search.check(&problem)?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.threads)
        .build();
    let pool = pool.map_err(|error| Error::Threads {
        threads: arguments.threads,
        reason: error.to_string(),
    })?;
    let outer = search.decided(&problem);
    let records = arguments.records(&problem, outer, &of_data)?;
    let store = Store::open(arguments.out.as_deref(), records)?;
    let (pairs, known) = (search.pairs(), store.known());
    let found = pairs
        .iter()
        .filter(|pair| known.iter().any(|error| error.pair() == **pair));
    let found = found.count();
    progress.steps("comparing ranks", pairs.len(), found);
    let count = AtomicUsize::new(found);
    let done = |error: &RankError| {
        store.keep(error);
        let count = count.fetch_add(1, Ordering::Relaxed) + 1;
        progress.at(count, || {
            format!("rank {}, split {}", error.rank, error.split)
        });
    };
    let searched = pool.install(|| search.watched(&problem, &known, &done, &interrupted));
    progress.clear();
    let searched = searched?;
    store.failure()?;
    if searched.errors.len() < pairs.len() {
        match &arguments.out {
            Some(out) => complain(format!(
                "interrupted; what is done is kept in {}, and the same command goes on with the rest",
                shell_quoted(out)
            )),
            None => complain("interrupted; nothing is kept, because no --out was given"),
        }
        return Ok(Ending::Interrupted);
    }
    let records = store.finished()?;
    let out = arguments.out.as_deref();
    let page = out.map(|out| records.write_report(out)).transpose()?;
    let outcome = records.outcome();
    if arguments.json {
        say(json(&Printed {
            about: &records.about,
            settings: &records.settings,
            recommended: records.recommended,
            recommended_tuned: records.recommended_tuned,
            plain: outcome.summaries(Measure::Plain),
            tuned: outcome.summaries(Measure::Tuned),
            errors: &outcome.errors,
        }));
    } else if !arguments.quiet {
        say(&records.about);
        print(&outcome);
        if found > 0 {
            say(format!("{found} of {} pairs were done before", pairs.len()));
        }
        if let Some(page) = page {
            say(format!("written to {}", page.display()));
        }
    }
    Ok(Ending::Done)
}

impl RanksArguments {
    /// Refuses what needs no look at the data.
    fn check(&self) -> Result<()> {
        let penalties = &self.penalties;
        let of_penalties = penalties.penalty != "l1"
            || penalties.penalize != Penalize::W
            || penalties.penalty_h.is_some()
            || penalties.graphs.graph.is_some()
            || penalties.graphs.graph_h.is_some();
        if of_penalties && !self.tuned {
            return Err(Error::Conflict {
                first: "penalties",
                second: "plain updates",
                reason: "only --tuned has penalties; say it too",
            });
        }
        if self.threads > 1024 {
            return Err(Error::Setting {
                setting: "the number of threads",
                value: self.threads as f64,
                range: "at most 1024",
            });
        }
        let Some(out) = &self.out else {
            return Ok(());
        };
        let data = self.table.inputs(Some(&self.data));
        let graphs = penalties.graphs.files();
        let graphs = graphs.map(|(_, file)| PathBuf::from(file));
        check_inputs_safe(out, data.into_iter().chain(graphs))
    }

    fn last(&self, problem: &Problem) -> usize {
        let [n, m] = problem.shape();
        self.to.unwrap_or(LAST.max(self.from).min(n.min(m)))
    }

    fn search<'a>(&'a self, problem: &Problem, labels: &'a Labels) -> RankSearch<'a> {
        let outer = OuterError {
            unseen: self.criterion,
            divergence: self.outer_divergence,
        };
        let search = RankSearch::new(self.from..=self.last(problem), self.divergence)
            .with_splits(self.splits)
            .with_seed(self.seed)
            .with_outer_error(outer);
        if !self.tuned {
            return search;
        }
        let penalties = |split: &Problem| self.penalties.terms_for(split, Some(labels));
        search.with_penalties(penalties, self.lambda_scope)
    }

    /// Records without any pair.
    fn records(&self, problem: &Problem, outer: OuterError, of_data: &str) -> Result<RankRecords> {
        let tuned = self.tuned.then(|| {
            let penalties = self.penalties.describe();
            format!("{penalties}, λ: {}", self.lambda_scope)
        });
        let mut text = format!(
            "{of_data} {} {} {} {outer} {} {tuned:?}",
            self.table.dtype,
            self.table.zeros,
            self.divergence.name(),
            self.seed
        );
        if self.tuned {
            text += &format!("{:?}", self.penalties);
            for (_, file) in self.penalties.graphs.files() {
                let edges = std::fs::read(file).map_err(|source| Error::Read {
                    path: file.into(),
                    source,
                })?;
                text += &text_fingerprint(&String::from_utf8_lossy(&edges));
            }
        }
        let settings = RankSettings {
            from: self.from,
            to: self.last(problem),
            splits: self.splits,
            seed: self.seed,
            divergence: self.divergence.name(),
            outer: outer.to_string(),
            penalties: tuned,
        };
        let [n, m] = problem.shape();
        let of_tuned = settings.penalties.as_ref();
        let of_tuned = of_tuned.map_or(String::new(), |tuned| format!("; tuned: {tuned}"));
        let about = format!(
            "{}, {n}×{m}, ranks {} to {}, {} divergence; {} splits from seed {}; outer error \
             {outer}{of_tuned}.",
            self.data,
            settings.from,
            settings.to,
            settings.divergence,
            settings.splits,
            settings.seed
        );
        Ok(RankRecords {
            fingerprint: text_fingerprint(&text),
            about,
            settings,
            recommended: None,
            recommended_tuned: None,
            done: RankOutcome::default(),
        })
    }
}

/// The table, rank by rank.
fn print(outcome: &RankOutcome) {
    let mut measures = vec![(Measure::Plain, "plain")];
    if outcome.is_tuned() {
        measures.push((Measure::Tuned, "tuned"));
    }
    for (measure, name) in measures {
        let recommended = outcome.recommended(measure);
        say(format!(
            "\n{:<6}{name:>12}{:>16}{:>18}{:>16}",
            "rank", "standard error", "above the lowest", "its error"
        ));
        let number = |error: Option<f64>| error.map_or("–".into(), |of| format!("{of:.2e}"));
        for row in outcome.summaries(measure) {
            let mark = if recommended == Some(row.rank) {
                "  ← recommended"
            } else {
                ""
            };
            say(format!(
                "{:<6}{:>12.6}{:>16}{:>18.2e}{:>16}{mark}",
                row.rank,
                row.mean,
                number(row.standard_error),
                row.excess,
                number(row.excess_error)
            ));
        }
    }
}

//! `altbi ranks`: how many components?

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::criterion::OuterError;
use crate::data::{Source, text_fingerprint};
use crate::plot::short;
use crate::ranks::{RankBy, RankError, RankOutcome, RankSearch, RankSummary};
use crate::report::{KeptRecords, Labels, RankRecords, RankSettings, data_name};
use crate::{Divergence, Error, Problem, Result};
use clap::Args;
use serde::Serialize;

use super::Ending;
use super::checkpoints::interruption;
use super::output::{json, say};
use super::penalties::Penalize;
use super::progress::Progress;
use super::search::{PROCEDURE, SearchArguments};
use super::store::Store;

/// Arguments of `ranks`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi ranks counts.csv                       ranks 1 to 12 on five splits
  altbi ranks x.npy --from 2 --to 8 --out ranks
  altbi ranks x.npy --tuned --penalize both --penalty smooth --penalty-h l1

The recommended rank is the smallest one whose mean outer error exceeds the lowest by at most
one standard error of the paired differences between the two, over the splits. With --out the
same command goes on after an interruption; with other ranks or more splits it computes only
the missing pairs.")]
pub struct RanksArguments {
    /// The matrix X, as for fit
    data: String,
    /// The first rank
    #[arg(long, value_name = "R", default_value_t = 1)]
    from: usize,
    /// The last rank [default: 12, or min(n, m) if that is less]
    #[arg(long, value_name = "R")]
    to: Option<usize>,
    /// Number of splits of the data, each with its own seed
    #[arg(long, value_name = "N", default_value_t = 5)]
    splits: usize,
    /// Also run the preset practical, with the penalties below
    #[arg(long)]
    tuned: bool,
    #[command(flatten)]
    search: SearchArguments,
}

/// The default of the last rank.
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
    let common = &arguments.search;
    let quiet = common.quiet || common.json;
    let progress = Progress::new(quiet);
    let interrupted = interruption();
    progress.begin("reading the data");
    let source = Source::from(arguments.data.as_str());
    let mut data = common.table.read(&source, quiet)?;
    let of_data = data.fingerprint();
    let problem = data.problem(&common.table)?;
    let search = arguments.search(&problem, &data.labels);
    search.check(&problem)?;
    let pool = common.pool()?;
    let outer = search.decided(&problem);
    let records = arguments.records(&problem, outer, &of_data)?;
    let out = common.out.as_deref();
    let foreign = "it has no ranks.json that altbi ranks wrote";
    let store = Store::open(out, records, ("ranks.lock", foreign), |records, kept| {
        records.done = kept.done;
        records.fingerprint == kept.fingerprint
    })?;
    let (pairs, known) = (search.pairs(), store.records()?.done.errors);
    let found = pairs
        .iter()
        .filter(|pair| known.iter().any(|error| error.pair() == **pair));
    let found = found.count();
    progress.steps("comparing ranks", pairs.len(), found);
    let count = AtomicUsize::new(found);
    let done = |error: &RankError| {
        store.keep(|records| {
            let known = std::mem::take(&mut records.done.errors);
            records.done = RankOutcome::new(known.into_iter().chain([error.clone()]));
        });
        let count = count.fetch_add(1, Ordering::Relaxed) + 1;
        progress.at(count, || {
            format!("rank {}, split {}", error.rank, error.split)
        });
    };
    let searched = pool.install(|| search.watched(&problem, &known, &done, &interrupted));
    progress.clear();
    let searched = searched?;
    let mut records = store.records()?;
    if searched.errors.len() < pairs.len() {
        return Ok(common.interrupted("what is done is"));
    }
    let outcome = records.outcome();
    records.recommended = outcome.recommended(RankBy::Plain);
    records.recommended_tuned = outcome.recommended(RankBy::Tuned);
    let page = out.map(|out| {
        records.write(out)?;
        records.write_report(out)
    });
    let page = page.transpose()?;
    if common.json {
        say(json(&Printed {
            about: &records.about,
            settings: &records.settings,
            recommended: records.recommended,
            recommended_tuned: records.recommended_tuned,
            plain: outcome.summaries(RankBy::Plain),
            tuned: outcome.summaries(RankBy::Tuned),
            errors: &outcome.errors,
        }));
    } else if !common.quiet {
        say(&records.about);
        say(records.answer());
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
    /// Refuses bad flags before the data are read.
    fn check(&self) -> Result<()> {
        let penalties = &self.search.penalties;
        let of_penalties = penalties.penalty != "l1"
            || penalties.penalize != Penalize::W
            || penalties.penalty_h.is_some()
            || penalties.graphs.graph.is_some()
            || penalties.graphs.graph_h.is_some();
        if of_penalties && !self.tuned {
            return Err(Error::Conflict {
                first: "penalties",
                second: "plain updates",
                reason: "only --tuned has penalties; add it",
            });
        }
        self.search.check(Some(&self.data), [])
    }

    fn last(&self, problem: &Problem) -> usize {
        let [n, m] = problem.shape();
        self.to.unwrap_or(LAST.max(self.from).min(n.min(m)))
    }

    fn search<'a>(&'a self, problem: &Problem, labels: &'a Labels) -> RankSearch<'a> {
        let search = RankSearch::new(self.from..=self.last(problem), self.search.divergence)
            .with_splits(self.splits)
            .with_seed(self.search.seed)
            .with_outer_error(self.search.outer());
        if !self.tuned {
            return search;
        }
        let penalties = |split: &Problem| self.search.penalties.terms_for(split, Some(labels));
        search.with_penalties(penalties, self.search.lambda_scope)
    }

    /// Records without any pair.
    fn records(&self, problem: &Problem, outer: OuterError, of_data: &str) -> Result<RankRecords> {
        let common = &self.search;
        let tuned = self.tuned.then(|| {
            let penalties = common.penalties.describe();
            format!("{penalties}, λ: {}", common.lambda_scope)
        });
        let mut text = format!(
            "{PROCEDURE} {of_data} {} {} {} {outer} {} {tuned:?}",
            common.table.dtype,
            common.table.zeros,
            common.divergence.name(),
            common.seed
        );
        if self.tuned {
            text += &format!("{:?}", common.penalties);
            for (_, file) in common.penalties.graphs.files() {
                let edges = std::fs::read(file).map_err(Error::reading(file.as_ref()))?;
                text += &text_fingerprint(&String::from_utf8_lossy(&edges));
            }
        }
        let settings = RankSettings {
            from: self.from,
            to: self.last(problem),
            splits: self.splits,
            seed: common.seed,
            divergence: common.divergence.name(),
            outer: outer.to_string(),
            penalties: tuned,
        };
        let [n, m] = problem.shape();
        let of_tuned = settings.penalties.as_ref();
        let of_tuned = of_tuned.map_or(String::new(), |tuned| format!("; tuned: {tuned}"));
        let about = format!(
            "{}, {n}×{m}, ranks {} to {}, {} divergence; {} splits from seed {}; outer error \
             {outer}{of_tuned}.",
            data_name(Some(&self.data)),
            settings.from,
            settings.to,
            settings.divergence,
            settings.splits,
            settings.seed
        );
        Ok(RankRecords {
            fingerprint: text_fingerprint(&text),
            data: data_name(Some(&self.data)),
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
    let mut measures = vec![(RankBy::Plain, "plain")];
    if outcome.is_tuned() {
        measures.push((RankBy::Tuned, "tuned"));
    }
    for (measure, name) in measures {
        let recommended = outcome.recommended(measure);
        say(format!(
            "\nouter error per entry, {name}\n{:<6}{:>12}{:>16}{:>18}{:>16}",
            "rank", "mean", "standard error", "above the lowest", "its error"
        ));
        let number = |error: Option<f64>| error.map_or("–".into(), short);
        for row in outcome.summaries(measure) {
            let mark = if recommended == Some(row.rank) {
                "  ← recommended"
            } else {
                ""
            };
            say(format!(
                "{:<6}{:>12}{:>16}{:>18}{:>16}{mark}",
                row.rank,
                short(row.mean),
                number(row.standard_error),
                short(row.excess),
                number(row.excess_error)
            ));
        }
    }
}

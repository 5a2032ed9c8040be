//! `altbi compare`: other ways to choose λ, at equal budget.

mod show;
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use altbi::data::{
    Benchmark, Noise, Source, benchmark_a, benchmark_b, benchmark_c, benchmark_d, fingerprint,
    read_matrix, text_fingerprint,
};
use altbi::report::{ratio, shell_quoted, write_contest};
use altbi::tuner::{Contest, Judge, RIVALS, Rival, Standing, Task, contest};
use altbi::{Beta, Divergence, Error, Result, Scope};
use clap::{Args, ValueEnum};

use self::show::Show;
use self::store::Store;
use super::Ending;
use super::arguments::{DataArguments, PenaltyArguments, PrecisionName, divergence_name};
use super::output::{complain, json, say};

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi compare --penalize both --penalty smooth --penalty-h l1 --out compare
                                      noisy benchmark B, all rivals, ten runs
  altbi compare --benchmark d --divergence frobenius --penalty smooth --runs 3
  altbi compare x.npy --rank 6 --penalty smooth --out compare
                                      your data; a tenth of it judges, unseen by all
  altbi compare x.npy --rank 6 --rivals plain,path,tpe

An interrupted comparison with --out goes on when the same command is given again.")]
pub struct CompareArguments {
    /// The matrix X, as for fit; without it, a benchmark with noise
    data: Option<String>,
    /// The benchmark, with the noise that the divergence is made for
    #[arg(long, default_value = "b", conflicts_with = "data")]
    benchmark: CleanBenchmark,
    /// Size of the benchmark; small: 120×24, and 48×144 for d; medium: 400×40, 100×400;
    /// full: 1000×50, 224×3025
    #[arg(long, default_value = "medium", conflicts_with = "data")]
    size: BenchmarkSize,
    /// Number of components r [default: the benchmark's own]
    #[arg(long)]
    rank: Option<usize>,
    /// kl, frobenius, is, or beta:<number>
    #[arg(long, default_value = "kl", value_parser = divergence_name)]
    divergence: Beta,
    #[command(flatten)]
    penalties: PenaltyArguments,
    /// What each λ of practical belongs to
    #[arg(long, value_name = "SCOPE", default_value = "hierarchical:1", value_parser = Scope::by_name)]
    lambda_scope: Scope,
    /// What the rivals choose: one number for each penalty (shared) or for each of its
    /// components
    #[arg(long, value_name = "SCOPE", default_value = "shared", value_parser = Scope::by_name)]
    rival_scope: Scope,
    /// Share of the entries that are held out, for choosing
    #[arg(
        long,
        value_name = "FRACTION",
        default_value_t = 0.1,
        allow_negative_numbers = true
    )]
    held_out: f64,
    /// Share of the entries of DATA that nobody sees, for judging; 0: nobody judges
    /// [default: 0.1]
    #[arg(
        long,
        value_name = "FRACTION",
        allow_negative_numbers = true,
        conflicts_with = "truth",
        requires = "data"
    )]
    test: Option<f64>,
    /// The matrix without noise, a file like DATA, for judging
    #[arg(long, value_name = "FILE", requires = "data")]
    truth: Option<String>,
    /// Rivals, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_parser = Rival::by_name)]
    rivals: Vec<Rival>,
    /// Updates that each rival may make [default: as many as practical makes]
    #[arg(long, value_name = "N")]
    budget: Option<usize>,
    /// Runs, each with a seed of its own for noise, start and held-out entries
    #[arg(long, value_name = "N", default_value_t = 10)]
    runs: usize,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Runs at a time; 0 is one for each core
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    #[command(flatten)]
    table: DataArguments,
    /// Keep the report and what it is made of in this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
    /// Print all standings as JSON, and nothing else
    #[arg(long)]
    json: bool,
}

/// `--benchmark`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CleanBenchmark {
    A,
    B,
    C,
    D,
}

/// `--size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BenchmarkSize {
    Small,
    Medium,
    Full,
}

impl CompareArguments {
    fn benchmark(&self, seed: u64) -> Benchmark {
        let (n, m, bands, side) = match self.size {
            BenchmarkSize::Small => (120, 24, 48, 12),
            BenchmarkSize::Medium => (400, 40, 100, 20),
            BenchmarkSize::Full => (1000, 50, 224, 55),
        };
        match self.benchmark {
            CleanBenchmark::A => benchmark_a(n, m, 4, seed),
            CleanBenchmark::B => benchmark_b(n, m, 4, seed),
            CleanBenchmark::C => benchmark_c(n, m, 5, seed),
            CleanBenchmark::D => benchmark_d(bands, side, 5, seed),
        }
    }

    fn tasks(&self) -> Result<Vec<Task>> {
        let divergence: Arc<dyn Divergence> = Arc::new(self.divergence);
        let terms = self.penalties.terms()?;
        let seeds = (0..self.runs as u64).map(|run| self.seed.wrapping_add(run));
        let Some(data) = &self.data else {
            let conflict = |first, reason| {
                Err(Error::Conflict {
                    first,
                    second: "a benchmark",
                    reason,
                })
            };
            if self.table.mask.is_some() {
                return conflict("--mask", "a mask belongs to data; give DATA too");
            }
            if self.table.dtype != PrecisionName::F64 {
                return conflict("--dtype f32", "benchmarks are made in 64 bits; give DATA");
            }
            let noise = Noise::of_beta(self.divergence.0);
            let tasks = seeds.map(|seed| {
                let clean = self.benchmark(seed);
                let rank = self.rank.unwrap_or(clean.w.ncols());
                let (divergence, terms) = (divergence.clone(), terms.clone());
                Task::of_benchmark(&clean, noise, self.held_out, rank, divergence, terms, seed)
            });
            return tasks.collect();
        };
        let rank = self.rank.ok_or(Error::RankMissing)?;
        let source = Source::from(data.as_str());
        let problem = self.table.problem(&mut self.table.read(&source)?)?;
        problem.check_domain(divergence.as_ref())?;
        let truth = self.truth.as_ref().map(|path| read_matrix(Path::new(path)));
        let truth = truth.transpose()?;
        if let Some(truth) = &truth {
            let found = [truth.nrows(), truth.ncols()];
            if found != problem.shape() {
                return Err(Error::Shape {
                    what: "the truth",
                    expected: problem.shape(),
                    found,
                });
            }
        }
        let test = match &truth {
            Some(_) => 0.0,
            None => self.test.unwrap_or(0.1),
        };
        let tasks = seeds.map(|seed| {
            let (divergence, terms) = (divergence.clone(), terms.clone());
            let problem = problem.clone();
            let task = Task::of_data(problem, self.held_out, test, rank, divergence, terms, seed);
            task.map(|mut task| {
                if let Some(truth) = &truth {
                    task.judge = Judge::Truth(truth.clone());
                }
                task
            })
        });
        tasks.collect()
    }

    fn rivals(&self) -> Vec<Rival> {
        if self.rivals.is_empty() {
            return RIVALS.to_vec();
        }
        // Errors are told relative to plain.
        let mut rivals = vec![Rival::Practical, Rival::Plain];
        for rival in &self.rivals {
            if !rivals.contains(rival) {
                rivals.push(*rival);
            }
        }
        rivals
    }

    /// In a sentence.
    fn about(&self, tasks: &[Task]) -> String {
        let data = match &self.data {
            Some(data) => data.clone(),
            None => format!(
                "Benchmark {:?} with noise ({:?})",
                self.benchmark,
                Noise::of_beta(self.divergence.0)
            ),
        };
        let [n, m] = tasks.first().map_or([0, 0], |task| task.full.shape());
        let rank = tasks.first().map_or(0, |task| task.rank);
        format!(
            "{data}, {n}×{m}, r = {rank}, {} divergence, {}; {} runs from seed {}; {} of the \
             entries held out; λ of practical: {}, dials of the rivals: {}.",
            self.divergence.name(),
            self.penalties.describe(),
            self.runs,
            self.seed,
            self.held_out,
            self.lambda_scope.name(),
            self.rival_scope.name(),
        )
    }

    fn check(&self) -> Result<()> {
        let range = |ok: bool, setting, value, range| {
            if ok {
                return Ok(());
            }
            Err(Error::Setting {
                setting,
                value,
                range,
            })
        };
        range(self.runs > 0, "the number of runs", 0.0, "at least 1")?;
        let test = self.test.unwrap_or(0.0);
        let ok = (0.0..=0.5).contains(&test);
        range(ok, "the test fraction", test, "from 0 to 0.5")?;
        let threads = self.threads <= 1024;
        let count = self.threads as f64;
        range(threads, "the number of threads", count, "at most 1024")?;
        let budget = self.budget.unwrap_or(1) as f64;
        range(budget > 0.0, "the budget", budget, "at least 1")
    }
}

/// Runs `compare`.
pub fn compare(arguments: &CompareArguments) -> Result<Ending> {
    arguments.check()?;
    let tasks = arguments.tasks()?;
    let rivals = arguments.rivals();
    let about = arguments.about(&tasks);
    let show = Show::new(
        arguments.quiet || arguments.json,
        tasks.len() * rivals.len(),
    );
    let store = Store::open(
        arguments.out.as_deref(),
        &arguments.fingerprint(&tasks, &about),
        rivals.len(),
    )?;
    let missing: Vec<Task> = tasks
        .iter()
        .filter(|task| !store.has(task.seed))
        .cloned()
        .collect();
    show.found((tasks.len() - missing.len()) * rivals.len());
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(arguments.threads)
        .build();
    let pool = pool.map_err(|error| Error::Threads {
        threads: arguments.threads,
        reason: error.to_string(),
    })?;
    let done = |standing: &Standing| {
        show.done(standing);
        store.keep(standing);
    };
    let going = || !show.interrupted.load(Ordering::Relaxed);
    let budget = arguments.budget.map(|updates| updates as f64);
    let (scope, dials) = (arguments.lambda_scope, arguments.rival_scope);
    pool.install(|| contest(&missing, &rivals, scope, dials, budget, &done, &going))?;
    let all = store.finished()?;
    if show.interrupted.load(Ordering::Relaxed) {
        match &arguments.out {
            Some(out) => complain(format!(
                "interrupted; finished runs are kept in {}, and the same command goes on with the rest",
                shell_quoted(out)
            )),
            None => complain("interrupted; nothing is kept, because no --out was given"),
        }
        return Ok(Ending::Interrupted);
    }
    let page = match &arguments.out {
        Some(out) => Some(write_contest(&all, &about, out)?),
        None => None,
    };
    if arguments.json {
        say(json(&all));
    } else if !arguments.quiet {
        say(&about);
        print(&all);
        if let Some(page) = page {
            say(format!("written to {}", page.display()));
        }
    }
    Ok(Ending::Done)
}

impl CompareArguments {
    /// What tells this comparison from any other: settings and data.
    fn fingerprint(&self, tasks: &[Task], about: &str) -> String {
        let mut text = format!(
            "{about} {:?} {:?} {:?}",
            self.rivals, self.budget, self.table.dtype
        );
        for task in tasks {
            text += &fingerprint(task.full.x());
            text += &task.split.mask().map(fingerprint).unwrap_or_default();
            match &task.judge {
                Judge::Nobody => {}
                Judge::Truth(truth) => text += &fingerprint(truth),
                Judge::Test(_, weights) => text += &fingerprint(weights),
            }
        }
        text_fingerprint(&text)
    }
}

/// Errors relative to plain, rival by rival.
fn print(contest: &Contest) {
    let deciding = contest.deciding();
    say("\nErrors relative to plain updates stopped early (geometric mean ± standard error):");
    say(format!(
        "{:<13}{:>16}{:>16}{:>16}{:>20}{:>8}{:>9}{:>9}",
        "rival",
        "held out",
        "judged",
        "after refit",
        "practical / rival",
        "p",
        "updates",
        "seconds"
    ));
    for rival in contest.ranking(deciding) {
        let to_plain =
            |measure: fn(&Standing) -> f64| ratio(contest.compared(rival, Rival::Plain, measure));
        let against = contest
            .compared(Rival::Practical, rival, deciding)
            .filter(|_| rival != Rival::Practical);
        let p = against.map_or("–".into(), |against| format!("{:.3}", against.p));
        let mean = |measure: fn(&Standing) -> f64| {
            contest.mean(rival, measure).map_or(f64::NAN, |of| of.mean)
        };
        say(format!(
            "{:<13}{:>16}{:>16}{:>16}{:>20}{p:>8}{:>9.0}{:>9.2}",
            rival.name(),
            to_plain(|standing| standing.held_out),
            to_plain(|standing| standing.judged),
            to_plain(|standing| standing.refit),
            ratio(against),
            mean(|standing| standing.work),
            mean(|standing| standing.seconds),
        ));
    }
}

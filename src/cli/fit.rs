//! `altbi fit` and `altbi resume`: factorise a matrix.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use altbi::data::{Benchmark, Source, Table, demo, fingerprint, text_fingerprint};
use altbi::metrics::{Recovery, recovery};
use altbi::report::{Labels, RunFolder, RunRecords, Summary};
use altbi::{
    AltBiConfig, Beta, Checkpoint, CheckpointFault, Divergence, Error, GivenFactors, LambdaStart,
    LambdaStep, Outcome, Result, Solver, StopReason, penalty,
};
use clap::{Args, ValueEnum};

use super::Ending;
use super::arguments::{
    DataArguments, ExponentName, InitialName, LambdaArgument, MethodName, ModeName,
    NormalizationName, divergence_name, lambda_step, lambda_step_text, penalty_name, read_lambda,
    read_optional, word,
};
use super::checkpoints::Checkpoints;
use super::config_file;
use super::output::{json, say};
use super::progress::Progress;

/// Arguments of `fit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi fit                                     the demo, with a summary
  altbi fit x.npy --rank 5 --out run            your data, results in the folder run
  altbi fit x.csv --rank 5 --divergence is --penalty l2 --exponent monotone
  altbi fit x.npy --rank 5 --method mu-t        the baseline that AltBi must beat
  altbi fit data.mat:X --rank 4                 a matrix of a MATLAB file
  altbi fit --config run/config.toml            the same run again

Baselines pass over the flags that they have no use for.")]
pub struct FitArguments {
    /// The matrix X: .npy, .csv, .tsv, .mat (file.mat:NAME), or - for .csv on
    /// standard input; without it, the embedded demo (benchmark A, 1000×50)
    data: Option<String>,
    /// Number of components r
    #[arg(long)]
    rank: Option<usize>,
    /// AltBi or a baseline
    #[arg(long, default_value = "altbi")]
    method: MethodName,
    /// kl, frobenius, is, or beta:<number>
    #[arg(long, default_value = "kl", value_parser = divergence_name)]
    divergence: Beta,
    /// l1, l2, group, l21, hoyer, smooth, or none
    #[arg(long, default_value = "l1", value_parser = penalty_name)]
    penalty: String,
    /// Updates of W per update of H, T
    #[arg(long, value_name = "T", default_value_t = 4)]
    bunch: usize,
    /// Exponent of the updates: 1, or the one that keeps the objective from rising
    #[arg(long, default_value = "one")]
    exponent: ExponentName,
    /// Where λ starts: auto, a number for every row, or a file with one per row
    #[arg(long, default_value = "auto", allow_negative_numbers = true)]
    lambda: LambdaArgument,
    /// Step size of λ: inv-iter (1/iteration, the paper) or constant:<number>
    #[arg(long, default_value = "inv-iter", value_parser = lambda_step)]
    lambda_step: LambdaStep,
    /// Upper end of the interval that λ is kept in
    #[arg(long, value_name = "X", default_value_t = f64::INFINITY, allow_negative_numbers = true)]
    lambda_max: f64,
    /// How the hypergradient is computed
    #[arg(long, default_value = "reverse")]
    hypergradient: ModeName,
    /// Rescale inside the loop, so that W's penalty cannot be evaded by scale
    #[arg(long, default_value = "none")]
    normalize: NormalizationName,
    /// Outer iterations at most
    #[arg(long, value_name = "N", default_value_t = 1000)]
    max_iter: usize,
    /// Stop when the divergence changes by less than this, relative to the start
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true)]
    tol: f64,
    /// A named set of settings; paper: the defaults
    #[arg(long, default_value = "paper")]
    preset: Preset,
    /// How W and H are found at the start
    #[arg(long, default_value = "random")]
    init: InitialName,
    /// Seed of the random start
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// W at the start, n×r, a file like DATA; random without it
    #[arg(long, value_name = "FILE")]
    init_w: Option<String>,
    /// H at the start, r×m, a file like DATA; random without it
    #[arg(long, value_name = "FILE")]
    init_h: Option<String>,
    #[command(flatten)]
    table: DataArguments,
    /// Settings from a file, under the flags that are typed
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// Keep results, report and checkpoints in this new folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// csv: W and H also as tables with the data's labels
    #[arg(long, default_value = "npy")]
    format: Format,
    /// Iterations between two checkpoints; without it, about every 10 seconds
    #[arg(long, value_name = "N")]
    checkpoint_every: Option<usize>,
    /// Replace an existing run folder
    #[arg(long)]
    force: bool,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
    /// Print the summary as JSON, and nothing else
    #[arg(long)]
    json: bool,
}

/// `--preset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Preset {
    Paper,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Npy,
    Csv,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  altbi resume run

The result is the one the unbroken run would have given, to the bit.")]
pub struct ResumeArguments {
    /// The folder of an interrupted run
    folder: PathBuf,
    /// Print nothing but errors
    #[arg(long)]
    quiet: bool,
    /// Print the summary as JSON, and nothing else
    #[arg(long)]
    json: bool,
}

/// Runs `fit`.
pub fn fit(arguments: FitArguments) -> Result<Ending> {
    let arguments = match &arguments.config {
        Some(path) => {
            // Everything behind `altbi fit`, as it was typed.
            let typed: Vec<OsString> = std::env::args_os().skip(2).collect();
            config_file::arguments_from(path, &typed)?
        }
        None => arguments,
    };
    let folder = arguments.out.as_deref();
    let folder = folder.map(|path| RunFolder::new(path, arguments.force));
    Run::new(&arguments, folder.transpose()?)?.execute(None)
}

/// Runs `resume`.
pub fn resume(arguments: &ResumeArguments) -> Result<Ending> {
    let folder = RunFolder::open(&arguments.folder)?;
    let bytes = folder.read_checkpoint()?;
    let config = folder.read_config()?;
    let path = folder.path().join("config.toml");
    let mut settings = config_file::parse(&config, &path, &[])?;
    settings.quiet = arguments.quiet;
    settings.json = arguments.json;
    let checkpoint = Checkpoint::decode(&bytes)?;
    if checkpoint.settings_hash != text_fingerprint(&config) {
        return Err(CheckpointFault::OtherSettings.into());
    }
    let mut run = Run::new(&settings, Some(folder))?;
    run.config = config;
    if checkpoint.data_hash != run.data_hash {
        return Err(CheckpointFault::OtherData.into());
    }
    run.execute(Some(checkpoint))
}

/// A run about to begin: its data read, its settings fixed.
struct Run<'a> {
    arguments: &'a FitArguments,
    folder: Option<RunFolder>,
    table: Table,
    truth: Option<Benchmark>,
    data_hash: String,
    solver: AltBiConfig,
    /// The text of `config.toml`.
    config: String,
}

impl<'a> Run<'a> {
    fn new(arguments: &'a FitArguments, folder: Option<RunFolder>) -> Result<Self> {
        let source = arguments.data.as_deref().map(Source::from);
        let (table, truth) = match &source {
            Some(source) => (arguments.table.read(source)?, None),
            None => {
                let demo = demo();
                (Table::from(demo.x.clone()), Some(demo))
            }
        };
        let solver = arguments.solver_config(truth.as_ref())?;
        // What came through a pipe is kept with the run, so that it can go on.
        let source = match (source, &folder) {
            (Some(Source::StandardInput), Some(folder)) => {
                let copy = folder.path().join("data.csv");
                Some(Source::from(copy.to_string_lossy().as_ref()))
            }
            (source, _) => source,
        };
        let config = arguments.config_text(source.as_ref(), solver.rank);
        Ok(Self {
            data_hash: fingerprint(&table.values),
            arguments,
            folder,
            table,
            truth,
            solver,
            config,
        })
    }

    fn execute(&self, checkpoint: Option<Checkpoint>) -> Result<Ending> {
        let arguments = self.arguments;
        let problem = arguments.table.problem(&self.table)?;
        let mut solver = self.solver()?;
        let mut checkpoints = Checkpoints::new(
            self.folder.clone(),
            &self.config,
            &self.data_hash,
            &text_fingerprint(&self.config),
            arguments.checkpoint_every,
        )
        .with_data(self.data_to_keep());
        if let Some(checkpoint) = &checkpoint {
            let story = checkpoint.restore(&problem)?;
            checkpoints = checkpoints.resumed(story.history, story.lambda_at_start);
        }
        let aftermath = checkpoints.aftermath();
        solver = solver.observe(checkpoints);
        if !arguments.quiet && !arguments.json {
            solver = solver.observe(Progress::new(arguments.max_iter));
        }
        let result = match &checkpoint {
            Some(checkpoint) => solver.resume(&problem, checkpoint),
            None => solver.run(&problem),
        };
        // The progress bar goes before anything else is printed.
        drop(solver);
        let mut aftermath = aftermath.take();
        if let Some(error) = aftermath.error.take() {
            return Err(error);
        }
        // A run that broke down still has the state before it did.
        let (outcome, broken) = match result {
            Err(error @ (Error::NotFinite { last: Some(_), .. } | Error::Stopped { .. })) => {
                let message = error.to_string();
                let last = match error {
                    Error::NotFinite {
                        last: Some(last), ..
                    }
                    | Error::Stopped { last, .. } => last,
                    _ => unreachable!("matched above"),
                };
                (*last, Some(message))
            }
            other => (other?, None),
        };
        if outcome.stop_reason == StopReason::Interrupted {
            return Ok(self.interrupted(&outcome));
        }
        self.finish(&outcome, aftermath.folder_made)?;
        match broken {
            Some(message) => {
                eprintln!("error: {message}");
                Ok(Ending::CheckFailed)
            }
            None => Ok(Ending::Done),
        }
    }

    fn solver(&self) -> Result<Solver> {
        let arguments = self.arguments;
        let given = GivenFactors {
            w: read_optional(arguments.init_w.as_ref())?,
            h: read_optional(arguments.init_h.as_ref())?,
        };
        let penalty = penalty::by_name(&arguments.penalty)?;
        let solver = self
            .solver
            .solver(arguments.divergence, penalty)
            .with_factors(given);
        Ok(match &arguments.lambda {
            LambdaArgument::File(path) => solver.with_lambda(read_lambda(path)?),
            LambdaArgument::Auto | LambdaArgument::Value(_) => solver,
        })
    }

    /// A copy of what came through standard input.
    fn data_to_keep(&self) -> Option<String> {
        let piped = self.arguments.data.as_deref() == Some("-");
        piped.then(|| self.table.to_csv())
    }

    fn interrupted(&self, outcome: &Outcome) -> Ending {
        let done = outcome.iterations;
        match &self.folder {
            Some(folder) => eprintln!(
                "interrupted after {done} iterations; go on with\n  altbi resume {}",
                folder.path().display()
            ),
            None => eprintln!(
                "interrupted after {done} iterations; nothing is kept, because no --out was given"
            ),
        }
        Ending::Interrupted
    }

    fn finish(&self, outcome: &Outcome, folder_made: bool) -> Result<()> {
        let recovery = self.truth.as_ref().and_then(|truth| {
            let enough = self.solver.rank >= truth.w.ncols();
            enough.then(|| recovery(&truth.w, &truth.h, &outcome.w, &outcome.h))
        });
        let recovery = recovery.transpose()?;
        let settings: toml::Table = self.config.parse().expect("altbi wrote it");
        let summary = Summary::new(
            settings,
            self.solver.seed,
            self.data_hash.clone(),
            outcome,
            recovery.as_ref(),
        );
        if let Some(folder) = &self.folder {
            if !folder_made {
                folder.create(&self.config, self.data_to_keep().as_deref())?;
            }
            // Without a checkpoint in it, half a folder would be worth nothing.
            self.write(folder, outcome, &summary).inspect_err(|_| {
                if !folder_made {
                    folder.discard();
                }
            })?;
        }
        if self.arguments.json {
            say(json(&summary));
        } else if !self.arguments.quiet {
            self.print(&summary, outcome, recovery.as_ref());
        }
        Ok(())
    }

    fn write(
        &self,
        folder: &RunFolder,
        outcome: &Outcome,
        summary: &Summary<toml::Table>,
    ) -> Result<()> {
        let labels = Labels {
            rows: self.table.row_labels.clone(),
            columns: self.table.column_labels.clone(),
        };
        let tables = (self.arguments.format == Format::Csv).then_some(&labels);
        folder.write_results(outcome, summary, tables)?;
        RunRecords::read(folder.path())?.write_report(folder)?;
        Ok(())
    }

    fn print(
        &self,
        summary: &Summary<toml::Table>,
        outcome: &Outcome,
        recovery: Option<&Recovery>,
    ) {
        let [n, m] = summary.shape;
        let source = match &self.arguments.data {
            Some(source) => source.clone(),
            None => "demo (benchmark A, seed 0)".into(),
        };
        let line = |name: &str, value: String| say(format!("{name:<16}{value}"));
        line("data", format!("{source}, {n}×{m}"));
        line("method", self.describe_method());
        let (reason, iterations) = (summary.stop_reason, summary.iterations);
        line("stopped", format!("{reason} after {iterations} iterations"));
        line("divergence", format!("{:.6e}", summary.divergence));
        line("objective", format!("{:.6e}", summary.objective));
        line(
            "relative error",
            format!(
                "{:.4e} of a constant fit ({:.4e} in the paper's definition)",
                summary.relative_error, summary.paper_relative_error
            ),
        );
        let (of_w, of_h) = (summary.sparsity_w, summary.sparsity_h);
        line("sparsity", format!("W {of_w:.1} %, H {of_h:.1} %"));
        if let Some(recovery) = recovery {
            let (w, h) = (recovery.mean_w(), recovery.mean_h());
            let text = format!("mean SIR W {w:.2} dB, H {h:.2} dB against the true factors");
            line("recovery", text);
        }
        let end = outcome.history.last().expect("a history has its start");
        line(
            "λ",
            format!(
                "median {:.3e}, from {:.3e} to {:.3e}",
                end.lambda_median, end.lambda_min, end.lambda_max
            ),
        );
        line("time", format!("{:.2} s", summary.seconds));
        let place = match &self.folder {
            Some(folder) => format!("{} (see report.html)", folder.path().display()),
            None => "nowhere; --out DIR keeps the results".into(),
        };
        line("written to", place);
    }

    fn describe_method(&self) -> String {
        use altbi::Method;
        let (solver, penalty) = (&self.solver, &self.arguments.penalty);
        let (rank, t) = (solver.rank, solver.bunch);
        let divergence = self.arguments.divergence.name();
        let common = format!("rank {rank}: {divergence} divergence");
        match solver.method {
            Method::AltBi => {
                let mode = solver.hypergradient;
                format!("AltBi, {common}, {penalty} penalty, T = {t}, {mode} mode")
            }
            Method::Mu => format!("MU, {common}"),
            Method::PenalizedMu => format!("P-MU, {common}, {penalty} penalty with fixed λ"),
            Method::MuT => format!("MU-T, {common}, T = {t}"),
            Method::Frozen => format!("frozen λ, {common}, {penalty} penalty, T = {t}"),
        }
    }
}

impl FitArguments {
    fn solver_config(&self, truth: Option<&Benchmark>) -> Result<AltBiConfig> {
        let of_w = read_optional(self.init_w.as_ref())?.map(|w| w.ncols());
        let of_h = read_optional(self.init_h.as_ref())?.map(|h| h.nrows());
        let of_truth = truth.map(|truth| truth.w.ncols());
        let rank = self.rank.or(of_w).or(of_h).or(of_truth);
        if self.checkpoint_every == Some(0) {
            return Err(Error::Setting {
                setting: "the number of iterations between checkpoints",
                value: 0.0,
                range: "at least 1",
            });
        }
        Ok(AltBiConfig {
            rank: rank.ok_or(Error::RankMissing)?,
            method: self.method.into(),
            bunch: self.bunch,
            exponent: self.exponent.into(),
            lambda: match self.lambda {
                LambdaArgument::Value(value) => LambdaStart::Value(value),
                LambdaArgument::Auto | LambdaArgument::File(_) => LambdaStart::Auto,
            },
            lambda_step: self.lambda_step,
            lambda_max: self.lambda_max,
            hypergradient: self.hypergradient.into(),
            normalize: self.normalize.into(),
            max_iterations: self.max_iter,
            tolerance: self.tol,
            initial: self.init.into(),
            seed: self.seed,
            precision: self.table.dtype.into(),
        })
    }

    /// Every setting, under the name of its flag; files by absolute paths.
    fn config_text(&self, source: Option<&Source>, rank: usize) -> String {
        let absolute = |path: &String| {
            let path = std::path::absolute(Path::new(path));
            path.map_or_else(
                |_| String::new(),
                |path| path.to_string_lossy().into_owned(),
            )
        };
        let mut table = toml::Table::new();
        let mut set = |key: &str, value: toml::Value| table.insert(key.into(), value);
        if let Some(source) = source {
            set("data", source.absolute().to_string().into());
        }
        for (key, file) in [
            ("mask", &self.table.mask),
            ("init-w", &self.init_w),
            ("init-h", &self.init_h),
        ] {
            if let Some(file) = file {
                set(key, absolute(file).into());
            }
        }
        set("rank", (rank as i64).into());
        set("method", word(&self.method).into());
        set("divergence", self.divergence.name().into());
        set("penalty", self.penalty.clone().into());
        set("preset", word(&self.preset).into());
        set("init", word(&self.init).into());
        set("bunch", (self.bunch as i64).into());
        set("exponent", word(&self.exponent).into());
        let lambda = match &self.lambda {
            LambdaArgument::Auto => "auto".into(),
            LambdaArgument::Value(value) => (*value).into(),
            LambdaArgument::File(file) => absolute(file).into(),
        };
        set("lambda", lambda);
        set("lambda-step", lambda_step_text(self.lambda_step).into());
        if self.lambda_max.is_finite() {
            set("lambda-max", self.lambda_max.into());
        }
        set("hypergradient", word(&self.hypergradient).into());
        set("normalize", word(&self.normalize).into());
        set("max-iter", (self.max_iter as i64).into());
        set("tol", self.tol.into());
        // TOML's integers end at 2⁶³; a larger seed is written as text.
        let seed =
            i64::try_from(self.seed).map_or_else(|_| self.seed.to_string().into(), Into::into);
        set("seed", seed);
        set("missing", word(&self.table.missing).into());
        set("header", word(&self.table.header).into());
        set("labels", word(&self.table.labels).into());
        set("dtype", word(&self.table.dtype).into());
        set("format", word(&self.format).into());
        if let Some(every) = self.checkpoint_every {
            set("checkpoint-every", (every as i64).into());
        }
        toml::to_string(&table).expect("a table of plain values")
    }
}

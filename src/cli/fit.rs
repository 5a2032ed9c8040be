//! `altbi fit`: factorise a matrix.

use std::path::PathBuf;

use altbi::data::{Benchmark, demo, fingerprint, read_matrix};
use altbi::metrics::{Recovery, recovery};
use altbi::report::{Summary, check_run_folder, write_run_folder};
use altbi::{
    AltBiConfig, Divergence, Error, GivenFactors, LambdaStart, LambdaStep, Outcome, Problem,
    Result, penalty,
};
use clap::Args;
use ndarray::Array2;

use super::Ending;
use super::arguments::{
    LambdaArgument, MethodName, ModeName, NormalizationName, ProblemArguments, lambda_step,
    read_lambda,
};
use super::progress::PlainLines;
use super::settings::FitSettings;

/// Arguments of `fit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi fit                                     the demo, with a summary
  altbi fit x.npy --rank 5 --out run            your data, results in the folder run
  altbi fit x.csv --rank 5 --divergence is --penalty l2 --exponent monotone
  altbi fit x.npy --rank 5 --method mu-t        the baseline that AltBi must beat")]
pub struct FitArguments {
    #[command(flatten)]
    problem: ProblemArguments,
    /// AltBi or a baseline
    #[arg(long, default_value = "altbi")]
    method: MethodName,
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
    /// W at the start, n×r, .npy or .csv; random without it
    #[arg(long, value_name = "FILE")]
    init_w: Option<PathBuf>,
    /// H at the start, r×m, .npy or .csv; random without it
    #[arg(long, value_name = "FILE")]
    init_h: Option<PathBuf>,
    /// Write W, H, λ, history, summary and settings into this new folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
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

/// The data of a run, with its truth where that is known.
struct Data {
    x: Array2<f64>,
    truth: Option<Benchmark>,
}

/// Runs `fit`.
pub fn fit(arguments: &FitArguments) -> Result<Ending> {
    if let Some(folder) = &arguments.out {
        check_run_folder(folder, arguments.force)?;
    }
    let data = arguments.data()?;
    let settings = arguments.settings(&data)?;
    let problem = arguments.problem.problem(&data.x)?;
    let outcome = arguments.run(&problem, &settings);
    // A run that blew up still has the state before it did.
    let (outcome, blow_up) = match outcome {
        Err(Error::NotFinite {
            iteration,
            quantity,
            last: Some(last),
        }) => {
            let error = Error::NotFinite {
                iteration,
                quantity,
                last: None,
            };
            (*last, Some(error))
        }
        other => (other?, None),
    };
    let recovery = data.truth.as_ref().and_then(|truth| {
        let enough = settings.solver.rank >= truth.w.ncols();
        enough.then(|| recovery(&truth.w, &truth.h, &outcome.w, &outcome.h))
    });
    let recovery = recovery.transpose()?;
    let summary = Summary::new(
        settings,
        arguments.problem.seed,
        fingerprint(&data.x),
        &outcome,
        recovery.as_ref(),
    );
    if let Some(folder) = &arguments.out {
        write_run_folder(folder, arguments.force, &outcome, &summary)?;
    }
    if arguments.json {
        let json = serde_json::to_string_pretty(&summary).expect("a summary is plain data");
        println!("{json}");
    } else if !arguments.quiet {
        arguments.print(&summary, &outcome, recovery.as_ref());
    }
    match blow_up {
        Some(error) => {
            eprintln!("error: {error}");
            Ok(Ending::CheckFailed)
        }
        None => Ok(Ending::Done),
    }
}

impl FitArguments {
    fn data(&self) -> Result<Data> {
        match &self.problem.data {
            Some(path) => Ok(Data {
                x: read_matrix(path)?,
                truth: None,
            }),
            None => {
                let demo = demo();
                Ok(Data {
                    x: demo.x.clone(),
                    truth: Some(demo),
                })
            }
        }
    }

    fn settings(&self, data: &Data) -> Result<FitSettings> {
        let rank = match (self.problem.rank, &data.truth) {
            (Some(rank), _) => rank,
            (None, Some(truth)) => truth.w.ncols(),
            (None, None) => return Err(Error::RankMissing),
        };
        let solver = AltBiConfig {
            rank,
            method: self.method.into(),
            bunch: self.problem.bunch,
            exponent: self.problem.exponent.into(),
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
            seed: self.problem.seed,
            precision: self.problem.dtype.into(),
        };
        Ok(FitSettings {
            data: self.problem.data.clone(),
            mask: self.problem.mask.clone(),
            init_w: self.init_w.clone(),
            init_h: self.init_h.clone(),
            lambda_file: match &self.lambda {
                LambdaArgument::File(path) => Some(path.clone()),
                _ => None,
            },
            divergence: self.problem.divergence.name(),
            penalty: self.problem.penalty.clone(),
            solver,
        })
    }

    fn run(&self, problem: &Problem, settings: &FitSettings) -> Result<Outcome> {
        let penalty = penalty::by_name(&settings.penalty)?;
        let read = |path: &Option<PathBuf>| path.as_deref().map(read_matrix).transpose();
        let given = GivenFactors {
            w: read(&self.init_w)?,
            h: read(&self.init_h)?,
        };
        let mut solver = settings
            .solver
            .solver(self.problem.divergence, penalty)
            .with_factors(given);
        if let Some(path) = &settings.lambda_file {
            solver = solver.with_lambda(read_lambda(path)?);
        }
        if !self.quiet && !self.json {
            solver = solver.observe(PlainLines::new(self.max_iter));
        }
        solver.run(problem)
    }

    fn print(
        &self,
        summary: &Summary<FitSettings>,
        outcome: &Outcome,
        recovery: Option<&Recovery>,
    ) {
        let settings = &summary.settings;
        let [n, m] = summary.shape;
        let source = match &settings.data {
            Some(path) => path.display().to_string(),
            None => "demo (benchmark A, seed 0)".into(),
        };
        let line = |name: &str, value: String| println!("{name:<16}{value}");
        line("data", format!("{source}, {n}×{m}"));
        line("method", describe_method(settings));
        line(
            "stopped",
            format!(
                "{} after {} iterations",
                summary.stop_reason, summary.iterations
            ),
        );
        line("divergence", format!("{:.6e}", summary.divergence));
        line("objective", format!("{:.6e}", summary.objective));
        line(
            "relative error",
            format!(
                "{:.4e} of a constant fit ({:.4e} in the paper's definition)",
                summary.relative_error, summary.paper_relative_error
            ),
        );
        line(
            "sparsity",
            format!(
                "W {:.1} %, H {:.1} %",
                summary.sparsity_w, summary.sparsity_h
            ),
        );
        if let Some(recovery) = recovery {
            line(
                "recovery",
                format!(
                    "mean SIR W {:.2} dB, H {:.2} dB against the true factors",
                    recovery.mean_w(),
                    recovery.mean_h()
                ),
            );
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
        match &self.out {
            Some(folder) => line("written to", folder.display().to_string()),
            None => line("written to", "nowhere; --out DIR keeps the results".into()),
        }
    }
}

fn describe_method(settings: &FitSettings) -> String {
    use altbi::Method;
    let solver = &settings.solver;
    let (divergence, penalty, t) = (&settings.divergence, &settings.penalty, solver.bunch);
    match solver.method {
        Method::AltBi => format!(
            "AltBi, rank {}: {divergence} divergence, {penalty} penalty, T = {t}, {} mode",
            solver.rank, solver.hypergradient
        ),
        Method::Mu => format!("MU, rank {}: {divergence} divergence", solver.rank),
        Method::PenalizedMu => format!(
            "P-MU, rank {}: {divergence} divergence, {penalty} penalty with fixed λ",
            solver.rank
        ),
        Method::MuT => format!(
            "MU-T, rank {}: {divergence} divergence, T = {t}",
            solver.rank
        ),
        Method::Frozen => format!(
            "frozen λ, rank {}: {divergence} divergence, {penalty} penalty, T = {t}",
            solver.rank
        ),
    }
}

//! `altbi gradcheck`: are the hypergradients right?

use std::path::PathBuf;
use std::sync::Arc;

use altbi::check::{BETAS, Case, CheckReport, Draw, MODES, cases, check_bunch};
use altbi::data::{read_matrix, write_npy};
use altbi::update::Rule;
use altbi::{
    Beta, Bunch, Divergence, Error, Exponent, Mode, PenaltyTerm, Precision, Problem, Result,
    ToMatrix, Training, Verdict, penalty,
};
use burn::tensor::Tensor;
use clap::Args;
use ndarray::Array2;
use serde::Serialize;

use super::Ending;
use super::arguments::{LambdaArgument, ModeName, ProblemArguments, read_lambda};

/// Arguments of `gradcheck`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi gradcheck                               all built-in divergences and penalties
  altbi gradcheck x.npy --rank 4 --penalty hoyer
  altbi gradcheck x.npy --w w.npy --h h.npy --lambda l.npy --mode forward --out g.npy

Exit code 1 means that two modes disagree.")]
pub struct GradcheckArguments {
    #[command(flatten)]
    problem: ProblemArguments,
    /// W at the start of the bunch, n×r; random without it
    #[arg(long, value_name = "FILE", requires = "data")]
    w: Option<PathBuf>,
    /// H during the bunch, r×m; random without it
    #[arg(long, value_name = "FILE", requires = "data")]
    h: Option<PathBuf>,
    /// λ: a number for every row, or a file with one per row; random without it
    #[arg(long, requires = "data", allow_negative_numbers = true)]
    lambda: Option<LambdaArgument>,
    /// Whose hypergradient is printed and written
    #[arg(long, default_value = "reverse")]
    mode: ModeName,
    /// Write the hypergradient as .npy, n×1
    #[arg(long, value_name = "FILE", requires = "data")]
    out: Option<PathBuf>,
    /// Print everything as JSON, and nothing else
    #[arg(long)]
    json: bool,
}

/// Runs `gradcheck`.
pub fn gradcheck(arguments: &GradcheckArguments) -> Result<Ending> {
    let consistent = match &arguments.problem.data {
        Some(_) => arguments.check_data()?,
        None => check_cases(arguments.problem.dtype.into(), arguments.json)?,
    };
    Ok(if consistent {
        Ending::Done
    } else {
        Ending::CheckFailed
    })
}

#[derive(Serialize)]
struct CheckedCase {
    case: Case,
    report: CheckReport,
}

/// The whole matrix, one line per divergence and penalty.
fn check_cases(precision: Precision, json: bool) -> Result<bool> {
    let checked = cases()
        .into_iter()
        .map(|case| {
            let report = case.run(precision)?;
            Ok(CheckedCase { case, report })
        })
        .collect::<Result<Vec<_>>>()?;
    let consistent = checked.iter().all(|checked| checked.report.is_consistent());
    if json {
        let json = serde_json::to_string_pretty(&checked).expect("reports are plain data");
        println!("{json}");
        return Ok(consistent);
    }
    println!("Largest difference from reverse mode, relative to the largest entry of dE/dλ,");
    println!("over T = 1, 2, 4, 8 and five shapes:\n");
    println!("divergence   penalty     forward    adjoint  differences  verdict");
    for beta in BETAS {
        for name in penalty::NAMES.split(", ") {
            let of_pair = || {
                checked
                    .iter()
                    .filter(|checked| checked.case.beta == beta && checked.case.penalty == name)
            };
            let worst = |mode: Mode| {
                let differences = of_pair().filter_map(|checked| checked.report.difference(mode));
                differences
                    .reduce(f64::max)
                    .map_or("-".into(), |worst| format!("{worst:.1e}"))
            };
            let passes = of_pair().all(|checked| checked.report.is_consistent());
            println!(
                "{:<12} {name:<9} {:>9}  {:>9}  {:>11}  {}",
                Beta(beta).name(),
                worst(MODES[0]),
                worst(MODES[1]),
                worst(MODES[2]),
                if passes { "pass" } else { "MISMATCH" }
            );
        }
    }
    let controls = || checked.iter().flat_map(|checked| &checked.report.controls);
    let count = |verdict| controls().filter(|c| c.verdict == verdict).count();
    let failed = checked.iter().filter(|c| !c.report.is_consistent()).count();
    println!(
        "\n{} cases, {failed} inconsistent; {} planted mistakes found, {} missed",
        checked.len(),
        count(Verdict::Mismatch),
        count(Verdict::Pass)
    );
    Ok(consistent)
}

#[derive(Serialize)]
struct CheckedData {
    mode: Mode,
    outer_error: f64,
    hypergradient: Vec<f64>,
    report: CheckReport,
}

impl GradcheckArguments {
    /// One bunch on the user's data.
    fn check_data(&self) -> Result<bool> {
        let flags = &self.problem;
        let path = flags.data.as_ref().expect("the caller looked");
        let problem = flags.problem(&read_matrix(path)?)?;
        let term = PenaltyTerm::tuned(penalty::by_name(&flags.penalty)?);
        let rule = Rule::new(Arc::new(flags.divergence), vec![term]);
        let rule = match flags.exponent.into() {
            Exponent::One => rule,
            Exponent::Monotone => rule.monotone()?,
        };
        problem.check_domain(rule.divergence.as_ref())?;
        let draw = self.draw(&problem, &rule)?;
        let training = Arc::new(Training);
        let bunch = Bunch::with_rule(&problem, &draw.h, rule, training, flags.bunch)?;
        let mode = self.mode.into();
        let result = bunch.hypergradient(&draw.w, &draw.lambda, mode)?;
        let report = check_bunch(&bunch, &draw.w, &draw.lambda, &MODES)?;
        let gradient = result.gradient.to_matrix()?;
        if let Some(out) = &self.out {
            write_npy(out, &gradient)?;
        }
        let consistent = report.is_consistent();
        if self.json {
            let checked = CheckedData {
                mode,
                outer_error: result.outer_error,
                hypergradient: gradient.iter().copied().collect(),
                report,
            };
            let json = serde_json::to_string_pretty(&checked).expect("reports are plain data");
            println!("{json}");
        } else {
            let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            println!(
                "outer error {:.6e}, ‖dE/dλ‖ {norm:.6e} ({mode} mode)\n",
                result.outer_error
            );
            print!("{report}");
        }
        Ok(consistent)
    }

    /// W, H and λ: from files where given, drawn by the seed otherwise.
    fn draw(&self, problem: &Problem, rule: &Rule) -> Result<Draw> {
        let [n, m] = problem.shape();
        let read = |path: &Option<PathBuf>| path.as_deref().map(read_matrix).transpose();
        let (w, h) = (read(&self.w)?, read(&self.h)?);
        let of_w = w.as_ref().map(Array2::ncols);
        let of_h = h.as_ref().map(Array2::nrows);
        let rank = self.problem.rank.or(of_w).or(of_h);
        let rank = rank.ok_or(Error::RankMissing)?;
        let mut draw = Draw::new(problem, rule, rank, self.problem.seed)?;
        let replace = |target: &mut Tensor<2>, what, given: Option<Array2<f64>>, shape| {
            if let Some(given) = given {
                *target = problem.tensor(what, &given, shape)?;
            }
            Ok::<(), Error>(())
        };
        replace(&mut draw.w, "W", w, [n, rank])?;
        replace(&mut draw.h, "H", h, [rank, m])?;
        let lambda = match &self.lambda {
            None | Some(LambdaArgument::Auto) => None,
            Some(LambdaArgument::Value(value)) => Some(Array2::from_elem((n, 1), *value)),
            Some(LambdaArgument::File(path)) => Some(read_lambda(path)?),
        };
        replace(&mut draw.lambda, "λ", lambda, [n, 1])?;
        Ok(draw)
    }
}

//! `altbi gradcheck`: are the hypergradients right?

mod joint;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use altbi::check::{BETAS, Case, CheckReport, Draw, MODES, cases, check_bunch};
use altbi::data::{Source, write_npy};
use altbi::device::Device;
use altbi::update::Rule;
use altbi::{
    Beta, Bunch, Divergence, Error, Exponent, GivenFactors, Mode, PenaltyTerm, Precision, Problem,
    Result, Scope, ToMatrix, Verdict, penalty,
};
use clap::Args;
use ndarray::Array2;
use serde::Serialize;

use super::Ending;
use super::arguments::{
    BunchOverName, CriterionArgument, CriterionArguments, ExponentName, LambdaArgument, ModeName,
    divergence_name, read_lambda, read_optional,
};
use super::data::DataArguments;
use super::output::{check_new_file, json, say};
use super::penalties::{Penalize, penalty_names};
use super::progress::Progress;

/// Arguments of `gradcheck`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi gradcheck                               all built-in divergences and penalties
  altbi gradcheck --penalty hoyer               the built-in cases of one penalty
  altbi gradcheck x.npy --rank 4 --penalty hoyer
  altbi gradcheck x.npy --rank 4 --penalize both --penalty smooth --penalty-h l1 --lambda-scope component
  altbi gradcheck x.npy --w w.npy --h h.npy --lambda l.npy --mode forward --out g.npy

Exit code 1 means that two modes disagree.")]
pub struct GradcheckArguments {
    /// The matrix X, as for fit; without it, the built-in cases are checked
    data: Option<String>,
    /// kl, frobenius, is, or beta:<number> [default: kl; all of the built-in cases]
    #[arg(long, value_parser = divergence_name)]
    divergence: Option<Beta>,
    /// l1, l2, group, l21, hoyer, smooth, or none; with DATA also sums such as smooth+l1
    /// [default: l1; all of the built-in cases]
    #[arg(long, value_parser = penalty_names)]
    penalty: Option<String>,
    /// The factor that is penalised
    #[arg(long, default_value = "w")]
    penalize: Penalize,
    /// The penalty on H, if it is another than the one on W
    #[arg(long, value_name = "PENALTY", value_parser = penalty_names)]
    penalty_h: Option<String>,
    /// What each λ belongs to: row, shared, component, or entry
    #[arg(long, value_name = "SCOPE", default_value = "row", value_parser = Scope::by_name)]
    lambda_scope: Scope,
    /// Whether the bunch updates the penalised factor only or both in turn [default: one;
    /// both with --penalize both]
    #[arg(long)]
    bunch_over: Option<BunchOverName>,
    /// Updates in the bunch, T [default: 4; 1, 2, 4 and 8 of the built-in cases]
    #[arg(long, value_name = "T")]
    bunch: Option<usize>,
    /// Number of components r
    #[arg(long, requires = "data")]
    rank: Option<usize>,
    /// Exponent of the updates
    #[arg(long, requires = "data")]
    exponent: Option<ExponentName>,
    /// Seed of what is drawn
    #[arg(long, requires = "data")]
    seed: Option<u64>,
    /// W at the start of the bunch, n×r; drawn without it
    #[arg(long, value_name = "FILE", requires = "data")]
    w: Option<String>,
    /// H during the bunch, r×m; drawn without it
    #[arg(long, value_name = "FILE", requires = "data")]
    h: Option<String>,
    /// λ: a number for every row, or a file with one per row; drawn without it
    #[arg(long, requires = "data", allow_negative_numbers = true)]
    lambda: Option<LambdaArgument>,
    /// Whose hypergradient is printed and written [default: reverse]
    #[arg(long, requires = "data")]
    mode: Option<ModeName>,
    /// Write the hypergradient to this .npy file, a column
    #[arg(long, value_name = "FILE", requires = "data")]
    out: Option<PathBuf>,
    #[command(flatten)]
    table: DataArguments,
    /// Replace the file of --out if it exists
    #[arg(long, requires = "out")]
    force: bool,
    #[command(flatten)]
    criterion: CriterionArguments,
    /// Print everything as JSON, and nothing else
    #[arg(long)]
    json: bool,
}

/// Runs `gradcheck`.
pub fn gradcheck(arguments: &GradcheckArguments) -> Result<Ending> {
    let inconsistent = match &arguments.data {
        Some(data) => arguments.check_data(&Source::from(data.as_str()))?,
        None => arguments.check_cases()?,
    };
    Ok(if inconsistent {
        Ending::CheckFailed
    } else {
        Ending::Done
    })
}

#[derive(Serialize)]
struct CheckedCase {
    case: Case,
    consistent: bool,
    report: CheckReport,
}

#[derive(Serialize)]
struct CheckedData {
    mode: Mode,
    outer_error: f64,
    hypergradient: Vec<f64>,
    consistent: bool,
    report: CheckReport,
}

impl GradcheckArguments {
    /// Whether a built-in case was asked for.
    fn wants(&self, case: &Case) -> bool {
        self.divergence.is_none_or(|Beta(beta)| beta == case.beta)
            && self
                .penalty
                .as_ref()
                .is_none_or(|name| name == case.penalty)
            && self.bunch.is_none_or(|bunch| bunch == case.bunch)
    }

    /// The whole matrix, one line per divergence and penalty.
    fn check_cases(&self) -> Result<bool> {
        if self.is_joint() {
            return Err(Error::Conflict {
                first: "--penalize, --penalty-h, --lambda-scope, --bunch-over or a sum of penalties",
                second: "the built-in cases",
                reason: "those are one penalty on W with a λ for each row; give DATA too",
            });
        }
        if self.table.mask.is_some() {
            return Err(Error::Conflict {
                first: "--mask",
                second: "the built-in cases",
                reason: "a mask belongs to data; give DATA too",
            });
        }
        if self.criterion.criterion != CriterionArgument::Train {
            return Err(Error::Conflict {
                first: "--criterion held-out",
                second: "the built-in cases",
                reason: "entries are held out of data; give DATA too",
            });
        }
        let precision: Precision = self.table.dtype.into();
        let device = Device::by_name(&self.table.device)?;
        let progress = Progress::new(self.json);
        let wanted: Vec<Case> = cases()
            .into_iter()
            .filter(|case| self.wants(case))
            .collect();
        progress.steps("checking", wanted.len(), 0);
        let checked = wanted
            .into_iter()
            .enumerate()
            .map(|(done, case)| {
                progress.at(done, || format!("β = {}, {}", case.beta, case.penalty));
                let report = case.run(precision, &device)?;
                let consistent = report.is_consistent();
                Ok(CheckedCase {
                    case,
                    consistent,
                    report,
                })
            })
            .collect::<Result<Vec<_>>>()?;
        progress.clear();
        if checked.is_empty() {
            return Err(Error::UnknownName {
                kind: "built-in case",
                name: "with this divergence, penalty and T".into(),
                known: "β = 3, 2, 1.5, 1, 0.5, 0, -0.5; all penalties; T = 1, 2, 4, 8",
            });
        }
        if self.json {
            say(json(&checked));
        } else {
            print_cases(&checked);
        }
        Ok(checked.iter().any(|checked| !checked.consistent))
    }

    /// One bunch on the user's data.
    fn check_data(&self, source: &Source) -> Result<bool> {
        if let Some(out) = &self.out {
            check_ending(out)?;
            check_new_file(out, self.force, self.inputs())?;
        }
        let problem = self.table.read(source, false)?.problem(&self.table)?;
        let problem = self.criterion.hold_out(problem)?;
        if self.is_joint() {
            return self.check_joint(&problem);
        }
        let name = self.penalty.as_deref().unwrap_or("l1");
        let term = PenaltyTerm::tuned(penalty::by_name(name)?);
        let divergence = self.divergence.unwrap_or(Beta::KL);
        let mut rule = Rule::new(Arc::new(divergence), vec![term]);
        if self.exponent.map(Exponent::from) == Some(Exponent::Monotone) {
            rule = rule.monotone()?;
        }
        problem.check_domain(rule.divergence.as_ref())?;
        let draw = self.draw(&problem, &rule)?;
        let (criterion, length) = (self.criterion.outer_error(), self.length());
        let bunch = Bunch::with_rule(&problem, &draw.h, rule, criterion, length)?;
        let mode = self.mode.map_or(Mode::Reverse, Mode::from);
        let result = bunch.hypergradient(&draw.w, &draw.lambda, mode)?;
        let report = check_bunch(&bunch, &draw.w, &draw.lambda, &MODES)?;
        let gradient = result.gradient.to_matrix()?;
        self.tell(mode, result.outer_error, &gradient, report)
    }

    fn length(&self) -> usize {
        self.bunch.unwrap_or(4)
    }

    /// Writes and prints what was found; whether modes disagree.
    fn tell(
        &self,
        mode: Mode,
        outer_error: f64,
        gradient: &Array2<f64>,
        report: CheckReport,
    ) -> Result<bool> {
        if let Some(out) = &self.out {
            write_npy(out, gradient)?;
        }
        let inconsistent = report.is_inconsistent();
        if self.json {
            say(json(&CheckedData {
                mode,
                outer_error,
                hypergradient: gradient.iter().copied().collect(),
                consistent: report.is_consistent(),
                report,
            }));
        } else {
            let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
            say(format!(
                "outer error {outer_error:.6e}, ‖dE/dλ‖ {norm:.6e} ({mode} mode)\n"
            ));
            say(report.to_string().trim_end());
        }
        Ok(inconsistent)
    }

    /// The files that the check reads.
    fn inputs(&self) -> impl Iterator<Item = PathBuf> {
        let lambda = match &self.lambda {
            Some(LambdaArgument::File(file)) => Some(file),
            _ => None,
        };
        let given = [self.w.as_ref(), self.h.as_ref(), lambda];
        let given = given.into_iter().flatten().map(PathBuf::from);
        given.chain(self.table.inputs(self.data.as_deref()))
    }

    fn given(&self) -> Result<GivenFactors> {
        Ok(GivenFactors {
            w: read_optional(self.w.as_ref())?,
            h: read_optional(self.h.as_ref())?,
        })
    }

    fn rank_of(&self, given: &GivenFactors) -> Result<usize> {
        let of_w = given.w.as_ref().map(Array2::ncols);
        let of_h = given.h.as_ref().map(Array2::nrows);
        self.rank.or(of_w).or(of_h).ok_or(Error::RankMissing)
    }

    /// W, H and λ: from files where given, drawn by the seed otherwise.
    fn draw(&self, problem: &Problem, rule: &Rule) -> Result<Draw> {
        let [n, _] = problem.shape();
        let given = self.given()?;
        let rank = self.rank_of(&given)?;
        let lambda = match &self.lambda {
            None | Some(LambdaArgument::Auto) => None,
            Some(LambdaArgument::Value(value)) => Some(Array2::from_elem((n, 1), *value)),
            Some(LambdaArgument::File(path)) => Some(read_lambda(path)?),
        };
        let seed = self.seed.unwrap_or(0);
        Draw::complete(problem, rule, rank, seed, &given, lambda.as_ref())
    }
}

/// The hypergradient is written as .npy, and its name should say so.
fn check_ending(out: &Path) -> Result<()> {
    match out.extension() {
        Some(ending) if ending == "npy" => Ok(()),
        _ => Err(Error::UnknownFormat {
            path: out.into(),
            known: ".npy",
        }),
    }
}

fn print_cases(checked: &[CheckedCase]) {
    say("Largest difference from reverse mode, relative to the largest entry of dE/dλ,");
    say("over the bunch lengths and five shapes:\n");
    say("divergence   penalty     forward    adjoint  differences  verdict");
    for beta in BETAS {
        for name in penalty::NAMES.split(", ") {
            let of_pair = || {
                checked
                    .iter()
                    .filter(|checked| checked.case.beta == beta && checked.case.penalty == name)
            };
            if of_pair().next().is_none() {
                continue;
            }
            let worst = |mode: Mode| {
                let differences = of_pair().filter_map(|checked| checked.report.difference(mode));
                differences
                    .reduce(f64::max)
                    .map_or("-".into(), |worst| format!("{worst:.1e}"))
            };
            let passes = of_pair().all(|checked| checked.consistent);
            say(format!(
                "{:<12} {name:<9} {:>9}  {:>9}  {:>11}  {}",
                Beta(beta).name(),
                worst(MODES[0]),
                worst(MODES[1]),
                worst(MODES[2]),
                if passes { "pass" } else { "MISMATCH" }
            ));
        }
    }
    let controls = || checked.iter().flat_map(|checked| &checked.report.controls);
    let count = |verdict| controls().filter(|c| c.verdict == verdict).count();
    let failed = checked.iter().filter(|checked| !checked.consistent).count();
    say(format!(
        "\n{} cases, {failed} inconsistent; {} planted mistakes found, {} missed",
        checked.len(),
        count(Verdict::Mismatch),
        count(Verdict::Pass)
    ));
}

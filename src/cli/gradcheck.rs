//! `altbi gradcheck`: compares hypergradients of all modes.

use std::path::PathBuf;
use std::sync::Arc;

use crate::check::{BETAS, Case, CheckReport, Draw, Given, MODES, cases, check_drawn};
use crate::criterion::{OuterError, Unseen};
use crate::data::{Source, write_npy};
use crate::device::Device;
use crate::update::Rule;
use crate::{
    Beta, Bunch, BunchOver, Divergence, Error, Exponent, GivenFactors, Mode, Problem, Result,
    Scope, Side, Span, ToMatrix, Verdict, penalty,
};
use clap::Args;
use ndarray::Array2;
use serde::Serialize;

use super::arguments::{CriterionArguments, LambdaArgument, read_lambda, read_optional, words};
use super::data::DataArguments;
use super::graphs::GraphArguments;
use super::output::{check_new_file, json, output_path, say};
use super::penalties::{Penalize, PenaltyArguments, penalty_names};
use super::progress::Progress;
use super::tables::check_ending;
use super::{Ending, headings};

/// Arguments of `gradcheck`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi gradcheck                               all built-in divergences and penalties
  altbi gradcheck --penalty hoyer               the built-in cases of one penalty
  altbi gradcheck x.npy --rank 4 --penalty hoyer
  altbi gradcheck x.npy --rank 4 --penalize both --penalty smooth --penalty-h l1
  altbi gradcheck x.npy --w w.npy --h h.npy --lambda l.npy --mode forward

Exit code 1 means that two modes disagree.")]
pub struct GradcheckArguments {
    /// The matrix X, as for fit [default: built-in cases]
    data: Option<String>,
    #[command(flatten)]
    table: DataArguments,
    /// kl, frobenius, is, or beta:<number> [default: kl; all of the built-in cases]
    #[arg(long, help_heading = headings::MODEL)]
    divergence: Option<Beta>,
    /// l1, l2, group, l21, hoyer, smooth, steps, or none; with DATA also graph, and sums such as
    /// smooth+l1 [default: l1; all of the built-in cases]
    #[arg(long, help_heading = headings::PENALTIES, value_parser = penalty_names)]
    penalty: Option<String>,
    /// The penalised factor
    #[arg(long, help_heading = headings::PENALTIES, default_value = "w", value_parser = words::<Penalize>())]
    penalize: Penalize,
    /// Penalty on H [default: as on W]
    #[arg(long, help_heading = headings::PENALTIES, value_name = "PENALTY", value_parser = penalty_names)]
    penalty_h: Option<String>,
    #[command(flatten)]
    graphs: GraphArguments,
    /// Scope of λ: row, shared, component, or entry
    #[arg(long, help_heading = headings::PENALTIES, value_name = "SCOPE", default_value = "row")]
    lambda_scope: Scope,
    /// Factors that the bunch updates: the penalised one only, or both in turn [default: one; both
    /// with --penalize both]
    #[arg(long, help_heading = headings::PENALTIES, value_parser = words::<BunchOver>())]
    bunch_over: Option<BunchOver>,
    /// T, the number of updates of the bunch [default: 4; 1, 2, 4 and 8 of the built-in cases]
    #[arg(long, help_heading = headings::PENALTIES, value_name = "T")]
    bunch: Option<usize>,
    /// Number of components r
    #[arg(long, help_heading = headings::MODEL, requires = "data")]
    rank: Option<usize>,
    /// Exponent of the updates
    #[arg(long, help_heading = headings::MODEL, requires = "data", value_parser = words::<Exponent>())]
    exponent: Option<Exponent>,
    /// Seed of random W, H and λ
    #[arg(long, help_heading = headings::MODEL, requires = "data")]
    seed: Option<u64>,
    /// W at the start of the bunch, n×r [default: random]
    #[arg(long, help_heading = headings::MODEL, value_name = "FILE", requires = "data")]
    w: Option<String>,
    /// H during the bunch, r×m [default: random]
    #[arg(long, help_heading = headings::MODEL, value_name = "FILE", requires = "data")]
    h: Option<String>,
    /// λ: a number for every row, or a file with one per row [default: random]
    #[arg(long, help_heading = headings::PENALTIES, requires = "data", allow_negative_numbers = true)]
    lambda: Option<LambdaArgument>,
    /// Mode of the hypergradient that is printed and written [default: reverse]
    #[arg(long, help_heading = headings::PENALTIES, requires = "data", value_parser = words::<Mode>())]
    mode: Option<Mode>,
    /// Write the hypergradient to this .npy file, a column
    #[arg(long, help_heading = headings::OUTPUT, value_name = "FILE", requires = "data", value_parser = output_path)]
    out: Option<PathBuf>,
    /// Replace the file of --out if it exists
    #[arg(long, help_heading = headings::OUTPUT, requires = "out")]
    force: bool,
    #[command(flatten)]
    criterion: CriterionArguments,
    /// Print only JSON, with all results
    #[arg(long, help_heading = headings::OUTPUT)]
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
    /// Returns true if a built-in case was requested.
    fn wants(&self, case: &Case) -> bool {
        self.divergence.is_none_or(|Beta(beta)| beta == case.beta)
            && self
                .penalty
                .as_ref()
                .is_none_or(|name| name == case.penalty)
            && self.bunch.is_none_or(|bunch| bunch == case.bunch)
    }

    /// Returns true if the flags ask for more than the built-in cases, which have the paper's
    /// bunch.
    fn beyond_the_cases(&self) -> bool {
        self.penalize != Penalize::W
            || self.penalty_h.is_some()
            || self.penalty.as_ref().is_some_and(|name| name.contains('+'))
            || self.lambda_scope != Scope::Row
            || self.bunch_over == Some(BunchOver::Both)
    }

    /// The whole matrix, one line per divergence and penalty.
    fn check_cases(&self) -> Result<bool> {
        if self.beyond_the_cases() {
            return Err(Error::Conflict {
                first: "--penalize, --penalty-h, --lambda-scope, --bunch-over or a sum of penalties",
                second: "the built-in cases",
                reason: "the built-in cases have one penalty on W and a λ for each row; give DATA too",
            });
        }
        if self.table.mask.is_some() {
            return Err(Error::Conflict {
                first: "--mask",
                second: "the built-in cases",
                reason: "a mask belongs to data; give DATA too",
            });
        }
        if self.criterion.asked() != OuterError::from(Unseen::Nothing) {
            return Err(Error::Conflict {
                first: "--criterion or --outer-divergence",
                second: "the built-in cases",
                reason: "the built-in cases have the paper's outer error; give DATA too",
            });
        }
        let precision = self.table.dtype;
        let device = self.table.device.parse::<Device>()?;
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
            check_ending(out, ".npy")?;
            check_new_file(out, self.force, self.inputs())?;
        }
        let problem = self.table.read(source, false)?.problem(&self.table)?;
        let (problem, outer) = self
            .criterion
            .hold_out(&problem, self.divergence.unwrap_or(Beta::KL))?;
        let bunch = self.bunch(&problem, outer)?;
        let draw = self.draw(&problem, &bunch)?;
        let mode = self.mode.unwrap_or(Mode::Reverse);
        let result = bunch.hypergradient(&draw.pair, &draw.lambda, mode)?;
        let report = check_drawn(&problem, &bunch, &draw)?;
        let parts = result.gradients.iter().map(ToMatrix::to_matrix);
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let gradient = draw.layout.join(&parts);
        self.tell(mode, result.outer_error, &gradient, report)
    }

    fn penalties(&self) -> PenaltyArguments {
        PenaltyArguments {
            penalty: self.penalty.clone().unwrap_or_else(|| "l1".into()),
            penalize: self.penalize,
            penalty_h: self.penalty_h.clone(),
            graphs: self.graphs.clone(),
        }
    }

    /// The bunch that the flags describe.
    fn bunch(&self, problem: &Problem, outer: OuterError) -> Result<Bunch> {
        let plain = Rule::new(Arc::new(self.divergence.unwrap_or(Beta::KL)), Vec::new());
        let (mut of_w, mut of_h) = (plain.clone(), plain);
        for (side, term) in self.penalties().terms_for(problem, None)? {
            match side {
                Side::W => of_w.terms.push(term),
                Side::H => of_h.terms.push(term),
            }
        }
        let exponent = self.exponent.unwrap_or_default();
        (of_w, of_h) = (exponent.of(of_w)?, exponent.of(of_h)?);
        let over = self.bunch_over.unwrap_or(self.penalize.over());
        let span = match (over, self.penalize) {
            (BunchOver::Both, _) => Span::Both,
            (BunchOver::One, Penalize::H) => Span::One(Side::H),
            (BunchOver::One, _) => Span::One(Side::W),
        };
        let (criterion, length) = (outer.criterion(), self.length());
        Bunch::with_rules(problem, of_w, of_h, criterion, span, length)
    }

    fn length(&self) -> usize {
        self.bunch.unwrap_or(4)
    }

    /// Writes and prints the result. Returns true if modes disagree.
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
        let graphs = self.graphs.files().map(|(_, file)| file);
        let given = given.into_iter().flatten().chain(graphs);
        let given = given.map(PathBuf::from);
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

    /// W, H and λ: from the given files, otherwise drawn by the seed.
    fn draw(&self, problem: &Problem, bunch: &Bunch) -> Result<Draw> {
        let factors = self.given()?;
        let (rank, seed) = (self.rank_of(&factors)?, self.seed.unwrap_or(0));
        let draw = |lambda: Option<Array2<f64>>| {
            let factors = factors.clone();
            let given = Given { factors, lambda };
            Draw::complete(problem, bunch, self.lambda_scope, rank, seed, &given)
        };
        match &self.lambda {
            None | Some(LambdaArgument::Auto) => draw(None),
            Some(LambdaArgument::Value(value)) => {
                let weights = draw(None)?.layout.len();
                draw(Some(Array2::from_elem((weights, 1), *value)))
            }
            Some(LambdaArgument::File(path)) => draw(Some(read_lambda(path)?)),
        }
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

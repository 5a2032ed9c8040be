//! `altbi bias`: the bias of hypergradients through short bunches.

use std::path::PathBuf;
use std::sync::Arc;

use crate::check::{Bias, bias as compare};
use crate::criterion::OuterError;
use crate::data::{Source, Table, demo};
use crate::plot::short;
use crate::report::{BiasRecords, Labels, data_name};
use crate::update::Rule;
use crate::{
    AltBiConfig, Beta, Divergence, Error, Exponent, Method, Normalization, PenaltyTerm, Precision,
    Problem, Result, penalty,
};
use clap::Args;
use serde::Serialize;

use super::arguments::{CriterionArguments, LambdaArgument, penalty_name, read_lambda, words};
use super::data::DataArguments;
use super::output::{NewFolder, json, output_path, say};
use super::progress::{Progress, Watch};
use super::{Ending, headings};

/// Arguments of `bias`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi bias                                    the demo
  altbi bias x.npy --rank 5 --penalty l2 --out bias
  altbi bias x.npy --rank 5 --criterion held-out:0.1

The hypergradient through T updates is compared with that through infinitely many (implicit
mode). Both start from the factors after --warm-up iterations with fixed λ.")]
pub struct BiasArguments {
    /// The matrix X, as for fit [default: the embedded demo]
    data: Option<String>,
    #[command(flatten)]
    table: DataArguments,
    /// Number of components r (scikit-learn: n_components)
    #[arg(long, help_heading = headings::MODEL)]
    rank: Option<usize>,
    /// kl, frobenius, is, or beta:<number> (scikit-learn: beta_loss)
    #[arg(long, help_heading = headings::MODEL, default_value = "kl")]
    divergence: Beta,
    /// l1, l2, group, l21, hoyer, smooth, steps, or none
    #[arg(long, help_heading = headings::PENALTIES, default_value = "l1", value_parser = penalty_name)]
    penalty: String,
    /// Exponent of the updates
    #[arg(long, help_heading = headings::MODEL, default_value = "one", value_parser = words::<Exponent>())]
    exponent: Exponent,
    /// λ: auto (the first λ of a run), a number for every row, or a file with one per row
    #[arg(long, help_heading = headings::PENALTIES, default_value = "auto", allow_negative_numbers = true)]
    lambda: LambdaArgument,
    /// T of your runs; the warm-up uses it, and a figure shows its hypergradient row by row
    #[arg(long, help_heading = headings::PENALTIES, value_name = "T", default_value_t = 4)]
    bunch: usize,
    /// Iterations before hypergradients are compared
    #[arg(long, help_heading = headings::PENALTIES, value_name = "N", default_value_t = 50)]
    warm_up: usize,
    /// Rescale W and H before each bunch, as in fit
    #[arg(long, help_heading = headings::MODEL, default_value = "none", value_parser = words::<Normalization>())]
    normalize: Normalization,
    #[command(flatten)]
    criterion: CriterionArguments,
    /// Seed of the random start (scikit-learn: random_state)
    #[arg(long, help_heading = headings::MODEL, default_value_t = 0)]
    seed: u64,
    /// Write table, figures and hypergradients into this new folder
    #[arg(long, help_heading = headings::OUTPUT, value_name = "DIR", value_parser = output_path)]
    out: Option<PathBuf>,
    /// Print only JSON, with all results
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

#[derive(Serialize)]
struct Printed<'a> {
    warm_up: usize,
    #[serde(flatten)]
    bias: &'a Bias,
}

/// Runs `bias`.
pub fn bias(arguments: &BiasArguments) -> Result<Ending> {
    let folder = arguments.out.as_deref().map(NewFolder::claim).transpose()?;
    let progress = Progress::new(arguments.json);
    progress.begin("reading the data");
    let (problem, outer, of_demo, labels) = arguments.problem()?;
    let rank = arguments.rank.or(of_demo).ok_or(Error::RankMissing)?;
    let bias = arguments.compare(&problem, outer, rank, &progress)?;
    progress.clear();
    let records = BiasRecords {
        data: data_name(arguments.data.as_deref()),
        rows: labels.rows,
        about: arguments.about(&problem, outer, rank),
        length: arguments.bunch,
        entries: Some(outer.criterion().entries().weight(&problem)),
        bias,
    };
    if let Some(folder) = folder {
        folder.fill(|folder| records.write_all(folder).map(drop))?;
    }
    let bias = &records.bias;
    if arguments.json {
        let warm_up = arguments.warm_up;
        say(json(&Printed { warm_up, bias }));
    } else {
        arguments.print(&records);
    }
    Ok(Ending::Done)
}

impl BiasArguments {
    /// The data, the outer error, the rank of the demo if it is that, and the data's labels.
    fn problem(&self) -> Result<(Problem, OuterError, Option<usize>, Labels)> {
        let (mut data, rank) = match self.data.as_deref().map(Source::from) {
            Some(source) => (self.table.read(&source, false)?, None),
            None => {
                let demo = demo();
                let rank = demo.w.ncols();
                (self.table.weighted(Table::from(demo.x))?, Some(rank))
            }
        };
        let problem = data.problem(&self.table)?;
        let (problem, outer) = self.criterion.hold_out(&problem, self.divergence)?;
        Ok((problem, outer, rank, data.labels))
    }

    /// Warms up with λ fixed, then compares.
    fn compare(
        &self,
        problem: &Problem,
        outer: OuterError,
        rank: usize,
        progress: &Progress,
    ) -> Result<Bias> {
        let precision: Precision = self.table.dtype;
        let mut config = AltBiConfig::new(rank)
            .with_method(Method::Frozen)
            .with_bunch(self.bunch)
            .with_exponent(self.exponent)
            .with_normalize(self.normalize)
            .with_warm_up(self.warm_up)
            .with_max_iterations(self.warm_up)
            .with_seed(self.seed)
            .with_precision(precision);
        // (The limit is that of a run's warm-up. Here the warm-up is iterations with a fixed λ.)
        config.check()?;
        config.warm_up = 0;
        if let LambdaArgument::Value(value) = self.lambda {
            config = config.with_lambda(value);
        }
        let penalty = || penalty::by_name(&self.penalty);
        let mut solver = config
            .solver(self.divergence, penalty()?)
            .with_shared_criterion(outer.criterion())
            .observe(Watch::new(progress, "warming up", self.warm_up, 0))
            .to_the_last_iteration();
        if let LambdaArgument::File(path) = &self.lambda {
            solver = solver.with_lambda(read_lambda(path)?);
        }
        let outcome = solver.run(problem)?;
        progress.begin("hypergradients at T = 1, 2, 4, … and ∞");
        let term = PenaltyTerm::tuned(penalty()?);
        let rule = Rule::new(Arc::new(self.divergence), vec![term]);
        let rule = self.exponent.of(rule)?;
        let criterion = outer.criterion();
        let (factors, lambda) = (outcome.factors(), &outcome.lambda);
        compare(problem, &rule, criterion, &factors, lambda)
    }

    fn about(&self, problem: &Problem, outer: OuterError, rank: usize) -> String {
        let [n, m] = problem.shape();
        format!(
            "X ({n}×{m}), r = {rank}, {} divergence, {} penalty, {} error, after {} iterations with \
             T = {} and fixed λ.",
            self.divergence.name(),
            self.penalty,
            outer,
            self.warm_up,
            self.bunch
        )
    }

    fn print(&self, records: &BiasRecords) {
        let bias = &records.bias;
        let entries = records.entries.unwrap_or(1.0);
        say("T             outer error     ‖dE/dλ‖    cosine  relative error  same sign");
        say("                per entry");
        for row in &bias.rows {
            let length = row.length.map_or("∞".into(), |length| length.to_string());
            say(format!(
                "{length:<10} {:>14} {:>11} {:>9.4} {:>15} {:>8.1} %",
                short(row.outer_error / entries),
                short(row.norm),
                row.cosine,
                short(row.relative_error),
                100.0 * row.same_sign
            ));
        }
        if let Some(refusal) = &bias.refusal {
            say(format!("\nThe longest bunch is the reference: {refusal}"));
        }
        say(format!("\n{}", records.answer()));
        if let Some(out) = &self.out {
            say(format!("written to {} (see report.html)", out.display()));
        }
    }
}

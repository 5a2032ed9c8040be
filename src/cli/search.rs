//! Flags that `compare` and `ranks` share. Both choose by data that the updates do not see, use all
//! cores, and go on after an interruption.

use std::path::PathBuf;

use crate::criterion::{OuterError, Unseen};
use crate::divergence::Outer;
use crate::practical::SCOPE;
use crate::report::shell_quoted;
use crate::threads::new_pool;
use crate::{Beta, Result, Scope};
use clap::Args;

use super::Ending;
use super::arguments::check_threads;
use super::data::DataArguments;
use super::headings::{ENGINE, MODEL, OUTPUT, PENALTIES};
use super::output::{check_inputs_safe, complain, output_path};
use super::penalties::PenaltyArguments;

/// The version of `practical` and its rivals. Kept results of other versions are not mixed with new
/// ones.
pub(super) const PROCEDURE: u32 = 4;

/// Divergence, penalties, outer error, data and output of a search.
#[derive(Debug, Args)]
pub struct SearchArguments {
    /// kl, frobenius, is, or beta:<number> (scikit-learn: beta_loss)
    #[arg(long, default_value = "kl", help_heading = MODEL)]
    pub divergence: Beta,
    /// First seed of the splits and starts (scikit-learn: random_state)
    #[arg(long, default_value_t = 0, help_heading = MODEL)]
    pub seed: u64,
    #[command(flatten)]
    pub penalties: PenaltyArguments,
    /// Scope of λ in the preset practical, as in fit
    #[arg(long, value_name = "SCOPE", default_value_t = SCOPE, help_heading = PENALTIES)]
    pub lambda_scope: Scope,
    /// The data that the updates do not see; held-out:<fraction> of the entries; thinned:<share> of
    /// the counts; auto: thinned:0.1 for counts under kl, held-out:0.1 otherwise
    #[arg(long, default_value = "auto", help_heading = PENALTIES)]
    pub criterion: Unseen,
    /// Divergence of the outer error [default: as --divergence; under kl, smoothed-kl:0.5 for
    /// thinned counts, and with --criterion auto, smoothed-kl:<half the mean of X> for other data
    /// of which a tenth or more are zeros]
    #[arg(long, value_name = "DIVERGENCE", help_heading = PENALTIES)]
    pub outer_divergence: Option<Outer>,
    #[command(flatten)]
    pub table: DataArguments,
    /// Number of parallel solves, each on one thread; 0: one per core
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = ENGINE)]
    pub threads: usize,
    /// Write the report and its data into this folder
    #[arg(long, value_name = "DIR", value_parser = output_path, help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long, help_heading = OUTPUT)]
    pub quiet: bool,
    /// Print only JSON, with all results
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

impl SearchArguments {
    /// The requested outer error.
    pub fn outer(&self) -> OuterError {
        OuterError {
            unseen: self.criterion,
            divergence: self.outer_divergence,
        }
    }

    /// Refuses too many threads, and an output folder that holds an input file.
    pub fn check(
        &self,
        data: Option<&str>,
        others: impl IntoIterator<Item = PathBuf>,
    ) -> Result<()> {
        check_threads(self.threads)?;
        let Some(out) = &self.out else {
            return Ok(());
        };
        let graphs = self.penalties.graphs.files();
        let graphs = graphs.map(|(_, file)| PathBuf::from(file));
        let data = self.table.inputs(data).into_iter();
        check_inputs_safe(out, data.chain(others).chain(graphs))
    }

    /// Thread pool for the solves, each on one thread.
    pub fn pool(&self) -> Result<rayon::ThreadPool> {
        new_pool(self.threads)
    }

    /// Reports what an interrupted search has kept.
    pub fn interrupted(&self, kept: &str) -> Ending {
        match &self.out {
            Some(out) => complain(format!(
                "interrupted; {kept} kept in {}, and the same command goes on with the rest",
                shell_quoted(out)
            )),
            None => complain("interrupted; nothing is kept, because no --out was given"),
        }
        Ending::Interrupted
    }
}

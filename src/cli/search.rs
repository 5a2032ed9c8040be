//! Flags that `compare` and `ranks` share: both choose by what the updates do not see, on all
//! cores, and go on where they were interrupted.

use std::path::{Path, PathBuf};

use crate::criterion::{OuterError, Unseen};
use crate::data::Reservation;
use crate::divergence::Outer;
use crate::report::{KeptRecords, shell_quoted};
use crate::{Beta, Error, Result, Scope};
use clap::Args;

use super::Ending;
use super::data::DataArguments;
use super::headings::{ENGINE, MODEL, OUTPUT, PENALTIES};
use super::output::{check_inputs_safe, complain, output_path};
use super::penalties::PenaltyArguments;

/// Divergence, penalties, outer error, data and output of a search.
#[derive(Debug, Args)]
pub struct SearchArguments {
    /// kl, frobenius, is, or beta:<number> (scikit-learn: beta_loss)
    #[arg(long, default_value = "kl", help_heading = MODEL)]
    pub divergence: Beta,
    /// The first seed, of splits and starts (scikit-learn: random_state)
    #[arg(long, default_value_t = 0, help_heading = MODEL)]
    pub seed: u64,
    #[command(flatten)]
    pub penalties: PenaltyArguments,
    /// What each λ of the preset practical belongs to
    #[arg(long, value_name = "SCOPE", default_value = "hierarchical:1", help_heading = PENALTIES)]
    pub lambda_scope: Scope,
    /// What the updates do not see: held-out:<fraction> of the entries, thinned:<share> of the
    /// counts, or auto: thinned:0.1 for counts under kl, held-out:0.1 otherwise
    #[arg(long, default_value = "auto", help_heading = PENALTIES)]
    pub criterion: Unseen,
    /// How the outer error is measured [default: as --divergence; smoothed-kl:0.5 for thinned
    /// counts under kl]
    #[arg(long, value_name = "DIVERGENCE", help_heading = PENALTIES)]
    pub outer_divergence: Option<Outer>,
    #[command(flatten)]
    pub table: DataArguments,
    /// Solves at a time; 0 is one for each core
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = ENGINE)]
    pub threads: usize,
    /// Keep the report and what it is made of in this folder
    #[arg(long, value_name = "DIR", value_parser = output_path, help_heading = OUTPUT)]
    pub out: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(long, help_heading = OUTPUT)]
    pub quiet: bool,
    /// Print everything as JSON, and nothing else
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

impl SearchArguments {
    /// The outer error that was asked for.
    pub fn outer(&self) -> OuterError {
        OuterError {
            unseen: self.criterion,
            divergence: self.outer_divergence,
        }
    }

    /// Refuses too many threads, and a folder that holds a file that is read.
    pub fn check(
        &self,
        data: Option<&str>,
        others: impl IntoIterator<Item = PathBuf>,
    ) -> Result<()> {
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
        let graphs = self.penalties.graphs.files();
        let graphs = graphs.map(|(_, file)| PathBuf::from(file));
        let data = self.table.inputs(data).into_iter();
        check_inputs_safe(out, data.chain(others).chain(graphs))
    }

    /// Threads for solves, each on one of them.
    pub fn pool(&self) -> Result<rayon::ThreadPool> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads);
        pool.build().map_err(|error| Error::Threads {
            threads: self.threads,
            reason: error.to_string(),
        })
    }

    /// Says what is left of a search that was interrupted.
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

/// Claims a folder for a search, with what it holds of an earlier one.
///
/// # Errors
/// [`Error::NotAnExperiment`] for a folder of something else, [`Error::OtherComparison`] for
/// records that are not the `same`, [`Error::Busy`].
pub fn claim<Records: KeptRecords>(
    folder: &Path,
    lock: &'static str,
    foreign: &'static str,
    same: impl Fn(&Records) -> bool,
) -> Result<(Reservation, Option<Records>)> {
    let read = || Records::read(folder).ok();
    let kept = read();
    // (A folder with the lock in it is being made by another search, or was.)
    if folder.exists() && kept.is_none() && !folder.join(lock).is_file() {
        return Err(Error::NotAnExperiment {
            path: folder.into(),
            reason: foreign,
        });
    }
    let mut claim = Reservation::of(folder, lock, &[Records::FILE])?;
    if kept.is_some() {
        claim.keep();
    }
    // (Again: whoever had the folder before may have written into it.)
    let kept = read().or(kept);
    if kept.as_ref().is_some_and(|kept| !same(kept)) {
        return Err(Error::OtherComparison {
            path: folder.into(),
        });
    }
    Ok((claim, kept))
}

//! The flags of `fit`, and their settings.

use std::path::{Path, PathBuf};

use crate::data::{Benchmark, Reading, Source};
use crate::problem::{Scale, Scaling};
use crate::{AltBiConfig, Beta, Error, GivenFactors, LambdaStart, Result};
use clap::{Args, ValueEnum};

use crate::cli::arguments::{CriterionArguments, LambdaArgument, read_optional, words};
use crate::cli::config_file::setting;
use crate::cli::data::DataArguments;
use crate::cli::headings::{DATA, MODEL, OUTPUT, PENALTIES};
use crate::cli::output::output_path;
use crate::cli::penalties::PenaltyArguments;
use crate::cli::preset::Preset;

use super::solver_flags::SolverFlags;

/// Arguments of `fit`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi fit                                     the demo, with a summary
  altbi fit x.npy --rank 5 --out run            your data, results in the folder run
  altbi fit x.csv --rank 5 --divergence is --penalty l2 --exponent monotone
  altbi fit x.npy --rank 5 --method mu-t        the baseline that AltBi must beat
  altbi fit x.npy --rank 5 --criterion held-out:0.1   tuned on entries that are held out
  altbi fit counts.csv --rank 5 --criterion thinned:0.1   tuned on a tenth of all counts
  altbi fit x.npy --rank 5 --preset practical --penalize both --penalty smooth --penalty-h l1
                                                smooth W, sparse H, tuned λ
  altbi fit data.mat:X --rank 4                 a matrix of a MATLAB file
  altbi fit x.npy --rank 5 --restarts 10        the best of ten starts
  altbi fit --config run/config.toml            the same run again
  altbi fit --continue run --max-iter 5000 --out longer    go on with a finished run

Baselines ignore flags that do not apply to them.")]
pub(in crate::cli) struct FitArguments {
    /// The matrix X: .npy, .npz, .csv, .tsv, .txt, .mtx, .mat (file.mat:NAME), text also compressed
    /// (.csv.gz, .mtx.gz), or - for .csv on standard input [default: an embedded demo, benchmark A,
    /// 1000×50]
    pub(in crate::cli) data: Option<String>,
    /// Number of components r (scikit-learn: n_components)
    #[arg(long, help_heading = MODEL)]
    pub(super) rank: Option<usize>,
    /// kl, frobenius, is, or beta:<number> (scikit-learn: beta_loss)
    #[arg(long, default_value = "kl", help_heading = MODEL)]
    pub(in crate::cli) divergence: Beta,
    #[command(flatten)]
    pub(in crate::cli) penalties: PenaltyArguments,
    #[command(flatten)]
    pub(in crate::cli) solver: SolverFlags,
    /// First λ: auto, one number for all weights, or a file with a number for each (scikit-learn:
    /// alpha_W and alpha_H, which are fixed)
    #[arg(long, default_value = "auto", allow_negative_numbers = true, help_heading = PENALTIES)]
    pub(super) lambda: LambdaArgument,
    #[command(flatten)]
    pub(in crate::cli) criterion: CriterionArguments,
    /// Divide each column or row of X by its root mean square for the fit; W and H are scaled back
    /// to the units of X, λ and errors refer to the scaled X
    #[arg(long, default_value = "none", value_parser = words::<Scale>(), help_heading = DATA, hide_short_help = true)]
    pub(super) scale: Scale,
    /// A named set of settings; flags that you type take precedence
    #[arg(long, default_value = "paper", help_heading = MODEL)]
    pub(in crate::cli) preset: Preset,
    /// Updates on all entries at the end of the preset practical; 0: none [default: 10]
    #[arg(long, value_name = "N", help_heading = PENALTIES, hide_short_help = true)]
    pub(in crate::cli) refit: Option<usize>,
    /// Splits of the data that tune λ in turn in the preset practical [default: 3, or 1 for more
    /// than a million entries]
    #[arg(long, value_name = "N", help_heading = PENALTIES, hide_short_help = true)]
    pub(in crate::cli) splits: Option<usize>,
    /// Number of starts, with the seeds SEED, SEED + 1, …; the best one is kept: by the outer error
    /// if data are held out, otherwise by the divergence
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = MODEL, hide_short_help = true)]
    pub(super) restarts: usize,
    /// W at the start, n×r, a file like DATA [default: as --init] (scikit-learn: W, with
    /// init='custom')
    #[arg(long, value_name = "FILE", help_heading = MODEL, hide_short_help = true)]
    pub(super) init_w: Option<String>,
    /// H at the start, r×m, a file like DATA [default: as --init] (scikit-learn: H, with
    /// init='custom')
    #[arg(long, value_name = "FILE", help_heading = MODEL, hide_short_help = true)]
    pub(super) init_h: Option<String>,
    /// Go on with a finished run, from its factors and λ and with its settings; flags that you type
    /// take precedence; iterations are counted from the start of that run
    #[arg(long = "continue", value_name = "RUN", help_heading = OUTPUT)]
    pub(super) continue_: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) table: DataArguments,
    /// Settings from a file; flags that you type take precedence
    #[arg(long, value_name = "FILE.toml", help_heading = OUTPUT)]
    pub(super) config: Option<PathBuf>,
    /// Write results, report and checkpoints into this new folder
    #[arg(long, value_name = "DIR", value_parser = output_path, help_heading = OUTPUT)]
    pub(super) out: Option<PathBuf>,
    /// Format of W and H; csv: also write them as tables with the labels of the data
    #[arg(long, default_value = "npy", help_heading = OUTPUT)]
    pub(super) format: Format,
    /// Iterations between two checkpoints [default: about every 10 seconds]
    #[arg(long, value_name = "N", help_heading = OUTPUT, hide_short_help = true)]
    pub(super) checkpoint_every: Option<usize>,
    /// Replace an existing run folder
    #[arg(long, help_heading = OUTPUT)]
    pub(super) force: bool,
    /// Print nothing but errors
    #[arg(long, help_heading = OUTPUT)]
    pub(super) quiet: bool,
    /// Print only the summary, as JSON
    #[arg(long, help_heading = OUTPUT)]
    pub(super) json: bool,
    /// Every parsed setting under the name of its flag.
    #[arg(skip)]
    pub(in crate::cli) settings: toml::Table,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Npy,
    Csv,
}

impl FitArguments {
    /// The files that the run reads.
    pub(in crate::cli) fn inputs(&self) -> impl Iterator<Item = PathBuf> {
        let lambda = match &self.lambda {
            LambdaArgument::File(file) => Some(file),
            LambdaArgument::Auto | LambdaArgument::Value(_) => None,
        };
        let starts = [self.init_w.as_ref(), self.init_h.as_ref(), lambda];
        let graphs = self.penalties.graphs.files().map(|(_, file)| file);
        let starts = starts.into_iter().flatten().chain(graphs);
        let starts = starts.map(PathBuf::from).chain(self.continue_.clone());
        let table = self.table.inputs(self.data.as_deref());
        starts.chain(self.config.clone()).chain(table)
    }

    /// The given factors of the start, in the units of the scaled problem.
    pub(super) fn given_factors(&self, scaling: Option<&Scaling>) -> Result<GivenFactors> {
        let w = read_optional(self.init_w.as_ref())?;
        let h = read_optional(self.init_h.as_ref())?;
        Ok(match scaling {
            Some(scaling) => GivenFactors {
                w: w.map(|w| scaling.w_scaled(&w)),
                h: h.map(|h| scaling.h_scaled(&h)),
            },
            None => GivenFactors { w, h },
        })
    }

    pub(super) fn solver_config(&self, truth: Option<&Benchmark>) -> Result<AltBiConfig> {
        let rank = match self.rank {
            Some(rank) => Some(rank),
            None => {
                let of_w = read_optional(self.init_w.as_ref())?.map(|w| w.ncols());
                let of_h = read_optional(self.init_h.as_ref())?.map(|h| h.nrows());
                let of_truth = truth.map(|truth| truth.w.ncols());
                of_w.or(of_h).or(of_truth)
            }
        };
        let ok = self.checkpoint_every != Some(0);
        let what = "the number of iterations between checkpoints";
        Error::require(ok, what, 0.0, "at least 1")?;
        let mut config = self.settings_of_solver();
        config.rank = rank.ok_or(Error::RankMissing)?;
        Ok(config)
    }

    /// The settings of the solver, except for the rank: those that were typed, over those of the
    /// preset.
    pub(in crate::cli) fn settings_of_solver(&self) -> AltBiConfig {
        let mut config = self.solver.over(self.preset.config(self));
        config.precision = self.table.dtype;
        if let LambdaArgument::Value(value) = self.lambda {
            config.lambda = LambdaStart::Value(value);
        }
        config
    }

    /// The settings that the preset or other flags may have changed, under the names of their flags.
    pub(in crate::cli) fn resolved_settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = SolverFlags::settings(&self.settings_of_solver());
        settings.push(("criterion", self.criterion.criterion.to_string()));
        settings.push(("divergence", self.divergence.to_string()));
        settings.push(("penalize", self.penalties.penalize.to_string()));
        settings
    }

    /// Every setting under the name of its flag. Automatic choices are replaced by their results,
    /// and files have absolute paths.
    pub(super) fn config_text(
        &self,
        source: Option<&Source>,
        rank: usize,
        reading: Option<&Reading>,
    ) -> String {
        let mut table = self.settings.clone();
        let absolute = |path: &String| {
            let path = std::path::absolute(Path::new(path));
            path.map_or_else(
                |_| String::new(),
                |path| path.to_string_lossy().into_owned(),
            )
        };
        let lambda = match &self.lambda {
            LambdaArgument::File(file) => Some(file),
            LambdaArgument::Auto | LambdaArgument::Value(_) => None,
        };
        let continued = self.continue_.as_ref();
        let continued = continued.map(|run| run.to_string_lossy().into_owned());
        let files = [
            ("mask", self.table.mask.as_ref()),
            ("init-w", self.init_w.as_ref()),
            ("init-h", self.init_h.as_ref()),
            ("lambda", lambda),
            ("continue", continued.as_ref()),
        ];
        let graphs = self.penalties.graphs.files();
        let files = files
            .into_iter()
            .chain(graphs.map(|(key, file)| (key, Some(file))));
        let files = files.filter_map(|(key, file)| Some((key, absolute(file?))));
        let data = source.map(|source| ("data", source.to_string()));
        // Data from standard input are stored beside the configuration.
        let piped = self.table.mask.as_deref() == Some("-");
        let mask = piped.then(|| ("mask", "mask.csv".to_owned()));
        let all = files.chain(mask).chain(data);
        for (key, text) in all.chain(self.table.settings(reading)) {
            table.insert(key.into(), text.into());
        }
        table.insert("rank".into(), setting(&rank.to_string()));
        toml::to_string(&table).expect("a table of plain values")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::config_file::typed_arguments;

    /// The defaults of the flags are those of the library.
    #[test]
    fn flags_have_the_defaults_of_the_library() {
        let typed = ["x.npy", "--rank", "3"].map(Into::into);
        let arguments = typed_arguments(&typed).unwrap();
        let config = arguments.solver_config(None).unwrap();
        assert_eq!(config, AltBiConfig::new(3));
    }
}

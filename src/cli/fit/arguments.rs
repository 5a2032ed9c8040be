//! The flags of `fit`, and their settings.

use std::path::{Path, PathBuf};

use crate::criterion::Unseen;
use crate::data::{Benchmark, Reading, Source};
use crate::problem::{Scale, Scaling};
use crate::{
    AltBiConfig, Beta, EngineChoice, Error, Exponent, GivenFactors, Initial, LambdaStart,
    LambdaStep, Method, Mode, Normalization, Result, Selection, Units,
};
use clap::{Args, ValueEnum};

use crate::cli::arguments::{CriterionArguments, LambdaArgument, read_optional, words};
use crate::cli::config_file::setting;
use crate::cli::data::DataArguments;
use crate::cli::headings::{DATA, ENGINE, MODEL, OUTPUT, PENALTIES, STOPPING};
use crate::cli::output::output_path;
use crate::cli::penalties::TuningArguments;
use crate::cli::preset::Preset;

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
    /// AltBi or a baseline; mu is plain multiplicative updates (scikit-learn: solver='mu')
    #[arg(long, default_value = "altbi", value_parser = words::<Method>(), help_heading = MODEL)]
    pub(in crate::cli) method: Method,
    /// kl, frobenius, is, or beta:<number> (scikit-learn: beta_loss)
    #[arg(long, default_value = "kl", help_heading = MODEL)]
    pub(in crate::cli) divergence: Beta,
    #[command(flatten)]
    pub(in crate::cli) tuning: TuningArguments,
    /// T, the number of updates of W per update of H; of both factors with --bunch-over both
    #[arg(long, value_name = "T", default_value_t = 4, help_heading = PENALTIES)]
    pub(super) bunch: usize,
    /// Exponent of the updates; one: 1; monotone: the objective never rises; fit: the same, but
    /// computed without the penalties
    #[arg(long, default_value = "one", value_parser = words::<Exponent>(), help_heading = MODEL, hide_short_help = true)]
    pub(super) exponent: Exponent,
    /// Plain updates of both factors before the first iteration
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = PENALTIES, hide_short_help = true)]
    pub(super) warm_up: usize,
    /// First λ: auto, one number for all weights, or a file with a number for each (scikit-learn:
    /// alpha_W and alpha_H, which are fixed)
    #[arg(long, default_value = "auto", allow_negative_numbers = true, help_heading = PENALTIES)]
    pub(super) lambda: LambdaArgument,
    /// Steps of λ; inv-iter: dE/dλ / iteration (the paper); constant:<number>: number × dE/dλ;
    /// normalized:<rate> and adam:<rate>: steps in log λ, which do not depend on the units of X
    #[arg(long, default_value = "inv-iter", help_heading = PENALTIES, hide_short_help = true)]
    pub(super) lambda_step: LambdaStep,
    /// Units of λ; relative: multiples of the weight at which penalty and fit pull equally hard
    #[arg(long, value_name = "UNITS", default_value = "absolute", value_parser = words::<Units>(), help_heading = PENALTIES, hide_short_help = true)]
    pub(super) lambda_units: Units,
    /// Smallest λ, except for λ = 0
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true, help_heading = PENALTIES, hide_short_help = true)]
    pub(super) lambda_min: f64,
    /// Largest λ
    #[arg(long, value_name = "X", default_value_t = f64::INFINITY, allow_negative_numbers = true, help_heading = PENALTIES, hide_short_help = true)]
    pub(super) lambda_max: f64,
    /// Method to compute the hypergradient
    #[arg(long, default_value = "reverse", value_parser = words::<Mode>(), help_heading = ENGINE, hide_short_help = true)]
    pub(super) hypergradient: Mode,
    /// Engine of the iterations; fused: fused loops; autodiff: tensors; auto: fused if possible,
    /// checked against autodiff in the first iteration
    #[arg(long, default_value = "auto", value_parser = words::<EngineChoice>(), help_heading = ENGINE, hide_short_help = true)]
    pub(super) engine: EngineChoice,
    /// Number of threads; 0: one per core
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = ENGINE, hide_short_help = true)]
    pub(super) threads: usize,
    #[command(flatten)]
    pub(in crate::cli) criterion: CriterionArguments,
    /// The iterate to keep; best: the one with the lowest outer error (early stopping, if data are
    /// held out) [default: last with --criterion train, best otherwise]
    #[arg(long, value_parser = words::<Selection>(), help_heading = STOPPING, hide_short_help = true)]
    pub(super) select: Option<Selection>,
    /// Rescale W and H before each bunch, so that W cannot evade its penalty by shrinking; h-rows:
    /// rows of H sum to 1; h-rms: their root mean square is 1
    #[arg(long, default_value = "none", value_parser = words::<Normalization>(), help_heading = MODEL, hide_short_help = true)]
    pub(super) normalize: Normalization,
    /// Divide each column or row of X by its root mean square for the fit; W and H are scaled back
    /// to the units of X, λ and errors refer to the scaled X
    #[arg(long, default_value = "none", value_parser = words::<Scale>(), help_heading = DATA, hide_short_help = true)]
    pub(super) scale: Scale,
    /// Largest number of iterations (scikit-learn: max_iter)
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = STOPPING)]
    pub(super) max_iter: usize,
    /// Stop when the divergence changes by less than this, relative to the start (scikit-learn:
    /// tol)
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true, help_heading = STOPPING)]
    pub(super) tol: f64,
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
    /// W and H at the start; random: uniform, W scaled so that WH has the mean of X; uniform: the
    /// paper's start, not scaled; nndsvd, nndsvda: from singular vectors (scikit-learn: init)
    #[arg(long, default_value = "random", value_parser = words::<Initial>(), help_heading = MODEL)]
    pub(super) init: Initial,
    /// Seed of the random start (scikit-learn: random_state)
    #[arg(long, default_value_t = 0, help_heading = MODEL)]
    pub(super) seed: u64,
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
        let graphs = self.tuning.penalties.graphs.files().map(|(_, file)| file);
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
        if self.checkpoint_every == Some(0) {
            return Err(Error::Setting {
                setting: "the number of iterations between checkpoints",
                value: 0.0,
                range: "at least 1",
            });
        }
        Ok(AltBiConfig {
            rank: rank.ok_or(Error::RankMissing)?,
            method: self.method,
            bunch: self.bunch,
            bunch_over: self.tuning.over(),
            warm_up: self.warm_up,
            exponent: self.exponent,
            lambda: match self.lambda {
                LambdaArgument::Value(value) => LambdaStart::Value(value),
                LambdaArgument::Auto | LambdaArgument::File(_) => LambdaStart::Auto,
            },
            lambda_step: self.lambda_step,
            lambda_min: self.lambda_min,
            lambda_max: self.lambda_max,
            scope: self.tuning.lambda_scope,
            units: self.lambda_units,
            hypergradient: self.hypergradient,
            normalize: self.normalize,
            max_iterations: self.max_iter,
            tolerance: self.tol,
            select: self.selection(),
            initial: self.init,
            seed: self.seed,
            precision: self.table.dtype,
            engine: self.engine,
            threads: self.threads,
        })
    }

    /// The iterate to keep.
    pub(in crate::cli) fn selection(&self) -> Selection {
        let of_criterion = match self.criterion.criterion {
            Unseen::Nothing => Selection::Last,
            _ => Selection::Best,
        };
        self.select.unwrap_or(of_criterion)
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
        let graphs = self.tuning.penalties.graphs.files();
        let files = files
            .into_iter()
            .chain(graphs.map(|(key, file)| (key, Some(file))));
        let files = files.filter_map(|(key, file)| Some((key, absolute(file?))));
        let found = [
            ("bunch-over", self.tuning.over().to_string()),
            ("select", self.selection().to_string()),
        ];
        let data = source.map(|source| ("data", source.to_string()));
        // Data from standard input are stored beside the configuration.
        let piped = self.table.mask.as_deref() == Some("-");
        let mask = piped.then(|| ("mask", "mask.csv".to_owned()));
        let all = files.chain(mask).chain(found).chain(data);
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

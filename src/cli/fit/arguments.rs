//! The flags of `fit`, and the settings they stand for.

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
                                                smooth W, sparse H, weights that hold
  altbi fit data.mat:X --rank 4                 a matrix of a MATLAB file
  altbi fit x.npy --rank 5 --restarts 10        the best of ten starts, and how they differ
  altbi fit --config run/config.toml            the same run again
  altbi fit --continue run --max-iter 5000 --out longer    a finished run goes on

Baselines pass over the flags that they have no use for.")]
pub(in crate::cli) struct FitArguments {
    /// The matrix X: .npy, .npz, .csv, .tsv, .txt, .mtx, .mat (file.mat:NAME), text also
    /// packed (.csv.gz, .mtx.gz), or - for .csv on
    /// standard input; without it, the embedded demo (benchmark A, 1000×50)
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
    /// Updates of W per update of H, T; of both, with --bunch-over both
    #[arg(long, value_name = "T", default_value_t = 4, help_heading = PENALTIES)]
    pub(super) bunch: usize,
    /// Exponent of the updates: 1; monotone: the one that keeps the objective from rising; fit:
    /// the one that would do so without penalties
    #[arg(long, default_value = "one", value_parser = words::<Exponent>(), help_heading = MODEL, hide_short_help = true)]
    pub(super) exponent: Exponent,
    /// Plain updates of both factors before the first iteration
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = PENALTIES, hide_short_help = true)]
    pub(super) warm_up: usize,
    /// First λ: auto, a number for all, or a file with one for each weight (scikit-learn:
    /// alpha_W and alpha_H, which stay as they are)
    #[arg(long, default_value = "auto", allow_negative_numbers = true, help_heading = PENALTIES)]
    pub(super) lambda: LambdaArgument,
    /// How λ moves: inv-iter (by dE/dλ / iteration, the paper), constant:<number>, or along
    /// log λ, without units: normalized:<rate>, adam:<rate>
    #[arg(long, default_value = "inv-iter", help_heading = PENALTIES, hide_short_help = true)]
    pub(super) lambda_step: LambdaStep,
    /// Units of λ; relative: in multiples of the weight at which the penalty
    /// pulls as hard as the fit
    #[arg(long, value_name = "UNITS", default_value = "absolute", value_parser = words::<Units>(), help_heading = PENALTIES, hide_short_help = true)]
    pub(super) lambda_units: Units,
    /// Lower end of the interval that λ > 0 is kept in
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true, help_heading = PENALTIES, hide_short_help = true)]
    pub(super) lambda_min: f64,
    /// Upper end of the interval that λ is kept in
    #[arg(long, value_name = "X", default_value_t = f64::INFINITY, allow_negative_numbers = true, help_heading = PENALTIES, hide_short_help = true)]
    pub(super) lambda_max: f64,
    /// How the hypergradient is computed
    #[arg(long, default_value = "reverse", value_parser = words::<Mode>(), help_heading = ENGINE, hide_short_help = true)]
    pub(super) hypergradient: Mode,
    /// How iterations are computed: fused loops or tensors; auto is fused where it
    /// can be, checked against autodiff in the first iteration
    #[arg(long, default_value = "auto", value_parser = words::<EngineChoice>(), help_heading = ENGINE, hide_short_help = true)]
    pub(super) engine: EngineChoice,
    /// Threads that share the work; 0 is one for each core
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = ENGINE, hide_short_help = true)]
    pub(super) threads: usize,
    #[command(flatten)]
    pub(in crate::cli) criterion: CriterionArguments,
    /// Which iterate is kept: best is the one with the lowest outer error, which on
    /// held-out entries is early stopping [default: last with train, best otherwise]
    #[arg(long, value_parser = words::<Selection>(), help_heading = STOPPING, hide_short_help = true)]
    pub(super) select: Option<Selection>,
    /// Rescale inside the loop, so that W's penalty cannot be evaded by scale
    #[arg(long, default_value = "none", value_parser = words::<Normalization>(), help_heading = MODEL, hide_short_help = true)]
    pub(super) normalize: Normalization,
    /// Bring columns or rows of X to one scale for the fit: each is divided by its root mean
    /// square; W and H get the units of X back, λ and errors are those of the scaled X
    #[arg(long, default_value = "none", value_parser = words::<Scale>(), help_heading = DATA, hide_short_help = true)]
    pub(super) scale: Scale,
    /// Outer iterations at most (scikit-learn: max_iter)
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = STOPPING)]
    pub(super) max_iter: usize,
    /// Stop when the divergence changes by less than this, relative to the start (scikit-learn:
    /// tol)
    #[arg(long, default_value_t = 1e-6, allow_negative_numbers = true, help_heading = STOPPING)]
    pub(super) tol: f64,
    /// A named set of settings, under the flags that are typed; paper: the defaults;
    /// practical: λ that holds on held-out entries, against plain updates stopped early;
    /// shinbo: Itakura-Saito, one λ per row of H
    #[arg(long, default_value = "paper", help_heading = MODEL)]
    pub(in crate::cli) preset: Preset,
    /// Updates on all entries at the end of the preset practical; 0: none [default: 10]
    #[arg(long, value_name = "N", help_heading = PENALTIES, hide_short_help = true)]
    pub(in crate::cli) refit: Option<usize>,
    /// How W and H are found at the start; random: uniform, W scaled to the mean of X;
    /// uniform: the paper's, not scaled; nndsvd, nndsvda: from singular vectors (scikit-learn: init)
    #[arg(long, default_value = "random", value_parser = words::<Initial>(), help_heading = MODEL)]
    pub(super) init: Initial,
    /// Seed of the random start (scikit-learn: random_state)
    #[arg(long, default_value_t = 0, help_heading = MODEL)]
    pub(super) seed: u64,
    /// Make so many starts, with the seeds SEED, SEED + 1, …, on all cores, and keep the best: by
    /// the outer error where something is held out, otherwise by the divergence
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = MODEL, hide_short_help = true)]
    pub(super) restarts: usize,
    /// W at the start, n×r, a file like DATA; random without it (scikit-learn: W, with
    /// init='custom')
    #[arg(long, value_name = "FILE", help_heading = MODEL, hide_short_help = true)]
    pub(super) init_w: Option<String>,
    /// H at the start, r×m, a file like DATA; random without it (scikit-learn: H, with
    /// init='custom')
    #[arg(long, value_name = "FILE", help_heading = MODEL, hide_short_help = true)]
    pub(super) init_h: Option<String>,
    /// Go on with a finished run: its factors and λ are the start, its settings those of its
    /// config.toml under the flags that are typed; iterations are counted from its start
    #[arg(long = "continue", value_name = "RUN", help_heading = OUTPUT)]
    pub(super) continue_: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) table: DataArguments,
    /// Settings from a file, under the flags that are typed
    #[arg(long, value_name = "FILE.toml", help_heading = OUTPUT)]
    pub(super) config: Option<PathBuf>,
    /// Keep results, report and checkpoints in this new folder
    #[arg(long, value_name = "DIR", value_parser = output_path, help_heading = OUTPUT)]
    pub(super) out: Option<PathBuf>,
    /// csv: W and H also as tables with the data's labels
    #[arg(long, default_value = "npy", help_heading = OUTPUT)]
    pub(super) format: Format,
    /// Iterations between two checkpoints; without it, about every 10 seconds
    #[arg(long, value_name = "N", help_heading = OUTPUT, hide_short_help = true)]
    pub(super) checkpoint_every: Option<usize>,
    /// Replace an existing run folder
    #[arg(long, help_heading = OUTPUT)]
    pub(super) force: bool,
    /// Print nothing but errors
    #[arg(long, help_heading = OUTPUT)]
    pub(super) quiet: bool,
    /// Print the summary as JSON, and nothing else
    #[arg(long, help_heading = OUTPUT)]
    pub(super) json: bool,
    /// Every setting under the name of its flag, as it was parsed.
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

    /// The factors that were given for the start, as the scaled problem has them.
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

    /// Every setting, under the name of its flag, with what was found out in place of what
    /// was left open; files by absolute paths.
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
        // Data from a pipe lies beside the configuration.
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

//! `--continue RUN`: a finished run goes on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::problem::Scaling;
use crate::report::{Continued, RunFolder, RunRecords};
use crate::solver::Ended;
use crate::{Error, Factors, Result, Side};
use clap::{ArgMatches, Args, Command};
use ndarray::Array2;

use super::FitArguments;
use crate::cli::config_file;
use crate::cli::preset::Preset;

/// The run that was typed after `--continue`.
fn typed_run(typed: &[OsString]) -> Option<PathBuf> {
    let command = FitArguments::augment_args(Command::new("fit"));
    let matches: ArgMatches = command
        .no_binary_name(true)
        .args_override_self(true)
        .try_get_matches_from(typed)
        .ok()?;
    matches.get_one::<PathBuf>("continue_").cloned()
}

/// The settings of a run that goes on: those of its `config.toml`. Typed flags take precedence.
pub(super) fn settings_of(typed: &[OsString]) -> Result<Option<FitArguments>> {
    let Some(run) = typed_run(typed) else {
        return Ok(None);
    };
    let path = run.join("config.toml");
    let text = RunFolder::open(&run)?.read_config()?;
    // The new run has one start, even if the old run had several.
    let lines = text.lines().filter(|line| !line.starts_with("restarts ="));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    config_file::parse(&text, &path, typed).map(Some)
}

/// Refuses flags that contradict `--continue`.
pub(super) fn check(arguments: &FitArguments) -> Result<()> {
    let refuse = |second, reason| {
        Err(Error::Conflict {
            first: "--continue",
            second,
            reason,
        })
    };
    if arguments.continue_.is_none() {
        Ok(())
    } else if arguments.out.is_none() {
        refuse(
            "a run without --out",
            "the old run is not overwritten; use --out DIR for the new one",
        )
    } else if arguments.preset == Preset::Practical {
        refuse(
            "--preset practical",
            "its factors are those of a refit, and λ is chosen already; --preset paper goes on \
             from them, with the other settings of the run",
        )
    } else {
        Ok(())
    }
}

/// The final state of the old run, and a line about it.
pub(super) struct Before {
    pub ended: Ended,
    pub told: Continued,
    data_hash: String,
}

impl Before {
    /// Reads the folder of a finished run.
    pub fn read(run: &Path) -> Result<Self> {
        let records = RunRecords::read(run)?;
        let number = |key: &str| records.summary.get(key).and_then(|value| value.as_u64());
        let iterations = number("iterations").unwrap_or_default() as usize;
        let selected = number("selected_iteration").map_or(iterations, |of| of as usize);
        let mut history = records.history.clone();
        history.retain(|record| record.iteration <= selected);
        let lambda = in_order(&records, &records.lambda);
        let lambda_at_start = in_order(&records, &records.lambda_start);
        let hash = records.summary.get("data_hash").and_then(|of| of.as_str());
        Ok(Self {
            data_hash: hash.unwrap_or_default().to_owned(),
            told: Continued {
                run: run.to_string_lossy().into_owned(),
                iterations,
            },
            ended: Ended {
                factors: Factors {
                    w: records.w,
                    h: records.h,
                },
                lambda,
                lambda_at_start,
                history,
            },
        })
    }

    /// The same with its factors in the units of the scaled problem.
    pub fn scaled(mut self, scaling: Option<&Scaling>) -> Self {
        if let Some(scaling) = scaling {
            let Factors { w, h } = &self.ended.factors;
            let (w, h) = (scaling.w_scaled(w), scaling.h_scaled(h));
            self.ended.factors = Factors { w, h };
        }
        self
    }

    /// Refuses data other than those of the run.
    pub fn check_data(&self, data: &str, hash: &str) -> Result<()> {
        if self.data_hash == hash {
            return Ok(());
        }
        Err(Error::DataChanged {
            data: data.into(),
            run: PathBuf::from(&self.told.run),
        })
    }
}

/// All weights in the order of the solver. (The files have the transpose of H's weights.)
fn in_order(records: &RunRecords, column: &Array2<f64>) -> Array2<f64> {
    let mut rest = column.iter().copied();
    let mut ordered = Vec::with_capacity(column.len());
    for (penalty, (_, group)) in records.penalties.iter().zip(&records.groups) {
        let values: Vec<f64> = rest.by_ref().take(group.len()).collect();
        let of_file = Array2::from_shape_vec(group.dim(), values);
        let of_file = of_file.unwrap_or_else(|_| group.clone());
        match penalty.factor {
            Side::W => ordered.extend(of_file.iter()),
            Side::H => ordered.extend(of_file.t().iter()),
        }
    }
    ordered.extend(rest);
    Array2::from_shape_vec((ordered.len(), 1), ordered).expect("as many as there are")
}

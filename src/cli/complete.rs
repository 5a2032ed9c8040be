//! `altbi complete`: the reconstruction WH of a run, or X with its missing entries filled.

use std::path::{Path, PathBuf};

use crate::data::{Source, Table, check_room, demo};
use crate::report::{RunFolder, RunRecords};
use crate::{Error, Result, Zeros};
use clap::{Args, ValueEnum};
use ndarray::{Array2, Zip};

use super::output::{check_new_file, complain, output_path};
use super::tables::{check_ending, deliver};
use super::{Ending, config_file};

/// Arguments of `complete`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi complete run --out wh.npy                     the reconstruction WH
  altbi complete run --only missing --out full.csv    X with missing entries from WH

Without --out the table is printed.")]
pub struct CompleteArguments {
    /// The folder of a finished run
    run: PathBuf,
    /// missing: X, with WH only for entries that are missing or have weight 0
    #[arg(long)]
    only: Option<Only>,
    /// Write the matrix into this file, .csv or .npy
    #[arg(long, value_name = "FILE", value_parser = output_path)]
    out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Print nothing but errors and the table
    #[arg(long)]
    quiet: bool,
}

/// `--only`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Only {
    Missing,
}

/// Runs `complete`.
pub fn complete(arguments: &CompleteArguments) -> Result<Ending> {
    let out = arguments.out.as_deref();
    if let Some(out) = out {
        check_ending(out, ".csv, .npy")?;
        check_new_file(out, arguments.force, [])?;
    }
    let records = RunRecords::read(&arguments.run)?;
    let (n, m) = (records.w.nrows(), records.h.ncols());
    check_room(out.unwrap_or(&arguments.run), n, m)?;
    let values = match arguments.only {
        None => records.w.dot(&records.h),
        Some(Only::Missing) => filled(arguments, &records)?,
    };
    let table = Table {
        row_labels: records.labels.rows,
        column_labels: records.labels.columns,
        ..Table::from(values)
    };
    deliver(&table, out, arguments.quiet)
}

/// X, with WH for entries of weight 0.
fn filled(arguments: &CompleteArguments, records: &RunRecords) -> Result<Array2<f64>> {
    let folder = RunFolder::open(&arguments.run)?;
    let config = folder.read_config()?;
    let settings = config_file::parse(&config, &folder.path().join("config.toml"), &[])?;
    let (name, inputs) = (settings.data.clone(), settings.inputs());
    if let Some(out) = &arguments.out {
        check_new_file(out, arguments.force, inputs)?;
    }
    let data = match &name {
        Some(name) => settings.table.read(&Source::from(name.as_str()), true)?,
        None => settings.table.weighted(Table::from(demo().x))?,
    };
    let name = name.unwrap_or_else(|| "the demo".into());
    let hash = records.summary.get("data_hash");
    if hash.and_then(|hash| hash.as_str()) != Some(data.fingerprint().as_str()) {
        return Err(Error::DataChanged {
            data: name,
            run: arguments.run.clone(),
        });
    }
    if data.is_sparse() {
        if settings.table.zeros == Zeros::Data {
            return Err(Error::SparseUnsupported {
                reason: "--only missing needs missing entries, and the run had --zeros data: \
                         what is not stored is 0"
                    .into(),
            });
        }
        if !arguments.quiet {
            let (n, m) = (records.w.nrows(), records.h.ncols());
            complain(format!(
                "note: X is sparse, and all its {n}×{m} entries will be written"
            ));
        }
    }
    let data = data.dense(&settings.table, Path::new(&name))?;
    let mut values = data.values;
    let shape = [records.w.nrows(), records.h.ncols()];
    Error::require_shape("WH", shape, values.dim().into())?;
    if let Some(mask) = data.mask {
        let product = records.w.dot(&records.h);
        let entries = Zip::from(&mut values).and(&mask).and(&product);
        entries.for_each(|value, weight, product| {
            if *weight == 0.0 {
                *value = *product;
            }
        });
    }
    Ok(values)
}

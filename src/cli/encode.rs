//! `altbi encode`: describes new rows or columns by the factors of a run.

use std::path::{Path, PathBuf};

use crate::data::{Source, Table};
use crate::device::Device;
use crate::report::{RunRecords, arrangement};
use crate::{Error, Model, Result, Side};
use clap::{Args, ValueEnum};
use ndarray::{Array2, Axis};

use super::Ending;
use super::data::{DataArguments, Dense};
use super::output::{check_new_file, complain, output_path};
use super::tables::{check_ending, components, deliver};

/// Arguments of `encode`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  altbi encode run new.csv --out codes.csv          new rows described by the run's H
  altbi encode run new.npy --side columns --plain   new columns described by its W, no penalty

Without --out the table is printed. If both the run and NEW have names, features are matched by
name.")]
pub struct EncodeArguments {
    /// The folder of a finished run
    run: PathBuf,
    /// New data, a file like DATA of fit
    new: String,
    /// Contents of NEW: rows are encoded by H, columns by W
    #[arg(long, default_value = "rows")]
    side: NewSide,
    /// Leave out the penalties of the run
    #[arg(long)]
    plain: bool,
    /// Write the codes into this file, .csv or .npy
    #[arg(long, value_name = "FILE", value_parser = output_path)]
    out: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Print nothing but errors and the table
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    table: DataArguments,
}

/// `--side`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NewSide {
    Rows,
    Columns,
}

/// Runs `encode`.
pub fn encode(arguments: &EncodeArguments) -> Result<Ending> {
    if let Some(out) = &arguments.out {
        check_ending(out, ".csv, .npy")?;
        let read = arguments.table.inputs(Some(&arguments.new));
        check_new_file(out, arguments.force, read)?;
    }
    let records = RunRecords::read(&arguments.run)?;
    let device = arguments.table.device.parse::<Device>()?;
    let mut model = records.model(arguments.table.dtype, device)?;
    if arguments.plain {
        model = model.without_penalties();
    }
    let side = match arguments.side {
        NewSide::Rows => Side::W,
        NewSide::Columns => Side::H,
    };
    // Before NEW is read: a penalty may refuse.
    let borrowed = model.borrowed(side)?;
    let source = Source::from(arguments.new.as_str());
    let new = arguments.table.read(&source, arguments.quiet)?;
    let new = new.dense(&arguments.table, Path::new(&arguments.new))?;
    let new = arranged(new, side, &records, &model)?;
    if !arguments.quiet {
        for one in borrowed {
            let (penalty, scope, lambda) = (one.penalty, one.scope, one.lambda);
            complain(format!(
                "note: λ of {penalty} has the scope {scope}, and new {} have none: they get the \
                 run's median, {lambda:.3e}; --plain leaves penalties out",
                of(side).1
            ));
        }
    }
    let codes = model.encode(side, new.values, new.mask)?;
    let rank = Some(components(model.w.ncols()));
    let table = match side {
        Side::W => Table {
            row_labels: new.labels.rows,
            column_labels: rank,
            ..Table::from(codes)
        },
        Side::H => Table {
            row_labels: rank,
            column_labels: new.labels.columns,
            ..Table::from(codes)
        },
    };
    deliver(&table, arguments.out.as_deref(), arguments.quiet)
}

/// The names of the features of new data, and of the new lines: rows or columns.
fn of(side: Side) -> (&'static str, &'static str) {
    match side {
        Side::W => ("columns", "rows"),
        Side::H => ("rows", "columns"),
    }
}

/// New data with its features in the order of the run.
fn arranged(mut new: Dense, side: Side, records: &RunRecords, model: &Model) -> Result<Dense> {
    let (axis, known, found, expected) = match side {
        Side::W => {
            let expected = [new.values.nrows(), model.h.ncols()];
            let known = &records.labels.columns;
            (Axis(1), known, &new.labels.columns, expected)
        }
        Side::H => {
            let expected = [model.w.nrows(), new.values.ncols()];
            (Axis(0), &records.labels.rows, &new.labels.rows, expected)
        }
    };
    if let (Some(known), Some(found)) = (known, found) {
        let places = arrangement(of(side).0, known, found)?;
        let put = |matrix: &Array2<f64>| matrix.select(axis, &places);
        if places.iter().enumerate().any(|(to, from)| to != *from) {
            new.values = put(&new.values);
            new.mask = new.mask.as_ref().map(put);
        }
    } else {
        Error::require_shape("NEW", new.values.dim(), expected)?;
    }
    Ok(new)
}

//! The report of an experiment: tables, figures, and one page with all of them.
//!
//! | file | contents |
//! |---|---|
//! | `report.html` | all results, in one self-contained page |
//! | `tables/fits.csv` | every fit at every moment |
//! | `tables/summary.csv` | mean, deviation and quartiles over starts |
//! | `tables/comparisons.csv` | AltBi minus each rival: mean, standard error, p |
//! | `figures/DATASET/*.svg`, `.csv` | every figure, and its numbers |

mod claims;
mod figures;
mod page;
mod signals;
mod tables;

use std::path::PathBuf;

pub(crate) use page::FEWEST;
pub(super) use page::digits;

use super::Figure;
use crate::data::write_whole;
use crate::error::Result;
use crate::experiment::{Comparison, DatasetResults, Results, comparisons};

/// A figure with its numbers.
struct Plotted {
    figure: Figure,
    csv: String,
}

/// The part of the page about one dataset.
struct Chapter<'a> {
    results: &'a DatasetResults,
    comparisons: Vec<Comparison>,
    figures: Vec<Plotted>,
    claims: Vec<claims::Claim>,
}

/// Tables and figures of an experiment, ready to be written into its folder.
pub(crate) struct ExperimentReport<'a> {
    results: &'a Results,
    chapters: Vec<Chapter<'a>>,
    /// Number of tests that p is corrected for.
    tests: usize,
}

impl<'a> ExperimentReport<'a> {
    /// Computes and draws everything.
    ///
    /// # Errors
    /// Those of reading factors and λ from the experiment's folder.
    pub fn new(results: &'a Results) -> Result<Self> {
        let all = comparisons(results);
        let chapter = |dataset: &'a DatasetResults| {
            let of_it = |one: &&Comparison| one.dataset == dataset.dataset.name;
            Ok(Chapter {
                results: dataset,
                comparisons: all.iter().filter(of_it).cloned().collect(),
                figures: figures::figures(dataset, &results.protocol)?,
                claims: claims::claims(dataset)?,
            })
        };
        let chapters: Result<_> = results.datasets.iter().map(chapter).collect();
        Ok(Self {
            results,
            chapters: chapters?,
            tests: all.len(),
        })
    }

    /// Writes it into the experiment's folder; returns the page.
    ///
    /// # Errors
    /// [`Error::Write`](crate::Error::Write).
    pub fn write(&self) -> Result<PathBuf> {
        let folder = &self.results.path;
        for (name, text) in [
            ("fits.csv", tables::fits(self.results)),
            ("summary.csv", tables::summary(self.results)),
            ("comparisons.csv", tables::comparisons(&self.chapters)),
        ] {
            write_whole(&folder.join("tables").join(name), text.as_bytes())?;
        }
        // Figures of datasets that are no longer part of the report are removed.
        if let Ok(entries) = std::fs::read_dir(folder.join("figures")) {
            for entry in entries.flatten() {
                let own =
                    |chapter: &Chapter<'_>| entry.file_name() == *chapter.results.dataset.name;
                if !self.chapters.iter().any(own) {
                    // An error here has no consequences.
                    let _ = std::fs::remove_dir_all(entry.path());
                }
            }
        }
        for chapter in &self.chapters {
            let place = folder.join("figures").join(&chapter.results.dataset.name);
            for Plotted { figure, csv } in &chapter.figures {
                let file = |ending: &str| place.join(format!("{}.{ending}", figure.name));
                write_whole(&file("svg"), figure.svg.as_bytes())?;
                write_whole(&file("csv"), csv.as_bytes())?;
            }
        }
        let page = folder.join("report.html");
        write_whole(&page, page::page(self).as_bytes())?;
        Ok(page)
    }
}

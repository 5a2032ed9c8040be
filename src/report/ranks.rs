//! The report of `altbi ranks`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Figure;
use super::kept::{KeptRecords, write_page};
use crate::data::write_whole;
use crate::error::Result;
use crate::metrics::Spread;
use crate::plot::{Chart, Scale, Series, short};
use crate::ranks::{RankBy, RankOutcome, RankSummary};

/// The settings of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RankSettings {
    /// The first rank.
    pub from: usize,
    /// The last rank.
    pub to: usize,
    /// Splits of the data.
    pub splits: usize,
    /// The seed of the first split.
    pub seed: u64,
    /// The divergence of the updates.
    pub divergence: String,
    /// The outer error.
    pub outer: String,
    /// The penalties of the preset practical, if it was requested.
    pub penalties: Option<String>,
}

/// The contents of `ranks.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RankRecords {
    /// Fingerprint of the data and settings. (It does not depend on the ranks and the number of
    /// splits, because a pair is the same in any range.)
    pub fingerprint: String,
    /// The name of the data.
    #[serde(default)]
    pub data: String,
    /// Description of the data and settings, in a sentence.
    pub about: String,
    /// The settings of the search.
    pub settings: RankSettings,
    /// The rank that plain updates recommend. `None` while the search goes on.
    pub recommended: Option<usize>,
    /// The rank that the preset practical recommends, if it was requested.
    pub recommended_tuned: Option<usize>,
    /// All finished pairs, also those outside the settings' range.
    pub done: RankOutcome,
}

impl RankRecords {
    /// The pairs within the settings' range.
    pub fn outcome(&self) -> RankOutcome {
        let RankSettings {
            from, to, splits, ..
        } = self.settings;
        self.done.within(from..=to, splits)
    }

    /// The recommendation in words.
    pub fn answer(&self) -> String {
        let outcome = self.outcome();
        let RankSettings { from, to, .. } = self.settings;
        let sentence = |(measure, name): (RankBy, &str)| {
            let rank = outcome.recommended(measure)?;
            let components = if rank == 1 { "component" } else { "components" };
            Some(match measure {
                RankBy::Plain => format!(
                    "{rank} {components}: the smallest rank whose outer error is within one \
                     standard error of the lowest."
                ),
                RankBy::Tuned => format!("With {name} penalties: {rank} {components}."),
            })
        };
        let sentences = measures(&outcome).into_iter().filter_map(sentence);
        let mut sentences: Vec<String> = sentences.collect();
        if sentences.is_empty() {
            return "The search is not finished.".into();
        }
        let at_the_end = |(measure, _)| outcome.recommended(measure) == Some(to);
        if to > from && measures(&outcome).into_iter().any(at_the_end) {
            sentences.push(format!(
                "{to} is the last rank that was tried: larger ones may be better."
            ));
        }
        sentences.join(" ")
    }
}

impl KeptRecords for RankRecords {
    const FILE: &'static str = "ranks.json";

    fn write_report(&self, folder: &Path) -> Result<PathBuf> {
        let outcome = self.outcome();
        write_whole(&folder.join("ranks.csv"), csv(&outcome).as_bytes())?;
        let figures = [Some(errors(&outcome)), excess(&outcome)];
        let figures: Vec<Figure> = figures.into_iter().flatten().collect();
        let titles = [self.data.as_str(), "How many components"];
        let words = [&self.answer(), self.about.as_str()];
        write_page(folder, titles, words, &table(&outcome), &figures)
    }
}

fn csv(outcome: &RankOutcome) -> String {
    let mut text = String::from("rank,split,plain,tuned\n");
    for error in &outcome.errors {
        let tuned = error.tuned.map_or(String::new(), |tuned| tuned.to_string());
        let _ = writeln!(
            text,
            "{},{},{},{tuned}",
            error.rank, error.split, error.plain
        );
    }
    text
}

/// The measures that an outcome has, with their names.
fn measures(outcome: &RankOutcome) -> Vec<(RankBy, &'static str)> {
    let mut measures = vec![(RankBy::Plain, "plain")];
    if outcome.is_tuned() {
        measures.push((RankBy::Tuned, "tuned"));
    }
    measures
}

/// "0.5123 ± 0.0021": two digits of the error, and as many places of the number.
fn with_error(number: f64, error: Option<f64>) -> String {
    let Some(error) = error else {
        return short(number);
    };
    // (Rounding may lead to the next power of ten: 0.00099… is 0.0010.)
    let rounded: f64 = format!("{error:.1e}").parse().unwrap_or(error);
    let places = 1.0 - (rounded.log10() + 1e-9).floor();
    match (0.0..=6.0).contains(&places) {
        true => format!("{number:.0$} ± {error:.0$}", places as usize),
        false => format!("{} ± {}", short(number), short(error)),
    }
}

fn table(outcome: &RankOutcome) -> String {
    let mut table = String::from(
        "<p class=\"caption\">Outer error of each rank, per \
         entry: mean over the splits ± standard error</p><div class=\"wide\"><table class=\"numbers\"><tr><th>rank</th>",
    );
    let measures = measures(outcome);
    for (_, name) in &measures {
        let _ = write!(table, "<th>{name}</th><th>above the lowest, paired</th>");
    }
    table.push_str("</tr>\n");
    let columns: Vec<(Vec<RankSummary>, Option<usize>)> = measures
        .iter()
        .map(|(measure, _)| (outcome.summaries(*measure), outcome.recommended(*measure)))
        .collect();
    for (row, rank) in outcome.ranks().into_iter().enumerate() {
        let _ = write!(table, "<tr><td>{rank}</td>");
        for (summaries, recommended) in &columns {
            let Some(of_rank) = summaries.get(row) else {
                continue;
            };
            let class = match *recommended == Some(rank) {
                true => " class=\"better\"",
                false => "",
            };
            // (The difference of the lowest rank from itself is 0 ± 0.)
            let above = match of_rank.excess == 0.0 && of_rank.excess_error.unwrap_or(0.0) == 0.0 {
                true => "lowest".into(),
                false => with_error(of_rank.excess, of_rank.excess_error),
            };
            let _ = write!(
                table,
                "<td{class}>{}{}</td><td{class}>{above}</td>",
                with_error(of_rank.mean, of_rank.standard_error),
                match *recommended == Some(rank) {
                    true => " ✓",
                    false => "",
                },
            );
        }
        table.push_str("</tr>\n");
    }
    let tuned = match measures.len() {
        1 => "",
        _ => " Tuned: the preset practical.",
    };
    let _ = writeln!(
        table,
        "</table></div>\n<p class=\"small\">Recommended (✓) is the smallest rank whose mean exceeds \
         the lowest by no more than one standard error of the paired differences between the two, \
         split by split. Plain: multiplicative updates without penalty, stopped early.{tuned}</p>"
    );
    table
}

/// A line through means, with an error bar at each.
fn curve(name: &str, points: &[(f64, f64, Option<f64>)]) -> Series {
    let with_bar = points.iter().flat_map(|(place, mean, error)| {
        let error = error.unwrap_or(0.0);
        let heights = [*mean, mean + error, mean - error, *mean];
        heights.map(|height| (*place, height))
    });
    let mut series = Series::line(name, with_bar.collect());
    // (The ends of a bar have the mean on hover.)
    let means = points.iter().flat_map(|(_, mean, _)| [*mean; 4]);
    series.values = Some(means.collect());
    series
}

/// A chart of a number with its error against the rank, with the recommended ranks.
fn chart(
    outcome: &RankOutcome,
    y: &str,
    of: fn(&RankSummary) -> (f64, Option<f64>),
    shown: impl Fn(&RankSummary) -> bool,
) -> Chart {
    let ranks = outcome.ranks();
    let mut chart = Chart::new("rank", y, Scale::Linear);
    let mut marks = Vec::new();
    for (measure, name) in measures(outcome) {
        let summaries = outcome.summaries(measure);
        let places = summaries.iter().enumerate();
        let points: Vec<(f64, f64, Option<f64>)> = places
            .filter(|(_, summary)| shown(summary))
            .map(|(place, summary)| {
                let (number, error) = of(summary);
                (place as f64, number, error)
            })
            .collect();
        let reaches = points.iter().map(|(_, number, error)| {
            let error = error.unwrap_or(0.0);
            (number - error, number + error)
        });
        let (low, high) = reaches.fold((f64::INFINITY, f64::NEG_INFINITY), |all, one| {
            (f64::min(all.0, one.0), f64::max(all.1, one.1))
        });
        chart = chart.with(curve(name, &points));
        let recommended = outcome.recommended(measure);
        let place = ranks.iter().position(|rank| Some(*rank) == recommended);
        if let (Some(place), Some(rank)) = (place, recommended) {
            // A vertical line over the whole height, so that it does not look like a bar.
            let (number, _) = of(&summaries[place]);
            let room = 0.1 * (high - low);
            let stem = [low - room, high + room].map(|height| (place as f64, height));
            marks.push((name, rank, stem, number));
        }
    }
    // The same rank twice has one line, over both heights.
    if let [first, second] = &mut marks[..]
        && first.1 == second.1
    {
        let (low, high) = (&mut first.2[0].1, second.2[1].1);
        *low = low.min(second.2[0].1);
        first.2[1].1 = first.2[1].1.max(high);
        marks.pop();
    }
    let several = marks.len() > 1;
    for (name, rank, stem, number) in marks {
        let name = match several {
            true => format!("recommended ({name}): {rank}"),
            false => format!("recommended: {rank}"),
        };
        let mut mark = Series::line(name, stem.to_vec());
        mark.values = Some(vec![number; 2]);
        chart = chart.with(mark);
    }
    chart.with_ticks(ranks.iter().map(ToString::to_string).collect())
}

fn errors(outcome: &RankOutcome) -> Figure {
    let of = |summary: &RankSummary| (summary.mean, summary.standard_error);
    Figure {
        name: "ranks".into(),
        title: "Outer error of each rank".into(),
        caption: "Mean over the splits ± standard error, per entry. Too few components leave \
                  structure behind, too many fit noise."
            .into(),
        svg: chart(outcome, "per entry", of, |_| true).svg(),
        tiles: Vec::new(),
    }
}

fn excess(outcome: &RankOutcome) -> Option<Figure> {
    let of = |summary: &RankSummary| (summary.excess, summary.excess_error);
    let summaries = outcome.summaries(RankBy::Plain);
    // The half of the ranks with the lowest errors. Ranks far above would compress the figure.
    let excesses: Vec<f64> = summaries.iter().map(|summary| summary.excess).collect();
    let limit = Spread::of(&excesses)?.median;
    let recommended = outcome.recommended(RankBy::Plain);
    let shown =
        |summary: &RankSummary| summary.excess <= limit || Some(summary.rank) == recommended;
    // A single point needs no figure.
    if summaries.iter().filter(|summary| shown(summary)).count() < 2 {
        return None;
    }
    Some(Figure {
        name: "excess".into(),
        title: "Difference from the lowest error".into(),
        caption: "Paired differences from the rank with the lowest mean, split by split, ± their \
                  standard error. The recommendation goes by these. Only the half of the ranks \
                  with the lowest means is shown."
            .into(),
        svg: chart(outcome, "per entry", of, shown).svg(),
        tiles: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_two_digits_and_numbers_as_many_places() {
        for (number, error, text) in [
            (2.7281, Some(0.06386), "2.728 ± 0.064"),
            (1.78, Some(0.02819), "1.780 ± 0.028"),
            (514.3, Some(12.0), "514 ± 12"),
            (4.03737, Some(0.000999), "4.0374 ± 0.0010"),
            (0.5, None, "0.5"),
            (0.5, Some(0.0), "0.5 ± 0"),
            (1e-9, Some(2e-10), "1e-9 ± 2e-10"),
        ] {
            assert_eq!(with_error(number, error), text);
        }
    }
}

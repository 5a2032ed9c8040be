//! The report of `altbi compare`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Figure;
use super::experiment::FEWEST;
use super::kept::{KeptRecords, write_page};
use crate::data::write_whole;
use crate::error::Result;
use crate::plot::{BarRows, Chart, Scale, Series, short};
use crate::tuner::{Contest, Point, Standing};

/// The contents of `standings.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ContestRecords {
    /// Fingerprint of the data and settings.
    pub fingerprint: String,
    /// The name of the data.
    #[serde(default)]
    pub data: String,
    /// Description of the data and settings, in a sentence.
    #[serde(default)]
    pub about: String,
    /// The finished runs.
    pub contest: Contest,
}

impl ContestRecords {
    /// The place of practical among its rivals, in words.
    pub fn answer(&self) -> String {
        let contest = &self.contest;
        let (deciding, judged) = (contest.deciding(), contest.is_judged());
        let ranking = contest.ranking(deciding);
        let Some(place) = ranking.iter().position(|one| *one == "practical") else {
            return "No run is finished.".into();
        };
        let error = if judged { "judged" } else { "held-out" };
        let compared = |rival: &str| contest.compared(rival, "plain", deciding);
        let to_plain = |rival: &str| ratio(compared(rival));
        if compared("practical").is_some_and(|to_plain| to_plain.mean.abs() < 5e-4) {
            return format!(
                "practical is as good as plain updates stopped early: its {error} error is \
                 the same to three digits.{}",
                match ranking[0] {
                    "practical" | "plain" => String::new(),
                    best => format!(" The best is {best} with {} of it.", to_plain(best)),
                }
            );
        }
        let best = match ranking[0] {
            "practical" => String::new(),
            best => format!(" The best is {best} with {}.", to_plain(best)),
        };
        format!(
            "The {error} error of practical is {} times that of plain updates stopped early: place \
             {} of {}.{best}",
            to_plain("practical"),
            place + 1,
            ranking.len()
        )
    }
}

impl KeptRecords for ContestRecords {
    const FILE: &'static str = "standings.json";

    fn write_report(&self, folder: &Path) -> Result<PathBuf> {
        let contest = &self.contest;
        write_whole(&folder.join("compare.csv"), csv(contest).as_bytes())?;
        let titles = [self.data.as_str(), "Ways to choose λ, at equal budget"];
        let (table, figures) = (table(contest), figures(contest));
        let words = [&self.answer(), self.about.as_str()];
        write_page(folder, titles, words, &table, &figures)
    }
}

fn csv(contest: &Contest) -> String {
    let mut text = String::from(
        "seed,rival,held_out,judged,refit,solves,work,seconds,lambda_min,lambda_max,\
         divergence_before_refit,divergence_after_refit,components\n",
    );
    for standing in &contest.standings {
        let Standing {
            rival,
            seed,
            held_out,
            judged,
            refit,
            solves,
            work,
            seconds,
            lambda: (least, most),
            divergence: (before, after),
            components,
            ..
        } = standing;
        let _ = writeln!(
            text,
            "{seed},{rival},{held_out},{judged},{refit},{solves},{work},{seconds},{least},{most},{before},{after},{components}"
        );
    }
    text
}

/// "0.87 ± 0.02": a ratio from a difference of logarithms, with its standard error.
pub(crate) fn ratio(difference: Option<crate::experiment::PairedDifference>) -> String {
    match difference {
        None => "–".into(),
        Some(difference) => {
            let ratio = difference.mean.exp();
            let error = ratio * difference.standard_error;
            if error.is_nan() {
                format!("{ratio:.3}")
            } else {
                format!("{ratio:.3} ± {error:.3}")
            }
        }
    }
}

fn table(contest: &Contest) -> String {
    let judged = contest.is_judged();
    let mut table = String::from(
        "<p class=\"caption\">Errors relative to plain updates \
         stopped early (geometric means ± standard errors), best first, and practical relative to \
         each rival</p><div class=\"wide\"><table class=\"numbers\"><tr><th>rival</th><th>held out</th>",
    );
    if judged {
        table.push_str("<th>judged</th><th>after refit</th>");
    }
    table.push_str("<th>practical / rival</th><th>p</th><th>solves</th><th>updates</th><th>seconds</th></tr>\n");
    let deciding = contest.deciding();
    for rival in contest.ranking(deciding) {
        let class = if rival == "practical" {
            " class=\"own\""
        } else {
            ""
        };
        let to_plain = |measure| ratio(contest.compared(rival, "plain", measure));
        let _ = write!(
            table,
            "<tr{class}><td>{rival}</td><td>{}</td>",
            to_plain(|standing| standing.held_out)
        );
        if judged {
            let _ = write!(
                table,
                "<td>{}</td><td>{}</td>",
                to_plain(|standing| standing.judged),
                to_plain(|standing| standing.refit)
            );
        }
        let against = contest
            .compared("practical", rival, deciding)
            .filter(|_| rival != "practical");
        let class = match against {
            Some(against) if against.p < 0.05 && against.direction < 0.0 => " class=\"better\"",
            Some(against) if against.p < 0.05 && against.direction > 0.0 => " class=\"worse\"",
            _ => "",
        };
        let enough = against.filter(|against| against.count >= FEWEST);
        let p = enough.map_or("–".into(), |against| short(against.p));
        let mean = |measure| contest.mean(rival, measure).map_or(f64::NAN, |of| of.mean);
        let _ = writeln!(
            table,
            "<td{class}>{}</td><td>{p}</td><td>{:.1}</td><td>{:.0}</td><td>{:.2}</td></tr>",
            ratio(against),
            mean(|standing| standing.solves.max(1) as f64),
            mean(|standing| standing.work),
            mean(|standing| standing.seconds),
        );
    }
    table.push_str("</table></div>\n<p class=\"small\">Below 1 is better. Held out: the outer error, by which every rival chooses.");
    if judged {
        table.push_str(" Judged: the error by the truth where it is known, otherwise on entries that no rival saw.");
    }
    table.push_str(" Updates: of both factors; one through which a hypergradient goes counts as three (four where β is neither 1 nor 2). Those of rivals that choose λ include two last solves beyond the budget. Solves: runs of updates to their end. p: two-sided signed ranks of the paired log ratios, not corrected for the number of rivals; left out with fewer than 6 runs, where it cannot be below 0.05.</p>\n");
    table
}

/// The answers of all rivals, relative to plain.
fn answers(contest: &Contest) -> Figure {
    let rivals = contest.ranking(contest.deciding());
    let ratios = |measure: OfStanding| {
        let ratio = |rival: &&str| {
            let compared = contest.compared(rival, "plain", measure);
            compared.map_or(f64::NAN, |compared| compared.mean.exp())
        };
        rivals.iter().map(ratio).collect::<Vec<f64>>()
    };
    let mut bars = BarRows {
        names: rivals.iter().map(ToString::to_string).collect(),
        series: vec![("held out".into(), ratios(|standing| standing.held_out))],
        x_label: "error relative to plain".into(),
        longest: LONGEST_BAR,
    };
    if contest.is_judged() {
        let judged = ratios(|standing| standing.judged);
        bars.series.push(("judged".into(), judged));
    }
    Figure {
        name: "answers".into(),
        title: "The answer of each rival".into(),
        caption: format!(
            "Geometric means over the runs, relative to plain updates stopped early{}.",
            match bars
                .series
                .iter()
                .flat_map(|(_, ratios)| ratios)
                .any(|ratio| *ratio > LONGEST_BAR)
            {
                true => "; bars beyond 2 are cut off",
                false => "",
            }
        ),
        svg: bars.svg(),
        tiles: Vec::new(),
    }
}

/// Bars are cut off at this value.
const LONGEST_BAR: f64 = 2.0;

fn figures(contest: &Contest) -> Vec<Figure> {
    let mut figures = vec![
        answers(contest),
        course(
            contest,
            "held_out_by_work",
            "Held-out error against work",
            ("updates", |point| point.work, |standing| standing.work),
            (|point| point.held_out, |standing| standing.held_out),
        ),
    ];
    if contest.is_judged() {
        figures.push(course(
            contest,
            "judged_by_work",
            "Judged error against work",
            ("updates", |point| point.work, |standing| standing.work),
            (|point| point.judged, |standing| standing.judged),
        ));
        figures.push(course(
            contest,
            "judged_by_seconds",
            "Judged error against time",
            (
                "seconds",
                |point| point.seconds,
                |standing| standing.seconds,
            ),
            (|point| point.judged, |standing| standing.judged),
        ));
    }
    figures
}

type OfPoint = fn(&Point) -> f64;
type OfStanding = fn(&Standing) -> f64;

/// The best error so far, relative to plain updates, against work or time.
fn course(
    contest: &Contest,
    name: &str,
    title: &str,
    (unit, at, total): (&str, OfPoint, OfStanding),
    (error, last): (OfPoint, OfStanding),
) -> Figure {
    const PLACES: usize = 60;
    const MOST: f64 = 1.2;
    let mut is_cut = false;
    let mut chart = Chart::new(unit, "error relative to plain", Scale::Linear).sized(440, 320);
    let plain = |seed: u64| {
        let of_plain = contest.of("plain").find(|plain| plain.seed == seed);
        of_plain.map_or(f64::NAN, last)
    };
    let is_drawn = |standing: &&Standing| standing.searches || standing.rival == "practical";
    let spent = contest.standings.iter().filter(is_drawn);
    let end = spent.map(total).fold(0.0, f64::max);
    let searches = |rival: &&str| contest.of(rival).any(|standing| is_drawn(&standing));
    for rival in contest.rivals().into_iter().filter(searches) {
        let standings: Vec<&Standing> = contest.of(rival).collect();
        // The mean, if every run has a point.
        let shown = |place: f64, standing: &Standing| {
            let mut latest_first = standing.points.iter().rev();
            let last = latest_first.find(|point| at(point) <= place);
            last.map(|point| (error(point) / plain(standing.seed)).ln())
        };
        let points = (1..=PLACES).filter_map(|step| {
            let place = end * step as f64 / PLACES as f64;
            let logs: Option<Vec<f64>> = standings
                .iter()
                .map(|standing| shown(place, standing))
                .collect();
            let logs = logs.filter(|logs| logs.iter().all(|log| log.is_finite()))?;
            Some((place, (logs.iter().sum::<f64>() / logs.len() as f64).exp()))
        });
        // The first points are far above the others and would compress the figure.
        let points = points.skip_while(|(_, ratio)| *ratio >= MOST);
        let points: Vec<(f64, f64)> = points.collect();
        is_cut |= points.iter().any(|(_, ratio)| *ratio > MOST);
        // (A line has a gap where it is cut off.)
        let points = points
            .into_iter()
            .map(|(place, ratio)| match ratio <= MOST {
                true => (place, ratio),
                false => (place, f64::NAN),
            });
        chart = chart.with(Series::line(rival.to_string(), points.collect()));
    }
    Figure {
        name: name.into(),
        title: title.into(),
        caption: format!(
            "The solve with the lowest held-out error so far: geometric means over the runs, \
             relative to plain updates stopped early. A line begins where it falls below 1.2{}. The \
             table has the final answer, which practical compares with plain updates.",
            match is_cut {
                true => ", and has gaps where it is above",
                false => "",
            }
        ),
        svg: chart.svg(),
        tiles: Vec::new(),
    }
}

//! The page of an experiment.

use std::fmt::Write;

use super::claims::{letter, table_1};
use super::{Chapter, ExperimentReport};
use crate::experiment::{
    Comparison, Conclusion, Contender, DatasetResults, Measure, Moment, Protocol,
};
use crate::plot::escape;
use crate::report::page::{figure_element, head};

/// Writes the page of an experiment.
pub(super) fn page(report: &ExperimentReport<'_>) -> String {
    let protocol = &report.results.protocol;
    let mut page = head("altbi: the paper's experiments, repeated");
    let _ = write!(
        page,
        "<header><h1>The paper's experiments, repeated</h1><p>{}</p></header>\n<nav>",
        introduction(report)
    );
    for chapter in &report.chapters {
        let dataset = &chapter.results.dataset;
        let title = escape(&dataset.title);
        let _ = write!(page, "<a href=\"#{}\">{title}</a>", dataset.name);
    }
    page.push_str("</nav>\n<section><h2>In short</h2>\n");
    for chapter in &report.chapters {
        let _ = writeln!(page, "<p>{}</p>", verdict(chapter));
    }
    page.push_str("<h2>Mean SIR of W / H, in dB</h2>\n");
    page.push_str(&overview(report));
    let breakdowns = report.chapters.iter();
    let breakdowns: usize = breakdowns.map(|of| of.results.breakdowns()).sum();
    let broken = match breakdowns {
        0 => String::new(),
        count => format!(
            " {count} fits broke down (a value was not finite); the state before it counts for them."
        ),
    };
    let _ = writeln!(page, "<p class=\"small\">{MOMENTS}{broken}</p></section>");
    for chapter in &report.chapters {
        page.push_str(&section(chapter, protocol, report.tests));
    }
    let _ = writeln!(
        page,
        "<p class=\"small\">altbi {}. Tables and figures lie beside this page as .csv and .svg.</p>\n</body></html>",
        escape(&report.results.version)
    );
    page
}

fn introduction(report: &ExperimentReport<'_>) -> String {
    let protocol = &report.results.protocol;
    let is_smaller = |chapter: &Chapter<'_>| {
        let [n, m] = chapter.results.dataset.shape;
        letter(chapter.results).is_some() && n * m < PAPERS_ENTRIES
    };
    let smaller = if report.chapters.iter().any(is_smaller) {
        "These data are smaller than the paper's, so their numbers are not those of the paper. "
    } else {
        ""
    };
    let (runs, iterations) = (protocol.runs, protocol.max_iterations);
    let fewer = if runs < 30 {
        " The paper has 30 starts; with fewer, differences say little."
    } else {
        ""
    };
    format!(
        "{smaller}KL divergence, ℓ1 penalty on W, {runs} random starts (the same for every method), at most \
         {iterations} iterations, tolerance {:e}, T = {}.{fewer} MU: plain multiplicative updates. P-MU: \
         with λ = 0.5. MU-T: T updates of W per update of H, as AltBi does, but λ = 0. Frozen λ: \
         AltBi whose first λ is kept. The last two differ from AltBi in λ only, so they show what \
         tuning λ does.",
        protocol.tolerance, protocol.bunch
    )
}

/// One sentence about a dataset: AltBi beside MU, and beside MU-T, which differs in λ only.
fn verdict(chapter: &Chapter<'_>) -> String {
    let results = chapter.results;
    let of = |measure| results.spread("altbi", Moment::Stopped, measure);
    // (The true factors of some data are not known.)
    let measures = [Measure::SirW, Measure::RelativeError];
    let Some(measure) = measures.into_iter().find(|measure| of(*measure).is_some()) else {
        return format!("{}: no results.", escape(&results.dataset.title));
    };
    let (name, unit) = match measure {
        Measure::SirW => ("a mean SIR of W of", " dB"),
        _ => ("a mean relative error of", ""),
    };
    let beside = ["mu", "mu-t"].map(|name| {
        let one = chapter.comparisons.iter().find(|one| {
            one.moment == Moment::Stopped && one.rival.name == name && one.measure == measure
        });
        let (Some(one), Some(spread)) = (one, results.spread(name, Moment::Stopped, measure))
        else {
            return String::new();
        };
        let words = match one.conclusion() {
            _ if one.difference.count < FEWEST => "too few starts for a test",
            Conclusion::Better => "AltBi is better",
            Conclusion::Worse => "AltBi is worse",
            Conclusion::Undecided => "no significant difference",
        };
        let mean = number(measure, spread.mean, f64::NAN);
        format!("; {} has {mean}{unit} ({words})", one.rival.label)
    });
    format!(
        "<b>{}</b>: at the stopping rule, AltBi has {name} {}{unit}{}.",
        escape(&results.dataset.title),
        of(measure).map_or(String::new(), |spread| number(
            measure,
            spread.mean,
            f64::NAN
        )),
        beside.concat()
    )
}

/// Entries of the paper's smallest benchmark, 1000×50.
const PAPERS_ENTRIES: usize = 50_000;

/// The note below the overview.
const MOMENTS: &str = "SIR: signal-to-interference ratio, the higher the better. At the stopping \
    rule, methods with T updates of W per iteration have spent more work than MU and P-MU. Equal \
    work means equally many updates of W: MU and P-MU have then made T times as many updates of H, \
    and the derivatives of AltBi are not counted.";

/// One row per dataset and moment.
fn overview(report: &ExperimentReport<'_>) -> String {
    let mut table = String::from("<div class=\"wide\"><table class=\"numbers\"><tr><th></th>");
    for contender in Contender::compared() {
        let _ = write!(table, "<th>{}</th>", contender.label);
    }
    table.push_str("</tr>\n");
    let of_a = |chapter: &Chapter<'_>| letter(chapter.results) == Some('a');
    if report.chapters.iter().any(of_a) {
        table.push_str("<tr><td>the paper's Table 1 (A, stopping rule)</td>");
        for contender in Contender::compared() {
            let cell = table_1(&contender.name);
            let cell = cell.map_or("–".into(), |[w, h]| format!("{w:.2} / {h:.2}"));
            let _ = write!(table, "<td>{cell}</td>");
        }
        table.push_str("</tr>\n");
    }
    for moment in [Moment::Stopped, Moment::Work] {
        for chapter in &report.chapters {
            let results = chapter.results;
            let mean = |name: &str, measure| results.spread(name, moment, measure);
            if mean("altbi", Measure::SirW).is_none() {
                continue;
            }
            let when = match moment {
                Moment::Stopped => "stopping rule",
                _ => "equal work",
            };
            let _ = write!(
                table,
                "<tr><td>{}, {when}</td>",
                escape(&results.dataset.title)
            );
            for contender in Contender::compared() {
                let number = |measure| {
                    let spread = mean(&contender.name, measure);
                    spread.map_or("–".into(), |spread| format!("{:.2}", spread.mean))
                };
                let (w, h) = (number(Measure::SirW), number(Measure::SirH));
                let _ = write!(table, "<td>{w} / {h}</td>");
            }
            table.push_str("</tr>\n");
        }
    }
    table + "</table></div>\n"
}

fn section(chapter: &Chapter<'_>, protocol: &Protocol, tests: usize) -> String {
    let dataset = &chapter.results.dataset;
    let [n, m] = dataset.shape;
    let mut text = format!(
        "<section id=\"{}\"><h1>{}</h1>\n<p>X is {n}×{m}, r = {}. {}</p>\n",
        dataset.name,
        escape(&dataset.title),
        dataset.rank,
        escape(&dataset.origin)
    );
    text.push_str("<h2>Beside the paper</h2><div class=\"wide\"><table><tr><th>The paper says</th><th>Found here, at the stopping rule</th></tr>\n");
    for claim in &chapter.claims {
        let paper = claim.paper.unwrap_or("Nothing about this benchmark.");
        let (paper, found) = (escape(paper), escape(&claim.found));
        let _ = writeln!(text, "<tr><td>{paper}</td><td>{found}</td></tr>");
    }
    text.push_str("</table></div>\n");
    for moment in Moment::ALL {
        text.push_str(&measures(chapter.results, moment, protocol));
    }
    text.push_str(&differences(chapter, protocol, tests));
    text.push_str("</section>\n<main>\n");
    for plotted in &chapter.figures {
        // Names are unique only within a dataset, and the page has several datasets.
        let mut figure = plotted.figure.clone();
        figure.name = format!("{}-{}", dataset.name, figure.name);
        text.push_str(&figure_element(&figure));
    }
    text + "</main>\n"
}

/// Mean ± deviation of every measure, one row per contender.
fn measures(results: &DatasetResults, moment: Moment, protocol: &Protocol) -> String {
    // The first λ is the same at every moment, and stands above; the paper's relative error is a
    // multiple of ours.
    let left_out = [Measure::LambdaAtStart, Measure::PaperRelativeError];
    let known = |measure: &&Measure| {
        !left_out.contains(measure) && results.spread("altbi", moment, **measure).is_some()
    };
    let shown: Vec<&Measure> = Measure::ALL.iter().filter(known).collect();
    let when = moment.describe(protocol);
    let mut table = format!(
        "<p class=\"caption\">Mean ± standard deviation over starts, {when}</p><div class=\"wide\"><table class=\"numbers\"><tr><th></th>"
    );
    let [n, m] = results.dataset.shape;
    let entries = (n * m) as f64;
    let is_sum = |measure: Measure| matches!(measure, Measure::Divergence | Measure::Objective);
    for measure in &shown {
        let unit = if is_sum(**measure) { " per entry" } else { "" };
        let _ = write!(table, "<th>{measure}{unit}</th>");
    }
    table.push_str("</tr>\n");
    for contender in Contender::compared() {
        let class = if contender.name == "altbi" {
            " class=\"own\""
        } else {
            ""
        };
        let _ = write!(table, "<tr{class}><td>{}</td>", contender.label);
        for measure in &shown {
            let cell = match results.spread(&contender.name, moment, **measure) {
                Some(spread) => {
                    let scale = if is_sum(**measure) { entries } else { 1.0 };
                    number(**measure, spread.mean / scale, spread.deviation / scale)
                }
                None => "–".into(),
            };
            let _ = write!(table, "<td>{cell}</td>");
        }
        table.push_str("</tr>\n");
    }
    table + "</table></div>\n"
}

fn number(measure: Measure, mean: f64, deviation: f64) -> String {
    let (mean, deviation) = match measure {
        Measure::SirW | Measure::SirH => (format!("{mean:.2}"), format!("{deviation:.2}")),
        Measure::SparsityW | Measure::SparsityH => {
            (format!("{mean:.1}"), format!("{deviation:.1}"))
        }
        Measure::Iterations | Measure::UpdatesOfW => {
            (format!("{mean:.0}"), format!("{deviation:.0}"))
        }
        Measure::Seconds => (format!("{mean:.2}"), format!("{deviation:.2}")),
        _ => {
            let mean = digits(mean, 3);
            // As many decimals as the mean has, if that shows anything.
            let decimals = mean.split_once('.').map(|(_, behind)| behind.len());
            let alike = decimals.map(|decimals| format!("{deviation:.decimals$}"));
            let alike = alike.filter(|alike| {
                let is_zero = alike.trim_matches(['0', '.']).is_empty();
                !mean.contains('e') && !is_zero
            });
            let deviation = alike.unwrap_or_else(|| digits(deviation, 2));
            (mean, deviation)
        }
    };
    // One start has no deviation, and that of a budget is zero.
    if deviation.contains("NaN") || deviation.trim_matches(['0', '.']).is_empty() {
        mean
    } else {
        format!("{mean} ± {deviation}")
    }
}

/// A number for a crowded table, in so many digits.
pub(in crate::report) fn digits(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let behind = digits as i32 - 1;
    if !(1e-4..1e5).contains(&value.abs()) {
        return format!("{value:.0$e}", behind as usize);
    }
    let place = value.abs().log10().floor() as i32;
    format!("{value:.0$}", (behind - place).max(0) as usize)
}

/// AltBi minus each rival.
fn differences(chapter: &Chapter<'_>, protocol: &Protocol, tests: usize) -> String {
    let measures: Vec<Measure> = Comparison::MEASURES
        .into_iter()
        .filter(|measure| {
            chapter
                .comparisons
                .iter()
                .any(|one| one.measure == *measure)
        })
        .collect();
    let tested = protocol.runs >= FEWEST;
    let p = if tested { " (p)" } else { "" };
    let mut table = format!(
        "<p class=\"caption\">AltBi minus each other method, from \
         the same starts: mean ± standard error, median{p}</p><div class=\"wide\"><table class=\"numbers\"><tr><th></th>",
    );
    for measure in &measures {
        let name = match measure {
            Measure::RelativeError => "relative error, decades".to_owned(),
            other => other.to_string(),
        };
        let _ = write!(table, "<th>{name}</th>");
    }
    table.push_str("</tr>\n");
    for moment in Moment::ALL {
        for rival in Contender::compared() {
            let cells: Vec<String> = measures
                .iter()
                .filter_map(|measure| {
                    let one = chapter.comparisons.iter().find(|one| {
                        one.moment == moment
                            && one.rival.name == rival.name
                            && one.measure == *measure
                    });
                    one.map(difference)
                })
                .collect();
            if !cells.is_empty() {
                let when = match moment {
                    Moment::Stopped => "stopping rule",
                    Moment::Iterations => "equal iterations",
                    Moment::Work => "equal work",
                    Moment::Time => "equal time",
                };
                let _ = write!(table, "<tr><td>{}, {when}</td>", rival.label);
                table.push_str(&cells.concat());
                table.push_str("</tr>\n");
            }
        }
    }
    table.push_str(
        "</table></div>\n<p class=\"small\">Relative errors are compared by their logarithms, in \
         decades. Below zero, AltBi's error is lower. At equal work MU-T and frozen λ have the same \
         numbers as at equal iterations.",
    );
    if !tested {
        let _ = writeln!(
            table,
            " With fewer than {FEWEST} starts no test can find a difference, so there is none.</p>"
        );
        return table;
    }
    let _ = writeln!(
        table,
        " p is that of Wilcoxon's signed-rank test over \
         the {} starts: exact, two-sided, with Holm's correction for all {tests} tests of this page \
         (those at equal time are corrected among themselves, because no two runs repeat them \
         exactly). If p is below 0.05, the cell says better or worse. The ranks decide which, so the \
         mean may have another sign. The tests are about starts on this one matrix, not about other \
         matrices.</p>",
        protocol.runs
    );
    table
}

fn difference(one: &Comparison) -> String {
    let (mean, error) = (one.difference.mean, one.difference.standard_error);
    let median = one.difference.median;
    let digits = if one.measure == Measure::RelativeError {
        3
    } else {
        2
    };
    let error = if error.is_nan() {
        String::new()
    } else {
        format!(" ± {error:.digits$}")
    };
    let p = if one.difference.count < FEWEST {
        String::new()
    } else if one.corrected_p < 0.001 {
        " (p < 0.001".into()
    } else {
        format!(" (p = {:.3}", one.corrected_p)
    };
    let (class, word) = match one.conclusion() {
        Conclusion::Better => (" class=\"better\"", ", better"),
        Conclusion::Worse => (" class=\"worse\"", ", worse"),
        Conclusion::Undecided => ("", ""),
    };
    let p = match p.is_empty() {
        true => p,
        false => format!("{p}{word})"),
    };
    let (mean, median) = (signed(mean, digits), signed(median, digits));
    format!("<td{class}>{mean}{error}, {median}{p}</td>")
}

/// With fewer pairs, p of a two-sided signed-rank test cannot be below 0.05.
pub(crate) const FEWEST: usize = 6;

/// A number with its sign; zero has none.
fn signed(value: f64, digits: usize) -> String {
    let text = format!("{value:+.digits$}");
    match text.trim_matches(['+', '-', '0', '.']).is_empty() {
        true => "0".into(),
        false => text,
    }
}

//! The answers at the top of a run's page: the components, the fit and the verdict on the penalty.

use std::fmt::Write;

use super::experiment::digits;
use super::lambda::names;
use super::signals::{View, pictures, view};
use super::{
    Component, Feature, RunRecords, caution, choice_in_words, components, fit_in_words, percent,
    weights_in_words,
};
use crate::factors::Side;
use crate::plot::theme::themed;
use crate::plot::{clipped, escape, short};
use crate::solver::StartRecord;

/// Up to this many components are all shown at once.
const ALL_OPEN: usize = 8;
/// If there are more, so many are shown, and the others are folded: the first screen has room for
/// the other answers.
const OPEN: usize = 4;
/// Largest number of components that are shown.
const TOLD: usize = 100;
/// Features of each side of a component, for few and for many components.
const FEATURES: [usize; 2] = [5, 3];
/// Up to this many components are few.
const FEW: usize = 4;
/// Largest number of letters of a feature's name.
const LETTERS: usize = 48;

/// The components with their largest features.
pub(super) fn found(run: &RunRecords) -> String {
    let features = FEATURES[usize::from(run.w.ncols() > FEW)];
    let scaling = run.scaling().ok().flatten();
    let all = components(&run.w, &run.h, scaling.as_ref(), &run.labels, features);
    let sides = [
        Shown::new(run, "columns", Side::H),
        Shown::new(run, "rows", Side::W),
    ];
    let mut text = String::from("<section id=\"found\"><h2>What was found</h2>\n");
    let (count, told) = (all.len(), all.len().min(TOLD));
    text.push_str("<div class=\"components\">\n");
    let open = if count > ALL_OPEN { OPEN } else { count };
    for component in &all[..open] {
        text.push_str(&card(component, &sides));
    }
    text.push_str("</div>\n");
    if told > open {
        let more = told - open;
        let _ = writeln!(
            text,
            "<details><summary>{more} more components</summary><div class=\"components\">"
        );
        for component in &all[open..told] {
            text.push_str(&card(component, &sides));
        }
        text.push_str("</div></details>\n");
    }
    let smaller = match count > told {
        true => format!(" The {} smallest are left out.", count - told),
        false => String::new(),
    };
    let mut notes = String::new();
    if sides.iter().any(|side| matches!(side.view, View::Features)) {
        notes.push_str(" Beside a row or column: its share of the component's weights.");
    }
    for side in sides.iter().filter(|side| side.pictures.is_some()) {
        let _ = write!(
            notes,
            " Each component as a picture of the {} of X: from 0 to its maximum.",
            side.name
        );
    }
    if let Some(scaling) = &scaling {
        let _ = write!(
            notes,
            " The {} of X were scaled; shares are those of the scaled data.",
            scaling.scale
        );
    }
    let _ = writeln!(
        text,
        "<p class=\"small\">Components by their share of the sum of WH, the largest first.{notes}{smaller}</p>\n</section>"
    );
    text
}

/// The view of one side of the components in their cards.
struct Shown {
    name: &'static str,
    view: View,
    pictures: Option<Vec<String>>,
}

impl Shown {
    fn new(run: &RunRecords, name: &'static str, side: Side) -> Self {
        Self {
            name,
            view: view(run, side),
            pictures: pictures(run, side),
        }
    }

    /// This side of a component.
    fn of(&self, number: usize, features: &[Feature]) -> String {
        let name = self.name;
        let picture = self.pictures.as_ref().and_then(|all| all.get(number - 1));
        match (&self.view, picture, features.first()) {
            (_, Some(picture), _) => {
                let picture = themed(picture);
                format!("<div class=\"picture\"><p>{name}</p>{picture}</div>\n")
            }
            (View::Curves(_), _, Some(first)) => {
                let first = escape(&clipped(&first.name, LETTERS));
                format!("<p class=\"small\">{name}: highest at {first}</p>\n")
            }
            _ => features_table(name, features),
        }
    }
}

fn card(component: &Component, [columns, rows]: &[Shown; 2]) -> String {
    let number = component.number;
    let class = match columns.pictures.is_some() || rows.pictures.is_some() {
        true => " class=\"pictured\"",
        false => "",
    };
    format!(
        "<div class=\"component\"><h3>Component {number} <span>{} of WH</span></h3>\n\
         <div{class}>{}{}</div></div>\n",
        escape(&percent(component.share)),
        columns.of(number, &component.columns),
        rows.of(number, &component.rows)
    )
}

fn features_table(name: &str, features: &[Feature]) -> String {
    if features.is_empty() {
        return format!("<p class=\"small\">{name}: all 0</p>\n");
    }
    let most = features.first().map_or(1.0, |first| first.share);
    let mut text = format!("<table class=\"features\"><caption>{name}</caption>\n");
    for feature in features {
        let _ = writeln!(
            text,
            "<tr><td title=\"{}\">{}</td><td>{}</td><td><i style=\"width:{:.0}%\"></i></td></tr>",
            escape(&clipped(&feature.name, 4 * LETTERS)),
            escape(&clipped(&feature.name, LETTERS)),
            escape(&percent(feature.share)),
            100.0 * feature.share / most
        );
    }
    text + "</table>\n"
}

/// The section about the fit.
pub(super) fn fit(run: &RunRecords) -> String {
    let summary = &run.summary;
    let relative = summary["relative_error"].as_f64().unwrap_or(f64::NAN);
    let of_constant = summary["outer_error_of_constant"].as_f64();
    let outer = summary["outer_error"].as_f64().zip(of_constant);
    let ratio = outer.map(|(error, constant)| error / constant);
    let text = fit_in_words(relative, ratio, run.is_refitted());
    format!(
        "<section id=\"fit\"><h2>How well it fits</h2><p class=\"answer\">{}</p></section>\n",
        escape(&text)
    )
}

/// The section about λ.
pub(super) fn lambda(run: &RunRecords) -> String {
    let mut sentences = Vec::new();
    if let Some(choice) = &run.choice {
        let entries = run.summary["held_out"]["held_out_weight"].as_f64();
        sentences.push(choice_in_words(choice, entries, &run.penalty_names()));
    }
    if run.penalties.is_empty() {
        sentences.push("This run had no penalty: there is no λ.".into());
    } else if run.is_unpenalised() {
        sentences.push("This method has no penalty: every λ is 0.".into());
    } else if !run.is_plain() {
        let largest_allowed = run.setting::<f64>("lambda-max").ok();
        let tunes = run.history.iter().any(|one| one.hypergradient_norm > 0.0);
        let mut from = 0;
        for (index, (name, weights)) in run.groups.iter().enumerate() {
            let weights: Vec<f64> = weights.iter().copied().collect();
            let start = run.lambda_start.iter().skip(from).take(weights.len());
            let start: Vec<f64> = start.copied().collect();
            from += weights.len();
            let words = weights_in_words(&weights);
            let largest = largest(&weights, &names(run, index));
            let caution = match tunes {
                true => caution(&weights, &start, largest_allowed),
                false => "",
            };
            sentences.push(format!("Penalty {name}: {words}.{largest}{caution}"));
        }
        if tunes && run.choice.is_none() && run.summary["outer"] == "train" {
            sentences.push(TUNED_ON_TRAINING.into());
        }
    }
    let mut text = String::from("<section id=\"lambda\"><h2>What λ says</h2>");
    for sentence in sentences {
        let _ = writeln!(text, "<p class=\"answer\">{}</p>", escape(&sentence));
    }
    text + "</section>\n"
}

/// The note on λ that was tuned as in the paper.
const TUNED_ON_TRAINING: &str = "λ was tuned for the training error, as in the paper. What it \
    gains on new data is not known: --preset practical measures that.";

/// Weights that are named.
const NAMED: usize = 3;

/// " The largest: 0.5 at salt, 0.2 at rice." Nothing where weights do not differ.
fn largest(weights: &[f64], names: &[String]) -> String {
    let mut all: Vec<(&f64, &String)> = weights.iter().zip(names).collect();
    all.sort_by(|a, b| b.0.total_cmp(a.0));
    match (all.first(), all.last()) {
        (Some(first), Some(last)) if first.0 > last.0 => {}
        _ => return String::new(),
    }
    let named = |(weight, name): &(&f64, &String)| {
        // (A name that is a number would look like an index.)
        let quote = match name.parse::<f64>() {
            Ok(_) => "\"",
            Err(_) => "",
        };
        let name = clipped(name, LETTERS);
        format!("{} at {quote}{name}{quote}", short(**weight))
    };
    let named: Vec<String> = all.iter().take(NAMED).map(named).collect();
    let which = match all.len() <= NAMED {
        true => "They are",
        false => "The largest:",
    };
    format!(" {which} {}.", named.join(", "))
}

/// The candidates of the preset practical.
pub(super) fn candidates(run: &RunRecords) -> String {
    let Some(choice) = &run.choice else {
        return String::new();
    };
    let entries = run.summary["held_out"]["held_out_weight"].as_f64();
    let unit = if entries.is_some() { " per entry" } else { "" };
    let mut text = format!(
        "<section><table class=\"numbers\"><caption>Candidates</caption><tr><th></th><th>outer \
         error{unit}</th><th>iteration</th></tr>\n"
    );
    for (index, candidate) in choice.candidates.iter().enumerate() {
        let class = match index == choice.chosen {
            true => " class=\"own\"",
            false => "",
        };
        let _ = writeln!(
            text,
            "<tr{class}><td>{}</td><td>{}</td><td>{}</td></tr>",
            candidate.stage,
            digits(candidate.outer_error / entries.unwrap_or(1.0), 5),
            candidate.iteration
        );
    }
    let refit = match run.is_refitted() {
        false => "The winner was not refitted.",
        true => "The winner was then refitted to all data.",
    };
    let _ = writeln!(
        text,
        "</table><p class=\"small\">An iteration has five updates, in the tuned run a bunch. In bold: \
         the winner. Plain updates win unless the lowest outer \
         error beats theirs by more than a standard error. {refit} The curves below are those of \
         the run that tuned λ.</p></section>"
    );
    text
}

/// Largest number of starts that are shown one by one.
const STARTS: usize = 20;

/// All starts of a run, if there were several.
pub(super) fn starts(run: &RunRecords) -> String {
    let starts: Vec<StartRecord> =
        serde_json::from_value(run.summary["starts"].clone()).unwrap_or_default();
    if starts.is_empty() {
        return String::new();
    }
    let kept = run.summary["seed"].as_u64();
    let mut text = String::from(
        "<section><table class=\"numbers\"><caption>Starts</caption><tr><th>seed</th><th>relative \
         error</th><th>cosine of W</th><th>cosine of H</th></tr>\n",
    );
    for start in starts.iter().take(STARTS) {
        let class = match Some(start.seed) == kept {
            true => " class=\"own\"",
            false => "",
        };
        let _ = writeln!(
            text,
            "<tr{class}><td>{}</td><td>{}</td><td>{:.3}</td><td>{:.3}</td></tr>",
            start.seed,
            digits(start.relative_error, 4),
            start.cosine_w,
            start.cosine_h
        );
    }
    let more = match starts.len().saturating_sub(STARTS) {
        0 => String::new(),
        more => format!(" {more} more are in summary.json."),
    };
    let _ = writeln!(
        text,
        "</table><p class=\"small\">In bold: the start with the lowest outer error, which was kept. \
         Cosines: the mean over its components, matched with those of each start; 1 means that \
         they are the same.{more}</p></section>"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_weights_are_named() {
        let names = ["a", "b", "c", "d"].map(String::from);
        assert_eq!(
            largest(&[0.0, 2.0, 1.0, 0.5], &names),
            " The largest: 2 at b, 1 at c, 0.5 at d."
        );
        let numbers = ["400", "500"].map(String::from);
        assert_eq!(
            largest(&[0.0, 2.0], &numbers),
            " They are 2 at \"500\", 0 at \"400\"."
        );
        assert_eq!(largest(&[1.0; 4], &names), "");
        assert_eq!(largest(&[], &[]), "");
    }

    #[test]
    fn a_side_without_weights_says_so_and_names_are_escaped() {
        assert!(features_table("rows", &[]).contains("rows: all 0"));
        let feature = Feature {
            name: "<b>&".into(),
            share: 1.0,
        };
        let table = features_table("rows", &[feature]);
        assert!(table.contains("&lt;b&gt;&amp;") && !table.contains("<b>"));
    }
}

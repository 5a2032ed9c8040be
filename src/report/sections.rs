//! The answers at the top of a run's page: the components, the fit and the verdict on the penalty.

use std::fmt::Write;

use super::signals::{View, view};
use super::{
    Component, Feature, RunRecords, choice_in_words, components, fit_in_words, percent,
    weights_in_words,
};
use crate::factors::Side;
use crate::plot::{clipped, escape};

/// Components that are shown at once. The others are folded.
const OPEN: usize = 8;
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
    let all = components(&run.w, &run.h, &run.labels, features);
    let sides = [view(run, Side::H), view(run, Side::W)];
    let mut text = String::from("<section id=\"found\"><h2>What was found</h2>\n");
    let (count, told) = (all.len(), all.len().min(TOLD));
    text.push_str("<div class=\"components\">\n");
    for component in all.iter().take(OPEN) {
        text.push_str(&card(component, &sides));
    }
    text.push_str("</div>\n");
    if told > OPEN {
        let more = told - OPEN;
        let _ = writeln!(
            text,
            "<details><summary>{more} more components</summary><div class=\"components\">"
        );
        for component in &all[OPEN..told] {
            text.push_str(&card(component, &sides));
        }
        text.push_str("</div></details>\n");
    }
    let smaller = match count > told {
        true => format!(" The {} smallest are left out.", count - told),
        false => String::new(),
    };
    let weights = match sides.iter().any(|side| matches!(side, View::Features)) {
        true => " Beside a row or column: its share of the component's weights.",
        false => "",
    };
    let _ = writeln!(
        text,
        "<p class=\"small\">Components by their share of the sum of WH, the largest first.{weights}{smaller}</p>\n</section>"
    );
    text
}

fn card(component: &Component, [columns, rows]: &[View; 2]) -> String {
    let mut text = format!(
        "<div class=\"component\"><h3>Component {} <span>{}</span></h3>\n",
        component.number,
        escape(&percent(component.share))
    );
    for (name, features, view) in [
        ("columns", &component.columns, columns),
        ("rows", &component.rows, rows),
    ] {
        match (view, features.first()) {
            (View::Features, _) => text.push_str(&features_table(name, features)),
            (View::Curves(_), Some(first)) => {
                let first = escape(&clipped(&first.name, LETTERS));
                let _ = writeln!(text, "<p class=\"small\">highest at {first}</p>");
            }
            // A picture needs no list.
            _ => {}
        }
    }
    text + "</div>\n"
}

fn features_table(name: &str, features: &[Feature]) -> String {
    if features.is_empty() {
        return format!("<p class=\"small\">all {name} are 0</p>\n");
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
    let held_out = &summary["held_out"]["held_out_weight"];
    let outer = summary["outer_error"].as_f64().zip(held_out.as_f64());
    let text = fit_in_words(relative, outer.map(|(error, weight)| error / weight));
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
    } else if !run.is_plain() {
        for (name, weights) in &run.groups {
            let weights: Vec<f64> = weights.iter().copied().collect();
            sentences.push(format!("Penalty {name}: {}.", weights_in_words(&weights)));
        }
    }
    let mut text = String::from("<section id=\"lambda\"><h2>What λ says</h2>");
    for sentence in sentences {
        let _ = writeln!(text, "<p class=\"answer\">{}</p>", escape(&sentence));
    }
    text + &candidates(run) + "</section>\n"
}

/// The candidates of the preset practical.
fn candidates(run: &RunRecords) -> String {
    let Some(choice) = &run.choice else {
        return String::new();
    };
    let entries = run.summary["held_out"]["held_out_weight"].as_f64();
    let unit = if entries.is_some() { " per entry" } else { "" };
    let mut text = format!(
        "<table class=\"numbers\"><caption>Candidates</caption><tr><th></th><th>outer \
         error{unit}</th><th>iteration</th></tr>\n"
    );
    for (index, candidate) in choice.candidates.iter().enumerate() {
        let class = match index == choice.chosen {
            true => " class=\"own\"",
            false => "",
        };
        let _ = writeln!(
            text,
            "<tr{class}><td>{}</td><td>{:.5e}</td><td>{}</td></tr>",
            candidate.stage,
            candidate.outer_error / entries.unwrap_or(1.0),
            candidate.iteration
        );
    }
    text.push_str(
        "</table><p class=\"small\">The one with the lowest outer error was taken if it beat plain \
         updates by more than a standard error, plain updates otherwise. The one taken was \
         refitted to all data (unless --refit 0 was asked for). The curves below are those of the \
         run that tuned λ.</p>\n",
    );
    text
}

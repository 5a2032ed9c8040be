//! The report of a run.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::figures::Figure;
use super::page::{figure_element, head};
use super::{Choice, RunRecords};
use crate::data::Reading;
use crate::plot::escape;

/// Writes the page of a run.
pub(super) fn run_page(run: &RunRecords, figures: &[Figure]) -> String {
    let summary = &run.summary;
    let number = |key: &str| match &summary[key] {
        Value::Number(number) => {
            let value = number.as_f64().unwrap_or(f64::NAN);
            if number.is_u64() {
                number.to_string()
            } else {
                format!("{value:.4e}")
            }
        }
        Value::String(text) => escape(text),
        _ => "–".into(),
    };
    let percent = |key: &str| {
        summary[key]
            .as_f64()
            .map_or("–".into(), |share| format!("{share:.1} %"))
    };
    let decibels = |key: &str| summary[key].as_f64().map(|sir| format!("{sir:.2} dB"));
    let mut cards = vec![
        ("Stopped", number("stop_reason")),
        ("Iterations", number("iterations")),
        ("Divergence", number("divergence")),
        ("Objective", number("objective")),
        ("Relative error", number("relative_error")),
        ("Sparsity of W", percent("sparsity_w")),
        ("Sparsity of H", percent("sparsity_h")),
    ];
    for (name, key) in [("SIR of W", "sir_w"), ("SIR of H", "sir_h")] {
        if let Some(sir) = decibels(key) {
            cards.push((name, sir));
        }
    }
    if let Some(weight) = summary["held_out"]["held_out_weight"].as_f64() {
        let error = summary["outer_error"].as_f64().unwrap_or(f64::NAN) / weight;
        cards.push(("Outer error per entry", format!("{error:.4e}")));
        if summary["choice"].is_null() {
            cards.push(("Kept iteration", number("selected_iteration")));
        }
    }
    let seconds = summary["seconds"].as_f64().unwrap_or(f64::NAN);
    cards.push(("Seconds", format!("{seconds:.2}")));
    // Runs of older versions do not say.
    if summary["engine"].is_string() {
        cards.push(("Engine", number("engine")));
    }

    let mut page = head("altbi run");
    let shape = format!("{}×{}", run.w.nrows(), run.h.ncols());
    let rank = run.w.ncols();
    let reading = serde_json::from_value::<Reading>(summary["table"].clone());
    let reading = reading.map_or_else(
        |_| String::new(),
        |reading| format!("<p class=\"small\">The table was read with {reading}.</p>"),
    );
    let outer = match (&summary["outer_reason"], &summary["outer"]) {
        (Value::String(reason), _) => reason.clone(),
        (_, Value::String(outer)) if outer != "train" => outer.clone(),
        _ => String::new(),
    };
    let outer = match outer.as_str() {
        "" => outer,
        outer => format!("<p class=\"small\">Outer error {}.</p>", escape(outer)),
    };
    let _ = writeln!(
        page,
        "<header><h1>altbi run</h1><p>X ({shape}) ≈ W H with {rank} components, {}</p>{reading}{outer}</header>",
        escape(&run.method_sentence())
    );
    page.push_str("<section class=\"cards\">\n");
    for (name, value) in cards {
        let _ = writeln!(
            page,
            "<div class=\"card\"><span>{name}</span><strong>{value}</strong></div>"
        );
    }
    page.push_str("</section>\n");
    page.push_str(&candidates(&summary["choice"]));
    page.push_str("<main>\n");
    for figure in figures {
        page.push_str(&figure_element(figure));
    }
    page.push_str("</main>\n<section><h2>Settings</h2><div class=\"wide\"><table>\n");
    for (key, value) in run.settings() {
        let _ = writeln!(
            page,
            "<tr><th>{}</th><td>{}</td></tr>",
            escape(&key),
            escape(&value)
        );
    }
    let _ = write!(
        page,
        "</table></div>\n<h2>To repeat it</h2>\n<pre>altbi fit --config {}</pre>\n\
         <p class=\"small\">Data fingerprint (SHA-256) {}<br>altbi {}</p></section>\n</body></html>\n",
        escape(&shell_quoted(&run.config_path)),
        number("data_hash"),
        number("version")
    );
    page
}

/// The candidates of the preset practical.
fn candidates(choice: &Value) -> String {
    let Ok(choice) = serde_json::from_value::<Choice>(choice.clone()) else {
        return String::new();
    };
    let mut text = String::from(
        "<section><h2>Candidates</h2><table class=\"numbers\"><tr><th></th><th>outer error</th>\
         <th>iteration</th></tr>\n",
    );
    for (index, candidate) in choice.candidates.iter().enumerate() {
        let class = if index == choice.chosen {
            " class=\"own\""
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "<tr{class}><td>{}</td><td>{:.5e}</td><td>{}</td></tr>",
            candidate.stage, candidate.outer_error, candidate.iteration
        );
    }
    text.push_str(
        "</table><p>The one with the lowest outer error was taken if it beat plain updates by more \
         than a standard error, plain updates otherwise. The one taken was refitted to all data \
         (unless --refit 0 was asked for). The curves below are those of the run that tuned \
         λ.</p></section>\n",
    );
    text
}

/// A path as one types it into a shell.
pub fn shell_quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./-+:@".contains(c);
    if path.chars().all(plain) {
        path
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

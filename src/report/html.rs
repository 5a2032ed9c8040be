//! The report of a run.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::figures::Figure;
use super::library::LIBRARY;
use super::page::{figure_element, head};
use super::{RunRecords, percent, sections};
use crate::data::Reading;
use crate::plot::{escape, short};

/// Writes the page of a run.
pub(super) fn run_page(run: &RunRecords, figures: &[Figure]) -> String {
    let mut page = head(&title(run));
    page.push_str(&header(run));
    // Pictures of components are beside their words, curves below them, all else after the
    // answers.
    let (of_factors, others): (Vec<_>, Vec<_>) =
        figures.iter().partition(|figure| shows_factors(figure));
    let curves: Vec<&Figure> = of_factors
        .into_iter()
        .filter(|figure| figure.tiles.is_empty())
        .collect();
    page.push_str("<div class=\"story\">\n");
    page.push_str(&sections::found(run));
    page.push_str("<div class=\"answers\">\n");
    page.push_str(&sections::fit(run));
    page.push_str(&sections::lambda(run));
    page.push_str("</div>\n</div>\n");
    page.push_str(&grid(&curves).replacen("<main>", "<main class=\"found\">", 1));
    page.push_str(&sections::candidates(run));
    page.push_str(&sections::starts(run));
    page.push_str("<section class=\"cards\">\n");
    for (name, value) in cards(run) {
        let _ = writeln!(
            page,
            "<div class=\"card\"><span>{name}</span><strong>{value}</strong></div>"
        );
    }
    page.push_str("</section>\n");
    page.push_str(&grid(&others));
    page.push_str(&data_notes(run));
    page.push_str(&settings(run));
    page
}

fn shows_factors(figure: &Figure) -> bool {
    ["w_columns", "h_rows"].contains(&figure.name.as_str())
}

fn grid(figures: &[&Figure]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let figures: String = figures
        .iter()
        .map(|figure| figure_element(figure))
        .collect();
    format!("<main>\n{figures}</main>\n")
}

fn title(run: &RunRecords) -> String {
    let data = run.config.get("data").and_then(toml::Value::as_str);
    data_name(data.filter(|data| !data.is_empty()))
}

/// The name of the data, from its path or from what stands for one; without data, that of the
/// demo.
pub fn data_name(data: Option<&str>) -> String {
    match data {
        None => "demo (benchmark A)".into(),
        Some(data) => {
            let name = data.rsplit(['/', '\\']).find(|part| !part.is_empty());
            name.unwrap_or(data).into()
        }
    }
}

fn header(run: &RunRecords) -> String {
    format!(
        "<header><h1>{}</h1><p>X ({}×{}) ≈ WH with {} components, {}</p></header>\n",
        escape(&title(run)),
        run.w.nrows(),
        run.h.ncols(),
        run.w.ncols(),
        escape(&run.method_sentence())
    )
}

/// Notes on the data: their reading, the stored entries, the outer error.
fn data_notes(run: &RunRecords) -> String {
    let summary = &run.summary;
    let reading = serde_json::from_value::<Reading>(summary["table"].clone());
    let reading = reading.map_or_else(
        |_| String::new(),
        |reading| format!("<p class=\"small\">The table was read with {reading}.</p>\n"),
    );
    let outer = match (&summary["outer_reason"], &summary["outer"]) {
        (Value::String(reason), _) => reason.as_str(),
        (_, Value::String(outer)) if outer != "train" => outer.as_str(),
        _ => "",
    };
    let outer = match outer {
        "" => String::new(),
        outer => format!("<p class=\"small\">Outer error: {}.</p>\n", escape(outer)),
    };
    let sparse = &summary["sparse"];
    let stored = sparse["stored"].as_u64().zip(sparse["share"].as_f64());
    let stored = stored.map_or_else(String::new, |(stored, share)| {
        let others = match sparse["zeros"].as_str() {
            Some("missing") => "missing",
            _ => "zeros",
        };
        let share = escape(&percent(share));
        format!("<p class=\"small\">X is sparse: {stored} entries are stored ({share}); the others are {others}.</p>\n")
    });
    match [&reading, &stored, &outer]
        .iter()
        .all(|note| note.is_empty())
    {
        true => String::new(),
        false => format!("<section>{reading}{stored}{outer}</section>\n"),
    }
}

/// The main numbers of the run.
fn cards(run: &RunRecords) -> Vec<(&'static str, String)> {
    let summary = &run.summary;
    let float = |key: &str| summary[key].as_f64();
    let percent = |key: &str| float(key).map_or("–".into(), |share| format!("{share:.1} %"));
    let number = |value: Option<f64>| value.map_or("–".into(), short);
    let mut cards = Vec::new();
    let count = text(&summary["iterations"]);
    // The tuned run of practical always makes all its iterations, so the reason for its end is not
    // shown.
    match run.choice {
        Some(_) => cards.push(("Tuning iterations", count)),
        None => {
            let reason = summary["stop_reason"].as_str().unwrap_or_default();
            cards.push(("Iterations", ending(&count, reason)));
        }
    }
    let entries = float("entries").filter(|entries| *entries > 0.0);
    let [divergence, objective] = match entries {
        Some(_) => ["Divergence per entry", "Objective per entry"],
        None => ["Divergence, sum", "Objective, sum"],
    };
    let per_entry = |key: &str| number(float(key).map(|sum| sum / entries.unwrap_or(1.0)));
    cards.push((divergence, per_entry("divergence")));
    // (Without a penalty they are the same.)
    if float("objective") != float("divergence") {
        cards.push((objective, per_entry("objective")));
    }
    cards.push(("Relative error", number(float("relative_error"))));
    if let Some(weight) = summary["held_out"]["held_out_weight"].as_f64() {
        let error = float("outer_error").map(|error| error / weight);
        cards.push(("Outer error per entry", number(error)));
        if run.choice.is_none() {
            cards.push(("Kept iteration", text(&summary["selected_iteration"])));
        }
    }
    cards.extend([
        ("Sparsity of W", percent("sparsity_w")),
        ("Sparsity of H", percent("sparsity_h")),
    ]);
    for (name, key) in [("SIR of W", "sir_w"), ("SIR of H", "sir_h")] {
        if let Some(sir) = float(key) {
            cards.push((name, format!("{sir:.2} dB")));
        }
    }
    let seconds = |seconds: f64| match seconds < 0.01 {
        true => "&lt; 0.01".into(),
        false => format!("{seconds:.2}"),
    };
    cards.push(("Seconds", float("seconds").map_or("–".into(), seconds)));
    // Runs of older versions do not have it.
    if summary["engine"].is_string() {
        cards.push(("Engine", text(&summary["engine"])));
    }
    cards
}

/// The number of iterations and how they ended. Making all of them is no failure.
fn ending(count: &str, reason: &str) -> String {
    match reason {
        "converged" => format!("{count}, converged"),
        "max-iterations" => format!("{count}, the limit"),
        "interrupted" => format!("{count}, interrupted"),
        "not-finite" => format!("{count}, then not finite"),
        "refused" => format!("{count}, then refused"),
        _ => count.into(),
    }
}

/// A text or a whole number of the summary.
fn text(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => escape(&text.replace('-', " ")),
        _ => "–".into(),
    }
}

/// The settings (folded), and the command that repeats the run.
fn settings(run: &RunRecords) -> String {
    let mut page =
        String::from("<section><details><summary>Settings</summary><div class=\"wide\"><table>\n");
    for (key, value) in run.settings() {
        let _ = writeln!(
            page,
            "<tr><th>{}</th><td>{}</td></tr>",
            escape(&key),
            escape(&value)
        );
    }
    let word = |key: &str| escape(run.summary[key].as_str().unwrap_or("–"));
    let repeat = match run.config.contains_key(LIBRARY) {
        true => String::new(),
        false => format!(
            "<h2>To repeat it</h2>\n<pre>altbi fit --config {}</pre>\n",
            escape(&shell_quoted(&run.config_path))
        ),
    };
    let _ = write!(
        page,
        "</table></div>\n{repeat}\
         <p class=\"small\">Data fingerprint (SHA-256) {}<br>altbi {}</p></details></section>\n</body></html>\n",
        word("data_hash"),
        word("version")
    );
    page
}

/// A path, quoted for a shell.
pub(crate) fn shell_quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./-+:@".contains(c);
    if path.chars().all(plain) {
        path
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_iteration_is_no_failure() {
        assert_eq!(ending("60", "max-iterations"), "60, the limit");
        assert_eq!(ending("89", "converged"), "89, converged");
        assert_eq!(ending("7", "not-finite"), "7, then not finite");
    }

    #[test]
    fn data_has_the_name_of_its_file() {
        assert_eq!(data_name(Some("/a/b/x.csv")), "x.csv");
        assert_eq!(data_name(Some("c:\\a\\x.csv")), "x.csv");
        assert_eq!(data_name(Some("a.mat:X")), "a.mat:X");
        assert_eq!(data_name(None), "demo (benchmark A)");
    }
}

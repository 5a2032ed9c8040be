//! The report: one page that needs nothing but itself.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::RunRecords;
use super::figures::Figure;
use crate::plot::escape;
use crate::plot::theme::themed;

/// Writes the page of a run.
pub(super) fn page(run: &RunRecords, figures: &[Figure]) -> String {
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
    let seconds = summary["seconds"].as_f64().unwrap_or(f64::NAN);
    cards.push(("Seconds", format!("{seconds:.2}")));
    // Runs of older versions do not say.
    if summary["engine"].is_string() {
        cards.push(("Engine", number("engine")));
    }

    let mut page = String::from(HEAD);
    let shape = format!("{}×{}", run.w.nrows(), run.h.ncols());
    let rank = run.w.ncols();
    let _ = writeln!(
        page,
        "<header><h1>altbi run</h1><p>X ({shape}) ≈ W H with {rank} components, {}</p></header>",
        escape(&run.method_sentence())
    );
    page.push_str("<section class=\"cards\">\n");
    for (name, value) in cards {
        let _ = writeln!(
            page,
            "<div class=\"card\"><span>{name}</span><strong>{value}</strong></div>"
        );
    }
    page.push_str("</section>\n<main>\n");
    for figure in figures {
        let _ = writeln!(
            page,
            "<figure id=\"{}\"><h2>{}</h2>{}<figcaption>{}</figcaption></figure>",
            figure.name,
            figure.title,
            scalable(&themed(&figure.svg)),
            escape(&figure.caption)
        );
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

/// An SVG of fixed size made to fill its place.
fn scalable(svg: &str) -> String {
    svg.replacen(
        "<svg ",
        "<svg class=\"chart\" preserveAspectRatio=\"xMidYMid meet\" ",
        1,
    )
}

const HEAD: &str = r##"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>altbi run</title>
<style>
:root { --ink: #1f2933; --grid: #dde2e8; --ground: #ffffff; --card: #f4f6f8; --soft: #52606d; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --grid: #3a4653; --ground: #161b21; --card: #212933; --soft: #9aa5b1; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1360px; padding: 1rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; } h2 { margin: 0 0 .4rem; font-size: 1.1rem; }
header p, figcaption, .small { color: var(--soft); } .small { font-size: .8rem; overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.card { background: var(--card); border-radius: .5rem; padding: .5rem .8rem; }
.card span { display: block; font-size: .8rem; color: var(--soft); }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 30rem), 1fr)); gap: 1.2rem; }
figure { margin: 0; break-inside: avoid; } figcaption { font-size: .85rem; }
svg.chart { width: 100%; height: auto; display: block; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; } th { text-align: left; font-weight: 600; }
th, td { padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--grid); overflow-wrap: anywhere; }
section { margin-top: 1.5rem; }
pre { background: var(--card); padding: .6rem .8rem; border-radius: .5rem; overflow-x: auto; }
@media print { body { max-width: none; } main { grid-template-columns: 1fr 1fr; } }
</style></head><body>
"##;

//! Common parts of all pages. A page is one self-contained file.

use super::figures::Figure;
use crate::plot::escape;
use crate::plot::theme::themed;

/// A picture with its heading and caption.
pub(super) fn figure_element(figure: &Figure) -> String {
    let (class, picture) = match figure.tiles.as_slice() {
        [] => {
            let picture = scalable(&themed(&figure.svg));
            ("", format!("<div class=\"wide\">{picture}</div>"))
        }
        tiles => {
            let tiles: String = tiles.iter().map(|tile| themed(tile)).collect();
            let class = " class=\"row\"";
            (class, format!("<div class=\"tiles\">{tiles}</div>"))
        }
    };
    format!(
        "<figure id=\"{}\"{class}><h2>{}</h2>{picture}<figcaption>{}</figcaption></figure>\n",
        figure.name,
        escape(&figure.title),
        escape(&figure.caption)
    )
}

/// Smallest scale of a figure. Its text has 14 pixels and should not be smaller than 11.
const SMALLEST: f64 = 11.0 / 14.0;
/// Largest scale of a figure.
const LARGEST: f64 = 1.15;

/// An SVG of fixed size, changed so that it scales with the page while its text stays readable.
fn scalable(svg: &str) -> String {
    let after = svg
        .split_once("<svg width=\"")
        .map_or("", |(_, after)| after);
    let width = after.split('"').next().and_then(|width| width.parse().ok());
    let width: f64 = width.unwrap_or(440.0);
    svg.replacen(
        "<svg ",
        &format!(
            "<svg class=\"chart\" style=\"min-width:{:.0}px;max-width:{:.0}px\" \
             preserveAspectRatio=\"xMidYMid meet\" ",
            width * SMALLEST,
            width * LARGEST
        ),
        1,
    )
}

/// The beginning of a page, up to its body.
pub(super) fn head(title: &str) -> String {
    HEAD.replace("TITLE", &escape(title))
}

const HEAD: &str = r##"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>TITLE</title>
<style>
:root { --ink: #1f2933; --grid: #dde2e8; --ground: #ffffff; --card: #f4f6f8; --soft: #52606d;
  --blue: #0072b2; --sky: #56b4e9; --violet: #7a5cc9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --grid: #3a4653; --ground: #161b21; --card: #212933; --soft: #9aa5b1;
    --blue: #3b8fe4; --sky: #a8dcf5; --violet: #a48cea; }
  svg image { filter: brightness(1.5); }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1360px; padding: 1rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { margin: 0; font-size: 1.6rem; } h2 { margin: 0 0 .4rem; font-size: 1.1rem; }
header p, figcaption, .small { color: var(--soft); } .small { font-size: .8rem; overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.card { background: var(--card); border-radius: .5rem; padding: .5rem .8rem; }
.card span { display: block; font-size: .8rem; color: var(--soft); }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); gap: 1.2rem; }
main.found { grid-template-columns: repeat(auto-fit, minmax(min(100%, 32rem), 1fr)); } main.found svg.chart { max-width: 36rem !important; }
figure { margin: 0; break-inside: avoid; } figcaption { font-size: .85rem; }
svg.chart { width: 100%; height: auto; display: block; }
.tiles { display: flex; flex-wrap: wrap; gap: .4rem; }
.wide { overflow-x: auto; } main { margin-top: 1rem; } figure { min-width: 0; }
.components { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 19rem), 1fr)); gap: .6rem; }
.component { background: var(--card); border-radius: .5rem; padding: .5rem .8rem; min-width: 0; }
.component h3 { margin: 0; font-size: 1rem; } .component h3 span { color: var(--soft); font-weight: 400; }
.component p { margin: .2rem 0 0; }
table.features { width: 100%; table-layout: fixed; font-size: .85rem; } table.features td { border: 0; padding: 0 .4rem 0 0; vertical-align: top; }
table.features caption { font-weight: 400; color: var(--soft); padding: .2rem 0 0; }
table.features td:nth-child(2) { width: 4rem; text-align: right; white-space: nowrap; }
table.features td:nth-child(3) { width: 16%; padding-right: 0; }
table.features i { display: block; height: .6rem; margin-top: .35rem; background: var(--blue); border-radius: .15rem; }
.pictured { display: flex; flex-wrap: wrap; gap: 0 .8rem; } .pictured table { flex: 1 1 9rem; width: auto; align-self: flex-start; }
.pictured table.features td:nth-child(2) { width: 3.5rem; }
.picture { flex: none; order: -1; } .picture p { font-size: .85rem; color: var(--soft); margin: .2rem 0; } .picture svg { width: 7rem; height: auto; display: block; }
.answers { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 0 1.5rem; }
.answer { margin: 0 0 .4rem; font-size: 1.05rem; } .story { display: flex; flex-direction: column; }
summary { cursor: pointer; padding: .4rem 0; } details > .components { margin-top: .4rem; }
table { border-collapse: collapse; font-size: .9rem; } th { text-align: left; font-weight: 600; }
th, td { padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--grid); overflow-wrap: anywhere; }
section { margin-top: 1.2rem; min-width: 0; }
section > p { max-width: 62rem; }
table.numbers { font-size: .8rem; } table.numbers th, table.numbers td { text-align: right; vertical-align: bottom; overflow-wrap: normal; padding-right: .65rem; }
table.numbers td { white-space: nowrap; }
table.numbers th:first-child, table.numbers td:first-child { text-align: left; position: sticky; left: 0; background: var(--ground); }
@media (max-width: 40rem) { table.numbers td:first-child { white-space: normal; } }
table.numbers tr.own td { font-weight: 600; } caption, .caption { text-align: left; font-weight: 600; } caption { padding: .6rem 0 .2rem; }
.caption { margin: .6rem 0 .2rem; font-size: .9rem; }
nav a { margin-right: 1rem; color: inherit; } figure.row { grid-column: 1 / -1; }
.better { color: #00805c; } .worse { color: #c14f00; }
@media (prefers-color-scheme: dark) { .better { color: #35c89c; } .worse { color: #f08a4b; } }
pre { background: var(--card); padding: .6rem .8rem; border-radius: .5rem; white-space: pre-wrap; overflow-wrap: anywhere; }
details table th { white-space: nowrap; } details h2 { margin-top: 1rem; }
@media print { body { max-width: none; } main { grid-template-columns: 1fr 1fr; } }
</style></head><body>
"##;

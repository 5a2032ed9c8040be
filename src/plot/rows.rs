//! Horizontal bars, with one line for each name.

use std::fmt::Write;

use super::axis::{even, even_texts};
use super::frame::{framed, text};
use super::legend::Legend;
use super::text::{escape, short, width_of};
use super::theme::{hex, series};

/// Groups of bars below each other, each beside its name.
#[derive(Debug, Clone)]
pub(crate) struct BarRows {
    /// A name for each group.
    pub names: Vec<String>,
    /// The bars: the name of a series, and its value in each group. Values that are not finite are
    /// left out.
    pub series: Vec<(String, Vec<f64>)>,
    /// Label below the figure.
    pub x_label: String,
    /// Bars are cut off at this value. The number on hover is the true one.
    pub longest: f64,
}

const WIDTH: f64 = 440.0;
const RIGHT: f64 = 20.0;
/// The height of a bar, and the gap between groups.
const BAR: f64 = 9.0;
const BETWEEN: f64 = 7.0;
/// The height of marks and label below the bars.
const BELOW: f64 = 44.0;

impl BarRows {
    /// Draws them.
    pub fn svg(&self) -> String {
        let widest = self.names.iter().map(|name| width_of(name));
        let left = widest.fold(0.0, f64::max) + 16.0;
        let entries = self.series.iter().enumerate();
        let entries = entries.map(|(index, (name, _))| (name.clone(), series(index)));
        let legend = Legend::new(entries.collect(), WIDTH - left);
        let top = f64::from(legend.height()) + 8.0;
        let group = BAR * self.series.len().max(2) as f64 + BETWEEN;
        let bottom = top + group * self.names.len() as f64;
        let values = self.series.iter().flat_map(|(_, values)| values);
        let values = values.copied().filter(|value| value.is_finite());
        let most = values.fold(0.0, f64::max).min(self.longest);
        let most = if most > 0.0 { 1.05 * most } else { 1.0 };
        let place = |value: f64| left + (WIDTH - RIGHT - left) * value / most;
        let mut svg = legend.svg(left, 0.0);
        let marks = even(&(0.0..most), 5, false);
        for (mark, name) in marks.iter().zip(even_texts(&marks)) {
            let x = place(*mark);
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#DDE2E8\"/>"
            );
            text(&mut svg, x, bottom + 17.0, "middle", &name);
        }
        let middle = (left + WIDTH - RIGHT) / 2.0;
        text(&mut svg, middle, bottom + 37.0, "middle", &self.x_label);
        for (row, name) in self.names.iter().enumerate() {
            let begin = top + group * row as f64;
            let at = begin + group / 2.0 + 4.0;
            text(&mut svg, left - 8.0, at, "end", name);
            for (index, (of, values)) in self.series.iter().enumerate() {
                let Some(value) = values.get(row).filter(|value| value.is_finite()) else {
                    continue;
                };
                let y = begin + BETWEEN / 2.0 + BAR * index as f64;
                let _ = writeln!(
                    svg,
                    "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{}\"><title>{}: {} at {}</title></rect>",
                    place(value.min(self.longest)) - left,
                    hex(series(index)),
                    escape(of),
                    short(*value),
                    escape(name)
                );
            }
        }
        framed(WIDTH, bottom + BELOW, &svg)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_beside_its_bars() {
        let rows = BarRows {
            names: vec!["a <long> name".into(), "b".into()],
            series: vec![
                ("held out".into(), vec![0.5, 1.0]),
                ("judged".into(), vec![7.0, f64::NAN]),
            ],
            x_label: "ratio".into(),
            longest: 2.0,
        };
        let svg = rows.svg();
        assert!(svg.contains(">a &lt;long&gt; name</text>") && svg.contains(">b</text>"));
        assert_eq!(svg.matches("<title>").count(), 3);
        // A bar that is cut off keeps its number.
        assert!(svg.contains("judged: 7 at a") && !svg.contains("NaN"));
    }
}

//! Names of series, above the picture.

use std::fmt::Write;

use plotters::style::RGBColor;

use super::frame::text;
use super::text::width_of;
use super::theme::hex;

/// The height of a line of names.
const LINE: u32 = 20;
/// The sample of a colour, and the gaps around it.
const SAMPLE: f64 = 14.0;
const GAP: f64 = 6.0;
const BETWEEN: f64 = 16.0;

/// The names of the series with their colours, in as many lines as needed.
pub(super) struct Legend {
    lines: Vec<Vec<(String, RGBColor)>>,
}

impl Legend {
    /// Lays names out over a width.
    pub(super) fn new(entries: Vec<(String, RGBColor)>, width: f64) -> Self {
        let mut lines: Vec<Vec<(String, RGBColor)>> = Vec::new();
        let mut used = f64::INFINITY;
        for entry in entries {
            let needs = length(&entry.0);
            if used + needs > width {
                lines.push(Vec::new());
                used = 0.0;
            }
            used += needs;
            if let Some(line) = lines.last_mut() {
                line.push(entry);
            }
        }
        Self { lines }
    }

    /// Its height above the picture.
    pub(super) fn height(&self) -> u32 {
        LINE * self.lines.len() as u32
    }

    /// Draws it from a corner.
    pub(super) fn svg(&self, left: f64, top: f64) -> String {
        let mut svg = String::new();
        for (row, line) in self.lines.iter().enumerate() {
            let mut x = left;
            let middle = top + f64::from(LINE) * (row as f64 + 0.5);
            for (name, colour) in line {
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{SAMPLE}\" height=\"8\" fill=\"{}\"/>",
                    middle - 4.0,
                    hex(*colour)
                );
                text(&mut svg, x + SAMPLE + GAP, middle + 5.0, "start", name);
                x += length(name);
            }
        }
        svg
    }
}

fn length(name: &str) -> f64 {
    SAMPLE + GAP + width_of(name) + BETWEEN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_take_as_many_lines_as_they_need() {
        let colour = RGBColor(0, 0, 0);
        let names = ["training", "outer", "a long name of a series <x>"];
        let entries = || names.map(|name| (name.to_owned(), colour)).to_vec();
        assert_eq!(Legend::new(entries(), 800.0).height(), LINE);
        let narrow = Legend::new(entries(), 240.0);
        assert_eq!(narrow.height(), 2 * LINE);
        assert!(narrow.svg(0.0, 0.0).contains("&lt;x&gt;"));
        assert_eq!(Legend::new(Vec::new(), 240.0).height(), 0);
    }
}

//! Heat maps.

use std::fmt::Write;

use ndarray::{Array2, ArrayView2};

use super::frame::{framed, text};
use super::{clipped, escape, round_step, short};

/// A nonnegative matrix drawn row by row, from the ground's colour (0) to full
/// ink (the largest entry of each row).
#[derive(Debug, Clone)]
pub(crate) struct HeatMap {
    /// The numbers that are drawn.
    pub values: Array2<f64>,
    /// A name for each row.
    pub row_names: Vec<String>,
    /// A name for each column, shown on hover. Without names, the numbers from 1.
    pub column_names: Option<Vec<String>>,
    /// Label below the figure.
    pub x_label: String,
    /// Label of the rows, above their names.
    pub y_label: String,
}

/// Largest number of cells of all rows. In longer rows a cell is the mean of neighbouring entries.
const CELLS: usize = 3000;
/// Largest and smallest number of cells per row.
const MOST_ACROSS: usize = 220;
const FEWEST_ACROSS: usize = 12;
const LEFT: usize = 48;
/// Largest number of steps between ticks.
const TICKS: usize = 6;
/// Room for the label of the rows.
const TOP: usize = 28;
const WIDTH: usize = 376;
/// Distance between names of rows.
const BETWEEN_NAMES: usize = 16;

impl HeatMap {
    /// Draws it.
    pub fn svg(&self) -> String {
        let rows = self.values.nrows().max(1);
        let height = (240 / rows).clamp(8, 28);
        let shown = condensed(self.values.view());
        let across = shown.ncols().max(1);
        let cell = WIDTH as f64 / across as f64;
        let (width, bottom) = (LEFT + WIDTH + 16, TOP + height * shown.nrows());
        let mut names = String::new();
        // (Without soft edges: lines of the ground's colour would show between cells.)
        let mut svg = String::from("<g fill=\"#0072B2\" shape-rendering=\"crispEdges\">\n");
        let columns = self.values.ncols();
        let every = BETWEEN_NAMES.div_ceil(height);
        for (k, row) in shown.rows().into_iter().enumerate() {
            let top = TOP + k * height;
            let largest = row.iter().copied().fold(0.0, f64::max);
            let name = self.row_names.get(k).map_or("", String::as_str);
            if every == 1 || (k + 1) % every == 0 {
                let middle = (top + height / 2 + 5) as f64;
                text(&mut names, (LEFT - 8) as f64, middle, "end", name);
            }
            for (j, value) in row.iter().enumerate() {
                let share = if largest > 0.0 { value / largest } else { 0.0 };
                if share < 0.02 {
                    continue;
                }
                let (from, to) = (j * columns / across, (j + 1) * columns / across);
                let place = match to > from + 1 {
                    true => format!("{} to {}", self.column(from), self.column(to - 1)),
                    false => self.column(from),
                };
                let edge = |j: usize| (10.0 * (LEFT as f64 + j as f64 * cell)).round() / 10.0;
                let _ = writeln!(
                    svg,
                    "<rect x=\"{:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"{}\" fill-opacity=\"{share:.2}\"><title>{}: {} at {}</title></rect>",
                    edge(j),
                    edge(j + 1) - edge(j),
                    height - 1,
                    escape(name),
                    short(*value),
                    escape(&place)
                );
            }
        }
        svg.push_str("</g>\n");
        svg.push_str(&names);
        text(&mut svg, 0.0, 16.0, "start", &self.y_label);
        let (left, right) = (LEFT as f64, (LEFT + WIDTH) as f64);
        let line = |number: usize| (bottom + 20 * number) as f64;
        match self.ticks() {
            Some(ticks) => {
                for (place, label) in ticks {
                    let x = left + place * WIDTH as f64;
                    text(&mut svg, x, line(1), "middle", &label);
                }
            }
            // (Names have no round numbers.)
            None => {
                let [first, last] =
                    [0, columns.saturating_sub(1)].map(|column| self.column(column));
                text(&mut svg, left, line(1), "start", &clipped(&first, 12));
                text(&mut svg, right, line(1), "end", &clipped(&last, 12));
            }
        }
        let middle = left + WIDTH as f64 / 2.0;
        text(&mut svg, middle, line(2), "middle", &self.x_label);
        framed(width as f64, line(2) + 8.0, &svg)
    }

    /// Round numbers and their places from 0 to 1, if the columns are numbers that increase.
    fn ticks(&self) -> Option<Vec<(f64, String)>> {
        let columns = self.values.ncols();
        let names = (0..columns).map(|column| self.column(column).parse::<f64>());
        let numbers: Vec<f64> = names.collect::<Result<_, _>>().ok()?;
        if columns < 2 || numbers.iter().zip(&numbers[1..]).any(|(a, b)| a >= b) {
            return None;
        }
        let (first, last) = (numbers[0], numbers[columns - 1]);
        let step = round_step(last - first, TICKS);
        let ticks = (0..=TICKS + 1)
            .map(|index| ((first / step).ceil() + index as f64) * step)
            .take_while(|tick| *tick <= last)
            .map(|tick| {
                let column = numbers.partition_point(|number| *number < tick);
                ((column as f64 + 0.5) / columns as f64, short(tick))
            });
        Some(ticks.collect())
    }

    /// The name of a column, or its number from 1.
    fn column(&self, column: usize) -> String {
        let names = self.column_names.as_ref();
        let name = names.and_then(|names| names.get(column));
        name.map_or_else(|| (column + 1).to_string(), |name| clipped(name, 40))
    }
}

/// Reduces too many columns by means over neighbours.
fn condensed(values: ArrayView2<f64>) -> Array2<f64> {
    let (rows, columns) = values.dim();
    let across = (CELLS / rows.max(1)).clamp(FEWEST_ACROSS, MOST_ACROSS);
    if columns <= across {
        return values.to_owned();
    }
    Array2::from_shape_fn((rows, across), |(k, cell)| {
        let from = cell * columns / across;
        let to = ((cell + 1) * columns / across).max(from + 1);
        let run = (from..to).map(|j| values[[k, j]]);
        run.sum::<f64>() / (to - from) as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rows_are_condensed_and_zeros_left_blank() {
        let values = Array2::from_shape_fn(
            (2, 1000),
            |(k, j)| if k == 0 { 1.0 + j as f64 } else { 0.0 },
        );
        let map = HeatMap {
            values,
            row_names: vec!["1".into(), "<2>".into()],
            column_names: Some((0..1000).map(|j| format!("<{j}>")).collect()),
            x_label: "column".into(),
            y_label: "component".into(),
        };
        let svg = map.svg();
        assert!(svg.matches("<rect").count() <= MOST_ACROSS);
        assert!(svg.contains("&lt;2&gt;") && svg.contains("&lt;999&gt;"));
        assert_eq!(map.ticks(), None);
        let mut wavelengths = map.clone();
        wavelengths.column_names = Some((0..1000).map(|j| (400 + j).to_string()).collect());
        let labels: Vec<String> = wavelengths
            .ticks()
            .unwrap()
            .into_iter()
            .map(|(_, label)| label)
            .collect();
        assert_eq!(labels, ["400", "600", "800", "1000", "1200"]);
        let many = HeatMap {
            values: Array2::ones((40, 200_000)),
            row_names: (1..=40).map(|k| k.to_string()).collect(),
            column_names: None,
            x_label: "column".into(),
            y_label: "component".into(),
        };
        let svg = many.svg();
        assert!(svg.len() < 600_000, "{}", svg.len());
        // Only every second row has a name, because rows are eight pixels high.
        assert!(svg.contains(">40</text>") && !svg.contains(">39</text>"));
    }
}

//! A matrix as colours.

use std::fmt::Write;

use ndarray::{Array2, ArrayView2};

use super::{escape, short};

/// A nonnegative matrix drawn row by row, from the ground's colour (0) to full
/// ink (the largest entry of each row).
#[derive(Debug, Clone)]
pub struct HeatMap {
    /// What is drawn.
    pub values: Array2<f64>,
    /// A name for each row.
    pub row_names: Vec<String>,
    /// Under the picture.
    pub x_label: String,
}

/// Cells across at most; longer rows are shown by means of neighbouring cells.
const CELLS_ACROSS: usize = 220;
const LEFT: usize = 48;
const WIDTH: usize = 440;

impl HeatMap {
    /// Draws it.
    pub fn svg(&self) -> String {
        let height = (240 / self.values.nrows().max(1)).clamp(8, 28);
        let shown = condensed(self.values.view());
        let across = shown.ncols().max(1);
        let cell = WIDTH as f64 / across as f64;
        let (width, bottom) = (LEFT + WIDTH + 16, 8 + height * shown.nrows());
        let total = bottom + 40;
        let mut svg = format!(
            "<svg width=\"{width}\" height=\"{total}\" viewBox=\"0 0 {width} {total}\" xmlns=\"http://www.w3.org/2000/svg\">\n"
        );
        let columns = self.values.ncols();
        for (k, row) in shown.rows().into_iter().enumerate() {
            let top = 8 + k * height;
            let largest = row.iter().copied().fold(0.0, f64::max);
            let name = self.row_names.get(k).map_or("", String::as_str);
            text(&mut svg, LEFT - 8, top + height / 2 + 4, "end", name);
            for (j, value) in row.iter().enumerate() {
                let share = if largest > 0.0 { value / largest } else { 0.0 };
                if share < 0.005 {
                    continue;
                }
                let _ = writeln!(
                    svg,
                    "<rect x=\"{:.2}\" y=\"{top}\" width=\"{:.2}\" height=\"{}\" fill=\"#0072B2\" fill-opacity=\"{share:.2}\"><title>{}: {} at {}</title></rect>",
                    LEFT as f64 + j as f64 * cell,
                    cell + 0.05,
                    height - 2,
                    escape(name),
                    short(*value),
                    j * columns / across
                );
            }
        }
        for (x, anchor, label) in [
            (LEFT, "start", "0".to_owned()),
            (LEFT + WIDTH / 2, "middle", self.x_label.clone()),
            (LEFT + WIDTH, "end", columns.saturating_sub(1).to_string()),
        ] {
            text(&mut svg, x, bottom + 20, anchor, &label);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

pub(super) fn text(svg: &mut String, x: usize, y: usize, anchor: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" font-family=\"system-ui, sans-serif\" font-size=\"14\" fill=\"#1F2933\">{}</text>",
        escape(text)
    );
}

/// At most [`CELLS_ACROSS`] columns: means over runs of neighbours.
fn condensed(values: ArrayView2<f64>) -> Array2<f64> {
    let columns = values.ncols();
    if columns <= CELLS_ACROSS {
        return values.to_owned();
    }
    Array2::from_shape_fn((values.nrows(), CELLS_ACROSS), |(k, cell)| {
        let from = cell * columns / CELLS_ACROSS;
        let to = ((cell + 1) * columns / CELLS_ACROSS).max(from + 1);
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
            x_label: "column".into(),
        };
        let svg = map.svg();
        assert!(svg.matches("<rect").count() <= CELLS_ACROSS);
        assert!(svg.contains("&lt;2&gt;"));
    }
}

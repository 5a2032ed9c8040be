//! Figures from plain numbers: lines, points, bars, boxes, heat maps and maps as SVG.
//!
//! A `Chart` describes a figure, and `Chart::svg` draws it. The colours are
//! those of `theme`, which can replace them by CSS variables, so that a page
//! can be light or dark. Some points have a `<title>`, which browsers show on hover.

mod axis;
mod boxes;
mod chart;
mod draw;
mod frame;
mod heat_map;
mod legend;
mod maps;
mod picture;
mod ranges;
mod rows;
mod series;
mod text;
pub(crate) mod theme;

pub(crate) use axis::round_step;
pub(crate) use chart::{Chart, Scale};
pub(crate) use draw::MANY_POINTS;
pub(crate) use heat_map::HeatMap;
pub(crate) use maps::Maps;
pub(crate) use rows::BarRows;
pub(crate) use series::Series;
pub(crate) use text::{clipped, escape, short};

use ndarray::Array2;

/// Lines over two axes, as SVG; with `logarithmic`, y is laid out by its logarithm.
pub fn lines(
    x_label: &str,
    y_label: &str,
    logarithmic: bool,
    named: &[(&str, Vec<(f64, f64)>)],
) -> String {
    let scale = match logarithmic {
        true => Scale::Logarithmic,
        false => Scale::Linear,
    };
    let empty = Chart::new(x_label, y_label, scale).sized(860, 320);
    let add = |chart: Chart, (name, points): &(&str, Vec<(f64, f64)>)| {
        chart.with(Series::line(*name, points.clone()))
    };
    named.iter().fold(empty, add).svg()
}

/// Nonnegative pictures side by side, as SVG, each with its name: from the ground's colour (0)
/// to full ink (its largest entry).
pub fn pictures(named: Vec<(String, Array2<f64>)>) -> String {
    Maps { maps: named }.svg()
}

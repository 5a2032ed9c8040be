//! Components as pictures or curves, if their entries have an order.

use ndarray::Array2;

use super::figures::Figure;
use super::{Labels, RunRecords};
use crate::factors::Side;
use crate::plot::{Chart, HeatMap, Maps, Scale, Series};

/// Signals beyond this many are drawn as a heat map.
const CURVES_AT_MOST: usize = 8;
/// Longer signals are drawn as a heat map.
const LONGEST_CURVE: usize = 1500;

/// The view of one side of the components.
pub(super) enum View {
    /// Pictures of this height and width.
    Pictures([usize; 2]),
    /// Curves. If the labels are numbers, they are the x values.
    Curves(Option<Vec<f64>>),
    /// The largest entries, because the entries have no order.
    Features,
}

/// The view of a side: pictures if a shape is known, curves if the labels are ordered numbers or
/// the penalty uses their order, otherwise the largest entries.
pub(super) fn view(run: &RunRecords, side: Side) -> View {
    let (setting, count) = match side {
        Side::W => ("shape-w", run.w.nrows()),
        Side::H => ("shape-h", run.h.ncols()),
    };
    if let Some(shape) = shape_of(run, setting, count) {
        return View::Pictures(shape);
    }
    if let Some(places) = run.labels.ordered(side, count) {
        return View::Curves(Some(places));
    }
    // (Steps along a graph do not follow the order.)
    let graph = match side {
        Side::W => "graph",
        Side::H => "graph-h",
    };
    let in_order = run.summary["settings"][graph].is_null();
    let mut penalties = run.penalties.iter().filter(|one| one.factor == side);
    let uses_order = |name: &str| name == "smooth" || (name == "steps" && in_order);
    match penalties.any(|one| uses_order(&one.penalty)) {
        true => View::Curves(None),
        false => View::Features,
    }
}

/// The shape of pictures in the settings, if it has this number of pixels. (A summary may have been
/// edited.)
fn shape_of(run: &RunRecords, setting: &str, pixels: usize) -> Option<[usize; 2]> {
    let text = run.summary["settings"][setting].as_str()?;
    let (height, width) = text.split_once(['x', '×'])?;
    let (height, width): (usize, usize) = (height.parse().ok()?, width.parse().ok()?);
    (height.checked_mul(width) == Some(pixels)).then_some([height, width])
}

/// Every component as a picture without a name, where a side has a shape.
pub(super) fn pictures(run: &RunRecords, side: Side) -> Option<Vec<String>> {
    let View::Pictures(shape) = view(run, side) else {
        return None;
    };
    let mut maps = Maps::of_rows(&of(run, side), shape);
    for (name, _) in &mut maps.maps {
        name.clear();
    }
    Some(maps.tiles())
}

/// The components of a side, one in each row.
fn of(run: &RunRecords, side: Side) -> Array2<f64> {
    match side {
        Side::W => run.w.t().to_owned(),
        Side::H => run.h.clone(),
    }
}

/// The figures of the components.
pub(super) fn found(run: &RunRecords) -> Vec<Figure> {
    [Side::W, Side::H]
        .into_iter()
        .filter_map(|side| of_side(run, side))
        .collect()
}

fn of_side(run: &RunRecords, side: Side) -> Option<Figure> {
    let (name, title, kind) = match side {
        Side::W => ("w_columns", "Columns of W", "row"),
        Side::H => ("h_rows", "Rows of H", "column"),
    };
    let signals = of(run, side);
    let (svg, caption, tiles) = match view(run, side) {
        View::Features => return None,
        View::Pictures(shape) => {
            let maps = Maps::of_rows(&signals, shape);
            (
                maps.svg(),
                format!("Each component as a picture of the {kind}s of X, from 0 to its maximum."),
                maps.tiles(),
            )
        }
        View::Curves(places) => (
            curves(
                &signals,
                &match places {
                    Some(_) => format!("{kind} of X, by its name"),
                    None => format!("{kind} of X"),
                },
                places.as_deref(),
                &names(run, side),
            ),
            format!("Each component over the {kind}s of X, scaled to its maximum."),
            Vec::new(),
        ),
    };
    let title = match tiles.is_empty() {
        true => title.into(),
        false => format!("{title}, as pictures"),
    };
    Some(Figure {
        name: name.into(),
        title,
        caption,
        svg,
        tiles,
    })
}

/// The names of all rows or columns of X.
fn names(run: &RunRecords, side: Side) -> Vec<String> {
    let labels: &Labels = &run.labels;
    match side {
        Side::W => (0..run.w.nrows()).map(|row| labels.row(row)).collect(),
        Side::H => (0..run.h.ncols())
            .map(|column| labels.column(column))
            .collect(),
    }
}

/// One strip per signal, or a heat map if there are too many.
fn curves(
    signals: &Array2<f64>,
    x_label: &str,
    places: Option<&[f64]>,
    names: &[String],
) -> String {
    let (count, length) = signals.dim();
    if count > CURVES_AT_MOST || length > LONGEST_CURVE {
        return HeatMap {
            values: signals.clone(),
            row_names: (1..=count).map(|k| k.to_string()).collect(),
            column_names: Some(names.to_vec()),
            x_label: x_label.into(),
            y_label: "component".into(),
        }
        .svg();
    }
    let mut chart = strips(signals, x_label);
    for (k, series) in chart.series.iter_mut().enumerate() {
        let name = |name: &String| format!("{name}, component {}", k + 1);
        series.names = Some(names.iter().map(name).collect());
        for (point, place) in series.points.iter_mut().zip(places.unwrap_or_default()) {
            point.0 = *place;
        }
    }
    chart.svg()
}

/// Signals above each other, each scaled to its maximum.
pub(super) fn strips(signals: &Array2<f64>, x_label: &str) -> Chart {
    let count = signals.nrows();
    let mut chart = Chart::new(x_label, "component", Scale::Linear);
    chart.whole_y = Some(count);
    chart.size = (440, 60 + 56 * count as u32);
    for (k, signal) in signals.rows().into_iter().enumerate() {
        let largest = signal.iter().copied().fold(0.0, f64::max);
        let scale = if largest > 0.0 { 0.9 / largest } else { 0.0 };
        // Signals are stacked upwards, each on the line of its number.
        let floor = (k + 1) as f64;
        let points = signal.iter().enumerate();
        let points = points.map(|(i, value)| ((i + 1) as f64, floor + scale * value));
        let mut series = Series::line("", points.collect());
        series.values = Some(signal.to_vec());
        chart = chart.with(series);
    }
    chart
}

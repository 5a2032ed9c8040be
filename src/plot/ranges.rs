//! The ranges of a chart's axes, and their labels.

use std::ops::Range;

use super::axis::{decade_texts, decades, even, even_texts, with_decades};
use super::chart::{Chart, Scale};
use super::series::{Mark, Series};
use super::text::{clipped, width_of};

/// Marks with their labels.
pub(super) type Marks = Vec<(f64, String)>;

/// The axes of a chart.
pub(super) struct Ranges {
    pub(super) x: Range<f64>,
    pub(super) y: Range<f64>,
    /// True if y is logarithmic.
    pub(super) logarithmic: bool,
    pub(super) x_marks: Marks,
    pub(super) y_marks: Marks,
    /// Names below the x axis that need two lines. The marks then have no labels.
    pub(super) in_two_lines: Marks,
}

/// The margins on both sides of the picture, without the names along y.
pub(super) const MARGINS: f64 = 56.0;

impl Ranges {
    pub(super) fn of(chart: &Chart) -> Self {
        let logarithmic = chart.scale == Scale::Logarithmic && spans_a_decade(chart);
        let (x, y) = ranges(chart, logarithmic);
        let y = if logarithmic { with_decades(y) } else { y };
        let y_marks = y_marks(chart, &y, logarithmic);
        let room = f64::from(chart.size.0) - widest(&y_marks) - MARGINS;
        let mut in_two_lines = Marks::new();
        let x_marks = match &chart.ticks {
            Some(ticks) if are_words(ticks) && touch(ticks, &x, room) => {
                let most = (2.0 * room / (x.end - x.start).max(1.0) / width_of("n")) as usize;
                let names = ticks.iter().map(|name| clipped(name, most.max(4)));
                in_two_lines = names
                    .enumerate()
                    .map(|(place, name)| (place as f64, name))
                    .collect();
                Marks::new()
            }
            Some(ticks) => named_marks(ticks, &x, room),
            None => even_marks(chart, &x, room),
        };
        Self {
            x,
            y,
            logarithmic,
            x_marks,
            y_marks,
            in_two_lines,
        }
    }

    /// The width of the names along y, in pixels.
    pub(super) fn names_along_y(&self) -> u32 {
        widest(&self.y_marks).ceil() as u32
    }

    /// The points of a series that can be drawn, in axis coordinates, with their index.
    pub(super) fn drawable<'a>(
        &self,
        series: &'a Series,
    ) -> impl Iterator<Item = (usize, f64, f64)> + 'a {
        drawable(series, self.logarithmic)
    }
}

fn widest(marks: &Marks) -> f64 {
    marks
        .iter()
        .map(|(_, text)| width_of(text))
        .fold(0.0, f64::max)
}

fn drawable(series: &Series, logarithmic: bool) -> impl Iterator<Item = (usize, f64, f64)> + '_ {
    let placed = move |(index, &(x, y)): (usize, &(f64, f64))| {
        let y = if logarithmic { y.log10() } else { y };
        (x.is_finite() && y.is_finite()).then_some((index, x, y))
    };
    series.points.iter().enumerate().filter_map(placed)
}

fn spans_a_decade(chart: &Chart) -> bool {
    let points = chart.series.iter().flat_map(|series| &series.points);
    let values = points
        .map(|point| point.1)
        .filter(|y| *y > 0.0 && y.is_finite());
    let (least, most) = values.fold((f64::INFINITY, 0.0f64), |(least, most), y| {
        (least.min(y), most.max(y))
    });
    most >= 10.0 * least
}

fn ranges(chart: &Chart, logarithmic: bool) -> (Range<f64>, Range<f64>) {
    let (mut x, mut y) = (
        (f64::INFINITY, f64::NEG_INFINITY),
        (f64::INFINITY, f64::NEG_INFINITY),
    );
    for series in &chart.series {
        for (_, px, py) in drawable(series, logarithmic) {
            x = (x.0.min(px), x.1.max(px));
            y = (y.0.min(py), y.1.max(py));
        }
    }
    if let Some(last) = chart.whole_y {
        return (padded(x, 0.0), 0.9..last as f64 + 1.0);
    }
    let has = |mark: Mark| chart.series.iter().any(|series| series.mark == mark);
    // All named places, whether or not something is drawn there.
    if let (Some(ticks), false) = (&chart.ticks, has(Mark::Line)) {
        x = (x.0.min(0.0), x.1.max(ticks.len().max(1) as f64 - 1.0));
    }
    let around = |by: f64| match x.0.is_finite() && x.1.is_finite() {
        true => x.0 - by..x.1 + by,
        false => 0.0..1.0,
    };
    if has(Mark::Boxes) {
        return (around(0.6), padded(y, 0.05));
    }
    if has(Mark::Bars) {
        let top = if y.1 > 0.0 { 1.05 * y.1 } else { 1.0 };
        return (around(0.6 * chart.bar_width), 0.0..top);
    }
    if has(Mark::Points) && chart.ticks.is_some() {
        return (around(0.5), padded(y, 0.05));
    }
    let beside = match has(Mark::Points) || chart.ticks.is_some() {
        true => 0.02,
        false => 0.0,
    };
    (padded(x, beside), padded(y, 0.05))
}

fn y_marks(chart: &Chart, y: &Range<f64>, logarithmic: bool) -> Marks {
    // A mark for each 45 pixels at most.
    let most = (chart.size.1 as usize / 45).max(3);
    let marks = match (logarithmic, chart.whole_y) {
        (_, Some(last)) => (1..=last).map(|whole| whole as f64).collect(),
        (true, None) => decades(y, most),
        (false, None) => even(y, most, false),
    };
    let texts = match logarithmic {
        true => decade_texts(&marks),
        false => even_texts(&marks),
    };
    marks.into_iter().zip(texts).collect()
}

/// The largest set of round numbers that fits.
fn even_marks(chart: &Chart, x: &Range<f64>, room: f64) -> Marks {
    let mut points = chart.series.iter().flat_map(|series| &series.points);
    let bars = chart.series.iter().any(|series| series.mark == Mark::Bars);
    let whole = !bars && points.all(|point| point.0.fract() == 0.0);
    let marks = |most: usize| -> Marks {
        let marks = even(x, most, whole);
        let texts = even_texts(&marks);
        marks.into_iter().zip(texts).collect()
    };
    let fits = |marks: &Marks| {
        let words: f64 = marks.iter().map(|(_, text)| width_of(text) + 12.0).sum();
        words <= room
    };
    (2..=8)
        .rev()
        .map(marks)
        .find(fits)
        .unwrap_or_else(|| marks(1))
}

/// Returns true if these are names, of which none may be left out, and not numbers.
fn are_words(ticks: &[String]) -> bool {
    ticks
        .iter()
        .any(|name| name.parse::<f64>().is_err() && !name.is_empty() && name != "∞")
}

/// Returns true if neighbouring names would touch.
fn touch(ticks: &[String], x: &Range<f64>, room: f64) -> bool {
    room / (x.end - x.start).max(1.0) < needs(ticks)
}

/// The pixels that a name needs, with a gap.
fn needs(ticks: &[String]) -> f64 {
    let widest = ticks.iter().map(|name| width_of(name)).fold(1.0, f64::max);
    widest + 10.0
}

/// All names, or those at every second, fifth, tenth, … place if all would touch.
fn named_marks(ticks: &[String], x: &Range<f64>, room: f64) -> Marks {
    let needs = needs(ticks);
    let pixels = room / (x.end - x.start).max(1.0);
    let steps = [1usize, 2, 5, 10, 20, 50, 100, 200, 500, 1000].into_iter();
    let fits = |step: &usize| *step as f64 * pixels >= needs;
    let step = steps.clone().find(fits).unwrap_or(1000);
    let named = ticks
        .iter()
        .enumerate()
        .filter(|(_, name)| !name.is_empty());
    // (Numbers from 1 are named at whole steps: 5, 10, 15, ….)
    let kept = named.filter(|(place, _)| step == 1 || (place + 1) % step == 0);
    let kept = kept.map(|(place, name)| (place as f64, name.clone()));
    kept.collect()
}

/// A range with padding. It is never empty.
fn padded((low, high): (f64, f64), share: f64) -> Range<f64> {
    let width = high - low;
    if !(low.is_finite() && high.is_finite() && (2.0 * width).is_finite()) {
        return 0.0..1.0;
    }
    if width <= f64::EPSILON * high.abs().max(low.abs()) {
        let half = if high == 0.0 { 0.5 } else { high.abs() / 2.0 };
        return low - half..high + half;
    }
    low - share * width..high + share * width
}

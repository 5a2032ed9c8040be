//! Drawing of charts.

use std::fmt::Write;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::axis::Axis;
use super::boxes::{box_elements, medians};
use super::chart::Chart;
use super::frame::text;
use super::legend::Legend;
use super::ranges::{Marks, Ranges};
use super::series::{Mark, Series};
use super::text::{FONT_SIZE, clipped, escape, short};
use super::theme::{GRID, INK, hex, series};

/// Two axes, each with its own marks.
type Axes = Cartesian2d<Axis, Axis>;

/// Points per series that answer to a mouse, and those of a line.
const HOVER_POINTS: usize = 100;
const HOVER_PLACES: usize = 25;
/// More points than these are drawn as cells.
pub(crate) const MANY_POINTS: usize = 2000;
/// Largest number of letters of a name on hover.
const LETTERS: usize = 80;
/// With fewer points than this, points are large.
const FEW_POINTS: usize = 100;
/// Cells across and down.
const CELLS: (usize, usize) = (48, 32);
/// Parts of a long line, each drawn from its least to its largest value: about one per pixel.
const PARTS: usize = 330;
const LEFT_MARGIN: u32 = 8;
/// The height of a line of names.
const LINE: u32 = 18;
/// The font size for plotters, which divides sizes by this factor.
const DRAWN_SIZE: f64 = FONT_SIZE as f64 * 1.24;

/// Draws a chart. Returns further elements for the SVG: legend and numbers on hover.
pub(super) fn draw(
    chart: &Chart,
    area: &DrawingArea<SVGBackend, Shift>,
) -> Result<String, Box<dyn std::error::Error>> {
    let ranges = Ranges::of(chart);
    let along_y = ranges.names_along_y() + if chart.y_label.is_empty() { 12 } else { 34 };
    let left = LEFT_MARGIN + along_y;
    let room = f64::from(chart.size.0.saturating_sub(left));
    let legend = Legend::new(entries(chart, &ranges), room);
    let along_x = if chart.x_label.is_empty() { 24 } else { 42 };
    let along_x = along_x
        + if ranges.in_two_lines.is_empty() {
            0
        } else {
            LINE
        };
    let marks = |marks: &Marks| marks.iter().map(|(mark, _)| *mark).collect();
    let mut context = ChartBuilder::on(area)
        .margin(LEFT_MARGIN)
        .margin_top(LEFT_MARGIN + legend.height())
        .margin_right(20)
        .x_label_area_size(along_x)
        .y_label_area_size(along_y)
        .build_cartesian_2d(
            Axis::new(ranges.x.clone(), marks(&ranges.x_marks)),
            Axis::new(ranges.y.clone(), marks(&ranges.y_marks)),
        )?;
    let font = || ("sans-serif", DRAWN_SIZE).into_font().color(&INK);
    let x_text = |x: &f64| text_of(&ranges.x_marks, *x);
    let y_text = |y: &f64| text_of(&ranges.y_marks, *y);
    let mut mesh = context.configure_mesh();
    if chart.ticks.is_some() {
        // Bars have no vertical grid lines.
        mesh.disable_x_mesh();
    }
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .label_style(font())
        .axis_desc_style(font())
        .x_desc(&chart.x_label)
        .y_desc(&chart.y_label)
        .x_labels(100)
        .y_labels(100)
        .x_label_formatter(&x_text)
        .y_label_formatter(&y_text)
        .draw()?;
    let mut more = legend.svg(f64::from(left), f64::from(LEFT_MARGIN) - 4.0);
    for (index, (place, name)) in ranges.in_two_lines.iter().enumerate() {
        let (left, bottom) = context.backend_coord(&(*place, ranges.y.start));
        let lower = LINE as i32 * (index % 2) as i32;
        let below = f64::from(bottom + LINE as i32 + lower);
        text(&mut more, f64::from(left), below, "middle", name);
    }
    for (index, series) in chart.series.iter().enumerate() {
        draw_series(chart, &ranges, &mut context, index, series)?;
    }
    for (index, series) in chart.series.iter().enumerate() {
        cloud(&ranges, &context, index, series, &mut more)?;
    }
    more.push_str("<g fill=\"transparent\">\n");
    for series in &chart.series {
        hovers(chart, &ranges, &context, series, &mut more)?;
    }
    more.push_str("</g>\n");
    Ok(more)
}

/// The label of a mark.
fn text_of(marks: &Marks, place: f64) -> String {
    let here = marks.iter().find(|(mark, _)| *mark == place);
    here.map_or_else(String::new, |(_, text)| text.clone())
}

/// The series with a name and visible points. Bars of height 0 are not visible.
fn entries(chart: &Chart, ranges: &Ranges) -> Vec<(String, RGBColor)> {
    let all = chart.series.iter().enumerate();
    let shown = all.filter(|(_, series)| {
        let seen = |y: f64| series.mark != Mark::Bars || y != 0.0;
        !series.name.is_empty() && ranges.drawable(series).any(|(_, _, y)| seen(y))
    });
    let entry = |(index, one): (usize, &Series)| (one.name.clone(), series(index));
    shown.map(entry).collect()
}

fn draw_series<'a>(
    chart: &'a Chart,
    ranges: &Ranges,
    context: &mut ChartContext<'a, SVGBackend<'_>, Axes>,
    index: usize,
    data: &'a Series,
) -> Result<(), Box<dyn std::error::Error>> {
    let colour = series(index);
    let drawn: Vec<(usize, f64, f64)> = ranges.drawable(data).collect();
    let point = |(_, x, y): &(usize, f64, f64)| (*x, *y);
    let points: Vec<(f64, f64)> = drawn.iter().map(point).collect();
    match data.mark {
        Mark::Line if points.len() > 1 => {
            // A point that cannot be drawn interrupts the line.
            for piece in drawn.chunk_by(|before, after| before.0 + 1 == after.0) {
                let points: Vec<(f64, f64)> = piece.iter().map(point).collect();
                if let [single] = points[..] {
                    let dot = Circle::new(single, 2, colour.filled());
                    context.draw_series([dot])?;
                    continue;
                }
                let height = |point: &(f64, f64)| context.backend_coord(point).1;
                let points = without_flats(thinned(points), height);
                context.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
            }
        }
        Mark::Points if points.len() > MANY_POINTS => {
            context.draw_series(cells(&points, ranges).into_iter().map(|(corners, share)| {
                Rectangle::new(corners, colour.mix(0.15 + 0.85 * share).filled())
            }))?;
        }
        // These are a cloud.
        Mark::Points if points.len() > FEW_POINTS => {}
        // A line of one point would be invisible.
        Mark::Line | Mark::Points => {
            let dot = |point| Circle::new(point, 4, colour.mix(0.9).filled());
            context.draw_series(points.into_iter().map(dot))?;
        }
        Mark::Boxes => {
            context.draw_series(box_elements(points.into_iter(), colour))?;
        }
        Mark::Bars => {
            // (Bars of height 0 take no space beside the others.)
            let bars = |s: &&Series| s.mark == Mark::Bars && s.points.iter().any(|at| at.1 != 0.0);
            let count = chart.series.iter().filter(bars).count() as f64;
            let place = chart.series[..index].iter().filter(bars).count() as f64;
            let whole = 0.8 * chart.bar_width;
            let width = whole / count;
            context.draw_series(points.into_iter().map(move |(x, y)| {
                let left = x - whole / 2.0 + place * width;
                Rectangle::new([(left, 0.0), (left + width, y)], colour.filled())
            }))?;
        }
    }
    Ok(())
}

/// Points in a single path, which takes a tenth of the room that circles take: each is a line of
/// no length with round ends.
fn cloud(
    ranges: &Ranges,
    context: &ChartContext<'_, SVGBackend<'_>, Axes>,
    index: usize,
    data: &Series,
    svg: &mut String,
) -> std::fmt::Result {
    let points: Vec<_> = ranges.drawable(data).collect();
    let many = (FEW_POINTS + 1..=MANY_POINTS).contains(&points.len());
    if data.mark != Mark::Points || !many {
        return Ok(());
    }
    write!(
        svg,
        "<path class=\"cloud\" fill=\"none\" stroke=\"{}\" stroke-width=\"6\" \
         stroke-linecap=\"round\" stroke-opacity=\"0.8\" d=\"",
        hex(series(index))
    )?;
    for (_, x, y) in points {
        let (left, top) = context.backend_coord(&(x, y));
        write!(svg, "M{left} {top}h0")?;
    }
    svg.push_str("\"/>\n");
    Ok(())
}

/// A long line, reduced to the smallest and the largest value of each of its parts.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= 2 * PARTS {
        return points;
    }
    let part = points.len().div_ceil(PARTS);
    let ends = |part: &[(f64, f64)]| {
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (least, most) = (part.iter().min_by(by_value), part.iter().max_by(by_value));
        let mut ends: Vec<(f64, f64)> = least.into_iter().chain(most).copied().collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        ends
    };
    points.chunks(part).flat_map(ends).collect()
}

/// A line without the points that lie between two of the same height, as far as is seen.
fn without_flats(points: Vec<(f64, f64)>, height: impl Fn(&(f64, f64)) -> i32) -> Vec<(f64, f64)> {
    let heights: Vec<i32> = points.iter().map(height).collect();
    let last = points.len() - 1;
    let bends = |at: &usize| {
        let here = heights[*at];
        *at == 0 || *at == last || heights[at - 1] != here || heights[at + 1] != here
    };
    let bends = (0..points.len()).filter(bends);
    bends.map(|at| points[at]).collect()
}

/// A rectangle by its corners.
type Corners = [(f64, f64); 2];

/// Very many points as cells, with the logarithm of their number scaled to 0 … 1.
fn cells(points: &[(f64, f64)], ranges: &Ranges) -> Vec<(Corners, f64)> {
    let (across, down) = CELLS;
    let (wide, tall) = (
        (ranges.x.end - ranges.x.start) / across as f64,
        (ranges.y.end - ranges.y.start) / down as f64,
    );
    let mut counts = vec![0u32; across * down];
    for (x, y) in points {
        let column = (((x - ranges.x.start) / wide) as usize).min(across - 1);
        let row = (((y - ranges.y.start) / tall) as usize).min(down - 1);
        counts[row * across + column] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let filled = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let cell = |(place, count): (usize, &u32)| {
        let left = ranges.x.start + wide * (place % across) as f64;
        let low = ranges.y.start + tall * (place / across) as f64;
        let share = f64::from(*count).ln_1p() / f64::from(most).ln_1p();
        ([(left, low), (left + wide, low + tall)], share)
    };
    filled.map(cell).collect()
}

/// Invisible circles with titles, at points spread evenly over a series; for boxes at their
/// medians.
fn hovers(
    chart: &Chart,
    ranges: &Ranges,
    context: &ChartContext<'_, SVGBackend<'_>, Axes>,
    series: &Series,
    hovers: &mut String,
) -> std::fmt::Result {
    let mut points: Vec<_> = ranges.drawable(series).collect();
    if series.mark == Mark::Boxes {
        points = medians(points);
    }
    let most = match series.mark {
        Mark::Line => HOVER_PLACES,
        _ => HOVER_POINTS,
    };
    let every = points.len().div_ceil(most).max(1);
    let name = match series.name.as_str() {
        "" => String::new(),
        name => format!("{name}: "),
    };
    for &(index, x, y) in points.iter().step_by(every) {
        let (left, top) = context.backend_coord(&(x, y));
        let own = series.names.as_ref().and_then(|names| names.get(index));
        let tick = chart
            .ticks
            .as_ref()
            .map(|ticks| ticks.get(x.round() as usize));
        let place = match (own, tick) {
            (Some(own), _) => clipped(own, LETTERS),
            (None, Some(tick)) => tick.cloned().unwrap_or_default(),
            (None, None) => short(x),
        };
        let values = series.values.as_ref().and_then(|values| values.get(index));
        let value = values.copied().unwrap_or(series.points[index].1);
        writeln!(
            hovers,
            "<circle cx=\"{left}\" cy=\"{top}\" r=\"7\"><title>{}{} at {}</title></circle>",
            escape(&name),
            short(value),
            escape(&place)
        )?;
    }
    Ok(())
}

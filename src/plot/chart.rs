//! Lines, points and bars over two axes.

use std::fmt::Write;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::axis::{Axis, even, logarithmic};
use super::boxes::box_elements;
use super::series::{Mark, Series};
use super::text::{escape, short};
use super::theme::{GRID, INK, series};

/// How y is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// As it is.
    Linear,
    /// By its logarithm; what is not positive is left out.
    Logarithmic,
}

/// A picture with two axes.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Under the x axis.
    pub x_label: String,
    /// Beside the y axis.
    pub y_label: String,
    /// Scale of y.
    pub scale: Scale,
    /// What is drawn.
    pub series: Vec<Series>,
    /// (width, height) in pixels.
    pub size: (u32, u32),
    /// Names of the places 0, 1, 2, … on the x axis.
    pub ticks: Option<Vec<String>>,
    /// Name only the whole numbers from 1 to this one on the y axis.
    pub whole_y: Option<usize>,
}

/// Two axes, each with its own marks.
type Axes = Cartesian2d<Axis, Axis>;

/// Points per series that answer to a mouse.
const HOVER_POINTS: usize = 80;

impl Chart {
    /// An empty chart of the usual size.
    pub fn new(x_label: &str, y_label: &str, scale: Scale) -> Self {
        Self {
            x_label: x_label.into(),
            y_label: y_label.into(),
            scale,
            series: Vec::new(),
            size: (520, 320),
            ticks: None,
            whole_y: None,
        }
    }

    /// Adds a series.
    #[must_use]
    pub fn with(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Sets the size.
    #[must_use]
    pub fn sized(mut self, width: u32, height: u32) -> Self {
        self.size = (width, height);
        self
    }

    /// Names the places 0, 1, 2, … on the x axis.
    #[must_use]
    pub fn with_ticks(mut self, ticks: Vec<String>) -> Self {
        self.ticks = Some(ticks);
        self
    }

    /// Draws it.
    pub fn svg(&self) -> String {
        let mut svg = String::new();
        let hovers = {
            let area = SVGBackend::with_string(&mut svg, self.size).into_drawing_area();
            let hovers = self
                .draw(&area)
                .expect("drawing into a string does not fail");
            area.present().expect("drawing into a string does not fail");
            hovers
        };
        let end = svg.rfind("</svg>").expect("an SVG ends");
        svg.insert_str(end, &hovers);
        // A view box lets a page scale it; text keeps a page's font.
        svg.replace(
            "font-family=\"sans-serif\"",
            "font-family=\"system-ui, sans-serif\"",
        )
    }

    /// The numbers behind the picture: one line per point, with its series.
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let head = ["series", self.x_label.as_str(), self.y_label.as_str()];
        writer.write_record(head).expect("writing to memory");
        for series in &self.series {
            for (index, &(x, y)) in series.points.iter().enumerate() {
                let place = self.ticks.as_ref().and_then(|ticks| ticks.get(x as usize));
                let place = place.cloned().unwrap_or_else(|| x.to_string());
                let value = series.values.as_ref().map_or(y, |values| values[index]);
                let row = [series.name.as_str(), &place, &value.to_string()];
                writer.write_record(row).expect("writing to memory");
            }
        }
        let bytes = writer.into_inner().expect("writing to memory");
        String::from_utf8(bytes).expect("made of text")
    }

    fn position(&self, y: f64) -> Option<f64> {
        match self.scale {
            Scale::Linear => Some(y).filter(|y| y.is_finite()),
            Scale::Logarithmic => Some(y.log10()).filter(|y| y.is_finite()),
        }
    }

    /// What can be drawn of a series, in axis coordinates, with the number to show.
    fn drawable<'a>(&'a self, series: &'a Series) -> impl Iterator<Item = (f64, f64, f64)> + 'a {
        let placed = |(index, &(x, y)): (usize, &(f64, f64))| {
            let value = series.values.as_ref().map_or(y, |values| values[index]);
            Some((x, self.position(y)?, value))
        };
        series.points.iter().enumerate().filter_map(placed)
    }

    fn ranges(&self) -> (Range<f64>, Range<f64>) {
        let bars = self.series.iter().any(|series| series.mark == Mark::Bars);
        let (mut x, mut y) = (
            (f64::INFINITY, f64::NEG_INFINITY),
            (f64::INFINITY, f64::NEG_INFINITY),
        );
        for series in &self.series {
            for (px, py, _) in self.drawable(series) {
                x = (x.0.min(px), x.1.max(px));
                y = (y.0.min(py), y.1.max(py));
            }
        }
        y.1 = y.1.max(self.below_legend(x, y.0));
        if let Some(last) = self.whole_y {
            return (padded(x, 0.0), 0.9..last as f64 + 1.0);
        }
        let boxes = self.series.iter().any(|series| series.mark == Mark::Boxes);
        if boxes {
            return (x.0 - 0.6..x.1 + 0.6, padded(y, 0.05));
        }
        if bars {
            // From zero, and with room for the legend above.
            let top = if y.1 > 0.0 { 1.25 * y.1 } else { 1.0 };
            return (x.0 - 0.6..x.1 + 0.6, 0.0..top);
        }
        (padded(x, 0.0), padded(y, 0.05))
    }

    /// How far up y must reach for the legend not to lie on a line: it takes the
    /// right part of the upper edge.
    fn below_legend(&self, x: (f64, f64), least: f64) -> f64 {
        let named_lines = |s: &Series| s.mark == Mark::Line && !s.name.is_empty();
        if self.series.len() < 2 || !self.series.iter().all(named_lines) {
            return f64::NEG_INFINITY;
        }
        let (_, height) = self.size;
        let share = (22.0 * self.series.len() as f64 + 20.0) / (f64::from(height) - 56.0);
        let from = x.0 + 0.6 * (x.1 - x.0);
        let points = self.series.iter().flat_map(|series| self.drawable(series));
        let beside = points.filter(|(px, ..)| *px >= from).map(|(_, py, _)| py);
        let highest = beside.fold(f64::NEG_INFINITY, f64::max);
        (highest - share * least) / (1.0 - share)
    }

    /// Where x has marks.
    fn x_marks(&self, x: &Range<f64>) -> Vec<f64> {
        match &self.ticks {
            Some(ticks) => {
                let named = ticks
                    .iter()
                    .enumerate()
                    .filter(|(_, name)| !name.is_empty());
                named.map(|(place, _)| place as f64).collect()
            }
            None => even(x, 8),
        }
    }

    /// Where y has marks.
    fn y_marks(&self, y: &Range<f64>) -> Vec<f64> {
        match (self.scale, self.whole_y) {
            (_, Some(last)) => (1..=last).map(|whole| whole as f64).collect(),
            (Scale::Linear, None) => even(y, 6),
            (Scale::Logarithmic, None) => logarithmic(y, 6),
        }
    }

    fn draw(
        &self,
        area: &DrawingArea<SVGBackend, Shift>,
    ) -> Result<String, Box<dyn std::error::Error>> {
        let (x, y) = self.ranges();
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .margin_right(20)
            .x_label_area_size(40)
            .y_label_area_size(64)
            .build_cartesian_2d(
                Axis::new(x.clone(), self.x_marks(&x)),
                Axis::new(y.clone(), self.y_marks(&y)),
            )?;
        let font = || ("sans-serif", 14).into_font().color(&INK);
        let x_text = |x: &f64| match &self.ticks {
            Some(ticks) => ticks.get(x.round() as usize).cloned().unwrap_or_default(),
            None => short(*x),
        };
        let y_text = |y: &f64| match self.scale {
            Scale::Linear => short(*y),
            Scale::Logarithmic => short(10f64.powf(*y)),
        };
        let mut mesh = chart.configure_mesh();
        if self.ticks.is_some() {
            // Bars stand on names; lines between them would only disturb.
            mesh.disable_x_mesh();
        }
        mesh.light_line_style(TRANSPARENT)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style(font())
            .axis_desc_style(font())
            .x_desc(&self.x_label)
            .y_desc(&self.y_label)
            .x_labels(100)
            .y_labels(100)
            .x_label_formatter(&x_text)
            .y_label_formatter(&y_text)
            .draw()?;
        let mut hovers = String::new();
        for (index, series) in self.series.iter().enumerate() {
            self.draw_series(&mut chart, index, series)?;
            self.hovers(&chart, series, &mut hovers)?;
        }
        if self.series.iter().any(|series| !series.name.is_empty()) {
            chart
                .configure_series_labels()
                .position(self.legend_place())
                .label_font(font())
                .border_style(TRANSPARENT)
                .draw()?;
        }
        Ok(hovers)
    }

    /// Points gather along the diagonal, and lines fall from the left.
    fn legend_place(&self) -> SeriesLabelPosition {
        if self.series.iter().any(|series| series.mark == Mark::Points) {
            SeriesLabelPosition::UpperLeft
        } else {
            SeriesLabelPosition::UpperRight
        }
    }

    fn draw_series<'a>(
        &'a self,
        chart: &mut ChartContext<'a, SVGBackend<'_>, Axes>,
        index: usize,
        data: &'a Series,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let colour = series(index);
        let points = self.drawable(data).map(|(x, y, _)| (x, y));
        let drawn = match data.mark {
            Mark::Line if data.points.len() > 1 => {
                chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?
            }
            // A line of one point would not be seen.
            Mark::Line | Mark::Points => chart
                .draw_series(points.map(|point| Circle::new(point, 2, colour.mix(0.6).filled())))?,
            Mark::Boxes => chart.draw_series(box_elements(points, colour))?,
            Mark::Bars => {
                let bars = |s: &&Series| s.mark == Mark::Bars;
                let count = self.series.iter().filter(bars).count() as f64;
                let place = self.series[..index].iter().filter(bars).count() as f64;
                let width = 0.8 / count;
                chart.draw_series(points.map(move |(x, y)| {
                    let left = x - 0.4 + place * width;
                    Rectangle::new([(left, 0.0), (left + width, y)], colour.filled())
                }))?
            }
        };
        if !data.name.is_empty() {
            drawn.label(&data.name).legend(move |(x, y)| {
                Rectangle::new([(x, y - 4), (x + 14, y + 4)], colour.filled())
            });
        }
        Ok(())
    }

    /// Invisible circles with titles, at points spread evenly over a series.
    fn hovers(
        &self,
        chart: &ChartContext<'_, SVGBackend<'_>, Axes>,
        series: &Series,
        hovers: &mut String,
    ) -> Result<(), std::fmt::Error> {
        let points: Vec<_> = self.drawable(series).collect();
        let every = points.len().div_ceil(HOVER_POINTS).max(1);
        for &(x, y, value) in points.iter().step_by(every) {
            let (left, top) = chart.backend_coord(&(x, y));
            let name = if series.name.is_empty() {
                String::new()
            } else {
                format!("{}: ", series.name)
            };
            let place = match &self.ticks {
                Some(ticks) => ticks.get(x.round() as usize).cloned().unwrap_or_default(),
                None => short(x),
            };
            writeln!(
                hovers,
                "<circle cx=\"{left}\" cy=\"{top}\" r=\"7\" fill=\"transparent\"><title>{}{} at {}</title></circle>",
                escape(&name),
                short(value),
                escape(&place)
            )?;
        }
        Ok(())
    }
}

/// A range with some air, and never empty.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_shows_its_series_and_leaves_out_what_a_logarithm_cannot_show() {
        let points = vec![(0.0, f64::NAN), (1.0, 10.0), (2.0, 0.0), (3.0, 0.1)];
        let chart = Chart::new("iteration", "a < b", Scale::Logarithmic)
            .with(Series::line("D & E", points));
        let svg = chart.svg();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert_eq!(svg.matches("<title>").count(), 2);
        assert!(svg.contains("<title>D &amp; E: 10 at 1</title>"), "{svg}");
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn nothing_to_show_is_not_a_panic() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let chart = Chart::new("x", "y", scale);
            assert!(chart.svg().contains("</svg>"));
            let one = chart.with(Series::points("p", vec![(1.0, 1.0)]));
            assert!(one.svg().contains("</svg>"));
            let flat = one.with(Series::bars("b", vec![(0.0, 0.0), (1.0, 0.0)]));
            assert!(flat.svg().contains("</svg>"));
        }
    }
}

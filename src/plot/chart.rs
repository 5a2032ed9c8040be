//! Lines, points and bars over two axes.

use plotters::prelude::*;

use super::draw::draw;
use super::frame::with_font;
use super::series::Series;
use super::text::FONT_SIZE;

/// The scale of y.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic. Values that are not positive are left out. (It is linear if all values lie
    /// within a power of ten.)
    Logarithmic,
}

/// A picture with two axes.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    /// Label of the x axis.
    pub x_label: String,
    /// Label of the y axis.
    pub y_label: String,
    /// Scale of y.
    pub scale: Scale,
    /// The series that are drawn.
    pub series: Vec<Series>,
    /// (width, height) in pixels.
    pub size: (u32, u32),
    /// Names of the places 0, 1, 2, … on the x axis.
    pub ticks: Option<Vec<String>>,
    /// If set, the y axis has marks only at the whole numbers from 1 to this one.
    pub whole_y: Option<usize>,
    /// The width of a bar, in units of x.
    pub bar_width: f64,
}

impl Chart {
    /// An empty chart of the usual size.
    pub fn new(x_label: &str, y_label: &str, scale: Scale) -> Self {
        Self {
            x_label: x_label.into(),
            y_label: y_label.into(),
            scale,
            series: Vec::new(),
            size: (440, 300),
            ticks: None,
            whole_y: None,
            bar_width: 1.0,
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
            let hovers = draw(self, &area).expect("drawing into a string does not fail");
            area.present().expect("drawing into a string does not fail");
            hovers
        };
        let end = svg.rfind("</svg>").expect("an SVG ends");
        svg.insert_str(end, &hovers);
        // A view box lets a page scale it. What all elements have in common stands once.
        let font = format!(" font-family=\"sans-serif\" font-size=\"{FONT_SIZE}\"");
        with_font(
            &svg.replace(&font, "")
                .replace(" opacity=\"1\"", "")
                .replace(" stroke-width=\"1\"", ""),
        )
    }

    /// The numbers of the figure: one line per point, with its series.
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
    fn very_many_points_make_a_small_picture() {
        let many = |k: u32| (f64::from(k % 977), f64::from(k % 1013));
        let points: Vec<(f64, f64)> = (0..200_000).map(many).collect();
        let line = points
            .iter()
            .enumerate()
            .map(|(k, point)| (k as f64, point.1));
        let chart = Chart::new("x", "y", Scale::Linear);
        let curve = chart.clone().with(Series::line("y", line.collect())).svg();
        assert!(curve.len() < 15_000, "{}", curve.len());
        let names = (0..points.len()).map(|k| format!("<{k}>")).collect();
        let flat = (0..500).map(|k| (f64::from(k), f64::from(k / 100)));
        let flat = chart.clone().with(Series::line("", flat.collect())).svg();
        let line = flat
            .lines()
            .find(|line| line.contains("stroke-width=\"2\""));
        assert_eq!(line.unwrap().matches(',').count(), 10, "{flat}");
        let some = Series::points("p", points[..1500].to_vec());
        let some = chart.clone().with(some).svg();
        assert!(some.matches("h0").count() == 1500 && some.len() < 40_000);
        assert!(!some.contains("font-family=\"sans-serif\""));
        let cloud = chart.with(Series::points("p", points).named(names)).svg();
        assert!(cloud.len() < 300_000, "{}", cloud.len());
        assert!(cloud.contains("&lt;0&gt;") && cloud.contains("<rect"));
    }

    #[test]
    fn names_below_the_axis_do_not_touch() {
        let bars = (0..40).map(|k| (f64::from(k), 1.0)).collect();
        let ticks = (1..=40).map(|k| k.to_string()).collect();
        let chart = Chart::new("component", "y", Scale::Linear)
            .with(Series::bars("", bars))
            .with_ticks(ticks);
        let svg = chart.svg();
        let lines: Vec<&str> = svg.lines().map(str::trim).collect();
        assert!(lines.contains(&"40") && !lines.contains(&"39"), "{svg}");
        // No name is left out, even in a narrow figure.
        for width in 300..460 {
            let words = ["MU", "P-MU", "MU-T", "frozen λ", "AltBi"];
            let points = (0..5).map(|k| (f64::from(k), 1.0)).collect();
            let chart = Chart::new("method", "y", Scale::Linear).sized(width, 300);
            let chart = chart
                .with(Series::boxes("", points))
                .with_ticks(words.map(String::from).to_vec());
            let svg = chart.svg();
            let written = |word: &&str| {
                let alone = svg.lines().any(|line| line.trim() == *word);
                alone || svg.contains(&format!(">{word}</text>"))
            };
            assert!(words.iter().all(written), "{width}");
        }
        // Nor a place where nothing is drawn.
        let points = vec![(0.0, 0.0), (1.0, 1.0), (2.0, 100.0)];
        let chart = Chart::new("component", "y", Scale::Logarithmic)
            .with(Series::points("", points))
            .with_ticks(["one", "two", "three"].map(String::from).to_vec());
        assert!(chart.svg().lines().any(|line| line.trim() == "one"));
        // All names are there, in two lines.
        let words = (0..9).map(|k| format!("a long name {k}")).collect();
        let bars = (0..9).map(|k| (f64::from(k), 1.0)).collect();
        let chart = Chart::new("", "y", Scale::Linear).sized(900, 300);
        let svg = chart.with(Series::bars("", bars)).with_ticks(words).svg();
        assert_eq!(svg.matches(">a long name ").count(), 9);
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

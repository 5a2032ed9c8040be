//! The series of a chart.

/// The mark of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A line through the points.
    Line,
    /// Points. Very many of them are drawn as cells, which are darker the more points they hold.
    Points,
    /// Bars around x, as wide as the chart says (0.8 of it, shared between the bar series).
    Bars,
    /// A box for all points with the same x: quartiles, median, whiskers to the last point within
    /// one and a half times the box, and points beyond. Fewer than five points are drawn as points.
    Boxes,
}

/// Named points.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// Its name in the legend; empty for none.
    pub name: String,
    /// (x, y).
    pub points: Vec<(f64, f64)>,
    /// Line, points or bars.
    pub mark: Mark,
    /// Numbers to show on hover instead of y, one per point.
    pub values: Option<Vec<f64>>,
    /// Names to show on hover instead of x, one per point.
    pub names: Option<Vec<String>>,
}

impl Series {
    /// A line.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            mark: Mark::Line,
            values: None,
            names: None,
        }
    }

    /// Points.
    pub fn points(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            mark: Mark::Points,
            values: None,
            names: None,
        }
    }

    /// Bars.
    pub fn bars(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            mark: Mark::Bars,
            values: None,
            names: None,
        }
    }

    /// Boxes.
    pub fn boxes(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            mark: Mark::Boxes,
            values: None,
            names: None,
        }
    }

    /// Sets the names of its points, which are shown on hover.
    #[must_use]
    pub fn named(mut self, names: Vec<String>) -> Self {
        self.names = Some(names);
        self
    }
}

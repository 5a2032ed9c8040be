//! What a chart is made of.

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A line through the points.
    Line,
    /// The points alone.
    Points,
    /// Bars of width 1 around x (0.8 of it, shared between the bar series).
    Bars,
    /// A box for all points with the same x: quartiles, median, whiskers to the last
    /// point within one and a half times the box, and what lies beyond.
    Boxes,
}

/// Named points.
#[derive(Debug, Clone)]
pub struct Series {
    /// What the legend calls it; empty for none.
    pub name: String,
    /// (x, y).
    pub points: Vec<(f64, f64)>,
    /// Line, points or bars.
    pub mark: Mark,
    /// Numbers to show on hover in place of y, one per point.
    pub values: Option<Vec<f64>>,
}

impl Series {
    /// A line.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            mark: Mark::Line,
            values: None,
        }
    }

    /// Points.
    pub fn points(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            mark: Mark::Points,
            values: None,
        }
    }

    /// Bars.
    pub fn bars(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            mark: Mark::Bars,
            values: None,
        }
    }

    /// Boxes.
    pub fn boxes(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            mark: Mark::Boxes,
            values: None,
        }
    }
}

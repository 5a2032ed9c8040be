//! Figures from plain numbers: lines, points, bars, boxes, heat maps and maps as SVG.
//!
//! A [`Chart`] describes a figure, and [`Chart::svg`] draws it. The colours are those of [`theme`],
//! which can replace them by CSS variables, so that a page can be light or dark. Some points have a
//! `<title>`, which browsers show on hover.

mod axis;
mod boxes;
mod chart;
mod draw;
mod heat_map;
mod layout;
mod legend;
mod maps;
mod picture;
mod rows;
mod series;
mod text;
pub mod theme;

pub(crate) use axis::round_step;
pub use chart::{Chart, Scale};
pub use heat_map::HeatMap;
pub use maps::Maps;
pub use rows::BarRows;
pub use series::{Mark, Series};
pub(crate) use text::{clipped, escape, short};

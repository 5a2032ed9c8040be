//! Pictures from plain numbers: lines, points, bars, boxes, heat maps and maps as SVG.
//!
//! A [`Chart`] says what is to be seen; [`Chart::svg`] draws it. The colours are
//! those of [`theme`], which can exchange them for CSS variables, so that a page
//! decides about light and dark. Points of interest carry a `<title>`: browsers
//! show its numbers on hover.

mod axis;
mod boxes;
mod chart;
mod draw;
mod frame;
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

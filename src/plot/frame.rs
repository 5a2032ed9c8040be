//! The frame and the text that all figures share.

use std::fmt::Write;

use super::escape;
use super::text::FONT_SIZE;

/// The name of SVG.
const NAME: &str = "xmlns=\"http://www.w3.org/2000/svg\"";

/// A picture of this size.
pub(super) fn framed(width: f64, height: f64, inside: &str) -> String {
    let (width, height) = (width.ceil(), height.ceil());
    with_font(&format!(
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" {NAME}>\n{inside}</svg>\n"
    ))
}

/// The font of all words, said once: that of the page.
pub(super) fn with_font(svg: &str) -> String {
    let font = format!("{NAME} font-family=\"system-ui, sans-serif\" font-size=\"{FONT_SIZE}\"");
    svg.replacen(NAME, &font, 1)
}

/// Words at a place.
pub(super) fn text(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#1F2933\">{}</text>",
        escape(text)
    );
}

//! Colours, and CSS variables for them.

use plotters::style::RGBColor;

/// Text and axes.
pub(super) const INK: RGBColor = RGBColor(0x1f, 0x29, 0x33);
/// Grid lines.
pub(super) const GRID: RGBColor = RGBColor(0xdd, 0xe2, 0xe8);
/// Colours of series, in this order. Colour-blind readers can distinguish them (after Okabe and
/// Ito).
pub(super) const SERIES: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x7a, 0x5c, 0xc9),
    RGBColor(0x8c, 0x8c, 0x8c),
];

/// The colour of a series.
pub(super) fn series(index: usize) -> RGBColor {
    SERIES[index % SERIES.len()]
}

pub(super) fn hex(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

/// The same picture with ink and grid as CSS variables `--ink` and `--grid`, to be embedded in a
/// page that defines them. So are three colours that dark ground needs lighter: `--blue`, `--violet`,
/// and `--sky`, which must differ from blue; the others read on both.
pub(crate) fn themed(svg: &str) -> String {
    svg.replace(&hex(INK), "var(--ink)")
        .replace(&hex(GRID), "var(--grid)")
        .replace(&hex(SERIES[0]), "var(--blue)")
        .replace(&hex(SERIES[5]), "var(--sky)")
        .replace(&hex(SERIES[6]), "var(--violet)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_say_in_what_dark_ground_would_swallow() {
        let colours = [INK, GRID, SERIES[0], SERIES[5], SERIES[6]];
        let svg: String = colours.map(hex).concat();
        assert!(!themed(&svg).contains('#'), "{}", themed(&svg));
        assert_eq!(themed(&hex(SERIES[1])), hex(SERIES[1]));
    }
}

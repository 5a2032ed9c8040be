//! Text in figures.

/// A number in few characters.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    // Rounding may move a tick away from zero.
    if size < 1e-15 {
        "0".into()
    } else if (1e-4..1e5).contains(&size) {
        let digits = (3.0 - size.log10().floor()).clamp(0.0, 7.0) as usize;
        let text = format!("{value:.digits$}");
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').into()
        } else {
            text
        }
    } else {
        format!("{value:.2e}").replace(".00e", "e")
    }
}

/// The size of text in pictures, in pixels.
pub(super) const FONT_SIZE: u32 = 14;

/// Approximate width of a text, in pixels.
pub(super) fn width_of(text: &str) -> f64 {
    0.55 * f64::from(FONT_SIZE) * text.chars().count() as f64
}

/// A name, cut to at most `most` characters.
pub(crate) fn clipped(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.into();
    }
    let begin: String = name.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", begin.trim_end())
}

/// Text that is safe inside XML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (1234.0, "1234"),
            (0.25, "0.25"),
            (-1.5, "-1.5"),
            (1e-9, "1e-9"),
            (123456.0, "1.23e5"),
            (2.23607, "2.236"),
        ] {
            assert_eq!(short(value), text);
        }
        assert_eq!(clipped("component", 5), "comp…");
        assert_eq!(clipped("short", 5), "short");
    }
}

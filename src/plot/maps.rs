//! Square pictures, side by side.

use std::fmt::Write;

use ndarray::Array2;

use super::heat_map::text;

/// Nonnegative maps drawn from the ground's colour (0) to full ink (the largest
/// entry of each).
#[derive(Debug, Clone)]
pub struct Maps {
    /// The maps, each with its name.
    pub maps: Vec<(String, Array2<f64>)>,
}

/// Shades between ground and ink.
const SHADES: usize = 32;
const SIDE: usize = 150;
const GAP: usize = 14;

impl Maps {
    /// Draws them in one row.
    pub fn svg(&self) -> String {
        let (width, height) = (self.maps.len() * (SIDE + GAP), SIDE + 28);
        let mut svg = format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\">\n"
        );
        for (index, (name, map)) in self.maps.iter().enumerate() {
            let left = index * (SIDE + GAP);
            let (rows, columns) = map.dim();
            let (tall, wide) = (SIDE as f64 / rows as f64, SIDE as f64 / columns as f64);
            text(&mut svg, left + SIDE / 2, 16, "middle", name);
            let _ = writeln!(
                svg,
                "<g transform=\"translate({left} 24) scale({wide:.4} {tall:.4})\" fill=\"#0072B2\" shape-rendering=\"crispEdges\">"
            );
            for (shade, path) in shades(map).iter().enumerate().skip(1) {
                if !path.is_empty() {
                    let share = shade as f64 / (SHADES - 1) as f64;
                    let _ = writeln!(svg, "<path fill-opacity=\"{share:.3}\" d=\"{path}\"/>");
                }
            }
            svg.push_str("</g>\n");
            let _ = writeln!(
                svg,
                "<rect x=\"{left}\" y=\"24\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"none\" stroke=\"#DDE2E8\"/>"
            );
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// The numbers behind the picture.
    pub fn csv(&self) -> String {
        let mut text = String::from("map,row,column,value\n");
        for (name, map) in &self.maps {
            for ((row, column), value) in map.indexed_iter() {
                let _ = writeln!(text, "{name},{row},{column},{value}");
            }
        }
        text
    }
}

/// For each shade, a path over all its pixels; neighbours in a row are one stroke.
fn shades(map: &Array2<f64>) -> Vec<String> {
    let largest = map.iter().copied().fold(0.0, f64::max);
    let shade = |value: f64| {
        let share = if largest > 0.0 { value / largest } else { 0.0 };
        (share * (SHADES - 1) as f64).round() as usize
    };
    let mut paths = vec![String::new(); SHADES];
    for (y, row) in map.rows().into_iter().enumerate() {
        let row: Vec<usize> = row.iter().map(|value| shade(*value)).collect();
        let mut x = 0;
        for run in row.chunk_by(|a, b| a == b) {
            let length = run.len();
            let _ = write!(paths[run[0]], "M{x} {y}h{length}v1h-{length}z");
            x += length;
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn every_pixel_is_covered_once() {
        let map = array![[0.0, 1.0, 1.0], [0.5, 0.5, 0.0]];
        let paths = shades(&map);
        assert_eq!(paths[SHADES - 1], "M1 0h2v1h-2z");
        assert_eq!(paths[0], "M0 0h1v1h-1zM2 1h1v1h-1z");
        assert_eq!(paths.iter().filter(|path| !path.is_empty()).count(), 3);
        let maps = Maps {
            maps: vec![("1".into(), map), ("none".into(), Array2::zeros((2, 2)))],
        };
        assert!(maps.svg().contains("</svg>") && !maps.svg().contains("NaN"));
        assert_eq!(maps.csv().lines().count(), 1 + 6 + 4);
    }
}

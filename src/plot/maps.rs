//! Maps, drawn side by side.

use std::fmt::Write;

use ndarray::{Array2, Axis, Slice};

use super::escape;
use super::frame::{framed, text};
use super::picture::data_address;

/// Nonnegative maps drawn from the ground's colour (0) to full ink (the largest
/// entry of each).
#[derive(Debug, Clone)]
pub(crate) struct Maps {
    /// The maps, each with its name; empty for none.
    pub maps: Vec<(String, Array2<f64>)>,
}

/// The longer side of a picture.
const SIDE: f64 = 150.0;
const GAP: f64 = 14.0;
/// The height of a name above its picture.
const NAME: f64 = 24.0;
/// Pictures beside each other.
const PER_LINE: usize = 6;
/// Largest number of pixels along a side. Larger maps are drawn coarser.
const MOST_PIXELS: usize = 128;
/// Largest number of pixels of all maps together.
const ALL_PIXELS: usize = 600_000;

impl Maps {
    /// The rows of a matrix as pictures of the same size, row by row, named by their numbers.
    ///
    /// # Panics
    /// If a row has another number of entries.
    pub fn of_rows(matrix: &Array2<f64>, [height, width]: [usize; 2]) -> Self {
        let rows = matrix.rows().into_iter().enumerate();
        let maps = rows.map(|(k, row)| {
            let map = row.to_owned().into_shape_with_order((height, width));
            ((k + 1).to_string(), map.expect("a pixel for each entry"))
        });
        Self {
            maps: maps.collect(),
        }
    }

    /// Draws them in lines of a few.
    pub fn svg(&self) -> String {
        let tallest = self.maps.iter().map(|map| size(map).1).fold(0.0, f64::max);
        let lines = self.maps.len().div_ceil(PER_LINE);
        let per_line = self.maps.len().min(PER_LINE);
        let place = |index: usize| {
            let (across, down) = (index % PER_LINE, index / PER_LINE);
            let top = down as f64 * (tallest + NAME + GAP);
            (across as f64 * (SIDE + GAP), top)
        };
        let pictures = (0..self.maps.len()).map(|index| self.picture(index, place(index)));
        framed(
            per_line as f64 * (SIDE + GAP),
            lines as f64 * (tallest + NAME + GAP),
            &pictures.collect::<String>(),
        )
    }

    /// Draws each map separately, so that a page can arrange them.
    pub fn tiles(&self) -> Vec<String> {
        let tile = |(index, map): (usize, &(String, Array2<f64>))| {
            let name = if map.0.is_empty() { 0.0 } else { NAME + GAP };
            let height = size(map).1 + name + 2.0;
            framed(SIDE + 2.0, height, &self.picture(index, (1.0, 0.0)))
        };
        self.maps.iter().enumerate().map(tile).collect()
    }

    /// One map below its name, from this corner on.
    fn picture(&self, index: usize, (left, top): (f64, f64)) -> String {
        let each = ALL_PIXELS / self.maps.len().max(1);
        let side = MOST_PIXELS.min((each as f64).sqrt() as usize).max(8);
        let named = &self.maps[index];
        let (name, map) = (&named.0, coarser(&named.1, side));
        let (across, down) = size(named);
        let left = left + (SIDE - across) / 2.0;
        let mut svg = String::new();
        let top = match name.is_empty() {
            true => top + 1.0,
            false => {
                text(&mut svg, left + across / 2.0, top + 16.0, "middle", name);
                top + NAME
            }
        };
        let title = match name.is_empty() {
            true => format!("component {}", index + 1),
            false => name.clone(),
        };
        let _ = writeln!(
            svg,
            "<image x=\"{left:.1}\" y=\"{top:.1}\" width=\"{across:.1}\" height=\"{down:.1}\" preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" href=\"{}\"><title>{}</title></image>",
            data_address(&map),
            escape(&title)
        );
        let _ = writeln!(
            svg,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{across:.1}\" height=\"{down:.1}\" fill=\"none\" stroke=\"#DDE2E8\"/>"
        );
        svg
    }

    /// The numbers of the maps.
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

/// The width and height at which a map is drawn.
fn size((_, map): &(String, Array2<f64>)) -> (f64, f64) {
    let (rows, columns) = map.dim();
    let scale = SIDE / rows.max(columns) as f64;
    (columns as f64 * scale, rows as f64 * scale)
}

/// The same map with at most `side` pixels along a side, each the mean of the pixels that it
/// replaces.
fn coarser(map: &Array2<f64>, side: usize) -> Array2<f64> {
    let (rows, columns) = map.dim();
    let (height, width) = (rows.min(side), columns.min(side));
    if (height, width) == (rows, columns) {
        return map.clone();
    }
    Array2::from_shape_fn((height, width), |(y, x)| {
        let down = Slice::from(y * rows / height..(y + 1) * rows / height);
        let across = Slice::from(x * columns / width..(x + 1) * columns / width);
        let strip = map.slice_axis(Axis(0), down);
        strip.slice_axis(Axis(1), across).mean().unwrap_or(0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn pictures_are_small_whatever_they_show() {
        let map = array![[0.0, 1.0, 1.0], [0.5, 0.5, 0.0]];
        let maps = Maps {
            maps: vec![("1".into(), map), ("none".into(), Array2::zeros((2, 2)))],
        };
        let svg = maps.svg();
        assert!(svg.contains("</svg>") && !svg.contains("NaN"));
        assert_eq!(svg.matches("<image").count(), 2);
        let tiles = maps.tiles();
        assert_eq!(tiles.len(), 2);
        assert!(tiles[0].matches("<image").count() == 1 && tiles[1].contains(">none<"));
        assert_eq!(maps.csv().lines().count(), 1 + 6 + 4);
        let large = coarser(&Array2::from_elem((300, 5), 2.0), MOST_PIXELS);
        assert_eq!(large.dim(), (MOST_PIXELS, 5));
        assert!(large.iter().all(|value| *value == 2.0));
        let rows = Maps::of_rows(&array![[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]], [3, 2]);
        assert_eq!(rows.maps[0].1[[1, 0]], 3.0);
        let noise = |(k, j)| f64::from(((k * 7919 + j * 104_729) % 1009) as u32);
        let many = Maps::of_rows(&Array2::from_shape_fn((60, 128 * 128), noise), [128, 128]);
        assert!(many.svg().len() < 700_000, "{}", many.svg().len());
    }
}

//! Box plots.

use plotters::element::{Circle, DynElement, IntoDynElement, PathElement, Rectangle};
use plotters::prelude::SVGBackend;
use plotters::style::{Color, RGBColor, ShapeStyle};

use crate::metrics::quantile;

/// Smallest number of values for a box.
const FEWEST: usize = 5;
/// Half the width of a box; boxes are 1 apart.
const HALF_WIDTH: f64 = 0.3;

type Element<'a> = DynElement<'static, SVGBackend<'a>, (f64, f64)>;

/// The elements for these points: a box for each x.
pub(super) fn box_elements<'a>(
    points: impl Iterator<Item = (f64, f64)>,
    colour: RGBColor,
) -> Vec<Element<'a>> {
    let mut points: Vec<(f64, f64)> = points.collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let places = points.chunk_by(|a, b| a.0 == b.0);
    places.flat_map(|place| one_box(place, colour)).collect()
}

/// Of the points of each box the one in its middle; all points where there is no box.
pub(super) fn medians(mut points: Vec<(usize, f64, f64)>) -> Vec<(usize, f64, f64)> {
    points.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.2.total_cmp(&b.2)));
    let places = points.chunk_by(|a, b| a.1 == b.1);
    let of_place = |place: &[(usize, f64, f64)]| match place.len() < FEWEST {
        true => place.to_vec(),
        false => vec![place[place.len() / 2]],
    };
    places.flat_map(of_place).collect()
}

fn one_box<'a>(points: &[(f64, f64)], colour: RGBColor) -> Vec<Element<'a>> {
    let x = points[0].0;
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    let dot = |y: &f64| Circle::new((x, *y), 3, colour.filled()).into_dyn();
    if values.len() < FEWEST {
        return values.iter().map(dot).collect();
    }
    let [low, middle, high] = [0.25, 0.5, 0.75].map(|share| quantile(&values, share));
    let reach = 1.5 * (high - low);
    let inside = |value: &&f64| **value >= low - reach && **value <= high + reach;
    let least = *values.iter().find(inside).unwrap_or(&low);
    let most = *values.iter().rev().find(inside).unwrap_or(&high);
    let (left, right) = (x - HALF_WIDTH, x + HALF_WIDTH);
    let line = |points: Vec<(f64, f64)>, width: u32| {
        PathElement::new(points, colour.stroke_width(width)).into_dyn()
    };
    let fill: ShapeStyle = colour.mix(0.25).filled();
    let cap = 0.5 * HALF_WIDTH;
    let mut elements = vec![
        Rectangle::new([(left, low), (right, high)], fill).into_dyn(),
        Rectangle::new([(left, low), (right, high)], colour.stroke_width(1)).into_dyn(),
        line(vec![(left, middle), (right, middle)], 3),
        line(vec![(x, high), (x, most)], 1),
        line(vec![(x, low), (x, least)], 1),
        line(vec![(x - cap, most), (x + cap, most)], 1),
        line(vec![(x - cap, least), (x + cap, least)], 1),
    ];
    let beyond = values.iter().filter(|value| !inside(value));
    elements.extend(beyond.map(dot));
    elements
}

#[cfg(test)]
mod tests {
    use crate::plot::{Chart, Scale, Series};

    #[test]
    fn a_box_for_each_place_and_a_dot_for_what_lies_beyond() {
        let mut points: Vec<(f64, f64)> = (0..20).map(|k| (0.0, f64::from(k))).collect();
        points.push((0.0, 100.0));
        points.extend((0..5).map(|k| (1.0, f64::from(k))));
        let chart = Chart::new("", "y", Scale::Linear)
            .with(Series::boxes("", points))
            .with_ticks(vec!["one".into(), "two".into()]);
        let svg = chart.svg();
        let dots = svg.matches("<circle").count() - svg.matches("<title>").count();
        assert_eq!(dots, 1);
        // A box answers with its median.
        assert_eq!(svg.matches("<title>").count(), 2);
        assert!(svg.contains("<title>10 at one</title>"), "{svg}");
        assert!(svg.contains("one") && svg.contains("two"));
        // The median of 0 … 19 and 100 is 10.
        let csv = chart.csv();
        assert_eq!(csv.lines().count(), 1 + 26);
        assert!(csv.contains(",one,100\n") && csv.contains(",two,4\n"));
        let alone = Chart::new("", "y", Scale::Logarithmic)
            .with(Series::boxes("", vec![(0.0, 3.0), (1.0, 0.0)]));
        assert!(!alone.svg().contains("NaN"));
    }
}

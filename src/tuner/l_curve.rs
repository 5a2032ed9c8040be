//! The L-curve: along a path of λ, log penalty against log divergence bends like an L. Its
//! corner is taken, without a look at the held-out entries.

use super::bench::{Answer, Solved};
use super::{Bench, Rival, path};
use crate::error::Result;

pub(super) fn run(mut bench: Bench<'_>) -> Result<Answer> {
    let solves = path::alike(&mut bench)?;
    let points: Vec<(f64, f64)> = solves.iter().map(place).collect();
    let corner = corner(&points).map(|index| solves[index].clone());
    bench.answer(Rival::LCurve, corner.or_else(|| solves.last().cloned()))
}

/// log D and log of the penalty without its weight (of all penalties together).
fn place(solved: &Solved) -> (f64, f64) {
    let weight = solved.dials.first().map_or(1.0, |dial| dial.exp());
    let tiny = f64::MIN_POSITIVE;
    let penalty = solved.penalty / weight;
    (solved.divergence.max(tiny).ln(), penalty.max(tiny).ln())
}

/// The point where the curve, seen from the origin, bends most: the largest curvature
/// (of the circle through three neighbours), counted as the bend of an L.
fn corner(points: &[(f64, f64)]) -> Option<usize> {
    // In units of its own extent, or the corner depends on the units of D.
    let extent = |of: fn(&(f64, f64)) -> f64| {
        let values = points.iter().map(of);
        let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| {
            (a.min(value), b.max(value))
        });
        (most - least).max(f64::MIN_POSITIVE)
    };
    let (wide, high) = (extent(|point| point.0), extent(|point| point.1));
    let bends = points.windows(3).enumerate().map(|(index, three)| {
        let at = |k: usize| (three[k].0 / wide, three[k].1 / high);
        let ((ax, ay), (bx, by), (cx, cy)) = (at(0), at(1), at(2));
        let area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
        let side = |x: f64, y: f64| x.hypot(y).max(1e-12);
        let sides = side(bx - ax, by - ay) * side(cx - bx, cy - by) * side(cx - ax, cy - ay);
        // Weak to strong, the penalty falls and D grows: a corner towards the origin
        // turns to the left.
        (index + 1, 2.0 * area / sides)
    });
    let sharpest = bends.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(sharpest.0)
}

#[cfg(test)]
mod tests {
    use super::corner;

    #[test]
    fn the_corner_of_an_l_is_found() {
        // Weak to strong: the penalty falls while D hardly grows, then the other way round.
        let points = [
            (2.6, 9.0),
            (2.7, 6.0),
            (2.8, 3.0),
            (3.0, 0.6),
            (5.0, 0.3),
            (7.0, 0.1),
            (9.0, 0.0),
        ];
        assert_eq!(corner(&points), Some(3));
        assert_eq!(corner(&points[..2]), None);
    }
}

//! The L-curve: along a path of λ, log penalty against log divergence bends like an L. Its corner
//! is taken. Held-out entries stop the solves, as for all rivals, but do not choose λ.

use super::books::{Answer, Solved};
use super::{Books, path};
use crate::error::Result;

pub(super) fn run(mut books: Books<'_>) -> Result<Answer> {
    let solves = path::alike(&mut books)?;
    let points: Vec<(f64, f64)> = solves.iter().map(place).collect();
    let corner = corner(&points).map(|index| solves[index].clone());
    books.answer(corner.or_else(|| solves.last().cloned()))
}

/// log D and the logarithm of the penalties without λ, in relative units.
fn place(solved: &Solved) -> (f64, f64) {
    let weight = solved.dials.first().map_or(1.0, |dial| dial.exp());
    let tiny = f64::MIN_POSITIVE;
    let penalty = solved.penalty / weight;
    (solved.divergence.max(tiny).ln(), penalty.max(tiny).ln())
}

/// The point farthest from the line between both ends, on the side of the origin, in units of the
/// curve's own extent. (The largest curvature is not a good rule: it is found where two points
/// nearly coincide, as those of weak penalties do.)
fn corner(points: &[(f64, f64)]) -> Option<usize> {
    let (first, last) = (points.first()?, points.last()?);
    let extent = |of: fn(&(f64, f64)) -> f64| {
        let values = points.iter().map(of);
        let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), value| {
            (a.min(value), b.max(value))
        });
        (most - least).max(f64::MIN_POSITIVE)
    };
    let (wide, high) = (extent(|point| point.0), extent(|point| point.1));
    let (right, down) = ((last.0 - first.0) / wide, (first.1 - last.1) / high);
    // From weak to strong, the penalty falls and D grows.
    let below = |point: &(f64, f64)| {
        let (x, y) = ((point.0 - first.0) / wide, (first.1 - point.1) / high);
        y * right - x * down
    };
    let inner = points.iter().enumerate();
    let inner = inner.filter(|(index, _)| *index > 0 && index + 1 < points.len());
    let farthest = inner.max_by(|a, b| below(a.1).total_cmp(&below(b.1)))?;
    Some(farthest.0)
}

#[cfg(test)]
mod tests {
    use super::corner;

    #[test]
    fn the_corner_of_an_l_is_found() {
        // From weak to strong: first the penalty falls while D hardly grows, then D grows while the
        // penalty hardly falls.
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

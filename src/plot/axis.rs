//! Where an axis has its marks.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;

/// A range with marks of its own.
pub(super) struct Axis {
    range: RangedCoordf64,
    marks: Vec<f64>,
}

impl Axis {
    pub(super) fn new(range: Range<f64>, marks: Vec<f64>) -> Self {
        Self {
            range: range.into(),
            marks,
        }
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.range.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            Vec::new()
        } else {
            self.marks.clone()
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.range()
    }
}

/// Marks at round numbers, at most this many.
pub(super) fn even(range: &Range<f64>, most: usize) -> Vec<f64> {
    RangedCoordf64::from(range.clone()).key_points(most)
}

/// Marks on an axis of logarithms (base 10): whole decades where there are several,
/// otherwise 1, 2 and 5 times a power of ten, or round numbers where even these are
/// too few.
pub(super) fn logarithmic(range: &Range<f64>, most: usize) -> Vec<f64> {
    let inside = |mark: &f64| range.contains(mark);
    let (first, last) = (range.start.floor() as i64, range.end.ceil() as i64);
    if range.end - range.start > 2.0 {
        let stride = (last - first) / most as i64 + 1;
        let marks = (first..=last).filter(|decade| decade % stride == 0);
        return marks.map(|decade| decade as f64).filter(inside).collect();
    }
    let marks: Vec<f64> = (first..=last)
        .flat_map(|decade| [1.0f64, 2.0, 5.0].map(|digit| decade as f64 + digit.log10()))
        .filter(inside)
        .collect();
    if marks.len() > 2 {
        return marks;
    }
    let values = 10f64.powf(range.start)..10f64.powf(range.end);
    let marks = even(&values, most).into_iter().map(f64::log10);
    marks.filter(inside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_have_marks_at_numbers_that_one_would_write() {
        assert_eq!(logarithmic(&(-0.5..3.2), 6), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(
            logarithmic(&(-12.5..0.5), 6),
            [-12.0, -9.0, -6.0, -3.0, 0.0]
        );
        let values = |range| -> Vec<f64> {
            let marks = logarithmic(&range, 6).into_iter();
            marks
                .map(|mark| (1e9 * 10f64.powf(mark)).round() / 1e9)
                .collect()
        };
        assert_eq!(values(-1.1..0.4), [0.1, 0.2, 0.5, 1.0, 2.0]);
        let close = values(0.31..0.39);
        assert!(
            close.len() > 2
                && close
                    .iter()
                    .all(|mark| (100.0 * mark - (100.0 * mark).round()).abs() < 1e-6)
        );
    }
}

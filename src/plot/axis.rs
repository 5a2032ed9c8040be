//! The marks of an axis.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;

use super::short;

/// A range with its own marks.
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

/// The smallest of 1, 2 and 5 times a power of ten that divides a width into at most `most` parts.
pub(crate) fn round_step(width: f64, most: usize) -> f64 {
    let least = width / most.max(1) as f64;
    if !(least.is_finite() && least > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    // (Rounding must not push a step to the next one.)
    let fits = |digit: &f64| digit * power >= least * (1.0 - 1e-9);
    power * [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0)
}

/// Marks at multiples of a round step, at most about this many. With `whole`, no step is below 1.
pub(super) fn even(range: &Range<f64>, most: usize, whole: bool) -> Vec<f64> {
    let step = round_step(range.end - range.start, most);
    let step = if whole { step.max(1.0) } else { step };
    let slack = 1e-9;
    let first = (range.start / step - slack).ceil();
    let last = (range.end / step + slack).floor();
    let count = (last - first).clamp(0.0, 100.0) as usize;
    let marks = (0..=count).map(|index| (first + index as f64) * step);
    marks.filter(|_| last >= first).collect()
}

/// Marks at powers of ten on an axis of logarithms, at most about this many.
pub(super) fn decades(range: &Range<f64>, most: usize) -> Vec<f64> {
    even(range, most, true)
}

/// A range of logarithms that has at least two powers of ten in it.
pub(super) fn with_decades(range: Range<f64>) -> Range<f64> {
    if decades(&range, 100).len() >= 2 {
        return range;
    }
    range.start.floor()..range.end.ceil()
}

/// The labels of marks, all with the same number of decimals.
pub(super) fn even_texts(marks: &[f64]) -> Vec<String> {
    let largest = marks.iter().fold(0.0f64, |most, mark| most.max(mark.abs()));
    let step = marks.windows(2).map(|pair| pair[1] - pair[0]).next();
    let step = step.unwrap_or(largest).abs();
    if largest == 0.0 || step == 0.0 {
        return marks.iter().map(|mark| short(*mark)).collect();
    }
    let place = |value: f64| (value.log10() + 1e-9).floor() as i32;
    let plain = (1e-3..1e6).contains(&largest) && place(step) >= -6;
    let text = |mark: &f64| {
        if mark.abs() < step * 1e-6 {
            "0".into()
        } else if plain {
            let digits = (-place(step)).max(0) as usize;
            format!("{mark:.digits$}")
        } else {
            let digits = (place(mark.abs()) - place(step)).clamp(0, 12) as usize;
            format!("{mark:.digits$e}")
        }
    };
    marks.iter().map(text).collect()
}

/// The labels of powers of ten, from their exponents.
pub(super) fn decade_texts(marks: &[f64]) -> Vec<String> {
    let small = marks.iter().all(|mark| mark.abs() <= 3.5);
    let text = |mark: &f64| {
        let exponent = mark.round() as i32;
        if small || exponent == 0 {
            return short(10f64.powi(exponent));
        }
        let raised = |character: char| match character {
            '-' => '⁻',
            digit => {
                let places = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
                places[digit.to_digit(10).unwrap_or(0) as usize]
            }
        };
        let exponent: String = exponent.to_string().chars().map(raised).collect();
        format!("10{exponent}")
    };
    marks.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_at_round_numbers() {
        assert_eq!(
            even(&(0.0..1.0), 5, false),
            [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]
        );
        assert_eq!(even(&(0.0..3.0), 8, true), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(even(&(1.0..40.0), 4, true), [10.0, 20.0, 30.0, 40.0]);
        assert_eq!(round_step(1.0, 10), 0.1);
        assert_eq!(round_step(f64::NAN, 10), 1.0);
    }

    #[test]
    fn logarithms_have_marks_at_powers_of_ten_alone() {
        assert_eq!(decades(&(-0.5..3.2), 6), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(decades(&(-12.5..0.5), 6), [-10.0, -5.0, 0.0]);
        assert_eq!(with_decades(0.3..1.4), 0.0..2.0);
        assert_eq!(with_decades(-0.1..1.4), -0.1..1.4);
        assert_eq!(decade_texts(&[-2.0, 0.0, 2.0]), ["0.01", "1", "100"]);
        assert_eq!(decade_texts(&[-10.0, 0.0]), ["10⁻¹⁰", "1"]);
    }

    #[test]
    fn no_two_marks_have_the_same_words() {
        for range in [
            5183.001..5183.004,
            1e-7..4e-7,
            0.0..2e7,
            -1.0..1.0,
            0.0..0.003,
        ] {
            let marks = even(&range, 6, false);
            let texts = even_texts(&marks);
            assert!(marks.len() > 2);
            let different: std::collections::HashSet<&String> = texts.iter().collect();
            assert_eq!(different.len(), texts.len(), "{texts:?}");
        }
        assert_eq!(even_texts(&[0.0, 0.5, 1.0]), ["0", "0.5", "1.0"]);
    }
}

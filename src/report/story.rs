//! The results of a run in words, for its page and for a terminal.

use std::cmp::Ordering;

use ndarray::{Array2, ArrayView1};

use super::{Choice, Labels};
use crate::metrics::Spread;
use crate::plot::short;
use crate::practical::{Candidate, Stage};
use crate::problem::Scaling;

/// A component with its largest features.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Component {
    /// Its number, counted from 1.
    pub number: usize,
    /// Its share of the sum of WH.
    pub share: f64,
    /// The columns of X with the largest weights in its row of H, largest first.
    pub columns: Vec<Feature>,
    /// The rows of X with the largest weights in its column of W, largest first.
    pub rows: Vec<Feature>,
}

/// A row or column of X with its weight in a component.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Feature {
    /// Its label, or "column 7".
    pub name: String,
    /// Its share of the component's weights on that side.
    pub share: f64,
}

/// The components of WH, the one with the largest share first, each with at most so many features
/// on either side. If the data were scaled, they are compared in the units of the fit: in those of
/// the data, a row or column of large numbers would lead every component.
pub(crate) fn components(
    w: &Array2<f64>,
    h: &Array2<f64>,
    scaling: Option<&Scaling>,
    labels: &Labels,
    features: usize,
) -> Vec<Component> {
    let scaled = scaling.map(|scaling| (scaling.w_scaled(w), scaling.h_scaled(h)));
    let (w, h) = scaled.as_ref().map_or((w, h), |(w, h)| (w, h));
    let sizes: Vec<f64> = (0..w.ncols())
        .map(|k| w.column(k).sum() * h.row(k).sum())
        .collect();
    let whole: f64 = sizes.iter().sum();
    let component = |(k, size): (usize, &f64)| Component {
        number: k + 1,
        share: part(*size, whole),
        columns: largest(h.row(k), features, |column| labels.column(column)),
        rows: largest(w.column(k), features, |row| labels.row(row)),
    };
    let mut all: Vec<Component> = sizes.iter().enumerate().map(component).collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}

fn part(of: f64, whole: f64) -> f64 {
    if whole > 0.0 { of / whole } else { 0.0 }
}

/// The largest entries that are not zero.
fn largest(signal: ArrayView1<f64>, most: usize, name: impl Fn(usize) -> String) -> Vec<Feature> {
    let whole = signal.sum();
    let before = |a: &(usize, f64), b: &(usize, f64)| -> Ordering { b.1.total_cmp(&a.1) };
    let mut entries: Vec<(usize, f64)> = signal.iter().copied().enumerate().collect();
    entries.retain(|(_, value)| *value > 0.0);
    if entries.len() > most {
        entries.select_nth_unstable_by(most, before);
        entries.truncate(most);
    }
    entries.sort_by(|a, b| before(a, b).then(a.0.cmp(&b.0)));
    let feature = |(index, value): (usize, f64)| Feature {
        name: name(index),
        share: part(value, whole),
    };
    entries.into_iter().map(feature).collect()
}

/// "34 %", with more digits near 0 and near 100 %.
pub(crate) fn percent(share: f64) -> String {
    let value = 100.0 * share;
    match value {
        value if value > 99.99 && value < 100.0 => "> 99.99 %".into(),
        value if value > 99.0 && value < 99.995 => format!("{value:.2} %"),
        value if value > 0.0 && value < 0.1 => "< 0.1 %".into(),
        value if value > 0.0 && value < 9.95 => format!("{value:.1} %"),
        value => format!("{value:.0} %"),
    }
}

/// The fit in words, from the divergence relative to that of a constant fit; and the same of the
/// outer error if data were held out. After a refit, the outer error is that of the factors before.
pub(crate) fn fit_in_words(relative_error: f64, outer: Option<f64>, refitted: bool) -> String {
    let fit = if relative_error.is_nan() {
        "X is constant: one number fits it.".into()
    } else if relative_error > 1.0 {
        format!(
            "WH fits worse than a constant: its divergence is {} times that of a constant fit.",
            short(relative_error)
        )
    } else {
        let share = percent(1.0 - relative_error);
        format!("WH explains {share} of the divergence of a constant fit.")
    };
    let (before, is, explains) = match refitted {
        true => ("Before the refit to all data it", "was", "explained"),
        false => ("It", "is", "explains"),
    };
    match outer.filter(|ratio| ratio.is_finite()) {
        None => format!("{fit} No data were held out, so nothing is known about new data."),
        Some(ratio) if ratio > 1.0 => format!(
            "{fit} {before} {is} worse than a constant on the data that the updates did not see: \
             its error {is} {} times that of a constant fit.",
            short(ratio)
        ),
        Some(ratio) => format!(
            "{fit} {before} {explains} {} on the data that the updates did not see, which have \
             noise of their own.",
            percent(1.0 - ratio)
        ),
    }
}

/// The verdict of the preset `practical` about penalties. `entries` is the weight of the held-out
/// data. `penalties` names the tuned penalties: "smooth on W".
pub(crate) fn choice_in_words(choice: &Choice, entries: Option<f64>, penalties: &str) -> String {
    let plain = choice
        .candidates
        .iter()
        .find(|one| one.stage == Stage::Plain);
    let penalised = choice
        .candidates
        .iter()
        .filter(|one| one.stage != Stage::Plain);
    let best = penalised.min_by(|a, b| a.outer_error.total_cmp(&b.outer_error));
    let (Some(plain), Some(best), Some(taken)) =
        (plain, best, choice.candidates.get(choice.chosen))
    else {
        return String::new();
    };
    let error = |value: f64| match entries {
        Some(entries) if entries > 0.0 => format!("{} per entry", short(value / entries)),
        _ => short(value),
    };
    let margin = |one: &Candidate| match one.standard_error {
        Some(margin) => format!("standard error ({})", error(margin)),
        None => "standard error".into(),
    };
    let change = |value: f64| {
        let share = value / plain.outer_error - 1.0;
        let direction = if share < 0.0 { "lower" } else { "higher" };
        format!("{} {direction}", percent(share.abs()))
    };
    let of_plain = error(plain.outer_error);
    if taken.stage != Stage::Plain {
        return format!(
            "Your data want a penalty ({penalties}): the outer error is {} than that of plain \
             updates stopped early ({} instead of {of_plain}), by more than a {}.",
            change(taken.outer_error),
            error(taken.outer_error),
            margin(taken)
        );
    }
    let best_change = change(best.outer_error);
    if best.outer_error < plain.outer_error {
        return format!(
            "No penalty is shown to help: plain updates stopped early are taken, with an outer \
             error of {of_plain}. That of the best λ ({penalties}) is {best_change}, a difference \
             of less than a {}.",
            margin(best)
        );
    }
    format!(
        "Your data want no penalty: plain updates stopped early won, with an outer error of \
         {of_plain}. That of the best λ ({penalties}) is {best_change}."
    )
}

/// Weights that have moved by less than this share of their start have hardly moved.
const HARDLY: f64 = 0.05;
/// If this share of all weights hardly moved, the page says so.
const MOST: f64 = 0.9;

/// A note on weights that the run did not decide: they hardly moved from their start, or ended at
/// the largest λ that is allowed.
pub(crate) fn caution(weights: &[f64], start: &[f64], largest: Option<f64>) -> &'static str {
    let near = |(end, start): &(&f64, &f64)| (*end - *start).abs() <= HARDLY * start.abs();
    let still = weights.iter().zip(start).filter(near).count();
    let at_largest = |weight: &&f64| largest.is_some_and(|largest| **weight >= 0.999 * largest);
    if !weights.is_empty() && still as f64 >= MOST * weights.len() as f64 {
        " Most of them moved by less than 5 % from their start, so they say little about the data."
    } else if weights.iter().any(|weight| at_largest(&weight)) {
        " The largest allowed λ (--lambda-max) was reached."
    } else {
        ""
    }
}

/// Weights below this number have no visible effect.
const PRACTICALLY_ZERO: f64 = 1e-6;

/// The sizes of weights: "λ is 0.02", or "λ has the median 0.02, from 0.001 to 0.4".
pub(crate) fn weights_in_words(weights: &[f64]) -> String {
    let Some(spread) = Spread::of(weights) else {
        return "λ is not a number".into();
    };
    let tiny = match spread.most < PRACTICALLY_ZERO {
        true => ", practically no penalty",
        false => "",
    };
    if spread.least == spread.most {
        return match spread.count {
            1 => format!("λ is {}{tiny}", short(spread.most)),
            count => format!("all {count} weights λ are {}{tiny}", short(spread.most)),
        };
    }
    let zeros = weights.iter().filter(|weight| **weight == 0.0).count();
    let zeros = match zeros {
        0 => String::new(),
        1 => "; 1 of them is 0".into(),
        zeros => format!("; {zeros} of them are 0"),
    };
    format!(
        "the {} weights λ have the median {}, from {} to {}{zeros}{tiny}",
        spread.count,
        short(spread.median),
        short(spread.least),
        short(spread.most)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn components_have_their_largest_features() {
        let w = array![[1.0, 0.0], [1.0, 2.0]];
        let h = array![[1.0, 0.0, 3.0], [4.0, 0.0, 4.0]];
        let labels = Labels {
            rows: None,
            columns: Some(vec!["a".into(), "b".into(), "c".into()]),
        };
        let all = components(&w, &h, None, &labels, 2);
        // 2·4 and 2·8 of 24.
        assert_eq!((all[0].number, all[1].number), (2, 1));
        assert!((all[0].share - 16.0 / 24.0).abs() < 1e-12);
        let names = |features: &[Feature]| -> Vec<String> {
            features
                .iter()
                .map(|feature| feature.name.clone())
                .collect()
        };
        assert_eq!(names(&all[1].columns), ["c", "a"]);
        assert_eq!(all[1].columns[0].share, 0.75);
        assert_eq!(names(&all[0].rows), ["row 2"]);
    }

    #[test]
    fn numbers_are_told_in_words() {
        assert_eq!(percent(0.93), "93 %");
        assert_eq!(percent(0.012), "1.2 %");
        assert_eq!(percent(0.99999), "> 99.99 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.0), "0 %");
        let fit = |relative, outer| fit_in_words(relative, outer, false);
        assert!(fit(0.07, None).contains("explains 93 % of the divergence"));
        assert!(fit(0.07, None).contains("No data were held out"));
        assert!(fit(1.5, Some(0.25)).contains("worse than a constant"));
        assert!(fit(0.1, Some(1.5)).contains("its error is 1.5 times"));
        assert!(fit(f64::NAN, None).contains("constant"));
        assert!(fit(0.1, Some(0.25)).contains("It explains 75 % on the data that"));
        let refitted = fit_in_words(0.1, Some(0.25), true);
        assert!(refitted.contains("Before the refit to all data it explained 75 % on the data"));
        assert_eq!(weights_in_words(&[0.5]), "λ is 0.5");
        assert!(weights_in_words(&[1e-9]).contains("practically no penalty"));
        assert!(caution(&[2.0, 1.001], &[2.001, 1.0], None).contains("less than 5 %"));
        assert!(caution(&[2.0, 54.6], &[1.0, 1.0], Some(54.6)).contains("--lambda-max"));
        assert_eq!(caution(&[2.0, 0.0], &[1.0, 1.0], Some(54.6)), "");
        assert_eq!(weights_in_words(&[0.5, 0.5]), "all 2 weights λ are 0.5");
        assert!(weights_in_words(&[0.0, 1.0, 2.0]).contains("1 of them is 0"));
    }

    #[test]
    fn the_choice_is_told_with_what_it_bought() {
        let candidate = |stage, outer_error| Candidate {
            stage,
            outer_error,
            standard_error: Some(0.5),
            iteration: 3,
        };
        let choice = |tuned: f64, chosen| Choice {
            candidates: vec![
                candidate(Stage::Plain, 10.0),
                candidate(Stage::Tuned, tuned),
                candidate(Stage::SolvedAgain, 20.0),
            ],
            chosen,
            splits: 3,
        };
        let words = |tuned, chosen| choice_in_words(&choice(tuned, chosen), Some(10.0), "l1 on W");
        assert!(words(8.0, 1).contains("20 % lower than that of plain updates"));
        assert!(words(8.0, 1).contains("0.8 per entry instead of 1 per entry"));
        assert!(words(12.0, 0).contains("no penalty") && words(12.0, 0).contains("20 % higher."));
        assert!(words(9.9, 0).contains("No penalty is shown to help"));
        assert!(words(9.9, 0).contains("less than a standard error (0.05 per entry)."));
    }
}

//! The figures of λ.

use super::figures::{Figure, curve};
use super::labels::weight_name;
use super::{PenaltyRecord, RunRecords};
use crate::factors::Side;
use crate::plot::{Chart, MANY_POINTS, Scale, Series, round_step, short};

/// Up to this many weights are shown one by one.
const FEW_WEIGHTS: usize = 64;
/// Bins of a histogram, at most.
const BINS: usize = 24;

/// The figures of λ. There are none if all weights are and were 0, or if plain updates won.
pub(super) fn figures(run: &RunRecords) -> Vec<Figure> {
    if run.lambda.iter().all(|weight| *weight == 0.0) {
        // If plain updates won, the last λ was not used.
        let moved = run.lambda_start.iter().any(|weight| *weight > 0.0);
        return match moved && run.choice.is_none() {
            true => vec![course(run)],
            false => Vec::new(),
        };
    }
    let mut figures = Vec::new();
    if run.groups.iter().all(|(_, weights)| weights.len() == 1) {
        // The answer about λ has said it.
    } else if run.lambda.len() <= FEW_WEIGHTS {
        figures.push(of_each(run));
    } else {
        for group in Group::all(run) {
            figures.extend([group.change(), group.histogram()]);
        }
    }
    figures.push(course(run));
    figures
}

/// The names of a penalty's weights.
pub(super) fn names(run: &RunRecords, group: usize) -> Vec<String> {
    // (Runs of older versions do not say what their penalties were.)
    let one = run.penalties.get(group);
    let name = |(place, _): ((usize, usize), &f64)| {
        one.map_or_else(String::new, |one| {
            weight_name(&run.labels, (one.factor, &one.scope), place)
        })
    };
    run.groups[group].1.indexed_iter().map(name).collect()
}

/// The owner of a weight: "row of X", or "weight" if it differs between penalties.
fn owner(penalties: &[PenaltyRecord]) -> &'static str {
    let of = |one: &PenaltyRecord| match (one.scope.as_str(), one.factor) {
        ("row", Side::W) => "row of X",
        ("row", Side::H) => "column of X",
        ("entry" | "shared", _) => "weight",
        _ => "component",
    };
    let mut owners = penalties.iter().map(of);
    let first = owners.next().unwrap_or("weight");
    match owners.all(|other| other == first) {
        true => first,
        false => "weight",
    }
}

/// Few weights, one by one.
fn of_each(run: &RunRecords) -> Figure {
    let most = run.groups.iter().map(|(_, weights)| weights.len()).max();
    let owner = owner(&run.penalties);
    let mut chart = Chart::new(owner, "λ", Scale::Logarithmic);
    let floor = floor(run.lambda.iter().copied());
    for (index, (penalty, weights)) in run.groups.iter().enumerate() {
        let points = weights.iter().enumerate();
        let points = points.map(|(place, weight)| (place as f64, *weight));
        let name = if run.groups.len() > 1 { penalty } else { "" };
        let series = Series::points(name, points.collect());
        chart = chart.with(on_floor(series.named(names(run, index)), floor));
    }
    let ticks = (1..=most.unwrap_or(1)).map(|place| place.to_string());
    Figure {
        name: "lambda_weights".into(),
        title: format!("λ of each {owner}"),
        caption: format!(
            "The penalty weights λ that were kept.{}",
            at_the_floor(run.lambda.iter().copied())
        ),
        svg: chart.with_ticks(ticks.collect()).svg(),
        tiles: Vec::new(),
    }
}

/// The place of zeros on a logarithmic scale: a power of ten below all other weights.
fn floor(weights: impl Iterator<Item = f64>) -> f64 {
    let positive = weights.filter(|weight| *weight > 0.0);
    let smallest = positive.fold(f64::INFINITY, f64::min);
    match smallest.is_finite() {
        true => 10f64.powf((smallest.log10() - 0.5).floor()),
        false => 1.0,
    }
}

/// A series with its zeros at the floor. On hover they are 0.
fn on_floor(mut series: Series, floor: f64) -> Series {
    series.values = Some(series.points.iter().map(|(_, weight)| *weight).collect());
    for (_, weight) in &mut series.points {
        *weight = weight.max(floor);
    }
    series
}

/// A note on zeros of a logarithmic scale.
fn at_the_floor(mut weights: impl Iterator<Item = f64>) -> &'static str {
    match weights.any(|weight| weight == 0.0) {
        true => " Zeros are drawn at the lowest power of ten.",
        false => "",
    }
}

/// The weights of one penalty, first and last.
struct Group {
    /// The end of its figures' names: empty, or "_2".
    suffix: String,
    /// The same of their titles: empty, or " of l1 on H".
    of: String,
    start: Vec<f64>,
    end: Vec<f64>,
    names: Vec<String>,
}

impl Group {
    fn all(run: &RunRecords) -> Vec<Self> {
        let mut start = run.lambda_start.iter().copied();
        let groups = run.groups.iter().enumerate();
        let group = |(index, (penalty, weights)): (usize, &(String, ndarray::Array2<f64>))| Self {
            suffix: match index {
                0 => String::new(),
                index => format!("_{}", index + 1),
            },
            of: match run.groups.len() {
                1 => String::new(),
                _ => format!(" of {penalty}"),
            },
            start: start.by_ref().take(weights.len()).collect(),
            end: weights.iter().copied().collect(),
            names: names(run, index),
        };
        groups.map(group).collect()
    }

    /// The 98th percentile of the first and the last λ. It is the limit of the axis, because a few
    /// large λ would compress all others.
    fn most(&self) -> f64 {
        let all = self.end.iter().chain(&self.start);
        let mut all: Vec<f64> = all.copied().collect();
        all.sort_by(f64::total_cmp);
        let most = all[(all.len() - 1) * 98 / 100];
        if most > 0.0 { most } else { all[all.len() - 1] }
    }

    fn change(&self) -> Figure {
        let most = self.most();
        let pairs = self.start.iter().zip(&self.end).zip(&self.names);
        // (The largest ones are drawn at the edge, with their values on hover.)
        let pairs = pairs.map(|((start, end), name)| {
            let place = (start.min(most), end.min(most));
            (place, format!("{name}, {} at the start", short(*start)))
        });
        let (pairs, names): (Vec<(f64, f64)>, Vec<String>) = pairs.unzip();
        let count = pairs.len();
        let mut weights = Series::points("weights", pairs).named(names);
        weights.values = Some(self.end.clone());
        let chart = Chart::new("λ at the start", "λ at the end", Scale::Linear)
            .with(weights)
            .with(Series::line("unchanged", vec![(0.0, 0.0), (most, most)]));
        let beyond = self.start.iter().zip(&self.end);
        let beyond = beyond.filter(|(start, end)| **start > most || **end > most);
        let beyond = match beyond.count() {
            0 => String::new(),
            1 => " One larger λ is drawn at the edge.".into(),
            beyond => format!(" {beyond} larger λ are drawn at the edge."),
        };
        let drawn = match count > MANY_POINTS {
            true => "A cell's colour is the stronger the more weights it has.",
            false => "One point per weight.",
        };
        Figure {
            name: format!("lambda_change{}", self.suffix),
            title: format!("λ{}, first and last", self.of),
            caption: format!("{drawn} Below the line λ is smaller than at the start.{beyond}"),
            svg: chart.svg(),
            tiles: Vec::new(),
        }
    }

    fn histogram(&self) -> Figure {
        let most = self.most();
        let width = round_step(most, BINS);
        let count = ((most / width).ceil() as usize).clamp(1, BINS + 1);
        let bins = |values: &[f64]| {
            let mut counts = vec![0usize; count];
            for value in values {
                counts[((value / width) as usize).min(count - 1)] += 1;
            }
            let middle = |bin: usize| (bin as f64 + 0.5) * width;
            let point = |(bin, count): (usize, &usize)| (middle(bin), *count as f64);
            counts.iter().enumerate().map(point).collect::<Vec<_>>()
        };
        let mut chart = Chart::new("λ", "number of weights", Scale::Linear)
            .with(Series::bars("at the start", bins(&self.start)))
            .with(Series::bars("at the end", bins(&self.end)));
        chart.bar_width = width;
        Figure {
            name: format!("lambda_histogram{}", self.suffix),
            title: format!("Distribution of λ{}", self.of),
            caption: format!(
                "Numbers of weights in intervals of λ.{}{}",
                match self
                    .end
                    .iter()
                    .chain(&self.start)
                    .any(|weight| *weight > most)
                {
                    true => " The last bar also has all larger ones.",
                    false => "",
                },
                match self.end.iter().filter(|weight| **weight == 0.0).count() {
                    0 => String::new(),
                    1 => " One weight is 0 at the end.".into(),
                    zeros => format!(" {zeros} weights are 0 at the end."),
                }
            ),
            svg: chart.svg(),
            tiles: Vec::new(),
        }
    }
}

fn course(run: &RunRecords) -> Figure {
    let mut chart = Chart::new("iteration", "λ", Scale::Logarithmic);
    let largest = curve(run, |record| record.lambda_max);
    let median = curve(run, |record| record.lambda_median);
    let smallest = curve(run, |record| record.lambda_min);
    let curves = match (largest == smallest, run.groups.len()) {
        (true, _) => vec![("", largest)],
        (_, 1) => vec![
            ("largest", largest),
            ("median", median),
            ("smallest", smallest),
        ],
        // (The median of different penalties would be between them.)
        _ => vec![("largest", largest), ("smallest", smallest)],
    };
    let all = || curves.iter().flat_map(|(_, points)| points);
    let floor = floor(all().map(|(_, weight)| *weight));
    for (name, points) in &curves {
        chart = chart.with(on_floor(Series::line(*name, points.clone()), floor));
    }
    Figure {
        name: "lambda_course".into(),
        title: "λ in each iteration".into(),
        caption: format!(
            "The penalty weights λ{}.{}",
            match run.groups.len() {
                1 => "",
                _ => " of all penalties together",
            },
            at_the_floor(all().map(|(_, weight)| *weight))
        ),
        svg: chart.svg(),
        tiles: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_named_after_what_they_belong_to() {
        let penalty = |factor, scope: &str| PenaltyRecord {
            penalty: "l1".into(),
            factor,
            scope: scope.into(),
            lambda: String::new(),
            lambda_start: String::new(),
        };
        let (of_w, of_h) = (penalty(Side::W, "row"), penalty(Side::H, "row"));
        assert_eq!(owner(std::slice::from_ref(&of_w)), "row of X");
        assert_eq!(owner(std::slice::from_ref(&of_h)), "column of X");
        assert_eq!(owner(&[of_w, of_h]), "weight");
        let of_component = penalty(Side::W, "hierarchical:1");
        assert_eq!(owner(&[of_component]), "component");
        assert_eq!(at_the_floor([1.0, 2.0].into_iter()), "");
        assert!(at_the_floor([1.0, 0.0].into_iter()).contains("Zeros"));
        assert_eq!(floor([0.0, 0.05, 2.0].into_iter()), 0.01);
        let series = on_floor(Series::line("", vec![(0.0, 0.0), (1.0, 2.0)]), 0.1);
        assert_eq!(series.points, [(0.0, 0.1), (1.0, 2.0)]);
        assert_eq!(series.values, Some(vec![0.0, 2.0]));
    }
}

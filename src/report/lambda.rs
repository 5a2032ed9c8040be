//! The figures of λ.

use super::RunRecords;
use super::figures::{Figure, curve};
use super::labels::weight_name;
use crate::plot::{Chart, Scale, Series, round_step};

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
    if run.lambda.len() <= FEW_WEIGHTS {
        figures.push(of_each(run));
    } else {
        figures.extend([change(run), histogram(run)]);
    }
    figures.push(course(run));
    figures
}

/// The names of all weights, in the order of [`RunRecords::lambda`].
fn names(run: &RunRecords) -> Vec<String> {
    let several = run.groups.len() > 1;
    let groups = run.groups.iter().enumerate();
    let of_group = |(index, (name, weights)): (usize, &(String, ndarray::Array2<f64>))| {
        let record = run.penalties.get(index);
        let label = |(place, _): ((usize, usize), &f64)| {
            let label = record.map_or_else(String::new, |one| {
                weight_name(&run.labels, (one.factor, &one.scope), place)
            });
            match several {
                true => format!("{label} ({name})"),
                false => label,
            }
        };
        weights.indexed_iter().map(label).collect::<Vec<String>>()
    };
    groups.flat_map(of_group).collect()
}

/// Few weights, one by one.
fn of_each(run: &RunRecords) -> Figure {
    let most = run.groups.iter().map(|(_, weights)| weights.len()).max();
    let most = most.unwrap_or(1);
    let mut chart = Chart::new(
        if most == 1 { "" } else { "weight" },
        "λ",
        Scale::Logarithmic,
    );
    let mut all = names(run).into_iter();
    for (name, weights) in &run.groups {
        let points = weights.iter().enumerate();
        let points = points.map(|(place, weight)| (place as f64, *weight));
        let names = all.by_ref().take(weights.len()).collect();
        chart = chart.with(Series::points(name.as_str(), points.collect()).named(names));
    }
    let ticks = (1..=most).map(|place| place.to_string()).collect();
    let ticks = if most == 1 {
        vec![String::new()]
    } else {
        ticks
    };
    Figure {
        name: "lambda_weights".into(),
        title: "λ of each penalty".into(),
        caption: "The penalty weights λ that were kept; zeros are left out of a logarithmic scale."
            .into(),
        svg: chart.with_ticks(ticks).svg(),
        tiles: Vec::new(),
    }
}

/// The 98th percentile of the first and the last λ. It is the limit of the axis, because a few
/// large λ would compress all others.
fn most(run: &RunRecords) -> f64 {
    let all = run.lambda.iter().chain(&run.lambda_start);
    let mut all: Vec<f64> = all.copied().collect();
    all.sort_by(f64::total_cmp);
    let most = all[(all.len() - 1) * 98 / 100];
    if most > 0.0 { most } else { all[all.len() - 1] }
}

fn change(run: &RunRecords) -> Figure {
    let most = most(run);
    let pairs = run.lambda_start.iter().zip(&run.lambda).zip(names(run));
    let pairs = pairs.map(|((start, end), name)| ((*start, *end), name));
    let shown = pairs.filter(|((start, end), _)| *start <= most && *end <= most);
    let (pairs, names): (Vec<(f64, f64)>, Vec<String>) = shown.unzip();
    let chart = Chart::new("λ at the start", "λ at the end", Scale::Linear)
        .with(Series::points("weights", pairs).named(names))
        .with(Series::line("unchanged", vec![(0.0, 0.0), (most, most)]));
    Figure {
        name: "lambda_change".into(),
        title: "λ, first and last".into(),
        caption: "One point per weight, or a cell that is the darker the more weights it has; \
                  what lies below the line was penalised less and less. Up to the 98th \
                  percentile."
            .into(),
        svg: chart.svg(),
        tiles: Vec::new(),
    }
}

fn histogram(run: &RunRecords) -> Figure {
    let most = most(run);
    let width = round_step(most, BINS);
    let count = ((most / width).ceil() as usize).clamp(1, BINS + 1);
    let bins = |values: &ndarray::Array2<f64>| {
        let mut counts = vec![0usize; count];
        for value in values {
            counts[((value / width) as usize).min(count - 1)] += 1;
        }
        let middle = |bin: usize| (bin as f64 + 0.5) * width;
        let point = |(bin, count): (usize, &usize)| (middle(bin), *count as f64);
        counts.iter().enumerate().map(point).collect::<Vec<_>>()
    };
    let mut chart = Chart::new("λ", "number of weights", Scale::Linear)
        .with(Series::bars("at the start", bins(&run.lambda_start)))
        .with(Series::bars("at the end", bins(&run.lambda)));
    chart.bar_width = width;
    Figure {
        name: "lambda_histogram".into(),
        title: "Distribution of λ".into(),
        caption: "Numbers of weights in intervals of λ; the last bar also has all larger ones."
            .into(),
        svg: chart.svg(),
        tiles: Vec::new(),
    }
}

fn course(run: &RunRecords) -> Figure {
    let mut chart = Chart::new("iteration", "λ", Scale::Logarithmic);
    let largest = curve(run, |record| record.lambda_max);
    let smallest = curve(run, |record| record.lambda_min);
    if largest == smallest {
        chart = chart.with(Series::line("", largest));
    } else {
        let median = curve(run, |record| record.lambda_median);
        chart = chart
            .with(Series::line("largest", largest))
            .with(Series::line("median", median))
            .with(Series::line("smallest", smallest));
    }
    Figure {
        name: "lambda_course".into(),
        title: "λ on its way".into(),
        caption: "The penalty weights λ in each iteration; zeros are left out of a logarithmic \
                  scale."
            .into(),
        svg: chart.svg(),
        tiles: Vec::new(),
    }
}

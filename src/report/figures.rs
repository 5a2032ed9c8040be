//! The figures of a run, from what its folder holds.

use ndarray::{Array2, ArrayView1, Axis};

use super::RunRecords;
use crate::plot::{Chart, HeatMap, Maps, Scale, Series, short};
use crate::solver::Record;

/// A named picture with a sentence about it.
#[derive(Debug, Clone)]
pub struct Figure {
    /// File name without ending.
    pub name: String,
    /// Heading.
    pub title: String,
    /// What to see in it.
    pub caption: String,
    /// The picture.
    pub svg: String,
    /// Whether it wants the whole width of a page.
    pub wide: bool,
}

/// Signals beyond this many are drawn as a heat map.
const CURVES_AT_MOST: usize = 8;
/// Rows of H longer than this are drawn as a heat map.
const LONGEST_CURVE: usize = 1500;
/// So few weights are told one by one.
const FEW_WEIGHTS: usize = 64;
/// Bins of a histogram.
const BINS: usize = 24;

/// The names that figures of a run may have.
pub(super) const FIGURES: [&str; 10] = [
    "convergence",
    "held_out",
    "lambda_weights",
    "lambda_change",
    "lambda_histogram",
    "lambda_course",
    "hypergradient",
    "sparsity",
    "w_columns",
    "h_rows",
];

/// All figures of a run, in the order of the report.
pub(super) fn figures(run: &RunRecords) -> Vec<Figure> {
    let mut figures = vec![convergence(run)];
    figures.extend(held_out(run));
    if run.lambda.iter().chain(&run.lambda_start).any(|l| *l > 0.0) {
        if run.lambda.len() <= FEW_WEIGHTS {
            figures.push(lambda_of_each(run));
        } else {
            figures.extend([lambda_change(run), lambda_histogram(run)]);
        }
        figures.push(lambda_course(run));
    }
    if run
        .history
        .iter()
        .any(|record| record.hypergradient_norm > 0.0)
    {
        figures.push(hypergradient(run));
    }
    figures.extend([sparsity(run), signals_of_w(run), signals_of_h(run)]);
    figures
}

/// One point per iteration.
fn curve(run: &RunRecords, y: impl Fn(&Record) -> f64) -> Vec<(f64, f64)> {
    let point = |record: &Record| (record.iteration as f64, y(record));
    run.history.iter().map(point).collect()
}

fn convergence(run: &RunRecords) -> Figure {
    let chart = Chart::new("iteration", "divergence, objective", Scale::Logarithmic)
        .with(Series::line(
            "divergence",
            curve(run, |record| record.divergence),
        ))
        .with(Series::line(
            "objective",
            curve(run, |record| record.objective),
        ));
    Figure {
        name: "convergence".into(),
        title: "Convergence".into(),
        caption: "Divergence D(X, WH), and the objective D + Σ λᵢ r(wᵢ), on a logarithmic scale. \
                  The objective may rise where λ does."
            .into(),
        svg: chart.svg(),
        wide: false,
    }
}

/// Errors per entry, seen and unseen; only where something was held out.
fn held_out(run: &RunRecords) -> Option<Figure> {
    let share = &run.summary["held_out"];
    let training = share["training_weight"].as_f64()?;
    let unseen = share["held_out_weight"].as_f64()?;
    let chart = Chart::new("iteration", "divergence per entry", Scale::Logarithmic)
        .with(Series::line(
            "training",
            curve(run, |record| record.divergence / training),
        ))
        .with(Series::line(
            "outer",
            curve(run, |record| record.outer_error / unseen),
        ));
    let lowest = run
        .history
        .iter()
        .skip(1)
        .min_by(|a, b| a.outer_error.total_cmp(&b.outer_error));
    let lowest = lowest.map_or(0, |record| record.iteration);
    // With several candidates, the page says which was taken.
    let kept = match run.summary["choice"].is_null() {
        true => format!(
            "; the factors kept are those of iteration {}",
            run.summary["selected_iteration"]
        ),
        false => String::new(),
    };
    Some(Figure {
        name: "held_out".into(),
        title: "Training and outer error".into(),
        caption: format!(
            "The divergence per entry from what the updates saw, and the outer error per entry: from \
             what they did not see. The latter is lowest in iteration {lowest}{kept}."
        ),
        svg: chart.svg(),
        wide: false,
    })
}

/// Few weights, one by one.
fn lambda_of_each(run: &RunRecords) -> Figure {
    let most = run.groups.iter().map(|(_, weights)| weights.len()).max();
    let most = most.unwrap_or(1);
    let mut chart = Chart::new(
        if most == 1 { "" } else { "weight" },
        "λ",
        Scale::Logarithmic,
    );
    for (name, weights) in &run.groups {
        let points = weights.iter().enumerate();
        // A single weight is the same for all.
        let points = match weights.len() {
            1 => (0..most)
                .map(|place| (place as f64, weights[[0, 0]]))
                .collect(),
            _ => points
                .map(|(place, weight)| (place as f64, *weight))
                .collect(),
        };
        chart = chart.with(Series::line(name.as_str(), points));
    }
    let ticks = (1..=most).map(|place| place.to_string()).collect();
    Figure {
        name: "lambda_weights".into(),
        title: "λ of each penalty".into(),
        caption: "The weights that were kept, on a logarithmic scale that leaves out zeros; one \
                  point per component where each has its own."
            .into(),
        svg: chart.with_ticks(ticks).svg(),
        wide: false,
    }
}

fn lambda_change(run: &RunRecords) -> Figure {
    let pairs: Vec<(f64, f64)> = run
        .lambda_start
        .iter()
        .zip(&run.lambda)
        .map(|(start, end)| (*start, *end))
        .collect();
    let most = pairs
        .iter()
        .fold(0.0f64, |most, (a, b)| most.max(*a).max(*b));
    let chart = Chart::new("λ at the start", "λ at the end", Scale::Linear)
        .with(Series::points("weights", pairs))
        .with(Series::line("unchanged", vec![(0.0, 0.0), (most, most)]));
    Figure {
        name: "lambda_change".into(),
        title: "λ, first and last".into(),
        caption: "One point per weight; points below the line were penalised less and less.".into(),
        svg: chart.svg(),
        wide: false,
    }
}

fn lambda_histogram(run: &RunRecords) -> Figure {
    // A few large λ would squeeze all others into one bin: the last bin takes
    // everything beyond the 98th percentile.
    let mut all: Vec<f64> = run
        .lambda
        .iter()
        .chain(&run.lambda_start)
        .copied()
        .collect();
    all.sort_by(f64::total_cmp);
    let most = all[(all.len() - 1) * 98 / 100];
    let most = if most > 0.0 { most } else { all[all.len() - 1] };
    let bins = |values: &Array2<f64>| {
        let mut counts = [0usize; BINS];
        for value in values {
            let bin = (value / most * BINS as f64) as usize;
            counts[bin.min(BINS - 1)] += 1;
        }
        let point = |(bin, count): (usize, &usize)| (bin as f64, *count as f64);
        counts.iter().enumerate().map(point).collect::<Vec<_>>()
    };
    // Every fourth bin is named; more names would run into each other.
    let named = |bin: usize| bin % 4 == 1;
    let middle = |bin: usize| short((bin as f64 + 0.5) * most / BINS as f64);
    let ticks = (0..BINS)
        .map(|bin| {
            if named(bin) {
                middle(bin)
            } else {
                String::new()
            }
        })
        .collect();
    let chart = Chart::new("λ", "weights", Scale::Linear)
        .with(Series::bars("at the start", bins(&run.lambda_start)))
        .with(Series::bars("at the end", bins(&run.lambda)))
        .with_ticks(ticks);
    Figure {
        name: "lambda_histogram".into(),
        title: "Distribution of λ".into(),
        caption: "How many weights are of about this size; the last bin holds all larger ones."
            .into(),
        svg: chart.svg(),
        wide: false,
    }
}

fn lambda_course(run: &RunRecords) -> Figure {
    let chart = Chart::new("iteration", "λ", Scale::Logarithmic)
        .with(Series::line(
            "largest",
            curve(run, |record| record.lambda_max),
        ))
        .with(Series::line(
            "median",
            curve(run, |record| record.lambda_median),
        ))
        .with(Series::line(
            "smallest",
            curve(run, |record| record.lambda_min),
        ));
    Figure {
        name: "lambda_course".into(),
        title: "λ on its way".into(),
        caption: "Smallest, median and largest λᵢ in each iteration, on a logarithmic scale that \
                  leaves out zeros."
            .into(),
        svg: chart.svg(),
        wide: false,
    }
}

fn hypergradient(run: &RunRecords) -> Figure {
    let norms = curve(run, |record| record.hypergradient_norm);
    let chart =
        Chart::new("iteration", "‖dE/dλ‖", Scale::Logarithmic).with(Series::line("", norms));
    Figure {
        name: "hypergradient".into(),
        title: "Hypergradient".into(),
        caption: "Its Euclidean norm over all rows; zero would mean that no λᵢ wants to move."
            .into(),
        svg: chart.svg(),
        wide: false,
    }
}

fn sparsity(run: &RunRecords) -> Figure {
    let share = |signal: ArrayView1<f64>| {
        let largest = signal.iter().copied().fold(0.0, f64::max);
        let small = signal.iter().filter(|entry| **entry <= 1e-3 * largest);
        100.0 * small.count() as f64 / signal.len() as f64
    };
    let bars = |matrix: &Array2<f64>, axis| {
        let shares = matrix.axis_iter(axis).map(share).enumerate();
        shares.map(|(k, share)| (k as f64, share)).collect()
    };
    let ticks = (1..=run.w.ncols()).map(|k| k.to_string()).collect();
    let chart = Chart::new(
        "component",
        "entries that are almost zero, %",
        Scale::Linear,
    )
    .with(Series::bars("columns of W", bars(&run.w, Axis(1))))
    .with(Series::bars("rows of H", bars(&run.h, Axis(0))))
    .with_ticks(ticks);
    Figure {
        name: "sparsity".into(),
        title: "Sparsity".into(),
        caption: "Entries below a thousandth of their signal's largest.".into(),
        svg: chart.svg(),
        wide: false,
    }
}

fn signals_of_w(run: &RunRecords) -> Figure {
    let columns = run.w.t().to_owned();
    let pictures = shape_of(run, "shape-w", run.w.nrows()).map(|shape| pictures(&columns, shape));
    Figure {
        name: "w_columns".into(),
        title: "Columns of W".into(),
        caption: match &pictures {
            Some(_) => "Each component as a picture of the rows of X, from 0 to its maximum.",
            None => "Each component's signal over the rows of X, scaled to its maximum.",
        }
        .into(),
        wide: pictures.is_some(),
        svg: pictures.unwrap_or_else(|| signals(&columns, "row of X")),
    }
}

fn signals_of_h(run: &RunRecords) -> Figure {
    let pictures = shape_of(run, "shape-h", run.h.ncols()).map(|shape| pictures(&run.h, shape));
    Figure {
        name: "h_rows".into(),
        title: "Rows of H".into(),
        caption: match &pictures {
            Some(_) => "Each component as a picture of the columns of X, from 0 to its maximum.",
            None => "Each component's weights over the columns of X, scaled to their maximum.",
        }
        .into(),
        wide: pictures.is_some(),
        svg: pictures.unwrap_or_else(|| signals(&run.h, "column of X")),
    }
}

/// The shape of pictures of so many pixels that the settings name. (A summary may have been
/// edited.)
fn shape_of(run: &RunRecords, setting: &str, pixels: usize) -> Option<[usize; 2]> {
    let text = run.summary["settings"][setting].as_str()?;
    let (height, width) = text.split_once(['x', '×'])?;
    let (height, width): (usize, usize) = (height.parse().ok()?, width.parse().ok()?);
    (height.checked_mul(width) == Some(pixels)).then_some([height, width])
}

fn pictures(components: &Array2<f64>, shape: [usize; 2]) -> String {
    Maps::of_rows(components, shape).svg()
}

/// One strip per signal, or a heat map where strips would be too many.
fn signals(signals: &Array2<f64>, x_label: &str) -> String {
    let (count, length) = signals.dim();
    if count > CURVES_AT_MOST || length > LONGEST_CURVE {
        return HeatMap {
            values: signals.clone(),
            row_names: (1..=count).map(|k| k.to_string()).collect(),
            x_label: x_label.into(),
        }
        .svg();
    }
    strips(signals, x_label).svg()
}

/// Signals above each other, each scaled to its maximum.
pub(super) fn strips(signals: &Array2<f64>, x_label: &str) -> Chart {
    let count = signals.nrows();
    let mut chart = Chart::new(x_label, "component", Scale::Linear);
    chart.whole_y = Some(count);
    chart.size = (520, 60 + 64 * count as u32);
    for (k, signal) in signals.rows().into_iter().enumerate() {
        let largest = signal.iter().copied().fold(0.0, f64::max);
        let scale = if largest > 0.0 { 0.9 / largest } else { 0.0 };
        // Stacked upwards, each on the line of its number.
        let floor = (k + 1) as f64;
        let points = signal.iter().enumerate();
        let points = points.map(|(i, value)| (i as f64, floor + scale * value));
        let mut series = Series::line("", points.collect());
        series.values = Some(signal.to_vec());
        chart = chart.with(series);
    }
    chart
}

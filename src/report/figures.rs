//! The figures of a run, from its folder.

use ndarray::{Array2, ArrayView1, Axis};

use super::signals::found;
use super::{RunRecords, lambda};
use crate::plot::{Chart, Scale, Series};
use crate::solver::Record;

/// A figure with title and caption.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// File name without ending.
    pub name: String,
    /// Heading.
    pub title: String,
    /// The caption.
    pub caption: String,
    /// The picture.
    pub svg: String,
    /// The parts of the figure, if the page should arrange them over its whole width.
    pub tiles: Vec<String>,
}

/// The names of figures of a run.
const FIGURES: [&str; 10] = [
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

/// Returns true for the name of a figure of a run. Those of further penalties have a number.
pub(super) fn is_figure(name: &str) -> bool {
    let base = match name.rsplit_once('_') {
        Some((base, number)) if number.parse::<usize>().is_ok() => base,
        _ => name,
    };
    FIGURES.contains(&base)
}

/// All figures of a run, in the order of the report. Those of the components come first.
pub(super) fn figures(run: &RunRecords) -> Vec<Figure> {
    let mut figures = found(run);
    figures.push(convergence(run));
    figures.extend(held_out(run));
    figures.extend(lambda::figures(run));
    let moved = |record: &Record| record.hypergradient_norm > 0.0;
    if run.history.iter().any(moved) {
        figures.push(hypergradient(run));
    }
    figures.extend(sparsity(run));
    figures
}

/// One point per iteration.
pub(super) fn curve(run: &RunRecords, y: impl Fn(&Record) -> f64) -> Vec<(f64, f64)> {
    let point = |record: &Record| (record.iteration as f64, y(record));
    run.history.iter().map(point).collect()
}

fn convergence(run: &RunRecords) -> Figure {
    // (Runs of older versions do not have the number of entries.)
    let (entries, unit) = match run.training_entries() {
        Some(entries) => (entries, "per entry"),
        None => (1.0, "sum over all entries"),
    };
    let divergence = curve(run, |record| record.divergence / entries);
    let objective = curve(run, |record| record.objective / entries);
    let penalised = divergence != objective;
    let (name, caption) = match penalised {
        true => (
            "divergence",
            "The divergence D(X, WH), and the objective in each iteration: the divergence plus all \
             penalties, each times its λ. The objective may rise where λ does.",
        ),
        false => ("", "The divergence D(X, WH) in each iteration."),
    };
    let mut chart = Chart::new("iteration", unit, Scale::Logarithmic);
    chart = chart.with(Series::line(name, divergence));
    if penalised {
        chart = chart.with(Series::line("objective", objective));
    }
    let tuned = match run.choice {
        Some(_) => " (The run that tuned λ.)",
        None => "",
    };
    Figure {
        name: "convergence".into(),
        title: "Convergence".into(),
        caption: format!("{caption}{tuned}"),
        svg: chart.svg(),
        tiles: Vec::new(),
    }
}

/// Errors per entry on fitted and held-out data. `None` if nothing was held out.
fn held_out(run: &RunRecords) -> Option<Figure> {
    let share = &run.summary["held_out"];
    let training = share["training_weight"].as_f64()?;
    let unseen = share["held_out_weight"].as_f64()?;
    let outer = curve(run, |record| record.outer_error / unseen);
    // The outer error of thinned counts has another scale than the divergence: it has the noise of
    // few counts.
    let is_thinned = run.summary["outer"]
        .as_str()
        .is_some_and(|outer| outer.starts_with("thinned"));
    let chart = Chart::new("iteration", "per entry", Scale::Logarithmic);
    let (chart, title, shown) = match is_thinned {
        true => (
            chart.with(Series::line("", outer)),
            "Outer error",
            "The outer error: the error on the counts that the updates did not see. They are few and \
             have much noise, so it is above the divergence. It",
        ),
        false => (
            chart
                .with(Series::line(
                    "divergence",
                    curve(run, |record| record.divergence / training),
                ))
                .with(Series::line("outer error", outer)),
            "Divergence and outer error",
            "The divergence on the entries that the updates saw, and the outer error on those that \
             they did not see. The outer error",
        ),
    };
    let lowest = run
        .history
        .iter()
        .min_by(|a, b| a.outer_error.total_cmp(&b.outer_error));
    let lowest = lowest.map_or(0, |record| record.iteration);
    // With several candidates, the page names the winner.
    let kept = match run.summary["choice"].is_null() {
        true => format!(
            "; the factors kept are those of iteration {}",
            run.summary["selected_iteration"]
        ),
        false => String::new(),
    };
    Some(Figure {
        name: "held_out".into(),
        title: title.into(),
        caption: format!("{shown} is lowest in iteration {lowest}{kept}."),
        svg: chart.svg(),
        tiles: Vec::new(),
    })
}

fn hypergradient(run: &RunRecords) -> Figure {
    let norms = curve(run, |record| record.hypergradient_norm);
    // (The splits of practical take turns, from iteration 1 on. Records of older versions do not
    // say how many there are.)
    let splits = run.choice.as_ref().map_or(1, |choice| choice.splits.max(1));
    let mut chart = Chart::new("iteration", "‖dE/dλ‖", Scale::Logarithmic);
    for split in 0..splits {
        let of_split = |(iteration, _): &&(f64, f64)| {
            splits == 1 || (*iteration > 0.0 && (*iteration as usize - 1) % splits == split)
        };
        let points = norms.iter().filter(of_split).copied().collect();
        let name = match splits {
            1 => String::new(),
            _ => format!("split {}", split + 1),
        };
        chart = chart.with(Series::line(name, points));
    }
    Figure {
        name: "hypergradient".into(),
        title: "Hypergradient".into(),
        caption: format!(
            "The Euclidean norm of the derivative of the outer error by all λ. At zero, no small \
             change of λ would lower the outer error.{}",
            match splits {
                1 => "",
                _ => " The splits of the data take turns, and each has its own derivative.",
            }
        ),
        svg: chart.svg(),
        tiles: Vec::new(),
    }
}

/// `None` if no entry is almost zero.
fn sparsity(run: &RunRecords) -> Option<Figure> {
    let share = |signal: ArrayView1<f64>| {
        let largest = signal.iter().copied().fold(0.0, f64::max);
        let small = signal.iter().filter(|entry| **entry <= 1e-3 * largest);
        100.0 * small.count() as f64 / signal.len() as f64
    };
    let bars = |matrix: &Array2<f64>, axis| -> Vec<(f64, f64)> {
        let shares = matrix.axis_iter(axis).map(share).enumerate();
        shares.map(|(k, share)| (k as f64, share)).collect()
    };
    let (of_w, of_h) = (bars(&run.w, Axis(1)), bars(&run.h, Axis(0)));
    if of_w.iter().chain(&of_h).all(|(_, share)| *share == 0.0) {
        return None;
    }
    let ticks = (1..=run.w.ncols()).map(|k| k.to_string()).collect();
    let chart = Chart::new("component", "almost zero, %", Scale::Linear)
        .with(Series::bars("columns of W", of_w))
        .with(Series::bars("rows of H", of_h))
        .with_ticks(ticks);
    Some(Figure {
        name: "sparsity".into(),
        title: "Sparsity".into(),
        caption: "Entries below a thousandth of the largest of their column of W or row of H."
            .into(),
        svg: chart.svg(),
        tiles: Vec::new(),
    })
}

//! The figures of a dataset.

use super::Plotted;
use super::claims::letter;
use super::signals::signals;
use crate::error::Result;
use crate::experiment::{
    ActingLambda, Arrangement, Contender, CurvePoint, DatasetResults, Measure, Moment, Protocol,
    TrialRecord,
};
use crate::metrics::{Spread, density, quantile};
use crate::plot::{Chart, Scale, Series, short};
use crate::report::Figure;

/// All figures, in the order of the report.
pub(super) fn figures(results: &DatasetResults, protocol: &Protocol) -> Result<Vec<Plotted>> {
    let paper = PaperFigures::of(results);
    let mut all = vec![
        error_by_iteration(results, protocol, paper.error),
        objective(results, protocol, paper.objective),
        error_by_work(results, protocol),
        error_by_time(results, protocol),
    ];
    let known = results.dataset.true_sparsity.is_some();
    let moments = if known {
        &[Moment::Stopped, Moment::Work][..]
    } else {
        &[]
    };
    for moment in moments {
        for measure in [Measure::SirW, Measure::SirH] {
            let paper = if *moment == Moment::Stopped {
                paper.sir
            } else {
                ""
            };
            all.push(boxes(results, protocol, measure, *moment, paper));
        }
    }
    for measure in [Measure::SparsityW, Measure::SparsityH] {
        all.push(boxes(
            results,
            protocol,
            measure,
            Moment::Stopped,
            paper.sparsity,
        ));
    }
    all.extend([
        lambda_by_row(results, paper.lambda)?,
        lambda_density(results, paper.density)?,
    ]);
    all.push(response(results, Measure::RelativeError, paper.response));
    if known {
        all.push(response(results, Measure::SirW, ""));
    }
    if results.dataset.layout != Arrangement::Unordered {
        all.extend(signals(results)?);
    }
    Ok(all)
}

/// The numbers of the corresponding figures in the paper.
#[derive(Default)]
struct PaperFigures {
    error: &'static str,
    objective: &'static str,
    sir: &'static str,
    response: &'static str,
    lambda: &'static str,
    density: &'static str,
    sparsity: &'static str,
}

impl PaperFigures {
    fn of(results: &DatasetResults) -> Self {
        match letter(results) {
            Some('a') => Self {
                error: "2a",
                objective: "2b",
                sir: "3",
                response: "6",
                lambda: "4a",
                density: "4b",
                sparsity: "5",
            },
            Some('b') => Self {
                error: "7a",
                objective: "7b",
                sir: "7c",
                sparsity: "7d",
                ..Self::default()
            },
            Some('c') => Self {
                error: "8a",
                objective: "8b",
                sir: "8c",
                sparsity: "8d",
                ..Self::default()
            },
            Some('d') => Self {
                sir: "9a",
                sparsity: "9b",
                ..Self::default()
            },
            _ => Self::default(),
        }
    }
}

/// A caption that names the paper's figure, if there is one.
fn caption(text: &str, paper: &str, how: &str) -> String {
    if paper.is_empty() {
        text.into()
    } else {
        format!("{text} The paper's Figure {paper} {how}.")
    }
}

/// Difference of the paper's figure.
const THREE_METHODS: &str = "shows MU, P-MU and AltBi";

fn plotted(name: &str, title: String, caption: String, chart: &Chart) -> Plotted {
    Plotted {
        figure: Figure {
            name: name.into(),
            title,
            caption,
            svg: chart.svg(),
            tiles: Vec::new(),
        },
        csv: chart.csv(),
    }
}

/// The median over starts of a curve.
fn median_curve(
    trials: &[TrialRecord],
    limit: usize,
    x: impl Fn(&CurvePoint) -> f64,
    y: impl Fn(&CurvePoint) -> f64,
) -> Vec<(f64, f64)> {
    // (The curve of a fit that broke down ends too early.)
    let whole = trials.iter().filter(|trial| trial.breakdown.is_none());
    let trials: Vec<&TrialRecord> = whole.collect();
    let shortest = trials.iter().map(|trial| trial.curve.len()).min();
    let at = |index: usize| {
        let mut values: Vec<f64> = trials.iter().map(|trial| y(&trial.curve[index])).collect();
        values.sort_by(f64::total_cmp);
        (x(&trials[0].curve[index]), quantile(&values, 0.5))
    };
    (0..shortest.unwrap_or(0))
        .filter(|index| trials[0].curve[*index].iteration <= limit)
        .map(at)
        .collect()
}

fn curves(
    chart: Chart,
    results: &DatasetResults,
    limit: impl Fn(&Contender) -> usize,
    x: impl Fn(&Contender, &CurvePoint) -> f64,
    y: impl Fn(&CurvePoint) -> f64,
) -> Chart {
    Contender::compared()
        .iter()
        .fold(chart, |chart, contender| {
            let trials = &results.trials[&contender.name];
            let points = median_curve(trials, limit(contender), |at| x(contender, at), &y);
            chart.with(Series::line(&contender.label, points))
        })
}

fn error_by_iteration(results: &DatasetResults, protocol: &Protocol, paper: &str) -> Plotted {
    let chart = Chart::new("iteration", "relative error", Scale::Logarithmic);
    let last = protocol.max_iterations;
    let chart = curves(
        chart,
        results,
        |_| last,
        |_, at| at.iteration as f64,
        |at| at.relative_error,
    );
    let mut text = String::from(
        "D(X, WH) / D(X, mean of X), the median over starts, without the stopping rule. An \
         iteration of MU and P-MU has one update of W, that of the others T.",
    );
    // Both errors are D divided by a number that depends only on X.
    let first = |measure| results.values("altbi", Moment::Stopped, measure)[0];
    let factor = first(Measure::PaperRelativeError) / first(Measure::RelativeError);
    text += &format!(" In the paper's definition multiply by {}.", short(factor));
    let how = "shows MU, P-MU and AltBi, in that definition";
    let title = "Relative error by iteration".into();
    plotted("error_iteration", title, caption(&text, paper, how), &chart)
}

fn objective(results: &DatasetResults, protocol: &Protocol, paper: &str) -> Plotted {
    let chart = Chart::new("iteration", "objective per entry", Scale::Logarithmic);
    let last = protocol.max_iterations;
    let [n, m] = results.dataset.shape;
    let entries = (n * m) as f64;
    let chart = curves(
        chart,
        results,
        |_| last,
        |_, at| at.iteration as f64,
        |at| at.objective / entries,
    );
    let text = "D(X, WH) + Σ λᵢ r(wᵢ), divided by the number of entries of X, the median over \
                starts. The methods do not minimise the same function: each has its own λ.";
    let title = "Objective by iteration".into();
    let text = caption(text, paper, THREE_METHODS);
    plotted("objective_iteration", title, text, &chart)
}

fn error_by_work(results: &DatasetResults, protocol: &Protocol) -> Plotted {
    let chart = Chart::new("updates of W", "relative error", Scale::Logarithmic);
    let updates = |contender: &Contender| contender.updates_of_w(protocol);
    let chart = curves(
        chart,
        results,
        |contender| protocol.work() / updates(contender),
        |contender, at| (updates(contender) * at.iteration) as f64,
        |at| at.relative_error,
    );
    let text = "The same errors against the number of updates of W that were spent on them.";
    let title = "Relative error by work".into();
    plotted("error_work", title, text.into(), &chart)
}

fn error_by_time(results: &DatasetResults, protocol: &Protocol) -> Plotted {
    let mut chart = Chart::new("seconds", "relative error", Scale::Logarithmic);
    let last = |name: &str| {
        let seconds = results.values(name, Moment::Time, Measure::Seconds);
        Spread::of(&seconds).map_or(f64::INFINITY, |spread| spread.median)
    };
    let end = last("altbi");
    for contender in Contender::compared() {
        let trials = &results.trials[&contender.name];
        let errors = median_curve(trials, usize::MAX, |_| 0.0, |at| at.relative_error);
        let seconds = median_curve(trials, usize::MAX, |_| 0.0, |at| at.seconds);
        let points = seconds.iter().zip(&errors).map(|(x, y)| (x.1, y.1));
        let points = points.filter(|(seconds, _)| *seconds <= end).collect();
        chart = chart.with(Series::line(&contender.label, points));
    }
    let text = format!(
        "Medians over starts of error and time, up to the time of AltBi's {} iterations. Seconds \
         depend on the machine and on what else it does; every fit ran on one thread, and every \
         method evaluates the divergence in every iteration.",
        protocol.max_iterations
    );
    plotted("error_time", "Relative error by time".into(), text, &chart)
}

/// One box per contender.
fn boxes(
    results: &DatasetResults,
    protocol: &Protocol,
    measure: Measure,
    moment: Moment,
    paper: &str,
) -> Plotted {
    let mut chart = Chart::new("method", &measure.to_string(), Scale::Linear);
    let mut ticks = Vec::new();
    for (place, contender) in Contender::compared().iter().enumerate() {
        let values = results.values(&contender.name, moment, measure);
        let points = values.iter().map(|value| (place as f64, *value)).collect();
        chart = chart.with(Series::boxes("", points));
        ticks.push(contender.label.clone());
    }
    let chart = chart.with_ticks(ticks);
    let (what, truth) = match (measure, results.dataset.true_sparsity) {
        (Measure::SirW, _) => ("SIR of W", None),
        (Measure::SirH, _) => ("SIR of H", None),
        (Measure::SparsityW, truth) => ("Sparsity of W", truth.map(|[w, _]| w)),
        (_, truth) => ("Sparsity of H", truth.map(|[_, h]| h)),
    };
    let when = match moment {
        Moment::Stopped => "at the stopping rule",
        _ => "at equal work",
    };
    let mut text = format!(
        "Over {} starts, {}. {}",
        protocol.runs,
        moment.describe(protocol),
        match protocol.runs < 5 {
            true => "One dot per start.",
            false => "Boxes: quartiles and median; dots: outliers.",
        }
    );
    if let Some(truth) = truth {
        text += &format!(" In truth {truth:.1} %.");
    }
    plotted(
        &format!("{}_{}", measure.name(), moment.name()),
        format!("{what} {when}"),
        caption(&text, paper, THREE_METHODS),
        &chart,
    )
}

/// P-MU as a function of λ, beside the methods without a λ to choose.
fn response(results: &DatasetResults, measure: Measure, paper: &str) -> Plotted {
    let scale = match measure {
        Measure::RelativeError => Scale::Logarithmic,
        _ => Scale::Linear,
    };
    let mut chart = Chart::new("method, or λ of P-MU", &measure.to_string(), scale);
    let compared = Contender::compared();
    let own = |name: &str| compared.iter().find(|one| one.name == name);
    let mut shown: Vec<(String, String, usize)> = Vec::new();
    shown.push(("MU".into(), "mu".into(), 0));
    for one in Contender::responses() {
        let lambda = one.lambda.expect("P-MU has one");
        shown.push((format!("{lambda:.1}"), one.name, 1));
    }
    for (name, colour) in [("mu-t", 2), ("frozen", 3), ("altbi", 4)] {
        let label = own(name).map_or(name.into(), |one| one.label.clone());
        shown.push((label.replace(" λ", ""), name.into(), colour));
    }
    // A series per colour, in the order of the other figures.
    for colour in 0..compared.len() {
        let mut points = Vec::new();
        for (place, (_, name, _)) in shown.iter().enumerate().filter(|(_, s)| s.2 == colour) {
            let values = results.values(name, Moment::Stopped, measure);
            points.extend(values.iter().map(|value| (place as f64, *value)));
        }
        chart = chart.with(Series::boxes("", points));
    }
    let ticks = shown.into_iter().map(|(label, ..)| label).collect();
    let chart = chart.with_ticks(ticks);
    let (name, title) = match measure {
        Measure::RelativeError => ("response_error", "Response of the error to λ"),
        _ => ("response_sir_w", "Response of the SIR of W to λ"),
    };
    let text = "P-MU with λ fixed from 0.1 to 1, at the stopping rule, beside the methods that \
                have no λ to choose.";
    let text = caption(text, paper, THREE_METHODS);
    plotted(name, title.into(), text, &chart)
}

/// Difference of the paper's figures of λ.
const ONE_START: &str = "shows it for one start";

fn lambda_by_row(results: &DatasetResults, paper: &str) -> Result<Plotted> {
    let start = results.middle_start();
    let rows = results.acting_lambda(start)?;
    let points = |value: fn(&ActingLambda) -> f64| {
        let point = |lambda: &ActingLambda| ((lambda.row + 1) as f64, value(lambda));
        rows.iter().map(point).collect()
    };
    let chart = Chart::new("row of X", "λ", Scale::Linear)
        .with(Series::points(
            "at the start",
            points(|lambda| lambda.first),
        ))
        .with(Series::points("at the end", points(|lambda| lambda.last)));
    let text = format!(
        "λᵢ of AltBi at the start and at the stopping rule, from start {start}, the middle one. {}",
        LEFT_OUT
    );
    let text = caption(&text, paper, ONE_START);
    Ok(plotted("lambda_rows", "λ of each row".into(), text, &chart))
}

/// The rows that are missing in figures of λ.
const LEFT_OUT: &str = "Rows of zeros in W, whose λᵢ does nothing, are left out.";

/// Number of points of a density curve.
const PLACES: usize = 161;

fn lambda_density(results: &DatasetResults, paper: &str) -> Result<Plotted> {
    let mut all = [Vec::new(), Vec::new()];
    for trial in &results.trials["altbi"] {
        for lambda in results.acting_lambda(trial.start)? {
            all[0].push(lambda.first);
            all[1].push(lambda.last);
        }
    }
    let mut sorted = all.concat();
    sorted.sort_by(f64::total_cmp);
    let to = match sorted.as_slice() {
        [] => 1.0,
        sorted => quantile(sorted, 0.98),
    };
    let to = if to > 0.0 { to } else { 1.0 };
    let mut chart = Chart::new("λ", "density", Scale::Linear);
    for (name, values) in ["at the start", "at the end"].iter().zip(&all) {
        chart = chart.with(Series::line(*name, density(&thinned(values), to, PLACES)));
    }
    let text = format!(
        "Distribution of AltBi's λᵢ over all rows and starts, at the start and at the stopping \
         rule, up to the 98th percentile. {LEFT_OUT}"
    );
    let text = caption(&text, paper, ONE_START);
    let title = "Density of λ".into();
    Ok(plotted("lambda_density", title, text, &chart))
}

/// An even sample of at most some thousands of values. More do not change a visible curve.
fn thinned(values: &[f64]) -> Vec<f64> {
    let every = values.len().div_ceil(5000).max(1);
    values.iter().step_by(every).copied().collect()
}

//! The pictures of a dataset.

use super::Plotted;
use super::signals::signals;
use crate::error::Result;
use crate::experiment::{
    Contender, CurvePoint, DatasetResults, Layout, Measure, Moment, Protocol, TrialRecord,
};
use crate::metrics::{density, quantile};
use crate::plot::{Chart, Scale, Series};
use crate::report::Figure;

/// All pictures, in the order of the report.
pub(super) fn figures(results: &DatasetResults, protocol: &Protocol) -> Result<Vec<Plotted>> {
    let paper = PaperFigures::of(results);
    let mut all = vec![
        error_by_iteration(results, protocol, paper.error),
        objective(results, protocol, paper.objective),
        error_by_work(results, protocol),
    ];
    if results.dataset.true_sparsity.is_some() {
        for moment in [Moment::Stopped, Moment::Work] {
            let paper = if moment == Moment::Stopped {
                paper.sir
            } else {
                ""
            };
            for measure in [Measure::SirW, Measure::SirH] {
                all.push(boxes(results, protocol, measure, moment, paper));
            }
        }
    }
    all.push(response(results, Measure::RelativeError, paper.response));
    if results.dataset.true_sparsity.is_some() {
        all.push(response(results, Measure::SirW, ""));
    }
    all.extend([
        lambda_by_row(results, paper.lambda)?,
        lambda_density(results, paper.density)?,
    ]);
    for measure in [Measure::SparsityW, Measure::SparsityH] {
        all.push(boxes(
            results,
            protocol,
            measure,
            Moment::Stopped,
            paper.sparsity,
        ));
    }
    if results.dataset.layout != Layout::Unordered {
        all.extend(signals(results, paper.signals)?);
    }
    Ok(all)
}

/// Where the paper shows the same.
#[derive(Default)]
struct PaperFigures {
    error: &'static str,
    objective: &'static str,
    sir: &'static str,
    response: &'static str,
    lambda: &'static str,
    density: &'static str,
    sparsity: &'static str,
    signals: &'static str,
}

impl PaperFigures {
    fn of(results: &DatasetResults) -> Self {
        match results.dataset.name.as_bytes().first() {
            Some(b'a') => Self {
                error: "2a",
                objective: "2b",
                sir: "3",
                response: "6",
                lambda: "4a",
                density: "4b",
                sparsity: "5",
                signals: "",
            },
            Some(b'b') => Self {
                error: "7a",
                objective: "7b",
                sir: "7c",
                sparsity: "7d",
                signals: "1a",
                ..Self::default()
            },
            Some(b'c') => Self {
                error: "8a",
                objective: "8b",
                sir: "8c",
                sparsity: "8d",
                signals: "1b",
                ..Self::default()
            },
            Some(b'd') => Self {
                sir: "9a",
                sparsity: "9b",
                signals: "10",
                ..Self::default()
            },
            _ => Self::default(),
        }
    }
}

/// "…; the paper's Figure 3."
pub(super) fn caption(text: &str, paper: &str) -> String {
    if paper.is_empty() {
        text.into()
    } else {
        format!("{text} The paper's Figure {paper} shows this for MU, P-MU and AltBi.")
    }
}

fn plotted(name: &str, title: String, caption: String, chart: &Chart) -> Plotted {
    Plotted {
        figure: Figure {
            name: name.into(),
            title,
            caption,
            svg: chart.svg(),
            wide: false,
        },
        csv: chart.csv(),
    }
}

/// The median over starts of what a fit shows on its way.
fn median_curve(
    trials: &[TrialRecord],
    limit: usize,
    x: impl Fn(&CurvePoint) -> f64,
    y: impl Fn(&CurvePoint) -> f64,
) -> Vec<(f64, f64)> {
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
    let text = "D(X, WH) / D(X, mean of X), the median over starts, without the stopping rule. \
                An iteration of MU and P-MU has one update of W, that of the others T.";
    let title = "Relative error by iteration".into();
    plotted("error_iteration", title, caption(text, paper), &chart)
}

fn objective(results: &DatasetResults, protocol: &Protocol, paper: &str) -> Plotted {
    let chart = Chart::new("iteration", "objective", Scale::Logarithmic);
    let last = protocol.max_iterations;
    let chart = curves(
        chart,
        results,
        |_| last,
        |_, at| at.iteration as f64,
        |at| at.objective,
    );
    let text = "D(X, WH) + Σ λᵢ r(wᵢ), the median over starts. The methods do not minimise the \
                same function: each has its own λ.";
    let title = "Objective by iteration".into();
    plotted("objective_iteration", title, caption(text, paper), &chart)
}

fn error_by_work(results: &DatasetResults, protocol: &Protocol) -> Plotted {
    let chart = Chart::new("updates of W", "relative error", Scale::Logarithmic);
    let updates = |contender: &Contender| match contender.name.as_str() {
        "mu" | "p-mu" => 1,
        _ => protocol.bunch,
    };
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

/// One box per contender.
fn boxes(
    results: &DatasetResults,
    protocol: &Protocol,
    measure: Measure,
    moment: Moment,
    paper: &str,
) -> Plotted {
    let mut chart = Chart::new("", &measure.to_string(), Scale::Linear);
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
        "Over {} starts, {}. Boxes: quartiles and median; dots: outliers.",
        protocol.runs,
        moment.describe(protocol)
    );
    if let Some(truth) = truth {
        text += &format!(" In truth {truth:.1} %.");
    }
    plotted(
        &format!("{}_{}", measure.name(), moment.name()),
        format!("{what} {when}"),
        caption(&text, paper),
        &chart,
    )
}

/// P-MU over λ, between the methods without a λ to choose.
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
    // A series per colour, in the order of the other pictures.
    for colour in 0..compared.len() {
        let mut points = Vec::new();
        for (place, (_, name, _)) in shown.iter().enumerate().filter(|(_, s)| s.2 == colour) {
            let values = results.values(name, Moment::Stopped, measure);
            points.extend(values.iter().map(|value| (place as f64, *value)));
        }
        chart = chart.with(Series::boxes("", points));
    }
    let ticks = shown.into_iter().map(|(label, ..)| label).collect();
    let chart = chart.sized(620, 320).with_ticks(ticks);
    let (name, title) = match measure {
        Measure::RelativeError => ("response_error", "Response of the error to λ"),
        _ => ("response_sir_w", "Response of the SIR of W to λ"),
    };
    let text = "P-MU with λ fixed from 0.1 to 1, at the stopping rule, beside the methods that \
                have no λ to choose.";
    plotted(name, title.into(), caption(text, paper), &chart)
}

fn lambda_by_row(results: &DatasetResults, paper: &str) -> Result<Plotted> {
    let start = results.middle_start();
    let [first, last] = results.lambda(start)?;
    let points = |lambda: &ndarray::Array2<f64>| {
        let rows = lambda.iter().enumerate();
        rows.map(|(i, value)| (i as f64, *value)).collect()
    };
    let chart = Chart::new("row of W", "λ", Scale::Linear)
        .with(Series::points("at the start", points(&first)))
        .with(Series::points("at the end", points(&last)));
    let text =
        format!("λᵢ of AltBi, first and last, from start {start} (the middle one by SIR of W).");
    let text = if paper.is_empty() {
        text
    } else {
        format!("{text} The paper's Figure {paper} shows this for one start.")
    };
    Ok(plotted("lambda_rows", "λ of each row".into(), text, &chart))
}

/// Places of a density curve.
const PLACES: usize = 161;

fn lambda_density(results: &DatasetResults, paper: &str) -> Result<Plotted> {
    let mut all = [Vec::new(), Vec::new()];
    for trial in &results.trials["altbi"] {
        for (values, lambda) in all.iter_mut().zip(results.lambda(trial.start)?) {
            values.extend(lambda);
        }
    }
    let mut sorted = all.concat();
    sorted.sort_by(f64::total_cmp);
    let to = quantile(&sorted, 0.98);
    let to = if to > 0.0 { to } else { 1.0 };
    let mut chart = Chart::new("λ", "density", Scale::Linear);
    for (name, values) in ["at the start", "at the end"].iter().zip(&all) {
        chart = chart.with(Series::line(*name, density(&thinned(values), to, PLACES)));
    }
    let text = "Distribution of AltBi's λᵢ over all rows and starts, up to its 98th percentile.";
    let text = if paper.is_empty() {
        text.into()
    } else {
        format!("{text} The paper's Figure {paper} shows this for one start.")
    };
    let title = "Density of λ".into();
    Ok(plotted("lambda_density", title, text, &chart))
}

/// At most some thousands of them, evenly: more do not change a curve that is seen.
fn thinned(values: &[f64]) -> Vec<f64> {
    let every = values.len().div_ceil(5000).max(1);
    values.iter().step_by(every).copied().collect()
}

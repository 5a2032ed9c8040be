//! Tables of numbers, as files.

use super::Chapter;
use crate::experiment::{Contender, Measure, Moment, Results};

/// Lines of text from rows of fields.
fn lines(head: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in std::iter::once(head).chain(rows) {
        writer.write_record(row).expect("writing to memory");
    }
    let bytes = writer.into_inner().expect("writing to memory");
    String::from_utf8(bytes).expect("made of text")
}

fn head(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Every fit at every moment.
pub(super) fn fits(results: &Results) -> String {
    let mut names = head(&["dataset", "contender", "start", "moment"]);
    names.extend(Measure::ALL.map(|measure| measure.name().to_owned()));
    let mut rows = Vec::new();
    for dataset in &results.datasets {
        for contender in Contender::all() {
            for trial in &dataset.trials[&contender.name] {
                for (moment, measures) in &trial.moments {
                    let mut row = vec![
                        dataset.dataset.name.clone(),
                        contender.name.clone(),
                        trial.start.to_string(),
                        moment.name().to_owned(),
                    ];
                    row.extend(Measure::ALL.map(|measure| {
                        let value = measure.of(measures);
                        value.map_or(String::new(), |value| value.to_string())
                    }));
                    rows.push(row);
                }
            }
        }
    }
    lines(names, rows.into_iter())
}

/// Means, deviations and quartiles over starts.
pub(super) fn summary(results: &Results) -> String {
    let names = head(&[
        "dataset",
        "contender",
        "moment",
        "measure",
        "count",
        "mean",
        "deviation",
        "least",
        "lower_quartile",
        "median",
        "upper_quartile",
        "most",
    ]);
    let mut rows = Vec::new();
    for dataset in &results.datasets {
        for contender in Contender::all() {
            for moment in Moment::ALL {
                for measure in Measure::ALL {
                    let Some(spread) = dataset.spread(&contender.name, moment, measure) else {
                        continue;
                    };
                    let mut row = head(&[
                        &dataset.dataset.name,
                        &contender.name,
                        moment.name(),
                        measure.name(),
                    ]);
                    row.push(spread.count.to_string());
                    row.extend(
                        [
                            spread.mean,
                            spread.deviation,
                            spread.least,
                            spread.lower_quartile,
                            spread.median,
                            spread.upper_quartile,
                            spread.most,
                        ]
                        .map(|value| value.to_string()),
                    );
                    rows.push(row);
                }
            }
        }
    }
    lines(names, rows.into_iter())
}

/// AltBi minus each rival.
pub(super) fn comparisons(chapters: &[Chapter<'_>]) -> String {
    let names = head(&[
        "dataset",
        "rival",
        "moment",
        "measure",
        "mean_difference",
        "standard_error",
        "median_difference",
        "p",
        "p_holm",
        "conclusion",
    ]);
    let all = chapters.iter().flat_map(|chapter| &chapter.comparisons);
    let rows = all.map(|one| {
        let measure = match one.measure {
            Measure::RelativeError => "log10_relative_error",
            other => other.name(),
        };
        let mut row = head(&[&one.dataset, &one.rival.name, one.moment.name(), measure]);
        let difference = one.difference;
        row.extend(
            [
                difference.mean,
                difference.standard_error,
                difference.median,
                difference.p,
                one.corrected_p,
            ]
            .map(|value| value.to_string()),
        );
        row.push(one.conclusion().to_string());
        row
    });
    lines(names, rows)
}

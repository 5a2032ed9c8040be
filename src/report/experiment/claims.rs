//! The paper's claims about a benchmark, beside the results of these fits.

use crate::error::Result;
use crate::experiment::{Contender, DatasetResults, Measure, Moment};

/// A claim of the paper, if there is one, and our result.
pub(super) struct Claim {
    pub(super) paper: Option<&'static str>,
    pub(super) found: String,
}

/// The paper's Table 1: mean SIR of W and H on benchmark A.
const TABLE_1: [(&str, f64, f64); 3] = [
    ("mu", 16.7325, 19.2147),
    ("p-mu", 16.7325, 19.2147),
    ("altbi", 21.3388, 23.3308),
];

/// The paper's numbers for a contender on benchmark A: [SIR of W, SIR of H].
pub(super) fn table_1(contender: &str) -> Option<[f64; 2]> {
    let row = TABLE_1.iter().find(|(name, ..)| *name == contender);
    row.map(|(_, w, h)| [*w, *h])
}

/// The paper's benchmark of a dataset.
pub(super) fn letter(results: &DatasetResults) -> Option<char> {
    let name = results.dataset.name.as_str();
    let (first, rest) = name.split_at(1);
    let is_one = "abcd".contains(first) && (rest.is_empty() || rest.starts_with("-published"));
    first.chars().next().filter(|_| is_one)
}

/// The claims in the order of the page.
pub(super) fn claims(results: &DatasetResults) -> Result<Vec<Claim>> {
    let letter = letter(results);
    let of_a = |text| (letter == Some('a')).then_some(text);
    let mut claims = Vec::new();
    if let Some(found) = sir(results) {
        let paper = match letter {
            Some('a') => Some(
                "AltBi recovers W and H best. Mean SIR of W / H in dB (Table 1): MU 16.73 / 19.21, \
                 P-MU 16.73 / 19.21, AltBi 21.34 / 23.33.",
            ),
            Some(_) => {
                Some("The SIR of AltBi is better than that of MU and P-MU (no numbers are given).")
            }
            None => None,
        };
        claims.push(Claim { paper, found });
    }
    claims.extend([
        Claim {
            paper: of_a(
                "The response of AltBi is better than that of MU and of P-MU with any λ from 0.1 to 1.",
            ),
            found: response(results),
        },
        Claim {
            paper: of_a(
                "The tuned λ is a sparse vector: the peak of its distribution moves from a positive \
                 value towards zero.",
            ),
            found: lambda(results)?,
        },
        Claim {
            paper: of_a("AltBi makes W sparser and leaves the sparsity of H alone."),
            found: sparsity(results),
        },
    ]);
    Ok(claims)
}

/// The mean of a measure at the stopping rule.
fn mean(results: &DatasetResults, contender: &str, measure: Measure) -> Option<f64> {
    let spread = results.spread(contender, Moment::Stopped, measure);
    spread.map(|spread| spread.mean)
}

/// "MU 20.1 / 22.7, …" of two measures.
fn pairs(results: &DatasetResults, measures: [Measure; 2], digits: usize) -> Option<String> {
    let pair = |contender: Contender| {
        let [w, h] = measures.map(|measure| mean(results, &contender.name, measure));
        Some(format!(
            "{} {:.digits$} / {:.digits$}",
            contender.label, w?, h?
        ))
    };
    let all: Option<Vec<String>> = Contender::compared().into_iter().map(pair).collect();
    Some(all?.join(", "))
}

fn sir(results: &DatasetResults) -> Option<String> {
    let pairs = pairs(results, [Measure::SirW, Measure::SirH], 2)?;
    Some(format!("Mean SIR of W / H in dB: {pairs}."))
}

fn response(results: &DatasetResults) -> String {
    let errors = |name: &str| results.values(name, Moment::Stopped, Measure::RelativeError);
    let ours = errors("altbi");
    let lower = |name: &str| {
        let pairs = ours.iter().zip(errors(name));
        pairs.filter(|(ours, theirs)| **ours < *theirs).count()
    };
    let responses = Contender::responses();
    let with_lambda = responses.iter().map(|one| lower(&one.name));
    let (least, most) = with_lambda.fold((usize::MAX, 0), |(least, most), count| {
        (least.min(count), most.max(count))
    });
    let range = if least == most {
        least.to_string()
    } else {
        format!("{least} to {most}")
    };
    format!(
        "AltBi's error is lower than MU's in {1} of {0} starts, lower than P-MU's in {range} of them \
         (depending on λ), and lower than that of MU-T, which has no penalty, in {2}.",
        ours.len(),
        lower("mu"),
        lower("mu-t"),
    )
}

fn lambda(results: &DatasetResults) -> Result<String> {
    let (mut zeros, mut smaller) = (0, 0);
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for trial in &results.trials["altbi"] {
        for lambda in results.acting_lambda(trial.start)? {
            zeros += usize::from(lambda.last == 0.0);
            smaller += usize::from(lambda.last < lambda.first);
            first.push(lambda.first);
            last.push(lambda.last);
        }
    }
    let share = |count: usize| 100.0 * count as f64 / first.len().max(1) as f64;
    let median = |values: &[f64]| {
        let spread = crate::metrics::Spread::of(values);
        spread.map_or(f64::NAN, |spread| spread.median)
    };
    Ok(format!(
        "Over rows and starts, the median of λᵢ is {:.3} at the start and {:.3} at the end; {:.1} % \
         end below where they began, {:.1} % at zero.",
        median(&first),
        median(&last),
        share(smaller),
        share(zeros)
    ))
}

fn sparsity(results: &DatasetResults) -> String {
    let pairs = pairs(results, [Measure::SparsityW, Measure::SparsityH], 1);
    let truth = match results.dataset.true_sparsity {
        Some([w, h]) => format!("; in truth {w:.1} / {h:.1}"),
        None => String::new(),
    };
    let pairs = pairs.unwrap_or_default();
    format!("Entries of W / H that are almost zero, in %: {pairs}{truth}.")
}

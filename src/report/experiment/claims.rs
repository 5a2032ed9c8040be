//! What the paper says about a benchmark, and what these fits say.

use crate::error::Result;
use crate::experiment::{Contender, DatasetResults, Measure, Moment};

/// A sentence of the paper, and the answer.
pub(super) struct Claim {
    pub(super) paper: String,
    pub(super) found: String,
}

/// The paper's Table 1: mean SIR of W and H on benchmark A.
const TABLE_1: [(&str, f64, f64); 3] = [
    ("mu", 16.7325, 19.2147),
    ("p-mu", 16.7325, 19.2147),
    ("altbi", 21.3388, 23.3308),
];

/// What the paper reports for a contender on benchmark A, where this dataset is
/// one: [SIR of W, SIR of H].
pub(super) fn table_1(dataset: &str, contender: &str) -> Option<[f64; 2]> {
    let is_a = dataset == "a" || dataset.starts_with("a-published");
    let row = TABLE_1.iter().find(|(name, ..)| *name == contender);
    row.filter(|_| is_a).map(|(_, w, h)| [*w, *h])
}

/// The numbers of one measure at the stopping rule.
fn mean(results: &DatasetResults, contender: &str, measure: Measure) -> Option<f64> {
    let spread = results.spread(contender, Moment::Stopped, measure);
    spread.map(|spread| spread.mean)
}

pub(super) fn claims(results: &DatasetResults) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    claims.extend(sir(results));
    claims.push(response(results));
    claims.push(lambda(results)?);
    claims.extend(sparsity(results));
    Ok(claims)
}

fn sir(results: &DatasetResults) -> Option<Claim> {
    let row = |contender: &Contender| -> Option<String> {
        let w = mean(results, &contender.name, Measure::SirW)?;
        let h = mean(results, &contender.name, Measure::SirH)?;
        Some(format!("{} {w:.2} / {h:.2}", contender.label))
    };
    let rows: Option<Vec<String>> = Contender::compared().iter().map(row).collect();
    let paper = if table_1(&results.dataset.name, "mu").is_some() {
        "AltBi recovers W and H best. Mean SIR of W / H in dB (Table 1): MU 16.73 / 19.21, \
         P-MU 16.73 / 19.21, AltBi 21.34 / 23.33."
    } else {
        "The SIR of AltBi is better than that of MU and P-MU (no numbers are given)."
    };
    Some(Claim {
        paper: paper.into(),
        found: format!("Mean SIR of W / H in dB: {}.", rows?.join(", ")),
    })
}

fn response(results: &DatasetResults) -> Claim {
    let error = |name: &str| mean(results, name, Measure::RelativeError).unwrap_or(f64::NAN);
    let ours = error("altbi");
    let responses = Contender::responses();
    let beaten = responses.iter().filter(|one| ours < error(&one.name));
    let (beaten, of) = (beaten.count(), responses.len());
    let verdict = |name: &str| {
        if ours < error(name) {
            "lower"
        } else {
            "not lower"
        }
    };
    Claim {
        paper:
            "The error of AltBi is lower than that of MU and of P-MU with every λ from 0.1 to 1."
                .into(),
        found: format!(
            "Mean relative error of AltBi {ours:.3e}: lower than P-MU's for {beaten} of {of} λ, {} \
             than MU's ({:.3e}), {} than that of MU-T ({:.3e}), which has no penalty at all.",
            verdict("mu"),
            error("mu"),
            verdict("mu-t"),
            error("mu-t"),
        ),
    }
}

fn lambda(results: &DatasetResults) -> Result<Claim> {
    let (mut zeros, mut rows, mut smaller) = (0, 0, 0);
    for trial in &results.trials["altbi"] {
        let [first, last] = results.lambda(trial.start)?;
        for (first, last) in first.iter().zip(&last) {
            // A row of zeros has no penalty to weigh: its λ is zero from the start.
            if *first > 0.0 {
                rows += 1;
                zeros += usize::from(*last == 0.0);
                smaller += usize::from(last < first);
            }
        }
    }
    let share = |count: usize| 100.0 * count as f64 / rows.max(1) as f64;
    Ok(Claim {
        paper:
            "The tuned λ is a sparse vector: the peak of its distribution moves from a positive \
                value towards zero."
                .into(),
        found: format!(
            "{:.1} % of the λᵢ that began above zero end at zero; {:.1} % end below where they \
             began.",
            share(zeros),
            share(smaller)
        ),
    })
}

fn sparsity(results: &DatasetResults) -> Option<Claim> {
    let value = |name: &str, measure| mean(results, name, measure);
    let row = |label: &str, name: &str| -> Option<String> {
        let w = value(name, Measure::SparsityW)?;
        let h = value(name, Measure::SparsityH)?;
        Some(format!("{label} {w:.1} / {h:.1}"))
    };
    let mut rows = Vec::new();
    for contender in Contender::compared() {
        rows.push(row(&contender.label, &contender.name)?);
    }
    let truth = match results.dataset.true_sparsity {
        Some([w, h]) => format!("; in truth {w:.1} / {h:.1}"),
        None => String::new(),
    };
    Some(Claim {
        paper: "AltBi makes W sparser and leaves the sparsity of H alone.".into(),
        found: format!(
            "Entries of W / H that are almost zero, in %: {}{truth}.",
            rows.join(", ")
        ),
    })
}

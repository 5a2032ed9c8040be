//! Comparison of a fused engine with Burn's tape, on the data of a run.

use std::collections::HashSet;

use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

use super::{Engine, Setup};
use crate::error::{Error, Result};
use crate::factors::Factors;
use crate::hypergradient::Mode;
use crate::numerics::{CANCELLATION, Precision};
use crate::problem::Problem;
use crate::processes::Processes;
use crate::sparse::SparseMatrix;
use crate::update::Rule;

/// The largest relative difference between the engines that a run accepts. Autodiff
/// is computed in 64 bits in either case.
pub fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F64 => 1e-8,
        Precision::F32 => 1e-2,
    }
}

/// Largest number of compared updates of a bunch. The tape of a longer bunch could take longer than
/// the run.
const COMPARED_UPDATES: usize = 64;

/// Largest number of compared entries of X. A tape over more could take longer than the run.
const COMPARED_ENTRIES: usize = 1 << 16;

/// Smallest number of rows or columns of a sample.
const FEWEST: usize = 8;

/// The difference of two engines, and the data on which it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// The largest difference of W, H and the hypergradient, relative to the largest entry.
    pub difference: f64,
    /// Number of compared rows of X.
    pub rows: usize,
    /// Number of compared columns of X.
    pub columns: usize,
    /// True if all rows and columns were compared.
    pub all: bool,
}

impl Agreement {
    /// The same over all processes, each of which compared some of its rows.
    pub(crate) fn over(found: Option<Self>, processes: &Processes) -> Option<Self> {
        let own = |number: fn(Self) -> f64| found.map_or(0.0, number);
        let mut largest = [
            own(|of| of.difference),
            own(|of| of.columns as f64),
            own(|_| 1.0),
            found.map_or(1.0, |of| f64::from(!of.all)),
        ];
        processes.largest(&mut largest);
        let [difference, columns, compared, part] = largest;
        let rows = processes.total(own(|of| of.rows as f64)) as usize;
        (compared > 0.0).then_some(Self {
            difference,
            rows,
            columns: columns as usize,
            all: part == 0.0,
        })
    }
}

/// At most `most` evenly spaced numbers below `of`.
fn spaced(of: usize, most: usize) -> Vec<usize> {
    let count = of.min(most.max(1));
    (0..count).map(|index| index * of / count).collect()
}

/// The compared rows and columns: all of a small X, otherwise evenly spaced ones. A penalty that
/// needs all rows keeps all of them.
fn sample(problem: &Problem, setup: &Setup) -> (Vec<usize>, Vec<usize>) {
    let [n, m] = problem.shape();
    let side = (COMPARED_ENTRIES as f64).sqrt() as usize;
    if let (Some(x), true) = (problem.as_sparse(), n * m > COMPARED_ENTRIES) {
        return sparse_sample(x, setup, side);
    }
    let free = |rule: &Rule| rule.terms.iter().all(|term| term.penalty.takes_any_rows());
    let columns: Vec<usize> = match (free(&setup.of_w), free(&setup.of_h)) {
        (_, false) => (0..m).collect(),
        (true, true) => spaced(m, side.max(COMPARED_ENTRIES / n)),
        (false, true) => spaced(m, (COMPARED_ENTRIES / n).max(FEWEST)),
    };
    let rows = if free(&setup.of_w) {
        spaced(n, (COMPARED_ENTRIES / columns.len()).max(FEWEST))
    } else {
        (0..n).collect()
    };
    (rows, columns)
}

/// The same for a sparse X, where evenly spaced rows and columns would hardly share an entry: rows
/// with entries, and the columns with most of them.
fn sparse_sample(x: &SparseMatrix, setup: &Setup, side: usize) -> (Vec<usize>, Vec<usize>) {
    let [n, m] = x.shape();
    let free = |rule: &Rule| rule.terms.iter().all(|term| term.penalty.takes_any_rows());
    let (rows_are_free, columns_are_free) = (free(&setup.of_w), free(&setup.of_h));
    let most_rows = if columns_are_free {
        side
    } else {
        (COMPARED_ENTRIES / m).max(FEWEST)
    };
    let filled: Vec<usize> = (0..n).filter(|row| !x.row(*row).0.is_empty()).collect();
    let rows: Vec<usize> = if rows_are_free {
        let spaced = spaced(filled.len(), most_rows).into_iter();
        spaced.map(|index| filled[index]).collect()
    } else {
        (0..n).collect()
    };
    let mut counts = vec![0usize; m];
    for row in &rows {
        for column in x.row(*row).0 {
            counts[*column as usize] += 1;
        }
    }
    let mut columns: Vec<usize> = (0..m).collect();
    if columns_are_free {
        let most = (COMPARED_ENTRIES / rows.len().max(1)).max(FEWEST);
        columns.retain(|column| counts[*column] > 0);
        columns.sort_by_key(|column| (std::cmp::Reverse(counts[*column]), *column));
        columns.truncate(most);
        columns.sort_unstable();
    }
    let mut rows = rows;
    if rows_are_free {
        // (A row without an entry in these columns may have nothing to fit.)
        let wanted: HashSet<usize> = columns.iter().copied().collect();
        rows.retain(|row| {
            x.row(*row)
                .0
                .iter()
                .any(|j| wanted.contains(&(*j as usize)))
        });
    }
    (rows, columns)
}

/// Computes the first iteration by a fused engine and by Burn's tape in 64 bits, the hypergradient
/// by reverse mode, and compares both factors and, if λ is tuned, the hypergradient. It uses all of
/// X, or some rows and columns of an X with more than [`COMPARED_ENTRIES`]. Of a longer bunch it
/// makes [`COMPARED_UPDATES`] updates. Returns `None` if the sample has no data to compare on.
///
/// # Errors
/// [`Error::EnginesDisagree`] above the [`tolerance`].
pub(crate) fn agreement(
    problem: &Problem,
    setup: &Setup,
    factors: &Factors,
    lambda: &Array2<f64>,
) -> Result<Option<Agreement>> {
    let (rows, columns) = sample(problem, setup);
    // (The rows of a process may have no stored entry.)
    if rows.is_empty() || columns.is_empty() {
        return Ok(None);
    }
    let part = match problem.selected(&rows, &columns) {
        Ok(part) => part,
        // A row or column of the sample may have nothing to fit.
        Err(
            Error::UnobservedRow { .. } | Error::UnobservedColumn { .. } | Error::AllZero { .. },
        ) => return Ok(None),
        Err(error) => return Err(error),
    };
    let exact = part.in_precision(Precision::F64);
    // A bunch cannot compare a fixed point, but it can compare the updates.
    let shorter = Setup {
        length: setup.length.min(COMPARED_UPDATES),
        tuned: setup.tuned && setup.mode != Mode::Implicit,
        ..setup.clone()
    };
    let by_tape = Setup {
        mode: Mode::Reverse,
        ..shorter.clone()
    };
    let of_part = shorter.selected(&part, &rows, &columns);
    let lambda = setup.weights_of(lambda, &rows, &columns, &of_part.layout);
    let mut start = Factors {
        w: factors.w.select(Axis(0), &rows),
        h: factors.h.select(Axis(1), &columns),
    };
    let mut fused = of_part.fused(&part)?;
    let mut reference = by_tape
        .selected(&exact, &rows, &columns)
        .reference(&exact)?;

    let mut largest = Largest::new(problem.precision());
    let mut expected = start.clone();
    fused.update_other(&part, &mut start);
    reference.update_other(&exact, &mut expected);
    largest.compare("W", &start.w, &expected.w, 0.0)?;
    largest.compare("H", &start.h, &expected.h, 0.0)?;
    // Both start from the same factors, so that differences do not add up.
    let mut found = start.clone();
    expected.clone_from(&start);
    let slot = || shorter.tuned.then(|| Array2::zeros(lambda.raw_dim()));
    let (mut slope, mut expected_slope) = (slot(), slot());
    fused.bunch(&part, &mut found, &lambda, slope.as_mut())?;
    reference.bunch(&exact, &mut expected, &lambda, expected_slope.as_mut())?;
    largest.compare("W", &found.w, &expected.w, 0.0)?;
    largest.compare("H", &found.h, &expected.h, 0.0)?;
    if let (Some(slope), Some(expected)) = (slope, expected_slope) {
        // If the terms of dE/dλ cancel, as at a perfect fit, only rounding is left, and no two
        // programs agree.
        let least = CANCELLATION * reference.sensitivity(&exact, &start, &lambda);
        largest.compare("the hypergradient", &slope, &expected, least)?;
    }
    Ok(Some(Agreement {
        difference: largest.difference,
        rows: rows.len(),
        columns: columns.len(),
        all: [rows.len(), columns.len()] == problem.shape(),
    }))
}

struct Largest {
    tolerance: f64,
    difference: f64,
}

impl Largest {
    fn new(precision: Precision) -> Self {
        Self {
            tolerance: tolerance(precision),
            difference: 0.0,
        }
    }

    fn compare(
        &mut self,
        quantity: &'static str,
        found: &Array2<f64>,
        expected: &Array2<f64>,
        least_scale: f64,
    ) -> Result<()> {
        let largest =
            |values: ArrayView2<f64>| values.iter().fold(0.0, |a, b| f64::max(a, b.abs()));
        let scale = f64::max(largest(expected.view()), least_scale);
        let difference = largest((found - expected).view());
        let difference = if difference == 0.0 {
            0.0
        } else {
            difference / scale
        };
        // If both are not finite, the solver refuses later.
        let finite = |values: &Array2<f64>| values.iter().all(|value| value.is_finite());
        if !(finite(found) || finite(expected)) {
            return Ok(());
        }
        if !(difference <= self.tolerance && finite(found) && finite(expected)) {
            return Err(Error::EnginesDisagree {
                quantity,
                difference,
                tolerance: self.tolerance,
            });
        }
        self.difference = self.difference.max(difference);
        Ok(())
    }
}

//! Encoding new rows with the other factor fixed.

use ndarray::Array2;

use crate::bunch::Data;
use crate::criterion::Training;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::factors::Side;
use crate::numerics::{Precision, movement};
use crate::problem::{Problem, ToMatrix};
use crate::update::Rule;

/// Updates between two reads of the movement from the device.
const UPDATES_BETWEEN_LOOKS: usize = 10;

/// The stopping rule and the settings of the updates.
pub(super) struct Patience {
    /// A row has converged when no entry of it moves by more than this.
    pub tolerance: f64,
    /// Largest number of updates.
    pub most: usize,
    pub precision: Precision,
    pub device: Device,
}

/// The factor F ≥ 0 that fits `x ≈ F other`, by updates of a rule whose weights are bound.
///
/// Each row is fitted on its own, from a start that depends only on it.
///
/// # Errors
/// [`Error::Shape`] if `x` does not have m columns; those of the checks of X.
///
/// # Shapes
/// `x` and `mask` p×m, `other` r×m, result p×r.
pub(super) fn encode(
    x: Array2<f64>,
    mask: Option<Array2<f64>>,
    other: &Array2<f64>,
    rule: &Rule,
    patience: &Patience,
) -> Result<Array2<f64>> {
    let expected = [x.nrows(), other.ncols()];
    Error::require_shape("X", x.dim(), expected)?;
    let problem = Problem::to_encode(x, mask, patience.precision)?.on(patience.device.clone());
    problem.check_domain(rule.divergence.as_ref())?;
    let (start, data) = (start(&problem, other), data_of(&problem, rule)?);
    updated(&problem, &data, [&start, other], rule, patience)
}

/// The fused data term if the rule's divergence and the device have one, otherwise tensors as large
/// as X.
fn data_of(problem: &Problem, rule: &Rule) -> Result<Data> {
    match Data::fused(problem, rule.divergence.as_ref(), &Training) {
        Err(Error::EngineUnsupported { .. }) => Data::tensors(problem),
        data => data,
    }
}

/// The factor after its updates from a start.
///
/// # Shapes
/// `start` p×r, `other` r×m, result p×r.
fn updated(
    problem: &Problem,
    data: &Data,
    [start, other]: [&Array2<f64>; 2],
    rule: &Rule,
    patience: &Patience,
) -> Result<Array2<f64>> {
    let (rank, features) = other.dim();
    let [rows, _] = problem.shape();
    let other = problem.matrix("the factor", other, [rank, features])?;
    let other = problem.state_of_view(other.t());
    let mut encoding = problem.tensor("the encoding", start, [rows, rank])?;
    // The code of a row is fixed when this row has converged. Further updates for other rows do not
    // change it.
    let mut codes = Array2::zeros((rows, rank));
    let mut at_rest = vec![false; rows];
    for update in 1..=patience.most {
        let next = data.update(rule, Side::W, &encoding, &other);
        let last = update == patience.most;
        if last || update % UPDATES_BETWEEN_LOOKS == 0 {
            let (before, after) = (encoding.to_matrix()?, next.to_matrix()?);
            for row in (0..rows).filter(|row| !at_rest[*row]).collect::<Vec<_>>() {
                let code = after.row(row);
                if code.iter().any(|entry| !entry.is_finite()) {
                    return Err(Error::NotFinite {
                        iteration: update,
                        quantity: "the encoding",
                    });
                }
                if last || movement(before.row(row), code) <= patience.tolerance {
                    codes.row_mut(row).assign(&code);
                    at_rest[row] = true;
                }
            }
            if at_rest.iter().all(|rests| *rests) {
                break;
            }
        }
        encoding = next;
    }
    Ok(codes)
}

/// A constant for each row, such that the row of the product has the sum of the row's observed
/// entries.
fn start(problem: &Problem, other: &Array2<f64>) -> Array2<f64> {
    let [rows, _] = problem.shape();
    let of_columns = other.sum_axis(ndarray::Axis(0));
    let mut totals = vec![0.0; rows];
    let mut of_other = vec![0.0; rows];
    for (row, column, x) in problem.x().entries() {
        let weight = problem.mask().map_or(1.0, |mask| mask[(row, column)]);
        totals[row] += weight * x;
        of_other[row] += weight * of_columns[column];
    }
    Array2::from_shape_fn((rows, other.nrows()), |(row, _)| {
        if of_other[row] > 0.0 {
            totals[row] / of_other[row]
        } else {
            0.0
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use burn::tensor::Tensor;

    use super::*;
    use crate::divergence::{Beta, Divergence};
    use crate::penalty::{L1, PenaltyTerm, Weight};
    use crate::sparse::{SparseMatrix, Zeros};
    use crate::split::Split;

    fn number(seed: usize) -> f64 {
        ((seed * 7919) % 1013) as f64 / 1013.0
    }

    /// New rows, one of them all zero.
    fn counts() -> Array2<f64> {
        Array2::from_shape_fn((37, 29), |(i, j)| match i {
            5 => 0.0,
            _ => (9.0 * number(29 * i + j)).floor(),
        })
    }

    fn known() -> Array2<f64> {
        Array2::from_shape_fn((3, 29), |(k, j)| number(31 * k + 3 * j + 1) + 0.01)
    }

    fn with_penalty(beta: Beta, precision: Precision) -> Rule {
        let weight = Device::default().tensor(vec![0.05], [1, 1], precision);
        let term = PenaltyTerm {
            penalty: Arc::new(L1),
            weight: Weight::Bound(weight),
        };
        Rule::new(Arc::new(beta), vec![term])
    }

    /// Fifty updates, unless no entry moves at all.
    fn patience(precision: Precision) -> Patience {
        Patience {
            tolerance: 0.0,
            most: 50,
            precision,
            device: Device::default(),
        }
    }

    fn assert_near(found: &Array2<f64>, expected: &Array2<f64>, close: f64) {
        assert_eq!(found.dim(), expected.dim());
        for (index, found) in found.indexed_iter() {
            let expected = expected[index];
            let difference = (found - expected).abs();
            assert!(
                difference <= close * (1.0 + expected.abs()),
                "{index:?}: {found} instead of {expected}"
            );
        }
    }

    /// Codes on the data term, compared with those on tensors.
    fn codes(
        problem: &Problem,
        start: &Array2<f64>,
        other: &Array2<f64>,
        rule: &Rule,
        close: f64,
    ) -> Array2<f64> {
        let patience = patience(problem.precision());
        let on = |data: Data| updated(problem, &data, [start, other], rule, &patience).unwrap();
        let term = data_of(problem, rule).unwrap();
        assert!(!term.is_reference());
        let (fused, tensors) = (on(term), on(Data::tensors(problem).unwrap()));
        assert_near(&fused, &tensors, close);
        fused
    }

    #[test]
    fn masked_rows_have_the_codes_of_tensors() {
        let (x, other) = (counts(), known());
        // Few gaps, many with a column that no row has, and weights.
        let few = |(i, j): (usize, usize)| f64::from((i + 2 * j) % 7 != 0);
        let many = |(i, j): (usize, usize)| f64::from((i + 2 * j) % 3 == 0 && j != 4);
        let real = |(i, j): (usize, usize)| match j {
            4 => 0.0,
            _ => number(i + 3 * j) + 0.1,
        };
        let masks = [
            Array2::from_shape_fn(x.dim(), few),
            Array2::from_shape_fn(x.dim(), many),
            Array2::from_shape_fn(x.dim(), real),
        ];
        for mask in masks {
            let seen = |at: (usize, usize)| if mask[at] > 0.0 { x[at] } else { f64::NAN };
            let seen = Array2::from_shape_fn(x.dim(), seen);
            for (precision, close) in [(Precision::F64, 1e-10), (Precision::F32, 1e-3)] {
                let (seen, mask) = (seen.clone(), Some(mask.clone()));
                let problem = Problem::to_encode(seen, mask, precision).unwrap();
                let start = start(&problem, &other);
                let rule = with_penalty(Beta::KL, precision);
                codes(&problem, &start, &other, &rule, close);
            }
        }
    }

    /// All that a component has is missing in some rows, but for entries that vanish beside it.
    #[test]
    fn components_without_an_entry_have_the_codes_of_tensors() {
        let mut other = known();
        other.row_mut(0).fill(1e-20);
        other[[0, 0]] = 2.8;
        let mask = Array2::from_shape_fn((37, 29), |(i, j)| f64::from(j != 0 || i % 4 != 0));
        let problem = Problem::to_encode(counts(), Some(mask), Precision::F64).unwrap();
        let start = start(&problem, &other);
        let rule = Rule::new(Arc::new(Beta::KL), Vec::new());
        codes(&problem, &start, &other, &rule, 1e-10);
    }

    #[test]
    fn sparse_rows_have_the_codes_of_dense_ones() {
        let (x, other) = (counts(), known());
        let stored = x.indexed_iter().filter(|(_, x)| **x > 4.0);
        let stored: Vec<(u32, u32, f64)> =
            stored.map(|((i, j), x)| (i as u32, j as u32, *x)).collect();
        let sparse = SparseMatrix::from_triplets([37, 29], stored).unwrap();
        let dense = Problem::to_encode(sparse.to_dense(), None, Precision::F64).unwrap();
        let sparse = Problem::sparse(sparse, Zeros::Data, None, Precision::F64).unwrap();
        let start = start(&dense, &other);
        for beta in [Beta::KL, Beta::FROBENIUS, Beta(1.5)] {
            let rule = with_penalty(beta, Precision::F64);
            let [dense, sparse] =
                [&dense, &sparse].map(|of| codes(of, &start, &other, &rule, 1e-10));
            assert_near(&sparse, &dense, 1e-10);
        }
    }

    /// KL without formulas in plain numbers.
    #[derive(Debug)]
    struct OnTensors;

    impl Divergence for OnTensors {
        fn name(&self) -> String {
            "on tensors".into()
        }

        fn value(&self, x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2> {
            Beta::KL.value(x, y)
        }

        fn split(&self, x: &Tensor<2>, y: &Tensor<2>) -> Split {
            Beta::KL.split(x, y)
        }
    }

    #[test]
    fn divergences_without_plain_numbers_are_encoded_on_tensors() {
        let divergences: [Arc<dyn Divergence>; 2] = [Arc::new(OnTensors), Arc::new(Beta::KL)];
        let [tensors, fused] = divergences.map(|divergence| Rule::new(divergence, Vec::new()));
        let problem = Problem::to_encode(counts(), None, Precision::F64).unwrap();
        assert!(data_of(&problem, &tensors).unwrap().is_reference());
        let patience = patience(Precision::F64);
        let codes = |rule: &Rule| encode(counts(), None, &known(), rule, &patience).unwrap();
        assert_near(&codes(&fused), &codes(&tensors), 1e-10);
    }
}

//! The signal-to-interference ratio (SIR), which measures the recovery of known signals.

use ndarray::{Array2, ArrayView1};
use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;

use crate::error::{Error, Result};
use crate::factors::Factors;

/// The recovery of each true component, in decibels.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    /// SIR of each column of W, in the order of the true components.
    pub w: Vec<f64>,
    /// SIR of each row of H, in the order of the true components.
    pub h: Vec<f64>,
    /// The estimated component for each true one.
    pub assignment: Vec<usize>,
}

impl Recovery {
    /// Mean SIR of the columns of W.
    pub fn mean_w(&self) -> f64 {
        mean(&self.w)
    }

    /// Mean SIR of the rows of H.
    pub fn mean_h(&self) -> f64 {
        mean(&self.h)
    }
}

/// Compares estimated with true factors, which are determined up to order and
/// scale only.
///
/// Columns of W and rows of H are scaled to unit ℓ2 norm; one assignment of
/// components for both maximises the sum of cosines (Kuhn-Munkres); the SIR of a
/// component is `−10 log10 ‖a − â‖²`. A perfect component is capped at 300 dB.
///
/// # Errors
/// [`Error::Shape`] if the estimates have fewer components than the truth, or
/// other rows or columns.
///
/// # Shapes
/// True factors n×r and r×m, estimated ones n×r' and r'×m with r' ≥ r.
pub fn recovery(
    true_w: &Array2<f64>,
    true_h: &Array2<f64>,
    w: &Array2<f64>,
    h: &Array2<f64>,
) -> Result<Recovery> {
    let (rank, estimated) = (true_w.ncols(), w.ncols());
    let expected_w = [true_w.nrows(), estimated.max(rank)];
    let expected_h = [estimated.max(rank), true_h.ncols()];
    for (what, expected, found) in [
        ("the true H", [rank, true_h.ncols()], true_h),
        ("the estimated W", expected_w, w),
        ("the estimated H", expected_h, h),
    ] {
        Error::require_shape(what, found.dim(), expected)?;
    }
    let cosines = |k: usize, l: usize| {
        cosine(true_w.column(k), w.column(l)) + cosine(true_h.row(k), h.row(l))
    };
    // The algorithm needs whole numbers. Ten digits of a cosine are enough.
    let weights = Matrix::from_fn(rank, estimated, |(k, l)| (1e10 * cosines(k, l)) as i64);
    let (_, assignment) = kuhn_munkres(&weights);
    let sir = |a: ArrayView1<f64>, b: ArrayView1<f64>| {
        let distance: f64 = unit(a).zip(unit(b)).map(|(a, b)| (a - b).powi(2)).sum();
        -10.0 * distance.max(1e-30).log10()
    };
    let pairs = || assignment.iter().enumerate();
    Ok(Recovery {
        w: pairs()
            .map(|(k, &l)| sir(true_w.column(k), w.column(l)))
            .collect(),
        h: pairs()
            .map(|(k, &l)| sir(true_h.row(k), h.row(l)))
            .collect(),
        assignment,
    })
}

/// The similarity of two pairs of factors: the mean cosine of W's columns and that of H's rows,
/// with components assigned as in [`recovery`]. 1 means equal up to order and scale.
///
/// # Shapes
/// Both pairs n×r and r×m.
pub(crate) fn likeness(one: &Factors, other: &Factors) -> Result<[f64; 2]> {
    let assignment = recovery(&one.w, &one.h, &other.w, &other.h)?.assignment;
    let pairs = || assignment.iter().enumerate();
    let of_w = pairs().map(|(k, &l)| cosine(one.w.column(k), other.w.column(l)));
    let of_h = pairs().map(|(k, &l)| cosine(one.h.row(k), other.h.row(l)));
    Ok([
        mean(&of_w.collect::<Vec<_>>()),
        mean(&of_h.collect::<Vec<_>>()),
    ])
}

fn unit(signal: ArrayView1<f64>) -> impl Iterator<Item = f64> {
    let norm = signal.iter().map(|a| a * a).sum::<f64>().sqrt();
    let scale = if norm > 0.0 { 1.0 / norm } else { 0.0 };
    signal.into_iter().map(move |a| a * scale)
}

fn cosine(a: ArrayView1<f64>, b: ArrayView1<f64>) -> f64 {
    unit(a).zip(unit(b)).map(|(a, b)| a * b).sum()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn order_and_scale_do_not_matter_and_noise_does() {
        let w = array![[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]];
        let h = array![[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]];
        let swapped_w = array![[0.0, 5.0], [3.0, 10.0], [9.0, 0.0]];
        let swapped_h = array![[0.0, 2.0, 2.0], [0.1, 0.0, 0.2]];
        let perfect = recovery(&w, &h, &swapped_w, &swapped_h).unwrap();
        assert_eq!(perfect.assignment, [1, 0]);
        assert!(perfect.w.iter().chain(&perfect.h).all(|sir| *sir > 290.0));

        // (1, 0.1) against (1, 0), both at unit norm: distance² = 2 (1 − cos).
        let (w, h) = (array![[1.0], [0.0]], array![[1.0]]);
        let noisy = recovery(&w, &h, &array![[1.0], [0.1]], &h).unwrap();
        let distance = 2.0 * (1.0 - 1.0 / 1.01f64.sqrt());
        assert!((noisy.mean_w() + 10.0 * distance.log10()).abs() < 1e-9);
    }

    #[test]
    fn likeness_is_one_up_to_order_and_scale() {
        let one = Factors {
            w: array![[1.0, 0.0], [0.0, 1.0]],
            h: array![[1.0, 0.0], [0.0, 1.0]],
        };
        let other = Factors {
            w: array![[0.0, 3.0], [2.0, 0.0]],
            h: array![[0.0, 1.0], [1.0, 1.0]],
        };
        let [of_w, of_h] = likeness(&one, &other).unwrap();
        assert!((of_w - 1.0).abs() < 1e-12);
        assert!((of_h - (1.0 + 0.5f64.sqrt()) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn shapes_are_checked() {
        let (w, h) = (
            array![[1.0, 0.0], [0.0, 1.0]],
            array![[1.0, 0.0], [0.0, 1.0]],
        );
        let few = recovery(&w, &h, &array![[1.0], [0.0]], &array![[1.0, 0.0]]);
        assert!(matches!(few, Err(Error::Shape { .. })));
    }
}

//! The share of entries that are almost zero.

use ndarray::{Array2, ArrayView1};

use crate::processes::Processes;

/// Entries below this share of their signal's maximum count as zero.
const THRESHOLD: f64 = 1e-3;

/// `100 (1 − #(A > τ) / #A)` after scaling each column of W to maximum 1, τ = 1e-3. (The formula in
/// the paper can be negative.)
///
/// # Shapes
/// `w` n×r.
pub fn sparsity_w(w: &Array2<f64>) -> f64 {
    sparsity_w_over(w, &Processes::default())
}

/// The same, if processes share the rows of W.
pub(crate) fn sparsity_w_over(w: &Array2<f64>, processes: &Processes) -> f64 {
    let largest = |column: ArrayView1<f64>| column.iter().copied().fold(0.0, f64::max);
    let mut scales: Vec<f64> = w.columns().into_iter().map(largest).collect();
    processes.largest(&mut scales);
    let columns = w.columns().into_iter().zip(scales);
    let above: usize = columns.map(|(column, scale)| above(column, scale)).sum();
    let mut counts = [above as f64, w.len() as f64];
    processes.sum(&mut counts);
    100.0 * (1.0 - counts[0] / counts[1])
}

/// The same for H, each row scaled to maximum 1.
///
/// # Shapes
/// `h` r×m.
pub fn sparsity_h(h: &Array2<f64>) -> f64 {
    sparsity_w_over(&h.t().to_owned(), &Processes::default())
}

/// Entries of a signal above the threshold, relative to its maximum.
fn above(signal: ArrayView1<'_, f64>, largest: f64) -> usize {
    let above = signal.iter().filter(|entry| **entry > THRESHOLD * largest);
    above.count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn small_entries_count_relative_to_their_signal() {
        let w = array![[1.0, 0.0], [0.5, 0.0], [0.0009, 1e-9], [0.002, 2e-12]];
        // Column 1: 3 above; column 2: only 1e-9 (2e-12 is 0.002 of it: above).
        assert_eq!(sparsity_w(&w), 100.0 * (1.0 - 5.0 / 8.0));
        assert_eq!(sparsity_h(&w.t().to_owned()), sparsity_w(&w));
        assert_eq!(sparsity_w(&Array2::zeros((2, 2))), 100.0);
    }
}

//! The share of entries that are almost zero.

use ndarray::{Array2, ArrayView1};

/// Entries below this share of their signal's maximum count as zero.
const THRESHOLD: f64 = 1e-3;

/// `100 (1 − #(A > τ) / #A)` after scaling each column of W to maximum 1,
/// τ = 1e-3. (As printed in the paper, the formula goes negative.)
///
/// # Shapes
/// `w` n×r.
pub fn sparsity_w(w: &Array2<f64>) -> f64 {
    sparsity(w.columns().into_iter(), w.len())
}

/// The same for H, each row scaled to maximum 1.
///
/// # Shapes
/// `h` r×m.
pub fn sparsity_h(h: &Array2<f64>) -> f64 {
    sparsity(h.rows().into_iter(), h.len())
}

fn sparsity<'a>(signals: impl Iterator<Item = ArrayView1<'a, f64>>, entries: usize) -> f64 {
    let above: usize = signals
        .map(|signal| {
            let largest = signal.iter().copied().fold(0.0, f64::max);
            let above = signal.iter().filter(|entry| **entry > THRESHOLD * largest);
            above.count()
        })
        .sum();
    100.0 * (1.0 - above as f64 / entries as f64)
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

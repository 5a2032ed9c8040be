//! Reverse mode: Burn's automatic differentiation over the unrolled bunch.

use burn::tensor::Tensor;
use rayon::prelude::*;

use super::{Differentiate, Hypergradient};
use crate::bunch::Bunch;
use crate::error::Result;
use crate::numerics::to_host;

/// Differentiates by Burn's tape. Works with every divergence, penalty and
/// criterion, because all of them are written in tensor operations.
///
/// λ is a fresh leaf in every bunch, and results leave the tape: bunches do not
/// chain together.
///
/// # Memory
/// The tape keeps about ten n×m and twenty n×r matrices per update. For
/// row-separable penalties the rows are independent, so they are taken in blocks
/// of [`block_rows`](Reverse::block_rows) and the memory does not grow with n
/// beyond a block. Coupled penalties need all rows on one tape.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reverse {
    /// Rows per tape; `None` chooses so many that x of a block has about 2¹⁵
    /// entries (256 kB: what an operation leaves is in the cache for the next). The blocks do not depend on the machine.
    pub block_rows: Option<usize>,
}

/// Entries of a block's x that `block_rows: None` aims for.
const BLOCK_ENTRIES: usize = 1 << 15;
/// Fewer rows than this make poor matrix products.
const LEAST_ROWS: usize = 16;

impl Reverse {
    fn rows_per_block(self, bunch: &Bunch) -> usize {
        let [n, m] = bunch.observed.x.dims();
        if !bunch.rule.is_separable() {
            return n;
        }
        // Blocks of equal size, so that threads finish together.
        let blocks = (n * m).div_ceil(BLOCK_ENTRIES);
        let even = n.div_ceil(blocks).max(LEAST_ROWS);
        self.block_rows.unwrap_or(even).clamp(1, n)
    }
}

impl Differentiate for Reverse {
    fn name(&self) -> &'static str {
        "reverse"
    }

    fn compute(&self, bunch: &Bunch, w: &Tensor<2>, lambda: &Tensor<2>) -> Result<Hypergradient> {
        let [n, rank] = w.dims();
        let block = self.rows_per_block(bunch);
        if block == n {
            return Ok(on_one_tape(bunch, w, lambda));
        }
        // Independent rows are independent tapes, on as many threads as there are.
        let starts: Vec<usize> = (0..n).step_by(block).collect();
        let parts = starts.into_par_iter().map(|start| {
            let rows = start..(start + block).min(n);
            on_one_tape(
                &bunch.rows(rows.clone()),
                &w.clone().slice([rows.clone(), 0..rank]),
                &lambda.clone().slice([rows, 0..1]),
            )
        });
        let parts: Vec<Hypergradient> = parts.collect();
        let mut factors = Vec::with_capacity(parts.len());
        let mut gradients = Vec::with_capacity(parts.len());
        let mut outer_error = 0.0;
        for part in parts {
            outer_error += part.outer_error;
            factors.push(part.w);
            gradients.push(part.gradient);
        }
        Ok(Hypergradient {
            w: Tensor::cat(factors, 0),
            outer_error,
            gradient: Tensor::cat(gradients, 0),
        })
    }
}

fn on_one_tape(bunch: &Bunch, w: &Tensor<2>, lambda: &Tensor<2>) -> Hypergradient {
    let taped = bunch.on_tape();
    let leaf = lambda.clone().autodiff().require_grad();
    let end = taped.run(&w.clone().autodiff(), &leaf);
    let errors = taped.outer_errors(&end);
    let outer_error = to_host(&errors).iter().sum();
    let total = errors.sum();
    // With no tuned penalty λ never reaches the tape, and E does not depend on it.
    let gradient = if total.is_tracked() {
        leaf.grad(&total.backward())
    } else {
        None
    };
    Hypergradient {
        w: end.without_autodiff(),
        outer_error,
        gradient: gradient.map_or_else(|| lambda.zeros_like(), Tensor::without_autodiff),
    }
}

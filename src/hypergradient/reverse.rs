//! Reverse mode: Burn's automatic differentiation over the unrolled bunch.

use burn::tensor::Tensor;
use rayon::prelude::*;

use super::{Differentiate, Hypergradient};
use crate::bunch::{Bunch, Pair};
use crate::error::Result;
use crate::factors::Side;
use crate::numerics::to_host;

/// Differentiates by Burn's tape. It works with every divergence, penalty and criterion, because
/// all of them are operations on the tape.
///
/// λ is a new leaf in every bunch, and results are detached from the tape, so the tape never spans
/// two bunches.
///
/// # Memory
/// On a fused data term the tape holds the state and 1/P of each update, 16 bytes for each entry of
/// the updated factor, and what the penalties' operations keep. On tensors as large as X it keeps
/// about ten n×m and twenty n×r matrices per update. If rows of W are independent, they are then
/// taken in blocks of [`block_rows`](Reverse::block_rows) and the memory does not grow with n beyond
/// a block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reverse {
    /// Rows per tape. `None` chooses blocks with about 2¹⁵ entries of x (256 kB), so that the
    /// result of an operation is in the cache for the next. The blocks do not depend on the
    /// machine.
    pub block_rows: Option<usize>,
}

/// Entries of a block's x that `block_rows: None` aims for.
const BLOCK_ENTRIES: usize = 1 << 15;
/// Smallest number of rows of a block. Matrix products with fewer rows are inefficient.
const LEAST_ROWS: usize = 16;

impl Reverse {
    fn rows_per_block(self, bunch: &Bunch) -> usize {
        let [n, m] = bunch.data.shape();
        if bunch.independent_rows() != Some(Side::W) || !bunch.data.is_reference() {
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

    fn compute(&self, bunch: &Bunch, pair: &Pair, lambda: &[Tensor<2>]) -> Result<Hypergradient> {
        let [n, _] = pair.w.dims();
        let block = self.rows_per_block(bunch);
        if block == n {
            return Ok(on_one_tape(bunch, pair, lambda));
        }
        // Blocks of independent rows have their own tapes, and run on all threads.
        let starts: Vec<usize> = (0..n).step_by(block).collect();
        let parts = starts.into_par_iter().map(|start| {
            let rows = start..(start + block).min(n);
            let of_rows = |matrix: &Tensor<2>| {
                let [all, columns] = matrix.dims();
                if all == n {
                    matrix.clone().slice([rows.clone(), 0..columns])
                } else {
                    matrix.clone()
                }
            };
            let pair = Pair {
                w: of_rows(&pair.w),
                h: pair.h.clone(),
            };
            let lambda: Vec<Tensor<2>> = lambda.iter().map(of_rows).collect();
            on_one_tape(&bunch.rows(rows.clone()), &pair, &lambda)
        });
        let parts: Vec<Hypergradient> = parts.collect();
        let joined = |tensors: Vec<Tensor<2>>, rows: usize| {
            if rows == n {
                Tensor::cat(tensors, 0)
            } else {
                // A weight that all rows share: the gradients of the blocks are added.
                let sum = tensors.into_iter().reduce(|sum, share| sum + share);
                sum.expect("there is a block")
            }
        };
        let gradients = lambda.iter().enumerate().map(|(index, weight)| {
            let shares = parts.iter().map(|part| part.gradients[index].clone());
            joined(shares.collect(), weight.dims()[0])
        });
        Ok(Hypergradient {
            gradients: gradients.collect(),
            outer_error: parts.iter().map(|part| part.outer_error).sum(),
            pair: Pair {
                w: joined(parts.iter().map(|part| part.pair.w.clone()).collect(), n),
                h: pair.h.clone(),
            },
        })
    }
}

fn on_one_tape(bunch: &Bunch, pair: &Pair, lambda: &[Tensor<2>]) -> Hypergradient {
    let taped = bunch.on_tape();
    let leaves: Vec<Tensor<2>> = lambda
        .iter()
        .map(|weight| weight.clone().autodiff().require_grad())
        .collect();
    let end = taped.run(&pair.map(|factor| factor.clone().autodiff()), &leaves);
    let errors = taped.outer_errors(&end);
    let outer_error = bunch.processes.total(to_host(&errors).iter().sum());
    let total = errors.sum();
    // If nothing is tuned, nothing is on the tape.
    let backward = total.is_tracked().then(|| total.backward());
    let gradients = leaves.iter().zip(lambda).enumerate();
    let gradients = gradients.map(|(index, (leaf, weight))| {
        let gradient = backward.as_ref().and_then(|all| leaf.grad(all));
        let own = gradient.map_or_else(|| weight.zeros_like(), Tensor::without_autodiff);
        bunch.over_processes(bunch.side_of(index), own)
    });
    Hypergradient {
        gradients: gradients.collect(),
        outer_error,
        pair: end.map(|factor| factor.clone().without_autodiff()),
    }
}

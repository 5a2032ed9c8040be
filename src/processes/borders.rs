//! Rows of a factor with the neighbouring rows of other processes.
#![expect(deprecated, reason = "every item of burn-ndarray is; see device.rs")]

use burn::backend::NdArray;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::tensor::Tensor;
use burn_ndarray::NdArrayTensor;

use super::Processes;
use crate::numerics::add;
use crate::primitive::{Tape, like, plain, shape_of, taped, view};

impl Processes {
    /// For the row before and the row after those of this process: true if another process has it.
    fn neighbours(&self) -> [bool; 2] {
        [self.rank() > 0, self.rank() + 1 < self.size()]
    }

    /// The rows of this process between the last row of the process before it and the first row of
    /// the process after it, on the tape if they are. The backward pass sends each process the
    /// gradients that others have for its rows.
    ///
    /// # Shapes
    /// `rows` n×r; the result has up to two rows more.
    pub(crate) fn with_borders(&self, rows: &Tensor<2>) -> Tensor<2> {
        if !rows.is_autodiff() {
            return Tensor::from_primitive::<NdArray>(self.bordered(&plain(rows)));
        }
        let input = taped(rows);
        let node = input.node();
        let bordered = self.bordered(&input.into_primitive());
        let prepared = BordersBackward.prepare::<NoCheckpointing>([node]);
        Tensor::from_primitive::<Tape>(match prepared.compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish(self.clone(), bordered),
            OpsKind::UnTracked(prepared) => prepared.finish(bordered),
        })
    }

    /// The rows of [`with_borders`](Self::with_borders) without the borders.
    pub(crate) fn without_borders(&self, rows: &Tensor<2>) -> Tensor<2> {
        let [count, columns] = rows.dims();
        let [before, after] = self.neighbours().map(usize::from);
        rows.clone().slice([before..count - after, 0..columns])
    }

    fn bordered(&self, rows: &NdArrayTensor) -> NdArrayTensor {
        let [count, columns] = shape_of(rows);
        let values = view(rows);
        let last = values.len() - columns;
        let [before, after] = self.exchange(&values[..columns], &values[last..]);
        let mut all = before.unwrap_or_default();
        all.extend_from_slice(&values);
        all.extend(after.unwrap_or_default());
        let count = count + self.neighbours().map(usize::from).iter().sum::<usize>();
        like(all, [count, columns], rows)
    }
}

#[derive(Debug)]
struct BordersBackward;

impl Backward<NdArray, 1> for BordersBackward {
    type State = Processes;

    fn backward(self, ops: Ops<Processes, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let bar = grads.consume::<NdArray>(&ops.node);
        let [parent] = ops.parents;
        let processes = ops.state;
        let [count, columns] = shape_of(&bar);
        let values = view(&bar);
        let [before, after] = processes.neighbours().map(|is| usize::from(is) * columns);
        let (head, rest) = values.split_at(before);
        let (own, tail) = rest.split_at(rest.len() - after);
        let mut own = own.to_vec();
        let [from_before, from_after] = processes.exchange(head, tail);
        if let Some(share) = from_before {
            add(&mut own, &share);
        }
        if let Some(share) = from_after {
            let last = own.len() - columns;
            add(&mut own[last..], &share);
        }
        let rows = count - (before + after) / columns.max(1);
        if let Some(node) = parent {
            grads.register::<NdArray>(node.id, like(own, [rows, columns], &bar));
        }
    }
}

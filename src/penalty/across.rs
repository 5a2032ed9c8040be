//! Smoothness along rows that several processes share.

use burn::tensor::Tensor;

use super::{Coupling, Penalty, Smooth};
use crate::processes::Processes;
use crate::split::{MajoriserPowers, Split};

/// [`Smooth`] for several processes. Neighbouring rows may belong to different processes, which
/// exchange the rows at their borders.
///
/// The forms of the chain are evaluated with one more row at either end. They are then correct on
/// the rows in between, also the transposed ones, because an entry depends only on its neighbours.
#[derive(Debug, Clone)]
pub(super) struct SmoothAcross {
    processes: Processes,
}

impl SmoothAcross {
    pub(super) fn new(processes: &Processes) -> Self {
        Self {
            processes: processes.clone(),
        }
    }

    fn inner(&self, rows: &Tensor<2>) -> Tensor<2> {
        self.processes.without_borders(rows)
    }

    fn inner_parts(&self, parts: &Split) -> Split {
        Split {
            positive: self.inner(&parts.positive),
            negative: self.inner(&parts.negative),
        }
    }

    fn with_borders(&self, rows: &Tensor<2>) -> Tensor<2> {
        self.processes.with_borders(rows)
    }

    /// A weight. If each row has its own, it includes those of the border rows.
    fn weight(&self, w: &Tensor<2>, weight: &Tensor<2>) -> Tensor<2> {
        if weight.dims()[0] == w.dims()[0] {
            self.with_borders(weight)
        } else {
            weight.clone()
        }
    }

    fn parts(&self, w: &Tensor<2>, parts: &Split) -> Split {
        let whole = |part: &Tensor<2>| self.with_borders(&part.clone().expand(w.dims()));
        Split {
            positive: whole(&parts.positive),
            negative: whole(&parts.negative),
        }
    }
}

impl Penalty for SmoothAcross {
    fn name(&self) -> String {
        Smooth.name()
    }

    fn value(&self, w: &Tensor<2>) -> Tensor<2> {
        self.inner(&Smooth.value(&self.with_borders(w)))
    }

    fn is_sum_over_entries(&self) -> bool {
        true
    }

    fn entries(&self, w: &Tensor<2>) -> Option<Tensor<2>> {
        let entries = Smooth.entries(&self.with_borders(w))?;
        Some(self.inner(&entries))
    }

    fn split(&self, w: &Tensor<2>) -> Split {
        self.inner_parts(&Smooth.split(&self.with_borders(w)))
    }

    fn coupling(&self) -> Option<&dyn Coupling> {
        Some(self)
    }

    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        Smooth.majoriser_powers()
    }
}

impl Coupling for SmoothAcross {
    fn weighted_split(&self, w: &Tensor<2>, weight: &Tensor<2>) -> Split {
        let weight = self.weight(w, weight);
        self.inner_parts(&Smooth.weighted_split(&self.with_borders(w), &weight))
    }

    fn weighted_tangent(
        &self,
        w: &Tensor<2>,
        weight: &Tensor<2>,
        direction: &Tensor<2>,
    ) -> Option<Split> {
        let (weight, direction) = (self.weight(w, weight), self.with_borders(direction));
        let moved = Smooth.weighted_tangent(&self.with_borders(w), &weight, &direction)?;
        Some(self.inner_parts(&moved))
    }

    fn weighted_cotangent(
        &self,
        w: &Tensor<2>,
        weight: &Tensor<2>,
        parts: &Split,
    ) -> Option<Tensor<2>> {
        let (weight, parts) = (self.weight(w, weight), self.parts(w, parts));
        let bar = Smooth.weighted_cotangent(&self.with_borders(w), &weight, &parts)?;
        Some(self.inner(&bar))
    }

    fn weight_cotangent(&self, w: &Tensor<2>, parts: &Split) -> Option<Tensor<2>> {
        let parts = self.parts(w, parts);
        let bar = Smooth.weight_cotangent(&self.with_borders(w), &parts)?;
        Some(self.inner(&bar))
    }
}

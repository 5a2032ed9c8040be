//! An outer error with its own divergence.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::{Criterion, Entries};
use crate::divergence::Divergence;
use crate::error::Result;
use crate::problem::{Observed, Problem};

/// A criterion measured by another divergence than the one that the updates minimise.
///
/// ```
/// use altbi::{HeldOut, Measured, SmoothedKl};
/// let criterion = Measured::new(HeldOut, SmoothedKl::HALF);
/// ```
#[derive(Debug, Clone)]
pub struct Measured {
    criterion: Arc<dyn Criterion>,
    divergence: Arc<dyn Divergence>,
}

impl Measured {
    /// The same criterion with this divergence instead of the problem's.
    pub fn new(criterion: impl Criterion + 'static, divergence: impl Divergence + 'static) -> Self {
        Self {
            criterion: Arc::new(criterion),
            divergence: Arc::new(divergence),
        }
    }
}

impl Criterion for Measured {
    fn name(&self) -> String {
        format!("{} by {}", self.criterion.name(), self.divergence.name())
    }

    fn check(&self, problem: &Problem) -> Result<()> {
        self.criterion.check(problem)?;
        problem.check_domain(self.divergence.as_ref())
    }

    fn value(&self, _: &dyn Divergence, observed: &Observed, y: &Tensor<2>) -> Tensor<2> {
        self.criterion.value(self.divergence.as_ref(), observed, y)
    }

    fn entries(&self) -> Entries {
        self.criterion.entries()
    }

    fn is_divergence(&self) -> bool {
        self.criterion.is_divergence()
    }

    fn own_divergence(&self) -> Option<&dyn Divergence> {
        Some(self.divergence.as_ref())
    }

    fn derivative(
        &self,
        _: &dyn Divergence,
        observed: &Observed,
        y: &Tensor<2>,
    ) -> Option<Tensor<2>> {
        let divergence = self.divergence.as_ref();
        self.criterion.derivative(divergence, observed, y)
    }
}

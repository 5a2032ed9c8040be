//! The built-in cases of `altbi gradcheck` and of the tests.

use ndarray::Array2;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use serde::Serialize;

use super::{CheckReport, Draw, MODES, check_bunch};
use crate::bunch::Bunch;
use crate::device::Device;
use crate::divergence::Beta;
use crate::error::Result;
use crate::factors::uniform;
use crate::lambda::Scope;
use crate::numerics::Precision;
use crate::penalty;
use crate::problem::Problem;

/// Values of β: both sides of every special case, and the cases themselves.
pub(crate) const BETAS: [f64; 7] = [3.0, 2.0, 1.5, 1.0, 0.5, 0.0, -0.5];
/// Values of T.
pub(super) const BUNCHES: [usize; 4] = [1, 2, 4, 8];
/// Shapes (n, m, r): an ordinary one, r = 1, n = 1, m < r, and a tall one.
pub(crate) const SHAPES: [[usize; 3]; 5] = [[7, 9, 3], [5, 6, 1], [1, 8, 3], [6, 2, 3], [20, 4, 2]];

/// One case.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Case {
    /// β.
    pub beta: f64,
    /// The penalty's name.
    pub penalty: &'static str,
    /// T.
    pub bunch: usize,
    /// (n, m, r).
    pub shape: [usize; 3],
}

/// Every combination of [`BETAS`], penalties, T = 1, 2, 4, 8 and [`SHAPES`].
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for beta in BETAS {
        for penalty in penalty::NAMES.split(", ") {
            for bunch in BUNCHES {
                for shape in SHAPES {
                    cases.push(Case {
                        beta,
                        penalty,
                        bunch,
                        shape,
                    });
                }
            }
        }
    }
    cases
}

impl Case {
    /// X, always the same.
    pub fn x(&self) -> Array2<f64> {
        let [n, m, _] = self.shape;
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        uniform(&mut generator, n, m) * 2.0 + 0.1
    }

    /// The bunch and a draw of factors and λ for it, always the same.
    ///
    /// # Errors
    /// None for the built-in cases. A `Case` made by hand may be refused.
    pub fn bunch(&self, precision: Precision, device: &Device) -> Result<(Bunch, Draw)> {
        let [_, _, rank] = self.shape;
        let problem = Problem::new(&self.x(), precision)?.on(device.clone());
        let penalty = penalty::by_name(self.penalty)?;
        let bunch = Bunch::new(&problem, Beta(self.beta), penalty, self.bunch)?;
        let draw = Draw::new(&problem, &bunch, Scope::Row, rank, 2)?;
        Ok((bunch, draw))
    }

    /// Compares all modes on it.
    pub fn run(&self, precision: Precision, device: &Device) -> Result<CheckReport> {
        let (bunch, draw) = self.bunch(precision, device)?;
        check_bunch(&bunch, &draw.pair, &draw.lambda, &MODES)
    }
}

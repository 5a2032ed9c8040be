//! The penalties of a run, and the files of their weights.

use serde::{Deserialize, Serialize};

use crate::factors::Side;
use crate::solver::Outcome;

/// One tuned penalty of a run, for `summary.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PenaltyRecord {
    /// Its name.
    pub penalty: String,
    /// The penalised factor.
    pub factor: Side,
    /// The scope of its weights.
    pub scope: String,
    /// The file of its λ at the end.
    pub lambda: String,
    /// The file of its λ at the start.
    pub lambda_start: String,
}

impl PenaltyRecord {
    /// All tuned penalties of a run, W's first: `lambda.npy` and `lambda_start.npy` for W,
    /// `lambda_h.npy` and `lambda_h_start.npy` for H; a second penalty on the same factor
    /// adds `_2`.
    pub fn all_of(outcome: &Outcome) -> Vec<Self> {
        let mut seen = [0, 0];
        let groups = outcome.weights().into_iter().map(|group| {
            let (base, seen) = match group.side {
                Side::W => ("lambda", &mut seen[0]),
                Side::H => ("lambda_h", &mut seen[1]),
            };
            *seen += 1;
            let number = match *seen {
                1 => String::new(),
                number => format!("_{number}"),
            };
            Self {
                penalty: group.penalty,
                factor: group.side,
                scope: group.scope.to_string(),
                lambda: format!("{base}{number}.npy"),
                lambda_start: format!("{base}{number}_start.npy"),
            }
        });
        groups.collect()
    }

    /// "smooth on W".
    pub fn describe(&self) -> String {
        let factor = match self.factor {
            Side::W => "W",
            Side::H => "H",
        };
        format!("{} on {factor}", self.penalty)
    }
}

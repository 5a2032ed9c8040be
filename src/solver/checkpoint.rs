//! The state of a run as bytes, to resume an interrupted run.

use std::sync::Arc;

use ndarray::Array2;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Best, Record, State};
use crate::error::{CheckpointFault, Result};
use crate::factors::Factors;
use crate::problem::{Problem, ToMatrix};

/// The first bytes of every checkpoint; the digit is the version of the layout.
const MAGIC: &[u8; 16] = b"altbi checkpoint";
const VERSION: u32 = 13;
const DIGEST: usize = 32;

/// Everything that [`Solver::resume`](super::Solver::resume) needs to give the same bits of
/// factors, λ and history as an uninterrupted run.
///
/// No random numbers are drawn after the start, so there is no random state to save.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Fingerprint of the data.
    pub data_hash: String,
    /// Fingerprint of the settings.
    pub settings_hash: String,
    iteration: usize,
    divergence_at_start: f64,
    w: Matrix,
    h: Matrix,
    lambda: Matrix,
    lambda_at_start: Matrix,
    history: Vec<Record>,
    best: Option<BestIterate>,
    /// Of the λ step.
    memory: Matrix,
    /// W and H of the other splits that tune λ.
    other_splits: Vec<(Matrix, Matrix)>,
}

/// The iterate with the lowest outer error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct BestIterate {
    w: Matrix,
    h: Matrix,
    lambda: Matrix,
    acted: Matrix,
    record: Record,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Matrix {
    shape: [usize; 2],
    values: Vec<f64>,
}

impl Matrix {
    fn of(matrix: &Array2<f64>) -> Self {
        Self {
            shape: [matrix.nrows(), matrix.ncols()],
            values: matrix.iter().copied().collect(),
        }
    }
}

impl ToMatrix for Matrix {
    fn to_matrix(&self) -> Result<Array2<f64>> {
        (&self.values[..], self.shape).to_matrix()
    }
}

/// A state with the history before it.
#[derive(Debug, Clone)]
pub(crate) struct Resumed {
    /// The state of the run.
    pub state: State,
    /// λ at the start of the run.
    pub lambda_at_start: Array2<f64>,
    /// All records so far.
    pub history: Vec<Record>,
}

impl Checkpoint {
    /// A checkpoint of a state. With several processes it must be the [gathered](State::gathered)
    /// one.
    pub fn new(
        data_hash: &str,
        settings_hash: &str,
        state: &State,
        lambda_at_start: &Array2<f64>,
        history: &[Record],
    ) -> Self {
        Self {
            data_hash: data_hash.into(),
            settings_hash: settings_hash.into(),
            iteration: state.iteration,
            divergence_at_start: state.divergence_at_start,
            w: Matrix::of(&state.factors.w),
            h: Matrix::of(&state.factors.h),
            lambda: Matrix::of(&state.lambda),
            lambda_at_start: Matrix::of(lambda_at_start),
            history: history.to_vec(),
            best: state.best.as_ref().map(|best| BestIterate {
                w: Matrix::of(&best.factors.w),
                h: Matrix::of(&best.factors.h),
                lambda: Matrix::of(&best.lambda),
                acted: Matrix::of(&best.acted),
                record: best.record.clone(),
            }),
            memory: Matrix::of(&state.memory),
            other_splits: state
                .other_splits
                .iter()
                .map(|of| (Matrix::of(&of.w), Matrix::of(&of.h)))
                .collect(),
        }
    }

    /// Iterations done.
    pub fn iteration(&self) -> usize {
        self.iteration
    }

    /// The state of all rows, checked against a problem.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape), or another error of the checks, if it does not belong
    /// to the problem.
    pub(crate) fn restore(&self, problem: &Problem) -> Result<Resumed> {
        let [n, m] = problem.whole_shape();
        let rank = self.w.shape[1];
        let weights = self.lambda.shape[0];
        let record = self.history.last().cloned();
        let record = record.ok_or(CheckpointFault::Torn)?;
        let factors = |w: &Matrix, h: &Matrix| -> Result<Factors> {
            Ok(Factors {
                w: problem.matrix("W", w, [n, rank])?,
                h: problem.matrix("H", h, [rank, m])?,
            })
        };
        let best = |best: &BestIterate| -> Result<Arc<Best>> {
            Ok(Arc::new(Best {
                factors: factors(&best.w, &best.h)?,
                lambda: problem.matrix("λ", &best.lambda, [weights, 1])?,
                acted: problem.matrix("λ", &best.acted, [weights, 1])?,
                record: best.record.clone(),
            }))
        };
        Ok(Resumed {
            state: State {
                iteration: self.iteration,
                factors: factors(&self.w, &self.h)?,
                lambda: problem.matrix("λ", &self.lambda, [weights, 1])?,
                record,
                divergence_at_start: self.divergence_at_start,
                best: self.best.as_ref().map(best).transpose()?,
                memory: self.memory.to_matrix()?,
                other_splits: self
                    .other_splits
                    .iter()
                    .map(|(w, h)| factors(w, h))
                    .collect::<Result<_>>()?,
                share: None,
            },
            lambda_at_start: self.lambda_at_start.to_matrix()?,
            history: self.history.clone(),
        })
    }

    /// The checkpoint as bytes: magic, version, SHA-256 of the rest, the rest.
    pub fn encode(&self) -> Vec<u8> {
        let body = postcard::to_stdvec(self).expect("a checkpoint is plain data");
        let mut bytes = Vec::with_capacity(MAGIC.len() + 4 + DIGEST + body.len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(Sha256::digest(&body));
        bytes.extend(body);
        bytes
    }

    /// A checkpoint from bytes.
    ///
    /// # Errors
    /// [`CheckpointFault`]: not a checkpoint, of another version, or damaged.
    pub fn decode(bytes: &[u8]) -> std::result::Result<Self, CheckpointFault> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(CheckpointFault::Foreign)?;
        let (version, rest) = rest.split_first_chunk::<4>().ok_or(CheckpointFault::Torn)?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(CheckpointFault::Version { found: version });
        }
        let (digest, body) = rest
            .split_first_chunk::<DIGEST>()
            .ok_or(CheckpointFault::Torn)?;
        if Sha256::digest(body)[..] != digest[..] {
            return Err(CheckpointFault::Torn);
        }
        postcard::from_bytes(body).map_err(|_| CheckpointFault::Torn)
    }
}

//! One iteration, step by step as in the paper.

use std::sync::Arc;

use ndarray::Array2;

use super::history::median;
use super::stopping::relative_change;
use super::{Record, Solver, State};
use crate::config::{Method, Normalization};
use crate::engine::{Engine, Errors};
use crate::error::{Error, Result};
use crate::factors::Factors;
use crate::lambda::{Hierarchy, LambdaShare, StepAt, StepContext};
use crate::penalty::PenaltyTerm;
use crate::problem::Problem;
use crate::update::Rule;

/// The engine of the problem, and those of the other splits.
pub(super) type Engines = (Box<dyn Engine + Send>, Vec<Box<dyn Engine + Send>>);

/// Memory that iterations reuse.
pub(super) struct Workspace {
    pub(super) engine: Box<dyn Engine + Send>,
    /// The engines of the other splits.
    other_splits: Vec<Box<dyn Engine + Send>>,
    pub(super) next: State,
    hierarchy: Hierarchy,
    gradient: Array2<f64>,
    /// Copy of λ for sorting.
    sorted: Vec<f64>,
    share: Arc<LambdaShare>,
}

impl Workspace {
    pub(super) fn new(
        (engine, other_splits): Engines,
        share: Arc<LambdaShare>,
        state: &State,
    ) -> Self {
        Self {
            engine,
            other_splits,
            next: state.clone(),
            hierarchy: Hierarchy::new(share.layout()),
            gradient: Array2::zeros(state.lambda.raw_dim()),
            sorted: Vec::with_capacity(state.lambda.len()),
            share,
        }
    }
}

impl Solver {
    /// The state before the first iteration, and a stepper that computes further iterations.
    pub(crate) fn begin<'a>(&'a self, problem: &'a Problem) -> Result<(State, Stepper<'a>)> {
        self.check(problem)?;
        let (mut engine, _) = self.engine(problem)?;
        let state = self.start(problem, engine.as_mut())?;
        let stepper = Stepper {
            workspace: Workspace::new((engine, Vec::new()), self.lambda_share(problem), &state),
            solver: self,
            problem,
        };
        Ok((state, stepper))
    }

    /// One outer iteration.
    ///
    /// Every call prepares the engine again, which costs about as much as an update;
    /// [`run`](Self::run) does so once. The engines are not compared here.
    ///
    /// # Errors
    /// [`Error::NotFinite`], and those of the engine and of the hypergradient's mode.
    pub fn step(&self, problem: &Problem, state: &State) -> Result<State> {
        let (engine, _) = self.engine(problem)?;
        let engines = (engine, self.split_engines()?);
        let workspace = Workspace::new(engines, self.lambda_share(problem), state);
        let solver = self;
        let mut stepper = Stepper {
            solver,
            problem,
            workspace,
        };
        stepper.step(state)
    }

    /// From `state` to `workspace.next`.
    pub(super) fn advance(
        &self,
        problem: &Problem,
        state: &State,
        workspace: &mut Workspace,
    ) -> Result<()> {
        let iteration = state.iteration + 1;
        let Workspace {
            engine,
            other_splits,
            next,
            hierarchy,
            gradient,
            sorted,
            share,
        } = workspace;
        let processes = problem.processes();
        next.copy_from(state);
        next.iteration = iteration;
        // The splits take turns, the problem first.
        let turn = state.iteration % (1 + other_splits.len());
        let (acting, split, factors) = match turn.checked_sub(1) {
            None => (&mut *engine, problem, &mut next.factors),
            Some(other) => (
                &mut other_splits[other],
                &self.other_splits[other],
                &mut next.other_splits[other],
            ),
        };

        // 1. Update H, by the same rule on the transposed problem. If H is penalised, update W. If
        //    the bunch is over both factors, update neither.
        acting.update_other(split, factors);
        // 2. Rescale the factors.
        self.normalize(split, factors);
        // (H is the same on all processes.)
        finite_everywhere(split, "W", iteration, &factors.w)?;
        finite("H", iteration, &factors.h)?;

        // 3. The bunch and 4. its hypergradient.
        let tuned = self.config.method == Method::AltBi;
        let slot = tuned.then_some(&mut *gradient);
        let errors = acting.bunch(split, factors, &state.lambda, slot)?;
        factors.flush(split.precision());
        finite_everywhere(split, "W", iteration, &factors.w)?;

        // 5. The projected λ step.
        let mut norm = 0.0;
        if tuned {
            finite_everywhere(problem, "hypergradient", iteration, gradient)?;
            let context = StepContext {
                at: StepAt {
                    iteration,
                    iterations: self.config.max_iterations,
                },
                evidence: self.evidence(split, errors.outer_error),
                interval: (self.config.lambda_min, self.config.lambda_max),
            };
            let step = self.step_rule.as_ref();
            if processes.is_alone() || step.is_entrywise() {
                let memory = &mut next.memory;
                hierarchy.apply(step, &mut next.lambda, gradient, context, memory);
            } else {
                // All weights, on every process.
                let whole = Hierarchy::new(&share.whole_layout());
                let mut lambda = share.gather_on_all(&next.lambda);
                let mut memory = share.gather_on_all(&next.memory);
                let slopes = share.gather_on_all(gradient);
                whole.apply(step, &mut lambda, &slopes, context, &mut memory);
                (next.lambda, next.memory) = (share.cut(&lambda), share.cut(&memory));
            }
            problem.round(&mut next.lambda);
            finite_everywhere(problem, "λ", iteration, &next.lambda)?;
            let squares = if processes.is_alone() {
                gradient.iter().map(|g| g * g).sum::<f64>()
            } else {
                let own = share.counted_once(gradient);
                processes.total(own.iter().map(|g| g * g).sum())
            };
            norm = squares.sqrt();
        }

        // 6. The record. (If another split had its turn, the errors are those of before.)
        let before = &state.record;
        let own = match turn {
            0 => errors,
            _ => Errors {
                outer_error: before.outer_error,
                divergence: before.divergence,
            },
        };
        measure(problem, engine.as_ref(), next, own, norm, sorted, share);
        if turn > 0 {
            // (No change would look like convergence.)
            next.record.relative_change = before.relative_change;
            return match errors.outer_error.is_finite() {
                true => Ok(()),
                false => Err(not_finite("the outer error", iteration)),
            };
        }
        next.check_errors(self.measures)?;
        next.remember(self.config.select, &state.lambda);
        Ok(())
    }

    /// N / (2E) of the hierarchical scope, where N is the total weight of the entries that E counts
    /// on all splits.
    fn evidence(&self, split: &Problem, outer_error: f64) -> f64 {
        if outer_error > 0.0 {
            let splits = 1.0 + self.other_splits.len() as f64;
            splits * self.criterion.entries().weight(split) / (2.0 * outer_error)
        } else {
            0.0
        }
    }

    /// The rules for W and for H, for a process that has all rows.
    pub(super) fn rules(&self) -> Result<(Rule, Rule)> {
        self.rules_of(self.terms.clone())
    }

    /// The same, if other processes may have the neighbouring rows.
    ///
    /// # Errors
    /// [`Error::NotSplit`] for a penalty that needs all rows of W.
    pub(super) fn rules_on(&self, problem: &Problem) -> Result<(Rule, Rule)> {
        let processes = problem.processes();
        let across = |term: &PenaltyTerm| {
            if processes.is_alone() || term.penalty.coupling().is_none() {
                return Ok(term.clone());
            }
            let penalty = term.penalty.across(processes);
            let penalty = penalty.ok_or_else(|| Error::NotSplit {
                what: format!("the penalty {} on W", term.penalty.name()),
                processes: processes.size(),
                reason: "it couples rows of different processes; it works on H, so factorise the \
                         transpose",
            })?;
            Ok(PenaltyTerm {
                penalty,
                weight: term.weight.clone(),
            })
        };
        self.rules_of(self.terms.iter().map(across).collect::<Result<_>>()?)
    }

    fn rules_of(&self, of_w: Vec<PenaltyTerm>) -> Result<(Rule, Rule)> {
        let mut of_w = Rule::new(self.divergence.clone(), of_w);
        let mut of_h = Rule::new(self.divergence.clone(), self.terms_of_h.clone());
        // γ is computed before the tuned term is removed, so that a baseline differs from AltBi in
        // λ only.
        let exponent = self.config.exponent;
        (of_w, of_h) = (exponent.of(of_w)?, exponent.of(of_h)?);
        if matches!(self.config.method, Method::Mu | Method::MuT) {
            (of_w, of_h) = (of_w.without_tuned(), of_h.without_tuned());
        }
        Ok((of_w, of_h))
    }

    /// Scales the rows of H to sum 1 (or root mean square 1) and the columns of W inversely, so
    /// that WH does not change.
    pub(super) fn normalize(&self, problem: &Problem, factors: &mut Factors) {
        match self.config.normalize {
            Normalization::None => {}
            Normalization::HRows | Normalization::HRms => {
                let Factors { w, h } = factors;
                for (mut row, mut column) in h.rows_mut().into_iter().zip(w.columns_mut()) {
                    let size = match self.config.normalize {
                        Normalization::HRms => {
                            (row.iter().map(|h| h * h).sum::<f64>() / row.len() as f64).sqrt()
                        }
                        _ => row.sum(),
                    };
                    // A row of zeros stays as it is.
                    if size != 0.0 {
                        row /= size;
                        column *= size;
                    }
                }
                problem.round(w);
                problem.round(h);
            }
        }
    }
}

/// Computes iterations one at a time, for a loop of the caller. Made by [`Solver::begin`].
pub(crate) struct Stepper<'a> {
    solver: &'a Solver,
    problem: &'a Problem,
    workspace: Workspace,
}

impl Stepper<'_> {
    /// One outer iteration.
    pub fn step(&mut self, state: &State) -> Result<State> {
        let Self {
            solver,
            problem,
            workspace,
        } = self;
        solver.advance(problem, state, workspace)?;
        Ok(workspace.next.clone())
    }

    /// D of some factors.
    pub fn divergence(&mut self, factors: &Factors) -> f64 {
        let (errors, _) = self.workspace.engine.errors(self.problem, factors);
        errors.divergence
    }

    /// `Σ λ r` of some factors, in the units of the last bunch.
    pub fn penalty(&self, factors: &Factors, lambda: &Array2<f64>) -> f64 {
        self.workspace.engine.penalty(self.problem, factors, lambda)
    }
}

/// Writes the record of a state.
pub(super) fn measure(
    problem: &Problem,
    engine: &dyn Engine,
    state: &mut State,
    errors: Errors,
    hypergradient_norm: f64,
    sorted: &mut Vec<f64>,
    share: &LambdaShare,
) {
    let Errors {
        outer_error,
        divergence,
    } = errors;
    let penalty = engine.penalty(problem, &state.factors, &state.lambda);
    let [lambda_min, lambda_median, lambda_max] = if problem.processes().is_alone() {
        sorted.clear();
        sorted.extend(&state.lambda);
        let lambda_median = median(sorted);
        let lambda = &state.lambda;
        [
            lambda.iter().copied().fold(f64::INFINITY, f64::min),
            lambda_median,
            lambda.iter().copied().fold(0.0, f64::max),
        ]
    } else {
        let own = share.counted_once(&state.lambda);
        let count = share.whole_layout().len();
        problem.processes().spread(&own, count)
    };
    let before = &state.record;
    let change = if state.iteration == 0 {
        f64::NAN
    } else {
        relative_change(divergence, before.divergence, state.divergence_at_start)
    };
    state.record = Record {
        iteration: state.iteration,
        divergence,
        objective: divergence + penalty,
        outer_error,
        relative_change: change,
        lambda_min,
        lambda_median,
        lambda_max,
        hypergradient_norm,
        seconds: before.seconds,
    };
}

pub(super) fn finite(quantity: &'static str, iteration: usize, values: &Array2<f64>) -> Result<()> {
    let finite = match values.as_slice_memory_order() {
        Some(values) => values.iter().all(|value| value.is_finite()),
        None => values.iter().all(|value| value.is_finite()),
    };
    if finite {
        Ok(())
    } else {
        Err(not_finite(quantity, iteration))
    }
}

/// The same for a matrix that processes share. If one part is not finite, all processes return the
/// error.
pub(super) fn finite_everywhere(
    problem: &Problem,
    quantity: &'static str,
    iteration: usize,
    values: &Array2<f64>,
) -> Result<()> {
    let own = finite(quantity, iteration, values);
    match problem.processes().any(own.is_err()) {
        true => Err(not_finite(quantity, iteration)),
        false => Ok(()),
    }
}

pub(super) fn not_finite(quantity: &'static str, iteration: usize) -> Error {
    Error::NotFinite {
        iteration,
        quantity,
    }
}

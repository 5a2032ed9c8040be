//! Solves of a rival with fixed λ, counted against its budget.

use ndarray::Array2;

use super::ledger::{Ledger, Point};
use super::{DIAL, Task};
use crate::config::{AltBiConfig, Method, Selection};
use crate::error::{Error, Result};
use crate::factors::{Factors, GivenFactors, Initial, Side};
use crate::lambda::{LambdaStart, Layout, Scope, Units};
use crate::penalty::{NoPenalty, PenaltyTerm};
use crate::practical::{self, LONGEST, MARGIN, PATIENCE, REFIT, RowErrors, STRIDE, with_starts};
use crate::solver::{Outcome, Record, Solver, State, Stepper, StopReason, Stopping, StoppingRule};

/// The stopping rule of a solve, the same as in [`practical`](mod@crate::practical).
const STOPPING: Stopping = Stopping {
    tolerance: None,
    patience: Some(PATIENCE / STRIDE),
    limit: LONGEST / STRIDE,
};

/// The result of a solve.
#[derive(Debug, Clone)]
pub struct Solved {
    /// The dials, one for each weight. Empty if λ was not chosen by dials.
    pub dials: Vec<f64>,
    /// λ of the best iterate.
    pub lambda: Array2<f64>,
    /// E of the best iterate.
    pub outer_error: f64,
    /// D of the best iterate.
    pub divergence: f64,
    /// Σ λ r of the best iterate.
    pub penalty: f64,
    /// The best iterate.
    pub factors: Factors,
}

/// The answer of a rival.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(crate) outer_error: f64,
    pub(crate) factors: Factors,
    /// The factors after the refit.
    pub(crate) refit: Factors,
    /// D on all entries, before and after the refit.
    pub(crate) divergence: (f64, f64),
    pub(crate) lambda: Array2<f64>,
    pub(crate) solves: usize,
    pub(crate) work: f64,
    pub(crate) seconds: f64,
    pub(crate) points: Vec<Point>,
}

/// A task with its start, and the budget of one rival. It makes solves with given weights until the
/// budget is spent.
pub struct Books<'a> {
    pub(crate) task: &'a Task,
    pub(crate) ledger: Ledger<'a>,
    config: AltBiConfig,
    layout: Layout,
    start: Factors,
    /// The number of plain updates that led to the start.
    updates_at_start: usize,
    solves: usize,
}

impl<'a> Books<'a> {
    /// Books with this budget of updates. Work ends when `going` returns false. `scope` is the
    /// scope of the dials.
    pub(crate) fn new(
        task: &'a Task,
        scope: Scope,
        budget: f64,
        going: &'a (dyn Fn() -> bool + Sync),
    ) -> Result<Self> {
        let config = practical::settings(task.rank, task.divergence.as_ref(), &task.terms)
            .with_seed(task.seed)
            .with_method(Method::Frozen)
            .with_scope(scope)
            .with_bunch(STRIDE)
            .with_lambda_min(0.0)
            .with_threads(1)
            .with_select(Selection::Best);
        // All rivals use the start, so each is charged for it.
        let mut books = Self {
            task,
            ledger: Ledger::new(budget, going),
            layout: Layout::default(),
            start: Factors {
                w: Array2::zeros((0, 0)),
                h: Array2::zeros((0, 0)),
            },
            updates_at_start: config.warm_up,
            solves: 0,
            config,
        };
        books.layout = books.solver(books.config.clone()).layout(&task.split);
        // (The first updates of plain updates, in practical too.)
        let warm = books.plain_solver(books.plain_config());
        let state = warm.init(&task.split)?;
        let (work, error) = (books.config.warm_up as f64, state.record.outer_error);
        books.ledger.book(task, work, error, &state.factors);
        books.start = state.factors;
        books.config.warm_up = 0;
        Ok(books)
    }

    /// The settings of its solves.
    pub(crate) fn config(&self) -> AltBiConfig {
        self.config.clone()
    }

    fn solver(&self, config: AltBiConfig) -> Solver {
        self.solver_of(config, self.task.terms.clone())
    }

    /// A solver with the rival's own penalties.
    pub(crate) fn solver_of(&self, config: AltBiConfig, terms: Vec<(Side, PenaltyTerm)>) -> Solver {
        Solver::penalizing(config, self.task.divergence.clone(), terms)
            .with_shared_criterion(self.task.outer.criterion())
            .by_outer_error()
    }

    /// The task.
    pub fn task(&self) -> &Task {
        self.task
    }

    /// The budget that is left, in updates.
    pub fn left(&self) -> f64 {
        self.ledger.left()
    }

    /// The number of dials: log λ of each penalty, or of each of its components.
    pub fn dials(&self) -> usize {
        self.layout.len()
    }

    /// One solve with these dials, from these factors or from the common start. It ends when the
    /// held-out error no longer falls or the budget is spent. Returns `None` if the budget was
    /// spent before.
    ///
    /// # Errors
    /// Those of a solve.
    ///
    /// # Panics
    /// If the number of dials is not [`dials`](Self::dials).
    pub fn solve(&mut self, dials: &[f64], from: Option<&Factors>) -> Result<Option<Solved>> {
        assert_eq!(dials.len(), self.dials(), "one number for each dial");
        let weights = dials.iter().map(|dial| dial.clamp(DIAL.0, DIAL.1).exp());
        let lambda = Array2::from_shape_vec((dials.len(), 1), weights.collect());
        let lambda = lambda.expect("a column of dials");
        let solver = self.solver(self.config.clone()).with_lambda(lambda);
        let from = from.unwrap_or(&self.start).clone();
        self.solve_with(solver, dials.to_vec(), from, |_, _| true)
    }

    /// A solve with the same value of all dials.
    pub(crate) fn solve_alike(
        &mut self,
        dial: f64,
        from: Option<&Factors>,
    ) -> Result<Option<Solved>> {
        self.solve(&vec![dial; self.dials()], from)
    }

    /// The same without penalty.
    ///
    /// # Errors
    /// Those of a solve.
    pub fn solve_plain(&mut self) -> Result<Option<Solved>> {
        let solver = self.plain_solver(self.plain_config());
        let solved = self.solve_with(solver, Vec::new(), self.start.clone(), |_, _| true)?;
        Ok(solved.map(|solved| self.without_penalty(solved)))
    }

    /// The settings of a solve without penalties. (A penalty may need a smaller exponent, even if its
    /// weight is 0.)
    fn plain_config(&self) -> AltBiConfig {
        let mut config = self
            .config
            .clone()
            .with_method(Method::MuT)
            .with_scope(Scope::Row)
            .with_units(Units::Absolute);
        config.lambda = LambdaStart::Auto;
        config
    }

    fn plain_solver(&self, config: AltBiConfig) -> Solver {
        self.solver_of(config, vec![(Side::W, PenaltyTerm::tuned(NoPenalty))])
    }

    /// A plain solve as one whose weights are all 0.
    fn without_penalty(&self, solved: Solved) -> Solved {
        Solved {
            lambda: Array2::zeros((self.dials(), 1)),
            penalty: 0.0,
            ..solved
        }
    }

    /// A solve with one absolute λ for all weights, from these factors or from the common start.
    pub(crate) fn solve_absolute(
        &mut self,
        lambda: f64,
        from: Option<&Factors>,
    ) -> Result<Option<Solved>> {
        let config = self.config.clone().with_units(Units::Absolute);
        let weights = Array2::from_elem((self.dials(), 1), lambda);
        let solver = self.solver(config).with_lambda(weights);
        let from = from.unwrap_or(&self.start).clone();
        self.solve_with(solver, Vec::new(), from, |_, _| true)
    }

    /// A solve with weights that change during it. `schedule` gets λ and the number of updates,
    /// changes λ, and returns true if the solve may end when the held-out error no longer falls.
    pub(crate) fn solve_scheduled(
        &mut self,
        dial: f64,
        schedule: impl Fn(&mut Array2<f64>, usize) -> bool,
    ) -> Result<Option<Solved>> {
        let weights = Array2::from_elem((self.dials(), 1), dial.exp());
        let solver = self.solver(self.config.clone()).with_lambda(weights);
        self.solve_with(solver, Vec::new(), self.start.clone(), schedule)
    }

    /// A plain solve, stopped early, and the starts of solves with the final λ as in `practical`.
    /// It is not charged.
    fn plain_outcome(&self) -> Result<(Outcome, Vec<Factors>)> {
        let mut config = self.plain_config();
        config.max_iterations = STOPPING.limit;
        let solver = self.plain_solver(config).with_factors(self.start());
        with_starts(solver, &self.task.split, self.updates_at_start)
    }

    /// Its held-out error.
    pub(crate) fn plain_error(&self) -> f64 {
        self.plain_outcome()
            .map_or(f64::NAN, |(outcome, _)| outcome.outer_error)
    }

    /// Solves for the chosen weights again, as `practical` does, but always from both iterates of
    /// plain updates. The best solve counts if it beats plain updates by the margin of `practical`,
    /// otherwise plain updates do. This is beyond the budget.
    pub(crate) fn chosen_as_in_practical(
        &mut self,
        mut chosen: Option<Solved>,
        solve: impl Fn(&mut Self, &Factors) -> Result<Option<Solved>>,
    ) -> Result<Solved> {
        self.ledger.lift_the_budget();
        if self.ledger.is_spent() {
            return Ok(self.or_start(chosen));
        }
        let (plain, starts) = self.plain_outcome()?;
        self.ledger.skip_time();
        for from in &starts {
            let again = match solve(self, from) {
                // (It broke down at its start.)
                Err(Error::NotFinite { .. }) => continue,
                other => other?,
            };
            chosen = again.into_iter().fold(chosen, better);
        }
        let chosen = self.or_start(chosen);
        let criterion = self.task.outer.criterion();
        let divergence = self.task.divergence.as_ref();
        let errors = RowErrors::new(&self.task.split, divergence, criterion.as_ref());
        let gain = errors.gain(&plain.factors(), &chosen.factors);
        Ok(match gain.exceeds(MARGIN) {
            true => chosen,
            false => self.without_penalty(Solved {
                dials: Vec::new(),
                lambda: Array2::zeros((0, 0)),
                outer_error: plain.outer_error,
                divergence: plain.divergence,
                penalty: 0.0,
                factors: plain.factors(),
            }),
        })
    }

    /// A solve without penalty and without early stopping: at most so many updates. With a tolerance
    /// it ends when ten updates lower √D by less than this share of its first value. It begins at the
    /// common start if no other kind is named.
    pub(crate) fn solve_to_the_end(
        &mut self,
        most: usize,
        tolerance: Option<f64>,
        initial: Option<Initial>,
    ) -> Result<Solved> {
        let config = self.plain_config();
        let solver = match initial {
            Some(initial) => {
                // The common start is not its own.
                self.ledger.begin_again();
                self.plain_solver(config.with_initial(initial))
            }
            None => self.plain_solver(config).with_factors(self.start()),
        };
        let (mut state, mut stepper) = solver.begin(&self.task.split)?;
        let mut errors: Vec<f64> = Vec::new();
        while state.iteration * STRIDE < most && !self.ledger.is_spent() {
            if let Some(tolerance) = tolerance
                && (state.iteration * STRIDE).is_multiple_of(10)
            {
                let (last, error) = (errors.last(), stepper.divergence(&state.factors).sqrt());
                if last.is_some_and(|last| last - error < tolerance * errors[0]) {
                    break;
                }
                errors.push(error);
            }
            state = match self.advance(&mut stepper, &state, STRIDE) {
                Err(Error::NotFinite { .. }) => break,
                other => other?,
            };
        }
        self.solves += 1;
        let end = (&state.factors, &state.lambda, &state.record);
        let solved = solved(Vec::new(), end, &mut stepper);
        Ok(self.without_penalty(solved))
    }

    /// The start, the same for all.
    pub(crate) fn start(&self) -> GivenFactors {
        self.start.clone().into()
    }

    /// One iteration with this number of updates.
    pub(crate) fn advance(
        &mut self,
        stepper: &mut Stepper<'_>,
        state: &State,
        updates: usize,
    ) -> Result<State> {
        let next = stepper.step(state);
        let (error, factors) = match &next {
            Ok(next) => (next.record.outer_error, &next.factors),
            // A solve that broke down is charged too.
            Err(_) => (f64::INFINITY, &state.factors),
        };
        self.ledger.book(self.task, updates as f64, error, factors);
        next
    }

    /// One solve until the held-out error no longer falls or the budget is spent. Returns `None` if
    /// it was spent before.
    fn solve_with(
        &mut self,
        solver: Solver,
        dials: Vec<f64>,
        from: Factors,
        schedule: impl Fn(&mut Array2<f64>, usize) -> bool,
    ) -> Result<Option<Solved>> {
        if self.ledger.is_spent() {
            return Ok(None);
        }
        let solver = solver.with_factors(from.into());
        let (mut state, mut stepper) = solver.begin(&self.task.split)?;
        self.solves += 1;
        while !self.ledger.is_spent() {
            state = match self.advance(&mut stepper, &state, STRIDE) {
                // A solve that broke down ends; its best iterate is kept.
                Err(Error::NotFinite { .. }) => break,
                other => other?,
            };
            let may_end = schedule(&mut state.lambda, state.iteration * STRIDE);
            let best = state.best.as_ref().map(|best| best.record.iteration);
            match STOPPING.reason(&state.record, best) {
                Some(StopReason::OutOfPatience) if !may_end => {}
                Some(_) => break,
                None => {}
            }
        }
        let best = state.best.expect("the start is one");
        let end = (&best.factors, &best.acted, &best.record);
        Ok(Some(solved(dials, end, &mut stepper)))
    }

    /// Ends the search with the rival's choice, or with the best iterate of all, and refits it.
    ///
    /// Weights that were chosen by dials are first solved for again. Plain updates count instead if
    /// the choice does not beat them by the margin of `practical`.
    ///
    /// # Errors
    /// Those of a solve.
    pub fn answer(mut self, chosen: Option<Solved>) -> Result<Answer> {
        let dials = chosen.as_ref().map(|chosen| chosen.dials.clone());
        let dials = dials.filter(|dials| dials.len() == self.dials());
        let chosen = self.chosen_as_in_practical(chosen, |books, from| match &dials {
            Some(dials) => books.solve(dials, Some(from)),
            None => Ok(None),
        })?;
        self.answer_as_it_is(chosen)
    }

    /// Ends the search with this solve, and refits it.
    pub(crate) fn answer_as_it_is(self, chosen: Solved) -> Result<Answer> {
        let (config, terms) = (self.config.clone(), self.task.terms.clone());
        self.answer_with(chosen, config, terms)
    }

    /// The chosen solve, or the best recorded iterate if there is none.
    fn or_start(&self, chosen: Option<Solved>) -> Solved {
        chosen.unwrap_or_else(|| {
            // If no error was finite, the start is taken.
            let start = || (f64::INFINITY, self.start.clone());
            let (outer_error, factors) = self.ledger.best().cloned().unwrap_or_else(start);
            Solved {
                dials: Vec::new(),
                lambda: Array2::zeros((self.dials(), 1)),
                outer_error,
                divergence: f64::NAN,
                penalty: f64::NAN,
                factors,
            }
        })
    }

    /// The same for a solve with the rival's own settings and penalties.
    pub(crate) fn answer_with(
        self,
        chosen: Solved,
        config: AltBiConfig,
        terms: Vec<(Side, PenaltyTerm)>,
    ) -> Result<Answer> {
        let (refit, divergence) = self.refit(&chosen, config, terms)?;
        Ok(Answer {
            outer_error: chosen.outer_error,
            factors: chosen.factors,
            refit,
            divergence,
            lambda: chosen.lambda,
            solves: self.solves,
            work: self.ledger.work(),
            seconds: self.ledger.seconds(),
            points: self.ledger.points,
        })
    }

    /// A refit as in [`practical`](mod@crate::practical): of the start and the updates on all
    /// entries, the iterate with the lowest divergence.
    fn refit(
        &self,
        chosen: &Solved,
        config: AltBiConfig,
        terms: Vec<(Side, PenaltyTerm)>,
    ) -> Result<(Factors, (f64, f64))> {
        // The bunches are as long as those of the solve.
        let length = config.bunch.min(REFIT);
        let config = config
            .with_bunch(length)
            .with_max_iterations(REFIT.div_ceil(length));
        let mut solver = Solver::penalizing(config, self.task.divergence.clone(), terms)
            .with_lambda(chosen.lambda.clone())
            .with_factors(chosen.factors.clone().into());
        // (After a breakdown the state before it counts.)
        let outcome = solver.run(&self.task.full)?;
        let before = outcome.history[0].divergence;
        Ok((outcome.factors(), (before, outcome.divergence)))
    }
}

/// The result of a solve, with D and the penalties at its end.
fn solved(
    dials: Vec<f64>,
    (factors, lambda, record): (&Factors, &Array2<f64>, &Record),
    stepper: &mut Stepper<'_>,
) -> Solved {
    let divergence = stepper.divergence(factors);
    Solved {
        dials,
        lambda: lambda.clone(),
        outer_error: record.outer_error,
        divergence,
        penalty: stepper.penalty(factors, lambda),
        factors: factors.clone(),
    }
}

/// The better of two solves.
pub(crate) fn better(best: Option<Solved>, new: Solved) -> Option<Solved> {
    match best {
        Some(best) if best.outer_error <= new.outer_error => Some(best),
        _ => Some(new),
    }
}

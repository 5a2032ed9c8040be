//! The engine of a run, and the state before its first iteration.

use super::iteration::{finite, finite_everywhere, measure};
use super::{Record, Solver, State};
use crate::bunch::{Bunch, Data, Pair, Span};
use crate::config::{AltBiConfig, Method};
use crate::engine::{Agreement, Engine, EngineChoice, EngineUsed, Setup, agreement};
use crate::error::{Error, Result};
use crate::factors::{Factors, check_rank};
use crate::problem::{Problem, ToMatrix};
use crate::threads::new_pool;
use crate::update::Rule;

impl Solver {
    /// The state before the first iteration.
    ///
    /// # Errors
    /// [`Error::Setting`], [`Error::Conflict`] and [`Error::NoMonotoneExponent`] for settings;
    /// [`Error::EngineUnsupported`]; [`Error::OutsideDomain`] for data outside the domain of the
    /// divergence; [`Error::Rank`], [`Error::Shape`], [`Error::NegativeEntry`] and
    /// [`Error::NotFiniteEntry`] for a bad start.
    pub fn init(&self, problem: &Problem) -> Result<State> {
        self.check(problem)?;
        self.start(problem, self.engine(problem)?.0.as_mut())
    }

    /// Refuses bad settings and data.
    pub(super) fn check(&self, problem: &Problem) -> Result<()> {
        self.config.check()?;
        problem.check_domain(self.divergence.as_ref())?;
        self.criterion.check(problem)?;
        // The rank is checked before memory of its size is allocated.
        check_rank(problem, self.config.rank)?;
        self.check_scopes()
    }

    /// The factors before the first iteration.
    pub(super) fn first_factors(&self, problem: &Problem, engine: &dyn Engine) -> Result<Factors> {
        let AltBiConfig {
            rank,
            initial,
            seed,
            ..
        } = self.config;
        let factors = Factors::start(problem, rank, initial, seed, &self.given);
        let mut factors = problem.processes().agree(factors)?;
        self.warm_up(problem, engine, &mut factors)?;
        // The factors are normalised before λ is balanced, because λ depends on their scale.
        self.normalize(problem, &mut factors);
        finite_everywhere(problem, "W", 0, &factors.w)?;
        finite("H", 0, &factors.h)?;
        Ok(factors)
    }

    /// An engine for each of the other splits.
    pub(super) fn split_engines(&self) -> Result<Vec<Box<dyn Engine + Send>>> {
        let engine = |split: &Problem| Ok(split.processes().agree(self.engine(split))?.0);
        self.other_splits.iter().map(engine).collect()
    }

    pub(super) fn start(&self, problem: &Problem, engine: &mut dyn Engine) -> Result<State> {
        let factors = self.first_factors(problem, engine)?;
        let processes = problem.processes();
        let (errors, divergences) = engine.errors(problem, &factors);
        let lambda = self.initial_weights(problem, engine, &factors, &divergences);
        let lambda = processes.agree(lambda)?;
        finite_everywhere(problem, "λ", 0, &lambda)?;
        let mut state = State {
            iteration: 0,
            factors,
            lambda,
            record: Record::unknown(),
            divergence_at_start: errors.divergence,
            best: None,
            memory: self.memory(problem),
            other_splits: Vec::new(),
            share: problem
                .share()
                .is_split()
                .then(|| self.lambda_share(problem)),
        };
        measure(
            problem,
            engine,
            &mut state,
            errors,
            f64::NAN,
            &mut Vec::new(),
            &self.lambda_share(problem),
        );
        state.check_errors(true)?;
        // The start counts as an iterate.
        let acted = state.lambda.clone();
        state.remember(self.config.select, &acted);
        Ok(state)
    }

    /// Plain updates of both factors, so that a run does not begin with noise.
    fn warm_up(&self, problem: &Problem, engine: &dyn Engine, factors: &mut Factors) -> Result<()> {
        if self.config.warm_up == 0 {
            return Ok(());
        }
        let (of_w, of_h) = self.rules_on(problem)?;
        let rules = [of_w.without_tuned(), of_h.without_tuned()];
        let (criterion, length) = (self.criterion.clone(), self.config.warm_up);
        let data = match engine.data() {
            Some(data) => data.clone(),
            None => Data::fused(problem, self.divergence.as_ref(), criterion.as_ref())?,
        };
        let bunch = Bunch::with_data(problem, rules, criterion, Span::Both, length, data)?;
        let end = bunch.run(&Pair::of(problem, factors), &[]);
        factors.w = end.w.to_matrix()?;
        factors.h = end.h.transpose().to_matrix()?;
        Ok(())
    }

    /// The task of the engine of this run.
    fn setup(&self, problem: &Problem) -> Result<Setup> {
        self.setup_with(problem, self.rules_on(problem)?)
    }

    fn setup_with(&self, problem: &Problem, (of_w, of_h): (Rule, Rule)) -> Result<Setup> {
        Ok(Setup {
            of_w,
            of_h,
            criterion: self.criterion.clone(),
            span: self.span()?,
            length: self.config.updates_of_w(),
            layout: self.layout(problem),
            units: self.config.units,
            mode: self.config.hypergradient,
            tuned: self.config.method == Method::AltBi,
            rank: self.config.rank,
            threads: self.threads(),
        })
    }

    /// The engine that the settings ask for and the parts of the run allow.
    pub(super) fn engine(&self, problem: &Problem) -> Result<(Box<dyn Engine + Send>, EngineUsed)> {
        let setup = self.setup(problem)?;
        let fused = match self.config.engine {
            EngineChoice::Autodiff => None,
            EngineChoice::Fused => Some(setup.fused(problem)?),
            EngineChoice::Auto => match setup.fused(problem) {
                Err(Error::EngineUnsupported { .. }) => None,
                fused => Some(fused?),
            },
        };
        let (mut engine, used): (Box<dyn Engine + Send>, _) = match fused {
            Some(engine) => (engine, EngineUsed::Fused),
            None => (Box::new(setup.reference(problem)?), EngineUsed::Autodiff),
        };
        if !self.measures {
            engine.leave_divergence_out();
        }
        Ok((engine, used))
    }

    /// Compares the engines in the first iteration, if the settings ask for it.
    pub(super) fn compared(
        &self,
        problem: &Problem,
        used: EngineUsed,
        state: &State,
    ) -> Result<EngineUsed> {
        if (self.config.engine, used) != (EngineChoice::Auto, EngineUsed::Fused) {
            return Ok(used);
        }
        // A sample of the rows of this process, without the other processes.
        let setup = self.setup_with(problem, self.rules()?)?;
        let compare = || agreement(problem, &setup, &state.factors, &state.lambda);
        let found = if problem.is_small() {
            compare()
        } else {
            // (The memory of the tape belongs to this thread and is freed with it. More threads would
            // need more. A worker that waited for the pool itself would start another fit meanwhile.)
            let alone = || new_pool(1).and_then(|pool| pool.install(compare));
            let joined = std::thread::scope(|scope| scope.spawn(alone).join());
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let found = problem.processes().agree(found)?;
        let found = Agreement::over(found, problem.processes());
        Ok(found.map_or(used, EngineUsed::Checked))
    }
}

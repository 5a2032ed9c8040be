//! Every setting of a run, with default and range.

mod choices;

use serde::{Deserialize, Serialize};

pub use choices::{BunchOver, Exponent, Method, Normalization, Selection};

use crate::bunch::check_length;
use crate::divergence::{Beta, Divergence};
use crate::engine::EngineChoice;
use crate::error::{Error, Result};
use crate::factors::{Initial, Side};
use crate::hypergradient::Mode;
use crate::lambda::{LambdaStart, LambdaStep, Scope, Units};
use crate::numerics::Precision;
use crate::penalty::{L1, Penalty, PenaltyTerm};
use crate::problem::ToMatrix;
use crate::solver::{Outcome, Solver};

/// The settings of a run, except for the plug-ins, which the [`Solver`] holds.
///
/// | field | default | purpose | range |
/// |---|---|---|---|
/// | `rank` | required | components r | 1 … min(n, m) |
/// | `method` | `AltBi` | algorithm or baseline | |
/// | `bunch` | 4 | updates of W per update of H, T | ≥ 1 |
/// | `bunch_over` | `One` | the factors that a bunch updates | |
/// | `warm_up` | 0 | plain updates of both factors before the first iteration | ≤ 100000 |
/// | `exponent` | `One` | γ | |
/// | `lambda` | `Auto` | first λ | value ≥ 0 |
/// | `lambda_step` | `InverseIteration` | steps of λ | > 0 |
/// | `lambda_min` | 0 | lower end of the interval of λ > 0 | ≥ 0 |
/// | `lambda_max` | ∞ | upper end of the interval of λ | > 0 |
/// | `scope` | `Row` | scope of λ | |
/// | `units` | `Absolute` | units of λ | |
/// | `hypergradient` | `Reverse` | mode | |
/// | `normalize` | `None` | scale of the factors | |
/// | `max_iterations` | 1000 | outer iterations | ≥ 1 |
/// | `tolerance` | 1e-6 | stop at abs(D_k − D_{k−1}) / D_0 ≤ tolerance | ≥ 0 |
/// | `select` | `Last` | the iterate to return | |
/// | `initial` | `Random` | W and H at the start | |
/// | `seed` | 0 | random start | |
/// | `precision` | `F64` | floating-point type | |
/// | `engine` | `Auto` | engine of the iterations | |
/// | `threads` | 0 | number of threads; 0: one per core | ≤ 1024 |
///
/// ```
/// use altbi::AltBiConfig;
/// let x = ndarray::Array2::from_shape_fn((20, 12), |(i, j)| 1.0 + ((i * j) % 5) as f64);
/// let outcome = AltBiConfig::new(3).with_seed(7).fit(&x)?;
/// println!("{} after {} iterations", outcome.stop_reason, outcome.iterations);
/// assert!(outcome.relative_error < 0.5);
/// # Ok::<(), altbi::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AltBiConfig {
    /// Components r.
    pub rank: usize,
    /// Algorithm or baseline.
    #[serde(default)]
    pub method: Method,
    /// T.
    #[serde(default = "default_bunch")]
    pub bunch: usize,
    /// The factors that a bunch updates.
    #[serde(default)]
    pub bunch_over: BunchOver,
    /// Plain updates of both factors before the first iteration.
    #[serde(default)]
    pub warm_up: usize,
    /// γ.
    #[serde(default)]
    pub exponent: Exponent,
    /// First λ.
    #[serde(default)]
    pub lambda: LambdaStart,
    /// Steps of λ.
    #[serde(default)]
    pub lambda_step: LambdaStep,
    /// Smallest λ, except for λ = 0.
    #[serde(default)]
    pub lambda_min: f64,
    /// Largest λ.
    #[serde(default = "default_lambda_max")]
    pub lambda_max: f64,
    /// Scope of λ.
    #[serde(default)]
    pub scope: Scope,
    /// Units of λ.
    #[serde(default)]
    pub units: Units,
    /// Mode of the hypergradient.
    #[serde(default)]
    pub hypergradient: Mode,
    /// Scale of the factors.
    #[serde(default)]
    pub normalize: Normalization,
    /// Largest number of outer iterations.
    #[serde(default = "default_max_iterations")]
    pub max_iterations: usize,
    /// Relative change of the divergence at which a run stops.
    #[serde(default = "default_tolerance")]
    pub tolerance: f64,
    /// The iterate to return.
    #[serde(default)]
    pub select: Selection,
    /// W and H at the start.
    #[serde(default)]
    pub initial: Initial,
    /// Seed of the random start.
    #[serde(default)]
    pub seed: u64,
    /// Floating-point type.
    #[serde(default)]
    pub precision: Precision,
    /// Engine of the iterations.
    #[serde(default)]
    pub engine: EngineChoice,
    /// Number of threads; 0: one per core.
    #[serde(default)]
    pub threads: usize,
}

/// Largest value of a positive setting. With larger ones sums of squares could overflow.
const LARGEST: f64 = 1e100;

/// Largest number of warm-up updates.
const LONGEST_WARM_UP: usize = 100_000;

/// Largest number of threads. Each has memory of its own.
pub(crate) const MOST_THREADS: usize = 1024;

fn default_bunch() -> usize {
    4
}

fn default_lambda_max() -> f64 {
    f64::INFINITY
}

fn default_max_iterations() -> usize {
    1000
}

fn default_tolerance() -> f64 {
    1e-6
}

/// Setters of single fields.
macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident($field:ident: $type:ty);)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $setter(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    )*};
}

impl AltBiConfig {
    /// The paper's settings for a rank.
    pub fn new(rank: usize) -> Self {
        Self {
            rank,
            method: Method::default(),
            bunch: default_bunch(),
            bunch_over: BunchOver::default(),
            warm_up: 0,
            exponent: Exponent::default(),
            lambda: LambdaStart::default(),
            lambda_step: LambdaStep::default(),
            lambda_min: 0.0,
            lambda_max: default_lambda_max(),
            scope: Scope::default(),
            units: Units::default(),
            hypergradient: Mode::default(),
            normalize: Normalization::default(),
            max_iterations: default_max_iterations(),
            tolerance: default_tolerance(),
            select: Selection::default(),
            initial: Initial::default(),
            seed: 0,
            precision: Precision::default(),
            engine: EngineChoice::default(),
            threads: 0,
        }
    }

    setters! {
        /// Sets the algorithm or baseline.
        with_method(method: Method);
        /// Sets T.
        with_bunch(bunch: usize);
        /// Sets the factors that a bunch updates.
        with_bunch_over(bunch_over: BunchOver);
        /// Sets the number of plain updates before the first iteration.
        with_warm_up(warm_up: usize);
        /// Sets the scope of λ.
        with_scope(scope: Scope);
        /// Sets the units of λ.
        with_units(units: Units);
        /// Sets γ.
        with_exponent(exponent: Exponent);
        /// Sets the λ step.
        with_lambda_step(lambda_step: LambdaStep);
        /// Sets the smallest λ, except for λ = 0.
        with_lambda_min(lambda_min: f64);
        /// Sets the largest λ.
        with_lambda_max(lambda_max: f64);
        /// Sets the hypergradient's mode.
        with_hypergradient(hypergradient: Mode);
        /// Sets the normalisation.
        with_normalize(normalize: Normalization);
        /// Sets the number of outer iterations.
        with_max_iterations(max_iterations: usize);
        /// Sets the stopping tolerance. With 0 a run goes on to the last iteration, or until D no
        /// longer changes.
        with_tolerance(tolerance: f64);
        /// Sets the iterate to return.
        with_select(select: Selection);
        /// Sets W and H at the start.
        with_initial(initial: Initial);
        /// Sets the seed.
        with_seed(seed: u64);
        /// Sets the floating-point type.
        with_precision(precision: Precision);
        /// Sets the engine.
        with_engine(engine: EngineChoice);
        /// Sets the number of threads; 0 means one per core. The result does not depend on it.
        with_threads(threads: usize);
    }

    /// Sets the first λ of every row.
    #[must_use]
    pub fn with_lambda(mut self, lambda: f64) -> Self {
        self.lambda = LambdaStart::Value(lambda);
        self
    }

    /// Updates of W per update of H: T, or 1 for the methods without a bunch.
    pub(crate) fn updates_of_w(&self) -> usize {
        match self.method {
            Method::Mu | Method::PenalizedMu => 1,
            Method::AltBi | Method::MuT | Method::Frozen => self.bunch,
        }
    }

    /// Refuses settings outside their ranges (the rank is checked against X).
    ///
    /// # Errors
    /// [`Error::Setting`] with the first such setting.
    pub fn check(&self) -> Result<()> {
        check_length(self.bunch)?;
        self.lambda_step.check()?;
        self.scope.check()?;
        let not_negative = |value: f64| (0.0..=LARGEST).contains(&value);
        let lambda = match self.lambda {
            LambdaStart::Auto => 0.0,
            LambdaStart::Value(value) => value,
        };
        let range = Error::require;
        range(not_negative(lambda), "λ", lambda, "between 0 and 1e100")?;
        range(
            self.lambda_min >= 0.0 && self.lambda_min <= self.lambda_max,
            "the smallest λ",
            self.lambda_min,
            "a number from 0 to the largest λ",
        )?;
        range(
            self.lambda_max > 0.0,
            "the largest λ",
            self.lambda_max,
            "a positive number",
        )?;
        range(
            not_negative(self.tolerance),
            "the tolerance",
            self.tolerance,
            "between 0 and 1e100",
        )?;
        range(
            self.warm_up <= LONGEST_WARM_UP,
            "the number of warm-up updates",
            self.warm_up as f64,
            "at most 100000",
        )?;
        range(
            self.threads <= MOST_THREADS,
            "the number of threads",
            self.threads as f64,
            "at most 1024",
        )?;
        range(
            self.max_iterations > 0,
            "the number of iterations",
            0.0,
            "at least 1",
        )
    }

    /// A solver with plug-ins of choice.
    pub fn solver(
        &self,
        divergence: impl Divergence + 'static,
        penalty: impl Penalty + 'static,
    ) -> Solver {
        Solver::new(self.clone(), divergence, penalty)
    }

    /// A solver with any number of penalties on either factor, tuned or fixed.
    ///
    /// ```
    /// use altbi::lambda::LambdaStep;
    /// use altbi::{AltBiConfig, Beta, BunchOver, L1, PenaltyTerm, Scope, Side, Smooth};
    /// let x = ndarray::Array2::from_shape_fn((12, 9), |(i, j)| 1.0 + ((i * j) % 5) as f64);
    /// // Smooth columns of W and a sparse H, a weight for each component of either.
    /// let outcome = AltBiConfig::new(2)
    ///     .with_bunch_over(BunchOver::Both)
    ///     .with_scope(Scope::Component)
    ///     .with_lambda_step(LambdaStep::Adam(0.1))
    ///     .with_max_iterations(10)
    ///     .penalizing(
    ///         Beta::KL,
    ///         [
    ///             (Side::W, PenaltyTerm::tuned(Smooth)),
    ///             (Side::H, PenaltyTerm::tuned(L1)),
    ///         ],
    ///     )
    ///     .fit(&x)?;
    /// assert_eq!(outcome.weights()[1].lambda.dim(), (2, 1));
    /// # Ok::<(), altbi::Error>(())
    /// ```
    pub fn penalizing(
        &self,
        divergence: impl Divergence + 'static,
        terms: impl IntoIterator<Item = (Side, PenaltyTerm)>,
    ) -> Solver {
        Solver::penalizing(self.clone(), divergence, terms)
    }

    /// Runs with the paper's plug-ins: KL divergence and ℓ1 penalty.
    ///
    /// # Errors
    /// Those of [`Solver::fit`].
    ///
    /// # Shapes
    /// `x` is n×m.
    pub fn fit(&self, x: &(impl ToMatrix + ?Sized)) -> Result<Outcome> {
        self.solver(Beta::KL, L1).fit(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_outside_their_range_are_refused() {
        let base = || AltBiConfig::new(2);
        assert!(base().check().is_ok());
        for bad in [
            base().with_bunch(0),
            base().with_lambda(-1.0),
            base().with_lambda(f64::NAN),
            base().with_lambda_max(0.0),
            base().with_lambda_max(f64::NAN),
            base().with_tolerance(-1e-9),
            base().with_max_iterations(0),
            base().with_threads(1025),
            base().with_lambda_step(LambdaStep::Constant(0.0)),
        ] {
            assert!(matches!(bad.check(), Err(Error::Setting { .. })), "{bad:?}");
        }
    }

    #[test]
    fn settings_survive_a_file() {
        let config = AltBiConfig::new(3)
            .with_method(Method::PenalizedMu)
            .with_lambda(0.25)
            .with_lambda_step(LambdaStep::Constant(0.5))
            .with_hypergradient(Mode::Adjoint);
        let text = toml::to_string(&config).unwrap();
        assert_eq!(toml::from_str::<AltBiConfig>(&text).unwrap(), config);
        assert!(toml::from_str::<AltBiConfig>("rank = 3\nbunches = 4").is_err());
    }
}

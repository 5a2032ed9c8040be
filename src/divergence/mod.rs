//! Divergences between the data and the reconstruction: one trait, and the built-in β-divergences.
//!
//! | name | type | data |
//! |---|---|---|
//! | `kl` | [`Beta::KL`] | x ≥ 0; counts, spectra |
//! | `frobenius` | [`Beta::FROBENIUS`] | x ≥ 0; Gaussian noise |
//! | `is` | [`Beta::ITAKURA_SAITO`] | x > 0; multiplicative noise, power spectra |
//! | `beta:<β>` | [`Beta`]`(β)` | x ≥ 0 for β > 0, x > 0 otherwise |
//!
//! An outer error may have a divergence of its own ([`Outer`]): one of these, or
//! `smoothed-kl:<c>`, [`SmoothedKl`]`(c)`, KL between x + c and y + c, for data with many zeros.
//!
//! # A divergence of your own
//! Implement [`Divergence`]: a value and a split derivative are enough for reverse mode. With
//! [`Divergence::slope`] it also works in forward, adjoint and implicit mode, and with
//! [`Divergence::fused`] it runs in fused loops (see `examples/custom_divergence.rs`). Then check
//! it:
//!
//! ```
//! use altbi::{Divergence, Precision, Problem, Split, L1};
//! use burn::tensor::Tensor;
//!
//! /// Squared Hellinger distance, d = (√x − √y)².
//! #[derive(Debug)]
//! struct Hellinger;
//!
//! impl Divergence for Hellinger {
//!     fn name(&self) -> String {
//!         "hellinger".into()
//!     }
//!     fn value(&self, x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2> {
//!         (x.clone().sqrt() - y.clone().sqrt()).square()
//!     }
//!     // d' = 1 − √(x/y)
//!     fn split(&self, x: &Tensor<2>, y: &Tensor<2>) -> Split {
//!         Split { positive: y.ones_like(), negative: (x.clone() / y.clone()).sqrt() }
//!     }
//! }
//!
//! let x = ndarray::array![[1.0, 0.5, 2.0], [0.2, 3.0, 1.0]];
//! let problem = Problem::new(&x, Precision::F64)?;
//! altbi::check(&problem, Hellinger, L1)?.assert_consistent();
//! # Ok::<(), altbi::Error>(())
//! ```

mod beta;
mod fused;
mod smoothed;

use std::fmt::{self, Debug};
use std::str::FromStr;
use std::sync::Arc;

use burn::tensor::Tensor;

pub use beta::Beta;
pub use fused::{EntryParts, Fused, PerEntry};
pub use smoothed::SmoothedKl;

use crate::error::{Error, Result};
use crate::numerics::Precision;
use crate::split::{MajoriserPowers, Split};

/// The derivative of a [`Split`] with respect to y, entry by entry.
///
/// # Shapes
/// n×m each. `None` means that the part does not depend on y, which saves a matrix product.
#[derive(Debug, Clone)]
pub struct Slope {
    /// `∂∇⁺/∂y`.
    pub positive: Option<Tensor<2>>,
    /// `∂∇⁻/∂y`.
    pub negative: Option<Tensor<2>>,
}

/// An entrywise distance of `y = (WH)_ij` from `x`.
///
/// Implementations use differentiable tensor operations only, so that Burn's
/// tape can follow them. They may assume `y ≥` [`floor`](Divergence::floor)
/// `> 0` and that every observed `x` passed [`accepts`](Divergence::accepts).
///
/// # Shapes
/// `x` and `y` are n×m throughout.
pub trait Divergence: Debug + Send + Sync {
    /// The name that summaries and errors use.
    fn name(&self) -> String;

    /// `d(x, y)`, entry by entry; zero if `y = x`.
    fn value(&self, x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2>;

    /// `∂d/∂y` as a difference of nonnegative parts.
    fn split(&self, x: &Tensor<2>, y: &Tensor<2>) -> Split;

    /// The hand-written derivative of [`split`](Divergence::split) with respect to y. Without it
    /// the divergence works in reverse mode only, and the other modes refuse.
    fn slope(&self, x: &Tensor<2>, y: &Tensor<2>) -> Option<Slope> {
        let _ = (x, y);
        None
    }

    /// Returns true if an observed entry lies in the divergence's domain. Negative and non-finite
    /// entries are refused before.
    fn accepts(&self, x: f64) -> bool {
        let _ = x;
        true
    }

    /// The condition of [`accepts`](Divergence::accepts), in words.
    fn condition(&self) -> String {
        "nonnegative entries".into()
    }

    /// The powers of its majoriser, which determine the monotone exponent. `None` if no monotone
    /// multiplicative update is known.
    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        None
    }

    /// Returns true if it is the likelihood of counts with Poisson noise, as KL is. Counts can then
    /// be thinned.
    fn is_of_counts(&self) -> bool {
        false
    }

    /// The same in plain numbers, for the [fused engine](mod@crate::engine). With `None`, runs are
    /// computed on tensors.
    fn fused(&self) -> Option<Fused> {
        None
    }

    /// The cost of an update that a hypergradient goes through, in plain updates: the update itself
    /// and its transposed derivative in both factors. Comparisons at equal budget count it.
    fn derivative_cost(&self) -> f64 {
        4.0
    }

    /// The smallest y that is passed to the other methods.
    fn floor(&self, precision: Precision) -> f64 {
        precision.floor()
    }
}

/// Methods of a pointer that call those of its target.
macro_rules! forward {
    ($(fn $name:ident(&$this:ident $(, $given:ident: $type:ty)*) -> $out:ty;)*) => {
        $(fn $name(&$this $(, $given: $type)*) -> $out {
            (**$this).$name($($given),*)
        })*
    };
}
pub(crate) use forward;

/// Plug-ins are shared between a solver and its bunches.
impl<D: Divergence + ?Sized> Divergence for Arc<D> {
    forward! {
        fn name(&self) -> String;
        fn value(&self, x: &Tensor<2>, y: &Tensor<2>) -> Tensor<2>;
        fn split(&self, x: &Tensor<2>, y: &Tensor<2>) -> Split;
        fn slope(&self, x: &Tensor<2>, y: &Tensor<2>) -> Option<Slope>;
        fn accepts(&self, x: f64) -> bool;
        fn condition(&self) -> String;
        fn majoriser_powers(&self) -> Option<MajoriserPowers>;
        fn is_of_counts(&self) -> bool;
        fn fused(&self) -> Option<Fused>;
        fn derivative_cost(&self) -> f64;
        fn floor(&self, precision: Precision) -> f64;
    }
}

/// The words of a [`Beta`].
pub const NAMES: &str = "kl, frobenius, is, beta:<number>";

impl FromStr for Beta {
    type Err = Error;

    /// # Errors
    /// [`Error::UnknownName`] for a name that is not in [`NAMES`],
    /// [`Error::Setting`] for a β that is not finite.
    fn from_str(name: &str) -> Result<Self> {
        match name {
            "kl" => Ok(Self::KL),
            "frobenius" => Ok(Self::FROBENIUS),
            "is" => Ok(Self::ITAKURA_SAITO),
            _ => {
                let beta: f64 = name
                    .strip_prefix("beta:")
                    .and_then(|number| number.parse().ok())
                    .ok_or_else(|| Error::UnknownName {
                        kind: "divergence",
                        name: name.into(),
                        known: NAMES,
                    })?;
                Error::require(beta.is_finite(), "β", beta, "a finite number")?;
                Ok(Self(beta))
            }
        }
    }
}

impl fmt::Display for Beta {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&Divergence::name(self))
    }
}

/// The divergence of an outer error: a β-divergence, or one that is smoothed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outer {
    /// A β-divergence.
    Beta(Beta),
    /// KL of smoothed numbers.
    SmoothedKl(SmoothedKl),
}

impl Outer {
    /// The divergence itself.
    pub fn divergence(self) -> Arc<dyn Divergence> {
        match self {
            Self::Beta(beta) => Arc::new(beta),
            Self::SmoothedKl(smoothed) => Arc::new(smoothed),
        }
    }
}

impl FromStr for Outer {
    type Err = Error;

    /// # Errors
    /// Those of [`Beta`]; [`Error::Setting`] for a c that is not a positive number.
    fn from_str(name: &str) -> Result<Self> {
        if name == "smoothed-kl" {
            return Ok(Self::SmoothedKl(SmoothedKl::HALF));
        }
        let Some(by) = name.strip_prefix("smoothed-kl:") else {
            return name.parse().map(Self::Beta).map_err(|error| match error {
                Error::UnknownName { name, .. } => Error::UnknownName {
                    kind: "outer divergence",
                    name,
                    known: "kl, frobenius, is, beta:<number>, smoothed-kl, smoothed-kl:<number>",
                },
                error => error,
            });
        };
        let by = by.parse().unwrap_or(f64::NAN);
        let ok = by > 0.0 && by < f64::INFINITY;
        Error::require(ok, "c of smoothed-kl:<c>", by, "a positive number")?;
        Ok(Self::SmoothedKl(SmoothedKl(by)))
    }
}

impl fmt::Display for Outer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.divergence().name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_betas() {
        for (name, beta) in [
            ("kl", 1.0),
            ("frobenius", 2.0),
            ("is", 0.0),
            ("beta:-0.5", -0.5),
        ] {
            assert_eq!(name.parse::<Beta>().unwrap(), Beta(beta));
        }
        assert!(matches!(
            "beta:inf".parse::<Beta>(),
            Err(Error::Setting { .. })
        ));
        assert!(matches!(
            "beta:".parse::<Beta>(),
            Err(Error::UnknownName { .. })
        ));
        assert!(matches!(
            "KL1".parse::<Beta>(),
            Err(Error::UnknownName { .. })
        ));
    }

    #[test]
    fn outer_divergences_have_names() {
        for (name, outer) in [
            ("frobenius", Outer::Beta(Beta::FROBENIUS)),
            ("smoothed-kl:0.25", Outer::SmoothedKl(SmoothedKl(0.25))),
        ] {
            assert_eq!(name.parse::<Outer>().unwrap(), outer);
            assert_eq!(outer.to_string(), name);
        }
        let half = "smoothed-kl".parse::<Outer>().unwrap();
        assert_eq!(half, Outer::SmoothedKl(SmoothedKl::HALF));
        for wrong in ["smoothed-kl:", "smoothed-kl:-1", "smoothed-kl:inf"] {
            let found = wrong.parse::<Outer>();
            assert!(matches!(found, Err(Error::Setting { .. })), "{wrong}");
        }
        let unknown = "smoothed".parse::<Outer>();
        assert!(matches!(unknown, Err(Error::UnknownName { .. })));
    }
}

//! Divergences that are known only when the program runs.
//!
//! Loops over entries are compiled for each divergence, and nothing else is: code around these
//! loops has a [`BetaEntry`] or an [`AnyEntry`], and [`with_beta!`] or [`with_entry!`] calls the
//! loop of its divergence.

use super::entry::{Entry, General};
use super::plug_in::PlugIn;
use crate::divergence::Fused;

/// A β-divergence.
#[derive(Clone, Copy)]
pub(crate) enum BetaEntry {
    /// β = 2.
    Frobenius,
    /// β = 1.
    KullbackLeibler,
    /// β = 0.
    ItakuraSaito,
    /// Any other β.
    General(General),
}

/// A β-divergence, or the functions of a plug-in.
#[derive(Clone, Copy)]
pub(crate) enum AnyEntry<'a> {
    Beta(BetaEntry),
    PlugIn(PlugIn<'a>),
}

/// Evaluates an expression with the divergence of a [`BetaEntry`] as a value of its own type.
macro_rules! with_beta {
    ($divergence:expr, $entry:ident => $body:expr) => {
        match $divergence {
            $crate::engine::BetaEntry::Frobenius => {
                let $entry = $crate::engine::Frobenius;
                $body
            }
            $crate::engine::BetaEntry::KullbackLeibler => {
                let $entry = $crate::engine::KullbackLeibler;
                $body
            }
            $crate::engine::BetaEntry::ItakuraSaito => {
                let $entry = $crate::engine::ItakuraSaito;
                $body
            }
            $crate::engine::BetaEntry::General($entry) => $body,
        }
    };
}
pub(crate) use with_beta;

/// The same for an [`AnyEntry`].
macro_rules! with_entry {
    ($divergence:expr, $entry:ident => $body:expr) => {
        match $divergence {
            $crate::engine::AnyEntry::Beta(beta) => {
                $crate::engine::with_beta!(beta, $entry => $body)
            }
            $crate::engine::AnyEntry::PlugIn($entry) => $body,
        }
    };
}
pub(crate) use with_entry;

impl BetaEntry {
    pub(crate) fn new(beta: f64) -> Self {
        match beta {
            2.0 => Self::Frobenius,
            1.0 => Self::KullbackLeibler,
            0.0 => Self::ItakuraSaito,
            beta => Self::General(General::new(beta)),
        }
    }

    /// Returns true if ∇⁺ depends on y.
    #[inline(always)]
    pub(super) fn positive_varies(self) -> bool {
        with_beta!(self, entry => positive_varies(entry))
    }
}

impl<'a> AnyEntry<'a> {
    /// A divergence, and the number that it adds to x and y.
    pub(crate) fn new(divergence: &'a Fused) -> (Self, f64) {
        match divergence {
            Fused::PerEntry(functions) => (Self::PlugIn(PlugIn(functions.as_ref())), 0.0),
            Fused::Beta { beta, shift } => (Self::Beta(BetaEntry::new(*beta)), *shift),
        }
    }

    /// Returns true if ∇⁺ depends on y.
    #[inline(always)]
    pub(crate) fn positive_varies(self) -> bool {
        with_entry!(self, entry => positive_varies(entry))
    }

    /// Returns true if ∇⁻ depends on y.
    #[inline(always)]
    pub(crate) fn negative_varies(self) -> bool {
        with_entry!(self, entry => negative_varies(entry))
    }
}

#[inline(always)]
fn positive_varies<D: Entry>(_: D) -> bool {
    D::POSITIVE_VARIES
}

#[inline(always)]
fn negative_varies<D: Entry>(_: D) -> bool {
    D::NEGATIVE_VARIES
}

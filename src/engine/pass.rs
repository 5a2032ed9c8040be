//! The passes over a block's columns as separate functions, compiled once for each kind of
//! processor, divergence and small rank.

use pulp::{Simd, WithSimd};

use super::any_entry::{BetaEntry, with_beta};
use super::entry::Entry;
use super::evaluate::evaluate;
use super::kernel::{Columns, RowState, Sums, accumulate, project};
use super::lanes::{Lanes, Real};

/// The input of every pass, as plain numbers.
#[derive(Clone, Copy)]
pub(super) struct Panel<'a, T> {
    /// Packed x.
    pub(super) x: &'a [T],
    /// The other factor.
    pub(super) other: &'a [T],
    /// w and ẇ, component by component.
    pub(super) w: &'a [T],
    pub(super) w_dot: &'a [T],
    /// The smallest y.
    pub(super) floor: T,
}

impl<'a, T: Real> Panel<'a, T> {
    #[inline(always)]
    fn columns<S: Simd>(&self) -> Columns<'a, T, S> {
        Columns {
            x: T::vectors::<S>(self.x),
            other: self.other,
            floor: self.floor,
        }
    }

    #[inline(always)]
    fn point<S: Simd>(&self) -> RowState<'a, T::Vector<S>> {
        RowState {
            w: T::vectors::<S>(self.w),
            w_dot: T::vectors::<S>(self.w_dot),
        }
    }
}

/// Adds `∇± Hᵀ` of a panel, and its derivative, to sums.
pub(super) struct Pass<'a, T> {
    pub(super) divergence: BetaEntry,
    pub(super) panel: Panel<'a, T>,
    pub(super) tray: &'a mut [T],
    pub(super) sums: Sums<&'a mut [T]>,
}

impl<T: Real> Pass<'_, T> {
    #[inline(always)]
    pub(super) fn run<const TANGENT: bool, S: Simd>(self, simd: S) {
        with_beta!(self.divergence, entry => {
            simd.vectorize(Accumulate::<T, _, TANGENT>(self, entry));
        });
    }
}

struct Accumulate<'a, T, D, const TANGENT: bool>(Pass<'a, T>, D);

impl<T: Real, D: Entry, const TANGENT: bool> WithSimd for Accumulate<'_, T, D, TANGENT> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(pass, divergence) = self;
        let Pass {
            panel, tray, sums, ..
        } = pass;
        accumulate::<T, S, D, TANGENT>(
            simd,
            divergence,
            &panel.columns::<S>(),
            &panel.point::<S>(),
            T::vectors_mut::<S>(tray),
            &mut sums.map(T::vectors_mut::<S>),
        );
    }
}

/// Adds X Hᵀ of a panel to a sum.
pub(super) struct Project<'a, T> {
    pub(super) panel: Panel<'a, T>,
    pub(super) sum: &'a mut [T],
}

impl<T: Real> WithSimd for Project<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        project::<T, S>(
            simd,
            &self.panel.columns::<S>(),
            T::vectors_mut::<S>(self.sum),
        );
    }
}

/// Vectors of components times an r×r matrix.
pub(super) struct Multiply<'a, T> {
    pub(super) vectors: &'a [T],
    pub(super) matrix: &'a [T],
    pub(super) product: &'a mut [T],
}

impl<T: Real> WithSimd for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let vectors = T::vectors::<S>(self.vectors);
        let products = T::vectors_mut::<S>(self.product);
        // The matrix is symmetric, so its rows are its columns.
        let rows = self.matrix.chunks_exact(vectors.len());
        for (product, row) in products.iter_mut().zip(rows) {
            let mut sum = Lanes::<T, S>::zero(simd);
            for (vector, entry) in vectors.iter().zip(row) {
                sum = Lanes::new(simd, *vector).mul_add(Lanes::splat(simd, *entry), sum);
            }
            *product = sum.value;
        }
    }
}

/// Adds a panel's divergence and its derivative to two vectors.
pub(super) struct Evaluation<'a, T> {
    pub(super) divergence: BetaEntry,
    pub(super) panel: Panel<'a, T>,
    pub(super) tray: &'a mut [T],
    pub(super) error: &'a mut [T],
}

impl<T: Real> Evaluation<'_, T> {
    #[inline(always)]
    pub(super) fn run<const TANGENT: bool, S: Simd>(self, simd: S) {
        with_beta!(self.divergence, entry => {
            simd.vectorize(Evaluate::<T, _, TANGENT>(self, entry));
        });
    }
}

struct Evaluate<'a, T, D, const TANGENT: bool>(Evaluation<'a, T>, D);

impl<T: Real, D: Entry, const TANGENT: bool> WithSimd for Evaluate<'_, T, D, TANGENT> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(evaluation, divergence) = self;
        let Evaluation {
            panel, tray, error, ..
        } = evaluation;
        let stored = T::vectors_mut::<S>(error);
        let mut error = [stored[0], stored[1]].map(|value| Lanes::new(simd, value));
        evaluate::<T, S, D, TANGENT>(
            simd,
            divergence,
            &panel.columns::<S>(),
            &panel.point::<S>(),
            T::vectors_mut::<S>(tray),
            &mut error,
        );
        (stored[0], stored[1]) = (error[0].value, error[1].value);
    }
}

//! The inner loops: one pass over the columns of a block of rows.
//!
//! A block has as many rows as [`WIDE`] vectors have lanes, so the entries of a column are [`WIDE`]
//! vectors. The other factor is read one number at a time and spread over the lanes; each such
//! number is used for all vectors. There are no sums across lanes, and every sum runs over the
//! columns in order, so the result does not depend on blocks or threads. [`TILE`] columns go
//! through the phases together: products with the other factor, entries, sums over columns.

use pulp::bytemuck::{cast_slice, cast_slice_mut};
use pulp::{Simd, WithSimd};

use crate::engine::{Lanes, Real};

/// Vectors per column of a block of rows.
pub(super) const WIDE: usize = 2;
/// Columns that go through the phases together.
pub(super) const TILE: usize = 32;
/// Columns whose products are summed in parallel: twelve sums, and two vectors of the rows, fit into
/// 16 registers.
const SIDE: usize = 6;
/// The same for the columns that are left over, and twice as many for 32 registers.
const REST: usize = 4;
/// Components whose sums are in registers at the same time: 16 registers, and 32.
const COMPONENTS: [usize; 2] = [6, 8];

/// Returns true if twice as many sums fit into the registers. Processors with vectors of 64 bytes
/// have 32 registers, others 16.
#[inline(always)]
pub(super) fn has_many_registers<T: Real, S: Simd>() -> bool {
    T::lanes::<S>() * size_of::<T>() >= 64
}

/// `out_j = Σ_k own_k other_jk` for the columns of a tile.
#[inline(always)]
pub(super) fn products<T: Real, S: Simd>(
    simd: S,
    own: &[T::Vector<S>],
    other: &[T],
    out: &mut [T::Vector<S>],
) {
    simd.vectorize(Products {
        own: cast_slice(own),
        other,
        out: cast_slice_mut(out),
    });
}

/// A separate function, so that it is compiled once and not into every pass.
struct Products<'a, T> {
    own: &'a [T],
    other: &'a [T],
    out: &'a mut [T],
}

impl<T: Real> WithSimd for Products<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let own: &[T::Vector<S>] = cast_slice(self.own);
        let (other, out) = (self.other, cast_slice_mut::<T, T::Vector<S>>(self.out));
        let (count, rank) = (out.len() / WIDE, own.len() / WIDE);
        let mut from = 0;
        if has_many_registers::<T, S>() {
            while from + 2 * REST <= count {
                let out = &mut out[from * WIDE..];
                products_of::<T, S, { 2 * REST }>(simd, own, &other[from * rank..], out);
                from += 2 * REST;
            }
        }
        // (Eight are four and four, not six and two.)
        while from + SIDE <= count && count - from != 2 * REST {
            let out = &mut out[from * WIDE..];
            products_of::<T, S, SIDE>(simd, own, &other[from * rank..], out);
            from += SIDE;
        }
        while from + REST <= count {
            let out = &mut out[from * WIDE..];
            products_of::<T, S, REST>(simd, own, &other[from * rank..], out);
            from += REST;
        }
        while from < count {
            let out = &mut out[from * WIDE..];
            products_of::<T, S, 1>(simd, own, &other[from * rank..], out);
            from += 1;
        }
    }
}

#[inline(always)]
fn products_of<T: Real, S: Simd, const J: usize>(
    simd: S,
    own: &[T::Vector<S>],
    other: &[T],
    out: &mut [T::Vector<S>],
) {
    let rank = own.len() / WIDE;
    let mut sums = [[Lanes::<T, S>::zero(simd); WIDE]; J];
    // Slices are cut to their lengths, so that the compiler can remove bounds checks.
    let mut rows: [&[T]; J] = [&[]; J];
    for (j, row) in rows.iter_mut().enumerate() {
        *row = &other[j * rank..(j + 1) * rank];
    }
    let (own, _) = own.as_chunks::<WIDE>();
    let own = &own[..rank];
    for k in 0..rank {
        let own = own[k].map(|own| Lanes::<T, S>::new(simd, own));
        for j in 0..J {
            let spread = Lanes::splat(simd, rows[j][k]);
            for v in 0..WIDE {
                sums[j][v] = own[v].mul_add(spread, sums[j][v]);
            }
        }
    }
    let (out, _) = out.as_chunks_mut::<WIDE>();
    for j in 0..J {
        out[j] = sums[j].map(|sum| sum.value);
    }
}

/// `sums_k += Σ_j terms_j other_jk` over the columns of a tile.
#[inline(always)]
pub(super) fn contract<T: Real, S: Simd>(
    simd: S,
    sums: &mut [T::Vector<S>],
    terms: &[T::Vector<S>],
    other: &[T],
) {
    simd.vectorize(Contract {
        sums: cast_slice_mut(sums),
        terms: cast_slice(terms),
        other,
    });
}

/// Likewise a separate function.
struct Contract<'a, T> {
    sums: &'a mut [T],
    terms: &'a [T],
    other: &'a [T],
}

impl<T: Real> WithSimd for Contract<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let terms: &[T::Vector<S>] = cast_slice(self.terms);
        let (sums, other) = (cast_slice_mut::<T, T::Vector<S>>(self.sums), self.other);
        let rank = sums.len() / WIDE;
        let most = COMPONENTS[usize::from(has_many_registers::<T, S>())];
        let blocks = rank.div_ceil(most);
        let mut from = 0;
        for block in 0..blocks {
            // Parts of about equal length: 6 is 3 + 3, not 4 + 2.
            let to = (block + 1) * rank / blocks;
            let part = &mut sums[from * WIDE..to * WIDE];
            match to - from {
                1 => contract_some::<T, S, 1>(simd, part, terms, other, rank, from),
                2 => contract_some::<T, S, 2>(simd, part, terms, other, rank, from),
                3 => contract_some::<T, S, 3>(simd, part, terms, other, rank, from),
                4 => contract_some::<T, S, 4>(simd, part, terms, other, rank, from),
                5 => contract_some::<T, S, 5>(simd, part, terms, other, rank, from),
                6 => contract_some::<T, S, 6>(simd, part, terms, other, rank, from),
                7 => contract_some::<T, S, 7>(simd, part, terms, other, rank, from),
                _ => contract_some::<T, S, 8>(simd, part, terms, other, rank, from),
            }
            from = to;
        }
    }
}

#[inline(always)]
fn contract_some<T: Real, S: Simd, const K: usize>(
    simd: S,
    sums: &mut [T::Vector<S>],
    terms: &[T::Vector<S>],
    other: &[T],
    rank: usize,
    from: usize,
) {
    let (sums, _) = sums.as_chunks_mut::<WIDE>();
    let sums = &mut sums[..K];
    let mut totals = [[Lanes::<T, S>::zero(simd); WIDE]; K];
    for k in 0..K {
        totals[k] = sums[k].map(|sum| Lanes::new(simd, sum));
    }
    let (terms, _) = terms.as_chunks::<WIDE>();
    for (j, term) in terms.iter().enumerate() {
        let row = &other[j * rank + from..j * rank + from + K];
        let term = term.map(|term| Lanes::<T, S>::new(simd, term));
        for k in 0..K {
            let spread = Lanes::splat(simd, row[k]);
            for v in 0..WIDE {
                totals[k][v] = term[v].mul_add(spread, totals[k][v]);
            }
        }
    }
    for k in 0..K {
        sums[k] = totals[k].map(|total| total.value);
    }
}

/// Columns whose numbers of the other factor stay in the cache while their products are summed.
const STRETCH: usize = 128;

/// Numbers of the other factor (1 MB). If it is larger, several blocks of rows go over the columns
/// together, because reading it for each block would take longer than the products.
const LARGE: usize = 1 << 17;
/// Rows of these blocks.
const PANEL: usize = 256;

/// Rows that go over the columns together, for so many numbers of the other factor.
#[inline(always)]
pub(super) fn rows_together(other: usize, rows_per_block: usize) -> usize {
    match other {
        ..LARGE => rows_per_block,
        _ => PANEL,
    }
}

/// `X O` for consecutive blocks of rows.
pub(super) struct Times<'a, T> {
    /// Blocks of X, from the first one, each column by column.
    pub(super) x: &'a [T],
    pub(super) columns: usize,
    /// r numbers for each column.
    pub(super) other: &'a [T],
    /// r numbers for each row.
    pub(super) out: &'a mut [f64],
    /// Working memory: r numbers for each row of a panel.
    pub(super) memory: &'a mut [T],
}

impl<T: Real> WithSimd for Times<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (rank, lanes) = (self.other.len() / self.columns, WIDE * T::lanes::<S>());
        let rows = rows_together(self.other.len(), lanes);
        let panels = self.x.chunks(rows * self.columns);
        for (x, out) in panels.zip(self.out.chunks_mut(rows * rank)) {
            let blocks = out.len().div_ceil(lanes * rank);
            let sums = &mut self.memory[..blocks * lanes * rank];
            sums.fill(T::from_f64(0.0));
            for (at, other) in self.other.chunks(STRETCH * rank).enumerate() {
                let width = other.len() / rank;
                let blocks = x.chunks_exact(lanes * self.columns);
                for (x, sums) in blocks.zip(sums.chunks_exact_mut(lanes * rank)) {
                    let x = &x[at * STRETCH * lanes..][..width * lanes];
                    contract::<T, S>(simd, T::vectors_mut::<S>(sums), T::vectors::<S>(x), other);
                }
            }
            let blocks = sums.chunks_exact(lanes * rank);
            for (sums, out) in blocks.zip(out.chunks_mut(lanes * rank)) {
                store::<T, S>(T::vectors::<S>(sums), out);
            }
        }
    }
}

/// `A Bᵀ` for some rows of A.
pub(super) struct Multiply<'a, T> {
    pub(super) rows: &'a [f64],
    /// B, row by row.
    pub(super) other: &'a [T],
    /// Numbers in a row of A, and in one of B.
    pub(super) inner: usize,
    pub(super) out: &'a mut [f64],
}

impl<T: Real> WithSimd for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (inner, lanes) = (self.inner, WIDE * T::lanes::<S>());
        let width = self.other.len() / inner;
        let zero = Lanes::<T, S>::zero(simd).value;
        let (mut own, mut sums) = (vec![zero; inner * WIDE], vec![zero; width * WIDE]);
        let blocks = self.rows.chunks(lanes * inner);
        for (rows, out) in blocks.zip(self.out.chunks_mut(lanes * width)) {
            load::<T, S>(rows, &mut own);
            products::<T, S>(simd, &own, self.other, &mut sums);
            store::<T, S>(&sums, out);
        }
    }
}

/// Loads rows from memory, as one vector for each of their entries.
#[inline(always)]
pub(super) fn load<T: Real, S: Simd>(rows: &[f64], into: &mut [T::Vector<S>]) {
    let (lanes, width) = (WIDE * T::lanes::<S>(), into.len() / WIDE);
    let slots: &mut [T] = cast_slice_mut(into);
    for (lane, row) in rows.chunks_exact(width).enumerate() {
        for (k, value) in row.iter().enumerate() {
            slots[k * lanes + lane] = T::from_f64(*value);
        }
    }
}

/// Stores vectors as rows in memory.
#[inline(always)]
pub(super) fn store<T: Real, S: Simd>(from: &[T::Vector<S>], rows: &mut [f64]) {
    let (lanes, width) = (WIDE * T::lanes::<S>(), from.len() / WIDE);
    let slots: &[T] = cast_slice(from);
    for (lane, row) in rows.chunks_exact_mut(width).enumerate() {
        for (k, value) in row.iter_mut().enumerate() {
            *value = slots[k * lanes + lane].to_f64();
        }
    }
}

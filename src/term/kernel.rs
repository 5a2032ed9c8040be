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
        let own = lanes::<T, S>(simd, own[k]);
        for j in 0..J {
            let spread = Lanes::splat(simd, rows[j][k]);
            for v in 0..WIDE {
                sums[j][v] = own[v].mul_add(spread, sums[j][v]);
            }
        }
    }
    let (out, _) = out.as_chunks_mut::<WIDE>();
    for j in 0..J {
        out[j] = values(sums[j]);
    }
}

/// Vectors with operators. (Not by `map`, which is compiled anew for each kind of vector.)
#[inline(always)]
fn lanes<T: Real, S: Simd>(simd: S, vectors: [T::Vector<S>; WIDE]) -> [Lanes<T, S>; WIDE] {
    [Lanes::new(simd, vectors[0]), Lanes::new(simd, vectors[1])]
}

/// The vectors themselves.
#[inline(always)]
fn values<T: Real, S: Simd>(lanes: [Lanes<T, S>; WIDE]) -> [T::Vector<S>; WIDE] {
    [lanes[0].value, lanes[1].value]
}

/// `sums_k += Σ_j terms_j other_jk` over the columns of a tile.
#[inline(always)]
pub(super) fn contract<T: Real, S: Simd>(
    simd: S,
    sums: &mut [T::Vector<S>],
    terms: &[T::Vector<S>],
    other: &[T],
) {
    let rank = sums.len() / WIDE;
    contract_lines::<T, S>(simd, sums, terms, other, rank);
}

/// The same, if a line of `other` begins every `stride` numbers.
#[inline(always)]
pub(super) fn contract_lines<T: Real, S: Simd>(
    simd: S,
    sums: &mut [T::Vector<S>],
    terms: &[T::Vector<S>],
    other: &[T],
    stride: usize,
) {
    simd.vectorize(Contract {
        sums: cast_slice_mut(sums),
        terms: cast_slice(terms),
        other,
        stride,
    });
}

/// Likewise a separate function.
struct Contract<'a, T> {
    sums: &'a mut [T],
    terms: &'a [T],
    other: &'a [T],
    stride: usize,
}

impl<T: Real> WithSimd for Contract<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let terms: &[T::Vector<S>] = cast_slice(self.terms);
        let sums = cast_slice_mut::<T, T::Vector<S>>(self.sums);
        let (rank, stride) = (sums.len() / WIDE, self.stride);
        let most = COMPONENTS[usize::from(has_many_registers::<T, S>())];
        let blocks = rank.div_ceil(most);
        let mut from = 0;
        for block in 0..blocks {
            // Parts of about equal length: 6 is 3 + 3, not 4 + 2.
            let to = (block + 1) * rank / blocks;
            let part = &mut sums[from * WIDE..to * WIDE];
            let other = &self.other[from..];
            match to - from {
                1 => contract_some::<T, S, 1>(simd, part, terms, other, stride),
                2 => contract_some::<T, S, 2>(simd, part, terms, other, stride),
                3 => contract_some::<T, S, 3>(simd, part, terms, other, stride),
                4 => contract_some::<T, S, 4>(simd, part, terms, other, stride),
                5 => contract_some::<T, S, 5>(simd, part, terms, other, stride),
                6 => contract_some::<T, S, 6>(simd, part, terms, other, stride),
                7 => contract_some::<T, S, 7>(simd, part, terms, other, stride),
                _ => contract_some::<T, S, 8>(simd, part, terms, other, stride),
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
    stride: usize,
) {
    let (sums, _) = sums.as_chunks_mut::<WIDE>();
    let sums = &mut sums[..K];
    let mut totals = [[Lanes::<T, S>::zero(simd); WIDE]; K];
    for k in 0..K {
        totals[k] = lanes(simd, sums[k]);
    }
    let (terms, _) = terms.as_chunks::<WIDE>();
    for (j, term) in terms.iter().enumerate() {
        let row = &other[j * stride..j * stride + K];
        let term = lanes::<T, S>(simd, *term);
        for k in 0..K {
            let spread = Lanes::splat(simd, row[k]);
            for v in 0..WIDE {
                totals[k][v] = term[v].mul_add(spread, totals[k][v]);
            }
        }
    }
    for k in 0..K {
        sums[k] = values(totals[k]);
    }
}

/// Numbers of the other factor (512 kB). If it is larger, several blocks of rows go over the columns
/// together, because reading it for each block would take longer than the products.
const LARGE: usize = 1 << 16;
/// Rows of these blocks. With 200 components, they and their sums take 400 kB.
const PANEL: usize = 128;

/// Rows that go over the columns together, for so many numbers of the other factor.
#[inline(always)]
pub(super) fn rows_together(other: usize, rows_per_block: usize) -> usize {
    match other {
        ..LARGE => rows_per_block,
        _ => PANEL,
    }
}

/// Components that are moved together: loops of constant length are faster.
const MOVED: usize = 8;

/// Loads rows from memory, as one vector for each of their entries.
#[inline(always)]
pub(super) fn load<T: Real, S: Simd>(simd: S, rows: &[f64], into: &mut [T::Vector<S>]) {
    simd.vectorize(Load::<T> {
        rows,
        into: cast_slice_mut(into),
    });
}

struct Load<'a, T> {
    rows: &'a [f64],
    into: &'a mut [T],
}

impl<T: Real> WithSimd for Load<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let lanes = WIDE * T::lanes::<S>();
        let width = self.into.len() / lanes;
        let mut from = 0;
        if self.rows.len() == self.into.len() {
            while from + MOVED <= width {
                let slots = &mut self.into[from * lanes..(from + MOVED) * lanes];
                for lane in 0..lanes {
                    let row = &self.rows[lane * width + from..][..MOVED];
                    for k in 0..MOVED {
                        slots[k * lanes + lane] = T::from_f64(row[k]);
                    }
                }
                from += MOVED;
            }
        }
        if from == width {
            return;
        }
        for (lane, row) in self.rows.chunks_exact(width).enumerate() {
            for (k, value) in row.iter().enumerate().skip(from) {
                self.into[k * lanes + lane] = T::from_f64(*value);
            }
        }
    }
}

/// Stores vectors as rows in memory.
#[inline(always)]
pub(super) fn store<T: Real, S: Simd>(simd: S, from: &[T::Vector<S>], rows: &mut [f64]) {
    simd.vectorize(Store::<T> {
        from: cast_slice(from),
        rows,
    });
}

struct Store<'a, T> {
    from: &'a [T],
    rows: &'a mut [f64],
}

impl<T: Real> WithSimd for Store<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let lanes = WIDE * T::lanes::<S>();
        let width = self.from.len() / lanes;
        let mut from = 0;
        if self.rows.len() == self.from.len() {
            while from + MOVED <= width {
                let slots = &self.from[from * lanes..(from + MOVED) * lanes];
                for lane in 0..lanes {
                    let row = &mut self.rows[lane * width + from..][..MOVED];
                    for k in 0..MOVED {
                        row[k] = slots[k * lanes + lane].to_f64();
                    }
                }
                from += MOVED;
            }
        }
        if from == width {
            return;
        }
        for (lane, row) in self.rows.chunks_exact_mut(width).enumerate() {
            for (k, value) in row.iter_mut().enumerate().skip(from) {
                *value = self.from[k * lanes + lane].to_f64();
            }
        }
    }
}

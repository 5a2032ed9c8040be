//! The inner loops: one pass over the columns of a block of rows.
//!
//! A block has as many rows as a vector has lanes. Its x is packed so that the entries of a column
//! are one vector. The other factor is read one number at a time and spread over the lanes. So
//! there are no sums across lanes, and no remainders except whole rows at the end of the matrix.
//! Every sum runs over the columns in order, so the result does not depend on blocks or threads.
//!
//! [`TILE`] columns go through three phases together: y = wH, the entries' parts, the sums over
//! columns. Each phase has enough independent work to hide the latency of its operations.

use pulp::Simd;

use super::entry::{Entry, Parts};
use super::lanes::{Lanes, Real};

/// Columns that go through the phases together.
pub(super) const TILE: usize = 16;
/// Columns whose y are summed in parallel.
pub(super) const SIDE: usize = 4;
/// Components whose sums are in registers at the same time.
const COMPONENTS: usize = 5;

/// The input of a pass: some packed columns of a block.
pub(super) struct Columns<'a, T: Real, S: Simd> {
    /// One vector per column.
    pub(super) x: &'a [T::Vector<S>],
    /// The other factor, r numbers per column.
    pub(super) other: &'a [T],
    /// The smallest y.
    pub(super) floor: T,
}

/// The state of the rows: w and its derivative with respect to λ, one vector per component.
pub(super) struct RowState<'a, V> {
    pub(super) w: &'a [V],
    pub(super) w_dot: &'a [V],
}

/// The sums of a pass over columns, one vector per component: `∇± Hᵀ` and their derivatives.
#[derive(Debug)]
pub(crate) struct Sums<A> {
    pub(crate) positive: A,
    pub(crate) negative: A,
    pub(crate) positive_dot: A,
    pub(crate) negative_dot: A,
}

impl<A> Sums<A> {
    #[inline(always)]
    pub(crate) fn map<B>(self, f: impl Fn(A) -> B) -> Sums<B> {
        Sums {
            positive: f(self.positive),
            negative: f(self.negative),
            positive_dot: f(self.positive_dot),
            negative_dot: f(self.negative_dot),
        }
    }

    #[inline(always)]
    pub(crate) fn as_mut(&mut self) -> Sums<&mut A> {
        Sums {
            positive: &mut self.positive,
            negative: &mut self.negative,
            positive_dot: &mut self.positive_dot,
            negative_dot: &mut self.negative_dot,
        }
    }
}

impl<'a, T: Real, S: Simd> Columns<'a, T, S> {
    /// Some of the columns: their x and part of the other factor.
    #[inline(always)]
    pub(super) fn tile(&self, from: usize, to: usize, rank: usize) -> Self {
        Self {
            x: &self.x[from..to],
            other: &self.other[from * rank..to * rank],
            floor: self.floor,
        }
    }
}

/// Vectors in a [`Tray`].
pub(super) const TRAY: usize = 6 * TILE;

/// Memory for the phases of a tile: floored y and ẏ, and the entries' parts. It is reused, because
/// clearing new memory would cost as much as a tile.
pub(super) struct Tray<'a, V> {
    pub(super) y: &'a mut [V; TILE],
    pub(super) y_dot: &'a mut [V; TILE],
    parts: Sums<&'a mut [V; TILE]>,
}

impl<'a, V> Tray<'a, V> {
    #[inline(always)]
    pub(super) fn new(memory: &'a mut [V]) -> Self {
        let (arrays, _) = memory.as_chunks_mut::<TILE>();
        let [y, y_dot, positive, negative, positive_dot, negative_dot] = arrays else {
            panic!("a tray has {TRAY} vectors");
        };
        Self {
            y,
            y_dot,
            parts: Sums {
                positive,
                negative,
                positive_dot,
                negative_dot,
            },
        }
    }
}

#[inline(always)]
pub(super) fn reconstruct<T: Real, S: Simd, const TANGENT: bool>(
    simd: S,
    tile: &Columns<'_, T, S>,
    point: &RowState<'_, T::Vector<S>>,
    tray: &mut Tray<'_, T::Vector<S>>,
) {
    let count = tile.x.len();
    let mut from = 0;
    while from + SIDE <= count {
        reconstruct_some::<T, S, TANGENT, SIDE>(simd, tile, point, from, tray);
        from += SIDE;
    }
    if from + 2 <= count {
        reconstruct_some::<T, S, TANGENT, 2>(simd, tile, point, from, tray);
        from += 2;
    }
    if from < count {
        reconstruct_some::<T, S, TANGENT, 1>(simd, tile, point, from, tray);
    }
}

#[inline(always)]
fn reconstruct_some<T: Real, S: Simd, const TANGENT: bool, const J: usize>(
    simd: S,
    tile: &Columns<'_, T, S>,
    point: &RowState<'_, T::Vector<S>>,
    from: usize,
    tray: &mut Tray<'_, T::Vector<S>>,
) {
    let rank = point.w.len();
    let zero = Lanes::<T, S>::zero(simd);
    let (mut y, mut y_dot) = ([zero; J], [zero; J]);
    // Slices are cut to their lengths, so that the compiler can remove bounds checks.
    let (w, w_dot) = (&point.w[..rank], &point.w_dot[..rank]);
    let mut other: [&[T]; J] = [&[]; J];
    for (j, row) in other.iter_mut().enumerate() {
        *row = &tile.other[(from + j) * rank..(from + j + 1) * rank];
    }
    for k in 0..rank {
        let w = Lanes::new(simd, w[k]);
        let w_dot = Lanes::new(simd, w_dot[k]);
        for j in 0..J {
            let h = Lanes::splat(simd, other[j][k]);
            y[j] = w.mul_add(h, y[j]);
            if TANGENT {
                y_dot[j] = w_dot.mul_add(h, y_dot[j]);
            }
        }
    }
    let floor = Lanes::splat(simd, tile.floor);
    for j in 0..J {
        if TANGENT {
            tray.y_dot[from + j] = y[j].where_less(floor, zero, y_dot[j]).value;
        }
        tray.y[from + j] = y[j].max(floor).value;
    }
}

/// Adds the columns to the sums.
#[inline(always)]
pub(super) fn accumulate<T, S, D, const TANGENT: bool>(
    simd: S,
    divergence: D,
    columns: &Columns<'_, T, S>,
    point: &RowState<'_, T::Vector<S>>,
    memory: &mut [T::Vector<S>],
    sums: &mut Sums<&mut [T::Vector<S>]>,
) where
    T: Real,
    S: Simd,
    D: Entry,
{
    let rank = point.w.len();
    let count = columns.x.len();
    let mut tray = Tray::new(memory);
    let mut from = 0;
    while from < count {
        let to = count.min(from + TILE);
        let tile = columns.tile(from, to, rank);
        reconstruct::<T, S, TANGENT>(simd, &tile, point, &mut tray);
        // Loops of constant length are much faster.
        if to - from == TILE {
            entries::<T, S, D, TANGENT>(simd, divergence, &tile, TILE, &mut tray);
            add_to::<T, S, D, TANGENT>(simd, sums, &tray.parts, &tile, TILE);
        } else {
            let count = to - from;
            entries::<T, S, D, TANGENT>(simd, divergence, &tile, count, &mut tray);
            add_to::<T, S, D, TANGENT>(simd, sums, &tray.parts, &tile, count);
        }
        from = to;
    }
}

/// The parts of a tile's entries.
#[inline(always)]
fn entries<T: Real, S: Simd, D: Entry, const TANGENT: bool>(
    simd: S,
    divergence: D,
    tile: &Columns<'_, T, S>,
    count: usize,
    tray: &mut Tray<'_, T::Vector<S>>,
) {
    let tile = &tile.tile(0, count, 0);
    for j in 0..count {
        entry::<T, S, D, TANGENT>(simd, divergence, tile, tray, j);
    }
}

#[inline(always)]
fn entry<T: Real, S: Simd, D: Entry, const TANGENT: bool>(
    simd: S,
    divergence: D,
    tile: &Columns<'_, T, S>,
    tray: &mut Tray<'_, T::Vector<S>>,
    j: usize,
) {
    let x = Lanes::<T, S>::new(simd, tile.x[j]);
    let (y, y_dot) = (
        Lanes::<T, S>::new(simd, tray.y[j]),
        Lanes::new(simd, tray.y_dot[j]),
    );
    let Parts {
        positive,
        negative,
        positive_dot,
        negative_dot,
    } = divergence.parts(x, y, y.inverse(), y_dot);
    tray.parts.negative[j] = negative.value;
    if D::POSITIVE_VARIES {
        tray.parts.positive[j] = positive.value;
    }
    if TANGENT && D::NEGATIVE_VARIES {
        tray.parts.negative_dot[j] = negative_dot.value;
    }
    if TANGENT && D::POSITIVE_VARIES {
        tray.parts.positive_dot[j] = positive_dot.value;
    }
}

/// Adds a tile's parts, times the other factor, to the sums.
#[inline(always)]
fn add_to<T: Real, S: Simd, D: Entry, const TANGENT: bool>(
    simd: S,
    sums: &mut Sums<&mut [T::Vector<S>]>,
    parts: &Sums<&mut [T::Vector<S>; TILE]>,
    tile: &Columns<'_, T, S>,
    count: usize,
) {
    let other = tile.other;
    let negative = [&mut *sums.negative, &mut *sums.negative_dot];
    let terms = [&parts.negative[..count], &parts.negative_dot[..count]];
    if TANGENT && D::NEGATIVE_VARIES {
        contract::<T, S, true>(simd, negative, terms, other);
    } else {
        contract::<T, S, false>(simd, negative, terms, other);
    }
    let positive = [&mut *sums.positive, &mut *sums.positive_dot];
    let terms = [&parts.positive[..count], &parts.positive_dot[..count]];
    if TANGENT && D::POSITIVE_VARIES {
        contract::<T, S, true>(simd, positive, terms, other);
    } else if D::POSITIVE_VARIES {
        contract::<T, S, false>(simd, positive, terms, other);
    }
}

/// Adds `Σ_j a_j other_jk` to the first sums and, if `BOTH`, `Σ_j b_j other_jk` to
/// the second.
#[inline(always)]
fn contract<T: Real, S: Simd, const BOTH: bool>(
    simd: S,
    sums: [&mut [T::Vector<S>]; 2],
    terms: [&[T::Vector<S>]; 2],
    other: &[T],
) {
    let [first, second] = sums;
    let rank = first.len();
    let blocks = rank.div_ceil(COMPONENTS);
    let mut from = 0;
    for block in 0..blocks {
        // Parts of about equal length: 6 is 3 + 3, not 5 + 1.
        let to = (block + 1) * rank / blocks;
        let first = &mut first[from..to];
        let second = if BOTH { &mut second[from..to] } else { &mut [] };
        match to - from {
            1 => contract_some::<T, S, BOTH, 1>(simd, first, second, terms, other, rank, from),
            2 => contract_some::<T, S, BOTH, 2>(simd, first, second, terms, other, rank, from),
            3 => contract_some::<T, S, BOTH, 3>(simd, first, second, terms, other, rank, from),
            4 => contract_some::<T, S, BOTH, 4>(simd, first, second, terms, other, rank, from),
            _ => contract_some::<T, S, BOTH, 5>(simd, first, second, terms, other, rank, from),
        }
        from = to;
    }
}

#[inline(always)]
fn contract_some<T: Real, S: Simd, const BOTH: bool, const K: usize>(
    simd: S,
    first: &mut [T::Vector<S>],
    second: &mut [T::Vector<S>],
    terms: [&[T::Vector<S>]; 2],
    other: &[T],
    rank: usize,
    from: usize,
) {
    let zero = Lanes::<T, S>::zero(simd);
    let (mut a, mut b) = ([zero; K], [zero; K]);
    for k in 0..K {
        a[k] = Lanes::new(simd, first[k]);
        if BOTH {
            b[k] = Lanes::new(simd, second[k]);
        }
    }
    let [first_terms, second_terms] = terms;
    let count = first_terms.len();
    let second_terms = if BOTH {
        &second_terms[..count]
    } else {
        first_terms
    };
    for j in 0..count {
        let start = j * rank + from;
        let row = &other[start..start + K];
        let first_term = Lanes::new(simd, first_terms[j]);
        let second_term = Lanes::new(simd, second_terms[j]);
        for k in 0..K {
            let h = Lanes::splat(simd, row[k]);
            a[k] = first_term.mul_add(h, a[k]);
            if BOTH {
                b[k] = second_term.mul_add(h, b[k]);
            }
        }
    }
    for k in 0..K {
        first[k] = a[k].value;
        if BOTH {
            second[k] = b[k].value;
        }
    }
}

/// Adds `X Hᵀ` of the columns to a sum.
#[inline(always)]
pub(super) fn project<T: Real, S: Simd>(
    simd: S,
    columns: &Columns<'_, T, S>,
    sum: &mut [T::Vector<S>],
) {
    contract::<T, S, false>(simd, [sum, &mut []], [columns.x, &[]], columns.other);
}

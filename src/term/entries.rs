//! Loops over the entries of a tile: the only code of the dense term that is compiled for each
//! divergence.

use pulp::bytemuck::{cast_slice, cast_slice_mut};
use pulp::{Simd, WithSimd};

use super::kernel::WIDE;
use super::tile::{Tile, Tiles};
use crate::engine::{Entry, Lanes, Real, with_entry};

/// Vectors whose entries are computed together. (Loops of constant length are much faster.)
const GROUP: usize = 8;
/// Vectors whose logarithms are computed together.
const SIDE: usize = 4;

/// The computation for each entry, from x, y = WH and weights.
#[derive(Debug, Clone, Copy)]
pub(super) enum Loop {
    /// ∇⁻ and ∇⁺.
    Parts,
    /// The same, and their tangents `t` and `u`. On input, `t` is ẏ from the rows and, if the
    /// columns move, `u` is ẏ from the columns.
    PartsTangent { columns_move: bool },
    /// ∇⁻ and ∇⁺, and `t`, the derivative of the parts in y. On input, `t` and `u` are products with
    /// the cotangents of N and P.
    PartsCotangent,
    /// D, added to a sum for each row.
    Errors,
    /// `t`, the derivative of D in y times the cotangent of the row.
    ErrorsCotangent,
}

impl<T: Real> Tiles<'_, T> {
    /// Computes the entries of a tile. `rows` are the sums of [`Loop::Errors`], or the cotangents of
    /// [`Loop::ErrorsCotangent`], [`WIDE`] vectors, and empty otherwise.
    #[inline(always)]
    pub(super) fn entries<S: Simd>(
        &self,
        simd: S,
        what: Loop,
        weighted: bool,
        tile: &mut Tile<T::Vector<S>>,
        rows: &mut [T::Vector<S>],
    ) {
        let Tile {
            x,
            m,
            y,
            t,
            u,
            negative,
            positive,
            count,
        } = tile;
        let entries = Entries {
            what,
            floor: self.floor,
            shift: self.shift,
            x: cast_slice(x),
            weights: cast_slice(m),
            y: cast_slice(y),
            t: cast_slice_mut(t),
            u: cast_slice_mut(u),
            negative: cast_slice_mut(negative),
            positive: cast_slice_mut(positive),
            rows: cast_slice_mut(rows),
            count: *count,
        };
        with_entry!(self.divergence, entry => {
            if weighted {
                simd.vectorize(Weighted::<T, _, true>(entries, entry));
            } else {
                simd.vectorize(Weighted::<T, _, false>(entries, entry));
            }
        });
    }
}

/// The entries of a tile as plain numbers.
struct Entries<'a, T> {
    what: Loop,
    floor: T,
    shift: T,
    x: &'a [T],
    weights: &'a [T],
    y: &'a [T],
    t: &'a mut [T],
    u: &'a mut [T],
    negative: &'a mut [T],
    positive: &'a mut [T],
    rows: &'a mut [T],
    /// Vectors that were read.
    count: usize,
}

/// A loop for one divergence. (Whether weights differ is a constant, so that loops have no
/// branches.)
struct Weighted<'a, T, D, const WEIGHTED: bool>(Entries<'a, T>, D);

/// A vector of entries.
struct At<T: Real, S: Simd> {
    /// WH, without the floor and the shift.
    raw: Lanes<T, S>,
    floor: Lanes<T, S>,
    x: Lanes<T, S>,
    y: Lanes<T, S>,
    /// 1/y.
    inverse: Lanes<T, S>,
}

impl<T: Real, S: Simd> At<T, S> {
    #[inline(always)]
    fn new(simd: S, [floor, shift]: [T; 2], x: T::Vector<S>, y: T::Vector<S>) -> Self {
        let [floor, shift] = [Lanes::splat(simd, floor), Lanes::splat(simd, shift)];
        let raw = Lanes::new(simd, y);
        let y = raw.max(floor) + shift;
        Self {
            raw,
            floor,
            x: Lanes::new(simd, x) + shift,
            y,
            inverse: y.inverse(),
        }
    }

    /// A derivative in y. It is zero at the floor.
    #[inline(always)]
    fn still(&self, value: Lanes<T, S>) -> Lanes<T, S> {
        self.raw
            .where_less(self.floor, self.floor.constant(0.0), value)
    }
}

/// A value times the weight of an entry. It is exactly 0 for weight 0, even if the value is not
/// finite.
#[inline(always)]
fn weighted<T: Real, S: Simd, const WEIGHTED: bool>(
    simd: S,
    weight: T::Vector<S>,
    value: Lanes<T, S>,
) -> Lanes<T, S> {
    if !WEIGHTED {
        return value;
    }
    let weight = Lanes::<T, S>::new(simd, weight);
    let tiny = weight.constant(T::PRECISION.floor());
    weight.where_less(tiny, weight.constant(0.0), value * weight)
}

impl<T: Real, D: Entry, const WEIGHTED: bool> WithSimd for Weighted<'_, T, D, WEIGHTED> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self(entries, divergence) = self;
        let at_ends = [entries.floor, entries.shift];
        if let Loop::Errors = entries.what {
            return add_errors::<T, S, D, WEIGHTED>(simd, divergence, entries);
        }
        let zero = Lanes::<T, S>::zero(simd);
        let groups = entries.count.div_ceil(GROUP);
        // The last group may have vectors beyond the last one that was read. They are computed but
        // not summed.
        let x = &groups_of::<T, S>(entries.x)[..groups];
        let y = &groups_of::<T, S>(entries.y)[..groups];
        let weights = &groups_of::<T, S>(entries.weights)[..groups];
        let t = &mut groups_of_mut::<T, S>(entries.t)[..groups];
        let u = &mut groups_of_mut::<T, S>(entries.u)[..groups];
        let negative = &mut groups_of_mut::<T, S>(entries.negative)[..groups];
        let positive = &mut groups_of_mut::<T, S>(entries.positive)[..groups];
        macro_rules! at {
            ($group:ident, $j:ident) => {
                At::<T, S>::new(simd, at_ends, x[$group][$j], y[$group][$j])
            };
        }
        macro_rules! times_weight {
            ($group:ident, $j:ident, $value:expr) => {
                weighted::<T, S, WEIGHTED>(simd, weights[$group][$j], $value).value
            };
        }
        match entries.what {
            Loop::Errors => {}
            Loop::Parts => {
                for group in 0..groups {
                    for j in 0..GROUP {
                        let at = at!(group, j);
                        let parts = divergence.parts(at.x, at.y, at.inverse, zero);
                        negative[group][j] = times_weight!(group, j, parts.negative);
                        if D::POSITIVE_VARIES || WEIGHTED {
                            positive[group][j] = times_weight!(group, j, parts.positive);
                        }
                    }
                }
            }
            Loop::PartsTangent { columns_move } => {
                for group in 0..groups {
                    for j in 0..GROUP {
                        let at = at!(group, j);
                        let mut y_dot = Lanes::new(simd, t[group][j]);
                        if columns_move {
                            y_dot = y_dot + Lanes::new(simd, u[group][j]);
                        }
                        let y_dot = at.still(y_dot);
                        let parts = divergence.parts(at.x, at.y, at.inverse, y_dot);
                        t[group][j] = times_weight!(group, j, parts.negative_dot);
                        u[group][j] = times_weight!(group, j, parts.positive_dot);
                        negative[group][j] = times_weight!(group, j, parts.negative);
                        positive[group][j] = times_weight!(group, j, parts.positive);
                    }
                }
            }
            Loop::PartsCotangent => {
                for group in 0..groups {
                    for j in 0..GROUP {
                        let at = at!(group, j);
                        let along = at.still(Lanes::new(simd, t[group][j]));
                        let parts = divergence.parts(at.x, at.y, at.inverse, along);
                        let mut slope = parts.negative_dot;
                        if D::POSITIVE_VARIES {
                            let along = at.still(Lanes::new(simd, u[group][j]));
                            let moved = divergence.parts(at.x, at.y, at.inverse, along);
                            slope = slope + moved.positive_dot;
                        }
                        t[group][j] = times_weight!(group, j, slope);
                        negative[group][j] = times_weight!(group, j, parts.negative);
                        if D::POSITIVE_VARIES || WEIGHTED {
                            positive[group][j] = times_weight!(group, j, parts.positive);
                        }
                    }
                }
            }
            Loop::ErrorsCotangent => {
                let bars = T::vectors::<S>(entries.rows);
                let bars = [bars[0], bars[1]].map(|bar| Lanes::<T, S>::new(simd, bar));
                for group in 0..groups {
                    for j in 0..GROUP {
                        let at = at!(group, j);
                        let parts = divergence.parts(at.x, at.y, at.inverse, zero);
                        let slope = at.still((parts.positive - parts.negative) * bars[j % WIDE]);
                        t[group][j] = times_weight!(group, j, slope);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn groups_of<T: Real, S: Simd>(numbers: &[T]) -> &[[T::Vector<S>; GROUP]] {
    T::vectors::<S>(numbers).as_chunks::<GROUP>().0
}

#[inline(always)]
fn groups_of_mut<T: Real, S: Simd>(numbers: &mut [T]) -> &mut [[T::Vector<S>; GROUP]] {
    T::vectors_mut::<S>(numbers).as_chunks_mut::<GROUP>().0
}

/// [`Loop::Errors`].
#[inline(always)]
fn add_errors<T: Real, S: Simd, D: Entry, const WEIGHTED: bool>(
    simd: S,
    divergence: D,
    entries: Entries<'_, T>,
) {
    let sums = T::vectors_mut::<S>(entries.rows);
    let mut totals = [Lanes::<T, S>::new(simd, sums[0]), Lanes::new(simd, sums[1])];
    let mut from = 0;
    while from + SIDE <= entries.count {
        add_errors_of::<T, S, D, WEIGHTED, SIDE>(simd, divergence, &entries, from, &mut totals);
        from += SIDE;
    }
    while from < entries.count {
        add_errors_of::<T, S, D, WEIGHTED, WIDE>(simd, divergence, &entries, from, &mut totals);
        from += WIDE;
    }
    let sums = T::vectors_mut::<S>(entries.rows);
    for (sum, total) in sums.iter_mut().zip(totals) {
        *sum = total.value;
    }
}

#[inline(always)]
fn add_errors_of<T: Real, S: Simd, D: Entry, const WEIGHTED: bool, const J: usize>(
    simd: S,
    divergence: D,
    entries: &Entries<'_, T>,
    from: usize,
    totals: &mut [Lanes<T, S>; WIDE],
) {
    let [xs, ys, weights] = [entries.x, entries.y, entries.weights]
        .map(|numbers| &T::vectors::<S>(numbers)[from..from + J]);
    let zero = Lanes::<T, S>::zero(simd);
    let (mut x, mut y, mut inverse) = ([zero; J], [zero; J], [zero; J]);
    for j in 0..J {
        let at = At::<T, S>::new(simd, [entries.floor, entries.shift], xs[j], ys[j]);
        (x[j], y[j], inverse[j]) = (at.x, at.y, at.inverse);
    }
    let values = divergence.values(x, y, inverse);
    for j in 0..J {
        let value = weighted::<T, S, WEIGHTED>(simd, weights[j], values[j]);
        totals[j % WIDE] = totals[j % WIDE] + value;
    }
}

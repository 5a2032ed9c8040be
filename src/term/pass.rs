//! Passes over blocks of rows: parts, errors, and their transposed derivatives.
//!
//! The derivative in the *other* factor is a pass over the transposed data, with the factors
//! exchanged.

use pulp::{Simd, WithSimd};

use super::kernel::{TILE, WIDE, contract, load, products, store};
use crate::engine::{Entry, Lanes, Real};

/// Vectors in a tile.
const VECTORS: usize = TILE * WIDE;
/// Vectors whose logarithms are computed together.
const SIDE: usize = 4;

/// The result of a pass, in the rows of `own`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// N and P of a factor.
    Parts,
    /// Their tangents, from the directions of the factor's rows and of the columns.
    PartsTangent,
    /// The factor's cotangent, from those of its rows' parts.
    PartsOfFactor,
    /// The other factor's cotangent: `own` is the other factor, the data are transposed, and the
    /// cotangents of parts belong to the columns.
    PartsOfOther,
    /// D of each row.
    Errors,
    /// The factor's cotangent, from those of its rows' errors.
    ErrorsOfFactor,
    /// The other factor's cotangent; the cotangents of errors belong to the columns.
    ErrorsOfOther,
}

/// The weights of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weighting {
    /// All weights are equal.
    None,
    /// 0 if x is stored as a negative number, otherwise 1.
    Sign,
    /// An array of weights.
    Array,
}

/// All blocks of rows of one side's data, one after another, each column by column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocks<'a, T> {
    pub(super) x: &'a [T],
    /// Weights, laid out like x. Empty without an array of weights.
    pub(super) weights: &'a [T],
    pub(super) weighting: Weighting,
    pub(super) columns: usize,
}

/// One pass over consecutive blocks of rows.
pub(super) struct Pass<'a, T, D> {
    pub(super) what: What,
    pub(super) divergence: D,
    pub(super) blocks: Blocks<'a, T>,
    /// The index of the first block.
    pub(super) first: usize,
    /// The smallest y.
    pub(super) floor: T,
    /// The number that is added to x and y.
    pub(super) shift: T,
    /// The rows of the pass, r numbers each.
    pub(super) own: &'a [f64],
    /// r numbers for each column.
    pub(super) other: &'a [T],
    /// Cotangents that belong to the rows: r numbers each (of N, of P), or one (of errors). For
    /// tangents, the directions of the rows.
    pub(super) own_bars: [&'a [f64]; 2],
    /// The same for the columns. Empty if they do not move.
    pub(super) other_bars: [&'a [T]; 2],
    /// Column sums for P, or its cotangent, if ∇⁺ is 1 everywhere.
    pub(super) sums: &'a [f64],
    pub(super) rank: usize,
    /// r numbers for each row, or one.
    pub(super) out: &'a mut [f64],
    /// P, if it is requested.
    pub(super) second: &'a mut [f64],
}

/// Vectors of a tile.
struct Tile<V> {
    x: [V; VECTORS],
    /// Weights.
    m: [V; VECTORS],
    y: [V; VECTORS],
    /// Products with cotangents, then the terms of the sums over columns.
    t: [V; VECTORS],
    u: [V; VECTORS],
    /// ∇⁻ and ∇⁺, weighted.
    negative: [V; VECTORS],
    positive: [V; VECTORS],
}

// The kinds of entries of passes, as compile-time constants.
const PARTS: u8 = 0;
const TANGENT: u8 = 1;
const OF_FACTOR: u8 = 2;
const OF_OTHER: u8 = 3;
const ERRORS_OF_FACTOR: u8 = 4;
const ERRORS_OF_OTHER: u8 = 5;

impl<T: Real, D: Entry> WithSimd for Pass<'_, T, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let pass = self;
        let what = pass.what;
        let (rank, lanes) = (pass.rank, WIDE * T::lanes::<S>());
        let vectors = rank * WIDE;
        let zero = Lanes::<T, S>::zero(simd).value;
        // Allocated once for all blocks.
        let mut memory = vec![zero; 5 * vectors];
        let (own, rest) = memory.split_at_mut(vectors);
        let (bar, rest) = rest.split_at_mut(vectors);
        let (second_bar, rest) = rest.split_at_mut(vectors);
        let (first, second) = rest.split_at_mut(vectors);
        let mut tile = Tile {
            x: [zero; VECTORS],
            m: [zero; VECTORS],
            y: [zero; VECTORS],
            t: [zero; VECTORS],
            u: [zero; VECTORS],
            negative: [zero; VECTORS],
            positive: [zero; VECTORS],
        };
        let weighted = pass.blocks.weighting != Weighting::None;
        let varies = D::POSITIVE_VARIES || weighted;
        let columns_move = !pass.other_bars[0].is_empty();
        let mut at = 0;
        for (block, rows) in pass.own.chunks(lanes * rank).enumerate() {
            let count = rows.len() / rank;
            load::<T, S>(rows, own);
            match what {
                What::PartsOfFactor => {
                    let place = at * rank..at * rank + rows.len();
                    load::<T, S>(&pass.own_bars[0][place.clone()], bar);
                    if D::POSITIVE_VARIES {
                        load::<T, S>(&pass.own_bars[1][place], second_bar);
                    }
                }
                What::PartsTangent => {
                    let place = at * rank..at * rank + rows.len();
                    load::<T, S>(&pass.own_bars[0][place], bar);
                }
                What::ErrorsOfFactor => {
                    load::<T, S>(&pass.own_bars[0][at..at + count], &mut bar[..WIDE]);
                }
                _ => {}
            }
            first.fill(zero);
            second.fill(zero);
            let mut error = [Lanes::<T, S>::zero(simd); WIDE];
            let mut from = 0;
            while from < pass.blocks.columns {
                let to = pass.blocks.columns.min(from + TILE);
                let width = to - from;
                let other = &pass.other[from * rank..to * rank];
                pass.read::<S>(simd, pass.first + block, from, width, &mut tile);
                products::<T, S>(simd, own, other, &mut tile.y[..width * WIDE]);
                let bars = |index: usize| &pass.other_bars[index][from * rank..to * rank];
                match what {
                    What::PartsTangent => {
                        products::<T, S>(simd, bar, other, &mut tile.t[..width * WIDE]);
                        if columns_move {
                            products::<T, S>(simd, own, bars(0), &mut tile.u[..width * WIDE]);
                        }
                    }
                    What::PartsOfFactor => {
                        products::<T, S>(simd, bar, other, &mut tile.t[..width * WIDE]);
                        if D::POSITIVE_VARIES {
                            products::<T, S>(simd, second_bar, other, &mut tile.u[..width * WIDE]);
                        }
                    }
                    What::PartsOfOther => {
                        products::<T, S>(simd, own, bars(0), &mut tile.t[..width * WIDE]);
                        if D::POSITIVE_VARIES {
                            products::<T, S>(simd, own, bars(1), &mut tile.u[..width * WIDE]);
                        }
                    }
                    _ => {}
                }
                // The whole tile is computed, even if it has fewer columns, because loops of
                // constant length are much faster. The extra columns are not summed.
                match what {
                    What::Parts => pass.entries::<S, PARTS>(simd, from, bar, &mut tile),
                    What::PartsTangent => pass.entries::<S, TANGENT>(simd, from, bar, &mut tile),
                    What::PartsOfFactor => pass.entries::<S, OF_FACTOR>(simd, from, bar, &mut tile),
                    What::PartsOfOther => pass.entries::<S, OF_OTHER>(simd, from, bar, &mut tile),
                    What::ErrorsOfFactor => {
                        pass.entries::<S, ERRORS_OF_FACTOR>(simd, from, bar, &mut tile)
                    }
                    What::ErrorsOfOther => {
                        pass.entries::<S, ERRORS_OF_OTHER>(simd, from, bar, &mut tile)
                    }
                    What::Errors => pass.errors::<S>(simd, width * WIDE, &tile, &mut error),
                }
                match what {
                    What::Parts => {
                        contract::<T, S>(simd, first, &tile.negative[..width * WIDE], other);
                        if varies {
                            contract::<T, S>(simd, second, &tile.positive[..width * WIDE], other);
                        }
                    }
                    What::PartsTangent => {
                        contract::<T, S>(simd, first, &tile.t[..width * WIDE], other);
                        if D::POSITIVE_VARIES {
                            contract::<T, S>(simd, second, &tile.u[..width * WIDE], other);
                        }
                        if columns_move {
                            let (negative, positive) = (&tile.negative, &tile.positive);
                            contract::<T, S>(simd, first, &negative[..width * WIDE], bars(0));
                            if varies {
                                contract::<T, S>(simd, second, &positive[..width * WIDE], bars(0));
                            }
                        }
                    }
                    What::PartsOfOther => {
                        contract::<T, S>(simd, first, &tile.t[..width * WIDE], other);
                        contract::<T, S>(simd, first, &tile.negative[..width * WIDE], bars(0));
                        if varies {
                            contract::<T, S>(simd, first, &tile.positive[..width * WIDE], bars(1));
                        }
                    }
                    What::Errors => {}
                    _ => contract::<T, S>(simd, first, &tile.t[..width * WIDE], other),
                }
                from = to;
            }
            let add_sums = |to: &mut [T::Vector<S>]| {
                for (slots, sum) in to.chunks_exact_mut(WIDE).zip(pass.sums) {
                    let sum = Lanes::<T, S>::splat(simd, T::from_f64(*sum));
                    for slot in slots {
                        *slot = (Lanes::new(simd, *slot) + sum).value;
                    }
                }
            };
            match what {
                What::Errors => {
                    store::<T, S>(
                        &error.map(|error| error.value),
                        &mut pass.out[at..at + count],
                    );
                }
                What::Parts | What::PartsTangent => {
                    if !varies {
                        add_sums(second);
                    }
                    let place = at * rank..at * rank + rows.len();
                    store::<T, S>(first, &mut pass.out[place.clone()]);
                    store::<T, S>(second, &mut pass.second[place]);
                }
                _ => {
                    if what == What::PartsOfOther && !varies {
                        add_sums(first);
                    }
                    store::<T, S>(first, &mut pass.out[at * rank..at * rank + rows.len()]);
                }
            }
            at += count;
        }
    }
}

impl<T: Real, D: Entry> Pass<'_, T, D> {
    /// x and weights of a tile.
    #[inline(always)]
    fn read<S: Simd>(
        &self,
        simd: S,
        block: usize,
        from: usize,
        width: usize,
        tile: &mut Tile<T::Vector<S>>,
    ) {
        let lanes = T::lanes::<S>();
        let Blocks {
            x,
            weights,
            weighting,
            columns,
            ..
        } = self.blocks;
        let stride = WIDE * lanes;
        let base = (block * columns + from) * stride;
        let zero = Lanes::<T, S>::zero(simd);
        let one = zero.constant(1.0);
        for j in 0..width {
            let place = base + j * stride;
            let x = T::vectors::<S>(&x[place..place + stride]);
            for v in 0..WIDE {
                let at = j * WIDE + v;
                let x = Lanes::<T, S>::new(simd, x[v]);
                match weighting {
                    Weighting::None => tile.x[at] = x.value,
                    Weighting::Sign => {
                        tile.m[at] = x.where_less(zero, zero, one).value;
                        tile.x[at] = x.max(zero).value;
                    }
                    Weighting::Array => {
                        tile.m[at] = T::vectors::<S>(&weights[place..place + stride])[v];
                        tile.x[at] = x.value;
                    }
                }
            }
        }
    }

    /// A value times the weight of an entry. It is exactly 0 for weight 0, even if the value is not
    /// finite.
    #[inline(always)]
    fn weighted<S: Simd>(&self, simd: S, value: Lanes<T, S>, weight: T::Vector<S>) -> Lanes<T, S> {
        if self.blocks.weighting == Weighting::None {
            return value;
        }
        let weight = Lanes::<T, S>::new(simd, weight);
        let tiny = weight.constant(T::PRECISION.floor());
        weight.where_less(tiny, weight.constant(0.0), value * weight)
    }

    /// The entries of a tile.
    #[inline(always)]
    fn entries<S: Simd, const WHAT: u8>(
        &self,
        simd: S,
        from: usize,
        bar: &[T::Vector<S>],
        tile: &mut Tile<T::Vector<S>>,
    ) {
        let last = self.blocks.columns - 1;
        let floor = Lanes::<T, S>::splat(simd, self.floor);
        let shift = Lanes::<T, S>::splat(simd, self.shift);
        let zero = Lanes::<T, S>::zero(simd);
        for j in 0..VECTORS {
            let raw = Lanes::<T, S>::new(simd, tile.y[j]);
            let y = raw.max(floor) + shift;
            let inverse = y.recip_by_products();
            let x = Lanes::new(simd, tile.x[j]) + shift;
            // The derivative of y is zero at the floor.
            let still = |value: Lanes<T, S>| raw.where_less(floor, zero, value);
            match WHAT {
                PARTS => {
                    let parts = self.divergence.parts(x, y, inverse, zero);
                    tile.negative[j] = self.weighted(simd, parts.negative, tile.m[j]).value;
                    tile.positive[j] = self.weighted(simd, parts.positive, tile.m[j]).value;
                }
                TANGENT => {
                    let mut y_dot = Lanes::new(simd, tile.t[j]);
                    if !self.other_bars[0].is_empty() {
                        y_dot = y_dot + Lanes::new(simd, tile.u[j]);
                    }
                    let parts = self.divergence.parts(x, y, inverse, still(y_dot));
                    let weighted = |value| self.weighted(simd, value, tile.m[j]).value;
                    tile.t[j] = weighted(parts.negative_dot);
                    tile.u[j] = weighted(parts.positive_dot);
                    tile.negative[j] = weighted(parts.negative);
                    tile.positive[j] = weighted(parts.positive);
                }
                OF_FACTOR | OF_OTHER => {
                    let t = still(Lanes::new(simd, tile.t[j]));
                    let parts = self.divergence.parts(x, y, inverse, t);
                    let mut slope = parts.negative_dot;
                    if D::POSITIVE_VARIES {
                        let u = still(Lanes::new(simd, tile.u[j]));
                        slope = slope + self.divergence.parts(x, y, inverse, u).positive_dot;
                    }
                    tile.t[j] = self.weighted(simd, slope, tile.m[j]).value;
                    if WHAT == OF_OTHER {
                        tile.negative[j] = self.weighted(simd, parts.negative, tile.m[j]).value;
                        tile.positive[j] = self.weighted(simd, parts.positive, tile.m[j]).value;
                    }
                }
                _ => {
                    let parts = self.divergence.parts(x, y, inverse, zero);
                    let bar = match WHAT {
                        ERRORS_OF_FACTOR => Lanes::new(simd, bar[j % WIDE]),
                        _ => Lanes::splat(simd, self.other_bars[0][last.min(from + j / WIDE)]),
                    };
                    let slope = still((parts.positive - parts.negative) * bar);
                    tile.t[j] = self.weighted(simd, slope, tile.m[j]).value;
                }
            }
        }
    }

    /// Adds D of a tile's entries to a sum for each vector of rows.
    #[inline(always)]
    fn errors<S: Simd>(
        &self,
        simd: S,
        count: usize,
        tile: &Tile<T::Vector<S>>,
        sums: &mut [Lanes<T, S>; WIDE],
    ) {
        let mut from = 0;
        while from + SIDE <= count {
            self.errors_of::<S, SIDE>(simd, from, tile, sums);
            from += SIDE;
        }
        while from < count {
            self.errors_of::<S, WIDE>(simd, from, tile, sums);
            from += WIDE;
        }
    }

    #[inline(always)]
    fn errors_of<S: Simd, const J: usize>(
        &self,
        simd: S,
        from: usize,
        tile: &Tile<T::Vector<S>>,
        sums: &mut [Lanes<T, S>; WIDE],
    ) {
        let floor = Lanes::<T, S>::splat(simd, self.floor);
        let shift = Lanes::<T, S>::splat(simd, self.shift);
        let (mut x, mut y, mut inverse) = ([floor; J], [floor; J], [floor; J]);
        for j in 0..J {
            x[j] = Lanes::new(simd, tile.x[from + j]) + shift;
            y[j] = Lanes::<T, S>::new(simd, tile.y[from + j]).max(floor) + shift;
            inverse[j] = y[j].recip_by_products();
        }
        let values = self.divergence.values(x, y, inverse);
        for (j, value) in values.into_iter().enumerate() {
            let value = self.weighted(simd, value, tile.m[from + j]);
            sums[j % WIDE] = sums[j % WIDE] + value;
        }
    }
}

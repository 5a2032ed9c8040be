//! Passes over listed entries, line by line, a strip of entries at a time.
//!
//! A strip is read twice: for the products of its entries (y, and those with cotangents), and for
//! the sums over its entries. In between, the divergence is computed entry by entry.

use pulp::{Simd, WithSimd};

use super::lines::Lines;
use super::tile::Numbers;
use crate::engine::{AnyEntry, Entry, Lanes, Real, with_entry};

/// Entries in a strip: whole vectors on every processor, and few enough to stay in the cache.
pub(super) const STRIP: usize = 64;
/// Vectors whose sums are in registers at the same time: of one sum, and of two.
const TOGETHER: usize = 6;
const TOGETHER_OF_BOTH: usize = 5;

/// The result of a pass, in its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// N and P of a factor.
    Parts,
    /// Their tangents, from the directions of the lines and of the indices.
    PartsTangent,
    /// The factor's cotangent, from those of its lines' parts.
    PartsOfFactor,
    /// The other factor's cotangent: its lines are those of the pass, and the cotangents of parts
    /// belong to the indices.
    PartsOfOther,
    /// D of each line.
    Errors,
    /// D of each line, and its derivative in the factor's line.
    ErrorsAndSlopes,
    /// The factor's cotangent, from those of its lines' errors.
    ErrorsOfFactor,
    /// The other factor's cotangent; the cotangents of errors belong to the indices.
    ErrorsOfOther,
}

/// The terms of entries that are not listed, as a function of y at x = 0. They are computed for all
/// entries at once, and subtracted for the listed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// No terms.
    Nothing,
    /// ∇⁺ = 1 and d = y.
    One,
    /// ∇⁺ = y and d = y²/2.
    Y,
}

/// The computation for each entry.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) what: What,
    pub(super) divergence: AnyEntry<'a>,
    /// The weight of an entry that is not listed, and its terms.
    pub(super) elsewhere: f64,
    pub(super) taken: Taken,
    /// True if ∇⁺ of a listed entry differs from that of an entry that is not.
    pub(super) positive: bool,
    pub(super) floor: f64,
    pub(super) shift: f64,
}

/// One pass over consecutive lines.
pub(super) struct Strips<'a> {
    pub(super) terms: Terms<'a>,
    pub(super) lines: &'a Lines,
    /// The first line.
    pub(super) first: usize,
    pub(super) rank: usize,
    /// r numbers for each line.
    pub(super) own: &'a [f64],
    /// Cotangents of the lines, or directions of the lines; r numbers each.
    pub(super) own_bars: [&'a [f64]; 2],
    /// Numbers for each index: r, padded with zeros to whole vectors.
    pub(super) width: usize,
    pub(super) other: &'a [f64],
    /// The same for the indices. Empty if they do not move.
    pub(super) other_bars: [&'a [f64]; 2],
    /// Cotangents of the errors of lines or indices, one number each.
    pub(super) error_bars: &'a [f64],
    /// r numbers for each of the lines, or one.
    pub(super) out: &'a mut [f64],
    /// P, or one number for each line, if it is requested.
    pub(super) second: &'a mut [f64],
}

/// The entries of a strip.
pub(super) struct Strip {
    x: [f64; STRIP],
    weights: [f64; STRIP],
    pub(super) y: [f64; STRIP],
    /// Products with cotangents or tangents, then the coefficient of the other factor's line.
    pub(super) t: [f64; STRIP],
    /// The same for P. Also the errors.
    pub(super) u: [f64; STRIP],
    /// Weighted ∇⁻ and ∇⁺.
    pub(super) negative: [f64; STRIP],
    pub(super) positive: [f64; STRIP],
}

impl WithSimd for Strips<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (rank, width) = (self.rank, self.width);
        let Terms { what, positive, .. } = self.terms;
        let negative_varies = self.terms.divergence.negative_varies();
        let mut strip = Strip::new();
        let each = if what == What::Errors { 1 } else { rank };
        let lines = self.out.len() / each;
        let (mut first, mut second) = (vec![0.0; width], vec![0.0; width]);
        // A line, padded with zeros to whole vectors.
        let mut own = vec![0.0; width];
        let mut bars = [vec![0.0; width], vec![0.0; width]];
        // (Empty if there are none.)
        let moves = !self.other_bars[0].is_empty();
        for index in 0..lines {
            let line = self.first + index;
            own[..rank].copy_from_slice(&self.own[line * rank..(line + 1) * rank]);
            for (to, from) in bars.iter_mut().zip(self.own_bars) {
                if !from.is_empty() {
                    to[..rank].copy_from_slice(&from[line * rank..(line + 1) * rank]);
                }
            }
            first.fill(0.0);
            second.fill(0.0);
            let mut error = 0.0;
            let (places, values, weights) = self.lines.of(line);
            let mut from = 0;
            while from < places.len() {
                let to = places.len().min(from + STRIP);
                let count = to - from;
                let places = &places[from..to];
                strip.read(values, from, count, weights.map(|all| &all[from..to]));
                let y_matters = negative_varies
                    || positive
                    || !matches!(what, What::Parts | What::PartsTangent);
                let Strip { y, t, u, .. } = &mut strip;
                let [of_negative, of_positive] = &bars;
                // (A line of the other factor is fetched once for all products with it.)
                match what {
                    What::PartsTangent if y_matters => {
                        dots::<S, 2>(simd, [&own, of_negative], self.other, places, [y, t]);
                    }
                    What::PartsTangent => {
                        dots::<S, 1>(simd, [of_negative], self.other, places, [t]);
                    }
                    What::PartsOfFactor if positive => {
                        let lines = [&own, of_negative, of_positive];
                        dots::<S, 3>(simd, lines, self.other, places, [y, t, u]);
                    }
                    What::PartsOfFactor => {
                        dots::<S, 2>(simd, [&own, of_negative], self.other, places, [y, t]);
                    }
                    _ if y_matters => dots::<S, 1>(simd, [&own], self.other, places, [y]),
                    _ => {}
                }
                let Strip { t, u, .. } = &mut strip;
                match what {
                    What::PartsTangent if moves => {
                        dots::<S, 1>(simd, [&own], self.other_bars[0], places, [u]);
                        for k in 0..count {
                            strip.t[k] += strip.u[k];
                        }
                    }
                    What::PartsOfOther => {
                        dots::<S, 1>(simd, [&own], self.other_bars[0], places, [t]);
                        if positive {
                            dots::<S, 1>(simd, [&own], self.other_bars[1], places, [u]);
                        }
                    }
                    What::ErrorsOfFactor => strip.t[..count].fill(self.error_bars[line]),
                    What::ErrorsAndSlopes => strip.t[..count].fill(1.0),
                    What::ErrorsOfOther => {
                        for (slot, place) in strip.t.iter_mut().zip(places) {
                            *slot = self.error_bars[*place as usize];
                        }
                    }
                    _ => {}
                }
                if matches!(what, What::Errors | What::ErrorsAndSlopes) {
                    error += self.terms.errors::<S>(simd, count, &mut strip);
                }
                if what != What::Errors {
                    self.terms.entries::<S>(simd, count, &mut strip);
                }
                let strip = &strip;
                // (It is not a closure, which might not be compiled for each kind of processor.)
                macro_rules! sum {
                    ($to:expr, $by:expr, $of:expr) => {
                        add::<S, 1>(simd, [$to], [&$by[..count]], $of, places)
                    };
                }
                match what {
                    What::Errors => {}
                    What::Parts => {
                        sum!(&mut first, strip.negative, self.other);
                        if positive {
                            sum!(&mut second, strip.positive, self.other);
                        }
                    }
                    What::PartsTangent => {
                        if negative_varies {
                            sum!(&mut first, strip.t, self.other);
                        }
                        if positive {
                            sum!(&mut second, strip.u, self.other);
                        }
                        if moves {
                            sum!(&mut first, strip.negative, self.other_bars[0]);
                            if positive {
                                sum!(&mut second, strip.positive, self.other_bars[0]);
                            }
                        }
                    }
                    What::PartsOfOther => {
                        sum!(&mut first, strip.t, self.other);
                        sum!(&mut first, strip.negative, self.other_bars[0]);
                        if positive {
                            sum!(&mut first, strip.positive, self.other_bars[1]);
                        }
                    }
                    What::PartsOfFactor
                    | What::ErrorsAndSlopes
                    | What::ErrorsOfFactor
                    | What::ErrorsOfOther => {
                        sum!(&mut first, strip.t, self.other);
                    }
                }
                from = to;
            }
            if what == What::Errors {
                self.out[index] = error;
                continue;
            }
            let place = index * rank..(index + 1) * rank;
            self.out[place.clone()].copy_from_slice(&first[..rank]);
            if what == What::ErrorsAndSlopes {
                self.second[index] = error;
            } else if !self.second.is_empty() {
                self.second[place].copy_from_slice(&second[..rank]);
            }
        }
    }
}

impl Strip {
    pub(super) fn new() -> Self {
        Self {
            x: [1.0; STRIP],
            weights: [0.0; STRIP],
            y: [1.0; STRIP],
            t: [0.0; STRIP],
            u: [0.0; STRIP],
            negative: [0.0; STRIP],
            positive: [0.0; STRIP],
        }
    }

    #[inline(always)]
    pub(super) fn read(
        &mut self,
        x: Numbers<'_, f64>,
        from: usize,
        count: usize,
        weights: Option<&[f64]>,
    ) {
        x.copy(from, &mut self.x[..count]);
        match weights {
            Some(weights) => self.weights[..count].copy_from_slice(weights),
            None => self.weights[..count].fill(1.0),
        }
        // Values beyond the last entry have weight 0 and are finite.
        let end = count.next_multiple_of(crate::engine::MOST_LANES);
        self.x[count..end].fill(1.0);
        self.y[count..end].fill(1.0);
        self.t[count..end].fill(0.0);
        self.u[count..end].fill(0.0);
        self.weights[count..end].fill(0.0);
    }
}

impl Terms<'_> {
    /// The terms of the sums, from x, y, and the products with cotangents.
    #[inline(always)]
    pub(super) fn entries<S: Simd>(self, simd: S, count: usize, strip: &mut Strip) {
        with_entry!(self.divergence, entry => {
            simd.vectorize(EntryTerms { terms: self, divergence: entry, count, strip });
        });
    }

    /// The errors of a strip, minus those that the closed form has added.
    #[inline(always)]
    pub(super) fn errors<S: Simd>(self, simd: S, count: usize, strip: &mut Strip) -> f64 {
        with_entry!(self.divergence, entry => {
            simd.vectorize(EntryErrors(EntryTerms { terms: self, divergence: entry, count, strip }))
        })
    }
}

/// The loops over the entries of a strip, which are compiled for each divergence.
struct EntryTerms<'a, D> {
    terms: Terms<'a>,
    divergence: D,
    count: usize,
    strip: &'a mut Strip,
}

impl<D: Entry> WithSimd for EntryTerms<'_, D> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            terms,
            divergence,
            count,
            strip,
        } = self;
        let lanes = f64::lanes::<S>();
        let count = count.next_multiple_of(lanes);
        let floor = Lanes::<f64, S>::splat(simd, terms.floor);
        let shift = Lanes::<f64, S>::splat(simd, terms.shift);
        let elsewhere = Lanes::<f64, S>::splat(simd, terms.elsewhere);
        let zero = Lanes::<f64, S>::zero(simd);
        let tiny = zero.constant(f64::PRECISION.floor());
        let what = terms.what;
        let mut at = 0;
        while at < count {
            let read = |from: &[f64; STRIP]| {
                Lanes::<f64, S>::new(simd, f64::vectors::<S>(&from[at..at + lanes])[0])
            };
            let raw = read(&strip.y);
            let (x, y) = (read(&strip.x) + shift, raw.max(floor) + shift);
            let inverse = y.recip();
            let weight = read(&strip.weights);
            // The derivative of y is zero at the floor.
            let still = |value: Lanes<f64, S>| raw.where_less(floor, zero, value);
            // Exactly 0 for weight 0, even if the value is not finite.
            let weighted = |value: Lanes<f64, S>| weight.where_less(tiny, zero, value * weight);
            // ∇⁺ of an entry that is not listed, and its tangent.
            let (of_others, of_others_dot) = match terms.taken {
                Taken::Nothing => (zero, zero),
                Taken::One => (elsewhere, zero),
                Taken::Y => (elsewhere * y, elsewhere),
            };
            macro_rules! parts {
                ($along:expr) => {
                    divergence.parts(x, y, inverse, $along)
                };
            }
            match what {
                What::Parts => {
                    let parts = parts!(zero);
                    write::<S>(&mut strip.negative, at, weighted(parts.negative));
                    let positive = weighted(parts.positive) - of_others;
                    write::<S>(&mut strip.positive, at, positive);
                }
                What::PartsTangent => {
                    let along = still(read(&strip.t));
                    let parts = parts!(along);
                    write::<S>(&mut strip.t, at, weighted(parts.negative_dot));
                    let moved = weighted(parts.positive_dot) - of_others_dot * along;
                    write::<S>(&mut strip.u, at, moved);
                    write::<S>(&mut strip.negative, at, weighted(parts.negative));
                    let positive = weighted(parts.positive) - of_others;
                    write::<S>(&mut strip.positive, at, positive);
                }
                What::PartsOfFactor | What::PartsOfOther => {
                    let parts = parts!(still(read(&strip.t)));
                    let mut slope = weighted(parts.negative_dot);
                    if terms.positive {
                        let along = still(read(&strip.u));
                        let moved = parts!(along).positive_dot;
                        slope = slope + weighted(moved) - of_others_dot * along;
                    }
                    write::<S>(&mut strip.t, at, slope);
                    write::<S>(&mut strip.negative, at, weighted(parts.negative));
                    let positive = weighted(parts.positive) - of_others;
                    write::<S>(&mut strip.positive, at, positive);
                }
                _ => {
                    let parts = parts!(zero);
                    let slope = weighted(parts.positive) - of_others - weighted(parts.negative);
                    let slope = still(slope) * read(&strip.t);
                    write::<S>(&mut strip.t, at, slope);
                }
            }
            at += lanes;
        }
    }
}

/// The same for errors.
struct EntryErrors<'a, D>(EntryTerms<'a, D>);

impl<D: Entry> WithSimd for EntryErrors<'_, D> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let EntryTerms {
            terms,
            divergence,
            count,
            strip,
        } = self.0;
        let lanes = f64::lanes::<S>();
        let floor = Lanes::<f64, S>::splat(simd, terms.floor);
        let shift = Lanes::<f64, S>::splat(simd, terms.shift);
        let elsewhere = Lanes::<f64, S>::splat(simd, terms.elsewhere);
        let zero = Lanes::<f64, S>::zero(simd);
        let tiny = zero.constant(f64::PRECISION.floor());
        let mut at = 0;
        while at < count {
            let read = |from: &[f64; STRIP]| {
                Lanes::<f64, S>::new(simd, f64::vectors::<S>(&from[at..at + lanes])[0])
            };
            let raw = read(&strip.y).max(floor);
            let (x, y) = (read(&strip.x) + shift, raw + shift);
            let weight = read(&strip.weights);
            let [value] = divergence.values([x], [y], [y.recip()]);
            let value = weight.where_less(tiny, zero, value * weight);
            let value = match terms.taken {
                Taken::Nothing => value,
                Taken::One => value - elsewhere * raw,
                Taken::Y => value - elsewhere * raw * raw * zero.constant(0.5),
            };
            write::<S>(&mut strip.u, at, value);
            at += lanes;
        }
        // (Values beyond the last entry have weight 0, but a term would be subtracted for them.)
        strip.u[..count].iter().sum()
    }
}

#[inline(always)]
fn write<S: Simd>(to: &mut [f64; STRIP], at: usize, value: Lanes<f64, S>) {
    let lanes = f64::lanes::<S>();
    f64::vectors_mut::<S>(&mut to[at..at + lanes])[0] = value.value;
}

/// The products of L lines with the lines of some indices.
#[inline(always)]
pub(super) fn dots<S: Simd, const L: usize>(
    simd: S,
    own: [&Vec<f64>; L],
    other: &[f64],
    places: &[u32],
    out: [&mut [f64; STRIP]; L],
) {
    simd.vectorize(Dots {
        own,
        other,
        places,
        out,
    });
}

struct Dots<'a, const L: usize> {
    own: [&'a Vec<f64>; L],
    other: &'a [f64],
    places: &'a [u32],
    out: [&'a mut [f64; STRIP]; L],
}

impl<const L: usize> WithSimd for Dots<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            own,
            other,
            places,
            out,
        } = self;
        let width = own[0].len();
        macro_rules! with {
            ($vectors:literal) => {
                dots_of::<S, L, $vectors>(simd, own, other, places, out)
            };
        }
        match width / f64::lanes::<S>() {
            1 => with!(1),
            2 => with!(2),
            3 => with!(3),
            4 => with!(4),
            5 => with!(5),
            _ => {
                let own = own.map(|own| f64::vectors::<S>(own));
                for (slot, place) in places.iter().enumerate() {
                    let there = &other[*place as usize * width..][..width];
                    let mut sums = [simd.splat_f64s(0.0); L];
                    for (k, there) in f64::vectors::<S>(there).iter().enumerate() {
                        for l in 0..L {
                            sums[l] = simd.mul_add_f64s(own[l][k], *there, sums[l]);
                        }
                    }
                    for l in 0..L {
                        out[l][slot] = simd.reduce_sum_f64s(sums[l]);
                    }
                }
            }
        }
    }
}

/// The same for lines of K vectors, which stay in registers.
#[inline(always)]
fn dots_of<S: Simd, const L: usize, const K: usize>(
    simd: S,
    own: [&Vec<f64>; L],
    other: &[f64],
    places: &[u32],
    out: [&mut [f64; STRIP]; L],
) {
    let width = own[0].len();
    let mut lines = [[simd.splat_f64s(0.0); K]; L];
    for l in 0..L {
        lines[l].copy_from_slice(&f64::vectors::<S>(own[l])[..K]);
    }
    for (slot, place) in places.iter().enumerate().take(STRIP) {
        let there = &other[*place as usize * width..][..width];
        let there = &f64::vectors::<S>(there)[..K];
        for l in 0..L {
            let mut sum = simd.mul_f64s(lines[l][0], there[0]);
            for k in 1..K {
                sum = simd.mul_add_f64s(lines[l][k], there[k], sum);
            }
            out[l][slot] = simd.reduce_sum_f64s(sum);
        }
    }
}

/// Adds the lines of some indices, each times its coefficient, to L sums. (It is compiled once for
/// all divergences, too.)
#[inline(always)]
pub(super) fn add<S: Simd, const L: usize>(
    simd: S,
    to: [&mut [f64]; L],
    by: [&[f64]; L],
    of: &[f64],
    places: &[u32],
) {
    simd.vectorize(Add { to, by, of, places });
}

struct Add<'a, const L: usize> {
    to: [&'a mut [f64]; L],
    by: [&'a [f64]; L],
    of: &'a [f64],
    places: &'a [u32],
}

impl<const L: usize> WithSimd for Add<'_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { to, by, of, places } = self;
        let mut to = to.map(|to| f64::vectors_mut::<S>(to));
        let vectors = to[0].len();
        let most = if L == 1 { TOGETHER } else { TOGETHER_OF_BOTH };
        // Parts of about equal length: 6 is 3 + 3, not 5 + 1.
        let blocks = vectors.div_ceil(most);
        for block in 0..blocks {
            let (from, end) = (block * vectors / blocks, (block + 1) * vectors / blocks);
            macro_rules! with {
                ($vectors:literal) => {
                    add_some::<S, L, $vectors>(simd, &mut to, from, by, of, places)
                };
            }
            match end - from {
                1 => with!(1),
                2 => with!(2),
                3 => with!(3),
                4 => with!(4),
                5 => with!(5),
                _ => with!(6),
            }
        }
    }
}

#[inline(always)]
fn add_some<S: Simd, const L: usize, const K: usize>(
    simd: S,
    to: &mut [&mut [S::f64s]; L],
    from: usize,
    by: [&[f64]; L],
    of: &[f64],
    places: &[u32],
) {
    let width = to[0].len() * f64::lanes::<S>();
    let mut sums = [[simd.splat_f64s(0.0); K]; L];
    for l in 0..L {
        sums[l].copy_from_slice(&to[l][from..from + K]);
    }
    let by = by.map(|by| &by[..places.len()]);
    for (slot, place) in places.iter().enumerate() {
        let there = f64::vectors::<S>(&of[*place as usize * width..][..width]);
        let there = &there[from..from + K];
        for l in 0..L {
            let by = simd.splat_f64s(by[l][slot]);
            for k in 0..K {
                sums[l][k] = simd.mul_add_f64s(by, there[k], sums[l][k]);
            }
        }
    }
    for l in 0..L {
        to[l][from..from + K].copy_from_slice(&sums[l]);
    }
}

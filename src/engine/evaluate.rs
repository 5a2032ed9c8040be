//! E, D and dE/dλ of a block: a pass over its columns without an update.

use pulp::Simd;

use super::entry::{Entry, Parts};
use super::kernel::{Columns, RowState, SIDE, TILE, Tray, reconstruct};
use super::lanes::{Lanes, Real};

/// Adds the columns' divergence, and its derivative along ẇ, to `error`.
#[inline(always)]
pub(super) fn evaluate<T, S, D, const TANGENT: bool>(
    simd: S,
    divergence: D,
    columns: &Columns<'_, T, S>,
    point: &RowState<'_, T::Vector<S>>,
    memory: &mut [T::Vector<S>],
    error: &mut [Lanes<T, S>; 2],
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
        let count = tile.x.len();
        let mut j = 0;
        while j + SIDE <= count {
            evaluate_some::<T, S, D, TANGENT, SIDE>(simd, divergence, &tile, &tray, j, error);
            j += SIDE;
        }
        if j + 2 <= count {
            evaluate_some::<T, S, D, TANGENT, 2>(simd, divergence, &tile, &tray, j, error);
            j += 2;
        }
        if j < count {
            evaluate_some::<T, S, D, TANGENT, 1>(simd, divergence, &tile, &tray, j, error);
        }
        from = to;
    }
}

#[inline(always)]
fn evaluate_some<T, S, D, const TANGENT: bool, const J: usize>(
    simd: S,
    divergence: D,
    tile: &Columns<'_, T, S>,
    tray: &Tray<'_, T::Vector<S>>,
    from: usize,
    error: &mut [Lanes<T, S>; 2],
) where
    T: Real,
    S: Simd,
    D: Entry,
{
    let zero = Lanes::<T, S>::zero(simd);
    let (mut x, mut y, mut inverse) = ([zero; J], [zero; J], [zero; J]);
    for j in 0..J {
        x[j] = Lanes::new(simd, tile.x[from + j]);
        y[j] = Lanes::new(simd, tray.y[from + j]);
        inverse[j] = y[j].inverse();
    }
    let values = divergence.values(x, y, inverse);
    for j in 0..J {
        let y_dot = Lanes::new(simd, tray.y_dot[from + j]);
        let parts: Parts<T, S> = divergence.parts(x[j], y[j], inverse[j], y_dot);
        error[0] = error[0] + values[j];
        if TANGENT {
            let slope = parts.positive - parts.negative;
            error[1] = slope.mul_add(y_dot, error[1]);
        }
    }
}

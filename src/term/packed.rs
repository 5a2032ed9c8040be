//! X packed for the passes of one side: blocks of rows one after another, each column by column.

use ndarray::ArrayView2;
use rayon::prelude::*;

use super::cotangent::SpareMemory;
use super::kernel::WIDE;
use super::tile::{Blocks, Numbers, Weighting};
use super::walk::RowSource;
use crate::engine::{Aligned, Real, lanes_here};
use crate::factors::Side;
use crate::problem::{DenseNumbers, Weights};

/// X and its weights, for the passes of one side.
#[derive(Debug)]
pub(super) struct OneSide<T> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    x: Packed<T>,
    weights: Option<Aligned<T>>,
    length: usize,
    pub(super) weighting: Weighting,
    spare: SpareMemory<T>,
}

/// The numbers of X. Half of the bits take half the memory, and are read in half the time.
#[derive(Debug)]
enum Packed<T> {
    Whole(Aligned<T>),
    /// Divided by their unit.
    Half(Aligned<f32>, f64),
}

/// Rows in a block on this machine.
pub(super) fn rows_per_block<T: Real>() -> usize {
    WIDE * lanes_here::<T>()
}

/// A matrix with a mask, for the passes of one side. If it has a unit, its numbers take 32 bits.
pub(super) fn masked<T: Real>(
    x: DenseNumbers<'_>,
    mask: Option<&Weights>,
    side: Side,
    unit: Option<f64>,
) -> OneSide<T> {
    let (signs, array) = match mask {
        None => (None, None),
        Some(Weights::Real(weights)) => (None, Some(weights)),
        Some(Weights::Listed { .. }) => unreachable!("weights of a sparse X"),
        Some(binary) => (Some(binary), None),
    };
    // A negative number marks an entry that is not fitted.
    let stored = |i: usize, j: usize| match signs {
        Some(signs) if signs[(i, j)] == 0.0 => -1.0,
        _ => x.at(i, j),
    };
    let (n, m) = x.dim();
    let mut packed = match side {
        Side::W => OneSide::new([n, m], &stored, array.map(|array| array.view()), unit),
        Side::H => {
            let weights = array.map(|array| array.t());
            OneSide::new([m, n], &|j, i| stored(i, j), weights, unit)
        }
    };
    if signs.is_some() {
        packed.weighting = Weighting::Sign;
    }
    packed
}

/// A number whose multiples are all entries, with factors that 32 bits hold exactly. Counts have
/// the unit 1, and parts of counts often have their smallest number. `None` if there is none, or if
/// 32 bits are all that the type has.
pub(super) fn unit<T: Real>(x: DenseNumbers<'_>) -> Option<f64> {
    if size_of::<T>() <= size_of::<f32>() {
        return None;
    }
    let (n, _) = x.dim();
    let rows = || (0..n).into_par_iter().map(|row| x.row(row));
    let of_rows = rows().map(|row| {
        let positive = row.iter().copied().filter(|x| *x > 0.0);
        positive.fold(f64::INFINITY, f64::min)
    });
    let smallest = of_rows.reduce(|| f64::INFINITY, f64::min);
    [1.0, smallest].into_iter().find(|unit| {
        let exact = |x: &f64| f64::from((x / unit) as f32) * unit == *x;
        rows().all(|row| row.iter().all(exact))
    })
}

impl<T: Real> RowSource<T> for OneSide<T> {
    fn shape(&self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    fn most_rows(&self) -> Option<usize> {
        None
    }

    fn with_rows(
        &self,
        first: usize,
        _count: usize,
        weighting: Weighting,
        run: &mut dyn FnMut(Blocks<'_, T>, usize),
    ) {
        run(self.blocks(weighting), first / rows_per_block::<T>());
    }

    fn spare(&self) -> Option<&SpareMemory<T>> {
        Some(&self.spare)
    }
}

impl<T: Real> OneSide<T> {
    /// X from the block that begins with this row.
    pub(super) fn beginning_with(&self, row: usize) -> &[T] {
        match &self.x {
            Packed::Whole(x) => &x.get(self.length)[row * self.columns..],
            Packed::Half(..) => unreachable!("products read X in its type"),
        }
    }

    /// Packs blocks of rows one after another, each column by column.
    pub(super) fn new(
        shape: [usize; 2],
        x: &(impl Fn(usize, usize) -> f64 + Sync),
        weights: Option<ArrayView2<'_, f64>>,
        unit: Option<f64>,
    ) -> Self {
        let lanes = rows_per_block::<T>();
        let [rows, columns] = shape;
        Self {
            rows,
            columns,
            x: match unit {
                Some(unit) => {
                    // (A mark stays negative, however large the unit is.)
                    let divided = |i: usize, j: usize| match x(i, j) {
                        mark if mark < 0.0 => -1.0,
                        x => x / unit,
                    };
                    Packed::Half(packed(shape, lanes, &divided), unit)
                }
                None => Packed::Whole(packed(shape, lanes, x)),
            },
            weighting: match weights {
                None => Weighting::None,
                Some(_) => Weighting::Array,
            },
            weights: weights.map(|weights| packed(shape, lanes, &|i, j| weights[[i, j]])),
            length: rows.next_multiple_of(lanes) * columns,
            spare: SpareMemory::default(),
        }
    }

    pub(super) fn blocks(&self, weighting: Weighting) -> Blocks<'_, T> {
        let weights = self.weights.as_ref();
        Blocks {
            x: match &self.x {
                Packed::Whole(x) => Numbers::Whole(x.get(self.length)),
                Packed::Half(x, unit) => Numbers::Half(x.get(self.length), T::from_f64(*unit)),
            },
            weights: weights.map_or(&[], |weights| weights.get(self.length)),
            weighting,
            columns: self.columns,
        }
    }
}

/// Columns that are packed together.
const STRIP: usize = 16;

/// Blocks of rows one after another, each column by column.
fn packed<V: Real>(
    [rows, columns]: [usize; 2],
    lanes: usize,
    entry: &(impl Fn(usize, usize) -> f64 + Sync),
) -> Aligned<V> {
    let length = rows.next_multiple_of(lanes) * columns;
    let mut values = Aligned::new(length);
    let blocks = values.get_mut(length).par_chunks_mut(columns * lanes);
    blocks.enumerate().for_each(|(block, packed)| {
        // A few columns at a time, so that reading and writing stay in the cache.
        for first in (0..columns).step_by(STRIP) {
            for lane in 0..lanes.min(rows - block * lanes) {
                for j in first..columns.min(first + STRIP) {
                    packed[j * lanes + lane] = V::from_f64(entry(block * lanes + lane, j));
                }
            }
        }
    });
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, array};

    #[test]
    fn a_unit_is_found_only_if_it_is_exact() {
        let counts = array![[0.0, 3.0], [70_000.0, 1.0]];
        assert_eq!(unit::<f64>(DenseNumbers::Whole(&counts)), Some(1.0));
        assert_eq!(unit::<f32>(DenseNumbers::Whole(&counts)), None);
        let of_seen = 0.9f64.recip();
        assert_eq!(
            unit::<f64>(DenseNumbers::Whole(&counts.mapv(|x| x * of_seen))),
            Some(of_seen)
        );
        assert_eq!(unit::<f64>(DenseNumbers::Whole(&array![[0.1, 0.37]])), None);
        // 2²⁴ + 1 needs 25 bits.
        assert_eq!(
            unit::<f64>(DenseNumbers::Whole(&array![[16_777_217.0, 1.0]])),
            None
        );
        assert_eq!(
            unit::<f64>(DenseNumbers::Whole(&array![[1e300, 2e300, 0.0]])),
            Some(1e300)
        );
    }

    #[test]
    fn numbers_in_half_the_memory_are_the_same_numbers() {
        let x = Array2::from_shape_fn((11, 7), |(i, j)| ((i * 5 + j * 3) % 9) as f64 * 1e300);
        let mask = Weights::from(Array2::from_shape_fn((11, 7), |(i, j)| {
            f64::from((i + j) % 4 != 0)
        }));
        for side in [Side::W, Side::H] {
            let numbers = |unit| {
                let packed = masked::<f64>(DenseNumbers::Whole(&x), Some(&mask), side, unit);
                let mut read = vec![0.0; packed.length];
                packed.blocks(Weighting::Sign).x.copy(0, &mut read);
                read.iter().map(|x| x.max(-1.0)).collect::<Vec<f64>>()
            };
            assert_eq!(numbers(Some(1e300)), numbers(None));
        }
    }
}

//! The problem: a checked X with its weights. Host data become tensors only here.

mod checks;
mod counts;
mod drawn_zeros;
mod observed;
mod scaling;
mod second;
mod sparse;
mod speckle;
mod stored;
mod thinning;
mod to_matrix;
mod weights;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use burn::tensor::Tensor;
use ndarray::{Array2, ArrayView2};
use rayon::prelude::*;

pub use observed::Observed;
pub use scaling::{Scale, Scaling};
pub(crate) use stored::DenseNumbers;
pub use to_matrix::ToMatrix;
pub use weights::Weights;

use self::checks::{check_nonnegative, check_stored, check_weights, first_entry, needed};
use self::stored::Stored;
use crate::device::Device;
use crate::divergence::Divergence;
use crate::error::{Error, Result};
use crate::numerics::Precision;
use crate::processes::{Processes, Share};
use crate::sparse::{Matrix, SparseMatrix, Zeros};

/// Stored value of an entry without weight. It is finite, because 0 · ∞ and 0 · NaN would not be 0.
const UNOBSERVED: f64 = 1.0;

/// With at most this many entries of X, one thread is faster than several.
const SMALL: usize = 1 << 14;
/// Entries of X in a block of rows: 512 kB.
const BLOCK_ENTRIES: usize = 1 << 16;

/// A checked nonnegative matrix, with optional weights, on a device.
///
/// All host data go through this type. So other code may rely on these conditions: at least one row
/// and column, every observed entry finite and nonnegative, not all zero, weights finite and
/// nonnegative, no row or column without an observed entry. Entries below the precision's
/// [floor](Precision::floor) are stored as 0.
///
/// A clone shares the data.
#[derive(Debug, Clone)]
pub struct Problem {
    x: Stored,
    mask: Option<Arc<Weights>>,
    held_out: Option<Arc<Weights>>,
    /// Data of the held-out error, if they differ from X.
    second: Option<Stored>,
    precision: Precision,
    device: Device,
    /// The rows that this process has.
    share: Share,
    tensors: Arc<Tensors>,
}

/// The data on a device. They are made on first use, because fused loops do not need them.
#[derive(Debug, Default)]
struct Tensors {
    /// For updates of W.
    rows: OnceLock<Observed>,
    /// The transposed data, for updates of H. They are laid out once, not per iteration.
    columns: OnceLock<Observed>,
}

impl Problem {
    /// A problem in which every entry has weight 1.
    ///
    /// # Errors
    /// [`Error::EmptyMatrix`], [`Error::NotFiniteEntry`],
    /// [`Error::NegativeEntry`] or [`Error::AllZero`], naming the first
    /// offending entry.
    ///
    /// # Shapes
    /// `x` is n×m.
    pub fn new(x: &(impl ToMatrix + ?Sized), precision: Precision) -> Result<Self> {
        Self::owning(x.to_matrix()?, None, precision)
    }

    /// The same from an owned matrix, which is not copied, with or without weights.
    ///
    /// # Errors
    /// Those of [`new`](Self::new) and [`masked`](Self::masked).
    pub fn owning(x: Array2<f64>, mask: Option<Array2<f64>>, precision: Precision) -> Result<Self> {
        let mask = weights("the mask", mask, precision)?;
        let share = Share::whole(x.nrows());
        Self::checked(x.into(), mask, None, precision, Kind::Fit(share))
    }

    /// A problem of one of several processes, from its own rows. All processes must call this
    /// together. The checks cover the rows of all processes, and errors count rows over all
    /// processes.
    ///
    /// # Errors
    /// Those of [`masked`](Self::masked) and [`sparse`](Self::sparse), and [`Error::OtherProcess`]
    /// if another process refuses its rows.
    ///
    /// # Shapes
    /// `x` and `mask` have the rows of the share; `m` columns.
    pub fn of_share(
        x: Matrix,
        zeros: Zeros,
        mask: Option<Weights>,
        precision: Precision,
        share: Share,
    ) -> Result<Self> {
        let expected = [share.rows().len(), x.dim().1];
        share.agree(Error::require_shape("X", x.dim(), expected))?;
        share.agree(match &mask {
            Some(Weights::Real(mask)) => check_nonnegative("the mask", mask, precision),
            _ => Ok(()),
        })?;
        // If one process has weights, all have.
        let is_masked = share.processes().any(mask.is_some());
        let mask = mask.or_else(|| is_masked.then(|| Weights::ones(&x)));
        match x {
            Matrix::Sparse(x) => Self::sparse_of_share(x, zeros, mask, precision, share),
            dense => {
                let mask = mask.map(|mask| match mask {
                    listed @ Weights::Listed { .. } => listed.to_array().into(),
                    other => other,
                });
                Self::checked(dense, mask, None, precision, Kind::Fit(share))
            }
        }
    }

    /// The same problem with its tensors on another device, for example your own Burn device.
    #[must_use]
    pub fn on(mut self, device: impl Into<Device>) -> Self {
        self.device = device.into();
        self.tensors = Arc::default();
        self
    }

    /// A problem with a weight in [0, ∞) for each entry. A missing entry has weight 0, and its
    /// value may be anything, for example NaN.
    ///
    /// # Errors
    /// Those of [`new`](Self::new), for the observed entries; [`Error::Shape`] for
    /// weights of another shape; [`Error::UnobservedRow`] and
    /// [`Error::UnobservedColumn`].
    ///
    /// # Shapes
    /// `x` and `mask` are n×m.
    pub fn masked(
        x: &(impl ToMatrix + ?Sized),
        mask: &(impl ToMatrix + ?Sized),
        precision: Precision,
    ) -> Result<Self> {
        Self::owning(x.to_matrix()?, Some(mask.to_matrix()?), precision)
    }

    /// The same problem with further weights, for a [held-out](crate::HeldOut) outer error. They
    /// are independent of the mask. Give an entry mask 0 if the updates must not see it.
    ///
    /// # Errors
    /// Those of [`masked`](Self::masked), with entries of positive held-out weight counted as
    /// observed.
    ///
    /// # Shapes
    /// All n×m.
    pub fn held_out(
        x: &(impl ToMatrix + ?Sized),
        mask: &(impl ToMatrix + ?Sized),
        held_out: &(impl ToMatrix + ?Sized),
        precision: Precision,
    ) -> Result<Self> {
        let mask = weights("the mask", Some(mask.to_matrix()?), precision)?;
        let held_out = Some(held_out.to_matrix()?);
        let held_out = weights("the held-out weights", held_out, precision)?;
        let x = x.to_matrix()?;
        let kind = Kind::Fit(Share::whole(x.nrows()));
        Self::checked(x.into(), mask, held_out, precision, kind)
    }

    /// A problem of rows to encode. They may be all zero, and a column may be missing in all of
    /// them.
    pub(crate) fn to_encode(
        x: Array2<f64>,
        mask: Option<Array2<f64>>,
        precision: Precision,
    ) -> Result<Self> {
        let mask = weights("the mask", mask, precision)?;
        Self::checked(x.into(), mask, None, precision, Kind::Encode)
    }

    fn checked(
        x: Matrix,
        mask: Option<Weights>,
        held_out: Option<Weights>,
        precision: Precision,
        kind: Kind,
    ) -> Result<Self> {
        let (rows, columns) = x.dim();
        let to_encode = matches!(kind, Kind::Encode);
        let share = match kind {
            Kind::Fit(share) => share,
            Kind::Encode => Share::whole(rows),
        };
        let processes = share.processes();
        if rows == 0 || columns == 0 {
            return Err(Error::EmptyMatrix {
                what: "X",
                rows,
                columns,
            });
        }
        match check_weights(mask.as_ref(), held_out.as_ref(), [rows, columns], &share) {
            // (Rows are checked first.)
            Err(Error::UnobservedColumn { .. }) if to_encode => {}
            checked => checked?,
        }
        let floor = precision.floor();
        let needed = needed(mask.as_ref(), held_out.as_ref());
        let stored = |index, value: f64| {
            if !needed(index) {
                UNOBSERVED
            } else if value >= 0.0 && value < floor {
                0.0
            } else {
                value
            }
        };
        let x = match x {
            Matrix::Dense(x) => Matrix::Dense(each_entry(in_row_order(x), stored)),
            Matrix::Sparse(x) => Matrix::Sparse(x.map_entries(stored)),
        };
        share.agree(check_stored("X", &x, precision))?;
        let mut largest = match &x {
            Matrix::Dense(x) => {
                let rows = x
                    .as_slice()
                    .expect("it is in row order")
                    .par_chunks(columns);
                let of_rows = rows.enumerate().map(|(row, values)| {
                    let seen = values.iter().enumerate();
                    let seen = seen.filter(|(column, _)| needed((row, *column)));
                    seen.fold(0.0, |largest: f64, (_, value)| largest.max(*value))
                });
                of_rows.reduce(|| 0.0, f64::max)
            }
            Matrix::Sparse(x) => {
                let seen = x
                    .triplets()
                    .filter(|(row, column, _)| needed((*row, *column)));
                seen.fold(0.0, |largest: f64, (.., value)| largest.max(value))
            }
        };
        drop(needed);
        processes.largest(std::slice::from_mut(&mut largest));
        if largest == 0.0 && !to_encode {
            return Err(Error::AllZero {
                rows: share.all(),
                columns,
                floor,
            });
        }
        let (least, most) = precision.range();
        if largest > 0.0 && !(least..=most).contains(&largest) {
            return Err(Error::Scale {
                largest,
                precision: precision.name(),
                least,
                most,
            });
        }
        Ok(Self {
            x: x.into(),
            mask: mask.map(Arc::new),
            held_out: held_out.map(Arc::new),
            second: None,
            precision,
            device: Device::default(),
            share,
            tensors: Arc::default(),
        })
    }

    /// Refuses observed entries outside a divergence's domain.
    ///
    /// # Errors
    /// [`Error::OutsideDomain`] with the first such entry.
    pub fn check_domain(&self, divergence: &dyn Divergence) -> Result<()> {
        self.share.agree(self.check_own_domain(divergence))
    }

    fn check_own_domain(&self, divergence: &dyn Divergence) -> Result<()> {
        let needed = needed(self.mask.as_deref(), self.held_out.as_deref());
        for matrix in [Some(&self.x), self.second.as_ref()].into_iter().flatten() {
            let outside = |index, x: f64| needed(index) && !divergence.accepts(x);
            let stored = first_entry(matrix, outside);
            // (Entries that are not stored matter only if a zero is outside the domain.)
            let unstored = || match matrix.as_sparse() {
                Some(matrix) if !divergence.accepts(0.0) => self.first_zero(matrix, &needed),
                _ => None,
            };
            if let Some((row, column)) = stored.or_else(unstored) {
                return Err(Error::OutsideDomain {
                    divergence: divergence.name(),
                    condition: divergence.condition(),
                    row,
                    column,
                    value: matrix.entry(row, column),
                });
            }
        }
        Ok(())
    }

    /// (n, m), where n is the number of rows of this process.
    pub fn shape(&self) -> [usize; 2] {
        self.x.dim().into()
    }

    /// (n, m), where n is the number of rows of all processes.
    pub fn whole_shape(&self) -> [usize; 2] {
        [self.share.all(), self.shape()[1]]
    }

    /// The rows of this process, among those of all.
    pub fn share(&self) -> &Share {
        &self.share
    }

    /// The processes that share the run.
    pub fn processes(&self) -> &Processes {
        self.share.processes()
    }

    /// The stored data.
    pub fn x(&self) -> &Matrix {
        self.x.matrix()
    }

    /// The numbers of X, if it is dense, without a matrix of them.
    pub(crate) fn dense_numbers(&self) -> Option<DenseNumbers<'_>> {
        self.x.as_dense()
    }

    /// X, if it is sparse.
    pub(crate) fn as_sparse(&self) -> Option<&SparseMatrix> {
        self.x.as_sparse()
    }

    /// The number of stored entries of X.
    pub(crate) fn stored(&self) -> usize {
        self.x.stored()
    }

    /// Returns true if X is sparse.
    pub fn is_sparse(&self) -> bool {
        self.as_sparse().is_some()
    }

    /// The weights, if any.
    pub fn mask(&self) -> Option<&Weights> {
        self.mask.as_deref()
    }

    /// The held-out weights, if any.
    pub fn held_out_weights(&self) -> Option<&Weights> {
        self.held_out.as_deref()
    }

    /// Data of the held-out error, if they differ from X: the second part of
    /// [thinned](Self::thinned) counts, or a matrix [of its own](Self::with_second).
    pub fn second(&self) -> Option<&Matrix> {
        self.second.as_ref().map(Stored::matrix)
    }

    /// Returns true if the held-out error has data of its own.
    pub(crate) fn has_second(&self) -> bool {
        self.second.is_some()
    }

    /// The numbers of these data, if they are dense, without a matrix of them.
    pub(crate) fn second_numbers(&self) -> Option<DenseNumbers<'_>> {
        self.second.as_ref().and_then(Stored::as_dense)
    }

    /// The device of its tensors.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The same data, shared, on the same device with other weights.
    pub(crate) fn with_weights(
        &self,
        mask: Option<Weights>,
        held_out: Option<Weights>,
    ) -> Result<Self> {
        check_weights(mask.as_ref(), held_out.as_ref(), self.shape(), &self.share)?;
        Ok(Self {
            mask: mask.map(Arc::new),
            held_out: held_out.map(Arc::new),
            second: None,
            tensors: Arc::default(),
            ..self.clone()
        })
    }

    /// The same data with tensors of another precision.
    pub(crate) fn in_precision(&self, precision: Precision) -> Self {
        Self {
            precision,
            tensors: Arc::default(),
            ..self.clone()
        }
    }

    /// A problem of some rows and columns, for this process alone.
    pub(crate) fn selected(&self, rows: &[usize], columns: &[usize]) -> Result<Self> {
        let part = |matrix: &Stored| match matrix.as_sparse() {
            Some(matrix) => Matrix::Sparse(matrix.selected(rows, columns)),
            None => {
                let entry = |(i, j)| matrix.entry(rows[i], columns[j]);
                Array2::from_shape_fn((rows.len(), columns.len()), entry).into()
            }
        };
        let select = |weights: &Weights| weights.selected(rows, columns);
        let mask = self.mask().map(select);
        let held_out = self.held_out_weights().map(select);
        let x = part(&self.x);
        let kind = Kind::Fit(Share::whole(rows.len()));
        let mut problem = Self::checked(x, mask, held_out, self.precision, kind)?;
        problem.second = self.second.as_ref().map(part).map(Stored::from);
        Ok(problem.on(self.device.clone()))
    }

    /// The precision of its tensors.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The weighted mean of the observed entries.
    pub fn mean(&self) -> f64 {
        let [n, m] = self.shape();
        let sum: f64 = match (&self.mask, self.as_sparse(), self.dense_numbers()) {
            (Some(mask), Some(x), _) => x.triplets().map(|(i, j, x)| x * mask[(i, j)]).sum(),
            (None, Some(x), _) => x.values().iter().sum(),
            (Some(mask), _, Some(x)) => {
                let weighted = x.values().zip(mask.iter()).map(|(x, weight)| x * weight);
                weighted.sum()
            }
            (None, _, Some(DenseNumbers::Whole(x))) => x.sum(),
            (None, _, Some(x)) => x.values().sum(),
            (_, None, None) => unreachable!("X is sparse or dense"),
        };
        let weight = self
            .mask
            .as_ref()
            .map_or(n as f64 * m as f64, |mask| mask.sum());
        let mut totals = [sum, weight];
        self.processes().sum(&mut totals);
        totals[0] / totals[1]
    }

    /// The data as updates of W see it: n×m.
    pub fn rows(&self) -> &Observed {
        self.tensors
            .rows
            .get_or_init(|| self.observed(|matrix| self.state_of_view(matrix)))
    }

    /// The data as updates of H see it: m×n.
    pub fn columns(&self) -> &Observed {
        self.tensors
            .columns
            .get_or_init(|| self.observed(|matrix| self.state_of_view(matrix.reversed_axes())))
    }

    /// All data as tensors. A sparse matrix is made dense.
    fn observed(&self, tensor: impl Fn(ArrayView2<'_, f64>) -> Tensor<2>) -> Observed {
        let of_weights = |weights: &Weights| match weights {
            Weights::Real(weights) => tensor(weights.view()),
            other => tensor(other.to_array().view()),
        };
        let of_matrix = |matrix: &Stored| match (matrix.as_sparse(), matrix.as_dense()) {
            (Some(matrix), _) => tensor(matrix.to_dense().view()),
            (None, numbers) => tensor(numbers.expect("X is dense").to_array().view()),
        };
        Observed {
            x: of_matrix(&self.x),
            mask: self.mask().map(of_weights),
            held_out: self.held_out_weights().map(of_weights),
            second: self.second.as_ref().map(of_matrix),
        }
    }

    /// Returns true if the problem is too small for several threads.
    pub(crate) fn is_small(&self) -> bool {
        self.x.stored() <= SMALL
    }

    /// The rows in blocks that do not grow with X.
    pub(crate) fn blocks(&self) -> Vec<Range<usize>> {
        let [n, m] = self.shape();
        let size = (BLOCK_ENTRIES / m).max(1);
        let starts = (0..n).step_by(size);
        starts.map(|start| start..n.min(start + size)).collect()
    }

    /// Some rows as tensors.
    pub(crate) fn part(&self, rows: Range<usize>) -> Observed {
        if !self.is_sparse() {
            let of_matrix = |matrix: &Stored| {
                let numbers = matrix.as_dense().expect("X is dense");
                self.state_of_view(numbers.rows(rows.clone()).view())
            };
            // (Not of all rows: there may be many parts.)
            let of_weights = |weights: &Weights| self.state(&weights.rows(rows.clone()));
            return Observed {
                x: of_matrix(&self.x),
                mask: self.mask().map(of_weights),
                held_out: self.held_out_weights().map(of_weights),
                second: self.second.as_ref().map(of_matrix),
            };
        }
        // Only these rows of a sparse matrix are made dense.
        let (rows, columns): (Vec<_>, Vec<_>) =
            (rows.clone().collect(), (0..self.shape()[1]).collect());
        let select = |matrix: &Stored| {
            let matrix = matrix.as_sparse().expect("both matrices are sparse");
            Stored::from(Matrix::Sparse(matrix.selected(&rows, &columns)))
        };
        let part = Self {
            x: select(&self.x),
            mask: self.mask().map(|of| Arc::new(of.selected(&rows, &columns))),
            held_out: self
                .held_out_weights()
                .map(|of| Arc::new(of.selected(&rows, &columns))),
            second: self.second.as_ref().map(select),
            ..self.clone()
        };
        part.observed(|matrix| self.state_of_view(matrix))
    }

    /// A matrix as a tensor on the device of X, row by row, unchecked.
    pub(crate) fn state_of_view(&self, matrix: ArrayView2<'_, f64>) -> Tensor<2> {
        let shape = [matrix.nrows(), matrix.ncols()];
        let values = match matrix.to_slice() {
            Some(values) => values.to_vec(),
            None => matrix.iter().copied().collect(),
        };
        self.device.tensor(values, shape, self.precision)
    }

    /// A matrix as a tensor on the device of X, unchecked. It is for states that the solver has
    /// checked.
    pub(crate) fn state(&self, matrix: &Array2<f64>) -> Tensor<2> {
        self.state_of_view(matrix.view())
    }

    /// A checked nonnegative matrix (a factor, a λ) as a tensor on the device of X.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::NegativeEntry`] or [`Error::NotFiniteEntry`]; `what` is the name
    /// in the message.
    pub fn tensor(
        &self,
        what: &'static str,
        matrix: &(impl ToMatrix + ?Sized),
        shape: [usize; 2],
    ) -> Result<Tensor<2>> {
        Ok(self.state(&self.matrix(what, matrix, shape)?))
    }

    /// The same on the host, in row order, rounded to the problem's precision.
    pub(crate) fn matrix(
        &self,
        what: &'static str,
        matrix: &(impl ToMatrix + ?Sized),
        shape: [usize; 2],
    ) -> Result<Array2<f64>> {
        let mut matrix = matrix.to_matrix()?;
        Error::require_shape(what, matrix.dim(), shape)?;
        check_nonnegative(what, &matrix, self.precision)?;
        self.round(&mut matrix);
        Ok(in_row_order(matrix))
    }

    /// Rounds to the problem's precision.
    pub(crate) fn round(&self, matrix: &mut Array2<f64>) {
        if self.precision == Precision::F32 {
            matrix.mapv_inplace(|value| f64::from(value as f32));
        }
    }
}

/// The purpose of a problem.
enum Kind {
    /// A fit of the rows of a process.
    Fit(Share),
    /// Encoding.
    Encode,
}

/// Checked weights in their smallest form.
fn weights(
    what: &'static str,
    weights: Option<Array2<f64>>,
    precision: Precision,
) -> Result<Option<Weights>> {
    let Some(weights) = weights else {
        return Ok(None);
    };
    check_nonnegative(what, &weights, precision)?;
    Ok(Some(Weights::from(weights)))
}

/// Replaces each entry of a matrix in row order.
fn each_entry(
    mut matrix: Array2<f64>,
    value: impl Fn((usize, usize), f64) -> f64 + Sync,
) -> Array2<f64> {
    let columns = matrix.ncols();
    let all = matrix.as_slice_mut().expect("it is in row order");
    let rows = all.par_chunks_mut(columns).enumerate();
    rows.for_each(|(row, entries)| {
        for (column, entry) in entries.iter_mut().enumerate() {
            *entry = value((row, column), *entry);
        }
    });
    matrix
}

/// The same matrix, laid out row by row.
fn in_row_order(matrix: Array2<f64>) -> Array2<f64> {
    if matrix.is_standard_layout() {
        matrix
    } else {
        matrix.as_standard_layout().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divergence::Beta;
    use ndarray::array;

    fn problem(x: Array2<f64>) -> Result<Problem> {
        Problem::new(&x, Precision::F64)
    }

    #[test]
    fn the_first_offending_entry_is_named() {
        let negative = problem(array![[1.0, 2.0], [3.0, -4.0]]);
        assert!(matches!(
            negative,
            Err(Error::NegativeEntry { row: 1, column: 1, value, .. }) if value == -4.0
        ));
        for bad in [f64::NAN, f64::INFINITY] {
            let found = problem(array![[1.0, bad], [bad, 1.0]]);
            assert!(matches!(
                found,
                Err(Error::NotFiniteEntry {
                    row: 0,
                    column: 1,
                    ..
                })
            ));
        }
        let empty = problem(Array2::zeros((0, 3)));
        assert!(matches!(empty, Err(Error::EmptyMatrix { columns: 3, .. })));
        let zeros = problem(array![[0.0, 1e-323]]);
        assert!(matches!(zeros, Err(Error::AllZero { rows: 1, .. })));
    }

    #[test]
    fn itakura_saito_names_the_first_zero_unless_it_is_masked() {
        let x = array![[1.0, 2.0], [1e-323, 3.0]];
        let found = problem(x.clone()).unwrap().check_domain(&Beta(0.0));
        assert!(matches!(
            found,
            Err(Error::OutsideDomain {
                row: 1,
                column: 0,
                ..
            })
        ));
        let mask = array![[1.0, 1.0], [0.0, 1.0]];
        let masked = Problem::masked(&x, &mask, Precision::F64).unwrap();
        assert!(masked.check_domain(&Beta(0.0)).is_ok());
    }

    #[test]
    fn a_held_out_entry_keeps_its_value_and_must_have_one() {
        let mask = array![[1.0, 0.0], [1.0, 1.0]];
        let held_out = array![[0.0, 1.0], [0.0, 0.0]];
        let x = |value| array![[1.0, value], [2.0, 3.0]];
        let zero = Problem::held_out(&x(0.0), &mask, &held_out, Precision::F64).unwrap();
        assert_eq!(zero.x().entry(0, 1), 0.0);
        let missing = Problem::held_out(&x(f64::NAN), &mask, &held_out, Precision::F64);
        assert!(matches!(
            missing,
            Err(Error::NotFiniteEntry {
                row: 0,
                column: 1,
                ..
            })
        ));
    }

    #[test]
    fn a_missing_value_needs_a_mask_that_says_so() {
        let x = array![[1.0, f64::NAN], [2.0, 3.0]];
        let mask = array![[1.0, 0.0], [0.5, 2.0]];
        let masked = Problem::masked(&x, &mask, Precision::F64).unwrap();
        assert!(masked.x().entries().all(|(.., x)| x.is_finite()));
        let empty_row = array![[0.0, 0.0], [1.0, 1.0]];
        let found = Problem::masked(&x, &empty_row, Precision::F64);
        assert!(matches!(found, Err(Error::UnobservedRow { row: 0 })));
        let empty_column = array![[1.0, 0.0], [1.0, 0.0]];
        let found = Problem::masked(&x, &empty_column, Precision::F64);
        assert!(matches!(found, Err(Error::UnobservedColumn { column: 1 })));
        let wrong = array![[1.0, 0.0]];
        let found = Problem::masked(&x, &wrong, Precision::F64);
        assert!(matches!(found, Err(Error::Shape { found: [1, 2], .. })));
    }

    #[test]
    fn every_entry_point_reads_the_same_matrix() {
        let array = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let problem = problem(array.clone()).unwrap();
        assert_eq!(problem.rows().x.to_matrix().unwrap(), array);
        assert_eq!(problem.columns().x.to_matrix().unwrap(), array.t());
        assert_eq!(array.mapv(|x| x as f32).to_matrix().unwrap(), array);
        let slice = (array.as_slice().unwrap(), [2, 3]);
        assert_eq!(slice.to_matrix().unwrap(), array);
        let short = (&[1.0][..], [2, 3]).to_matrix();
        assert!(matches!(short, Err(Error::SliceLength { length: 1, .. })));
    }
}

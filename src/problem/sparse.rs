//! Problems with a sparse X.

use super::{Problem, Weights};
use crate::error::Result;
use crate::numerics::Precision;
use crate::processes::Share;
use crate::sparse::{Matrix, SparseMatrix, Zeros};

impl Problem {
    /// A problem with a sparse matrix. `zeros` gives the meaning of entries that are not stored.
    /// Weights are multiplied with the ones that follow from it.
    ///
    /// No array of size n×m is made, here or in a run.
    ///
    /// ```
    /// use altbi::{AltBiConfig, Precision, Problem, SparseMatrix, Zeros};
    /// let triplets = vec![(0, 0, 2.0), (0, 1, 1.0), (1, 1, 3.0), (2, 0, 1.0), (2, 2, 4.0)];
    /// let x = SparseMatrix::from_triplets([3, 3], triplets)?;
    /// let problem = Problem::sparse(x, Zeros::Data, None, Precision::F64)?;
    /// let mut solver = AltBiConfig::new(2).solver(altbi::Beta::KL, altbi::L1);
    /// let outcome = solver.run(&problem)?;
    /// assert_eq!(outcome.w.dim(), (3, 2));
    /// # Ok::<(), altbi::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`masked`](Self::masked).
    ///
    /// # Shapes
    /// `x` and `mask` are n×m.
    pub fn sparse(
        x: SparseMatrix,
        zeros: Zeros,
        mask: Option<Weights>,
        precision: Precision,
    ) -> Result<Self> {
        let share = Share::whole(x.shape()[0]);
        Self::sparse_of_share(x, zeros, mask, precision, share)
    }

    pub(super) fn sparse_of_share(
        x: SparseMatrix,
        zeros: Zeros,
        mask: Option<Weights>,
        precision: Precision,
        share: Share,
    ) -> Result<Self> {
        let mask = mask.map(Weights::listed);
        if let Some(mask @ Weights::Listed { at, elsewhere }) = &mask {
            let all = Matrix::Sparse(at.clone());
            share.agree(super::check_stored("the mask", &all, precision))?;
            super::check_weights(Some(mask), None, x.shape(), &share)?;
            debug_assert!(*elsewhere >= 0.0);
        }
        let mask = match zeros {
            Zeros::Data => mask,
            Zeros::Missing => {
                let weight = |index| mask.as_ref().map_or(1.0, |of| of[index]);
                let at = x.map_entries(|index, _| weight(index));
                Some(Weights::Listed { at, elsewhere: 0.0 })
            }
        };
        let kind = super::Kind::Fit(share);
        Self::checked(Matrix::Sparse(x), mask, None, precision, kind)
    }

    /// The same data with every entry stored.
    pub fn dense(&self) -> Self {
        let dense = |matrix: &Matrix| Matrix::Dense(matrix.to_dense()).into();
        let array = |weights: &Weights| std::sync::Arc::new(Weights::from(weights.to_array()));
        Self {
            x: dense(self.x()),
            mask: self.mask().map(array),
            held_out: self.held_out_weights().map(array),
            second: self.second().map(dense),
            tensors: std::sync::Arc::default(),
            ..self.clone()
        }
    }

    /// The first entry that is not stored but has a weight.
    pub(super) fn first_zero(
        &self,
        matrix: &SparseMatrix,
        needed: impl Fn((usize, usize)) -> bool,
    ) -> Option<(usize, usize)> {
        let elsewhere = |weights: Option<&Weights>| match weights {
            Some(Weights::Listed { elsewhere, .. }) => *elsewhere > 0.0,
            _ => true,
        };
        let listed = [self.mask(), self.held_out_weights()];
        // If only listed entries have a weight, only those are checked.
        if !elsewhere(listed[0]) && !listed[1].is_some_and(|of| elsewhere(Some(of))) {
            let places = listed.into_iter().flatten();
            let places = places.flat_map(|weights| weights.places(|weight| weight > 0.0));
            return places
                .filter(|(row, column)| matrix.get(*row, *column).is_none())
                .min();
        }
        let [rows, columns] = matrix.shape();
        let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let mut unstored = all.filter(|(row, column)| matrix.get(*row, *column).is_none());
        unstored.find(|index| needed(*index))
    }
}

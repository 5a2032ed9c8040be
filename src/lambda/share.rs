//! The weights of one process.

use ndarray::{Array2, Axis, Slice, concatenate};

use super::{Layout, WeightGroup};
use crate::processes::Share;

/// The weights of this process. Weights of rows and entries of W are split like the rows. All
/// others are the same on every process.
#[derive(Debug, Clone)]
pub(crate) struct LambdaShare {
    layout: Layout,
    share: Share,
}

impl LambdaShare {
    /// For the weights of this process's rows.
    pub(crate) fn new(layout: Layout, share: &Share) -> Self {
        let share = share.clone();
        Self { layout, share }
    }

    /// The weights of this process.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The rows.
    pub(crate) fn rows(&self) -> &Share {
        &self.share
    }

    /// The weights of all rows.
    pub(crate) fn whole_layout(&self) -> Layout {
        let mut whole = self.layout.clone();
        for group in whole
            .groups
            .iter_mut()
            .filter(|group| group.is_by_row_of_w())
        {
            group.shape[0] = self.share.all();
        }
        whole
    }

    /// The part of each group in a column like λ (or a matrix of its height), and the rows after
    /// all groups.
    fn pieces(&self, layout: &Layout, column: &Array2<f64>) -> Vec<Array2<f64>> {
        let ranges = layout.ranges();
        let end = ranges.last().map_or(0, |range| range.end);
        let rest = end..column.nrows();
        let ranges = ranges.into_iter().chain(std::iter::once(rest));
        let piece = |range| column.slice_axis(Axis(0), Slice::from(range)).to_owned();
        ranges.map(piece).collect()
    }

    fn joined(pieces: &[Array2<f64>]) -> Array2<f64> {
        let views: Vec<_> = pieces.iter().map(|piece| piece.view()).collect();
        concatenate(Axis(0), &views).expect("pieces of one matrix")
    }

    /// Returns true if a piece, numbered like the groups, is split over processes.
    fn is_split(&self, piece: usize) -> bool {
        let group = self.layout.groups.get(piece);
        group.is_some_and(WeightGroup::is_by_row_of_w)
    }

    /// A matrix without columns, for another number of weights. A matrix without rows stays as it
    /// is.
    fn empty(matrix: &Array2<f64>, from: &Layout, to: &Layout) -> Array2<f64> {
        match matrix.nrows() {
            0 => matrix.clone(),
            rows => Array2::zeros((rows - from.len() + to.len(), matrix.ncols())),
        }
    }

    /// The column of all processes, on process 0.
    pub(crate) fn gather(&self, column: &Array2<f64>) -> Option<Array2<f64>> {
        if !self.share.is_split() {
            return Some(column.clone());
        }
        if column.is_empty() {
            let whole = Self::empty(column, &self.layout, &self.whole_layout());
            return self.share.processes().is_first().then_some(whole);
        }
        let mut pieces = self.pieces(&self.layout, column);
        let mut is_first = true;
        for (index, piece) in pieces.iter_mut().enumerate() {
            if self.is_split(index) {
                match self.share.gather(piece) {
                    Some(whole) => *piece = whole,
                    None => is_first = false,
                }
            }
        }
        is_first.then(|| Self::joined(&pieces))
    }

    /// The column of all processes, on all of them.
    pub(crate) fn gather_on_all(&self, column: &Array2<f64>) -> Array2<f64> {
        if column.is_empty() {
            return Self::empty(column, &self.layout, &self.whole_layout());
        }
        let mut pieces = self.pieces(&self.layout, column);
        for (index, piece) in pieces.iter_mut().enumerate() {
            if self.is_split(index) {
                let processes = self.share.processes();
                let all = processes.gather_on_all(piece.iter().copied().collect());
                let shape = (all.len() / piece.ncols().max(1), piece.ncols());
                *piece = Array2::from_shape_vec(shape, all).expect("whole rows");
            }
        }
        Self::joined(&pieces)
    }

    /// This process's part of a column of all.
    pub(crate) fn cut(&self, whole: &Array2<f64>) -> Array2<f64> {
        if !self.share.is_split() {
            return whole.clone();
        }
        if whole.is_empty() {
            return Self::empty(whole, &self.whole_layout(), &self.layout);
        }
        let mut pieces = self.pieces(&self.whole_layout(), whole);
        let rows = self.share.rows();
        for (index, piece) in pieces.iter_mut().enumerate() {
            if self.is_split(index) {
                let width = self.layout.groups[index].shape[1];
                let own = Slice::from(rows.start * width..rows.end * width);
                *piece = piece.slice_axis(Axis(0), own).to_owned();
            }
        }
        Self::joined(&pieces)
    }

    /// The weights that this process counts, so that each weight of the run is counted once.
    pub(crate) fn counted_once(&self, column: &Array2<f64>) -> Vec<f64> {
        let is_first = self.share.processes().is_first();
        let pieces = self.pieces(&self.layout, column).into_iter().enumerate();
        let pieces = pieces.filter(|(index, _)| is_first || self.is_split(*index));
        pieces.flat_map(|(_, piece)| piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factors::Side;
    use crate::lambda::Scope;
    use crate::processes::Threads;

    #[test]
    fn pieces_make_up_the_column() {
        let groups = |rows: usize| {
            let group = |side, scope: Scope, rows| WeightGroup {
                side,
                penalty: "l1".into(),
                scope,
                shape: scope.shape(rows, 3),
            };
            let groups = vec![
                group(Side::W, Scope::Entry, rows),
                group(Side::W, Scope::Component, rows),
                group(Side::W, Scope::Row, rows),
                group(Side::H, Scope::Row, 4),
            ];
            Layout { groups }
        };
        let all = groups(7).len();
        // λ, and a memory with two numbers more than weights.
        for (height, width) in [(all, 1), (all + 2, 2), (all + 1, 0)] {
            let whole = Array2::from_shape_fn((height, width), |(i, k)| (10 * i + k) as f64);
            for size in [1, 2, 3] {
                let found = Threads::run(size, |processes| {
                    let share = Share::of(&processes, 7).unwrap();
                    let layout = groups(share.rows().len());
                    let share = LambdaShare::new(layout, &share);
                    assert_eq!(share.whole_layout(), groups(7));
                    let own = share.cut(&whole);
                    assert_eq!(share.gather_on_all(&own), whole);
                    let once = share.counted_once(&own).len();
                    assert_eq!(processes.total(once as f64), (height * width) as f64);
                    share.gather(&own)
                });
                assert_eq!(found[0].as_ref(), Some(&whole));
            }
        }
    }
}

//! All tuned weights of a run as one column.

use std::ops::Range;

use ndarray::Array2;

use super::Scope;
use crate::factors::Side;

/// The weights of one tuned penalty.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WeightGroup {
    /// The penalised factor.
    pub side: Side,
    /// The penalty's name.
    pub penalty: String,
    /// The scope of the weights.
    pub scope: Scope,
    /// The shape of the weights, which broadcasts to W (n×r) or Hᵀ (m×r).
    pub shape: [usize; 2],
}

impl WeightGroup {
    /// Returns true if the weights belong to rows of W, and are split with them over processes.
    pub(crate) fn is_by_row_of_w(&self) -> bool {
        self.side == Side::W && matches!(self.scope, Scope::Row | Scope::Entry)
    }
}

/// The position of each penalty's weights in the column λ, which steps, checkpoints and observers
/// use. W's penalties come first, then H's, each row by row.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Layout {
    /// The groups, in order.
    pub groups: Vec<WeightGroup>,
}

impl Layout {
    /// The number of weights.
    pub fn len(&self) -> usize {
        self.groups.iter().map(size).sum()
    }

    /// The range of each group in the column.
    pub fn ranges(&self) -> Vec<Range<usize>> {
        let mut end = 0;
        let ranges = self.groups.iter().map(|group| {
            let start = end;
            end += size(group);
            start..end
        });
        ranges.collect()
    }

    /// The weights of each group in its own shape.
    ///
    /// # Panics
    /// If the column has another length.
    ///
    /// # Shapes
    /// `column` p×1.
    pub fn split(&self, column: &Array2<f64>) -> Vec<Array2<f64>> {
        assert_eq!(column.len(), self.len(), "one number for each weight");
        let values: Vec<f64> = column.iter().copied().collect();
        let parts = self.groups.iter().zip(self.ranges());
        let parts = parts.map(|(group, range)| {
            let part = values[range].to_vec();
            Array2::from_shape_vec(group.shape, part).expect("a range has its group's size")
        });
        parts.collect()
    }

    /// The column of some groups' weights: the inverse of [`split`](Self::split).
    pub fn join<'a>(&self, parts: impl IntoIterator<Item = &'a Array2<f64>>) -> Array2<f64> {
        let values: Vec<f64> = parts.into_iter().flatten().copied().collect();
        Array2::from_shape_vec((self.len(), 1), values).expect("one part for each group")
    }
}

fn size(group: &WeightGroup) -> usize {
    group.shape[0] * group.shape[1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn a_column_splits_and_joins() {
        let group = |side, scope: Scope, rows| WeightGroup {
            side,
            penalty: "l1".into(),
            scope,
            shape: scope.shape(rows, 2),
        };
        let layout = Layout {
            groups: vec![
                group(Side::W, Scope::Row, 3),
                group(Side::W, Scope::Shared, 3),
                group(Side::H, Scope::Component, 4),
            ],
        };
        let column = array![[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]];
        let parts = layout.split(&column);
        assert_eq!(parts[0], array![[1.0], [2.0], [3.0]]);
        assert_eq!(parts[2], array![[5.0, 6.0]]);
        assert_eq!(layout.join(&parts), column);
        assert_eq!((layout.len(), layout.ranges()[1].clone()), (6, 3..4));
        assert_eq!(Layout::default().len(), 0);
    }
}

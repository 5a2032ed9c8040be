//! The names of the data's rows and columns.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::factors::Side;

/// Their file in a run folder.
pub(super) const FILE: &str = "labels.json";

/// Names of the data's rows and columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    /// One per row of X and W.
    pub rows: Option<Vec<String>>,
    /// One per column of X and H.
    pub columns: Option<Vec<String>>,
}

impl Labels {
    /// The labels of a run folder. They are empty if its data had none.
    ///
    /// # Errors
    /// [`Error::Read`], and [`Error::ConfigFile`] for a file that is damaged.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(source) => return Err(Error::Read { path, source }),
        };
        serde_json::from_str(&text).map_err(|error| Error::ConfigFile {
            path,
            reason: error.to_string(),
        })
    }

    /// The names of rows (for W) or columns (for H) as numbers, if they are increasing or decreasing
    /// numbers.
    pub(super) fn ordered(&self, side: Side, count: usize) -> Option<Vec<f64>> {
        let names = match side {
            Side::W => self.rows.as_ref(),
            Side::H => self.columns.as_ref(),
        };
        let names = names.filter(|names| names.len() == count && count > 1)?;
        let number = |name: &String| name.trim().parse().ok().filter(|n: &f64| n.is_finite());
        let numbers: Vec<f64> = names.iter().map(number).collect::<Option<_>>()?;
        let is_ordered = numbers.is_sorted_by(|a, b| a < b) || numbers.is_sorted_by(|a, b| a > b);
        is_ordered.then_some(numbers)
    }

    /// Returns true if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_none() && self.columns.is_none()
    }

    /// The name of a row, or its number, counted from 1.
    pub(crate) fn row(&self, row: usize) -> String {
        name(self.rows.as_deref(), "row", row)
    }

    /// The name of a column, or its number, counted from 1.
    pub(crate) fn column(&self, column: usize) -> String {
        name(self.columns.as_deref(), "column", column)
    }
}

/// The name of a weight λ, from its penalty's factor and scope.
pub(super) fn weight_name(
    labels: &Labels,
    (side, scope): (Side, &str),
    (row, column): (usize, usize),
) -> String {
    let (signal, component) = match side {
        Side::W => (labels.row(row), column + 1),
        Side::H => (labels.column(column), row + 1),
    };
    match scope {
        "row" => signal,
        "shared" => "all".into(),
        "entry" => format!("{signal}, component {component}"),
        _ => format!("component {component}"),
    }
}

fn name(names: Option<&[String]>, kind: &str, index: usize) -> String {
    let given = names.and_then(|names| names.get(index));
    given.map_or_else(|| format!("{kind} {}", index + 1), String::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_name_has_a_number() {
        let labels = Labels {
            rows: Some(vec!["alpha".into()]),
            columns: None,
        };
        assert_eq!(
            (labels.row(0), labels.row(1)),
            ("alpha".into(), "row 2".into())
        );
        assert_eq!(labels.column(0), "column 1");
        let weight = |side, scope, place| weight_name(&labels, (side, scope), place);
        assert_eq!(weight(Side::W, "row", (0, 0)), "alpha");
        assert_eq!(weight(Side::H, "row", (0, 4)), "column 5");
        assert_eq!(weight(Side::W, "component", (0, 1)), "component 2");
        assert_eq!(weight(Side::H, "hierarchical:1", (1, 0)), "component 2");
        assert_eq!(weight(Side::W, "entry", (0, 1)), "alpha, component 2");
        assert_eq!(weight(Side::W, "shared", (0, 0)), "all");
        let folder = tempfile::tempdir().unwrap();
        assert!(Labels::read(folder.path()).unwrap().is_empty());
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(Labels::read(folder.path()).is_err());
    }

    #[test]
    fn names_that_are_ordered_numbers_are_places() {
        let columns = |names: &[&str]| Labels {
            rows: None,
            columns: Some(names.iter().map(ToString::to_string).collect()),
        };
        let places = columns(&["400", "410.5", "420"]).ordered(Side::H, 3);
        assert_eq!(places, Some(vec![400.0, 410.5, 420.0]));
        let places = columns(&["2", "1"]).ordered(Side::H, 2);
        assert_eq!(places, Some(vec![2.0, 1.0]));
        assert_eq!(columns(&["2", "1", "3"]).ordered(Side::H, 3), None);
        assert_eq!(columns(&["1", "b"]).ordered(Side::H, 2), None);
        assert_eq!(columns(&["1", "2"]).ordered(Side::H, 3), None);
        assert_eq!(columns(&["1", "2"]).ordered(Side::W, 2), None);
    }
}

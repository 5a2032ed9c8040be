//! The names of the data's rows and columns.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The file of a run folder that keeps them.
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
    /// Those of a run folder; none where its data had none.
    ///
    /// # Errors
    /// [`Error::Read`], and [`Error::ConfigFile`] for a file that is damaged.
    pub fn read(folder: &Path) -> Result<Self> {
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

    /// Whether there are any.
    pub fn is_empty(&self) -> bool {
        self.rows.is_none() && self.columns.is_none()
    }

    /// The name of a row, or its number, counted from 1.
    pub fn row(&self, row: usize) -> String {
        name(self.rows.as_deref(), "row", row)
    }

    /// The name of a column, or its number, counted from 1.
    pub fn column(&self, column: usize) -> String {
        name(self.columns.as_deref(), "column", column)
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
        let folder = tempfile::tempdir().unwrap();
        assert!(Labels::read(folder.path()).unwrap().is_empty());
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        assert!(Labels::read(folder.path()).is_err());
    }
}

//! Folders with records in one JSON file, and a page.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Figure;
use super::page::{figure_element, head};
use crate::data::write_whole;
use crate::error::{Error, Result};
use crate::plot::escape;

/// Records that a command saves in a folder, in [`FILE`](Self::FILE).
pub(crate) trait KeptRecords: Serialize + DeserializeOwned {
    /// The JSON file that marks such a folder.
    const FILE: &'static str;

    /// Returns true if a folder holds such records.
    fn are_in(folder: &Path) -> bool {
        folder.join(Self::FILE).is_file()
    }

    /// Reads them from a folder.
    ///
    /// # Errors
    /// [`Error::Read`] and [`Error::ConfigFile`], and the readers' errors for other files that
    /// belong to the records.
    fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(Self::FILE);
        let text = std::fs::read_to_string(&path).map_err(Error::reading(&path))?;
        serde_json::from_str(&text).map_err(|error| Error::ConfigFile {
            path,
            reason: error.to_string(),
        })
    }

    /// Writes [`FILE`](Self::FILE).
    ///
    /// # Errors
    /// [`Error::Write`].
    fn write(&self, folder: &Path) -> Result<()> {
        let json = serde_json::to_string_pretty(self).expect("plain data");
        write_whole(&folder.join(Self::FILE), json.as_bytes())
    }

    /// Writes `report.html`, `figures/*.svg` and a table of the numbers; returns the page.
    ///
    /// # Errors
    /// [`Error::Write`].
    fn write_report(&self, folder: &Path) -> Result<PathBuf>;
}

/// Writes `figures/*.svg` and `report.html`, which begins with the answer and ends with the
/// settings. Returns the path of the page. `table` is HTML, all else is text. Records of older
/// versions have no name of the data.
pub(super) fn write_page(
    folder: &Path,
    [data, question]: [&str; 2],
    [answer, about]: [&str; 2],
    table: &str,
    figures: &[Figure],
) -> Result<PathBuf> {
    let data = if data.is_empty() { "altbi" } else { data };
    let mut page = head(&format!("{data}: {question}"));
    let _ = writeln!(
        page,
        "<header><h1>{}</h1></header>\n<section><h2>{}</h2>\n<p class=\"answer\">{}</p>\n{table}</section>\n<main>",
        escape(data),
        escape(question),
        escape(answer)
    );
    for figure in figures {
        let file = format!("figures/{}.svg", figure.name);
        write_whole(&folder.join(file), figure.svg.as_bytes())?;
        page.push_str(&figure_element(figure));
    }
    let _ = writeln!(
        page,
        "</main>\n<section><details><summary>Settings</summary><p>{}</p></details></section>\n</body></html>",
        escape(about)
    );
    let path = folder.join("report.html");
    write_whole(&path, page.as_bytes())?;
    Ok(path)
}

//! Matrices that a command returns: printed, or as a .csv or .npy file.

use std::path::Path;

use crate::data::{Table, write_npy, write_whole};
use crate::{Error, Result};

use super::Ending;
use super::output::{complain, say};

/// Refuses a file whose name has none of the known endings, such as ".csv, .npy".
pub fn check_ending(path: &Path, known: &'static str) -> Result<()> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    if ending.is_some_and(|ending| known.split(", ").any(|one| one[1..] == *ending)) {
        return Ok(());
    }
    Err(Error::UnknownFormat {
        path: path.into(),
        known,
    })
}

/// "component 1", …
pub fn components(rank: usize) -> Vec<String> {
    (1..=rank).map(|k| format!("component {k}")).collect()
}

/// Writes a table into a file, or prints it. A .npy file has no names.
pub fn deliver(table: &Table, out: Option<&Path>, quiet: bool) -> Result<Ending> {
    let Some(out) = out else {
        say(table.to_csv().trim_end());
        return Ok(Ending::Done);
    };
    if out.extension().is_some_and(|ending| ending == "npy") {
        write_npy(out, &table.values)?;
    } else {
        write_whole(out, table.to_csv().as_bytes())?;
    }
    if !quiet {
        let (rows, columns) = table.values.dim();
        complain(format!("{rows}×{columns} written to {}", out.display()));
    }
    Ok(Ending::Done)
}

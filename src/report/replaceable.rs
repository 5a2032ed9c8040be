//! What `--force` may replace.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};

/// The name of the checkpoint in a run folder.
pub(super) const CHECKPOINT: &str = "checkpoint";

/// How the names of files begin that are still being written.
pub(super) const STRAY: &str = ".altbi-";

/// What altbi writes into a run folder.
const OWN: [&str; 13] = [
    "W.npy",
    "H.npy",
    "lambda.npy",
    "lambda_start.npy",
    "W.csv",
    "H.csv",
    "history.csv",
    "summary.json",
    "config.toml",
    "report.html",
    "figures",
    "data.csv",
    CHECKPOINT,
];

/// Refuses anything but a folder that holds a run and nothing else: `--force` is
/// not a way to lose a thesis.
pub(super) fn check_replaceable(path: &Path) -> Result<()> {
    let refused = |stranger: String| Error::NotARunFolder {
        path: path.into(),
        stranger,
    };
    let kind = path.symlink_metadata().map_err(|source| Error::Read {
        path: path.into(),
        source,
    })?;
    if !kind.is_dir() {
        return Err(refused("it is not a folder".into()));
    }
    let entries = fs::read_dir(path).map_err(|source| Error::Read {
        path: path.into(),
        source,
    })?;
    let mut any = false;
    let mut is_run = false;
    for entry in entries {
        let name = entry
            .map_err(|source| Error::Read {
                path: path.into(),
                source,
            })?
            .file_name();
        let name = name.to_string_lossy();
        any = true;
        is_run |= name == "config.toml";
        if !(OWN.contains(&name.as_ref()) || name.starts_with(STRAY)) {
            return Err(refused(format!("it holds '{name}'")));
        }
    }
    if any && !is_run {
        return Err(refused("it holds no config.toml".into()));
    }
    Ok(())
}

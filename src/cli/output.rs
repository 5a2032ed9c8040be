//! Standard output and standard error, which may be closed by whoever reads them, and
//! folders that appear whole.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use altbi::{Error, Result};

/// Prints a line. A reader that has gone away (`altbi … | head`) is no error; a
/// disk that is full is one, and ends the program with exit code 2.
pub fn say(line: impl AsRef<str>) {
    let mut output = std::io::stdout().lock();
    let written = writeln!(output, "{}", line.as_ref()).and_then(|()| output.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        complain(format!("error: cannot write to standard output: {error}"));
        std::process::exit(2);
    }
}

/// Prints a line to standard error; where even that fails, nobody is listening.
pub fn complain(line: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr().lock(), "{}", line.as_ref());
}

/// A value as JSON text.
pub fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("it is plain data")
}

/// Refuses to write into a folder, or onto a file, that holds what the command reads.
pub fn check_inputs_safe(output: &Path, inputs: impl IntoIterator<Item = PathBuf>) -> Result<()> {
    let Ok(place) = output.canonicalize() else {
        return Ok(());
    };
    for input in inputs {
        if input
            .canonicalize()
            .is_ok_and(|path| path.starts_with(&place))
        {
            return Err(Error::InputOverwritten {
                input,
                output: output.into(),
            });
        }
    }
    Ok(())
}

/// Refuses to overwrite a file, unless asked to; and never one that the command reads.
pub fn check_new_file(
    path: &Path,
    force: bool,
    inputs: impl IntoIterator<Item = PathBuf>,
) -> Result<()> {
    check_inputs_safe(path, inputs)?;
    if path.symlink_metadata().is_ok() && !force {
        return Err(Error::FileExists { path: path.into() });
    }
    Ok(())
}

/// Makes a folder with all its files or not at all: they are written aside, then the
/// folder gets its name.
pub fn new_folder(path: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let failed = |source| Error::Write {
        path: path.into(),
        source,
    };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(parent).map_err(failed)?;
    let aside = tempfile::Builder::new()
        .prefix(".altbi-")
        .tempdir_in(parent)
        .map_err(failed)?;
    let new = aside.path().join("new");
    std::fs::create_dir(&new).map_err(failed)?;
    fill(&new)?;
    std::fs::rename(&new, path).map_err(failed)
}

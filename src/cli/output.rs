//! Standard output and standard error, which their reader may close, and folders that appear
//! complete or not at all.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::{ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use crate::data::Reservation;
use crate::{Error, Result};

/// Prints a line. A closed pipe (`altbi … | head`) is not an error. A full disk is one, and ends
/// the program with exit code 2.
pub fn say(line: impl AsRef<str>) {
    let mut output = std::io::stdout().lock();
    let written = writeln!(output, "{}", harmless(line.as_ref())).and_then(|()| output.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
    {
        complain(format!("error: cannot write to standard output: {error}"));
        std::process::exit(2);
    }
}

/// Prints a line to standard error. If that fails, the line is dropped.
pub fn complain(line: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr().lock(), "{}", harmless(line.as_ref()));
}

/// A text without the control characters that a terminal would execute. Names in data files may
/// hold them.
fn harmless(text: &str) -> Cow<'_, str> {
    let commands = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(commands) {
        return Cow::Borrowed(text);
    }
    let shown = text
        .chars()
        .map(|c| if commands(c) { '\u{fffd}' } else { c });
    Cow::Owned(shown.collect())
}

/// A value as JSON text.
pub fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("it is plain data")
}

/// Reads an `--out`. A missing folder followed by `..` is removed from the path, so that the path
/// means the same after folders are created.
pub fn output_path(text: &str) -> std::result::Result<PathBuf, Infallible> {
    let mut settled = PathBuf::new();
    for component in Path::new(text).components() {
        let new = settled.symlink_metadata().is_err();
        if component == Component::ParentDir && new && settled.file_name().is_some() {
            settled.pop();
        } else {
            settled.push(component);
        }
    }
    if settled.as_os_str().is_empty() {
        settled.push(".");
    }
    Ok(settled)
}

/// Refuses to write into a folder, or over a file, that the command reads.
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

/// Refuses to overwrite a file without `--force`, and always one that the command reads.
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

/// A new folder that one command locks at once. In the end it has all its files, or it does not
/// exist.
pub struct NewFolder(Reservation);

/// The lock file of a new folder until it is filled.
const RESERVED: &str = ".altbi-reserved";

impl NewFolder {
    /// Refuses a folder that exists, or that another command is filling.
    pub fn claim(path: &Path) -> Result<Self> {
        let reserved = path.join(RESERVED).is_file();
        if path.symlink_metadata().is_ok() && !reserved {
            return Err(Error::FolderExists { path: path.into() });
        }
        Reservation::of(path, RESERVED, &[]).map(Self)
    }

    /// Writes all files under temporary names, then renames them.
    pub fn fill(mut self, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let path = self.0.path().to_owned();
        let failed = Error::writing(&path);
        let aside = tempfile::Builder::new()
            .prefix(".altbi-")
            .tempdir_in(&path)
            .map_err(&failed)?;
        fill(aside.path())?;
        for entry in std::fs::read_dir(aside.path()).map_err(&failed)? {
            let entry = entry.map_err(&failed)?;
            std::fs::rename(entry.path(), path.join(entry.file_name())).map_err(&failed)?;
        }
        self.0.keep();
        std::fs::remove_file(path.join(RESERVED)).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_into_a_missing_folder_and_out_again_is_no_way() {
        let path = |text: &str| output_path(text).unwrap();
        assert_eq!(path("missing/../y.npy"), Path::new("y.npy"));
        assert_eq!(path("./missing/deep/../../y.npy"), Path::new("./y.npy"));
        assert_eq!(path("src/../y.npy"), Path::new("src/../y.npy"));
        assert_eq!(path("../y.npy"), Path::new("../y.npy"));
        assert_eq!(path("missing/.."), Path::new("."));
    }

    #[test]
    fn commands_to_a_terminal_are_not_passed_on() {
        assert_eq!(harmless("a\u{1b}[31mb\n"), "a\u{fffd}[31mb\n");
        assert!(matches!(harmless("λ = 1\n"), Cow::Borrowed(_)));
    }
}

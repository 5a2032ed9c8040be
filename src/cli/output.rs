//! Standard output that may be closed by whoever reads it.

use std::io::{ErrorKind, Write};

/// Prints a line. A reader that has gone away (`altbi … | head`) is no error.
///
/// # Panics
/// If standard output fails otherwise, as `println!` does.
pub fn say(line: impl AsRef<str>) {
    let mut output = std::io::stdout().lock();
    let written = writeln!(output, "{}", line.as_ref()).and_then(|()| output.flush());
    if let Err(error) = written {
        assert!(
            error.kind() == ErrorKind::BrokenPipe,
            "standard output: {error}"
        );
    }
}

/// A value as JSON text.
pub fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("it is plain data")
}

//! `--config FILE.toml`: flags from a file.
//!
//! A key of the file is a long flag without its dashes, and its value is what one would type. The
//! file is turned into flags. Typed flags come after them and take precedence.

use std::ffi::OsString;
use std::path::Path;

use crate::{Error, Result};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::fit::FitArguments;
use super::graphs::NEAREST;

/// The key of the positional argument.
const POSITIONAL: &str = "data";

/// Reads `fit`'s arguments from a file. Typed flags take precedence.
///
/// # Errors
/// [`Error::Read`]; and [`Error::ConfigFile`] for text that is not TOML, a key that is not a flag
/// (with the nearest flag), or a bad value of a flag.
pub fn arguments_from(path: &Path, typed: &[OsString]) -> Result<FitArguments> {
    let text = std::fs::read_to_string(path).map_err(Error::reading(path))?;
    parse(&text, path, typed)
}

/// The same from the text of a file.
pub fn parse(text: &str, path: &Path, typed: &[OsString]) -> Result<FitArguments> {
    let wrong = |reason: String| Error::ConfigFile {
        path: path.into(),
        reason,
    };
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| wrong(error.to_string()))?;
    let command = FitArguments::augment_args(Command::new("fit"));
    let typed_matches = command
        .clone()
        .no_binary_name(true)
        .args_override_self(true)
        .try_get_matches_from(typed);
    let typed_data = typed_matches
        .as_ref()
        .is_ok_and(|matches| matches.contains_id(POSITIONAL));
    let mut flags: Vec<OsString> = Vec::new();
    let mut data: Option<OsString> = None;
    let folder = path.parent().unwrap_or(Path::new(""));
    for (key, value) in &table {
        let flag = command
            .get_arguments()
            .find(|argument| argument.get_long() == Some(key));
        let text = match value {
            toml::Value::String(text) if is_file(key, text) => {
                folder.join(text).to_string_lossy().into_owned()
            }
            toml::Value::String(text) => text.clone(),
            toml::Value::Array(_) | toml::Value::Table(_) => {
                return Err(wrong(format!("'{key}' must be a single value")));
            }
            other => other.to_string(),
        };
        match flag {
            Some(_) if key == "config" => {
                return Err(wrong("a configuration cannot name another one".into()));
            }
            Some(flag) if matches!(flag.get_action(), ArgAction::SetTrue) => match value {
                toml::Value::Boolean(true) => flags.push(format!("--{key}").into()),
                toml::Value::Boolean(false) => {}
                _ => return Err(wrong(format!("'{key}' must be true or false"))),
            },
            Some(_) => flags.push(format!("--{key}={text}").into()),
            None if key == POSITIONAL => data = Some(text.into()),
            None => return Err(wrong(unknown_key(key, &command))),
        }
    }
    flags.extend(typed.iter().cloned());
    if let Some(data) = data.filter(|_| !typed_data) {
        // A file name that begins with a dash is not a flag.
        flags.extend(["--".into(), data]);
    }
    let command = command.no_binary_name(true).args_override_self(true);
    let wrong_flag = |error: clap::Error| wrong(one_line(&error.to_string()));
    let matches = command.clone().try_get_matches_from(&flags);
    let matches = matches.map_err(wrong_flag)?;
    let mut arguments = FitArguments::from_arg_matches(&matches).map_err(wrong_flag)?;
    let typed = |flag: &str| matches.value_source(flag) == Some(ValueSource::CommandLine);
    arguments.preset.overlay(&mut arguments, &typed);
    arguments.preset.check(&arguments)?;
    arguments.settings = settings(&command, &matches);
    for (flag, value) in arguments.resolved_settings() {
        arguments.settings.insert(flag.into(), setting(&value));
    }
    Ok(arguments)
}

/// Flags that do not affect the result of a run.
const NO_SETTINGS: [&str; 6] = ["config", "out", "force", "quiet", "json", "help"];

/// Digits of the largest whole number of 64 bits.
const MOST_DIGITS: usize = 20;

/// The settings under the names of their flags: typed, or clap's default. Those of the solver have
/// none of these.
fn settings(command: &Command, matches: &ArgMatches) -> toml::Table {
    let mut table = toml::Table::new();
    for argument in command.get_arguments() {
        let Some(flag) = argument.get_long() else {
            continue;
        };
        if NO_SETTINGS.contains(&flag) {
            continue;
        }
        let values = matches.get_raw(argument.get_id().as_str());
        if let Some(text) = values.and_then(Iterator::last) {
            table.insert(flag.into(), setting(&text.to_string_lossy()));
        }
    }
    table
}

/// A value for TOML: a number if possible, otherwise text. (TOML's integers end at 2⁶³; a larger
/// one stays text.)
pub fn setting(text: &str) -> toml::Value {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(integer), _) => integer.into(),
        // More digits than the largest seed has: a number such as 1e300.
        (_, Ok(number)) if digits && text.len() > MOST_DIGITS => format!("{number:e}").into(),
        // (TOML would write 1e300 with three hundred digits.)
        (_, Ok(number)) if !digits && !(1e16..f64::INFINITY).contains(&number) => number.into(),
        _ => text.into(),
    }
}

/// The typed flags with their preset.
pub fn typed_arguments(typed: &[OsString]) -> Result<FitArguments> {
    parse("", Path::new("the command line"), typed)
}

/// Returns true if a value names a file. Its path is then relative to the configuration.
fn is_file(key: &str, text: &str) -> bool {
    match key {
        "data" => text != "-",
        "mask" | "init-w" | "init-h" | "continue" => true,
        "graph" | "graph-h" => !text.starts_with(NEAREST),
        "lambda" => text != "auto" && text.parse::<f64>().is_err(),
        _ => false,
    }
}

/// clap's message without its usage lines.
fn one_line(message: &str) -> String {
    let first = message.split("\n\n").next().unwrap_or(message);
    first.trim_start_matches("error: ").replace('\n', " ")
}

fn unknown_key(key: &str, command: &Command) -> String {
    let known = command
        .get_arguments()
        .filter_map(|argument| argument.get_long())
        .chain([POSITIONAL]);
    let nearest = known
        .map(|name| (strsim::jaro_winkler(key, name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((likeness, name)) if likeness > 0.75 => {
            format!("there is no setting '{key}'; did you mean '{name}'?")
        }
        _ => format!("there is no setting '{key}'; `altbi fit --help` lists them"),
    }
}

//! The run folder: factors, λ, history, summary and configuration.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::Summary;
use crate::data::write_npy;
use crate::error::{Error, Result};
use crate::solver::{Outcome, Record};

/// Refuses a run folder that exists, unless it may be replaced. Called before the
/// run, so that no work is lost.
///
/// # Errors
/// [`Error::RunFolderExists`].
pub fn check_run_folder(folder: &Path, replace: bool) -> Result<()> {
    if folder.exists() && !replace {
        return Err(Error::RunFolderExists {
            path: folder.into(),
        });
    }
    Ok(())
}

/// Writes `W.npy H.npy lambda.npy history.csv summary.json config.toml` into a
/// new folder.
///
/// The folder is made aside, every file is flushed to the disk, and only then it
/// gets its name: it appears whole or not at all.
///
/// # Errors
/// [`Error::RunFolderExists`] (unless `replace`), [`Error::Write`].
pub fn write_run_folder<Settings: Serialize>(
    folder: &Path,
    replace: bool,
    outcome: &Outcome,
    summary: &Summary<Settings>,
) -> Result<()> {
    check_run_folder(folder, replace)?;
    let failed = |path: &Path| {
        let path: PathBuf = path.into();
        move |source| Error::Write { path, source }
    };
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(failed(parent))?;
    let aside = tempfile::Builder::new()
        .prefix(".altbi-")
        .tempdir_in(parent)
        .map_err(failed(folder))?;
    for (name, matrix) in [
        ("W.npy", &outcome.w),
        ("H.npy", &outcome.h),
        ("lambda.npy", &outcome.lambda),
    ] {
        write_npy(&aside.path().join(name), matrix)?;
    }
    let text = |name: &str, text: String| {
        let path = aside.path().join(name);
        fs::File::create(&path)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            })
            .map_err(failed(&folder.join(name)))
    };
    text("history.csv", history_csv(&outcome.history))?;
    let json = serde_json::to_string_pretty(summary).expect("a summary is plain data");
    text("summary.json", json + "\n")?;
    let toml = toml::to_string(&summary.settings).expect("settings are plain data");
    text("config.toml", toml)?;

    // The temporary folder is private to its maker; a run folder is not.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(aside.path(), mode).map_err(failed(folder))?;
    }
    if folder.exists() {
        // Moved away first: a rename cannot replace a folder that is not empty.
        let old = tempfile::Builder::new()
            .prefix(".altbi-old-")
            .tempdir_in(parent)
            .map_err(failed(folder))?;
        fs::rename(folder, old.path().join("run")).map_err(failed(folder))?;
        fs::rename(aside.path(), folder).map_err(failed(folder))?;
    } else {
        fs::rename(aside.path(), folder).map_err(failed(folder))?;
    }
    // It has its final name now: nothing is left to clean up.
    let _ = aside.keep();
    Ok(())
}

/// The history with a header; numbers in the shortest form that reads back the
/// same.
fn history_csv(history: &[Record]) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in history {
        writer.serialize(record).expect("a record is plain data");
    }
    let bytes = writer.into_inner().expect("memory does not fail to flush");
    String::from_utf8(bytes).expect("numbers are ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AltBiConfig;
    use crate::data::{benchmark_a, read_matrix};

    fn outcome() -> (Outcome, Summary<AltBiConfig>) {
        let config = AltBiConfig::new(2).with_max_iterations(3);
        let x = benchmark_a(12, 8, 2, 3).x;
        let outcome = config.fit(&x).unwrap();
        let summary = Summary::new(config, 0, "hash".into(), &outcome, None);
        (outcome, summary)
    }

    #[test]
    fn a_folder_holds_everything_and_is_not_overwritten() {
        let (outcome, summary) = outcome();
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("new/run");
        write_run_folder(&folder, false, &outcome, &summary).unwrap();
        assert_eq!(read_matrix(&folder.join("W.npy")).unwrap(), outcome.w);
        assert_eq!(
            read_matrix(&folder.join("lambda.npy")).unwrap(),
            outcome.lambda
        );
        let history = fs::read_to_string(folder.join("history.csv")).unwrap();
        let mut lines = history.lines();
        assert_eq!(
            lines.next().unwrap(),
            "iteration,divergence,objective,outer_error,relative_change,lambda_min,\
             lambda_median,lambda_max,hypergradient_norm,seconds"
        );
        assert_eq!(lines.count(), 4);
        let config = fs::read_to_string(folder.join("config.toml")).unwrap();
        assert_eq!(
            toml::from_str::<AltBiConfig>(&config).unwrap(),
            summary.settings
        );
        let json = fs::read_to_string(folder.join("summary.json")).unwrap();
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["iterations"], 3);
        assert_eq!(read["divergence"].as_f64().unwrap(), outcome.divergence);

        let again = write_run_folder(&folder, false, &outcome, &summary);
        assert!(matches!(again, Err(Error::RunFolderExists { .. })));
        fs::write(folder.join("stale"), "x").unwrap();
        write_run_folder(&folder, true, &outcome, &summary).unwrap();
        assert!(!folder.join("stale").exists());
        let left: Vec<_> = fs::read_dir(parent.path().join("new")).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing is left beside the run folder");
    }
}

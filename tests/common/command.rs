//! The command from outside: calling it, and a folder to call it in.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use altbi::data::write_npy;
use ndarray::Array2;
use tempfile::TempDir;

pub fn altbi(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_altbi"))
        .args(arguments)
        .output()
        .unwrap()
}

/// The output of a command that succeeded.
#[track_caller]
pub fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The error of a command that failed, with its exit code.
pub fn complaint(output: &Output) -> (Option<i32>, String) {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(!text.contains("panicked"), "{text}");
    (output.status.code(), text)
}

pub struct Folder(pub TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().into()
    }

    pub fn npy(&self, name: &str, matrix: &Array2<f64>) -> String {
        let path = self.path(name);
        write_npy(Path::new(&path), matrix).unwrap();
        path
    }

    pub fn text(&self, name: &str, text: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn entries(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
    }
}

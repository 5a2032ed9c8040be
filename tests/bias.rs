//! `altbi bias`: how short a bunch is too short.

mod common;

use std::path::Path;

use altbi::data::{read_matrix, write_npy};
use common::command::altbi;
use common::matrix;

/// The lengths that are compared: 1, 2, 4, 8, 16, 64, 256, 1024.
const LENGTHS: usize = 8;

#[test]
fn the_command_writes_a_table_and_figures() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (data, out) = (path("x.npy"), path("bias"));
    write_npy(Path::new(&data), &matrix(14, 9, 0.3)).unwrap();
    let output = altbi(&[
        "bias", &data, "--rank", "3", "--lambda", "0.3", "--out", &out,
    ]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("relative error") && text.contains("∞"),
        "{text}"
    );
    let table = std::fs::read_to_string(path("bias/bias.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + LENGTHS + 1);
    let gradients = read_matrix(Path::new(&path("bias/hypergradients.npy"))).unwrap();
    assert_eq!(gradients.dim(), (14, LENGTHS + 1));
    let page = std::fs::read_to_string(path("bias/report.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 2);
    let name = Path::new(&data).file_name().unwrap().to_str().unwrap();
    assert!(page.contains(&format!("<h1>{name}</h1>")));
    for figure in ["relative_error", "rows"] {
        assert!(Path::new(&path(&format!("bias/figures/{figure}.svg"))).exists());
    }
    let json = altbi(&[
        "bias",
        &data,
        "--rank",
        "3",
        "--json",
        "--criterion",
        "held-out:0.2",
    ]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["rows"][2]["length"], 4);
    let before = std::fs::read(path("bias/bias.csv")).unwrap();
    for (arguments, words) in [
        (
            vec!["bias", &data, "--rank", "3", "--out", &out],
            "exists already",
        ),
        (vec!["bias", &data], "--rank"),
        (
            vec!["bias", &data, "--rank", "3", "--warm-up", "0"],
            "number of iterations",
        ),
        (
            vec!["bias", &data, "--rank", "3", "--bunch", "0"],
            "bunch length",
        ),
        (vec!["bias", &data, "--rank", "30"], "rank must lie"),
        (
            vec!["bias", &data, "--rank", "3", "--penalty", "none"],
            "nothing to compare",
        ),
    ] {
        let output = altbi(&arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(words), "{arguments:?}: {text}");
    }
    assert_eq!(std::fs::read(path("bias/bias.csv")).unwrap(), before);
}

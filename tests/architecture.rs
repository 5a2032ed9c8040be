//! The house stays as drawn: a module uses what stands below it or beside it in the table of
//! docs/architecture.md, but for the arrows that the page names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Modules with their floors, from the first table of the page.
fn floors(page: &str) -> BTreeMap<String, u32> {
    let mut floors = BTreeMap::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [floor, modules, _] = cells[..] else {
            continue;
        };
        let floor = match floor {
            "roof" => 6,
            number => match number.parse() {
                Ok(floor) => floor,
                Err(_) => continue,
            },
        };
        for module in modules.split(',') {
            floors.insert(module.trim().trim_matches('`').to_owned(), floor);
        }
    }
    floors
}

/// The arrows that may point upwards: lines "- `from` → `to`: why".
fn exceptions(page: &str) -> Vec<(String, String)> {
    let arrow = |line: &str| {
        let rest = line.strip_prefix("- `")?;
        let (from, rest) = rest.split_once("` → `")?;
        let (to, _) = rest.split_once('`')?;
        Some((from.to_owned(), to.to_owned()))
    };
    page.lines().filter_map(arrow).collect()
}

/// The items that `src/lib.rs` has at the root, each with its module.
fn exports(lib: &str) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for path in lib.split("pub use ").skip(1) {
        let (path, _) = path.split_once(';').unwrap();
        let (module, items) = path.split_once("::").unwrap();
        let items = items.split(|c: char| !c.is_alphanumeric());
        exports.extend(items.map(|item| (item.to_owned(), module.to_owned())));
    }
    exports
}

/// The members of a group, which begins after its brace.
fn members(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (1, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            found.push(&group[start..at]);
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// The module of each `crate::…` path in the code, comments left out.
fn uses(code: &str, exports: &BTreeMap<String, String>) -> Vec<String> {
    let lines = code.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("//")).collect();
    let code = lines.join(" ");
    let mut found = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let paths = match rest.strip_prefix('{') {
            Some(group) => members(group),
            None => vec![rest],
        };
        for path in paths {
            let mut names = path
                .trim()
                .split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let name = names.next().filter(|name| !name.is_empty());
            let module = |name: &str| exports.get(name).map_or(name, String::as_str).to_owned();
            found.extend(name.map(module));
        }
    }
    found
}

fn files(folder: &Path, all: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, all);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            all.push(path);
        }
    }
}

#[test]
fn arrows_point_downwards() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let (floors, exceptions) = (floors(&page), exceptions(&page));
    let exports = exports(&std::fs::read_to_string(root.join("src/lib.rs")).unwrap());
    assert_eq!(exports["Problem"], "problem");
    let mut all = Vec::new();
    files(&root.join("src"), &mut all);
    let mut used = vec![false; exceptions.len()];
    let mut arrows = 0;
    for path in all {
        let place = path.strip_prefix(root.join("src")).unwrap();
        let first = place.components().next().unwrap().as_os_str();
        let module = first.to_str().unwrap().trim_end_matches(".rs").to_owned();
        if ["lib", "main", "cli", "tests"].contains(&module.as_str()) {
            continue;
        }
        let own = floors.get(&module);
        let own = *own.unwrap_or_else(|| panic!("{module} has no floor in docs/architecture.md"));
        let code = std::fs::read_to_string(&path).unwrap();
        // Tests may look at anything.
        let code = code.split("#[cfg(test)]\nmod tests").next().unwrap();
        for to in uses(code, &exports) {
            let Some(floor) = floors.get(&to) else {
                continue;
            };
            arrows += 1;
            if *floor <= own {
                continue;
            }
            let known = exceptions
                .iter()
                .position(|(from, towards)| *from == module && *towards == to);
            let known = known.unwrap_or_else(|| panic!("{}: {module} uses {to}", place.display()));
            used[known] = true;
        }
    }
    assert!(arrows > 300, "{arrows}");
    for (arrow, used) in exceptions.iter().zip(used) {
        assert!(used, "{arrow:?} is gone: take it off the page");
    }
}

/// A plug-in behind an `Arc` is the same plug-in: every method is passed on, those with a default too.
#[test]
fn shared_plug_ins_pass_on_every_method() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (file, name) in [("penalty", "Penalty"), ("divergence", "Divergence")] {
        let code = std::fs::read_to_string(root.join(format!("src/{file}/mod.rs"))).unwrap();
        let methods = |opening: String| -> BTreeSet<String> {
            let (_, rest) = code.split_once(&opening).expect(&opening);
            let (body, _) = rest.split_once("\n}").unwrap();
            let lines = body
                .lines()
                .filter_map(|line| line.trim_start().strip_prefix("fn "));
            lines
                .map(|line| line.split('(').next().unwrap().to_owned())
                .collect()
        };
        let of_trait = methods(format!("\npub trait {name}"));
        assert!(of_trait.len() > 5, "{of_trait:?}");
        let first = &name[..1];
        let passed_on = methods(format!(
            "\nimpl<{first}: {name} + ?Sized> {name} for Arc<{first}> {{"
        ));
        assert_eq!(of_trait, passed_on);
    }
}

/// A page and a line of code that break the rule are found out.
#[test]
fn what_breaks_the_rule_is_seen() {
    let page = "| 4 | `solver` | the loop |\n| 1 | `data`, `problem` | doors |\n- `data` → `solver`: why\n";
    let floors = floors(page);
    assert_eq!(floors["solver"], 4);
    assert_eq!(floors["problem"], 1);
    assert_eq!(exceptions(page), [("data".to_owned(), "solver".to_owned())]);
    let exports = exports("pub use error::{Error, Result};\npub use numerics::Precision;\n");
    let code = "use crate::solver::Solver;\n// crate::plot\nlet x = crate::data::demo();";
    assert_eq!(uses(code, &exports), ["solver", "data"]);
    let code =
        "use crate::{Result, report::{html, kept},\n    tuner::Task};\nuse crate::Precision;";
    let modules = ["error", "report", "tuner", "numerics"];
    assert_eq!(uses(code, &exports), modules);
}

#[test]
fn every_example_is_in_the_gallery_and_tested() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/gallery.md")).unwrap();
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let mut all = Vec::new();
    files(&root.join("examples"), &mut all);
    assert!(all.len() > 10);
    for path in all {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let command = format!("--example {name}");
        assert!(page.contains(&command), "docs/gallery.md lacks {name}");
        let tested = format!("name = \"{name}\"\ntest = true\n");
        assert!(
            manifest.contains(&tested),
            "Cargo.toml does not test {name}"
        );
    }
}

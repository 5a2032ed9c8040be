//! Edges from files: lists of pairs, and Matrix Market.

use std::collections::HashMap;
use std::path::Path;

use crate::error::{Error, Result};

/// Reads the edges of a graph: two vertices, counted from 0, and a strength each.
///
/// Each line of a list is an edge: two vertices and an optional strength, separated by spaces,
/// tabs, commas or semicolons. Lines that begin with `#` are skipped. Vertices are numbers from 0,
/// or names if `names` are given. A Matrix Market file (recognised by its first line) has
/// coordinates from 1.
///
/// # Errors
/// [`Error::Read`]; and [`Error::EdgeLine`] with the first line that is not an edge.
pub fn read_edges(
    path: &Path,
    vertices: usize,
    names: Option<&[String]>,
) -> Result<Vec<(usize, usize, f64)>> {
    let text = std::fs::read_to_string(path).map_err(Error::reading(path))?;
    let by_name: HashMap<&str, usize> = names
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(index, name)| (name.as_str(), index))
        .collect();
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index as u64 + 1, line.trim()));
    let refused = |line: u64, reason: &str| Error::EdgeLine {
        name: path.display().to_string(),
        line,
        reason: reason.into(),
    };
    let market = text.starts_with("%%MatrixMarket");
    if market {
        let (_, banner) = lines.next().expect("it has a first line");
        check_banner(banner).map_err(|reason| refused(1, reason))?;
    }
    let comment = if market { '%' } else { '#' };
    let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(comment));
    if market {
        // The line of sizes. The number of entries is not needed.
        let (line, sizes) = lines
            .next()
            .ok_or_else(|| refused(1, "the line of sizes is missing"))?;
        let sizes: Vec<Option<usize>> = fields(sizes).map(|field| field.parse().ok()).collect();
        let fits = matches!(sizes[..], [Some(rows), Some(columns), Some(_)]
            if rows == vertices && columns == vertices);
        if !fits {
            return Err(refused(
                line,
                "the sizes are not those of a square matrix with a row for each vertex",
            ));
        }
    }
    let first = usize::from(market);
    let vertex = |line: u64, field: Option<&str>| {
        let field = field.ok_or_else(|| refused(line, "an edge has two ends"))?;
        let known = by_name.get(field).copied().filter(|_| !market);
        let number = || field.parse::<usize>().ok()?.checked_sub(first);
        let found = known.or_else(number).filter(|index| *index < vertices);
        found.ok_or_else(|| {
            let last = vertices - 1 + first;
            let text =
                format!("'{field}' is not a vertex: vertices are {first} to {last}, or names");
            refused(line, &text)
        })
    };
    let mut edges = Vec::new();
    for (line, text) in lines {
        let mut fields = fields(text);
        let (from, to) = (vertex(line, fields.next())?, vertex(line, fields.next())?);
        let strength = match fields.next() {
            None => 1.0,
            Some(text) => text
                .parse()
                .ok()
                .filter(|strength: &f64| *strength >= 0.0 && strength.is_finite())
                .ok_or_else(|| refused(line, "the strength is not a finite number ≥ 0"))?,
        };
        if fields.next().is_some() {
            return Err(refused(line, "more than two vertices and a strength"));
        }
        edges.push((from, to, strength));
    }
    Ok(edges)
}

fn fields(line: &str) -> impl Iterator<Item = &str> {
    let separates = |c: char| c.is_whitespace() || c == ',' || c == ';';
    line.split(separates).filter(|field| !field.is_empty())
}

fn check_banner(banner: &str) -> std::result::Result<(), &'static str> {
    let banner = banner.to_lowercase();
    let words: Vec<&str> = banner.split_whitespace().collect();
    match words[..] {
        [
            _,
            "matrix",
            "coordinate",
            "real" | "integer" | "pattern",
            "general" | "symmetric",
        ] => Ok(()),
        _ => Err("not a Matrix Market file of coordinates (real, integer or pattern)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, names: Option<&[String]>) -> Result<Vec<(usize, usize, f64)>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph");
        std::fs::write(&path, text).unwrap();
        read_edges(&path, 3, names)
    }

    #[test]
    fn lists_and_matrix_market_are_read() {
        let list = read("# edges\n0 1\n1,2,0.5\n", None).unwrap();
        assert_eq!(list, [(0, 1, 1.0), (1, 2, 0.5)]);
        let market =
            "%%MatrixMarket matrix coordinate real symmetric\n% c\n3 3 2\n2 1 1\n3 2 0.5\n";
        assert_eq!(read(market, None).unwrap(), [(1, 0, 1.0), (2, 1, 0.5)]);
        let names = ["tp53", "brca1", "7"].map(String::from);
        let named = read("tp53\tbrca1\n7;tp53;2\n", Some(&names)).unwrap();
        assert_eq!(named, [(0, 1, 1.0), (2, 0, 2.0)]);
    }

    #[test]
    fn what_is_no_edge_is_named_by_its_line() {
        let symmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
        for (text, line) in [
            ("0 1\n0 3\n".to_owned(), 2),
            ("0\n".to_owned(), 1),
            ("0 1 -2\n".to_owned(), 1),
            ("0 1 1 1\n".to_owned(), 1),
            (format!("{symmetric}4 3 1\n1 1 1\n"), 2),
            (format!("{symmetric}3 3 1\n0 1 1\n"), 3),
            (
                "%%MatrixMarket matrix array real general\n3 3\n".to_owned(),
                1,
            ),
        ] {
            let found = read(&text, None);
            assert!(
                matches!(found, Err(Error::EdgeLine { line: at, .. }) if at == line),
                "{text}: {found:?}"
            );
        }
    }
}

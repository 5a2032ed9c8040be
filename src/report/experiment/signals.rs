//! True signals and maps, beside the estimated ones.

use std::fmt::Write;

use ndarray::{Array2, Axis};

use super::Plotted;
use super::claims::letter;
use crate::error::Result;
use crate::experiment::{Arrangement, DatasetResults};
use crate::factors::Factors;
use crate::metrics::recovery;
use crate::plot::Maps;
use crate::report::Figure;
use crate::report::signals::strips;

/// The methods whose factors are shown: the paper's, and the same without a penalty.
const SHOWN: [(&str, &str); 2] = [("altbi", "AltBi"), ("mu-t", "MU-T")];

/// The true and the estimated columns of W (and maps of H), in the same order.
pub(super) fn signals(results: &DatasetResults) -> Result<Vec<Plotted>> {
    let start = results.middle_start();
    let truth = results.truth()?;
    let rank = results.dataset.rank;
    let mut shown: Vec<(String, String, Factors)> = Vec::new();
    for (name, label) in SHOWN {
        let found = results.factors(name, start)?;
        let found = match &truth {
            Some(truth) if truth.w.ncols() <= rank => matched(truth, found)?,
            _ => found,
        };
        let title = format!("found by {label}");
        shown.push((name.into(), title, found));
    }
    if let Some(truth) = truth {
        shown.insert(0, ("truth".into(), "in truth".into(), truth));
    }
    let caption = |name: &str| {
        if name == "truth" {
            return "What X was made of, each scaled to its maximum.".to_owned();
        }
        format!(
            "At the stopping rule from start {start}, the middle one for AltBi; in the order of the \
             true components where they are known, each scaled to its maximum."
        )
    };
    let paper = |name: &str, of_w: bool| -> String {
        let figure = match (letter(results), name, of_w) {
            (Some('b'), "truth", _) => "1a",
            (Some('c'), "truth", _) => "1b",
            (Some('d'), "truth", true) => "10c",
            (Some('d'), "truth", false) => "10a",
            (Some('d'), "altbi", true) => "10d",
            (Some('d'), "altbi", false) => "10b",
            _ => return String::new(),
        };
        format!(" The paper's Figure {figure} is such a picture, of other data.")
    };
    let mut all = Vec::new();
    for (name, title, factors) in &shown {
        all.push(Plotted {
            figure: Figure {
                name: format!("w_{name}"),
                title: format!("Columns of W {title}"),
                caption: caption(name) + &paper(name, true),
                svg: strips(&factors.w.t().to_owned(), "row of X").svg(),
                tiles: Vec::new(),
            },
            csv: columns_csv(&factors.w),
        });
    }
    if let Arrangement::Maps { side } = results.dataset.layout {
        for (name, title, factors) in &shown {
            let maps = Maps::of_rows(&factors.h, [side, side]);
            all.push(Plotted {
                figure: Figure {
                    name: format!("maps_{name}"),
                    title: format!("Abundance maps {title}"),
                    caption: caption(name) + &paper(name, false),
                    svg: maps.svg(),
                    tiles: maps.tiles(),
                },
                csv: maps.csv(),
            });
        }
    }
    Ok(all)
}

/// The estimated components in the order of the true ones.
fn matched(truth: &Factors, found: Factors) -> Result<Factors> {
    let order = recovery(&truth.w, &truth.h, &found.w, &found.h)?.assignment;
    Ok(Factors {
        w: found.w.select(Axis(1), &order),
        h: found.h.select(Axis(0), &order),
    })
}

fn columns_csv(w: &Array2<f64>) -> String {
    let mut text = String::from("component,row,value\n");
    for (k, column) in w.columns().into_iter().enumerate() {
        for (i, value) in column.iter().enumerate() {
            let _ = writeln!(text, "{},{i},{value}", k + 1);
        }
    }
    text
}

//! Original signals and maps, beside what was found.

use std::fmt::Write;

use ndarray::{Array2, Axis};

use super::Plotted;
use crate::error::Result;
use crate::experiment::{DatasetResults, Layout, Truth};
use crate::metrics::recovery;
use crate::plot::Maps;
use crate::report::Figure;
use crate::report::figures::strips;

/// Whose factors are shown: the paper's method, and the same without a penalty.
const SHOWN: [(&str, &str); 2] = [("altbi", "AltBi"), ("mu-t", "MU-T")];

/// The columns of W (and maps of H) in truth and as found, in the same order.
pub(super) fn signals(results: &DatasetResults, paper: &str) -> Result<Vec<Plotted>> {
    let start = results.middle_start();
    let truth = results.truth()?;
    let rank = results.dataset.rank;
    let mut shown: Vec<(String, String, Truth)> = Vec::new();
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
    let text = format!(
        "At the stopping rule from start {start}, the middle one for AltBi; matched to the truth \
         where it is known, each scaled to its maximum."
    );
    let text = if paper.is_empty() {
        text
    } else {
        format!("{text} The paper's Figure {paper} shows such a picture.")
    };
    let mut all = Vec::new();
    for (name, title, factors) in &shown {
        all.push(Plotted {
            figure: Figure {
                name: format!("w_{name}"),
                title: format!("Columns of W {title}"),
                caption: text.clone(),
                svg: strips(&factors.w.t().to_owned(), "row of X").svg(),
                wide: false,
            },
            csv: columns_csv(&factors.w),
        });
    }
    if let Layout::Maps { side } = results.dataset.layout {
        for (name, title, factors) in &shown {
            let maps = Maps {
                maps: maps(&factors.h, side),
            };
            all.push(Plotted {
                figure: Figure {
                    name: format!("maps_{name}"),
                    title: format!("Abundance maps {title}"),
                    caption: text.clone(),
                    svg: maps.svg(),
                    wide: true,
                },
                csv: maps.csv(),
            });
        }
    }
    Ok(all)
}

/// The found components in the order of the true ones.
fn matched(truth: &Truth, found: Truth) -> Result<Truth> {
    let order = recovery(&truth.w, &truth.h, &found.w, &found.h)?.assignment;
    Ok(Truth {
        w: found.w.select(Axis(1), &order),
        h: found.h.select(Axis(0), &order),
    })
}

fn maps(h: &Array2<f64>, side: usize) -> Vec<(String, Array2<f64>)> {
    let rows = h.rows().into_iter().enumerate();
    rows.map(|(k, row)| {
        let map = Array2::from_shape_fn((side, side), |(y, x)| row[y * side + x]);
        (format!("{}", k + 1), map)
    })
    .collect()
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

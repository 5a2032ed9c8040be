//! Notes on standard error about a successful run.

use crate::{Initial, Outcome, Selection};

use super::Run;
use crate::cli::output::complain;

/// An outer error below this share of the first one counts as a perfect fit.
const ROUNDING: f64 = 1e-9;
/// A note appears if the last outer error is above the lowest by this factor.
const MUCH_WORSE: f64 = 1.1;

/// A note appears if one row or column carries more than this share of X.
const MOST: f64 = 0.8;

impl Run<'_> {
    /// Prints the notes about a successful run.
    pub(super) fn warn(&self, outcome: &Outcome) {
        let given = self.arguments.init_w.is_some() && self.arguments.init_h.is_some();
        if self.solver.initial == Initial::Nndsvd && self.solver.rank > 1 && !given {
            complain(
                "note: multiplicative updates keep the zeros of --init nndsvd; --init nndsvda \
                 fills them",
            );
        }
        if self.scaling.is_none() {
            let [(row, of_row), (column, of_column)] = self.largest;
            let name = |kind: &str, named: bool, name: String| match named {
                true => format!("{kind} {name}"),
                false => name,
            };
            let labels = &self.labels;
            let row = name("row", labels.rows.is_some(), labels.row(row));
            let column = name("column", labels.columns.is_some(), labels.column(column));
            let [n, m] = self.problem.whole_shape();
            for (line, share, lines) in [(row, of_row, n), (column, of_column, m)] {
                if share > MOST && lines > 1 {
                    let percent = (100.0 * share).floor();
                    complain(format!(
                        "note: {line} carries {percent} % of X: see --scale"
                    ));
                }
            }
        }
        let iterates = outcome.history.iter();
        let best = iterates.min_by(|a, b| a.outer_error.total_cmp(&b.outer_error));
        if let Some(best) = best
            && self.solver.select == Selection::Last
            && outcome.outer_error > MUCH_WORSE * best.outer_error
            && outcome.outer_error > ROUNDING * outcome.history[0].outer_error
        {
            complain(format!(
                "note: the outer error of the last iterate is {:.3e}, that of iteration {} was \
                 {:.3e}; --select best keeps it",
                outcome.outer_error, best.iteration, best.outer_error
            ));
        }
    }
}

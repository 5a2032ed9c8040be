//! The comparison as a table.

use crate::report::{FEWEST, ratio};
use crate::tuner::{Contest, Standing};

use crate::cli::output::say;

/// Prints errors relative to plain updates, rival by rival.
pub(super) fn print(contest: &Contest) {
    let deciding = contest.deciding();
    say("\nErrors relative to plain updates stopped early (geometric mean ± standard error):");
    say(format!(
        "{:<13}{:>16}{:>16}{:>16}{:>20}{:>8}{:>9}{:>9}",
        "rival",
        "held out",
        "judged",
        "after refit",
        "practical / rival",
        "p",
        "updates",
        "seconds"
    ));
    for rival in contest.ranking(deciding) {
        let to_plain =
            |measure: fn(&Standing) -> f64| ratio(contest.compared(rival, "plain", measure));
        let against = contest
            .compared("practical", rival, deciding)
            .filter(|_| rival != "practical");
        // (With fewer runs it cannot be below 0.05.)
        let enough = against.filter(|against| against.count >= FEWEST);
        let p = enough.map_or("–".into(), |against| format!("{:.3}", against.p));
        let mean = |measure: fn(&Standing) -> f64| {
            contest.mean(rival, measure).map_or(f64::NAN, |of| of.mean)
        };
        say(format!(
            "{:<13}{:>16}{:>16}{:>16}{:>20}{p:>8}{:>9.0}{:>9.2}",
            rival,
            to_plain(|standing| standing.held_out),
            to_plain(|standing| standing.judged),
            to_plain(|standing| standing.refit),
            ratio(against),
            mean(|standing| standing.work),
            mean(|standing| standing.seconds),
        ));
    }
}

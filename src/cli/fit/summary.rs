//! The summary of a run, in a dozen lines.

use crate::criterion::Unseen;
use crate::metrics::Recovery;
use crate::plot::short;
use crate::practical::Stage;
use crate::report::{
    Feature, PenaltyRecord, Summary, choice_in_words, components, fit_in_words, percent,
    weights_in_words,
};
use crate::{Divergence, Method, Outcome, StopReason};

use super::{Run, restarts};
use crate::cli::output::say;

/// Number of components, and of columns and rows per component, on a terminal.
const COMPONENTS: usize = 5;
const FEATURES: usize = 3;
const ROWS: usize = 2;
/// Largest number of letters of a feature's name.
const LETTERS: usize = 40;

fn line(name: &str, value: String) {
    say(format!("{name:<16}{value}"));
}

/// "alcohol (11 %), ash (9 %)".
fn listed(features: &[Feature]) -> String {
    let one = |feature: &Feature| {
        let mut name: String = feature.name.chars().take(LETTERS).collect();
        if feature.name.chars().count() > LETTERS {
            name.push('…');
        }
        format!("{name} ({})", percent(feature.share))
    };
    let all: Vec<String> = features.iter().map(one).collect();
    all.join(", ")
}

/// Returns true if plain updates won in the preset practical.
fn took_plain(summary: &Summary<toml::Table>) -> bool {
    let choice = summary.choice.as_ref();
    let taken = choice.and_then(|choice| choice.candidates.get(choice.chosen));
    taken.is_some_and(|taken| taken.stage == Stage::Plain)
}

impl Run<'_> {
    pub(super) fn print(
        &self,
        summary: &Summary<toml::Table>,
        outcome: &Outcome,
        recovery: Option<&Recovery>,
    ) {
        let [n, m] = summary.shape;
        let source = match &self.arguments.data {
            Some(source) => source.clone(),
            None => "demo (benchmark A, seed 0)".into(),
        };
        line("data", format!("{source}, {n}×{m}"));
        if let Some(sparse) = &summary.sparse {
            let others = match sparse.zeros.as_str() {
                "missing" => "missing (--zeros missing)",
                _ => "zeros (--zeros data)",
            };
            let (stored, share) = (sparse.stored, 100.0 * sparse.share);
            let text = format!("{stored} entries ({share:.2} %); the others are {others}");
            line("stored", text);
        }
        self.answers(summary, outcome);
        if let Some(reading) = &summary.table {
            line("read as", reading.to_string());
        }
        line("method", self.describe_method(took_plain(summary)));
        if let Some(scaling) = &self.scaling {
            let lines = scaling.scale;
            line(
                "scale",
                format!("{lines} of X, each divided by its root mean square"),
            );
        }
        if let Some(reason) = &summary.outer_reason {
            line("outer error", reason.clone());
        } else if self.outer.unseen != Unseen::Nothing || self.outer.divergence.is_some() {
            line("outer error", summary.outer.clone());
        }
        let (reason, iterations) = (summary.stop_reason, summary.iterations);
        // The tuned run of practical always makes all its iterations.
        if summary.choice.is_some() && reason == StopReason::MaxIterations {
            line("tuned", format!("over {iterations} iterations"));
        } else {
            line("stopped", format!("{reason} after {iterations} iterations"));
        }
        if !summary.starts.is_empty() {
            let lines = restarts::lines(&summary.starts, summary.seed);
            for (index, text) in lines.into_iter().enumerate() {
                line(if index == 0 { "starts" } else { "" }, text);
            }
        }
        if let Some(before) = &summary.continued {
            let (run, iterations) = (&before.run, before.iterations);
            line(
                "continued",
                format!("from {run}, which ended after {iterations} iterations"),
            );
        }
        if outcome.selected < iterations && summary.choice.is_none() {
            let selected = outcome.selected;
            line(
                "kept",
                format!("iteration {selected}, which has the lowest outer error"),
            );
        }
        // (After a refit the divergence is over all entries.)
        let share = summary.held_out.as_ref();
        if let Some(share) = share.filter(|_| summary.choice.is_none()) {
            let training = summary.divergence / share.training_weight;
            let held_out = summary.outer_error / share.held_out_weight;
            line(
                "errors",
                format!(
                    "outer {} per entry, training {}",
                    short(held_out),
                    short(training)
                ),
            );
        }
        if let Some(choice) = &summary.choice {
            let weight = summary.held_out.map_or(1.0, |of| of.held_out_weight);
            for (index, candidate) in choice.candidates.iter().enumerate() {
                let name = if index == 0 { "candidates" } else { "" };
                let taken = if index == choice.chosen {
                    ", taken"
                } else {
                    ""
                };
                let (error, stage) = (candidate.outer_error / weight, candidate.stage);
                line(
                    name,
                    format!("outer error {} per entry: {stage}{taken}", short(error)),
                );
            }
            if self.arguments.refit != Some(0) {
                let text = "on all entries, from the factors of the one taken";
                line("refit", text.into());
            }
        }
        let sum = |value: f64| {
            let each = value / summary.entries;
            format!("{} per entry, {} in all", short(each), short(value))
        };
        line("divergence", sum(summary.divergence));
        // (Without a penalty they are the same.)
        if summary.objective != summary.divergence {
            line("objective", sum(summary.objective));
        }
        let of_paper = summary.paper_relative_error;
        let relative = if summary.relative_error.is_nan() {
            "not defined: X is constant, and one number fits it".into()
        } else {
            format!("{} of a constant fit", short(summary.relative_error))
        };
        line(
            "relative error",
            format!("{relative} ({} in the paper's definition)", short(of_paper)),
        );
        let (of_w, of_h) = (summary.sparsity_w, summary.sparsity_h);
        line("sparsity", format!("W {of_w:.1} %, H {of_h:.1} %"));
        if let Some(recovery) = recovery {
            let (w, h) = (recovery.mean_w(), recovery.mean_h());
            let text = format!("mean SIR W {w:.2} dB, H {h:.2} dB against the true factors");
            line("recovery", text);
        }
        line("engine", outcome.engine.to_string());
        let seconds = match summary.seconds < 0.01 {
            true => "less than 0.01 s".into(),
            false => format!("{:.2} s", summary.seconds),
        };
        line("time", seconds);
        let place = match &self.folder {
            Some(folder) => format!("{} (see report.html)", folder.path().display()),
            None => "nowhere; --out DIR keeps the results".into(),
        };
        line("written to", place);
    }

    /// The components, the fit and the verdict on the penalty, in words.
    fn answers(&self, summary: &Summary<toml::Table>, outcome: &Outcome) {
        let scaling = self.scaling.as_ref();
        let all = components(&outcome.w, &outcome.h, scaling, &self.labels, FEATURES);
        for (index, component) in all.iter().take(COMPONENTS).enumerate() {
            let name = if index == 0 { "found" } else { "" };
            let (number, share) = (component.number, percent(component.share));
            let columns = listed(&component.columns);
            let rows = listed(&component.rows[..component.rows.len().min(ROWS)]);
            line(
                name,
                format!("component {number} ({share} of WH): columns {columns}; rows {rows}"),
            );
        }
        if all.len() > COMPONENTS {
            line("", format!("… and {} more", all.len() - COMPONENTS));
        }
        let outer = summary.relative_outer_error();
        let refitted = summary.choice.is_some() && self.arguments.refit != Some(0);
        line("fit", fit_in_words(summary.relative_error, outer, refitted));
        let names: Vec<String> = summary
            .penalties
            .iter()
            .map(PenaltyRecord::describe)
            .collect();
        let mut name = "penalty";
        if let Some(choice) = &summary.choice {
            let entries = summary.held_out.map(|share| share.held_out_weight);
            line(name, choice_in_words(choice, entries, &names.join(", ")));
            name = "";
        }
        let unpenalised = matches!(self.solver.method, Method::Mu | Method::MuT);
        if names.is_empty() {
            line(name, "none: there is no λ".into());
        } else if unpenalised {
            line(name, "none: this method has no penalty".into());
        } else if !took_plain(summary) {
            for (penalty, group) in names.iter().zip(outcome.weights()) {
                let weights: Vec<f64> = group.lambda.iter().copied().collect();
                line(name, format!("{penalty}: {}", weights_in_words(&weights)));
                name = "";
            }
        }
    }

    fn describe_method(&self, took_plain: bool) -> String {
        let (solver, penalty) = (&self.solver, self.arguments.penalties.describe());
        let (rank, t) = (solver.rank, solver.bunch);
        let divergence = self.arguments.divergence.name();
        let common = format!("rank {rank}: {divergence} divergence");
        match solver.method {
            _ if took_plain => format!("plain updates stopped early, {common}, no penalty"),
            Method::AltBi => format!("AltBi, {common}, {penalty}, T = {t}"),
            Method::Mu => format!("MU, {common}"),
            Method::PenalizedMu => format!("P-MU, {common}, {penalty} with fixed λ"),
            Method::MuT => format!("MU-T, {common}, T = {t}"),
            Method::Frozen => format!("frozen λ, {common}, {penalty}, T = {t}"),
        }
    }
}

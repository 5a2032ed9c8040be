//! `--restarts N`: several starts, the best of them kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::criterion::Unseen;
use crate::plot::short;
use crate::report::shell_quoted;
use crate::solver::{Restarted, StartRecord, restarts};
use crate::{Error, Initial, Result};

use super::keeper::{Keeper, Starts};
use super::{FitArguments, Run};
use crate::cli::Ending;
use crate::cli::checkpoints::interruption;
use crate::cli::output::complain;
use crate::cli::preset::Preset;

/// Starts that the summary shows one by one.
const SHOWN: usize = 20;

/// Refuses flags that contradict several starts.
pub(super) fn check(arguments: &FitArguments) -> Result<()> {
    let refuse = |second, reason| {
        Err(Error::Conflict {
            first: "--restarts",
            second,
            reason,
        })
    };
    let given = arguments.init_w.is_some() && arguments.init_h.is_some();
    let initial = arguments.settings_of_solver().initial;
    let random = matches!(initial, Initial::Random | Initial::Uniform);
    match arguments.restarts {
        0 => Error::require(false, "the number of starts", 0.0, "at least 1"),
        1 => Ok(()),
        _ if arguments.preset == Preset::Practical => refuse(
            "--preset practical",
            "practical makes several runs of its own from one start",
        ),
        _ if arguments.continue_.is_some() => {
            refuse("--continue", "a run goes on from its own factors")
        }
        _ if given || !random => refuse(
            "a start that is not random",
            "all starts would be the same; --init random or uniform draws them",
        ),
        _ => Ok(()),
    }
}

impl Run<'_> {
    /// The best of several starts; some may have been made before.
    pub(super) fn best_of_starts(&self, resumed: bool) -> Result<Ending> {
        let starts = Arc::new(Starts::new(
            self.folder.clone(),
            (&self.config, &self.inputs_to_keep),
            &self.data_hash,
            interruption(),
            resumed,
        ));
        if let Some(of) = self.restarted(&starts)? {
            return self.conclude(of.outcome, None, of.starts, starts.folder_made());
        }
        self.progress.clear();
        match &self.folder {
            Some(folder) => complain(format!(
                "interrupted; go on with\n  altbi resume {}",
                shell_quoted(folder.path())
            )),
            None => complain("interrupted; nothing is kept, because no --out was given"),
        }
        Ok(Ending::Interrupted)
    }

    /// All starts except those that were finished before. `None` after an interruption.
    fn restarted(&self, starts: &Arc<Starts>) -> Result<Option<Restarted>> {
        let (first, count) = (self.solver.seed, self.arguments.restarts);
        let seeds: Vec<u64> = (0..count as u64).map(|k| first.wrapping_add(k)).collect();
        let threads = match self.solver.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let done = AtomicUsize::new(0);
        self.progress.steps("starts", count, 0);
        let by_outer_error = self.outer.unseen != Unseen::Nothing;
        restarts(&seeds, threads, by_outer_error, |seed, threads| {
            let config = self.solver.clone().with_seed(seed).with_threads(threads);
            let earlier = starts.earlier(seed)?;
            let keeper = Keeper::new(seed, starts, earlier.as_ref(), &self.problem)?;
            let solver = self.solver_with(&config, earlier.is_none())?;
            let mut solver = solver.observe(keeper.clone());
            let outcome = match &earlier {
                Some(earlier) => solver.resume(&self.problem, earlier)?,
                None => solver.run(&self.problem)?,
            };
            keeper.keep()?;
            let done = 1 + done.fetch_add(1, Ordering::SeqCst);
            let divergence = outcome.divergence;
            self.progress
                .at(done, || format!("seed {seed} has D {divergence:.3e}"));
            Ok(outcome)
        })
    }
}

/// The starts as lines of the summary.
pub(super) fn lines(starts: &[StartRecord], kept: u64) -> Vec<String> {
    let errors = || starts.iter().map(|start| start.relative_error);
    let least = errors().fold(f64::INFINITY, f64::min);
    let most = errors().fold(f64::NEG_INFINITY, f64::max);
    let count = starts.len();
    let mut lines = vec![format!(
        "{count}, relative errors from {} to {}; seed {kept} is kept",
        short(least),
        short(most)
    )];
    if count <= SHOWN {
        lines.extend(starts.iter().map(|start| {
            let (seed, error) = (start.seed, start.relative_error);
            let (of_w, of_h) = (start.cosine_w, start.cosine_h);
            let kept = if seed == kept { ", kept" } else { "" };
            format!(
                "seed {seed}: relative error {}, mean cosine with the one kept: W {of_w:.3}, H \
                 {of_h:.3}{kept}",
                short(error)
            )
        }));
    }
    lines
}

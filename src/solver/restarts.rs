//! Several starts, the best of them kept.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{Outcome, StopReason};
use crate::error::{Error, Result};
use crate::metrics::likeness;

/// The result of one start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StartRecord {
    /// The seed of its factors.
    pub seed: u64,
    /// Outer iterations.
    pub iterations: usize,
    /// D(X, WH).
    pub divergence: f64,
    /// E, the outer error.
    pub outer_error: f64,
    /// D(X, WH) / D(X, mean of X).
    pub relative_error: f64,
    /// Mean cosine of W's components with those of the kept start.
    pub cosine_w: f64,
    /// The same of H's components.
    pub cosine_h: f64,
}

/// The result of several starts.
#[derive(Debug, Clone)]
pub(crate) struct Restarted {
    /// The outcome of the best start.
    pub outcome: Outcome,
    /// All starts, by their seeds.
    pub starts: Vec<StartRecord>,
}

/// Makes a start for each seed and keeps the best one: the one with the lowest outer error if
/// `by_outer_error`, otherwise the one with the lowest divergence. The first of equal ones is kept.
/// A start that broke down is kept only if all did.
///
/// `fit` gets a seed and a number of threads. If there are at least as many starts as `threads`,
/// they run in parallel with one thread each. Otherwise they run one after another with all
/// threads. The result is the same.
///
/// Returns `None` if a start was interrupted. No other start begins then.
///
/// # Errors
/// The first error of `fit`; [`Error::Threads`].
pub(crate) fn restarts(
    seeds: &[u64],
    threads: usize,
    by_outer_error: bool,
    fit: impl Fn(u64, usize) -> Result<Outcome> + Sync,
) -> Result<Option<Restarted>> {
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(vec![None; seeds.len()]);
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    let work = |threads: usize| {
        while !over.load(Ordering::SeqCst) {
            let start = next.fetch_add(1, Ordering::SeqCst);
            let Some(seed) = seeds.get(start) else {
                return;
            };
            match fit(*seed, threads) {
                Ok(outcome) => {
                    if outcome.stop_reason == StopReason::Interrupted {
                        over.store(true, Ordering::SeqCst);
                    }
                    outcomes.lock()[start] = Some(outcome);
                }
                Err(error) => {
                    over.store(true, Ordering::SeqCst);
                    failed.lock().get_or_insert(error);
                }
            }
        }
    };
    if seeds.len() < threads {
        work(threads);
    } else {
        side_by_side(threads, || work(1))?;
    }
    if let Some(error) = failed.into_inner() {
        return Err(error);
    }
    if over.into_inner() {
        return Ok(None);
    }
    let outcomes: Vec<Outcome> = outcomes.into_inner().into_iter().flatten().collect();
    best_of(seeds, outcomes, by_outer_error).map(Some)
}

/// Threads, each with a rayon pool of one thread, so that the work of a start stays on its thread.
fn side_by_side(threads: usize, work: impl Fn() + Sync) -> Result<()> {
    let refused = |reason: String| Error::Threads { threads, reason };
    let pools: Vec<_> = (0..threads)
        .map(|_| rayon::ThreadPoolBuilder::new().num_threads(1).build())
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| refused(error.to_string()))?;
    std::thread::scope(|scope| {
        for pool in &pools {
            let spawned = std::thread::Builder::new().spawn_scoped(scope, || pool.install(&work));
            spawned.map_err(|error| refused(error.to_string()))?;
        }
        Ok(())
    })
}

fn best_of(seeds: &[u64], outcomes: Vec<Outcome>, by_outer_error: bool) -> Result<Restarted> {
    let measure = |outcome: &Outcome| match by_outer_error {
        _ if outcome.breakdown.is_some() => f64::INFINITY,
        true => outcome.outer_error,
        false => outcome.divergence,
    };
    let measures = outcomes.iter().map(measure).enumerate();
    let best = measures.min_by(|a, b| a.1.total_cmp(&b.1));
    let Some((best, _)) = best else {
        return Err(Error::Setting {
            setting: "the number of starts",
            value: 0.0,
            range: "at least 1",
        });
    };
    let mut starts = Vec::with_capacity(outcomes.len());
    for (seed, outcome) in seeds.iter().zip(&outcomes) {
        let (kept, this) = (outcomes[best].factors(), outcome.factors());
        let [cosine_w, cosine_h] = likeness(&kept, &this)?;
        starts.push(StartRecord {
            seed: *seed,
            iterations: outcome.iterations,
            divergence: outcome.divergence,
            outer_error: outcome.outer_error,
            relative_error: outcome.relative_error,
            cosine_w,
            cosine_h,
        });
    }
    let mut outcomes = outcomes;
    Ok(Restarted {
        outcome: outcomes.swap_remove(best),
        starts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AltBiConfig;

    #[test]
    fn the_best_start_is_kept_whatever_the_number_of_threads() {
        let entry = |(i, j)| 0.1 + ((i * 12 + j) as f64 * 4.513).fract();
        let x = ndarray::Array2::from_shape_fn((30, 12), entry);
        let fit = |seed: u64, threads: usize| {
            let config = AltBiConfig::new(3).with_seed(seed).with_threads(threads);
            config.with_max_iterations(20).fit(&x)
        };
        let of = |threads| restarts(&[3, 4, 5], threads, false, fit).unwrap().unwrap();
        let (two, many) = (of(2), of(4));
        assert_eq!(two.starts, many.starts);
        assert_eq!(two.outcome.w, fit(two.outcome.seed(), 1).unwrap().w);
        let least = two.starts.iter().map(|start| start.divergence);
        assert_eq!(least.fold(f64::INFINITY, f64::min), two.outcome.divergence);
        let kept = two
            .starts
            .iter()
            .find(|start| start.seed == two.outcome.seed());
        assert!((kept.unwrap().cosine_w - 1.0).abs() < 1e-9);
        assert!(two.starts.iter().all(|start| start.cosine_h <= 1.0 + 1e-9));
        let refused = restarts(&[1, 2], 2, false, |_, _| Err(Error::TooSmall));
        assert!(matches!(refused, Err(Error::TooSmall)));
    }
}

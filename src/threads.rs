//! Pools of threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{available_parallelism, sleep, yield_now};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// A thread without work stays awake for this long.
const PATIENCE: Duration = Duration::from_millis(1);
/// Then it sleeps, and looks for work this often.
const NAP: Duration = Duration::from_micros(100);

/// A new pool of threads.
///
/// # Errors
/// [`Error::Threads`] if the system does not start so many.
pub(crate) fn new_pool(threads: usize) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::Threads {
        threads,
        reason: error.to_string(),
    })
}

/// Runs work in a pool of threads of its own. The threads stay awake between tasks.
///
/// An update of a small matrix takes a tenth of a millisecond. Waking a thread for it costs about as
/// much as the thread saves. A thread that has found no work for a millisecond sleeps after all.
///
/// ```
/// let sum = altbi::threads::in_own_pool(2, || {
///     let (a, b) = rayon::join(|| 1 + 2, || 3 + 4);
///     a + b
/// })?;
/// assert_eq!(sum, 10);
/// # Ok::<(), altbi::Error>(())
/// ```
///
/// # Errors
/// [`Error::Threads`] if the system does not start so many threads.
pub fn in_own_pool<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> Result<R> {
    let pool = new_pool(threads)?;
    // More threads than processors would take time from each other.
    let processors = available_parallelism().map_or(1, usize::from);
    Ok(match threads {
        1 => pool.install(work),
        threads if threads > processors => pool.install(work),
        _ => pool.install(|| awake(work)),
    })
}

/// Runs work on a thread of a pool, and keeps the others awake. Nothing else must use the pool.
fn awake<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let own = rayon::current_thread_index();
    let done = AtomicBool::new(false);
    rayon::scope(|scope| {
        // (Each thread gets its own task of these, which no other thread can take.)
        scope.spawn_broadcast(|_, context| {
            if Some(context.index()) != own {
                look_for_work(&done);
            }
        });
        let _ending = Ending(&done);
        work()
    })
}

/// Says that the work is done, also after a panic.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Does the tasks of the pool until the work is done.
fn look_for_work(done: &AtomicBool) {
    let mut last = Instant::now();
    while !done.load(Ordering::Acquire) {
        if rayon::yield_now() == Some(rayon::Yield::Executed) {
            last = Instant::now();
        } else if last.elapsed() < PATIENCE {
            yield_now();
        } else {
            sleep(NAP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn work_in_an_own_pool_ends_whatever_it_waits_for() {
        for threads in [1, 2, 3] {
            let sum = in_own_pool(threads, || {
                let sums = (0..200u64).map(|round| {
                    if round % 50 == 0 {
                        sleep(2 * PATIENCE);
                    }
                    (0..1000u64).into_par_iter().map(|k| k * round).sum::<u64>()
                });
                sums.sum::<u64>()
            });
            assert_eq!(sum.unwrap(), 499_500 * 19_900);
        }
    }

    #[test]
    fn a_panic_ends_it_too() {
        let ended = std::panic::catch_unwind(|| in_own_pool::<()>(2, || panic!("on purpose")));
        assert!(ended.is_err());
    }
}

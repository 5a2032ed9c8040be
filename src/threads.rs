//! Pools of threads.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{available_parallelism, sleep, yield_now};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// A thread without work asks for it all the time for this long.
const EAGER: Duration = Duration::from_micros(20);
/// A thread without work stays awake for this long.
const PATIENCE: Duration = Duration::from_millis(1);
/// Then it sleeps, first for this long, and twice as long each time it finds no work.
const NAP: Duration = Duration::from_micros(100);
/// The longest sleep.
const LONGEST_NAP: Duration = Duration::from_millis(5);

/// A new pool of threads, of as many as rayon chooses if `threads` is 0.
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

/// Runs work in a pool of threads of its own, of as many as rayon chooses if `threads` is 0. The
/// threads stay awake between tasks, unless there are more of them than processors.
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
    let threads = pool.current_num_threads();
    Ok(match (2..=processors).contains(&threads) {
        true => pool.install(|| awake(work)),
        false => pool.install(work),
    })
}

/// Runs work on a thread of a pool, and keeps the others awake. Nothing else must use the pool.
fn awake<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    let own = rayon::current_thread_index();
    let (started, done) = (AtomicUsize::new(1), AtomicBool::new(false));
    rayon::scope(|scope| {
        // (Every thread gets one of these tasks. No other thread can take it.)
        scope.spawn_broadcast(|_, context| {
            if Some(context.index()) != own {
                started.fetch_add(1, Ordering::AcqRel);
                look_for_work(&done);
            }
        });
        // The work begins after them. If a thread began its task while it waits inside a part of the
        // work, that part would never end.
        while started.load(Ordering::Acquire) < rayon::current_num_threads() {
            yield_now();
        }
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
    let (mut last, mut nap) = (Instant::now(), NAP);
    while !done.load(Ordering::Acquire) {
        if rayon::yield_now() == Some(rayon::Yield::Executed) {
            (last, nap) = (Instant::now(), NAP);
        } else if last.elapsed() < EAGER {
            spin_loop();
        } else if last.elapsed() < PATIENCE {
            yield_now();
        } else {
            sleep(nap);
            nap = LONGEST_NAP.min(2 * nap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn work_in_an_own_pool_ends_whatever_it_waits_for() {
        for threads in [0, 1, 2, 3] {
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

    /// The first tasks come while the threads start.
    #[test]
    fn work_that_divides_itself_at_once_ends() {
        fn halves(depth: u32) -> u64 {
            match depth {
                0 => 1,
                _ => {
                    let (a, b) = rayon::join(|| halves(depth - 1), || halves(depth - 1));
                    a + b
                }
            }
        }
        for _ in 0..300 {
            assert_eq!(in_own_pool(2, || halves(8)).unwrap(), 256);
        }
    }

    #[test]
    fn a_panic_ends_it_too() {
        let ended = std::panic::catch_unwind(|| in_own_pool::<()>(2, || panic!("on purpose")));
        assert!(ended.is_err());
    }
}

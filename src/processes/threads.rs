//! Threads of one program as processes.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use super::Communicator;
use crate::numerics::add;

/// One of several threads that share a run like processes.
///
/// It is for tests. Code that runs here also runs under MPI.
///
/// ```
/// use altbi::processes::{Processes, Threads};
/// let sums: Vec<f64> = Threads::run(3, |processes| {
///     processes.total(1.0 + processes.rank() as f64)
/// });
/// assert_eq!(sums, [6.0, 6.0, 6.0]);
/// ```
#[derive(Debug)]
pub struct Threads {
    rank: usize,
    table: Arc<Table>,
}

/// The common state of all threads.
#[derive(Debug)]
struct Table {
    size: usize,
    round: Mutex<Round>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Round {
    /// The numbers of this round so far.
    brought: Vec<Option<Vec<f64>>>,
    count: usize,
    /// The number of finished rounds, and the numbers of the last one.
    over: u64,
    last: Arc<Vec<Vec<f64>>>,
    /// True after a thread has panicked.
    broken: bool,
}

impl Threads {
    /// Runs the same work on `size` threads, and returns their results.
    ///
    /// # Panics
    /// If one of them panics.
    pub fn run<R: Send>(size: usize, work: impl Fn(super::Processes) -> R + Sync) -> Vec<R> {
        let table = Arc::new(Table {
            size,
            round: Mutex::new(Round {
                brought: vec![None; size],
                ..Round::default()
            }),
            changed: Condvar::new(),
        });
        std::thread::scope(|scope| {
            let threads = (0..size).map(|rank| {
                let (table, work) = (table.clone(), &work);
                scope.spawn(move || work(super::Processes::new(Self { rank, table })))
            });
            let threads: Vec<_> = threads.collect();
            let results = threads.into_iter().map(|thread| thread.join());
            let results: Vec<std::thread::Result<R>> = results.collect();
            let results = results.into_iter();
            results
                .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    /// Adds the numbers of this thread, waits for the other threads, and returns the numbers of
    /// all.
    fn meet(&self, numbers: Vec<f64>) -> Arc<Vec<Vec<f64>>> {
        let Table {
            size,
            round,
            changed,
        } = self.table.as_ref();
        let mut round = round.lock();
        round.brought[self.rank] = Some(numbers);
        round.count += 1;
        let mine = round.over;
        if round.count == *size {
            let brought = round.brought.iter_mut().map(|numbers| numbers.take());
            let brought: Vec<Vec<f64>> = brought.map(|of| of.expect("all have come")).collect();
            round.last = Arc::new(brought);
            round.count = 0;
            round.over += 1;
            changed.notify_all();
        } else {
            while round.over == mine && !round.broken {
                changed.wait(&mut round);
            }
        }
        assert!(round.over > mine, "another thread has panicked");
        round.last.clone()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.table.round.lock().broken = true;
            self.table.changed.notify_all();
        }
    }
}

impl Communicator for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.table.size
    }

    fn sum(&self, values: &mut [f64]) {
        let all = self.meet(values.to_vec());
        values.fill(0.0);
        for part in all.iter() {
            add(values, part);
        }
    }

    fn largest(&self, values: &mut [f64]) {
        for part in self.meet(values.to_vec()).iter() {
            let pairs = values.iter_mut().zip(part);
            pairs.for_each(|(largest, value)| *largest = largest.max(*value));
        }
    }

    fn gather(&self, part: &[f64], on_all: bool) -> Option<Vec<f64>> {
        let all = self.meet(part.to_vec());
        (on_all || self.rank == 0).then(|| all.concat())
    }

    fn exchange(&self, to_before: &[f64], to_after: &[f64]) -> [Option<Vec<f64>>; 2] {
        let before = self.meet(to_after.to_vec());
        let after = self.meet(to_before.to_vec());
        [
            self.rank.checked_sub(1).map(|rank| before[rank].clone()),
            after.get(self.rank + 1).cloned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::Processes;
    use super::*;
    use crate::error::Error;

    #[test]
    fn numbers_travel() {
        for size in 1..5 {
            let found = Threads::run(size, |processes| {
                let rank = processes.rank() as f64;
                let mut sums = [rank, 1.0];
                processes.sum(&mut sums);
                let mut largest = [rank, -rank];
                processes.largest(&mut largest);
                let all = processes.gather_on_all(vec![rank; processes.rank()]);
                let first = processes.gather(vec![rank]);
                let ends = processes.exchange(&[rank + 0.25], &[rank + 0.5]);
                (sums, largest, all, first, ends)
            });
            let last = (size - 1) as f64;
            for (rank, (sums, largest, all, first, ends)) in found.into_iter().enumerate() {
                assert_eq!(sums, [last * (last + 1.0) / 2.0, size as f64]);
                assert_eq!(largest, [last, 0.0]);
                let expected: Vec<f64> = (0..size).flat_map(|of| vec![of as f64; of]).collect();
                assert_eq!(all, expected);
                let expected: Vec<f64> = (0..size).map(|of| of as f64).collect();
                assert_eq!(first, (rank == 0).then_some(expected));
                let before = (rank > 0).then(|| vec![rank as f64 - 0.5]);
                let after = (rank + 1 < size).then(|| vec![rank as f64 + 1.25]);
                assert_eq!(ends, [before, after]);
            }
        }
    }

    #[test]
    fn where_one_fails_none_goes_on() {
        let found = Threads::run(4, |processes| {
            let fails = processes.rank() % 2 == 1;
            let result = if fails { Err(Error::TooSmall) } else { Ok(()) };
            // A second call must not change the result.
            processes.agree(processes.agree(result))
        });
        for (rank, result) in found.iter().enumerate() {
            match rank {
                1 => assert!(matches!(result, Err(Error::TooSmall))),
                _ => assert!(matches!(result, Err(Error::OtherProcess { process: 1 }))),
            }
        }
    }

    #[test]
    #[should_panic(expected = "all must make the same calls")]
    fn calls_that_differ_are_noticed() {
        Threads::run(2, |processes| {
            let processes: Processes = processes.checked(true);
            match processes.rank() {
                0 => processes.sum(&mut [1.0, 2.0]),
                _ => processes.largest(&mut [1.0, 2.0]),
            }
        });
    }
}

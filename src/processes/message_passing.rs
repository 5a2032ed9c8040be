//! The processes of an MPI job.

use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::environment::Universe;
use mpi::point_to_point::{Destination, Source};
use mpi::request::WaitGuard;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives};

use super::Communicator;

/// Largest count of numbers in a message, because MPI counts them in 32 bits.
const PIECE: usize = 1 << 27;

/// One process of an MPI job.
///
/// It gets the job's communicator in every call, because a handle may not move between threads. One
/// thread at a time makes calls.
#[derive(Debug)]
pub struct MessagePassing {
    rank: usize,
    size: usize,
}

impl MessagePassing {
    /// Joins the job, which ends when the [`Universe`] is dropped. Returns `None` if the program
    /// has joined before, or if MPI allows no calls from threads.
    pub fn join() -> Option<(Universe, Self)> {
        let (universe, threading) = mpi::initialize_with_threading(Threading::Serialized)?;
        if threading < Threading::Serialized {
            return None;
        }
        let world = universe.world();
        let (rank, size) = (world.rank() as usize, world.size() as usize);
        Some((universe, Self { rank, size }))
    }

    /// Ends all processes of the job at once.
    pub fn abort(code: i32) -> ! {
        SimpleCommunicator::world().abort(code)
    }

    fn reduce(&self, values: &mut [f64], operation: fn() -> SystemOperation) {
        let world = SimpleCommunicator::world();
        for piece in values.chunks_mut(PIECE) {
            let mine = piece.to_vec();
            world.all_reduce_into(&mine[..], piece, operation());
        }
    }
}

/// Sends numbers in pieces, their count first.
fn send(to: usize, numbers: &[f64]) {
    let world = SimpleCommunicator::world();
    let to = world.process_at_rank(to as i32);
    to.send(&(numbers.len() as u64));
    for piece in numbers.chunks(PIECE) {
        to.send(piece);
    }
}

fn receive(from: usize) -> Vec<f64> {
    let world = SimpleCommunicator::world();
    let from = world.process_at_rank(from as i32);
    let (count, _) = from.receive::<u64>();
    let mut numbers = vec![0.0; count as usize];
    for piece in numbers.chunks_mut(PIECE) {
        from.receive_into(piece);
    }
    numbers
}

impl Communicator for MessagePassing {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn sum(&self, values: &mut [f64]) {
        self.reduce(values, SystemOperation::sum);
    }

    fn largest(&self, values: &mut [f64]) {
        self.reduce(values, SystemOperation::max);
    }

    fn gather(&self, part: &[f64], on_all: bool) -> Option<Vec<f64>> {
        if self.rank > 0 {
            send(0, part);
            return on_all.then(|| receive(0));
        }
        let mut all = part.to_vec();
        for rank in 1..self.size {
            all.extend(receive(rank));
        }
        if on_all {
            (1..self.size).for_each(|rank| send(rank, &all));
        }
        Some(all)
    }

    fn exchange(&self, to_before: &[f64], to_after: &[f64]) -> [Option<Vec<f64>>; 2] {
        let world = SimpleCommunicator::world();
        let before = self.rank.checked_sub(1);
        let after = (self.rank + 1 < self.size).then_some(self.rank + 1);
        mpi::request::scope(|scope| {
            // Border rows are few, so they need no pieces.
            let at = |rank: usize| world.process_at_rank(rank as i32);
            let _up = before.map(|to| WaitGuard::from(at(to).immediate_send(scope, to_before)));
            let _down = after.map(|to| WaitGuard::from(at(to).immediate_send(scope, to_after)));
            let from = |rank: usize| at(rank).receive_vec::<f64>().0;
            [before.map(from), after.map(from)]
        })
    }
}

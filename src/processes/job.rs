//! The MPI job of this process.

use super::Processes;
#[cfg(not(feature = "mpi"))]
use crate::error::Error;
use crate::error::Result;

/// Environment variables in which MPI launchers give a process its number.
const TOLD: [&str; 4] = [
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
    "MPI_LOCALRANKID",
];

/// A joined job. This process leaves it when the value is dropped.
#[derive(Default)]
pub struct Job {
    processes: Processes,
    #[cfg(feature = "mpi")]
    universe: Option<mpi::environment::Universe>,
}

impl Job {
    /// Joins the job if the program was started by mpirun or a similar launcher. Otherwise the
    /// process is a job of its own.
    ///
    /// # Errors
    /// [`Error::NotBuilt`](crate::Error::NotBuilt) for a process of a job in a build without MPI,
    /// because every process would do all the work.
    pub fn join() -> Result<Self> {
        match TOLD.iter().any(|name| std::env::var_os(name).is_some()) {
            true => Self::of_mpi(),
            false => Ok(Self::default()),
        }
    }

    #[cfg(not(feature = "mpi"))]
    fn of_mpi() -> Result<Self> {
        Err(Error::NotBuilt {
            what: "MPI, by which this process was started,",
            feature: "mpi",
        })
    }

    #[cfg(feature = "mpi")]
    fn of_mpi() -> Result<Self> {
        let (universe, communicator) =
            super::MessagePassing::join().expect("the job is joined once");
        // A process that panics makes no more calls, so the others must not wait for it.
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            usual(panic);
            super::MessagePassing::abort(101);
        }));
        Ok(Self {
            processes: Processes::new(communicator),
            universe: Some(universe),
        })
    }

    /// The number of cores per process on this machine.
    pub(crate) fn cores(&self) -> usize {
        let beside = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];
        let beside = beside
            .iter()
            .find_map(|name| std::env::var(name).ok()?.parse().ok());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (cores / beside.unwrap_or(1).max(1)).max(1)
    }

    /// Its processes.
    pub fn processes(&self) -> &Processes {
        &self.processes
    }

    /// Ends all processes at once after an error that the others do not know of, because they may
    /// wait for this one.
    pub(crate) fn abandon(&self, code: i32) {
        #[cfg(feature = "mpi")]
        if self.universe.is_some() && !self.processes.is_alone() {
            super::MessagePassing::abort(code);
        }
        #[cfg(not(feature = "mpi"))]
        let _ = code;
    }
}

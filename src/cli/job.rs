//! The processes that share this command.

use std::process::ExitCode;
use std::sync::OnceLock;

use crate::processes::{Job, Processes};
use crate::{Error, Result};

use super::{Ending, output};

/// The processes, and the number of cores for this one.
static JOB: OnceLock<(Processes, usize)> = OnceLock::new();

/// The processes of this command.
pub fn processes() -> Processes {
    JOB.get()
        .map(|(processes, _)| processes.clone())
        .unwrap_or_default()
}

/// The default number of threads of a process: its share of the machine's cores. 0 for a single
/// process, which takes all cores.
pub fn threads() -> usize {
    let shared = JOB.get().filter(|(processes, _)| !processes.is_alone());
    shared.map_or(0, |(_, cores)| *cores)
}

/// Refuses a command that does not support several processes.
pub fn only_alone(command: &str) -> Result<()> {
    match processes().size() {
        1 => Ok(()),
        size => Err(Error::NotSplit {
            what: command.into(),
            processes: size,
            reason: "fit and resume can be shared; run this in one process, without mpirun",
        }),
    }
}

/// Runs a command as one process of its job, and returns its exit code.
pub fn run(command: impl FnOnce() -> Result<Ending>) -> ExitCode {
    let job = match Job::join() {
        Ok(job) => job,
        Err(error) => return exit_code(&Err(error)),
    };
    JOB.get_or_init(|| (job.processes().clone(), job.cores()));
    let result = command();
    let processes = job.processes();
    if processes.is_alone() {
        return exit_code(&result);
    }
    match result {
        // All processes know of the error. Process 0 prints the message of the one that failed.
        Err(error) if processes.has_failed_together() => {
            let said = match error {
                Error::OtherProcess { .. } => String::new(),
                error => error.to_string(),
            };
            let said = said.bytes().map(f64::from).collect();
            if let Some(said) = processes.gather(said) {
                let said: Vec<u8> = said.into_iter().map(|byte| byte as u8).collect();
                output::complain(format!("error: {}", String::from_utf8_lossy(&said)));
            }
            ExitCode::from(2)
        }
        // The other processes may wait for this one.
        Err(error) => {
            let code = exit_code(&Err(error));
            job.abandon(2);
            code
        }
        ending => exit_code(&ending),
    }
}

fn exit_code(result: &Result<Ending>) -> ExitCode {
    match result {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::CheckFailed) => ExitCode::from(1),
        Ok(Ending::Interrupted) => ExitCode::from(130),
        Err(error) => {
            output::complain(format!("error: {error}"));
            ExitCode::from(2)
        }
    }
}

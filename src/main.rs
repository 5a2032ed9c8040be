//! The command `altbi`: see `altbi --help`.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

use std::process::ExitCode;

/// Burn allocates an array per operation, and glibc returns each large one to the kernel. This
/// allocator halves the time of a bunch.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    altbi::cli::run()
}

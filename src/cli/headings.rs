//! The groups that `--help` lists flags in. `-h` leaves out the flags that few people need.

pub const DATA: &str = "Data";
pub const MODEL: &str = "Model";
pub const PENALTIES: &str = "Penalties and λ";
pub const STOPPING: &str = "Stopping";
pub const ENGINE: &str = "Engine";
pub const OUTPUT: &str = "Output";

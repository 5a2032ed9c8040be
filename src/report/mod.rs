//! What a run leaves behind.

mod run_folder;
mod summary;

pub use run_folder::{check_run_folder, write_run_folder};
pub use summary::Summary;

//! How large a matrix may be on this machine.

use std::path::Path;

use crate::error::{Error, Result};

/// The share of the memory that is free which X may take as 64-bit floats. A fit needs
/// room for two to three copies of it.
const SHARE: f64 = 0.25;

/// Refuses a matrix that this machine has no room to work on, before any of it is read.
///
/// # Errors
/// [`Error::TooLarge`] with the sizes.
pub(super) fn check_room(path: &Path, rows: usize, columns: usize) -> Result<()> {
    let needed = rows as f64 * columns as f64 * size_of::<f64>() as f64;
    // A matrix of this size fits anywhere; no need to ask.
    if needed < 1e8 {
        return Ok(());
    }
    let free = free_bytes();
    if needed <= SHARE * free {
        return Ok(());
    }
    Err(Error::TooLarge {
        path: path.into(),
        rows,
        columns,
        gigabytes: needed / 1e9,
        free: free / 1e9,
    })
}

/// Memory that programs can still have, within the limits of a container.
fn free_bytes() -> f64 {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let free = system.available_memory();
    let limited = system.cgroup_limits().map(|limits| limits.free_memory);
    limited.map_or(free, |limit| free.min(limit)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_read_and_what_does_not_is_refused_with_its_size() {
        let path = Path::new("x.npy");
        assert!(check_room(path, 1000, 1000).is_ok());
        let refused = check_room(path, 10_000_000, 10_000_000).unwrap_err();
        assert!(refused.to_string().contains("10000000×10000000"));
        assert!(free_bytes() > 0.0);
    }
}

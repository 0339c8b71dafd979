//! File systems that are mounted below a path.

use std::path::Path;

use super::error::{HostPathError, Result, call};
use crate::mountinfo::mounts;

/// What another file system covers could be read by who may not reach it otherwise, if only the covered one came along;
/// and a cell that is shown less than its caller sees would give wrong results.
pub(super) fn refuse_submounts(real: &Path) -> Result<()> {
    let text = call("look for mounts below", crate::kernel_file::read(Path::new("/proc/self/mountinfo")))?;
    let below = mounts(&text).map(|mount| mount.point).find(|point| point != real && point.starts_with(real));
    match below {
        Some(point) => Err(HostPathError::Submount { point }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_mounts_below_it_is_refused_and_what_has_none_is_not() {
        assert!(matches!(refuse_submounts(Path::new("/")), Err(HostPathError::Submount { .. })));
        assert!(refuse_submounts(Path::new("/usr/bin")).is_ok());
    }
}

//! The group of whoever starts an instance for a while: on version 2 the instance moves him out of its way, and nobody
//! brings him back but himself.

use std::path::Path;

use super::super::files::read;
use super::place::{Mount, leave_runner};
use super::{CgroupError, Hierarchies};

/// The group that this process is in, on version 2.
#[derive(Debug)]
pub struct OwnGroup {
    mount: Mount,
    relative: String,
}

impl OwnGroup {
    /// None on version 1, where nobody is moved, or where the group cannot be told.
    #[must_use]
    pub fn of_process() -> Option<Self> {
        let Ok(Hierarchies::V2(mount)) = Hierarchies::find() else { return None };
        let relative = relative_of(&mount)?;
        Some(Self { mount, relative })
    }

    /// Back into it, if this process was moved from there into a leaf of it meanwhile, which is removed. Only once the
    /// instance that did so is gone.
    ///
    /// # Errors
    /// [`CgroupError`]: the leaf is not empty, as others were moved into it as well.
    pub fn go_back(&self) -> Result<(), CgroupError> {
        if relative_of(&self.mount).as_deref() == Some(self.relative.as_str()) {
            return Ok(());
        }
        leave_runner(&self.mount, &self.mount.below(&self.relative))
    }
}

fn relative_of(mount: &Mount) -> Option<String> {
    mount.relative(&read(Path::new("/proc/self/cgroup")).ok()?)
}

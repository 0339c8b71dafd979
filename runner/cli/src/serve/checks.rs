//! What this machine must be like. Looked at before anything is made.

use std::path::PathBuf;

use super::error::{ServeError, file};

const MOUNTS: &str = "/proc/self/mountinfo";

/// Refuses, with the reason, where cells could not be had.
pub(super) fn machine() -> Result<(), ServeError> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(ServeError::Machine { machine: std::env::consts::ARCH });
    }
    if !rustix::process::geteuid().is_root() {
        return Err(ServeError::NotRoot);
    }
    cgroups(&file("read", MOUNTS, std::fs::read_to_string(MOUNTS))?)
}

/// mountinfo (proc(5)): after " - " come the file system's type, its source and its options, the controllers.
fn cgroups(mountinfo: &str) -> Result<(), ServeError> {
    let mut has_v2 = false;
    for line in mountinfo.lines() {
        let Some((_, super_block)) = line.split_once(" - ") else { continue };
        let mut words = super_block.split(' ');
        match words.next() {
            Some("cgroup") if words.nth(1).is_some_and(|options| options.split(',').any(|o| o == "memory")) => {
                return Ok(());
            }
            Some("cgroup2") => has_v2 = true,
            Some(_) | None => {}
        }
    }
    Err(ServeError::Cgroups { has_v2 })
}

/// The folder whose files decide what may run must be the operator's alone.
pub(super) fn is_operators_own(path: &std::path::Path) -> Result<(), ServeError> {
    let stat = file("look at", path, rustix::fs::stat(path))?;
    let unsafe_because = |why| ServeError::Unsafe {
        path: PathBuf::from(path),
        why,
        remedy: "chown it to root and chmod it go-w: whoever can write it decides what may run",
    };
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(unsafe_because("does not belong to the user who starts the daemon"));
    }
    if stat.st_mode & 0o022 != 0 {
        return Err(unsafe_because("can be written by others"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "31 24 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
    const V2: &str = "30 24 0:26 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const NAMED: &str = "32 24 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n";

    #[test]
    fn a_machine_with_the_v1_memory_controller_is_taken() {
        assert!(cgroups(V1).is_ok());
        assert!(cgroups(&format!("{V2}{NAMED}{V1}")).is_ok());
    }

    #[test]
    fn a_machine_with_cgroup_v2_alone_is_refused_with_that_word() {
        assert!(matches!(cgroups(V2), Err(ServeError::Cgroups { has_v2: true })));
        assert!(matches!(cgroups(&format!("{NAMED}{V2}")), Err(ServeError::Cgroups { has_v2: true })));
    }

    #[test]
    fn a_machine_without_any_cgroup_is_refused() {
        assert!(matches!(cgroups(""), Err(ServeError::Cgroups { has_v2: false })));
        assert!(matches!(cgroups(NAMED), Err(ServeError::Cgroups { has_v2: false })));
    }

    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let mode = |mode| std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        mode(0o755);
        assert!(is_operators_own(folder.path()).is_ok());
        mode(0o775);
        assert!(matches!(is_operators_own(folder.path()), Err(ServeError::Unsafe { .. })));
        mode(0o757);
        assert!(matches!(is_operators_own(folder.path()), Err(ServeError::Unsafe { .. })));
    }
}

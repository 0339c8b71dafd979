//! What this machine must be like. Looked at before anything is made.

use std::path::PathBuf;

use super::error::{ServeError, file};

/// Refuses, with the reason, where cells could not be had.
pub(super) fn machine() -> Result<(), ServeError> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(ServeError::Machine { machine: std::env::consts::ARCH });
    }
    if !rustix::process::geteuid().is_root() {
        return Err(ServeError::NotRoot);
    }
    toolcell_cell::find_groups().map_err(|source| ServeError::Cgroups { source })
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

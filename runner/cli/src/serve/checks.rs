//! What this machine must be like. Looked at before anything is made.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use toolcell_policy::Policy;

use super::error::{ServeError, file};
use super::rootless::{self, RootlessError};
use super::settings::Settings;

/// Refuses, with the reason, where cells could not be had. An ordinary user has them without groups.
pub(super) fn machine() -> Result<(), ServeError> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(ServeError::Machine { machine: std::env::consts::ARCH });
    }
    if !rustix::process::geteuid().is_root() {
        return rootless::check_settings().map_err(|source| ServeError::Rootless { source });
    }
    Ok(())
}

/// Refuses what only root can have.
pub(super) fn for_ordinary_users(settings: &Settings) -> Result<(), ServeError> {
    let refuse = |source| Err(ServeError::Rootless { source });
    match settings.uid_base {
        Some(base) => refuse(RootlessError::UidBase { base }),
        None if settings.socket_mode & 0o077 != 0 => refuse(RootlessError::SocketMode { mode: settings.socket_mode }),
        None => Ok(()),
    }
}

/// Refuses root where there are no groups, unless all that needs one was accepted as missing: then it is done without.
pub(super) fn groups(settings: &Settings) -> Result<(), ServeError> {
    let found = toolcell_cell::find_groups();
    found.or_else(|source| settings.go_without_groups(source, "cells cannot be limited here"))
}

/// Most bytes of a file that are looked at; the policy refuses one of this size with better words.
const FILE_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Whether a daemon would take this policy. Looked at before an earlier daemon is ended for it; the new one reads the
/// files again.
///
/// # Errors
/// Every mistake, with the full path of its file.
pub(crate) fn policy(folder: &Path) -> Result<(), ServeError> {
    is_operators_own(folder)?;
    let mut files = Vec::new();
    for entry in file("list", folder, std::fs::read_dir(folder))? {
        let path = file("list", folder, entry)?.path();
        // DirEntry and this follow no link.
        if !file("look at", &path, path.symlink_metadata())?.is_file() {
            let remedy = "leave only plain files in the policy folder";
            return Err(ServeError::Unsafe { path, why: "is no plain file", remedy });
        }
        let mut bytes = Vec::new();
        let read = std::fs::File::open(&path).and_then(|open| open.take(FILE_MAX_BYTES).read_to_end(&mut bytes));
        file("read", &path, read)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().escape_debug().to_string();
        files.push((name, bytes));
    }
    files.sort();
    let checked = Policy::parse(&files).and_then(|policy| policy.check_images(toolcell_images::NAMES));
    checked.map_err(|faults| ServeError::Policy { folder: folder.to_owned(), faults })
}

/// The folder whose files decide what may run must be the operator's alone.
pub(super) fn is_operators_own(path: &Path) -> Result<(), ServeError> {
    let stat = file("look at", path, rustix::fs::stat(path))?;
    let unsafe_because = |why| ServeError::Unsafe {
        path: PathBuf::from(path),
        why,
        remedy: "chown it to the user who starts the daemon and chmod it go-w: whoever can write it decides what may run",
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

    fn policy_of(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<(), ServeError>) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let checked = policy(folder.path());
        (folder, checked)
    }

    #[test]
    fn a_bad_policy_is_told_with_the_full_path_of_its_file() {
        let bad = Policy::BUILTIN_TOOLS.replacen("permission", "permision", 2);
        let (folder, checked) = policy_of(&[("tools.toml", &bad)]);
        let told = checked.unwrap_err().to_string();
        let at = format!("{}/tools.toml:", folder.path().display());
        assert_eq!(told.matches(&at).count(), told.matches("  hint: ").count(), "each mistake: {told}");
        assert!(told.contains(&at) && told.contains("permision"), "{told}");
    }

    #[test]
    fn a_policy_that_a_daemon_would_take_is_taken() {
        assert!(policy_of(&[("tools.toml", Policy::BUILTIN_TOOLS)]).1.is_ok());
        assert!(matches!(policy_of(&[]).1, Err(ServeError::Policy { .. })));
        let two = [("tools.toml", Policy::BUILTIN_TOOLS), ("tols.toml", "")];
        assert!(policy_of(&two).1.unwrap_err().to_string().contains("tols.toml"));
        let image = Policy::BUILTIN_TOOLS.replace("image = \"host\"", "image = \"nothing\"");
        assert!(policy_of(&[("tools.toml", &image)]).1.unwrap_err().to_string().contains("nothing"));
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

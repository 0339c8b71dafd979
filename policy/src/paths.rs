//! Paths as texts: one spelling per path, and where in a cell nothing may be laid over.

/// Where a cell's own parts are; nothing of the caller's may lie there or below.
const RESERVED: [&str; 11] =
    ["/proc", "/sys", "/dev", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// What a path has to look like.
pub(crate) const ABSOLUTE: &str =
    "an absolute path below 4096 bytes without '.', '..', doubled or trailing slashes and control characters";
/// What a mount point has to look like.
pub(crate) const INSIDE: &str = "a path that is not /, not /tmp itself, and not in \
    /proc /sys /dev /etc /usr /bin /sbin /lib /lib32 /lib64 or /libx32";

/// Whether a text is the one spelling of an absolute path (path_resolution(7); PATH_MAX counts the NUL).
pub(crate) fn is_absolute(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    let plain = rest.is_empty() || rest.split('/').all(|part| !matches!(part, "" | "." | ".."));
    plain && path.len() < 4096 && !path.chars().any(char::is_control)
}

/// Whether a caller's mount may stand at `path`, which is absolute.
pub(crate) fn is_mount_point(path: &str) -> bool {
    !matches!(path, "/" | "/tmp") && !RESERVED.iter().any(|reserved| lies_in(path, reserved))
}

/// Whether `path` is `folder` or below it, part by part. Both are absolute; links are not looked at.
pub(crate) fn lies_in(path: &str, folder: &str) -> bool {
    match path.strip_prefix(folder) {
        Some(rest) => rest.is_empty() || rest.starts_with('/') || folder == "/",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_spelling() {
        for good in ["/", "/a", "/a/b", "/a.b/..c", "/a b", "/ä"] {
            assert!(is_absolute(good), "{good}");
        }
        for bad in ["", "a", "./a", "//", "//a", "/a/", "/a//b", "/.", "/a/./b", "/..", "/a/../b", "/a\0", "/a\n"] {
            assert!(!is_absolute(bad), "{bad:?}");
        }
        assert!(is_absolute(&format!("/{}", "x".repeat(4094))));
        assert!(!is_absolute(&format!("/{}", "x".repeat(4095))));
    }

    #[test]
    fn a_folder_holds_what_is_below_it_and_not_its_namesakes() {
        for (path, folder) in [("/data", "/data"), ("/data/x", "/data"), ("/x", "/"), ("/", "/")] {
            assert!(lies_in(path, folder), "{path} in {folder}");
        }
        for (path, folder) in [("/database", "/data"), ("/dat", "/data"), ("/", "/data")] {
            assert!(!lies_in(path, folder), "{path} not in {folder}");
        }
    }

    #[test]
    fn the_cell_s_own_parts_cannot_be_laid_over_and_their_neighbours_can() {
        for bad in ["/", "/tmp", "/proc", "/proc/self", "/dev/null", "/etc", "/etc/x", "/usr/local/bin", "/lib64"] {
            assert!(!is_mount_point(bad), "{bad}");
        }
        for good in ["/data", "/tmp/box", "/home/me", "/etcetera", "/procs", "/opt/tool", "/library"] {
            assert!(is_mount_point(good), "{good}");
        }
    }
}

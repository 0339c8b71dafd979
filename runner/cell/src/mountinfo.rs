//! Lines of /proc/PID/mountinfo (proc(5)), read in one place: paths of any bytes, with their escapes undone.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Its number, as statx(2) has it.
    pub(crate) id: u64,
    /// What of its file system is mounted.
    pub(crate) root: PathBuf,
    /// Where.
    pub(crate) point: PathBuf,
    /// Its own options, not those of the file system.
    pub(crate) options: Vec<String>,
    /// Type of the file system.
    pub(crate) fs: String,
    /// Options of the file system.
    pub(crate) fs_options: Vec<String>,
}

impl Mount {
    /// Whether the mount has this option.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|known| known == option)
    }

    /// A line: number, parent, device, root, point, options, optional fields, `-`, type, source, options of the file
    /// system.
    fn parse(line: &[u8]) -> Option<Self> {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let dash = fields.iter().position(|field| *field == b"-")?;
        let path = |at: usize| fields.get(at).map(|field| PathBuf::from(OsString::from_vec(unescape(field))));
        let number = fields.first().and_then(|field| std::str::from_utf8(field).ok());
        let list = |field: &[u8]| String::from_utf8_lossy(field).split(',').map(str::to_owned).collect();
        Some(Self {
            id: number?.parse().ok()?,
            root: path(3)?,
            point: path(4)?,
            options: list(fields.get(5)?),
            fs: String::from_utf8_lossy(fields.get(dash + 1)?).into_owned(),
            fs_options: list(fields.get(dash + 3).copied().unwrap_or_default()),
        })
    }
}

/// Every mount of the text, in its order. What is no such line is passed over.
pub(crate) fn mounts(text: &[u8]) -> impl Iterator<Item = Mount> {
    text.split(|byte| *byte == b'\n').filter_map(Mount::parse)
}

/// Mounts that their own path leads to: one that another covers cannot be used. Those that can be written come first, as
/// a container shows the same file system read-only by itself and writable where it was bound.
pub(crate) fn reachable(mounts: impl Iterator<Item = Mount>, at: impl Fn(&Path) -> Option<u64>) -> Vec<Mount> {
    let mut found: Vec<Mount> = mounts.filter(|mount| at(&mount.point) == Some(mount.id)).collect();
    found.sort_by_key(|mount| mount.has("ro"));
    found
}

/// Which mount a path leads to (statx(2), STATX_MNT_ID, Linux 5.8).
pub(crate) fn mount_at(path: &Path) -> Option<u64> {
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW | rustix::fs::AtFlags::NO_AUTOMOUNT;
    let stat = rustix::fs::statx(rustix::fs::CWD, path, flags, rustix::fs::StatxFlags::MNT_ID).ok()?;
    Some(stat.stx_mnt_id)
}

/// Octal escapes of blanks, tabs, line ends and backslashes.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.filter(|_| *first == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_and_nothing_else_is() {
        assert_eq!(unescape(br"/a\040b\134c"), br"/a b\c");
        assert_eq!(unescape(br"/plain\9"), br"/plain\9");
    }

    #[test]
    fn a_line_is_read_with_and_without_optional_fields() {
        let text = b"30 25 0:26 /r /mnt/a\\040b rw,nodev shared:9 master:1 - cgroup cgroup rw,memory\n\
                     31 25 0:27 / /proc ro - proc proc rw\nnonsense\n\n";
        let read: Vec<Mount> = mounts(text).collect();
        let [first, second] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!((first.id, second.id), (30, 31));
        assert_eq!((first.root.to_str(), first.point.to_str()), (Some("/r"), Some("/mnt/a b")));
        assert!(first.has("nodev") && !first.has("ro") && first.fs == "cgroup");
        assert_eq!(first.fs_options, ["rw", "memory"]);
        assert!(second.has("ro") && second.fs == "proc");
    }
    #[test]
    fn of_mounts_that_cover_one_another_the_one_that_is_seen_is_taken_and_a_writable_one_first() {
        let text = b"30 25 0:26 /docker/a1 /memory ro - cgroup cgroup rw,memory\n\
                     31 25 0:26 /whole /other ro - cgroup cgroup rw,memory\n\
                     40 30 0:26 /toolcell /memory rw - cgroup cgroup rw,memory\n";
        let at = |path: &Path| Some(if path == Path::new("/memory") { 40 } else { 31 });
        let roots: Vec<PathBuf> = reachable(mounts(text), at).into_iter().map(|mount| mount.root).collect();
        assert_eq!(roots, [Path::new("/toolcell"), Path::new("/whole")]);
    }

    #[test]
    fn the_kernel_names_the_mount_that_a_path_leads_to() {
        let text = std::fs::read("/proc/self/mountinfo").unwrap();
        let found = reachable(mounts(&text), mount_at);
        assert!(found.iter().any(|mount| mount.point == Path::new("/proc") && mount.fs == "proc"), "{found:?}");
    }
}

//! Lines of /proc/PID/mountinfo (proc(5)), read in one place: paths of any bytes, with their escapes undone.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
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
        let list = |field: &[u8]| String::from_utf8_lossy(field).split(',').map(str::to_owned).collect();
        Some(Self {
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
        assert_eq!((first.root.to_str(), first.point.to_str()), (Some("/r"), Some("/mnt/a b")));
        assert!(first.has("nodev") && !first.has("ro") && first.fs == "cgroup");
        assert_eq!(first.fs_options, ["rw", "memory"]);
        assert!(second.has("ro") && second.fs == "proc");
    }
}

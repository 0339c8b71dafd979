//! File systems that are mounted below a path.

use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::error::{HostPathError, Result, call};

/// What another file system covers could be read by who may not reach it otherwise, if only the covered one came along;
/// and a cell that is shown less than its caller sees would give wrong results.
pub(super) fn refuse_submounts(real: &Path) -> Result<()> {
    let mounts = call("look for mounts below", std::fs::read("/proc/self/mountinfo"))?;
    for line in mounts.split(|byte| *byte == b'\n') {
        let Some(point) = line.split(|byte| *byte == b' ').nth(4).map(unescape) else { continue };
        let point = PathBuf::from(std::ffi::OsString::from_vec(point));
        if point != real && point.starts_with(real) {
            return Err(HostPathError::Submount { point });
        }
    }
    Ok(())
}

/// Octal escapes of blanks, tabs, line ends and backslashes in mountinfo (proc(5)).
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
    fn mount_points_are_read_with_their_escapes() {
        assert_eq!(unescape(br"/a\040b\134c"), br"/a b\c");
        assert_eq!(unescape(br"/plain\9"), br"/plain\9");
        assert!(matches!(refuse_submounts(Path::new("/")), Err(HostPathError::Submount { .. })));
        assert!(refuse_submounts(Path::new("/usr/bin")).is_ok());
    }
}

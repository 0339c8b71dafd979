//! What must never be shown inside: the instance's own directories, and where the kernel shows itself.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use super::error::{HostPathError, Result, call};

/// What must never be shown inside.
#[derive(Debug)]
pub(crate) struct Denied {
    /// The directories themselves: being one of them or below one is refused.
    own: BTreeSet<(u64, u64)>,
    /// All directories above them: containing one is refused.
    above: BTreeSet<(u64, u64)>,
}

impl Denied {
    /// By device and inode, so that another name for the same directory does not help.
    pub(crate) fn new(paths: &[PathBuf]) -> io::Result<Self> {
        let (mut own, mut above) = (BTreeSet::new(), BTreeSet::new());
        for path in paths {
            let real = path.canonicalize()?;
            let _new = own.insert(identity(&real)?);
            for parent in real.ancestors().skip(1) {
                let _new = above.insert(identity(parent)?);
            }
        }
        Ok(Self { own, above })
    }

    pub(super) fn check(&self, real: &Path) -> Result<()> {
        if ["/proc", "/sys", "/dev"].iter().any(|kernel| real.starts_with(kernel)) {
            return Err(HostPathError::KernelFs);
        }
        if self.above.contains(&call("look at", identity(real))?) {
            return Err(HostPathError::OwnDirectory);
        }
        for part in real.ancestors() {
            if self.own.contains(&call("look above", identity(part))?) {
                return Err(HostPathError::OwnDirectory);
            }
        }
        Ok(())
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::stat(path)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// File systems in which the kernel shows itself (statfs(2)).
pub(super) fn refuse_kernel_fs(file: BorrowedFd<'_>) -> Result<()> {
    const PROC: i64 = 0x9fa0;
    const SYSFS: i64 = 0x6265_6572;
    const CGROUP: i64 = 0x0027_e0eb;
    const CGROUP2: i64 = 0x6367_7270;
    const DEBUGFS: i64 = 0x6462_6720;
    const TRACEFS: i64 = 0x7472_6163;
    const SECURITYFS: i64 = 0x7363_6673;
    const BPF: i64 = 0xcafe_4a11;
    const DEVPTS: i64 = 0x1cd1;
    const PSTORE: i64 = 0x6165_676c;
    const KERNEL: [i64; 10] = [PROC, SYSFS, CGROUP, CGROUP2, DEBUGFS, TRACEFS, SECURITYFS, BPF, DEVPTS, PSTORE];
    let magic = call("ask for the file system of", rustix::fs::fstatfs(file))?.f_type;
    if KERNEL.contains(&magic) { Err(HostPathError::KernelFs) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_directories_their_insides_and_their_parents_are_refused_and_siblings_are_not() {
        let base = std::env::temp_dir().join(format!("toolcell-denied-{}", std::process::id()));
        let (own, below, sibling) = (base.join("own"), base.join("own/below"), base.join("sibling"));
        for dir in [&own, &below, &sibling] {
            std::fs::create_dir_all(dir).unwrap();
        }
        let denied = Denied::new(std::slice::from_ref(&own)).unwrap();
        assert!(matches!(denied.check(&own), Err(HostPathError::OwnDirectory)));
        assert!(matches!(denied.check(&below), Err(HostPathError::OwnDirectory)));
        assert!(matches!(denied.check(&base), Err(HostPathError::OwnDirectory)));
        assert!(matches!(denied.check(Path::new("/")), Err(HostPathError::OwnDirectory)));
        assert!(matches!(denied.check(Path::new("/proc/self")), Err(HostPathError::KernelFs)));
        assert!(denied.check(&sibling).is_ok());
        std::fs::remove_dir_all(&base).unwrap();
    }
}
